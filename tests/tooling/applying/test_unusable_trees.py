"""Repositories that cannot be used: one clear sentence, exit code 4, and nothing written."""

from __future__ import annotations

import dataclasses
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import privileges
from checkouts import Checkout, Lab, Run
from checkouts.lab import command_line
from checkouts.sources import METAL, NATIVE_FUNCTIONS


def test_a_partial_clone_without_the_blobs_says_which_file_and_does_not_fetch(lab: Lab) -> None:
    upstream = lab.checkout("upstream")
    upstream.git("config", "uploadpack.allowFilter", "true")
    clone = lab.clone(upstream, "clone", "--filter=blob:none", "--no-checkout")
    with clone.branch_kept():
        clone.run().refused(4, "does not hold this object", NATIVE_FUNCTIONS, "fetch --refetch")
    assert clone.try_git("-c", "protocol.allow=never", "cat-file", "-e", f"HEAD:{METAL}").returncode


def test_a_partial_clone_without_trees_is_refused(lab: Lab) -> None:
    upstream = lab.checkout("upstream")
    upstream.git("config", "uploadpack.allowFilter", "true")
    clone = lab.clone(upstream, "clone", "--filter=tree:0", "--no-checkout")
    with clone.branch_kept():
        clone.run().refused(4, "does not hold this object", "--filter=tree:0", "fetch --refetch --no-filter")
    clone.git("fetch", "-q", "--refetch", "--no-filter")
    clone.run().require()


def _damage(checkout: Checkout) -> Checkout:
    """Overwrite the blob of a file the series edits."""
    hash_ = checkout.git("rev-parse", f"main:{METAL}")
    file = checkout.git_dir / "objects" / hash_[:2] / hash_[2:]
    file.chmod(0o644)
    file.write_bytes(b"not an object")
    return checkout


def _lose_the_commit(checkout: Checkout) -> Checkout:
    hash_ = checkout.tip("main")
    (checkout.git_dir / "objects" / hash_[:2] / hash_[2:]).unlink()
    return checkout


def _lose_the_git_folder(checkout: Checkout) -> Checkout:
    moved = checkout.git_dir.rename(checkout.lab.root / "elsewhere.git")
    checkout.git_dir.write_text("gitdir: /nowhere/at/all\n")
    return dataclasses.replace(checkout, git_dir=moved)


def _no_tree_of_pytorch(checkout: Checkout) -> Checkout:
    checkout.git("rm", "-q", "-r", "aten")
    checkout.git("commit", "-q", "-m", "Another project")
    return checkout


def _owned_by_another(checkout: Checkout) -> Checkout:
    return dataclasses.replace(checkout, env={"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"})


def _a_damaged_configuration(checkout: Checkout) -> Checkout:
    (checkout.git_dir / "config").write_text("[core\n")
    return checkout


def _a_setting_of_the_wrong_kind(checkout: Checkout) -> Checkout:
    checkout.git("config", "commit.gpgsign", "perhaps")
    return checkout


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_damage, ["does not hold this object", "damaged", METAL]),
        (_lose_the_commit, ["refs/heads/main", "does not hold"]),
        (_lose_the_git_folder, ["not a git repository", "/nowhere/at/all"]),
        (_no_tree_of_pytorch, ["not a PyTorch tree", "native_functions.yaml"]),
        (_owned_by_another, ["dubious ownership"]),
        (_a_damaged_configuration, ["bad config"]),
        (_a_setting_of_the_wrong_kind, ["commit.gpgsign", "perhaps"]),
    ],
    ids=lambda value: value.__name__.strip("_").replace("_", " ") if callable(value) else "",
)
def test_it_is_refused(checkout: Checkout, make: Callable[[Checkout], Checkout], words: list[str]) -> None:
    broken = make(checkout)
    with broken.untouched():
        result = broken.run()
    result.refused(4, *words)


def test_a_folder_outside_any_repository_is_refused(lab: Lab) -> None:
    outside = Checkout(lab, lab.root, lab.root)
    result = outside.run(env={"GIT_CEILING_DIRECTORIES": str(lab.root.parent)})
    result.refused(4, "not a git repository", "--reference 2.11")


@pytest.mark.parametrize(("name", "words"), [("nowhere", "no such folder"), ("lab/fade/fade.md", "not a folder")])
def test_repo_must_be_a_folder(tmp_path: Path, lab: Lab, name: str, words: str) -> None:
    Checkout(lab, tmp_path / name, tmp_path).run().refused(4, words, name)


def test_a_repository_without_commits_is_refused(lab: Lab) -> None:
    path = lab.root / "empty"
    lab.git(lab.root, "init", "-q", "-b", "main", str(path))
    empty = Checkout(lab, path, path / ".git")
    with empty.nothing_written():
        empty.run().refused(2, "no such branch or commit")


def test_without_git_the_command_says_so(checkout: Checkout) -> None:
    checkout.run(env={"PATH": "/nowhere"}).refused(4, "git is not installed")


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nothing can be created below ``folder``."""
    modes = {path: path.stat().st_mode for path in (Path(found) for found, _, _ in os.walk(folder))}
    for path in modes:
        path.chmod(0o555)
    yield
    for path, mode in modes.items():
        path.chmod(mode)


def run_after(checkout: Checkout, prepare: Callable[[], None] | None) -> Run:
    """Run the command in a process that does ``prepare`` first."""
    done = subprocess.run(
        command_line(checkout.arguments()),
        env={**checkout.lab.env, "PYTHONDONTWRITEBYTECODE": "1"},  # else a limit would cut Python's own cache short
        preexec_fn=prepare,
        capture_output=True,
        text=True,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


def run_obeying_modes(checkout: Checkout) -> Run:
    done = privileges.run_obeying_modes(command_line(checkout.arguments()), env=checkout.lab.env)
    return Run(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("part", [".", "objects", "refs", "apply-stack"])
def test_a_git_directory_that_cannot_be_written_is_refused(checkout: Checkout, part: str) -> None:
    (checkout.git_dir / "apply-stack").mkdir()
    with read_only(checkout.git_dir / part), checkout.branch_kept():
        run_obeying_modes(checkout).refused(4, "cannot be ")


@pytest.mark.parametrize("size", [0, 3, 100, 200, 400])
def test_files_that_cannot_grow_as_on_a_full_disk_stop_the_run(checkout: Checkout, size: int) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    with checkout.branch_kept():
        run_after(checkout, limit).refused(4, "cannot be written")
    checkout.run().require()
    assert checkout.complete()
