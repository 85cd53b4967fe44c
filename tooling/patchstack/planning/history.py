"""Which upstream commit made an anchor go away, where the history is there to tell."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

from patchstack.edits.cxx_fragment import PlaceCxxFragment
from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.edits.model import Edit
from patchstack.edits.python_entry import AddPythonEntry, RemovePythonEntry
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.edits.python_member import RemoveClassMember
from patchstack.git import GitCommitHash, Repository
from patchstack.git.process import git_environment
from patchstack.planning.model import ChangePlan

TIMEOUT_S = 10
"""A pickaxe search over PyTorch's whole history can take minutes; the answer is worth seconds."""


def commits_behind(repository: Repository, onto: GitCommitHash, plans: Iterable[ChangePlan]) -> dict[str, str]:
    """For each conflict ``path`` and anchor name, the last commit that added or removed that name there.

    Returns:
        ``"path: name"`` to ``"<short id> <date> <title>"``; conflicts that history says nothing about are left out.
    """
    found: dict[str, str] = {}
    for plan in plans:
        if not plan.conflicts:
            continue
        for edit_plan in plan.edits:
            name = anchor_name(edit_plan.edit)
            if edit_plan.outcome.conflict is not None and name:
                commit = _last_commit(repository, onto, edit_plan.edit.path, name)
                if commit:
                    found[f"{edit_plan.edit.path}: {name}"] = commit
    return found


def anchor_name(edit: Edit) -> str:
    """The name an edit looks for, as it stands in the source."""
    if isinstance(edit, (PlaceCxxFragment, ReplaceDefinition)):
        return edit.place.name if edit.place.kind != "file" else ""
    if isinstance(edit, PlacePythonFragment):
        return edit.steps[-1].name if edit.steps else ""
    if isinstance(edit, RemoveClassMember):
        return edit.member
    if isinstance(edit, (AddPythonEntry, RemovePythonEntry)):
        return edit.entry.strip("\"'").split("(")[0]
    return edit.op if isinstance(edit, AddDispatchKey) else ""


def _last_commit(repository: Repository, onto: GitCommitHash, path: str, name: str) -> str:
    escaped = re.sub(r"(\W)", r"\\\1", name)
    whole_word = f"(^|[^[:alnum:]_]){escaped}([^[:alnum:]_]|$)"  # a longer name holds the old one
    command = ["git", "log", "-1", "--format=%h %cs %s", "--pickaxe-regex", f"-S{whole_word}", onto, "--", path]
    try:
        done = subprocess.run(
            command,
            cwd=repository.root,
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.decode(errors="replace").strip()
