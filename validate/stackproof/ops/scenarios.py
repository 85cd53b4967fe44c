"""What "the op works through PyTorch's public interface" means, op by op; run on the stand-in device.

A scenario is one way of using the op. It runs in a process of its own worker and says for each of its cases what was
wrong. What the device itself noticed meanwhile (a wrong dispatch, an access outside) is added by the worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stackproof.engines.standin.device import StandinDevice
from stackproof.ops.registry import make, makers_of

DETERMINISTIC = "deterministic algorithms"
"""Kind of the scenario that asks for the alert where sums depend on the order of threads."""

BAD_ARGUMENTS = "bad arguments"
"""Kind of the scenario that calls an op with what it has to refuse."""


@dataclass(frozen=True)
class Scenario:
    """One way of using an op; picklable.

    Attributes:
        op: whose proof it belongs to.
        kind: which way.
        key: what tells scenarios of one kind apart.
        without: parts of it that are left out.
    """

    op: str
    kind: str
    key: Any = None
    without: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        subject = f"{self.kind} of {self.op}"
        return f"{subject}: {self.key}" if self.key is not None else subject


@dataclass(frozen=True)
class HostCase:
    """What one case showed.

    Attributes:
        name: in words.
        error: largest error in units of the dtype's epsilon; ``None`` where nothing was measured.
        problems: one sentence for each way in which it failed.
    """

    name: str
    error: float | None = None
    problems: tuple[str, ...] = ()


class HostProof(Protocol):
    """Everything that shows an op to work through the dispatcher and autograd."""

    op: str

    def scenarios(self) -> Sequence[Scenario]:
        """All of them, the most telling first."""
        ...

    def out_of_reach(self, kernel: str) -> str:
        """Why no scenario can launch a kernel of the op's sources; empty where one has to."""
        ...

    def run(self, scenario: Scenario, device: StandinDevice) -> Sequence[HostCase]:
        """Run one; a wrong value is a problem of its case, not an exception."""
        ...


def host_proof_for(op: str) -> HostProof | None:
    """The proof that somebody wrote of an op; ``None`` where nobody did, which the gate "op-run" is for."""
    proof: HostProof | None = make(makers_of(op).host)
    return proof
