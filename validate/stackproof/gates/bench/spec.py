"""What is known of the gate "bench" before it is imported, and its options."""

from __future__ import annotations

from dataclasses import dataclass

from stackproof.gates.common.options import OpsOptions, option
from stackproof.gates.spec import Keeps, Spec

HOST, CUDA, MPS = "host", "cuda", "mps"


@dataclass(frozen=True)
class Options(OpsOptions):
    """What is measured, and where.

    Attributes:
        device: where; what the machine has otherwise.
        each_commit: whether every commit is judged on its own, too.
    """

    device: str = option("", "Measure every row here.", choices=(HOST, CUDA, MPS))
    each_commit: bool = False

    @property
    def all_rows(self) -> bool:
        """Whoever names a device wants its whole table; commit by commit, one row of each kind has to do."""
        return bool(self.device) and not self.each_commit


SPEC = Spec(
    __name__,
    "bench",
    "what the backward passes cost: traffic counted on the host, or time on a GPU beside PyTorch's own kernel",
    Options,
    limits=(
        "No time was measured: caches, latencies and what a GPU does at once are not in a count.",
        "Counts are of small shapes: at the edges of a small image more samples are cut off.",
    ),
    needs=("torch", "numpy"),
    keeps=Keeps.PROGRAMS,
    runs="the stack's kernels",
)
