"""The results that a message may quote: a ``validate-stack --json`` file, read for the trees it judged.

A result belongs to a commit only if both trees are the same, the commit's and the one below it: a message may change
without making it stale, a file may not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchstack.errors import UsageError

_ONE_LINE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]{1,400}\Z")  # what a message may hold
_TREE = re.compile(r"[0-9a-f]{40,64}\Z")
_MAKE_ONE = "validate-stack --each-commit --json FILE"


@dataclass(frozen=True)
class GateLine:
    """What one gate said.

    Attributes:
        name: name of the gate.
        verdict: ``passed``, ``failed`` or ``not run``.
        cases: how many cases were judged.
        failed: how many of them failed.
        error: largest error with its unit, empty where the gate measures none.
    """

    name: str
    verdict: str
    cases: int = 0
    failed: int = 0
    error: str = ""

    @property
    def was_run(self) -> bool:
        return self.verdict != "not run"

    def __str__(self) -> str:
        failed = f"{self.failed} of " if self.failed else ""
        text = f"{self.name}: {self.verdict}, {failed}{self.cases} case{'' if self.cases == 1 else 's'}"
        return f"{text}, worst error {self.error}" if self.error else text


@dataclass(frozen=True)
class TestRun:
    """The gates that judged one commit.

    Attributes:
        command: what was typed, without paths of that machine.
        system: the operating system it ran on.
        base_tree: tree below the commit.
        tree: tree of the commit.
        gates: in the order of the report.
    """

    __test__ = False  # a name that pytest would collect

    command: str
    system: str
    base_tree: str
    tree: str
    gates: tuple[GateLine, ...]

    @property
    def stands_in(self) -> bool:
        """Whether no Apple GPU can have been involved."""
        return not self.system.startswith("macOS")


@dataclass(frozen=True)
class Results:
    """Everything that one file tells.

    Attributes:
        file: the file.
        runs: one for each commit it judged, and one for the whole range.
    """

    file: Path
    runs: tuple[TestRun, ...]

    def of(self, base_tree: str, tree: str) -> TestRun | None:
        """The run that judged this tree against that one, ``None`` where there was none."""
        return next((run for run in self.runs if (run.base_tree, run.tree) == (base_tree, tree)), None)


def read_results(file: Path) -> Results:
    """Read the report that ``validate-stack --json FILE`` wrote.

    Raises:
        UsageError: the file is missing, is something else, or comes from a run that was interrupted.
    """
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError("the results cannot be read", where=str(file), found=error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:  # of UTF-8 or of JSON
        raise _not_a_report(file, str(error)) from None
    try:
        if report["partial"]:
            raise UsageError("the run was interrupted", where=str(file), next_command=_MAKE_ONE)
        return Results(file, tuple(_runs(report)))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _not_a_report(file, f"{type(error).__name__}: {error}") from None


def _not_a_report(file: Path, found: str) -> UsageError:
    return UsageError(
        "not a report of validate-stack", where=str(file), expected="JSON", found=found, next_command=_MAKE_ONE
    )


def _runs(report: Mapping[str, Any]) -> Iterator[TestRun]:
    command, system = _line(report["command"]), _line(report["environment"]["platform"])
    words = re.split(r"[-_ ]", system)
    name = f"{words[0]} {_processor(system)}".strip()
    for commit in report["commits"]:
        yield TestRun(command, name, _tree(commit["base_tree"]), _tree(commit["tree"]), _gate_lines(commit["gates"]))
    yield TestRun(command, name, _tree(report["base_tree"]), _tree(report["head_tree"]), _gate_lines(report["gates"]))


def _processor(system: str) -> str:
    return next((name for name in ("x86_64", "aarch64", "arm64", "AMD64") if name in system), "")


def _gate_lines(gates: list[Mapping[str, Any]]) -> tuple[GateLine, ...]:
    return tuple(
        GateLine(_line(gate["name"]), _line(gate["verdict"]), int(gate["cases"]), int(gate["failed"]), _error(gate))
        for gate in gates
    )


def _error(gate: Mapping[str, Any]) -> str:
    if gate["worst_error"] is None:
        return ""
    unit = str(gate["details"].get("error_unit", "")) if isinstance(gate["details"], dict) else ""
    value = gate["worst_error"]
    shown = f"{value:.3g}" if isinstance(value, (int, float)) else _line(value)
    return f"{shown} ({_line(unit)})" if unit else shown


def _line(value: Any) -> str:
    if not isinstance(value, str) or not _ONE_LINE.match(value):
        raise ValueError(f"one line of text expected, not {value!r}"[:120])
    return value


def _tree(value: Any) -> str:
    if not isinstance(value, str) or not _TREE.match(value):
        raise ValueError(f"the id of a tree expected, not {value!r}"[:120])
    return value
