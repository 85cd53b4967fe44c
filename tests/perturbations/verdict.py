"""What the series makes of an edited tree: applied, refused with a true reason, or wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patchstack.errors import TreeError
from patchstack.git import GitCommitHash, Repository, Tree
from patchstack.planning import StackPlan, plan_stack
from patchstack.planning.memo import Memory
from patchstack.series import Series
from perturbations.kinds import HEADER, HOST, METAL, Edited, Files


@dataclass(frozen=True)
class Verdict:
    """How the series ended on an edited tree.

    Attributes:
        status: the exit code that ``apply-stack`` would have.
        reasons: the conflicts, in words.
        is_true: whether a reason names what was edited; where it applies, whether all that the edit brought is there.
        plan: what was planned; None where the tree is refused as a whole.
    """

    status: int
    reasons: tuple[str, ...]
    is_true: bool
    plan: StackPlan | None = None

    @property
    def word(self) -> str:
        return ("applied" if self.status == 0 else "refused") if self.is_true else "wrong"


def files_of(tree: Tree) -> Files:
    """The files that are edited, as a tree has them."""
    return {path: data for path in (HEADER, METAL, HOST) if (data := tree.read(path)) is not None}


def perturbed(folder: Path, files: Mapping[str, bytes]) -> GitCommitHash:
    """A commit on ``main`` with some files changed."""
    stream = b"commit refs/heads/edited\ncommitter A <a@b.c> 1700000000 +0000\ndata 4\nEdit\nfrom refs/heads/main^0\n"
    for path, content in files.items():
        stream += b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content)
    subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=folder, input=stream, check=True)
    done = subprocess.run(["git", "rev-parse", "edited"], cwd=folder, check=True, capture_output=True, text=True)
    return GitCommitHash(done.stdout.strip())


def judge(repository: Repository, series: Series, onto: GitCommitHash, edit: Edited, memory: Memory) -> Verdict:
    """Plan the series on an edited commit, and hold the result against the edit."""
    try:
        plan = plan_stack(repository, series, onto, memory=memory)
    except TreeError as error:
        return Verdict(4, (str(error),), any(name in str(error) for name in edit.names))
    reasons = tuple(f"{change.change.id}: {conflict}" for change, conflict in plan.conflicts())
    if reasons or plan.blocked:
        return Verdict(3, reasons, any(name in reason for reason in reasons for name in edit.names), plan)
    last = plan.changes[-1].tree
    return Verdict(0, (), all(text in (last.read(path) or b"") for path, text in edit.kept), plan)
