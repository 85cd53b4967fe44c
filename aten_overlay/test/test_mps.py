# Owner(s): ["module: mps"]
# What lands is the fragment between the marker lines, inside class TestMPS; the rest is context that lets this file be
# read and run alone.
import torch
import torch.nn.functional as F
from torch.testing._internal.common_utils import instantiate_parametrized_tests, parametrize, run_tests, TestCase


class TestMPS(TestCase):
    # fragment: grid_sampler_2d_backward_tests
    # What the helpers check holds for any number of axes, which the sizes give.
    def _grid_sampler_backward_args(self, dtype, size, output_size):
        # A third of the coordinates lies outside of the input.
        batch, channels = size[:2]
        grad_output = torch.randn(batch, channels, *output_size).to(dtype)
        input = torch.randn(size).to(dtype)
        grid = (torch.rand(batch, *output_size, len(output_size)) * 3 - 1.5).to(dtype)
        return grad_output, input, grid

    def _grid_sampler_backward_args_on_mps(self, dtype, size, output_size):
        return [t.to("mps") for t in self._grid_sampler_backward_args(dtype, size, output_size)]

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
                actual = self._grid_sampler_backward(
                    grad_output.to("mps"), input.to("mps"), grid.to("mps"), *mode)
                for actual_grad, expected_grad, argument in zip(actual, expected, (input, grid)):
                    self.assertEqual(actual_grad.dtype, argument.dtype)
                    self.assertTrue(actual_grad.is_contiguous())
                    self.assertEqual(actual_grad.cpu().double(), expected_grad, atol=tolerance, rtol=tolerance)

    def _grid_sampler_backward_layouts(self, grad_output, input, grid):
        def sliced(t):
            # A view with gaps that starts at an odd element
            storage = torch.zeros([size + 3 for size in t.shape], dtype=t.dtype, device=t.device)
            view = storage[tuple(slice(1, 1 + size) for size in t.shape)]
            return view.copy_(t)

        def channels_last(t):
            return t.movedim(1, -1).contiguous().movedim(-1, 1)

        one_value = grad_output.flatten(2)[..., :1].unflatten(2, (1,) * (grad_output.dim() - 2))
        return {
            "channels_last": (channels_last(grad_output), channels_last(input), grid),
            "expanded grad_output": (one_value.expand_as(grad_output), input, grid),
            "coordinates first": (grad_output, input, grid.movedim(-1, 0).contiguous().movedim(0, -1)),
            "one grid for all": (grad_output, input, grid[:1].expand_as(grid)),
            "sliced": tuple(map(sliced, (grad_output, input, grid))),
        }

    def _check_grid_sampler_backward_strided(self, dtype, size, output_size, interpolation):
        args = self._grid_sampler_backward_args_on_mps(dtype, size, output_size)
        for name, strided in self._grid_sampler_backward_layouts(*args).items():
            with self.subTest(name):
                self._check_grid_sampler_backward(*strided, interpolation, 1)

    def _check_grid_sample_autograd(self, size, output_size, mode, padding_mode):
        grad_output, input, grid = self._grid_sampler_backward_args(torch.float32, size, output_size)

        def gradients(device):
            leaves = [t.to(device).requires_grad_() for t in (input, grid)]
            output = F.grid_sample(*leaves, mode=mode, padding_mode=padding_mode, align_corners=False)
            return torch.autograd.grad(output, leaves, grad_output.to(device))

        for actual, expected in zip(gradients("mps"), gradients("cpu")):
            self.assertEqual(actual.cpu(), expected, atol=1e-4, rtol=1e-4)

    def _check_grid_sampler_backward_sums_in_float(self, dtype, output_size, interpolations):
        # All 4096 samples hit the middle pixel. A sum in 16 bits would stop at 2048 (half) or 256 (bfloat16).
        axes = len(output_size)
        input = torch.zeros(1, 1, *[3] * axes, dtype=dtype, device="mps")
        grid = torch.zeros(1, *output_size, axes, dtype=dtype, device="mps")
        grad_output = torch.ones(1, 1, *output_size, dtype=dtype, device="mps")
        expected = torch.zeros_like(input, device="cpu")
        expected[(0, 0, *[1] * axes)] = 4096
        for interpolation in interpolations:
            grad_input, _ = self._grid_sampler_backward(grad_output, input, grid, interpolation, 0, True, [True, True])
            self.assertEqual(grad_input.cpu(), expected, atol=0, rtol=0)

    def _check_grid_sampler_backward_non_finite_grid(self, size, output_size, interpolation, padding):
        grad_output, input, grid = self._grid_sampler_backward_args(torch.float32, size, output_size)
        samples = grid.flatten(1, -2)
        inf, nan = float("inf"), float("nan")
        for sample, value in enumerate((nan, inf, -inf, 3e38, -3e38)):
            # In either of two coordinates, and in both
            samples[0, 3 * sample, 0] = value
            samples[0, 3 * sample + 1, -1] = value
            samples[1, sample] = value

        reference_grid = grid.clone()
        affected = ~(grid.abs() < 1e30)
        if padding == 1:
            # Infinities and the huge go to the nearest edge, NaN to pixel 0
            reference_grid = reference_grid.nan_to_num(nan=-4, posinf=4, neginf=-4).clamp(-4, 4)
        else:
            # The sample contributes nothing
            reference_grid[affected] = 0
            grad_output = torch.where(affected.any(-1).unsqueeze(1), 0, grad_output)
        self._check_grid_sampler_backward(grad_output, input, grid, interpolation, padding, reference_grid)

    def _check_grid_sampler_backward_far_outside(self, size, output_size, interpolation, padding):
        # Coordinates that are finite but convert to no 32-bit pixel index
        grad_output, input, grid = self._grid_sampler_backward_args(torch.float32, size, output_size)
        grid[:, 1:3] *= 1e12
        self._check_grid_sampler_backward(
            grad_output, input, grid, interpolation, padding, reference_grid=grid.clamp(-4, 4))

    def _check_grid_sampler_backward_output_mask(self, size, output_size, interpolation):
        args = self._grid_sampler_backward_args_on_mps(torch.float32, size, output_size)
        grad_input, grad_grid = self._grid_sampler_backward(*args, interpolation, 0, False, [True, True])
        # grad_grid is computed whatever output_mask says, as on the other devices
        for mask in ([False, True], [True, False], [False, False]):
            with self.subTest(interpolation=interpolation, mask=mask):
                masked_input, masked_grid = self._grid_sampler_backward(*args, interpolation, 0, False, mask)
                self.assertEqual(masked_grid, grad_grid)
                if mask[0]:
                    self.assertEqual(masked_input, grad_input)
                else:
                    self.assertIsNone(masked_input)

    def _check_grid_sampler_backward_empty(self, size, output_size, interpolation):
        args = self._grid_sampler_backward_args_on_mps(torch.float32, size, output_size)
        grads = self._grid_sampler_backward(*args, interpolation, 0, False, [True, True])
        for grad, argument in zip(grads, args[1:]):
            self.assertEqual(grad, torch.zeros_like(argument))

    def _check_grid_sampler_backward_rejects(self, size, output_size, other_input, other_grid):
        grad_output, input, grid = self._grid_sampler_backward_args_on_mps(torch.float32, size, output_size)

        def check(message, grad_output=grad_output, input=input, grid=grid, interpolation=0, padding=0):
            op = getattr(torch.ops.aten, f"grid_sampler_{len(output_size)}d_backward")
            with self.assertRaisesRegex((RuntimeError, NotImplementedError), message):
                op(grad_output, input, grid, interpolation, padding, False, [True, True])

        check("same type", grid=grid.half())
        check("same type", grad_output=grad_output.half())
        check("not supported", grad_output.int(), input.int(), grid.int())
        check("grad_output to have sizes", grad_output=grad_output[:, :, :-1])
        check("grad_output to have sizes", grad_output=grad_output[0])
        check("same batch size", grid=grid[:1])
        check(f"{len(size)}D input", input=other_input, grid=other_grid)
        check("non-empty spatial dimensions", input=input[:, :, :0])
        for code in (-1, 3):
            check("interpolation mode", interpolation=code)
            check("padding mode", padding=code)

    def _check_grid_sampler_backward_alerts_not_deterministic(self, size, output_size):
        from torch.testing._internal.common_utils import DeterministicGuard

        args = self._grid_sampler_backward_args_on_mps(torch.float32, size, output_size)
        with DeterministicGuard(True):
            with self.assertRaisesRegex(RuntimeError, f"grid_sampler_{len(output_size)}d_backward_mps"):
                self._grid_sampler_backward(*args, 0, 0, False, [True, True])
            # Without grad_input there are no atomics
            self._grid_sampler_backward(*args, 0, 0, False, [False, True])

    @parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    @parametrize("padding", [0, 1, 2])
    @parametrize("interpolation", [0, 1, 2])
    def test_grid_sampler_2d_backward(self, interpolation, padding, dtype):
        # Axes of size 1 have no distance between mirrors; 1025 channels are more than a threadgroup may hold.
        for size in [(2, 3, 5, 7), (3, 1, 1, 4), (1, 2, 6, 1), (1, 1025, 3, 2)]:
            with self.subTest(size=size):
                args = self._grid_sampler_backward_args(dtype, size, (4, 6))
                self._check_grid_sampler_backward(*args, interpolation, padding)

    @parametrize("dtype", [torch.float32, torch.float16])
    @parametrize("interpolation", [0, 1, 2])
    def test_grid_sampler_2d_backward_strided(self, interpolation, dtype):
        self._check_grid_sampler_backward_strided(dtype, (2, 3, 5, 7), (4, 6), interpolation)

    @parametrize("mode", ["bilinear", "nearest", "bicubic"])
    @parametrize("padding_mode", ["zeros", "border", "reflection"])
    def test_grid_sample_2d_autograd(self, mode, padding_mode):
        self._check_grid_sample_autograd((2, 3, 5, 7), (4, 6), mode, padding_mode)

    @parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    def test_grid_sampler_2d_backward_sums_in_float(self, dtype):
        self._check_grid_sampler_backward_sums_in_float(dtype, (64, 64), (0, 1, 2))

    @parametrize("padding", [0, 1, 2])
    @parametrize("interpolation", [0, 1, 2])
    def test_grid_sampler_2d_backward_non_finite_grid(self, interpolation, padding):
        self._check_grid_sampler_backward_non_finite_grid((2, 3, 5, 7), (4, 6), interpolation, padding)

    @parametrize("padding", [0, 1])
    @parametrize("interpolation", [0, 1, 2])
    def test_grid_sampler_2d_backward_far_outside(self, interpolation, padding):
        self._check_grid_sampler_backward_far_outside((2, 3, 5, 7), (4, 6), interpolation, padding)

    def test_grid_sampler_2d_backward_output_mask(self):
        for interpolation in (0, 1, 2):
            self._check_grid_sampler_backward_output_mask((2, 3, 5, 7), (4, 6), interpolation)

    @parametrize("size,output_size", [((0, 3, 5, 7), (4, 6)), ((2, 0, 5, 7), (4, 6)), ((2, 3, 5, 7), (0, 6))])
    def test_grid_sampler_2d_backward_empty(self, size, output_size):
        for interpolation in (0, 1, 2):
            self._check_grid_sampler_backward_empty(size, output_size, interpolation)

    def test_grid_sampler_2d_backward_rejects_bad_arguments(self):
        volume, volume_grid = torch.ones(2, 3, 1, 5, 7, device="mps"), torch.ones(2, 1, 4, 6, 3, device="mps")
        self._check_grid_sampler_backward_rejects((2, 3, 5, 7), (4, 6), volume, volume_grid)

    def test_grid_sampler_2d_backward_alerts_not_deterministic(self):
        self._check_grid_sampler_backward_alerts_not_deterministic((2, 3, 5, 7), (4, 6))
    # end fragment

    # fragment: grid_sampler_3d_tests
    @parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    @parametrize("padding", [0, 1, 2])
    @parametrize("interpolation", [0, 1])
    def test_grid_sampler_3d(self, interpolation, padding, dtype):
        tolerance = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype]
        for size in [(2, 3, 4, 5, 6), (2, 2, 1, 4, 3), (1, 2, 3, 1, 4), (1, 2, 4, 3, 1), (1, 1025, 2, 3, 2)]:
            _, input, grid = self._grid_sampler_backward_args(dtype, size, (3, 2, 4))
            for align_corners in (False, True):
                with self.subTest(size=size, align_corners=align_corners):
                    mode = (interpolation, padding, align_corners)
                    expected = torch.ops.aten.grid_sampler_3d(input.double(), grid.double(), *mode)
                    actual = torch.ops.aten.grid_sampler_3d(input.to("mps"), grid.to("mps"), *mode)
                    self.assertEqual(actual.cpu().double(), expected, atol=tolerance, rtol=tolerance)

    @parametrize("interpolation", [0, 1])
    def test_grid_sampler_3d_strided(self, interpolation):
        args = self._grid_sampler_backward_args_on_mps(torch.float32, (2, 3, 4, 5, 6), (3, 2, 4))
        for name, (_, input, grid) in self._grid_sampler_backward_layouts(*args).items():
            with self.subTest(name):
                expected = torch.ops.aten.grid_sampler_3d(input.cpu(), grid.cpu(), interpolation, 2, False)
                actual = torch.ops.aten.grid_sampler_3d(input, grid, interpolation, 2, False)
                self.assertTrue(actual.is_contiguous())
                self.assertEqual(actual.cpu(), expected, atol=1e-5, rtol=1e-5)

    def test_grid_sampler_3d_rejects_bad_arguments(self):
        _, input, grid = self._grid_sampler_backward_args_on_mps(torch.float32, (2, 3, 4, 5, 6), (3, 2, 4))
        for message, *args in [
            ("bicubic interpolation only supports 4D input", input, grid, 2, 0),
            ("interpolation mode", input, grid, 3, 0),
            ("padding mode", input, grid, 0, -1),
            ("same type", input, grid.half(), 0, 0),
            ("not supported", input.int(), grid.int(), 0, 0),
        ]:
            with self.assertRaisesRegex((RuntimeError, NotImplementedError), message):
                torch.ops.aten.grid_sampler_3d(*args, False)

    @parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    @parametrize("padding", [0, 1, 2])
    @parametrize("interpolation", [0, 1])
    def test_grid_sampler_3d_backward(self, interpolation, padding, dtype):
        for size in [(2, 3, 4, 5, 6), (2, 2, 1, 4, 3), (1, 2, 3, 1, 4), (1, 2, 4, 3, 1), (1, 1025, 2, 3, 2)]:
            with self.subTest(size=size):
                args = self._grid_sampler_backward_args(dtype, size, (3, 2, 4))
                self._check_grid_sampler_backward(*args, interpolation, padding)

    @parametrize("dtype", [torch.float32, torch.float16])
    @parametrize("interpolation", [0, 1])
    def test_grid_sampler_3d_backward_strided(self, interpolation, dtype):
        self._check_grid_sampler_backward_strided(dtype, (2, 3, 4, 5, 6), (3, 2, 4), interpolation)

    @parametrize("mode", ["bilinear", "nearest"])
    @parametrize("padding_mode", ["zeros", "border", "reflection"])
    def test_grid_sample_3d_autograd(self, mode, padding_mode):
        self._check_grid_sample_autograd((2, 3, 4, 5, 6), (3, 2, 4), mode, padding_mode)

    @parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    def test_grid_sampler_3d_backward_sums_in_float(self, dtype):
        self._check_grid_sampler_backward_sums_in_float(dtype, (16, 16, 16), (0, 1))

    @parametrize("padding", [0, 1, 2])
    @parametrize("interpolation", [0, 1])
    def test_grid_sampler_3d_backward_non_finite_grid(self, interpolation, padding):
        self._check_grid_sampler_backward_non_finite_grid((2, 3, 4, 5, 6), (3, 2, 4), interpolation, padding)

    @parametrize("padding", [0, 1])
    @parametrize("interpolation", [0, 1])
    def test_grid_sampler_3d_backward_far_outside(self, interpolation, padding):
        self._check_grid_sampler_backward_far_outside((2, 3, 4, 5, 6), (3, 2, 4), interpolation, padding)

    @parametrize("interpolation", [0, 1])
    def test_grid_sampler_3d_backward_output_mask(self, interpolation):
        self._check_grid_sampler_backward_output_mask((2, 3, 4, 5, 6), (3, 2, 4), interpolation)

    @parametrize("interpolation", [0, 1])
    @parametrize(
        "size,output_size",
        [((0, 3, 4, 5, 6), (3, 2, 4)), ((2, 0, 4, 5, 6), (3, 2, 4)), ((2, 3, 4, 5, 6), (3, 0, 4))],
    )
    def test_grid_sampler_3d_backward_empty(self, size, output_size, interpolation):
        self._check_grid_sampler_backward_empty(size, output_size, interpolation)

    def test_grid_sampler_3d_backward_rejects_bad_arguments(self):
        image, image_grid = torch.ones(2, 3, 5, 7, device="mps"), torch.ones(2, 4, 6, 2, device="mps")
        self._check_grid_sampler_backward_rejects((2, 3, 4, 5, 6), (3, 2, 4), image, image_grid)
        args = self._grid_sampler_backward_args_on_mps(torch.float32, (2, 3, 4, 5, 6), (3, 2, 4))
        with self.assertRaisesRegex(RuntimeError, "bicubic interpolation only supports 4D input"):
            self._grid_sampler_backward(*args, 2, 0, False, [True, True])

    def test_grid_sampler_3d_backward_alerts_not_deterministic(self):
        self._check_grid_sampler_backward_alerts_not_deterministic((2, 3, 4, 5, 6), (3, 2, 4))
    # end fragment

    # fragment: grid_sampler_lanes_tests
    # Which kernels of the backward run depends on the number of channels and the layouts.
    def _check_grid_sampler_lanes(self, dtype, size, output_size, interpolation, padding):
        tolerance = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}[dtype]
        axes = len(output_size)
        op = getattr(torch.ops.aten, f"grid_sampler_{axes}d_backward")
        last = torch.channels_last if axes == 2 else torch.channels_last_3d
        theta = torch.eye(axes, axes + 1).expand(size[0], -1, -1)
        grids = {
            "random": torch.rand(size[0], *output_size, axes) * 3 - 1.5,
            "smooth": torch.nn.functional.affine_grid(theta, (size[0], 1, *output_size), False) * 1.3 + 0.017,
            "one pixel": torch.full((size[0], *output_size, axes), 0.13),
        }
        grad_output, input = (torch.randn(*size[:2], *s).to(dtype) for s in (output_size, size[2:]))
        cases = [(kind, layout, mask) for kind in grids for layout in (torch.contiguous_format, last) for mask in (True, False)]
        for kind, layout, mask in cases:
            with self.subTest(kind, layout=layout, grad_input=mask):
                args = [t.contiguous(memory_format=layout) for t in (grad_output, input)] + [grids[kind].to(dtype)]
                mode = (interpolation, padding, False, [mask, True])
                actual = op(*(t.to("mps") for t in args), *mode)
                expected = op(*(t.double() for t in args), *mode)
                for actual_grad, expected_grad in zip(actual, expected):
                    if actual_grad is None:
                        continue
                    self.assertEqual(actual_grad.dtype, dtype)
                    self.assertTrue(actual_grad.is_contiguous())
                    scale = max(expected_grad.abs().max().item(), 1e-6)
                    self.assertEqual(actual_grad.cpu().double() / scale, expected_grad / scale, atol=tolerance, rtol=0)

    # (channels, interpolation): what each kernel takes; the others are left to the kernels above.
    def test_grid_sampler_2d_backward_lanes(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for channels, interpolation in ((17, 0), (13, 2), (40, 0), (40, 1), (40, 2)):
                self._check_grid_sampler_lanes(dtype, (2, channels, 5, 7), (9, 11), interpolation, 0)

    def test_grid_sampler_3d_backward_lanes(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for channels, interpolation in ((17, 0), (40, 0), (40, 1)):
                self._check_grid_sampler_lanes(dtype, (2, channels, 3, 4, 5), (3, 5, 7), interpolation, 0)

    def test_grid_sampler_backward_lanes_padding(self):
        for padding in (1, 2):
            for interpolation in range(3):
                self._check_grid_sampler_lanes(torch.float16, (1, 33, 3, 3), (8, 16), interpolation, padding)
    # end fragment


instantiate_parametrized_tests(TestMPS)

if __name__ == "__main__":
    run_tests()
