"""Which commits are searched: those of main's own line that touch the files; and histories that cannot tell."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from checkouts.sources import HOST, METAL, TREE
from patchstack.drift.line import Line, UpstreamCommit, read_line, resolve
from patchstack.errors import TreeError, UsageError
from patchstack.tree.git import Repository
from upstream_history import Step, write_history

from .conftest import Upstream


def touch(path: str, number: int) -> Step:
    return Step(f"Touch {number}", {path: TREE[path] + b"// %d\n" % number})


def line(path: Path, since: str, onto: str, *paths: str) -> Line:
    with Repository.open(path) as repository:
        ends = (resolve(repository, "--since", since), resolve(repository, "--onto", onto))
        return read_line(repository, *ends, paths or [METAL])


def refused(path: Path, since: str, onto: str = "main") -> str:
    with pytest.raises(TreeError) as caught:
        line(path, since, onto)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_only_commits_that_touch_the_files_are_stations(upstream: Upstream) -> None:
    upstream.grow(Step("a"), touch(METAL, 1), Step("b"), touch(HOST, 2), touch(METAL, 3), Step("c"))
    found = line(upstream.path, "main~6", "main")
    assert found.commits == 6
    assert list(found.touching) == [upstream.git("rev-parse", name) for name in ("main~4", "main~1")]
    assert found.stations[0] == upstream.git("rev-parse", "main~6")


def test_a_merge_is_one_commit_and_what_was_on_its_side_branch_is_none(upstream: Upstream) -> None:
    base = upstream.grow()
    write_history(upstream.path, [touch(METAL, 1), touch(METAL, 2)], ref="refs/heads/side", start=base)
    tree = upstream.git("rev-parse", "side^{tree}")
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    merge = upstream.git(*identity, "commit-tree", "-p", "main", "-p", "side", "-m", "Merge", tree)
    upstream.git("update-ref", "refs/heads/main", merge)
    assert line(upstream.path, base, "main").touching == (merge,)
    assert "on the line of first parents" in refused(upstream.path, "side~1")


def test_a_path_with_the_letters_of_a_pattern_is_taken_as_it_is(upstream: Upstream) -> None:
    upstream.grow(Step("a", {"odd/[x]*.h": b"1"}), Step("b", {"odd/x.h": b"1"}))
    assert len(line(upstream.path, "main~2", "main", "odd/[x]*.h").touching) == 1


def test_a_release_branch_is_refused_with_the_commit_where_it_leaves_main(upstream: Upstream) -> None:
    upstream.grow(Step("a"), Step("b"))
    write_history(upstream.path, [Step("Release")], ref="refs/heads/release", start=upstream.git("rev-parse", "main~1"))
    fork = upstream.git("rev-parse", "main~1")
    assert f"(next: --since {fork[:12]})" in refused(upstream.path, "release")


def test_ends_the_wrong_way_round_are_refused_with_the_right_way(upstream: Upstream) -> None:
    upstream.grow(Step("a"))
    assert "next: --since" in refused(upstream.path, "main", "main~1")


def test_histories_that_have_nothing_in_common_are_refused(upstream: Upstream) -> None:
    upstream.grow(Step("a"))
    write_history(upstream.path, [Step("Another world")], ref="refs/heads/other")
    assert "found no common ancestor" in refused(upstream.path, "other")


def shallow_clone(upstream: Upstream, folder: Path, depth: int) -> Path:
    command = ["git", "clone", "-q", "--bare", f"--depth={depth}", f"file://{upstream.path}", str(folder)]
    subprocess.run(command, check=True)
    return folder


def test_a_shallow_clone_that_has_the_whole_line_will_do(upstream: Upstream, tmp_path: Path) -> None:
    upstream.grow(*(touch(METAL, n) for n in range(5)))
    found = line(shallow_clone(upstream, tmp_path / "shallow", 4), "main~3", "main")
    assert (found.commits, len(found.touching)) == (3, 3)
    assert found.notes == ("--since is the first commit of this history: it does not tell what came before",)


def test_a_shallow_clone_that_ends_too_early_is_refused_with_the_fetch_that_mends_it(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.grow(*(touch(METAL, n) for n in range(5)))
    clone = shallow_clone(upstream, tmp_path / "shallow", 2)
    for since in ("main~4", upstream.git("rev-parse", "main~4")):
        said = refused(clone, since)
        assert "this clone is shallow" in said
        assert "fetch --unshallow" in said


def test_a_commit_kept_apart_in_a_shallow_clone_does_not_pass_for_an_unrelated_one(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.grow(*(touch(METAL, n) for n in range(5)))
    clone = shallow_clone(upstream, tmp_path / "shallow", 2)
    old = upstream.git("rev-parse", "main~4")
    subprocess.run(["git", "fetch", "-q", "--depth=1", f"file://{upstream.path}", old], cwd=clone, check=True)
    assert "this clone is shallow" in refused(clone, old)


def test_an_unknown_name_is_a_usage_error_that_names_the_option(upstream: Upstream) -> None:
    upstream.grow()
    with pytest.raises(UsageError, match="--since nowhere: no such branch or commit"):
        line(upstream.path, "nowhere", "main")


@pytest.mark.parametrize(
    ("title", "number"),
    [
        ("[MPS] Rename it (#12345)", 12345),
        ('Revert "[MPS] Rename it (#12345)" (#12399)', 12399),
        ("Mention (#12) in passing", None),
        ("Plain", None),
        (f"No such number (#{'9' * 5000})", None),
    ],
)
def test_the_pull_request_is_the_number_that_ends_the_title(upstream: Upstream, title: str, number: int | None) -> None:
    tip = upstream.grow(Step(title))
    with Repository.open(upstream.path) as repository:
        commit = UpstreamCommit.read(repository, tip)
    assert (commit.pull_request, commit.title, commit.date) == (number, title, "2026-01-01")


@pytest.mark.parametrize("date", [10**13, 10**20, -(10**11)])
def test_a_date_outside_the_calendar_is_no_date(upstream: Upstream, date: int) -> None:
    upstream.grow(touch(METAL, 1))
    made = upstream.git("cat-file", "commit", "main")
    text = re.sub(r"^(committer .*>) \d+", rf"\g<1> {date}", made, flags=re.MULTILINE)
    write = ["git", "hash-object", "-t", "commit", "--literally", "-w", "--stdin"]
    written = subprocess.run(write, cwd=upstream.path, input=f"{text}\n", capture_output=True, text=True, check=True)
    with Repository.open(upstream.path) as repository:
        assert UpstreamCommit.read(repository, written.stdout.strip()).date == "(no date)"
