"""What ``apply-stack`` makes of an edited tree: applied, refused with a true reason, or wrong."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from patchstack.cli.apply import run
from patchstack.cli.report import RunReport
from patchstack.cli.request import Request
from patchstack.errors import PatchstackError
from patchstack.tree.cxx import CxxFile
from patchstack.tree.git import GitCommitHash, Repository, Tree
from perturbations.kinds import HEADER, HOST, METAL, Edited, Files

_BRANCH = "perturbed-stack"


@dataclass(frozen=True)
class Verdict:
    """How the series ended on an edited tree.

    Attributes:
        status: the exit code of ``apply-stack``.
        reasons: the conflicts, in words.
        faults: what is wrong with it: nothing in a refusal names what was edited, a refusal wrote something, or a
            stack lost what the edit brought.
        commits: of the stack, from the bottom.
    """

    status: int
    reasons: tuple[str, ...]
    faults: tuple[str, ...]
    commits: tuple[GitCommitHash, ...] = ()

    @property
    def word(self) -> str:
        return "wrong" if self.faults else "refused" if self.status else "applied"


def files_of(tree: Tree) -> Files:
    """The files that are edited, as a tree has them."""
    return {path: data for path in (HEADER, METAL, HOST) if (data := tree.read(path)) is not None}


def perturbed(folder: Path, files: Mapping[str, bytes]) -> GitCommitHash:
    """A commit on ``main`` with some files changed."""
    stream = b"commit refs/heads/edited\ncommitter A <a@b.c> 1700000000 +0000\ndata 4\nEdit\nfrom refs/heads/main^0\n"
    for path, content in files.items():
        stream += b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content)
    subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=folder, input=stream, check=True)
    return GitCommitHash(_git(folder, "rev-parse", "edited").strip())


def judge(folder: Path, series: str, onto: GitCommitHash, edit: Edited) -> Verdict:
    """Apply the series on an edited commit, and hold what came of it against the edit."""
    before = _git(folder, "for-each-ref")
    try:
        report = run(Request(onto, folder, series=series, branch=_BRANCH))
    except PatchstackError as error:
        return _refused(folder, before, int(error.exit_code), (str(error),), edit)
    if report.exit_code:
        return _refused(folder, before, int(report.exit_code), _reasons(report), edit)
    commits = tuple(one.hash for one in report.written.commits) if report.written else ()
    if commits:
        _git(folder, "update-ref", "-d", f"refs/heads/{_BRANCH}")
    with Repository.open(folder) as repository:
        tree = Tree.at(repository, commits[-1] if commits else onto)
        return Verdict(0, (), tuple(_lost(tree, report, edit)), commits)


def says(names: tuple[str, ...], sentence: str) -> bool:
    """Whether a sentence has one of the names as a word."""
    return any(re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", sentence) for name in names)


def _reasons(report: RunReport) -> tuple[str, ...]:
    states = (f"{change.change.title}: {change.state.value}" for change in report.plan.blocked if not change.conflicts)
    return (*(str(conflict) for _, conflict in report.plan.conflicts()), *states)


def _refused(folder: Path, before: str, status: int, reasons: tuple[str, ...], edit: Edited) -> Verdict:
    faults = [] if any(says(edit.names, reason) for reason in reasons) else ["no reason names what was edited"]
    faults += ["a ref moved"] if _git(folder, "for-each-ref") != before else []
    return Verdict(status, reasons, tuple(faults))


def _lost(tree: Tree, report: RunReport, edit: Edited) -> Iterator[str]:
    """What of an edit a stack has no more, or has where nothing uses it any more."""
    notes = "\n".join(one.outcome.said for change in report.plan.changes for one in change.edits)
    for path, text in edit.told:
        if text not in (tree.read(path) or b"") and text.decode() not in notes:
            yield f"{text.decode()} is gone, and no note says so"
    for path, text in edit.kept:
        after = tree.read(path) or b""
        if text not in after:
            yield f"{text.decode()} is gone"
        elif holder := idle_holder(after, edit.files[path], text):
            yield f"{text.decode()} is in {holder}, which nothing uses any more"
    if edit.order:
        (path,) = edit.files
        places = [d.name for d in CxxFile(tree.read(path) or b"").definitions if d.name in edit.order]
        if set(places) == set(edit.order) and places[0] != edit.order[0]:
            yield f"{edit.order[1]} is above {edit.order[0]} again"


def idle_holder(after: bytes, before: bytes, text: bytes) -> str:
    """The definition around a text, where others used it before and none does after; empty for none."""

    def others(data: bytes) -> tuple[str, int]:
        file, at = CxxFile(data), data.index(text)
        around = [d for d in file.definitions if d.start <= at < d.end]
        if not around:
            return "", 0
        name = around[-1].name
        used = re.finditer(rb"\b%s\b" % re.escape(name.encode()), file.uncommented)
        return name, sum(not around[-1].start <= one.start() < around[-1].end for one in used)

    name, uses = others(after)
    return name if name and not uses and others(before)[1] else ""


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout
