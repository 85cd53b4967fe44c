# Owner(s): ["module: mps"]
import copy
import itertools

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_mps import mps_ops_grad_modifier, mps_ops_modifier
from torch.testing._internal.common_utils import instantiate_parametrized_tests, parametrize, run_tests, TestCase

test_consistency_op_db = copy.deepcopy(op_db)


class TestMPS(TestCase):
    @parametrize("dims,mode", [(2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear"), (3, "nearest")])
    @parametrize("padding_mode", ["zeros", "border", "reflection"])
    def test_grid_sample_and_gradients(self, dims, mode, padding_mode):
        input = torch.randn(2, 3, *(4, 5, 7)[:dims], requires_grad=True)
        grid = (torch.rand(2, *(3, 4, 6)[:dims], dims) * 3 - 1.5).requires_grad_()
        for align_corners in (False, True):
            results = []
            for device in ("cpu", "mps"):
                leaves = [leaf.detach().to(device).requires_grad_() for leaf in (input, grid)]
                output = F.grid_sample(*leaves, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
                results.append([output, *torch.autograd.grad(output.square().sum(), leaves)])
            for on_cpu, on_mps in zip(*results):
                self.assertEqual(on_cpu, on_mps.cpu(), atol=1e-4, rtol=1e-4)


class TestConsistency(TestCase):
    # The CPU computes positions and sums of these in 16 bits, MPS in float: the reference is the CPU's float
    FLOAT_REFERENCE = {"grid_sampler_2d", "grid_sampler_3d"}

    def _results(self, op, sample, device, dtype, with_grad):
        def moved(value):
            if not isinstance(value, torch.Tensor):
                return value
            kept = dtype if value.is_floating_point() else value.dtype
            return value.detach().to(device=device, dtype=kept).requires_grad_(value.requires_grad)

        arguments = [moved(value) for value in (sample.input, *sample.args)]
        output = op(*arguments, **sample.kwargs)
        if not with_grad:
            return [output]
        leaves = [leaf for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        weights = torch.linspace(0, 1, output.numel()).to(sample.input.dtype).to(output).reshape(output.shape)
        return [output, *torch.autograd.grad(output, leaves, weights, allow_unused=True)]

    def _check(self, device, dtype, op, with_grad):
        is_upcast = dtype in (torch.float16, torch.bfloat16) and op.name in self.FLOAT_REFERENCE
        for sample in op.sample_inputs(device, dtype, requires_grad=with_grad):
            on_mps = self._results(op, sample, device, dtype, with_grad)
            on_cpu = self._results(op, sample, "cpu", torch.float32 if is_upcast else dtype, with_grad)
            for actual, expected in itertools.zip_longest(on_mps, on_cpu):
                self.assertEqual(actual, expected.to(dtype))

    @ops(mps_ops_modifier(test_consistency_op_db), allowed_dtypes=[torch.float32, torch.float16, torch.bfloat16])
    def test_output_match(self, device, dtype, op):
        self._check(device, dtype, op, with_grad=False)

    @ops(mps_ops_grad_modifier(copy.deepcopy(test_consistency_op_db)), allowed_dtypes=[torch.float32, torch.float16])
    def test_output_grad_match(self, device, dtype, op):
        self._check(device, dtype, op, with_grad=True)


instantiate_parametrized_tests(TestMPS)
instantiate_device_type_tests(TestConsistency, globals(), allow_mps=True, only_for="mps")

if __name__ == "__main__":
    run_tests()
