"""What is known of the gate "metal-run" before it is imported, and its options."""

from __future__ import annotations

from dataclasses import dataclass

from stackproof.gates.common.options import MatchOptions, OpsOptions, SmallOptions, option
from stackproof.gates.spec import Keeps, Spec

PLAIN = "plain"
RUN_MODES = (PLAIN, "detectors", "permuted threads", "fast math")
"""In the order of the report."""


@dataclass(frozen=True)
class Options(SmallOptions, MatchOptions, OpsOptions):
    """Parts of the proof.

    Attributes:
        run_modes: some of :data:`RUN_MODES`; all of them where it is empty.
    """

    run_modes: tuple[str, ...] = option((), f"Only these: {', '.join(RUN_MODES)}.", "MODE,..", choices=RUN_MODES)

    @property
    def chosen_modes(self) -> tuple[str, ...]:
        """The run modes to run."""
        return self.run_modes or RUN_MODES

    @property
    def is_whole(self) -> bool:
        """Whether the whole matrix of each op is run, which has to reach every kernel."""
        return not (self.match or self.small) and PLAIN in self.chosen_modes


SPEC = Spec(
    __name__,
    "metal-run",
    "the kernels run on the host: right values, no race, no access outside, nothing undefined",
    Options,
    limits=(
        "The kernels were compiled by clang for this host: what Apple's compiler makes of them was not run.",
        "Threads ran on CPU cores: races that only an Apple GPU's memory ordering shows were not looked for.",
        "Nothing here says how fast the kernels are on an Apple GPU.",
    ),
    needs=("torch", "numpy"),
    keeps=Keeps.PROGRAMS,
    runs="the stack's kernels",
    proves_kernels=True,
)
