# Owner(s): ["module: mps"]
import copy

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_mps import mps_ops_grad_modifier, mps_ops_modifier
from torch.testing._internal.common_utils import (
    instantiate_parametrized_tests,
    parametrize,
    run_tests,
    TestCase,
)


MPS_DTYPES = [torch.float32, torch.float16, torch.bfloat16]
MPS_GRAD_DTYPES = [torch.float32, torch.float16]

test_consistency_op_db = copy.deepcopy(op_db)


def moved_to(device, value, dtype=None):
    """Detached copy of a tensor on the device, which keeps requires_grad; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().to(device=device, dtype=dtype).requires_grad_(value.requires_grad)


class TestCaseMPS(TestCase):
    def assert_matches_cpu(self, function, *args, **tolerances):
        on_mps = [moved_to("mps", arg) for arg in args]
        self.assertEqual(function(*args), function(*on_mps).cpu(), **tolerances)


class TestMPS(TestCaseMPS):
    @parametrize("mode", ["bilinear", "nearest", "bicubic"])
    @parametrize("padding_mode", ["zeros", "border", "reflection"])
    def test_grid_sample_2d_forward(self, mode, padding_mode):
        for align_corners in (False, True):
            self.assert_matches_cpu(
                lambda image, grid: F.grid_sample(
                    image, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners
                ),
                torch.randn(2, 3, 5, 7),
                torch.rand(2, 4, 6, 2) * 3 - 1.5,
                atol=1e-4,
                rtol=1e-4,
            )

    @parametrize("padding_mode", ["zeros", "border", "reflection"])
    def test_grid_sample_3d_forward(self, padding_mode):
        for align_corners in (False, True):
            self.assert_matches_cpu(
                lambda volume, grid: F.grid_sample(
                    volume, grid, padding_mode=padding_mode, align_corners=align_corners
                ),
                torch.randn(2, 3, 4, 5, 6),
                torch.rand(2, 3, 2, 4, 3) * 3 - 1.5,
                atol=1e-4,
                rtol=1e-4,
            )


class TestConsistency(TestCaseMPS):
    # Ops that the CPU computes in half where the GPU computes in float
    FP32_REFERENCE_LIST = {"grid_sampler_2d", "grid_sampler_3d"}

    def _run_on_cpu(self, op, sample, dtype=None):
        cpu_args = [moved_to("cpu", arg, dtype) for arg in (sample.input, *sample.args)]
        return cpu_args, op(*cpu_args, **sample.kwargs)

    def _gradients(self, args, out, grad_outputs):
        inputs = [leaf for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        return torch.autograd.grad(out, inputs, grad_outputs, allow_unused=True)

    @ops(mps_ops_modifier(test_consistency_op_db), allowed_dtypes=MPS_DTYPES)
    def test_output_match(self, device, dtype, op):
        is_half = dtype in (torch.float16, torch.bfloat16)
        reference_dtype = torch.float32 if is_half and op.name in self.FP32_REFERENCE_LIST else None
        for sample in op.sample_inputs(device, dtype):
            mps_out = op(sample.input, *sample.args, **sample.kwargs)
            _, cpu_out = self._run_on_cpu(op, sample, reference_dtype)
            self.assertEqual(mps_out, cpu_out.to(mps_out.dtype))

    @ops(mps_ops_grad_modifier(copy.deepcopy(test_consistency_op_db)), allowed_dtypes=MPS_GRAD_DTYPES)
    def test_output_grad_match(self, device, dtype, op):
        for sample in op.sample_inputs(device, dtype, requires_grad=True):
            mps_args = [sample.input, *sample.args]
            mps_out = op(*mps_args, **sample.kwargs)
            cpu_args, cpu_out = self._run_on_cpu(op, sample)
            self.assertEqual(mps_out, cpu_out)

            grad_output = torch.rand_like(cpu_out)
            mps_grads = self._gradients(mps_args, mps_out, grad_output.to(device))
            self.assertEqual(mps_grads, self._gradients(cpu_args, cpu_out, grad_output))


instantiate_parametrized_tests(TestMPS)
instantiate_device_type_tests(TestConsistency, globals(), allow_mps=True, only_for="mps")

if __name__ == "__main__":
    run_tests()
