"""Times work on the current CUDA device: medians with spread, second-level cache flushed before each sample.

The flush takes longer than it takes to enqueue what follows it, so that what is measured is the device's time, and
not how fast Python launches: the same for PyTorch's operator and for the candidates.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch

_FLUSH_BYTES = 1 << 30
_COPY_BYTES = 1 << 30


@dataclass(frozen=True)
class Timing:
    """Samples of one piece of work, in milliseconds."""

    median: float
    low: float
    high: float


@lru_cache(maxsize=1)
def _flush_buffer() -> torch.Tensor:
    return torch.empty(_FLUSH_BYTES, dtype=torch.uint8, device="cuda")


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def measure(work: Callable[[], object], repeats: int = 11) -> Timing:
    """Run ``work`` a few times to warm up, then ``repeats`` times with events around it."""
    buffer = _flush_buffer()
    for _ in range(2):
        work()
    samples = []
    for _ in range(repeats):
        begin, end = _event(), _event()
        buffer.zero_()
        begin.record()
        work()
        end.record()
        samples.append((begin, end))
    torch.cuda.synchronize()
    times = sorted(begin.elapsed_time(end) for begin, end in samples)
    return Timing(statistics.median(times), times[0], times[-1])


def copy_bandwidth() -> float:
    """Terabytes a second that a large copy on the device moves, read and written bytes counted."""
    source = torch.empty(_COPY_BYTES, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * _COPY_BYTES / measure(lambda: target.copy_(source)).median / 1e9
