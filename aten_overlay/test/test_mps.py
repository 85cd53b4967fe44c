# Owner(s): ["module: mps"]
# What lands is the fragment between the marker lines, inside class TestMPS; the rest is context that lets this file be
# read and run alone.
import torch
import torch.nn.functional as F
from torch.testing._internal.common_utils import instantiate_parametrized_tests, parametrize, run_tests, TestCase


class TestMPS(TestCase):
    # fragment: grid_sampler_2d_backward_tests
    def _grid_sampler_backward_args(self, dtype, size=(2, 3, 5, 7), output_size=(4, 6)):
        # A third of the coordinates lies outside of the input.
        batch, channels = size[:2]
        grad_output = torch.randn(batch, channels, *output_size).to(dtype)
        input = torch.randn(size).to(dtype)
        grid = (torch.rand(batch, *output_size, len(output_size)) * 3 - 1.5).to(dtype)
        return grad_output, input, grid

    def _grid_sampler_backward(self, grad_output, input, grid, *mode):
        op = getattr(torch.ops.aten, f"grid_sampler_{input.dim() - 2}d_backward")
        return op(grad_output, input, grid, *mode)

    def _check_grid_sampler_backward(self, grad_output, input, grid, interpolation, padding, reference_grid=None):
        # The reference is float64 on the CPU, from the same rounded values: in half precision the CPU kernel sums and
        # computes positions in half. reference_grid replaces coordinates that the CPU kernel must not be given.
        tolerance = {torch.float32: 1e-4, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[input.dtype]
        if reference_grid is None:
            reference_grid = grid
        for align_corners in (False, True):
            with self.subTest(align_corners=align_corners):
                mode = (interpolation, padding, align_corners, [True, True])
                expected = self._grid_sampler_backward(
                    grad_output.cpu().double(), input.cpu().double(), reference_grid.cpu().double(), *mode)
                actual = self._grid_sampler_backward(grad_output, input, grid, *mode)
                for actual_grad, expected_grad, argument in zip(actual, expected, (input, grid)):
                    self.assertEqual(actual_grad.dtype, argument.dtype)
                    self.assertTrue(actual_grad.is_contiguous())
                    self.assertEqual(actual_grad.cpu().double(), expected_grad, atol=tolerance, rtol=tolerance)

    @parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    @parametrize("padding", [0, 1, 2])
    @parametrize("interpolation", [0, 1, 2])
    def test_grid_sampler_2d_backward(self, interpolation, padding, dtype):
        # Axes of size 1 have no distance between mirrors; 1025 channels are more than a threadgroup may hold.
        for size in [(2, 3, 5, 7), (3, 1, 1, 4), (1, 2, 6, 1), (1, 1025, 3, 2)]:
            with self.subTest(size=size):
                args = self._grid_sampler_backward_args(dtype, size)
                self._check_grid_sampler_backward(*(t.to("mps") for t in args), interpolation, padding)

    @parametrize("dtype", [torch.float32, torch.float16])
    @parametrize("interpolation", [0, 1, 2])
    def test_grid_sampler_2d_backward_strided(self, interpolation, dtype):
        def sliced(t):
            # A view with gaps that starts at an odd element
            storage = torch.zeros([size + 3 for size in t.shape], dtype=t.dtype, device=t.device)
            view = storage[tuple(slice(1, 1 + size) for size in t.shape)]
            return view.copy_(t)

        grad_output, input, grid = (t.to("mps") for t in self._grid_sampler_backward_args(dtype))
        channels_last = {"memory_format": torch.channels_last}
        for name, args in {
            "channels_last": (grad_output.contiguous(**channels_last), input.contiguous(**channels_last), grid),
            "expanded grad_output": (grad_output[:, :, :1, :1].expand_as(grad_output), input, grid),
            "coordinates first": (grad_output, input, grid.permute(3, 0, 1, 2).contiguous().permute(1, 2, 3, 0)),
            "one grid for all": (grad_output, input, grid[:1].expand_as(grid)),
            "sliced": tuple(map(sliced, (grad_output, input, grid))),
        }.items():
            with self.subTest(name):
                self._check_grid_sampler_backward(*args, interpolation, 1)

    @parametrize("mode", ["bilinear", "nearest", "bicubic"])
    @parametrize("padding_mode", ["zeros", "border", "reflection"])
    def test_grid_sample_2d_autograd(self, mode, padding_mode):
        grad_output, input, grid = self._grid_sampler_backward_args(torch.float32)

        def gradients(device):
            leaves = [t.to(device).requires_grad_() for t in (input, grid)]
            output = F.grid_sample(*leaves, mode=mode, padding_mode=padding_mode, align_corners=False)
            return torch.autograd.grad(output, leaves, grad_output.to(device))

        for actual, expected in zip(gradients("mps"), gradients("cpu")):
            self.assertEqual(actual.cpu(), expected, atol=1e-4, rtol=1e-4)

    @parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    def test_grid_sampler_2d_backward_sums_in_float(self, dtype):
        # All samples hit one pixel. A sum in 16 bits would stop at 2048 (half) or 256 (bfloat16).
        input = torch.zeros(1, 1, 3, 3, dtype=dtype, device="mps")
        grid = torch.zeros(1, 64, 64, 2, dtype=dtype, device="mps")
        grad_output = torch.ones(1, 1, 64, 64, dtype=dtype, device="mps")
        expected = torch.zeros(1, 1, 3, 3, dtype=dtype)
        expected[0, 0, 1, 1] = 4096
        for interpolation in (0, 1, 2):
            grad_input, _ = torch.ops.aten.grid_sampler_2d_backward(
                grad_output, input, grid, interpolation, 0, True, [True, True])
            self.assertEqual(grad_input.cpu(), expected, atol=0, rtol=0)

    @parametrize("padding", [0, 1, 2])
    @parametrize("interpolation", [0, 1, 2])
    def test_grid_sampler_2d_backward_non_finite_grid(self, interpolation, padding):
        inf, nan = float("inf"), float("nan")
        grad_output, input, grid = self._grid_sampler_backward_args(torch.float32)
        grid[0, 0] = torch.tensor([[nan, 0.1], [0.1, nan], [inf, 0.15], [-inf, 0.15], [0.15, inf], [nan, -inf]])
        grid[1, 2, 1:4] = torch.tensor([[3e38, 0.3], [0.3, -3e38], [nan, nan]])

        reference_grid = grid.clone()
        affected = ~(grid.abs() < 1e30)
        if padding == 1:
            # Infinities and the huge go to the nearest edge, NaN to pixel 0
            reference_grid = reference_grid.nan_to_num(nan=-4, posinf=4, neginf=-4).clamp(-4, 4)
        else:
            # The sample contributes nothing
            reference_grid[affected] = 0
            grad_output = torch.where(affected.any(-1).unsqueeze(1), 0, grad_output)
        self._check_grid_sampler_backward(
            grad_output.to("mps"), input.to("mps"), grid.to("mps"), interpolation, padding, reference_grid)

    def test_grid_sampler_2d_backward_far_outside(self):
        # Coordinates that are finite but convert to no 32-bit pixel index
        grad_output, input, grid = self._grid_sampler_backward_args(torch.float32)
        grid[:, 1:3] *= 1e12
        for interpolation in (0, 1, 2):
            for padding in (0, 1):
                with self.subTest(interpolation=interpolation, padding=padding):
                    self._check_grid_sampler_backward(
                        grad_output.to("mps"), input.to("mps"), grid.to("mps"), interpolation, padding,
                        reference_grid=grid.clamp(-4, 4))

    def test_grid_sampler_2d_backward_output_mask(self):
        args = [t.to("mps") for t in self._grid_sampler_backward_args(torch.float32)]
        for interpolation in (0, 1, 2):
            grad_input, grad_grid = torch.ops.aten.grid_sampler_2d_backward(
                *args, interpolation, 0, False, [True, True])
            # grad_grid is computed whatever output_mask says, as on the other devices
            for mask in ([False, True], [True, False], [False, False]):
                with self.subTest(interpolation=interpolation, mask=mask):
                    masked_input, masked_grid = torch.ops.aten.grid_sampler_2d_backward(
                        *args, interpolation, 0, False, mask)
                    self.assertEqual(masked_grid, grad_grid)
                    if mask[0]:
                        self.assertEqual(masked_input, grad_input)
                    else:
                        self.assertIsNone(masked_input)

    @parametrize("size,output_size", [((0, 3, 5, 7), (4, 6)), ((2, 0, 5, 7), (4, 6)), ((2, 3, 5, 7), (0, 6))])
    def test_grid_sampler_2d_backward_empty(self, size, output_size):
        args = [t.to("mps") for t in self._grid_sampler_backward_args(torch.float32, size, output_size)]
        for interpolation in (0, 1, 2):
            grads = torch.ops.aten.grid_sampler_2d_backward(*args, interpolation, 0, False, [True, True])
            for grad, argument in zip(grads, args[1:]):
                self.assertEqual(grad, torch.zeros_like(argument))

    def test_grid_sampler_2d_backward_rejects_bad_arguments(self):
        grad_output, input, grid = (t.to("mps") for t in self._grid_sampler_backward_args(torch.float32))

        def check(message, grad_output=grad_output, input=input, grid=grid, interpolation=0, padding=0):
            with self.assertRaisesRegex((RuntimeError, NotImplementedError), message):
                torch.ops.aten.grid_sampler_2d_backward(
                    grad_output, input, grid, interpolation, padding, False, [True, True])

        check("same type", grid=grid.half())
        check("same type", grad_output=grad_output.half())
        check("not supported", grad_output.int(), input.int(), grid.int())
        check("grad_output to have sizes", grad_output=grad_output[:, :, :-1])
        check("grad_output to have sizes", grad_output=grad_output[0])
        check("same batch size", grid=grid[:1])
        check("4D input", input=input.unsqueeze(2), grid=torch.cat([grid, grid[..., :1]], dim=-1))
        check("non-empty spatial dimensions", input=input[:, :, :0])
        for code in (-1, 3):
            check("interpolation mode", interpolation=code)
            check("padding mode", padding=code)

    def test_grid_sampler_2d_backward_alerts_not_deterministic(self):
        from torch.testing._internal.common_utils import DeterministicGuard

        args = [t.to("mps") for t in self._grid_sampler_backward_args(torch.float32)]
        with DeterministicGuard(True):
            with self.assertRaisesRegex(RuntimeError, "grid_sampler_2d_backward_mps"):
                torch.ops.aten.grid_sampler_2d_backward(*args, 0, 0, False, [True, True])
            # Without grad_input there are no atomics
            torch.ops.aten.grid_sampler_2d_backward(*args, 0, 0, False, [False, True])
    # end fragment

    # fragment: grid_sampler_3d_tests
    @parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    @parametrize("padding", [0, 1, 2])
    @parametrize("interpolation", [0, 1])
    def test_grid_sampler_3d_backward(self, interpolation, padding, dtype):
        for size in [(2, 3, 4, 5, 6), (2, 2, 1, 4, 3), (1, 2, 3, 1, 4), (1, 2, 4, 3, 1)]:
            with self.subTest(size=size):
                args = self._grid_sampler_backward_args(dtype, size, (3, 2, 4))
                self._check_grid_sampler_backward(*(t.to("mps") for t in args), interpolation, padding)
    # end fragment


instantiate_parametrized_tests(TestMPS)

if __name__ == "__main__":
    run_tests()
