"""The same input gives the same commit ids, wherever and whenever it is run."""

from __future__ import annotations

import pytest

from checkouts import Checkout, Lab
from checkouts.lab import run_command

ELSEWHERE = {
    "another time zone": {"TZ": "Pacific/Chatham"},
    "another locale": {"LC_ALL": "C", "LANG": "C"},
    "other hash seeds": {"PYTHONHASHSEED": "7"},
    "an umask that keeps to itself": {},
    "dates of the user": {"GIT_AUTHOR_DATE": "2001-01-01", "GIT_COMMITTER_DATE": "2002-02-02"},
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_surroundings_do_not_show_in_the_ids(checkout: Checkout, plain_tip: str, name: str) -> None:
    umask = 0o077 if "umask" in name else -1
    checkout.run(env=ELSEWHERE[name], umask=umask, cwd=checkout.path / "aten").require()
    assert checkout.tip() == plain_tip


def test_a_fresh_process_makes_what_a_warm_one_makes(checkout: Checkout, plain_tip: str) -> None:
    """What the other tests of this folder rest on."""
    run_command(checkout.arguments(), cwd=checkout.lab.root, env=checkout.lab.env)
    assert checkout.tip() == plain_tip


def test_another_clone_gives_the_same_ids(lab: Lab, checkout: Checkout, plain_tip: str) -> None:
    clone = lab.clone(checkout, "clone", "--depth=1")
    clone.run().require()
    assert clone.tip() == plain_tip


def test_a_second_run_moves_nothing(checkout: Checkout, plain_tip: str) -> None:
    checkout.run().require()
    reflog = checkout.git("reflog", "show", checkout.branch)
    result = checkout.run("--json").require()
    assert (result.json["tip"], result.json["moved"]) == (plain_tip, False)
    assert checkout.git("reflog", "show", checkout.branch) == reflog


def test_each_commit_is_dated_one_second_after_the_one_below(checkout: Checkout) -> None:
    checkout.run().require()
    base = int(checkout.git("log", "-1", "--format=%ct", "main"))
    dates = checkout.git("log", "--reverse", "--format=%at %ct %ai", f"main..{checkout.branch}").splitlines()
    assert [line.split()[:2] for line in dates] == [[str(base + n)] * 2 for n in (1, 2, 3)]
    assert all(line.endswith("+0000") for line in dates)


@pytest.mark.parametrize("epoch", ["0", "5", "1700000000", "100000000", "4102444800"])
def test_source_date_epoch_sets_the_date_of_the_first_commit(checkout: Checkout, epoch: str) -> None:
    checkout.run(env={"SOURCE_DATE_EPOCH": epoch}).require()
    assert checkout.git("log", "-1", "--format=%at %ct", f"{checkout.branch}~2") == f"{epoch} {epoch}"


@pytest.mark.parametrize("epoch", ["", "soon", "-1", "1.5", "\u0661", "9" * 30])
def test_an_epoch_that_is_no_number_of_seconds_is_refused(checkout: Checkout, epoch: str) -> None:
    with checkout.branch_kept():
        checkout.run(env={"SOURCE_DATE_EPOCH": epoch}).refused(2, "SOURCE_DATE_EPOCH", "not a number of seconds")


def test_another_author_gives_other_ids(checkout: Checkout, plain_tip: str) -> None:
    """The seeded fault: what does belong to the input shows."""
    checkout.git("config", "user.email", "someone.else@example.com")
    checkout.run().require()
    assert checkout.tip() != plain_tip


@pytest.mark.parametrize("date", ["-5", "9" * 20])
def test_an_onto_commit_with_an_impossible_date_is_refused_with_the_way_out(checkout: Checkout, date: str) -> None:
    file = checkout.lab.root / "commit"
    tree = checkout.tip("main^{tree}")
    file.write_text(f"tree {tree}\nauthor A <a@b.c> 1 +0000\ncommitter A <a@b.c> {date} +0000\n\ntitle\n")
    commit = checkout.git("hash-object", "-t", "commit", "-w", "--literally", str(file))
    with checkout.branch_kept():
        checkout.run(onto=commit).refused(4, "no commit with a date after", date, "SOURCE_DATE_EPOCH=")
    checkout.run(onto=commit, env={"SOURCE_DATE_EPOCH": "1700000000"}).require()
