"""The parts of a commit message that are derived, so that they cannot disagree with the commit.

The files come from the edits; what was run comes from a ``validate-stack`` report about this very tree, and says
so where there is none. The headings have two words each, because git takes ``Word:`` alone for a trailer.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from patchstack.messages.results import GateLine, TestRun

_WIDTH = 72


@dataclass(frozen=True)
class FileChange:
    """What one commit does to one file.

    Attributes:
        path: the file.
        added: lines that come.
        removed: lines that go.
        does: what a reader should know without looking, in a few words each.
    """

    path: str
    added: int
    removed: int
    does: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = " ".join(f"{sign}{count}" for sign, count in (("+", self.added), ("-", self.removed)) if count)
        text = f"{self.path} ({counts})" if counts else self.path
        return f"{text}: {'; '.join(self.does)}" if self.does else text


@dataclass(frozen=True)
class Generated:
    """What goes below the prose of a message.

    Attributes:
        files: the files of the commit, in the order of the edits.
        test_plan: commands for a reviewer, as the manifest has them.
        run: what was run on this commit's tree, ``None`` where nothing was.
        benchmark: a Markdown table, empty where there is none.
        cc: names of accounts, without ``@``.
    """

    files: tuple[FileChange, ...] = ()
    test_plan: tuple[str, ...] = ()
    run: TestRun | None = None
    benchmark: str = ""
    cc: tuple[str, ...] = ()


def with_generated(prose: str, generated: Generated) -> str:
    """The prose with the generated parts below it, ending in one line feed."""
    parts = [prose.strip("\n"), *_parts(generated)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _parts(generated: Generated) -> Iterator[str]:
    if generated.files:
        yield "What changed:"
        yield "\n".join(_wrapped(f"- {file}", "  ") for file in generated.files)
    yield "Test plan:"
    if generated.test_plan:
        yield _fenced(generated.test_plan)
    yield from _results(generated.run)
    if generated.benchmark:
        yield "Benchmark results:"
        yield generated.benchmark.strip("\n")
    if generated.cc:
        yield "cc " + " ".join(f"@{name}" for name in generated.cc)


def _results(run: TestRun | None) -> Iterator[str]:
    if run is None:
        yield _wrapped("Nothing was run on this version of the commit.")
        return
    where = f" on {run.system}" if run.system else ""
    yield _wrapped(f"Run on the tree of this commit ({run.tree[:12]}){where}:")
    yield _fenced([run.command])
    yield "\n".join(_wrapped(f"- {line}", "  ") for line in _gates(run.gates))
    if run.stands_in:
        yield _wrapped("Host stand-ins only: nothing of this ran on an Apple GPU.")


def _gates(gates: Sequence[GateLine]) -> Iterator[str]:
    for gate in gates:
        if gate.was_run:
            yield str(gate)
    left = [gate.name for gate in gates if not gate.was_run]
    if left:
        yield f"not run: {', '.join(left)}"


def _fenced(lines: Iterable[str]) -> str:
    return "\n".join(("```", *lines, "```"))


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, tabsize=1
    )
