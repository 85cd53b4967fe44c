"""What a run prints: for a person, for a program, for a pipe; and that a dry run does nothing but print."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from checkouts import Checkout
from checkouts.lab import command_line, run_command
from checkouts.sources import HOST, LISTS, METAL, NATIVE_FUNCTIONS, TESTS, TITLES, TREE
from skips import cannot

ESCAPE = "\x1b["


def test_json_has_every_fact_of_the_stack(checkout: Checkout) -> None:
    facts = checkout.run("--json").require().json
    commits = checkout.git("rev-list", "--reverse", f"main..{checkout.branch}").split()
    assert (facts["repository"], facts["series"], facts["onto"]) == (str(checkout.path), "fade", "main")
    assert (facts["branch"], facts["tip"], facts["moved"]) == (checkout.branch, commits[-1], True)
    assert facts["onto_commit"] == checkout.tip("main")
    assert [(c["id"], c["title"], c["upstream_state"], c["commit"]) for c in facts["changes"]] == [
        (id_, title, "absent", commit)
        for id_, title, commit in zip(("fade", "fade_tests", "fade_notes"), TITLES, commits, strict=True)
    ]
    assert [[(e["path"], e["rung"]) for e in change["edits"]] for change in facts["changes"]] == [
        [(path, "structural anchor") for path in (NATIVE_FUNCTIONS, METAL, HOST)],
        [(path, "structural anchor") for path in (LISTS, TESTS)],
        [("docs/fade.md", "new file")],
    ]
    assert facts["exit_code"] == 0
    assert facts["seconds"]["total"] > 0


def test_a_dry_run_reports_the_same_plan_and_writes_nothing_at_all(checkout: Checkout) -> None:
    with checkout.nothing_written():
        dry = checkout.run("--dry-run", "--json").require().json
        said = checkout.run("--dry-run", "--explain").require().out
    assert (dry["tip"], dry["dry_run"]) == (None, True)
    assert "3 commits would go onto stack/fade; nothing was written" in said
    wet = checkout.run("--json").require().json
    for change in wet["changes"]:
        change["commit"] = None
    assert dry["changes"] == wet["changes"]


def test_a_run_tells_a_line_for_each_commit_with_its_size(checkout: Checkout) -> None:
    said = checkout.run("--dry-run").require().out.splitlines()
    commits = [line for line in said if line.startswith("  ------------  ")]
    assert len(commits) == 3
    assert commits[0].endswith("[absent]  3 files, +9 -0"), commits[0]
    assert [line for line in said if line.startswith("      ")] == []


def test_explain_shows_anchors_and_diffs(checkout: Checkout) -> None:
    said = checkout.run("--explain").require().out
    assert "+    MPS: fade_mps" in said
    assert "anchor: after kernel brighten; found at line 4; applies" in said
    facts = checkout.run("--explain", "--json").require().json
    assert "+    MPS: fade_mps" in facts["changes"][0]["edits"][0]["diff"]


def test_nothing_left_to_apply_is_success_and_writes_nothing(checkout: Checkout) -> None:
    checkout.run().require()
    checkout.git("branch", "landed", checkout.branch)
    before = checkout.tip()
    with checkout.branch_kept():
        result = checkout.run("--json", onto="landed").require()
    assert [change["upstream_state"] for change in result.json["changes"]] == ["identical"] * 3
    assert (result.json["tip"], result.json["moved"]) == (None, False)
    assert checkout.tip() == before


def test_a_part_of_the_stack_that_landed_is_left_out(checkout: Checkout) -> None:
    checkout.run().require()
    checkout.git("branch", "landed", f"{checkout.branch}~2")
    facts = checkout.run("--json", onto="landed").require().json
    assert [change["upstream_state"] for change in facts["changes"]] == ["identical", "absent", "absent"]
    assert facts["changes"][0]["commit"] is None
    titles = checkout.git("log", "--reverse", "--format=%s", f"landed..{checkout.branch}")
    assert titles.splitlines() == list(TITLES[1:])


def test_a_change_that_stops_can_be_replaced_or_left_out_as_the_report_says(checkout: Checkout) -> None:
    theirs = TREE[NATIVE_FUNCTIONS].decode().replace("fade_cuda\n", "fade_cuda\n    MPS: fade_metal\n")
    checkout.commit("Register another function", {NATIVE_FUNCTIONS: theirs})
    stopped = checkout.run("--json").require(3)
    assert stopped.json["next"] == [
        "--replace fade replaces the tree's text with the series'",
        "--only fade_notes leaves out what stops",
    ]
    said = checkout.run().require(3).out.splitlines()[-2:]
    for line, advice, count, options in zip(
        said, stopped.json["next"], ("3 commits", "1 commit"), ("--replace fade", "--only fade_notes"), strict=True
    ):
        command = f"apply-stack --onto main --repo {checkout.path} --series {checkout.lab.series} {options}"
        assert line == f"{advice}, {count} (next: {command})"
        assert f"{command} --json" in stopped.json["next_commands"]
    only = checkout.run("--only", "fade_notes", "--json").require()
    assert [change["id"] for change in only.json["changes"]] == ["fade_notes"]
    done = checkout.run("--replace", "fade", "--json").require()
    (gone,) = done.json["changes"][0]["replaced"]
    assert (gone["kind"], gone["tree_name"]) == ("dispatch entry", "fade MPS")
    assert gone["diff"].splitlines()[1:] == ["-MPS: fade_metal", "+MPS: fade_mps"]
    assert "fade_metal" not in checkout.git("show", f"{checkout.branch}:{NATIVE_FUNCTIONS}")


def test_replacing_a_change_that_there_is_not_is_a_usage_error(checkout: Checkout) -> None:
    with checkout.nothing_written():
        checkout.run("--replace", "nothing").refused(2, "--replace", "has no change 'nothing'")


def with_origin(checkout: Checkout, *, only_here: int, only_there: int) -> None:
    """``origin/main`` and ``main`` with so many commits of their own above the common one."""
    base = checkout.tip("main")
    checkout.git("switch", "-q", "--detach")
    for count in range(only_there):
        checkout.commit(f"There {count}", {"there.txt": str(count)})
    checkout.git("update-ref", "refs/remotes/origin/main", "HEAD")
    checkout.git("switch", "-q", "main")
    for count in range(only_here):
        checkout.commit(f"Here {count}", {"here.txt": str(count)})
    assert checkout.git("merge-base", "main", "origin/main") == base


@pytest.mark.parametrize(
    ("only_here", "only_there", "words"),
    [
        (2, 0, ["2 commit(s) of main are not in origin/main", "ghstack would submit them too"]),
        (0, 3, ["main is 3 commit(s) behind origin/main"]),
        (1, 2, ["1 commit(s) of main are not in origin/main", "main is 2 commit(s) behind"]),
    ],
    ids=["ahead", "behind", "diverged"],
)
def test_a_main_that_is_not_the_remotes_is_told_with_counts(
    checkout: Checkout, only_here: int, only_there: int, words: list[str]
) -> None:
    with_origin(checkout, only_here=only_here, only_there=only_there)
    result = checkout.run("--dry-run", "--json").require()
    assert len(result.json["warnings"]) == 1
    for word in words:
        assert word in result.json["warnings"][0]
    assert f"warning: {result.json['warnings'][0]}" in checkout.run("--dry-run").require().out


def test_the_same_main_as_the_remotes_is_no_reason_to_warn(checkout: Checkout) -> None:
    with_origin(checkout, only_here=0, only_there=0)
    assert checkout.run("--dry-run", "--json").require().json["warnings"] == []


# What --onto may be.


NAMES = ["main", "refs/heads/main", "HEAD", "@", "main~1", "v1", "annotated", "origin/main", "{sha}", "{short}"]


@pytest.mark.parametrize("onto", NAMES)
def test_onto_may_be_anything_that_names_a_commit(checkout: Checkout, onto: str) -> None:
    checkout.git("tag", "v1", "main~1")
    checkout.git("tag", "-a", "-m", "A tag", "annotated", "main~1")
    checkout.git("update-ref", "refs/remotes/origin/main", "main~1")
    sha = checkout.tip("main~1")
    name = onto.format(sha=sha, short=sha[:9])
    with checkout.untouched():
        checkout.run(onto=name).require()
    assert checkout.tip(f"{checkout.branch}~3") == checkout.git("rev-parse", f"{name}^{{commit}}")


def test_main_is_the_local_branch_whatever_else_has_that_name(checkout: Checkout) -> None:
    checkout.git("tag", "main", "main~1")
    checkout.git("update-ref", "refs/remotes/main", "refs/heads/main~1")
    checkout.git("update-ref", "refs/heads/refs/heads/main", "refs/heads/main~1")
    checkout.run().require()
    assert checkout.tip(f"{checkout.branch}~3") == checkout.tip("refs/heads/main")


# Streams.


def test_without_a_terminal_there_are_no_escape_codes(checkout: Checkout) -> None:
    for more in ([], ["--explain"], ["--json"]):
        result = run_command(checkout.arguments(*more), cwd=checkout.path, env=checkout.lab.env)
        assert ESCAPE not in result.out + result.err


def on_a_terminal(checkout: Checkout, *more: str, env: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        command_line(checkout.arguments(*more)), env={**checkout.lab.env, "TERM": "xterm", **env}, stdout=theirs
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert run.wait() == 0
    return shown.decode()


def test_no_color_is_obeyed_on_a_terminal_and_colours_are_there_without_it(checkout: Checkout) -> None:
    assert ESCAPE in on_a_terminal(checkout, "--explain", "--dry-run", env={})
    assert ESCAPE not in on_a_terminal(checkout, "--explain", "--dry-run", env={"NO_COLOR": "1"})


def shell(
    checkout: Checkout, text: str, *more: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``text`` in a shell in which ``"$@"`` is the command."""
    command = ["sh", "-c", text, "sh", *command_line(checkout.arguments(*more))]
    return subprocess.run(
        command, env={**checkout.lab.env, **(env or {})}, capture_output=True, text=True, errors="replace", check=False
    )


def test_a_reader_that_goes_away_spoils_neither_the_work_nor_the_exit_status(checkout: Checkout) -> None:
    done = shell(checkout, '{ "$@" --explain; echo "status $?" >&2; } | true')
    assert done.stderr == "status 0\n"
    assert checkout.complete()


def test_a_conflict_is_exit_code_3_even_when_nobody_reads_on(checkout: Checkout) -> None:
    checkout.commit("Rename", {METAL: "kernel void lighten() {}\n"})
    for more in ("", "--json"):
        done = shell(checkout, f'{{ "$@" {more}; echo "status $?" >&2; }} | true')
        assert done.stderr == "status 3\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason=cannot("no /dev/full here"))
def test_a_full_disk_under_the_report_is_told(checkout: Checkout) -> None:
    done = shell(checkout, '"$@" > /dev/full')
    assert done.returncode == 1
    assert done.stderr.startswith("apply-stack: the work is done, but the report cannot be printed: ")
    assert checkout.complete()


def test_closed_output_streams_do_not_hurt(checkout: Checkout) -> None:
    assert shell(checkout, '"$@" >&- 2>&-').returncode == 0
    assert checkout.complete()


def test_a_terminal_without_the_letters_of_the_path_shows_their_codes(checkout: Checkout) -> None:
    strange = checkout.lab.copy(checkout, "\u4e2d")
    done = shell(strange, '"$@"', env={"PYTHONIOENCODING": "iso-8859-1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "/\\u4e2d" in done.stdout


def test_format_patch_writes_a_series_that_gives_the_same_tree(checkout: Checkout) -> None:
    folder = checkout.lab.root / "mail"
    with checkout.untouched():
        facts = checkout.run("--format-patch", str(folder), "--json").require().json
    assert [Path(name).parent for name in facts["patches"]] == [folder] * 3
    other = checkout.lab.checkout("other")
    other.git("am", "-q", "--keep-non-patch", *facts["patches"])
    assert other.git("rev-parse", "HEAD^{tree}") == checkout.git("rev-parse", f"{checkout.branch}^{{tree}}")


def test_format_patch_into_a_folder_of_the_users_is_refused_in_one_sentence(checkout: Checkout) -> None:
    folder = checkout.lab.root / "mine"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine\n")
    with checkout.nothing_written():
        checkout.run("--format-patch", str(folder)).refused(2, "mine.txt")
    assert (folder / "mine.txt").read_text() == "mine\n"
