"""Planning on many trees: what tells two trees apart is everything that a plan reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from checkouts.sources import METAL, TREE
from patchstack.drift.condition import Condition
from patchstack.drift.replay import Replay, paths_of
from patchstack.planning import plan_stack
from patchstack.series import load_series
from patchstack.tree.git import GitCommitHash, Repository, Tree
from references import clone_of
from upstream_history import Step

from .conftest import Upstream


def replayed(upstream: Upstream, *commits: str) -> tuple[Replay, list[Condition]]:
    """The condition of the first change on each commit."""
    with Repository.open(upstream.path) as repository:
        replay = Replay(repository, upstream.series, lambda count: None)
        hashes = [GitCommitHash(upstream.git("rev-parse", commit)) for commit in commits]
        return replay, [replay.at(hash_)["fade"] for hash_ in hashes]


def test_a_tree_with_the_same_files_is_not_planned_on_again(upstream: Upstream) -> None:
    upstream.grow(Step("a"), Step("Touch", {METAL: TREE[METAL] + b"// a\n"}), Step("Back", {METAL: TREE[METAL]}))
    replay, conditions = replayed(upstream, "main~3", "main~2", "main~1", "main")
    assert replay.visited == 2
    assert conditions[0] is conditions[1] is conditions[3]


def test_a_file_that_becomes_a_link_or_goes_away_makes_another_tree(upstream: Upstream) -> None:
    upstream.grow(Step("Drop", {METAL: None}), Step("Back", {METAL: TREE[METAL]}))
    blob = upstream.git("rev-parse", f"main:{METAL}")
    upstream.git("read-tree", "main")
    upstream.git("update-index", "--cacheinfo", f"120000,{blob},{METAL}")
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    link = upstream.git(*identity, "commit-tree", "-p", "main", "-m", "Link", upstream.git("write-tree"))
    replay, conditions = replayed(upstream, "main", "main~1", link)
    assert replay.visited == 3
    assert [condition.blocks for condition in conditions] == [False, True, True]


def files_read(repository: Repository, series_name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], set[str]]:
    """Files that a plan with nothing remembered reads, and those that :func:`paths_of` names."""
    series = load_series(series_name)
    commit = repository.resolve_commit("main")
    assert commit is not None
    read, seen = Tree.read, set[str]()

    def watch(tree: Tree, path: str) -> bytes | None:
        seen.add(path)
        return read(tree, path)

    with monkeypatch.context() as patch:
        patch.setattr(Tree, "read", watch)
        plan_stack(repository, series, commit, closure=False)
    return seen, set(paths_of(series))


def test_every_file_that_a_plan_reads_tells_trees_apart(upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream.grow()
    with Repository.open(upstream.path) as repository:
        seen, named = files_read(repository, str(upstream.series.manifest.parent), monkeypatch)
    assert seen
    assert seen <= named


@pytest.mark.exhaustive
@pytest.mark.needs_reference
def test_every_file_that_a_plan_of_the_real_series_reads_tells_trees_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = clone_of("2.11", tmp_path / "2.11.git")
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))  # nothing is remembered, everything is read
    with Repository.open(clone) as repository:
        seen, named = files_read(repository, "grid_sampler", monkeypatch)
    of_torchgen = {path for path in seen if path.startswith("torchgen/") or path.endswith("/tags.yaml")}
    assert METAL.rsplit("/", 1)[0] + "/GridSampler.metal" in seen
    assert seen - of_torchgen <= named


def test_a_series_without_one_of_its_files_would_miss_a_break(upstream: Upstream) -> None:
    """The seeded fault: a list of files that lacks one makes two trees one."""
    upstream.grow(Step("Drop", {METAL: None}))
    with Repository.open(upstream.path) as repository:
        replay = Replay(repository, upstream.series, lambda count: None)
        replay.paths = tuple(path for path in replay.paths if path != METAL)
        before, after = (
            replay.at(GitCommitHash(upstream.git("rev-parse", name)))["fade"] for name in ("main~1", "main")
        )
    assert before == after


def test_conditions_do_not_depend_on_the_line_an_anchor_is_at(upstream: Upstream) -> None:
    renamed = TREE[METAL].replace(b"void brighten(", b"void brighten_up(")
    upstream.grow(Step("Rename", {METAL: renamed}), Step("Push it down", {METAL: b"// one\n// two\n" + renamed}))
    replay, (first, second) = replayed(upstream, "main~1", "main")
    assert replay.visited == 2
    assert first == second
    details = [next(f.detail for f in c.facets.values() if f.conflict) for c in (first, second)]
    assert details[0] != details[1]


def test_an_edit_more_in_the_manifest_leaves_the_words_of_a_fingerprint_alone(upstream: Upstream) -> None:
    upstream.grow(Step("Rename", {METAL: TREE[METAL].replace(b"void brighten(", b"void brighten_up(")}))
    _, (before,) = replayed(upstream, "main")
    first, *others = upstream.series.changes
    upstream.series = replace(upstream.series, changes=(replace(first, edits=first.edits[1:]), *others))
    _, (after,) = replayed(upstream, "main")
    assert before != after
    assert before.digest_words() == after.digest_words()


def test_an_edit_that_stands_twice_is_two_facets(upstream: Upstream) -> None:
    upstream.grow()
    first, *others = upstream.series.changes
    upstream.series = replace(upstream.series, changes=(replace(first, edits=(*first.edits, first.edits[0])), *others))
    _, (condition,) = replayed(upstream, "main")
    assert len(condition.facets) == len(first.edits) + 2
    assert all(facet.name == name for name, facet in condition.facets.items())
