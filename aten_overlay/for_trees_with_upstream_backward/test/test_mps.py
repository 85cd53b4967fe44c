# Owner(s): ["module: mps"]
# What lands is the fragment between the marker lines, inside class TestMPS; the rest is context that lets this file be
# read and run alone.
import torch
from torch.testing._internal.common_utils import instantiate_parametrized_tests, parametrize, run_tests, TestCase


class TestMPS(TestCase):
    # fragment: grid_sampler_coordinates_tests
    # Grid samplers must stay within their input and give the right pixels whatever the coordinates: 1e8 is a pixel that
    # float32 does not resolve, 1e10 converts to no 32-bit index.
    def _grid_sampler(self, name, input, grid, *mode, grad_output=None):
        op = getattr(torch.ops.aten, f"grid_sampler_{input.dim() - 2}d{name}")
        return op(input, grid, *mode) if grad_output is None else op(grad_output, input, grid, *mode, [True, True])

    def _grid_sampler_coordinate_args(self, dims, dtype, padding):
        inf, nan = float("inf"), float("nan")
        x = torch.tensor([0.25, 1e8, -1e8, 1e10, -1e10, inf, -inf, nan, -0.5], dtype=dtype)
        grid = torch.zeros(1, *[1] * (dims - 1), len(x), dims, dtype=dtype)
        grid[..., 0] = x
        # The far end up on a pixel that depends on the last bits when they are reflected; of a sum of ones all are 1.
        input = torch.ones(1, 2, *(3, 4, 7)[3 - dims:], dtype=dtype) if padding == 2 else \
            torch.rand(1, 2, *(3, 4, 7)[3 - dims:]).add(1).to(dtype)
        grad_output = torch.rand(1, 2, *grid.shape[1:-1]).add(1).to(dtype)
        return grad_output, input, grid

    def _check_grid_sampler_coordinates(self, dims, dtype, interpolation, padding, align_corners):
        # The reference is float64 on the CPU, on coordinates that its kernel may be given.
        grad_output, input, grid = self._grid_sampler_coordinate_args(dims, dtype, padding)
        is_far, is_finite = ~(grid.abs() < 1e6), grid.isfinite().all(-1)
        if padding == 1:
            # The nearest edge, of NaN pixel 0
            reference_grid = grid.nan_to_num(nan=-4, posinf=4, neginf=-4).clamp(-4, 4)
            is_sampled = torch.ones_like(is_finite)
        else:
            # Nothing is sampled outside of the input, and what is not finite is outside
            reference_grid = torch.where(is_far, 0, grid)
            is_sampled = is_finite if padding == 2 else ~is_far.any(-1)
        is_sampled = is_sampled.unsqueeze(1)

        mode = (interpolation, padding, align_corners)
        tolerance = 1e-4 if dtype == torch.float32 else 1.6e-2
        expected = self._grid_sampler("", input.double(), reference_grid.double(), *mode)
        actual = self._grid_sampler("", input.to("mps"), grid.to("mps"), *mode)
        self.assertEqual(actual.cpu().double(), expected * is_sampled, atol=tolerance, rtol=tolerance)

        expected = self._grid_sampler(
            "_backward", input.double(), reference_grid.double(), *mode, grad_output=(grad_output * is_sampled).double())
        actual = self._grid_sampler(
            "_backward", input.to("mps"), grid.to("mps"), *mode, grad_output=grad_output.to("mps"))
        grad_inputs = [grad_input.cpu().double() for grad_input in (actual[0], expected[0])]
        if padding == 2:
            grad_inputs = [grad_input.flatten(2).sum(-1) for grad_input in grad_inputs]
        self.assertEqual(*grad_inputs, atol=tolerance, rtol=tolerance)
        self.assertEqual(actual[1].cpu().double(), expected[1], atol=tolerance, rtol=tolerance)

    @parametrize("dtype", [torch.float32, torch.bfloat16])
    @parametrize("padding", [0, 1, 2])
    @parametrize("interpolation", [0, 1, 2])
    def test_grid_sampler_2d_coordinates(self, interpolation, padding, dtype):
        for align_corners in (False, True):
            with self.subTest(align_corners=align_corners):
                self._check_grid_sampler_coordinates(2, dtype, interpolation, padding, align_corners)

    @parametrize("dtype", [torch.float32, torch.bfloat16])
    @parametrize("padding", [0, 1, 2])
    @parametrize("interpolation", [0, 1])
    def test_grid_sampler_3d_coordinates(self, interpolation, padding, dtype):
        for align_corners in (False, True):
            with self.subTest(align_corners=align_corners):
                self._check_grid_sampler_coordinates(3, dtype, interpolation, padding, align_corners)

    @parametrize("dims,interpolation", [(2, 0), (2, 1), (2, 2), (3, 0), (3, 1)])
    def test_grid_sampler_reflects_one_pixel(self, dims, interpolation):
        # With align_corners the mirrors of an axis of size 1 are in one place.
        input, grid = torch.rand(1, 2, *(3, 4)[3 - dims:], 1), torch.rand(1, *[2] * dims, dims) * 3 - 1.5
        mode = (interpolation, 2, True)
        actual = self._grid_sampler("", input.to("mps"), grid.to("mps"), *mode)
        self.assertEqual(actual.cpu(), self._grid_sampler("", input, grid, *mode), atol=1e-5, rtol=1e-5)

    @parametrize("dtype,stops_at", [(torch.bfloat16, 256), (torch.float16, 2048)])
    @parametrize("dims,interpolation", [(2, 0), (2, 1), (2, 2), (3, 0), (3, 1)])
    def test_grid_sampler_backward_sums_in_float(self, dims, interpolation, dtype, stops_at):
        # As many ones in one pixel as are three times what a sum in this dtype can count
        grid = torch.zeros(1, *[1] * (dims - 1), 3 * stops_at, dims, dtype=dtype, device="mps")
        grid[..., 0] = -0.5
        input = torch.ones(1, 1, *[1] * (dims - 1), 2, dtype=dtype, device="mps")
        ones = torch.ones(1, 1, *grid.shape[1:-1], dtype=dtype, device="mps")
        grad_input, _ = self._grid_sampler("_backward", input, grid, interpolation, 1, False, grad_output=ones)
        self.assertEqual(grad_input.flatten().tolist(), [3 * stops_at, 0])

    @parametrize("size,output_size", [((0, 3), 4), ((2, 0), 4), ((2, 3), 0)])
    @parametrize("dims", [2, 3])
    def test_grid_sampler_empty(self, dims, size, output_size):
        input = torch.rand(*size, *[5] * dims, device="mps")
        grid = torch.rand(size[0], *[output_size] * dims, dims, device="mps")
        output = self._grid_sampler("", input, grid, 0, 0, False)
        self.assertEqual(output.shape, (*size, *[output_size] * dims))
        grads = self._grid_sampler("_backward", input, grid, 0, 0, False, grad_output=torch.ones_like(output))
        for grad, argument in zip(grads, (input, grid)):
            self.assertEqual(grad, torch.zeros_like(argument))
    # end fragment


instantiate_parametrized_tests(TestMPS)

if __name__ == "__main__":
    run_tests()
