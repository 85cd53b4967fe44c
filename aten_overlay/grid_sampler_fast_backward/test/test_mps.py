# Owner(s): ["module: mps"]
# What lands is the fragment between the marker lines, inside class TestMPS; the rest is context that lets this file be
# read and run alone.
import torch
from torch.testing._internal.common_utils import run_tests, TestCase


class TestMPS(TestCase):
    # fragment: grid_sampler_division_tests
    # The kernels of the backward depend on the number of channels, the layouts, and how samples lie to each other.
    def _check_grid_sampler_division(self, dtype, size, output_size, interpolation, padding):
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

    def test_grid_sampler_backward_2d_division_by_channels(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for channels in (3, 17, 40):
                for interpolation in range(3):
                    self._check_grid_sampler_division(dtype, (2, channels, 5, 7), (9, 11), interpolation, 0)

    def test_grid_sampler_backward_3d_division_by_channels(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for channels in (3, 17, 40):
                for interpolation in range(2):
                    self._check_grid_sampler_division(dtype, (2, channels, 3, 4, 5), (3, 5, 7), interpolation, 0)

    def test_grid_sampler_backward_division_by_padding(self):
        # Inputs of three pixels, where samples that do not have the same pixels have the same first and last one
        for padding in (1, 2):
            for channels, interpolation in ((2, 0), (2, 1), (2, 2), (17, 0), (17, 1), (17, 2)):
                self._check_grid_sampler_division(torch.float32, (1, channels, 3, 3), (8, 16), interpolation, padding)
    # end fragment


if __name__ == "__main__":
    run_tests()
