"""Times work on a device: medians with spread, second-level cache flushed before each sample.

On a GPU the flush takes longer than it takes to enqueue what follows it, so that what is measured is the device's time,
and not how fast Python launches: the same for every kernel that is compared.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

# Larger than any second-level cache, and long enough to enqueue the work behind it.
_FLUSH_BYTES = {"cuda": 1 << 30, "mps": 1 << 28, "cpu": 1 << 24}
_COPY_BYTES = {"cuda": 1 << 30, "mps": 1 << 28, "cpu": 1 << 24}
_WARM_UPS = 2


@dataclass(frozen=True)
class Timing:
    """Samples of one piece of work, in milliseconds.

    Attributes:
        median: of all samples.
        low: the shortest.
        high: the longest.
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Timing:
        """From the samples themselves."""
        return cls(statistics.median(samples), min(samples), max(samples))

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f}-{self.high:.3f})"


class Clock:
    """Measures work on one torch device.

    Args:
        device: ``cuda``, ``mps`` or ``cpu``. The last is for trying the scripts out: its figures mean nothing here.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self._buffer = torch.empty(_FLUSH_BYTES[device], dtype=torch.uint8, device=device)

    def measure(self, work: Callable[[], object], repeats: int = 11) -> Timing:
        """Run ``work`` a few times to warm up, then ``repeats`` times, each behind a flush of the cache."""
        for _ in range(_WARM_UPS):
            work()
        if self.device == "cpu":
            return Timing.of([self._host_sample(work) for _ in range(repeats)])
        pairs = [self._device_sample(work) for _ in range(repeats)]
        getattr(torch, self.device).synchronize()
        return Timing.of([begin.elapsed_time(end) for begin, end in pairs])

    def copy_bandwidth(self) -> float:
        """Terabytes a second that a large copy on the device moves, read and written bytes counted."""
        source = torch.zeros(_COPY_BYTES[self.device], dtype=torch.uint8, device=self.device)
        target = torch.empty_like(source)
        return 2 * source.numel() / self.measure(lambda: target.copy_(source)).median / 1e9

    def name(self) -> str:
        """Of the device, for the head of a table; torch has no name for an Apple GPU."""
        return torch.cuda.get_device_name() if self.device == "cuda" else self.device

    def free(self) -> None:
        """Give back what the last row's tensors held."""
        if self.device != "cpu":
            getattr(torch, self.device).empty_cache()

    def _host_sample(self, work: Callable[[], object]) -> float:
        self._buffer.zero_()
        started = time.perf_counter()
        work()
        return 1e3 * (time.perf_counter() - started)

    def _device_sample(self, work: Callable[[], object]) -> tuple[Any, Any]:
        begin, end = self._event(), self._event()
        self._buffer.zero_()
        begin.record()
        work()
        end.record()
        return begin, end

    def _event(self) -> Any:
        if self.device == "cuda":
            return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        return torch.mps.event.Event(enable_timing=True)


@lru_cache(maxsize=1)
def clock_for(device: str) -> Clock:
    """The clock of a device, whose buffer is made once."""
    return Clock(device)
