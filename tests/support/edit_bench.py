"""A tree in memory and edits read through the manifest loader, for tests of single edits."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from patchstack.edits import Edit, Outcome
from patchstack.edits.load import load_edit
from patchstack.manifest.overlay import Overlay
from patchstack.manifest.section import read_manifest, read_whole
from patchstack.series import Series, load_series
from patchstack.tree.git import GitCommitHash, GitTreeHash, Repository, Tree

EMPTY_TREE = GitTreeHash("4b825dc642cb6eb9a060e54bf8d69288fbee4904")


@lru_cache(maxsize=1)
def _empty_repository() -> Repository:
    folder = Path(tempfile.mkdtemp(prefix="edit-bench-"))
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    return Repository.open(folder)


def tree_of(files: Mapping[str, bytes]) -> Tree:
    """A tree that has these files and nothing else."""
    return Tree(_empty_repository(), EMPTY_TREE, files)


def commit_of(
    folder: Path, files: Mapping[str, bytes], *earlier: Mapping[str, bytes]
) -> tuple[Repository, GitCommitHash]:
    """A repository whose branch ``main`` has these files; ``earlier`` are those of the commits before, oldest first."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    stream = b""
    for number, content in enumerate((*earlier, files)):
        title = b"Version %d" % number
        stream += b"commit refs/heads/main\ncommitter A <a@b.c> %d +0000\ndata %d\n%s\ndeleteall\n" % (
            1_700_000_000 + number,
            len(title),
            title,
        )
        for path, data in content.items():
            stream += b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=stream, check=True)
    repository = Repository.open(folder)
    commit = repository.resolve_commit("main")
    assert commit is not None
    return repository, commit


def edited(repository: Path, path: str, content: bytes) -> GitCommitHash:
    """A commit on ``main`` with one file changed."""
    stream = b"commit refs/heads/edited\ncommitter A <a@b.c> 1700000000 +0000\ndata 4\nEdit\nfrom refs/heads/main^0\n"
    stream += b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content)
    subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=repository, input=stream, check=True)
    done = subprocess.run(["git", "rev-parse", "edited"], cwd=repository, check=True, capture_output=True, text=True)
    return GitCommitHash(done.stdout.strip())


def blob_id(data: bytes) -> str:
    """The id that git gives a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def write_series(folder: Path, manifest: str, overlay: Mapping[str, bytes]) -> Series:
    """A series with an overlay of its own; every message of it is ``message.md``."""
    for path, content in {
        "series.yaml": manifest.encode(),
        "message.md": b"Text.\n",
        **{f"overlay/{path}": content for path, content in overlay.items()},
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return load_series(str(folder))


def edit_from(entry: str, fragments: Mapping[str, bytes] | None = None) -> Edit:
    """The edit of one manifest entry, written as YAML.

    Args:
        entry: the entry, such as ``{kind: create-file, path: a.metal}``.
        fragments: overlay path to content; text without marker lines becomes the fragment ``new``.
    """
    with tempfile.TemporaryDirectory(prefix="edit-bench-") as name:
        folder = Path(name)
        (folder / "edit.yaml").write_text(entry)
        for path, content in (fragments or {}).items():
            file = folder / "overlay" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            mark = b"#" if path.endswith(".py") else b"//"
            is_whole = b"fragment:" in content or "create-file" in entry
            file.write_bytes(content if is_whole else mark + b" fragment: new\n" + content + mark + b" end fragment\n")
        overlay = Overlay(folder / "overlay")
        return read_whole(read_manifest(folder / "edit.yaml"), lambda section: load_edit(section, overlay))


def plan_on(edit: Edit, data: bytes) -> Outcome:
    """What an edit would do to a file of this content."""
    return edit.plan(tree_of({edit.path: data}))


def applied(edit: Edit, data: bytes) -> bytes:
    """The file after the edit, which must apply."""
    outcome = plan_on(edit, data)
    assert outcome.after is not None, outcome
    return outcome.after


def inserted_at(before: bytes, after: bytes) -> tuple[int, bytes]:
    """Where and what an insertion inserted, at the start of a line where that is possible.

    Raises:
        AssertionError: ``after`` is not ``before`` with one stretch put in.
    """
    grown = len(after) - len(before)
    assert grown > 0
    spots = [at for at in range(len(before) + 1) if before[:at] == after[:at] and before[at:] == after[at + grown :]]
    if not spots:
        raise AssertionError("bytes outside the insertion changed")
    at = next((spot for spot in spots if before[:spot].endswith(b"\n")), spots[0])
    return at, after[at : at + grown]
