"""A tree is read through its objects, with files laid over it in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from checkouts import Checkout, Lab
from checkouts.sources import METAL, TREE
from patchstack.errors import TreeError
from patchstack.git import GitTreeHash, Repository, Tree


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
