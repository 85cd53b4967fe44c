"""Small made-up trees with a history, for the gates that judge schemas, shims and formatting."""

from __future__ import annotations

import atexit
import datetime
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gate_contexts import run_gate
from patchstack.tree.git import GitCommitHash, Repository
from references import require_reference
from stackproof.gates.common.functions import FUNCTIONS_PATH
from stackproof.gates.fc_window.spec import SPEC as FC_WINDOW
from stackproof.model import Finding, GateContext, GateResult

UTC = datetime.timezone.utc
START = datetime.datetime(2030, 1, 1, 12, 0, tzinfo=UTC)

BLEND = "blend(Tensor self, Tensor other, float weight=0.5) -> Tensor"
WEIGH = "weigh(Tensor self, int scale) -> Tensor"


class TreeRepository:
    """A bare repository that is written with plumbing, so that dates and parents are exactly what a test says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._commits = 0
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(path)], check=True)
        self.repository = Repository.open(path)

    def git(self, *arguments: str, stdin: bytes | None = None) -> str:
        """Run git here and return what it prints."""
        done = subprocess.run(["git", *arguments], cwd=self.path, input=stdin, capture_output=True, check=True)
        return done.stdout.decode().strip()

    def commit(
        self,
        files: Mapping[str, str | bytes | None],
        *,
        parents: tuple[str, ...] = (),
        at: datetime.datetime = START,
        zone: str = "+0000",
        title: str = "a change",
    ) -> str:
        """A commit with the files of its first parent and these laid over them (``None`` removes one)."""
        self._commits += 1
        who = f"Paint Er <paint.er@example.com> {{}} {zone}"
        lines: list[bytes] = [f"commit refs/scratch/{self._commits}\nmark :1\n".encode()]
        lines.append(f"author {who.format(int(START.timestamp()))}\n".encode())
        lines.append(f"committer {who.format(int(at.timestamp()))}\n".encode())
        lines.append(f"data {len(title.encode())}\n{title}\n".encode())
        lines += [f"{word} {parent}\n".encode() for word, parent in zip(("from", "merge"), parents, strict=False)]
        for path, content in files.items():
            if content is None:
                lines.append(f"D {path}\n".encode())
            else:
                data = content.encode() if isinstance(content, str) else content
                lines.append(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
        lines.append(b"get-mark :1\n")
        return self.git("fast-import", "--quiet", stdin=b"".join(lines))

    def branch(self, name: str, commit: str) -> None:
        """Point a branch at a commit."""
        self.git("update-ref", f"refs/heads/{name}", commit)

    def context(self, base: str, head: str) -> GateContext:
        """What a gate is given to judge a range."""
        cache = Path(tempfile.mkdtemp(dir=self.path))
        return GateContext(self.repository, GitCommitHash(base), GitCommitHash(head), cache)

    def judge(self, base: str, head: str, **options: Any) -> GateResult:
        """The result of the gate ``fc-window``."""
        return run_gate(FC_WINDOW, self.context(base, head), **options)


def functions(*schemas: str, extra: Mapping[str, str] | None = None) -> str:
    """A ``native_functions.yaml`` with these schemas; ``extra`` adds lines to an entry by its operator name."""
    entries = []
    for schema in schemas:
        more = (extra or {}).get(schema.split("(")[0], "")
        entries.append(f"- func: {schema}\n  variants: function, method\n{more}")
    return "\n".join(entries)


def with_functions(*schemas: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The files of a tree that has only these schemas."""
    return {FUNCTIONS_PATH: functions(*schemas, extra=extra)}


def of_rule(result: GateResult, rule: str) -> list[Finding]:
    """The findings of one rule."""
    return [finding for finding in result.findings if finding.rule == rule]


def lab_over(*objects: Path) -> TreeRepository:
    """An empty repository that sees the objects of others, removed when the tests end."""
    path = Path(tempfile.mkdtemp(prefix="patchstack-lab-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    lab = TreeRepository(path)
    stores = (Repository.open(source).common_dir / "objects" for source in objects)
    (path / "objects" / "info" / "alternates").write_text("".join(f"{store}\n" for store in stores))
    return lab


@functools.cache
def releases() -> tuple[Repository, dict[str, GitCommitHash]]:
    """One repository with the real trees of 2.6, 2.11 and 2.13 as a line of commits; skips where one is missing."""
    trees = {name: require_reference(name) for name in ("2.6", "2.11", "2.13")}
    lab = lab_over(*(tree.path for tree in trees.values()))
    commits: dict[str, GitCommitHash] = {}
    parent = ""
    for number, (name, tree) in enumerate(trees.items()):
        who = f"Paint Er <paint.er@example.com> {int(START.timestamp()) + number * 100 * 86400} +0000"
        text = (
            f"tree {lab.repository.commit(tree.release_commit).tree}\n{parent}author {who}\ncommitter {who}\n\n{name}\n"
        )
        commit = lab.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text.encode())
        commits[name], parent = GitCommitHash(commit), f"parent {commit}\n"
    lab.repository.close()
    return lab.repository, commits
