"""Whatever state a checkout is in, a run makes the stack and touches nothing else in it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable

import pytest

from checkouts import Checkout, Lab
from checkouts.lab import run_command
from checkouts.sources import LISTS, METAL, NATIVE_FUNCTIONS, OVERLAY
from skips import cannot

State = Callable[[Lab], Checkout]
STATES: dict[str, State] = {}


def state(make: State) -> State:
    """Register a state under its name."""
    STATES[make.__name__.replace("_", " ")] = make
    return make


@state
def clean(lab: Lab) -> Checkout:
    return lab.checkout()


@state
def dirty(lab: Lab) -> Checkout:
    """Staged, changed after staging, changed, deleted, untracked, and in the very file the series edits."""
    checkout = lab.checkout()
    (checkout.path / METAL).write_text("staged\n")
    checkout.git("add", METAL)
    (checkout.path / METAL).write_text("changed again\n")
    (checkout.path / "windows.txt").unlink()
    (checkout.path / "docs").mkdir()
    (checkout.path / "docs" / "fade.md").write_text("untracked, where the series creates a file\n")
    return checkout


def conflicting(lab: Lab) -> Checkout:
    """A branch ``topic`` that cannot be merged into ``main``, checked out."""
    checkout = lab.checkout()
    checkout.git("switch", "-q", "-c", "topic", "HEAD~1")
    checkout.commit("Topic", {"README.md": "another text\n"})
    return checkout


@state
def in_the_middle_of_a_rebase(lab: Lab) -> Checkout:
    checkout = conflicting(lab)
    assert checkout.try_git("rebase", "main").returncode
    assert (checkout.git_dir / "rebase-merge").is_dir()
    return checkout


@state
def in_the_middle_of_a_merge(lab: Lab) -> Checkout:
    checkout = conflicting(lab)
    assert checkout.try_git("merge", "main").returncode
    assert (checkout.git_dir / "MERGE_HEAD").exists()
    return checkout


@state
def in_the_middle_of_a_cherry_pick(lab: Lab) -> Checkout:
    checkout = conflicting(lab)
    assert checkout.try_git("cherry-pick", "main").returncode
    return checkout


@state
def in_the_middle_of_git_am(lab: Lab) -> Checkout:
    checkout = conflicting(lab)
    mail = checkout.git("format-patch", "-1", "--stdout", "main")
    (lab.root / "mail").write_text(mail + "\n")
    assert checkout.try_git("am", str(lab.root / "mail")).returncode
    return checkout


@state
def bisecting(lab: Lab) -> Checkout:
    checkout = lab.checkout()
    checkout.git("bisect", "start", "main", "main~1")
    return checkout


@state
def with_a_stash(lab: Lab) -> Checkout:
    checkout = dirty(lab)
    checkout.git("stash")
    return checkout


@state
def detached(lab: Lab) -> Checkout:
    checkout = lab.checkout()
    checkout.git("switch", "-q", "--detach", "main~1")
    return checkout


@state
def on_a_branch_without_commits(lab: Lab) -> Checkout:
    checkout = lab.checkout()
    checkout.git("switch", "-q", "--orphan", "fresh")
    return checkout


@state
def a_linked_worktree(lab: Lab) -> Checkout:
    main = lab.checkout("main checkout")
    linked = lab.root / "linked"
    main.git("worktree", "add", "-q", "-b", "topic", str(linked))
    (linked / "windows.txt").write_text("changed here\n")
    return dataclasses.replace(main, path=linked)


@state
def a_bare_repository(lab: Lab) -> Checkout:
    return lab.clone(lab.checkout("upstream"), "bare.git", "--bare")


@state
def a_shallow_clone(lab: Lab) -> Checkout:
    clone = lab.clone(lab.checkout("upstream"), "clone", "--depth=1")
    assert clone.git("rev-list", "--count", "HEAD") == "1"
    return clone


@state
def a_partial_clone_with_its_blobs(lab: Lab) -> Checkout:
    upstream = lab.checkout("upstream")
    upstream.git("config", "uploadpack.allowFilter", "true")
    return lab.clone(upstream, "clone", "--filter=blob:none")


@state
def with_a_submodule(lab: Lab) -> Checkout:
    other, checkout = lab.checkout("other"), lab.checkout()
    checkout.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.path), "third party")
    checkout.git("commit", "-q", "-m", "Add a submodule")
    (checkout.path / "third party" / "README.md").write_text("changed in the submodule\n")
    return checkout


@state
def a_sparse_checkout(lab: Lab) -> Checkout:
    checkout = lab.checkout()
    checkout.git("sparse-checkout", "set", "docs")
    assert not (checkout.path / METAL).exists()
    return checkout


@state
def with_packed_refs(lab: Lab) -> Checkout:
    checkout = lab.checkout()
    checkout.git("branch", "topic")
    checkout.git("tag", "-a", "-m", "A tag", "v1")
    checkout.git("pack-refs", "--all")
    checkout.git("gc", "-q")
    return checkout


@state
def with_a_packed_branch_of_an_earlier_run(lab: Lab) -> Checkout:
    checkout = lab.checkout()
    checkout.run("--only", "fade").require()
    checkout.git("pack-refs", "--all")
    return checkout


@state
def with_sha256_object_names(lab: Lab) -> Checkout:
    return lab.repository("sha256", "--object-format=sha256")


@state
def with_reftable_refs(lab: Lab) -> Checkout:
    if lab.try_git(lab.root, "init", "-q", "--ref-format=reftable", "try").returncode:
        pytest.skip(cannot("this git has no reftable (2.45 and newer have it)"))
    return dataclasses.replace(lab.repository("reftable", "--ref-format=reftable"), may_change=("reftable",))


@state
def borrowing_objects_from_another_repository(lab: Lab) -> Checkout:
    path = lab.root / "borrower"
    lab.git(lab.root, "clone", "-q", "--shared", str(lab.checkout("lender").path), str(path))
    return Checkout(lab, path, path / ".git")


@state
def with_a_split_index(lab: Lab) -> Checkout:
    checkout = lab.checkout()
    checkout.git("update-index", "--split-index")
    return checkout


@state
def while_another_git_holds_the_index(lab: Lab) -> Checkout:
    checkout = lab.checkout()
    (checkout.git_dir / "index.lock").write_bytes(b"")
    return checkout


@state
def with_a_git_file_instead_of_a_folder(lab: Lab) -> Checkout:
    checkout = lab.checkout()
    moved = lab.root / "elsewhere.git"
    checkout.git_dir.rename(moved)
    checkout.git_dir.write_text(f"gitdir: {moved}\n")
    return dataclasses.replace(checkout, git_dir=moved)


@state
def with_files_times_unknown_to_the_index(lab: Lab) -> Checkout:
    checkout = lab.checkout()
    for file in ("README.md", METAL):
        os.utime(checkout.path / file, (1, 1))
    return checkout


@pytest.mark.parametrize("name", STATES)
def test_a_run_makes_the_branch_and_touches_nothing_else(lab: Lab, name: str) -> None:
    checkout = STATES[name](lab)
    faults = checkout.faults()
    with checkout.untouched():
        checkout.run().require()
    assert checkout.complete()
    assert checkout.faults() == faults


@pytest.mark.parametrize("inside", ["aten/src", "caf\u00e9", "torch/testing/_internal"])
def test_from_a_subfolder_the_checkout_around_it_is_used(checkout: Checkout, inside: str) -> None:
    arguments = ["--onto", "main", "--series", str(checkout.lab.series)]
    with checkout.untouched():
        run_command(arguments, cwd=checkout.path / inside, env=checkout.lab.env).require()
    assert checkout.complete()


ODD_NAMES = [
    "two words",
    "caf\u00e9 \u4e2d\u6587 \U0001f600",
    "quotes ' and \"",
    "dollar $HOME `x` $(y)",
    "back\\slash",
    "-dash",
    "star*[a]?",
    "tab\tin it",
    "line\u2028separator",
    "trailing blank ",
    os.fsdecode(b"not \xff utf-8"),
]


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_the_path_of_the_checkout_may_hold_any_letters(lab: Lab, name: str) -> None:
    try:
        checkout = lab.checkout(name)
    except OSError:
        pytest.skip(cannot("this file system has no such names"))
    with checkout.untouched():
        result = checkout.run("--json").require()
    assert os.fsencode(result.json["repository"]) == os.fsencode(checkout.path)
    assert checkout.complete()


def test_modes_links_and_strange_names_of_the_tree_are_in_the_stack_as_they_were(checkout: Checkout) -> None:
    checkout.run().require()
    before, after = _entries(checkout, "main"), _entries(checkout, checkout.branch)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {*OVERLAY, LISTS, NATIVE_FUNCTIONS}
    assert before["run.sh"].startswith("100755")
    assert before["link"].startswith("120000")


def _entries(checkout: Checkout, commit: str) -> dict[str, str]:
    """Path to mode and id of every file of a commit."""
    lines = checkout.git("ls-tree", "-r", "-z", commit).split("\0")
    return {path: facts for facts, _, path in (line.partition("\t") for line in lines)}
