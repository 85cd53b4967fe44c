"""A tree is read through its objects, with files laid over it in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from checkouts import Checkout, Lab
from checkouts.sources import METAL, TREE
from patchstack.errors import TreeError
from patchstack.tree.git import GitTreeHash, Repository, Tree


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, lab: Lab) -> None:
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def repository(checkout: Checkout) -> Iterator[Repository]:
    (checkout.path / METAL).write_text("changed in the working directory\n")
    with Repository.open(checkout.path) as opened:
        yield opened


@pytest.fixture
def tree(repository: Repository) -> Tree:
    return Tree.at(repository, "main~1")


@pytest.mark.parametrize("path", TREE)
def test_files_are_read_as_they_were_committed(tree: Tree, path: str) -> None:
    assert tree.read(path) == TREE[path]
    assert tree.exists(path)


@pytest.mark.parametrize("path", ["nowhere", "aten/nowhere", "README.md/below", "link/below", "aten/src/ATen/nativ"])
def test_what_is_not_there_is_none(tree: Tree, path: str) -> None:
    assert tree.read(path) is None
    assert not tree.exists(path)
    assert tree.blob_hash(path) is None


@pytest.mark.parametrize(("path", "what"), [("aten", "a folder"), ("link", "a symbolic link")])
def test_what_is_no_regular_file_is_an_error(tree: Tree, path: str, what: str) -> None:
    with pytest.raises(TreeError, match=f"{path}: not a regular file; expected a file, found {what}"):
        tree.read(path)


def test_modes_are_those_of_the_commit_and_new_files_are_plain(tree: Tree) -> None:
    assert [tree.mode(path) for path in ("run.sh", "README.md", "new.txt")] == ["100755", "100644", "100644"]


def test_a_file_laid_over_the_tree_is_seen_in_the_new_view_only(tree: Tree) -> None:
    overlaid = tree.with_files({METAL: b"new", "docs/new.md": b"x"})
    assert (overlaid.read(METAL), overlaid.read("docs/new.md")) == (b"new", b"x")
    assert tree.read(METAL) == TREE[METAL]
    assert not tree.exists("docs/new.md")
    assert overlaid.blob_hash(METAL) is None
    again = overlaid.with_files({METAL: b"newer"})
    assert (again.read(METAL), again.read("docs/new.md"), overlaid.read(METAL)) == (b"newer", b"x", b"new")


def test_the_blob_id_is_gits(tree: Tree, checkout: Checkout) -> None:
    assert tree.blob_hash(METAL) == checkout.git("rev-parse", f"main~1:{METAL}")


def test_a_walk_yields_every_regular_file_once_in_order(tree: Tree) -> None:
    overlaid = tree.with_files({METAL: b"new", "aten/a.txt": b"", "zzz": b""})
    assert list(tree.walk("")) == sorted([*TREE, "run.sh"])
    assert list(overlaid.walk("")) == sorted([*TREE, "run.sh", "aten/a.txt", "zzz"])
    assert list(overlaid.walk("aten/src/ATen/native/mps/kernels")) == [METAL]
    assert list(tree.walk("nowhere")) == list(tree.walk("README.md")) == []


def test_an_object_that_is_not_there_names_the_file_and_the_way_out(repository: Repository) -> None:
    lost = b"100644 lost.txt\0" + bytes.fromhex("11" * 20)
    hash_ = repository.git("hash-object", "-t", "tree", "-w", "--stdin", stdin=lost).decode().strip()
    with pytest.raises(TreeError, match=r"lost\.txt: the repository does not hold this object.*fetch --refetch"):
        Tree(repository, GitTreeHash(hash_)).read("lost.txt")
    with pytest.raises(TreeError, match="does not hold this object"):
        Tree(repository, GitTreeHash("22" * 20)).read("lost.txt")


def test_a_name_that_is_not_utf_8_is_found(repository: Repository) -> None:
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"x").strip()
    entry = b"100644 caf\xe9\0" + bytes.fromhex(blob.decode())
    hash_ = repository.git("hash-object", "-t", "tree", "-w", "--stdin", stdin=entry).decode().strip()
    assert Tree(repository, GitTreeHash(hash_)).read("caf\udce9") == b"x"


def _literal_tree(checkout: Checkout, content: bytes) -> GitTreeHash:
    """A tree object with any content."""
    file = checkout.lab.root / "tree"
    file.write_bytes(content)
    return GitTreeHash(checkout.git("hash-object", "-t", "tree", "-w", "--literally", str(file)))


@pytest.mark.parametrize(
    "content",
    [b"rubbish", b"100644 x", b"\xff00644 x\0" + b"a" * 20, b"100644 ..\0" + b"a" * 20, b"100644 a/b\0" + b"a" * 20],
    ids=["no mode", "no id", "a mode that is no number", "a name that leads upwards", "a name with a slash"],
)
def test_a_damaged_tree_is_an_error_and_leads_nowhere(
    checkout: Checkout, repository: Repository, content: bytes
) -> None:
    hash_ = _literal_tree(checkout, content)
    with pytest.raises(TreeError, match="the tree object is damaged") as caught:
        list(Tree(repository, hash_).walk(""))
    assert caught.value.where == hash_


def test_a_walk_goes_deeper_than_python_recurses(checkout: Checkout, repository: Repository) -> None:
    blob = checkout.git("rev-parse", f"main:{METAL}")
    lines = "".join(f"100644 {blob}\t{'d/' * deep}file\n" for deep in (1, 1500))
    environment = {"GIT_INDEX_FILE": str(checkout.lab.root / "index")}
    checkout.git("update-index", "--add", "--index-info", stdin=lines, env=environment)
    hash_ = GitTreeHash(checkout.git("write-tree", env=environment))
    assert list(Tree(repository, hash_).walk("")) == ["d/" * 1500 + "file", "d/file"]


def test_a_file_too_large_to_be_source_is_not_read(
    repository: Repository, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(TREE[METAL])
    monkeypatch.setattr("patchstack.tree.git.tree.MAX_FILE_BYTES", size - 1)
    with pytest.raises(TreeError, match=f"{METAL}: the object is too large; .* found {size}"):
        tree.read(METAL)
    assert repository.resolve_commit("main"), "reading goes on"
    monkeypatch.setattr("patchstack.tree.git.tree.MAX_FILE_BYTES", size)
    assert tree.read(METAL) == TREE[METAL]
