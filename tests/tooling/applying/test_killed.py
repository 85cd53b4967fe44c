"""Killed at any moment, a run leaves the branch as it was or complete, and the next run completes it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from checkouts import Checkout, Lab
from checkouts.lab import write_series
from checkouts.warm import WarmCommand

MOMENTS = 25
"""For each of the four ways: 100 in all."""

Kill = Callable[[int], None]


def the_process_alone(pid: int) -> None:
    """Git commands that it started go on."""
    os.kill(pid, signal.SIGKILL)


def its_whole_group(pid: int) -> None:
    os.killpg(pid, signal.SIGKILL)


def in_words(function: Callable[..., object]) -> str:
    return function.__name__.replace("_", " ")


def new_branch(checkout: Checkout) -> Checkout:
    return checkout


def branch_of_an_earlier_series(checkout: Checkout) -> Checkout:
    earlier = write_series(checkout.lab.root / "earlier" / "fade", {"fade_notes.md": ("What", "Once, what")})
    checkout.run("--series", str(earlier)).require()
    return checkout


@pytest.fixture(scope="module")
def run_time(seed: Path, warm: WarmCommand, tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds from the start of an undisturbed run to its end."""
    taken = []
    for number in range(3):
        checkout = Lab(tmp_path_factory.mktemp(f"timing{number}") / "lab", seed, warm).checkout()
        started = time.perf_counter()
        checkout.run().require()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kill", [the_process_alone, its_whole_group], ids=in_words)
@pytest.mark.parametrize("prepare", [new_branch, branch_of_an_earlier_series], ids=in_words)
def test_at_a_random_moment(
    lab: Lab, plain_tip: str, run_time: float, prepare: Callable[[Checkout], Checkout], kill: Kill
) -> None:
    moments = random.Random(f"{prepare.__name__} {kill.__name__}")
    prepared = prepare(lab.checkout())
    before, struck = prepared.tip(), 0
    for number in range(MOMENTS):
        checkout = lab.copy(prepared, f"checkout {number}")
        surroundings = checkout.snapshot()
        pid = checkout.start()
        time.sleep(run_time * moments.random() * 1.1)
        with contextlib.suppress(ProcessLookupError):  # it was faster this time
            kill(pid)
        struck += lab.finish().status == -signal.SIGKILL
        assert checkout.tip() in (before, plain_tip)
        assert checkout.faults() == ""
        checkout.run().require()
        assert checkout.tip() == plain_tip
        surroundings.require_same(checkout.snapshot())
    assert struck >= MOMENTS // 3


# The moments that matter most, hit on purpose: a hook of git's runs while the locks are held, and after the move.

GROUP, ALONE = "kill -9 0", 'kill -9 "$(ps -o pgid= -p $$ | tr -d " ")"'


def kill_in_hook(checkout: Checkout, moment: str, how: str) -> None:
    hook = checkout.git_dir / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\ncat > /dev/null\nif [ "$1" = {moment} ]; then {how}; fi\n')
    hook.chmod(0o755)


@pytest.mark.parametrize("how", [GROUP, ALONE], ids=["the whole group", "the process alone"])
@pytest.mark.parametrize("moment", ["prepared", "committed"])
@pytest.mark.parametrize("prepare", [new_branch, branch_of_an_earlier_series], ids=in_words)
def test_while_the_branch_is_being_moved(
    checkout: Checkout, plain_tip: str, prepare: Callable[[Checkout], Checkout], moment: str, how: str
) -> None:
    before = prepare(checkout).tip()
    kill_in_hook(checkout, moment, how)
    checkout.run().require(-signal.SIGKILL)
    lock = checkout.git_dir / "refs" / "heads" / "stack" / "fade.lock"
    assert lock.exists() == (moment == "prepared" and how == GROUP) or how == ALONE
    assert checkout.tip() in (before, plain_tip)
    (checkout.git_dir / "hooks" / "reference-transaction").unlink()
    checkout.run().require()
    assert checkout.tip() == plain_tip
    assert checkout.faults() == ""
    assert not lock.exists()


def test_a_killed_forced_run_leaves_no_lock_on_the_backup(checkout: Checkout, plain_tip: str) -> None:
    mine = checkout.git("commit-tree", "main^{tree}", "-p", "main", "-m", "Mine")
    checkout.git("branch", checkout.branch, mine)
    kill_in_hook(checkout, "prepared", GROUP)
    checkout.run("--force").require(-signal.SIGKILL)
    (checkout.git_dir / "hooks" / "reference-transaction").unlink()
    assert list((checkout.git_dir / "refs" / "apply-stack").rglob("*.lock"))
    backup = checkout.run("--force", "--json").require().json["backup"]
    assert (checkout.tip(backup), checkout.tip()) == (mine, plain_tip)


def test_a_killed_checkout_leaves_no_lock_on_head(checkout: Checkout) -> None:
    branch_of_an_earlier_series(checkout)
    checkout.git("switch", "-q", checkout.branch)
    kill_in_hook(checkout, "prepared", GROUP)
    checkout.run("--checkout").require(-signal.SIGKILL)
    (checkout.git_dir / "hooks" / "reference-transaction").unlink()
    checkout.run("--checkout").require()
    assert not (checkout.git_dir / "HEAD.lock").exists()
    assert checkout.git("status", "--porcelain") == ""
    assert checkout.complete()


def test_a_checkout_killed_half_way_is_told_how_to_bring_the_files_along(checkout: Checkout) -> None:
    checkout.run("--checkout").require()
    write_series(checkout.lab.series, {"overlay/docs/fade.md": ("halves", "takes half of")})
    kill_in_hook(checkout, "committed", GROUP)
    checkout.run("--checkout").require(-signal.SIGKILL)
    (checkout.git_dir / "hooks" / "reference-transaction").unlink()
    changed = checkout.git("diff", "--name-only", "HEAD").splitlines()
    (checkout.path / changed[0]).write_text("half a file")
    with checkout.branch_kept():
        checkout.run("--checkout").refused(3, "not committed", f"git switch -f {checkout.branch}")
    checkout.git("switch", "-q", "-f", checkout.branch)
    checkout.run("--checkout").require()
    assert checkout.git("status", "--porcelain") == ""


def test_a_lock_that_is_not_ours_is_left_alone_and_named(checkout: Checkout) -> None:
    lock = checkout.git_dir / "refs" / "heads" / "stack" / "fade.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("")
    with checkout.branch_kept():
        checkout.run().refused(3, "another git process", "fade.lock")
    assert lock.exists()


def test_temporary_files_of_a_killed_run_are_cleared_by_the_next(checkout: Checkout) -> None:
    scratch = checkout.git_dir / "apply-stack" / "scratch"
    scratch.mkdir(parents=True)
    (scratch / "blob").write_text("left behind")
    checkout.run().require()
    assert list(scratch.iterdir()) == []


def test_a_damaged_note_makes_a_run_remove_no_file_of_anybody_elses(checkout: Checkout) -> None:
    folder = checkout.git_dir / "apply-stack"
    folder.mkdir()
    (folder / "lock").write_text("1\nconfig\nrefs/../../mine\n../mine\n")
    mine = [checkout.git_dir / "config.lock", checkout.path / "mine.lock"]
    for file in mine:
        file.write_text("")
    checkout.run().require()
    assert all(file.exists() for file in mine)


@pytest.mark.parametrize("name", ["lock", "scratch"])
def test_a_link_in_the_tools_folder_is_refused_and_what_it_leads_to_is_kept(checkout: Checkout, name: str) -> None:
    mine = checkout.lab.root / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine")
    folder = checkout.git_dir / "apply-stack"
    folder.mkdir()
    (folder / name).symlink_to(mine / "file" if name == "lock" else mine)
    with checkout.branch_kept():
        checkout.run().refused(4, "the git directory cannot be written")
    assert (mine / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["lock", "made.jsonl"])
def test_a_pipe_in_the_tools_folder_is_refused_without_waiting(checkout: Checkout, name: str) -> None:
    folder = checkout.git_dir / "apply-stack"
    folder.mkdir()
    os.mkfifo(folder / name)
    with checkout.branch_kept():
        checkout.run().refused(4, "not a regular file", name)
