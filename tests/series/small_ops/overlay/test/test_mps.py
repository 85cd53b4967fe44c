"""Only the fragment lands; the rest is there so that the file reads alone."""

import torch
from torch.testing._internal.common_utils import TestCase


class TestMPS(TestCase):
    # fragment: logspace_test
    def test_logspace_ends_and_middle(self):
        for steps in (0, 1, 2, 7, 100):
            for dtype in (torch.float32, torch.float16, torch.int32):
                on_mps = torch.logspace(-1, 3, steps, base=2.0, dtype=dtype, device="mps")
                on_cpu = torch.logspace(-1, 3, steps, base=2.0, dtype=torch.float64)
                self.assertEqual(on_mps.cpu(), on_cpu.to(dtype), atol=1 if dtype == torch.int32 else 1e-2, rtol=1e-3)
    # end fragment
