"""Finding a repository, its objects, its refs and its settings."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from checkouts import Checkout, Lab
from patchstack.errors import TreeError, UsageError
from patchstack.tree.git import GitObjectHash, Repository


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, lab: Lab) -> None:
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def repository(checkout: Checkout) -> Iterator[Repository]:
    with Repository.open(checkout.path) as opened:
        yield opened


def test_a_subfolder_leads_to_the_top_of_the_checkout(checkout: Checkout) -> None:
    with Repository.open(checkout.path / "aten" / "src") as repository:
        assert (repository.root, repository.git_dir) == (checkout.path, checkout.git_dir)
        assert repository.common_dir == checkout.git_dir
        assert not repository.is_bare


def test_a_linked_worktree_has_a_git_folder_of_its_own_and_shares_the_rest(checkout: Checkout, lab: Lab) -> None:
    checkout.git("worktree", "add", "-q", "--detach", str(lab.root / "linked"))
    with Repository.open(lab.root / "linked") as repository:
        assert repository.root == lab.root / "linked"
        assert repository.git_dir == checkout.git_dir / "worktrees" / "linked"
        assert repository.common_dir == checkout.git_dir


def test_a_bare_repository_is_its_own_root(checkout: Checkout, lab: Lab) -> None:
    bare = lab.clone(checkout, "bare.git", "--bare")
    with Repository.open(bare.path / "refs") as repository:
        assert (repository.root, repository.common_dir, repository.is_bare) == (bare.path, bare.path, True)


def test_a_git_folder_that_is_not_a_checkout_is_refused(checkout: Checkout) -> None:
    with pytest.raises(TreeError, match="not a git repository that can be used"):
        Repository.open(checkout.git_dir / "refs")


def test_objects_are_read_by_any_name_and_missing_ones_are_none(repository: Repository, checkout: Checkout) -> None:
    found = repository.read_object("main:windows.txt")
    assert found is not None
    assert (found[0], found[2]) == ("blob", b"one\r\ntwo\r\n")
    assert found[1] == checkout.git("rev-parse", "main:windows.txt")
    for name in ("main:nowhere", "0" * 40, "two\nlines", "nul\0", "", "main:caf\u00e9"):
        missing = repository.read_object(name)
        assert missing is None or missing[0] == "tree"
    assert repository.read_object("main:caf\u00e9/na\u00efve name.txt") is not None


def test_an_empty_and_a_large_object_are_read_whole(repository: Repository) -> None:
    for content in (b"", b"x" * 3_000_000, b"\n\n", b"missing\n"):
        hash_ = repository.git("hash-object", "-w", "--stdin", stdin=content).decode().strip()
        assert repository.read_object(hash_) == ("blob", GitObjectHash(hash_), content)


NO_COMMITS = ["^main", "main@{upstream}", "main@{99}", "nope@{u}", "-x", "--all", "", "main:README.md", "a b"]
NOT_FULL = ["main", "refs/heads/mai", "heads/main", "refs/heads/main~1", "HEAD~0", "refs/tags/main"]


@pytest.mark.parametrize("name", NO_COMMITS)
def test_a_name_that_is_no_commit_is_none_and_reading_goes_on(repository: Repository, name: str) -> None:
    assert repository.resolve_commit(name) is None
    assert repository.resolve_commit("main") is not None


@pytest.mark.parametrize("name", NOT_FULL)
def test_a_ref_is_found_by_its_full_name_and_nothing_else(repository: Repository, name: str) -> None:
    assert repository.resolve_ref(name) is None
    assert repository.resolve_ref("refs/heads/main") == repository.resolve_commit("main")


def test_a_commit_is_read_with_its_parts(repository: Repository, checkout: Checkout) -> None:
    commit = repository.commit("main")
    assert (commit.title, commit.message) == ("The second commit", "The second commit\n")
    assert commit.committed_at == 1_700_000_000
    assert commit.parents == (checkout.tip("main~1"),)
    assert commit.tree == checkout.git("rev-parse", "main^{tree}")
    assert repository.commit("main~1").parents == ()


def test_a_signed_merge_with_odd_headers_is_read(repository: Repository) -> None:
    main, tree = repository.commit("main").hash, repository.commit("main").tree
    raw = (
        f"tree {tree}\nparent {main}\nparent {main}\nauthor A <a@x> -5 +0000\ncommitter B C <b@x> 12 -0330\n"
        "encoding ISO-8859-1\ngpgsig -----BEGIN\n committer no\n -----END\n\nTitle\n\ntree no\n"
    )
    hash_ = repository.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", stdin=raw.encode()).decode()
    commit = repository.commit(hash_.strip())
    assert (commit.committed_at, commit.tree, len(commit.parents)) == (12, tree, 2)
    assert commit.message == "Title\n\ntree no\n"


def test_what_is_no_commit_is_an_error(repository: Repository) -> None:
    with pytest.raises(UsageError, match="no such commit"):
        repository.commit("nowhere")


def test_a_setting_that_is_not_there_is_none_and_one_of_the_wrong_kind_an_error(repository: Repository) -> None:
    assert repository.config("no.such") is None
    repository.git("config", "test.flag", "yes")
    assert repository.config("test.flag") == "yes"
    assert repository.config("test.flag", kind="bool") == "true"
    repository.git("config", "test.flag", "perhaps")
    with pytest.raises(TreeError, match=r"test\.flag"):
        repository.config("test.flag", kind="bool")


def test_a_closed_repository_can_be_used_again(repository: Repository) -> None:
    repository.close()
    assert repository.read_object("main") is not None


@pytest.mark.parametrize("committer", ["A <a@b.c> noon +0000", "A <a@b.c>", ""])
def test_a_commit_without_a_readable_date_is_an_error(
    checkout: Checkout, repository: Repository, committer: str
) -> None:
    file = checkout.lab.root / "commit"
    file.write_text(f"tree {checkout.tip('main^{tree}')}\ncommitter {committer}\n\ntitle\n")
    hash_ = checkout.git("hash-object", "-t", "commit", "-w", "--literally", str(file))
    with pytest.raises(TreeError, match=f"{hash_}: the commit is damaged: its date cannot be read"):
        repository.commit(hash_)


def test_threads_that_read_at_once_each_get_their_own_object(repository: Repository) -> None:
    contents = [b"%d\n" % number * 4000 for number in range(64)]
    command = ["git", "-C", str(repository.root), "hash-object", "-w", "--stdin"]
    names = [subprocess.run(command, input=one, capture_output=True, check=True).stdout.decode() for one in contents]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(repository.read_object, [name.strip() for name in names * 8]))
    assert [one and one[2] for one in found] == contents * 8
