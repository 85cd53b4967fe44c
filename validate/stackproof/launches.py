"""What a gate launched: kernels by name, calls of the stack's ops by how they ended, and the kernels to be seen.

A test may pass without a kernel of the stack: on the CPU, or by the kernels that the tree had. So every gate that
executes kernels counts, and says beside its verdict what it looked at.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stackproof.model import Finding, GateResult, Verdict

DETAIL = "kernels"
"""Key of the counts in the details of a gate."""
_SHOWN = 8


class Ending(enum.Enum):
    """How a call of an op on the device ended."""

    KERNELS = "by the stack's kernels"
    TREE = "left to the tree's own kernels"
    NO_LAUNCH = "without a launch"
    RAISED = "raised"
    CPU = "on the CPU"


@dataclass
class Launches:
    """Counts; they can be added up and sent to another process.

    Attributes:
        kernels: launches by op and kernel; the op is empty outside of a call of one of the stack's ops.
        calls: calls of the stack's ops, and of all that fell back to the CPU, by op and ending.
    """

    kernels: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: Counter[tuple[str, Ending]] = field(default_factory=Counter)

    def add(self, other: Launches) -> None:
        """Count what another process counted."""
        self.kernels += other.kernels
        self.calls += other.calls

    def by_kernel(self) -> Counter[str]:
        """Launches by kernel, of every op."""
        found: Counter[str] = Counter()
        for (_op, kernel), count in self.kernels.items():
            found[kernel] += count
        return found

    def on_cpu(self, ops: Collection[str]) -> dict[str, int]:
        """How many calls of each of these ops ended in the CPU fallback; an op may be named without its overload."""
        counted = ((op, count) for (op, ending), count in sorted(self.calls.items(), key=str) if ending is Ending.CPU)
        return {op: count for op, count in counted if op in ops or op.partition(".")[0] in ops}


def looked_at(launches: Launches, brought: Collection[str], ops: Collection[str] = ()) -> dict[str, Any]:
    """The counts for a gate's details, JSON-serialisable.

    Args:
        launches: of the whole gate.
        brought: the kernels that the stack brings to the gate's sources.
        ops: the stack's ops whose calls were counted.
    """
    by_kernel = launches.by_kernel()
    own = {kernel: by_kernel[kernel] for kernel in sorted(brought) if by_kernel[kernel]}
    calls: dict[str, dict[str, int]] = {op: {} for op in sorted(ops)}
    for (op, ending), count in launches.calls.items():
        if op in calls or op.partition(".")[0] in calls:
            calls.setdefault(op, {})[ending.value] = count
    by_op: dict[str, dict[str, int]] = {}
    for (op, kernel), count in sorted(launches.kernels.items()):
        by_op.setdefault(op or "no op", {})[kernel] = count
    return {
        "counted": True,
        "brought": len(brought),
        "launched": own,
        "never_launched": sorted(set(brought) - set(own)),
        "launches": sum(own.values()),
        "launches_of_the_trees_kernels": sum(by_kernel.values()) - sum(own.values()),
        "calls": calls,
        "by_op": by_op,
    }


NOT_COUNTED: Mapping[str, Any] = {"counted": False}
"""In the details of a gate that ran kernels on a real device, where nobody counts."""


def launch_lines(result: GateResult) -> list[str]:
    """What a gate looked at, in a line or two below its row; nothing where it counted nothing."""
    seen = result.details.get(DETAIL)
    if not isinstance(seen, Mapping) or not seen.get("counted"):
        return []
    total, own = seen["brought"], len(seen["launched"])
    others = seen["launches_of_the_trees_kernels"]
    of_tree = f"; {others} launches of the tree's own kernels" if others else ""
    lines = [f"launched {own} of {total} kernels of the stack, {seen['launches']} times{of_tree}"]
    calls = [f"{op}: {_endings(endings)}" for op, endings in seen["calls"].items()]
    return [*lines, *([f"calls: {'; '.join(calls)}"] if calls else [])]


def _endings(endings: Mapping[str, int]) -> str:
    return ", ".join(f"{endings[one.value]} {one.value}" for one in Ending if endings.get(one.value)) or "none"


def launched_by(results: Iterable[GateResult]) -> frozenset[str]:
    """The stack's kernels that some gate launched."""
    return frozenset(kernel for result in results for kernel in result.details.get(DETAIL, {}).get("launched", ()))


def ran_uncounted(results: Iterable[GateResult]) -> bool:
    """Whether a gate passed on a real device, where launches are not counted."""
    return any(
        result.verdict is Verdict.PASSED and result.details.get(DETAIL, {}).get("counted") is False
        for result in results
    )


def never_launched(
    launches: Launches,
    brought: Mapping[str, str],
    *,
    fails: bool,
    gate: str,
    out_of_reach: Callable[[str], str] = lambda kernel: "",
) -> list[Finding]:
    """A finding for each file whose kernels the stack brings and a gate did not launch, the first few named.

    Args:
        launches: of the whole gate.
        brought: kernel to the file that holds it.
        fails: whether the gate has to reach every kernel.
        gate: its name.
        out_of_reach: why the gate cannot launch a kernel, empty where it can: those are told apart and fail nothing.
    """
    launched = launches.by_kernel()
    missing: dict[tuple[str, str], list[str]] = {}
    for kernel, path in sorted(brought.items()):
        if not launched[kernel]:
            missing.setdefault((path, out_of_reach(kernel)), []).append(kernel)
    return [
        Finding(
            f"{gate} never launched {len(kernels)} of the kernels that the stack brings{': ' if why else ''}{why}: "
            f"{named(kernels)}",
            path,
            rule="never-launched",
            fails=fails and not why,
            details={"kernels": kernels},
        )
        for (path, why), kernels in missing.items()
    ]


def fell_back(launches: Launches, ops: Collection[str], left_out: Collection[str], first: str = "") -> list[Finding]:
    """A finding for each op of the stack whose calls ended on the CPU.

    Args:
        launches: of the whole gate.
        ops: the ops that the stack dispatches, or says it does.
        left_out: those that the installed torch has with another schema: no fault of the stack.
        first: where the first call was, in words.
    """
    found = []
    for op, count in launches.on_cpu(ops).items():
        excused = op in left_out
        why = "the installed torch has it with another schema" if excused else "no function of the stack was registered"
        where = f", first in {first}" if first else ""
        message = f"{op}: {count} calls ended in the CPU fallback{where}: {why}, so they show nothing of its kernels"
        found.append(Finding(message, rule="cpu-fallback", fails=not excused))
    return found


def named(kernels: Sequence[str]) -> str:
    """The names, the first few of many."""
    more = f" and {len(kernels) - _SHOWN} more" if len(kernels) > _SHOWN else ""
    return ", ".join(kernels[:_SHOWN]) + more
