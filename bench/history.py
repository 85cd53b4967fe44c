"""PyTorch's own history, file by file: the pieces of ``bench/history.txt`` as commits that can be captured.

    python bench/history.py choose       # writes the list anew
    python bench/captures.py --history bench/history.txt

A line of the list is ``BEFORE AFTER BLOB BLOB PATH``: two releases whose reference trees are in the cache, or two
moments of the trees that PATCHSTACK_SHARED has, and the blob ids of the file in both. No text is in the list. What is
not there, or is another text, is said and left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from pathlib import Path, PurePosixPath

LIST = Path(__file__).with_name("history.txt")
RELEASES = (("2.11", "2.13"), ("2.13", "2.14"), ("2.6", "2.11"))
MOMENTS = (
    "2026-04-before",
    "2026-04-2d-only",
    "2026-04-3d-only",
    "2026-05-both",
    "2026-06-wide-index",
    "2026-08-checked",
)
MOST = {".h": 10, ".py": 10}
LARGEST = 40_000  # bytes of a file: two releases of a larger one differ in hundreds of hunks, which takes minutes
SUFFIXES = (".metal", ".mm", ".cpp", ".h", ".py", ".yaml", ".md", ".txt")


class Texts:
    """The files of a release or a moment, by blob id: a bare repository that has all of them as alternates."""

    def __init__(self, scratch: Path, cache: Path, shared: Path | None) -> None:
        self.repository = scratch / "history.git"
        self._shared = shared / "trees" if shared else None
        subprocess.run(["git", "init", "-q", "--bare", str(self.repository)], check=True)
        found = {release: _reference(cache, release) for pair in RELEASES for release in pair}
        self._references = {release: path for release, path in found.items() if path}
        alternates = "".join(f"{path / '.git' / 'objects'}\n" for path in self._references.values())
        (self.repository / "objects/info/alternates").write_text(alternates, encoding="utf-8")

    def git(self, *arguments: str, text: str = "") -> str:
        """What a git command prints."""
        command = ["git", "-C", str(self.repository), "-c", "user.name=history", "-c", "user.email=history@localhost"]
        run = subprocess.run([*command, *arguments], input=text, capture_output=True, text=True, check=True)
        return run.stdout.strip()

    def files(self, name: str) -> Mapping[str, str]:
        """Paths and blob ids; nothing where the release or moment is not here. Stand-ins are not PyTorch's."""
        if name in self._references:
            root = subprocess.run(
                ["git", "-C", str(self._references[name]), "rev-list", "--max-parents=0", "main"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()[0]
            lines = self.git("ls-tree", "-r", "-z", root).split("\0")
            return {line.split("\t")[1]: line.split()[2] for line in lines if line}
        folder = self._shared / name / "files" if self._shared else Path("/nonexistent")
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): self.git("hash-object", "-w", str(path)) for path in paths}

    def commit(self, path: str, before: str, after: str) -> str:
        """A commit that changes one file, and nothing else is in its tree."""
        parent = self.git("commit-tree", "-m", "Before", self._tree(path, before))
        return self.git("commit-tree", "-p", parent, "-m", f"Change {path}", self._tree(path, after))

    def _tree(self, path: str, blob: str) -> str:
        parts = PurePosixPath(path).parts
        tree = self.git("mktree", text=f"100644 blob {blob}\t{parts[-1]}\n")
        for part in reversed(parts[:-1]):
            tree = self.git("mktree", text=f"040000 tree {tree}\t{part}\n")
        return tree


def _reference(cache: Path, release: str) -> Path | None:
    return next((path for path in sorted((cache / "reference").glob(f"pytorch-{release}-*")) if path.is_dir()), None)


def choose(texts: Texts) -> Iterator[str]:
    """The lines of the list: of each suffix the first by blob id, which knows nothing of what capture makes of them."""
    for before, after in (*RELEASES, *pairwise(MOMENTS)):
        old, new = texts.files(before), texts.files(after)
        changed = sorted((new[p], p) for p in old.keys() & new.keys() if old[p] != new[p])
        for suffix in SUFFIXES:
            of_it = [(blob, p) for blob, p in changed if p.endswith(suffix) and _is_wanted(p)]
            fitting = (one for one in of_it if before in MOMENTS or int(texts.git("cat-file", "-s", one[0])) <= LARGEST)
            for blob, path in islice(fitting, MOST.get(suffix, 4)):
                yield f"{before} {after} {old[path]} {blob} {path}"


def _is_wanted(path: str) -> bool:
    return "third_party/" not in path and (not path.endswith(".txt") or path.endswith("CMakeLists.txt"))


def history(file: Path, texts: Texts) -> Iterator[tuple[Path, str]]:
    """The commits of a list, and what of it cannot be run."""
    known = dict[str, Mapping[str, str]]()
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        before, after, old, new, path = line.split(maxsplit=4)
        for name in (before, after):
            if name not in known:
                known[name] = texts.files(name)
        if (known[before].get(path), known[after].get(path)) != (old, new):
            print(f"not run: {path} of {before} and {after} is not here, or is another text")
        else:
            yield texts.repository, texts.commit(path, old, new)


def places() -> tuple[Path, Path | None]:
    """The cache folder, and the folder of real trees where there is one."""
    cache = Path(os.environ.get("PATCHSTACK_CACHE") or Path.home() / ".cache/patchstack")
    shared = os.environ.get("PATCHSTACK_SHARED")
    return cache, Path(shared) if shared else None


if __name__ == "__main__":
    import tempfile

    if sys.argv[1:] != ["choose"]:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as scratch:
        lines = list(choose(Texts(Path(scratch), *places())))
    LIST.write_text("# BEFORE AFTER BLOB BLOB PATH; see bench/history.py\n" + "\n".join(lines) + "\n", encoding="utf-8")
