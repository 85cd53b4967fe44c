"""The watches that the tests of this folder keep over a checkout do see what they are there to see."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from checkouts import Checkout, Snapshot
from checkouts.lab import run_command


def touch_a_file(checkout: Checkout) -> None:
    os.utime(checkout.path / "windows.txt", (1, 1))


def make_a_file_executable(checkout: Checkout) -> None:
    (checkout.path / "windows.txt").chmod(0o755)


def leave_a_file(checkout: Checkout) -> None:
    (checkout.path / "aten" / "left.txt").write_text("")


def make_a_branch(checkout: Checkout) -> None:
    checkout.git("branch", "other")


def refresh_the_index(checkout: Checkout) -> None:
    touch_a_file(checkout)
    os.utime(checkout.path / "windows.txt", (2, 2))
    checkout.git("update-index", "--refresh")


def set_a_setting(checkout: Checkout) -> None:
    checkout.git("config", "a.b", "c")


def stash_something(checkout: Checkout) -> None:
    (checkout.path / "README.md").write_text("changed\n")
    checkout.git("stash", "-q")


def damage_an_object(checkout: Checkout) -> None:
    file = next(path for path in (checkout.git_dir / "objects").rglob("*") if path.is_file())
    file.chmod(0o644)
    file.write_bytes(b"")


FAULTS = [
    touch_a_file,
    make_a_file_executable,
    leave_a_file,
    make_a_branch,
    refresh_the_index,
    set_a_setting,
    stash_something,
    damage_an_object,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.replace("_", " "))
def test_a_change_that_a_run_may_not_make_is_seen(checkout: Checkout, fault: Callable[[Checkout], None]) -> None:
    with pytest.raises(AssertionError), checkout.untouched():
        fault(checkout)


def test_new_objects_and_the_branch_may_come(checkout: Checkout) -> None:
    with checkout.untouched():
        checkout.git("hash-object", "-w", "--stdin", stdin="new")
        checkout.git("branch", checkout.branch)
    with pytest.raises(AssertionError), checkout.nothing_written():
        checkout.git("hash-object", "-w", "--stdin", stdin="newer")
    with pytest.raises(AssertionError), checkout.branch_kept():
        checkout.git("branch", "-f", checkout.branch, "main~1")


def test_half_a_stack_and_a_stack_that_lacks_an_object_are_not_complete(checkout: Checkout) -> None:
    checkout.run().require()
    assert checkout.complete()
    whole = checkout.tip()
    checkout.git("branch", "-f", checkout.branch, f"{whole}~1")
    assert not checkout.complete()
    checkout.git("branch", "-f", checkout.branch, whole)
    blob = checkout.git("rev-parse", f"{whole}:docs/fade.md")
    (checkout.git_dir / "objects" / blob[:2] / blob[2:]).unlink()
    assert not checkout.complete()
    assert "missing blob" in checkout.faults()


def test_a_run_that_ends_otherwise_or_says_more_than_a_sentence_is_no_refusal(checkout: Checkout) -> None:
    result = run_command(["--onto", "nowhere"], cwd=checkout.path, env=checkout.lab.env)
    assert "nowhere" in result.refused(2)
    for wrong in ((3,), (2, "another word")):
        with pytest.raises(AssertionError):
            result.refused(*wrong)


def test_a_snapshot_tells_what_came_what_went_and_what_changed() -> None:
    before = Snapshot({"same": "1", "gone": "2", "changed": "3"})
    after = Snapshot({"same": "1", "changed": "4", "new": "5"})
    assert before.changes_to(after) == ["changed: 3 -> 4", "gone: 2 -> gone", "new: not there -> 5"]
