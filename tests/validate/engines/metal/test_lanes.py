"""Values that move between lanes: what the lanes without a source get, on vectors and 16-bit numbers too."""

from __future__ import annotations

import torch

from metal_kernels import KERNELS, cache, library
from stackproof.engines.gpu import compile_ptx
from stackproof.engines.metal.build import Source

LANES = torch.arange(32)


def test_lanes_without_a_source_keep_their_own_value_or_take_the_fill() -> None:
    vectors, halves = torch.zeros(32, 4), torch.zeros(32, dtype=torch.float16)
    library("lanes_of_vectors.metal").kernel("move_vectors")(vectors, halves, threads=32, group_size=32)
    own = LANES[:, None] + torch.tensor([0, 100, 200, 300])
    up, down = (LANES - 1).clamp(0), torch.where(LANES < 30, LANES + 2, LANES)
    assert torch.equal(vectors, (own[up] + own[down] + own[LANES ^ 3]).float())
    filled = torch.where(LANES < 2, 50, LANES - 2)
    quad = torch.where(LANES % 4 == 0, LANES, LANES - 1)
    assert torch.equal(halves, ((LANES + 1).clamp(max=31) + filled + quad).half())


def test_the_same_kernel_becomes_shuffles_of_32_bit_words() -> None:
    text = compile_ptx(Source(KERNELS / "lanes_of_vectors.metal"), cache()).path.read_text()
    assert text.count("shfl.sync.idx.b32") == 3 * 4 + 1 + 2 + 1
