"""Runs that meet in one repository: one works, the others say so; the branch is never a mixture."""

from __future__ import annotations

import fcntl
import subprocess

import pytest

from checkouts import Checkout, Run
from checkouts.lab import command_line


def test_eight_runs_at_once_leave_one_complete_branch(checkout: Checkout, plain_tip: str) -> None:
    with checkout.untouched():
        runs = [
            subprocess.Popen(
                command_line(checkout.arguments()),
                env=checkout.lab.env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(8)
        ]
        done = [Run(run.returncode, *streams) for run, streams in [(run, run.communicate()) for run in runs]]
    assert {run.status for run in done} <= {0, 3}
    assert any(run.status == 0 for run in done)
    for run in done:
        if run.status == 3:
            run.refused(3, "another apply-stack run is at work")
    assert checkout.tip() == plain_tip
    assert checkout.faults() == ""


def test_while_another_run_holds_the_lock_a_run_says_so_and_names_it(checkout: Checkout) -> None:
    checkout.run("--only", "fade").require()
    with (checkout.git_dir / "apply-stack" / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()
        with checkout.branch_kept():
            checkout.run().refused(3, "another apply-stack run is at work", "process 4711", "run again")
    checkout.run().require()
    assert checkout.complete()


def test_the_lock_is_shared_by_all_worktrees(checkout: Checkout) -> None:
    linked = checkout.lab.root / "linked"
    checkout.git("worktree", "add", "-q", "--detach", str(linked))
    checkout.run().require()
    with (checkout.git_dir / "apply-stack" / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        checkout.run("--repo", str(linked)).refused(3, "another apply-stack run is at work")


def test_a_dry_run_needs_no_lock(checkout: Checkout) -> None:
    checkout.run().require()
    with (checkout.git_dir / "apply-stack" / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        checkout.run("--dry-run").require()


@pytest.mark.parametrize("there_before", [False, True], ids=["created meanwhile", "moved meanwhile"])
def test_a_branch_that_moves_while_the_stack_is_made_is_left_where_it_went(
    checkout: Checkout, there_before: bool
) -> None:
    """A signing program is what a run waits for; this one moves the branch."""
    if there_before:
        checkout.run("--only", "fade").require()
    program = checkout.lab.root / "gpg"
    program.write_text(
        "#!/bin/sh\ncat > /dev/null\n"
        f"git -C '{checkout.path}' update-ref refs/heads/{checkout.branch} main~1\n"
        'echo "[GNUPG:] SIG_CREATED " >&2; echo "-----BEGIN PGP SIGNATURE-----"; echo "-----END PGP SIGNATURE-----"\n'
    )
    program.chmod(0o755)
    checkout.git("config", "gpg.program", str(program))
    checkout.git("config", "commit.gpgsign", "true")
    with checkout.untouched():
        checkout.run().refused(3, "moved while the stack was made", "run again")
    assert checkout.tip() == checkout.tip("main~1")
