"""What an op's proof is, so that the gate that runs proofs knows nothing about any op.

A proof cuts its work into units that can run in any process and any order; a unit runs many cases with one compiled
library and says what it saw. Judging what needs all results together (an error no larger than the CPU's) comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from stackproof.engines.kernels import Kernels
from stackproof.model import Finding

if TYPE_CHECKING:  # what reads struct layouts goes without torch
    pass


@dataclass(frozen=True)
class WorkUnit:
    """A batch of cases that one process runs in one go; picklable.

    Attributes:
        op: aten name of the op.
        label: for progress and for the report of a crash.
        cases: how many cases the unit has.
        key: what the proof needs to make the cases again.
        compares: the cases put the kernels beside those of the commit below the stack.
    """

    op: str
    label: str
    cases: int
    key: Any
    compares: bool = False


@dataclass(frozen=True)
class CaseResult:
    """What one case showed; picklable.

    Attributes:
        mode: row of the table: how the op was called.
        dtype: column of the table: name of the tensors' dtype.
        case: shape, layout and mask, in words.
        errors: by output, the largest error in units of the dtype's epsilon (see :mod:`stackproof.ops.measure`).
        cpu_errors: the same of PyTorch's own CPU kernel in the same dtype on the same inputs, where it was asked.
        problems: one sentence for each way in which the case failed; empty when it passed.
        skipped: why the case was not run; empty where it was.
        note: what is to be said of a case that passed.
    """

    mode: str
    dtype: str
    case: str
    errors: Mapping[str, float] = field(default_factory=dict)
    cpu_errors: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    skipped: str = ""
    note: str = ""


class LeftToTreeError(LookupError):
    """A call that the stack leaves to kernels of the tree which the proof does not know how to launch."""


class OpProof(Protocol):
    """Everything that is known about proving one op right.

    Attributes:
        op: aten name of the op.
        source: the ``.metal`` file in the tree that holds its kernels.
        headers: files in the tree whose text the proof reads.
        beside: further ``.metal`` files and headers of the op, in trees that have them; compiled with ``source``.
        compares_with_base: some cases need the kernels of the commit below the stack.
    """

    op: str
    source: str
    headers: tuple[str, ...]
    beside: tuple[str, ...]
    compares_with_base: bool

    def units(self, *, full: bool) -> Sequence[WorkUnit]:
        """The whole matrix, or a small one that touches every kernel (for slow run modes)."""
        ...

    def run(self, unit: WorkUnit, kernels: Kernels) -> Sequence[CaseResult]:
        """Run a unit's cases. A wrong value is a problem of its case, not an exception."""
        ...

    def judge(self, results: Sequence[CaseResult]) -> Sequence[Finding]:
        """What follows from all results together; each case's own problems are not repeated."""
        ...
