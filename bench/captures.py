"""Capture real commits one by one, and count what share of their hunks becomes structural edits.

    python bench/captures.py --repo PATH REV [REV...]    # as git rev-list takes them: main~200..main, -n 100 main
    python bench/captures.py --pinned FILE --cache DIR   # lines 'URL COMMIT', fetched with git, two commits deep
    python bench/captures.py --history FILE              # lines 'BEFORE AFTER BLOB BLOB PATH': see bench/history.py

Each commit that is no merge is compared with its parent. Its edits are planned one after the other on the parent's
files and must give the bytes of the commit; what cannot be captured is counted with its reason. Nothing is written to a
series, and torchgen is not run: a C-shim header counts as a diff.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from history import Texts, history, places

from patchstack.capture.choose import applied, choose
from patchstack.capture.commits import changed_lines, read_commit
from patchstack.capture.model import CaptureError
from patchstack.edits.create_file import CreateFile
from patchstack.tree.git import GitCommitHash, Repository, Tree

STRUCTURED = (".metal", ".mm", ".cpp", ".h", ".py", ".yaml")


class Tally:
    """What came of the commits so far."""

    def __init__(self) -> None:
        self.commits: Counter[str] = Counter()
        self.hunks: dict[str, Counter[str]] = {}
        self.refused: Counter[str] = Counter()
        self.seconds: list[float] = []

    def commit(self, repository: Repository, commit: str) -> None:
        """Capture one commit and compare the bytes."""
        parents = repository.commit(commit).parents
        if len(parents) != 1:
            self.commits["merge or root"] += 1
            return
        started = time.perf_counter()
        try:
            source = read_commit(repository, GitCommitHash(commit), parents[0])
            tree = Tree.at(repository, parents[0])
            for change in source.files:
                lines = changed_lines(repository, change.before, change.after) if change.before is not None else []
                choices = list(choose(tree, change, lines))
                if applied(tree, [choice.edit for choice in choices]) != change.after:
                    print(f"OTHER BYTES {commit} {change.path}")
                    self.commits["other bytes"] += 1
                    return
                kinds = self.hunks.setdefault(PurePosixPath(change.path).suffix or change.path, Counter())
                for choice in choices:
                    is_new = isinstance(choice.edit, CreateFile)
                    kinds["new file" if is_new else choice.edit.kind] += choice.hunks
        except CaptureError as error:
            self.commits["refused"] += 1
            self.refused[re.sub(r"^[0-9a-f]{12} \S+: ", "", str(error)).split(";")[0].split(" (next")[0]] += 1
            return
        self.commits["same bytes"] += 1
        self.seconds.append(time.perf_counter() - started)

    def report(self) -> Iterator[str]:
        """Markdown."""
        yield f"commits: {dict(self.commits)}; refused: {dict(self.refused)}"
        if self.seconds:
            ordered = sorted(self.seconds)
            yield f"seconds a commit: median {ordered[len(ordered) // 2]:.2f}, longest {ordered[-1]:.2f}"
        yield "\n| files | new | hunks | structural | share |\n|---|---|---|---|---|"
        total, structural = 0, 0
        for suffix, kinds in sorted(self.hunks.items()):
            hunks = sum(count for kind, count in kinds.items() if kind != "new file")
            good = hunks - kinds["apply-diff"]
            if suffix in STRUCTURED:
                total, structural = total + hunks, structural + good
            if hunks or kinds["new file"]:
                share = f"{good / hunks:.0%}" if hunks else "-"
                yield f"| {suffix} | {kinds['new file']} | {hunks} | {good} | {share} |"
        if total:
            yield f"| {', '.join(STRUCTURED)} | | {total} | {structural} | {structural / total:.0%} |"


def pinned(file: Path, cache: Path) -> Iterator[tuple[Path, str]]:
    """The commits of a list, fetched into one bare repository; what cannot be fetched is said."""
    repository = cache / "captures.git"
    if not repository.is_dir():
        subprocess.run(["git", "init", "-q", "--bare", str(repository)], check=True)
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            url, commit = line.split()[:2]
            command = ["git", "-C", str(repository), "fetch", "-q", "--depth=2", "--filter=blob:none", url, commit]
            known = subprocess.run(["git", "-C", str(repository), "cat-file", "-e", f"{commit}^"], check=False)
            if known.returncode and subprocess.run(command, check=False).returncode:
                print(f"not run: {commit} cannot be fetched from {url}")
            else:
                yield repository, commit


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repo", type=Path)
    parser.add_argument("--pinned", type=Path)
    parser.add_argument("--history", type=Path)
    parser.add_argument("--cache", type=Path, default=Path())
    options, revisions = parser.parse_known_args()
    tally = Tally()
    if options.repo:
        with Repository.open(options.repo) as repository:
            for commit in repository.text("rev-list", "--no-merges", *revisions).split():
                tally.commit(repository, commit)
    if options.pinned:
        for path, commit in pinned(options.pinned, options.cache):
            with Repository.open(path) as repository:
                tally.commit(repository, commit)
    if options.history:
        with tempfile.TemporaryDirectory() as scratch:
            for path, commit in history(options.history, Texts(Path(scratch), *places())):
                with Repository.open(path) as repository:
                    tally.commit(repository, commit)
    print("\n".join(tally.report()))
    sys.exit(1 if tally.commits["other bytes"] else 0)


if __name__ == "__main__":
    main()
