"""The commits that a report of a conflict names: what ``git log -L`` says, and what ``drift`` would."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from checkouts.sources import HOST, METAL, NATIVE_FUNCTIONS, TESTS, TREE
from patchstack.drift.behind import Behind, commits_behind
from patchstack.planning import plan_stack
from patchstack.tree.git import Repository
from upstream_history import Step

from .conftest import Upstream

OWN = b"""\
Tensor fade_mps(const Tensor& self, double amount) {
  return self * amount;
}

"""


def host(*replacements: tuple[bytes, bytes]) -> dict[str, bytes | None]:
    return {HOST: changed(TREE[HOST], (b"} // namespace at", OWN + b"} // namespace at"), *replacements)}


def changed(text: bytes, *replacements: tuple[bytes, bytes]) -> bytes:
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new, 1)
    return text


BODY = (b"self * amount", b"self.mul(amount)")
MENTION = (b"  paint(out);", b"  paint(out); // unlike fade_mps")
REWRITTEN = (
    Step("Bring a fade of upstream's own (#1)", host()),
    Step("Rewrite it (#2)", host(BODY)),
    Step("Mention it elsewhere (#3)", host(BODY, MENTION)),
    Step("Say nothing about it (#4)"),
)
RENAMED = changed(TREE[METAL], (b"void brighten(", b"void brighten_up("))


def behind(path: Path, upstream: Upstream, file: str, **options: float) -> Behind:
    """What is told about the one conflict in a file."""
    with Repository.open(path) as repository:
        plan = plan_stack(repository, upstream.series, repository.commit("main").hash)
        (conflict,) = [conflict for _, conflict in plan.conflicts() if conflict.path == file]
        found = commits_behind(repository, upstream.series, plan, **options)
        return next((said for (_, known), said in found.items() if known == conflict), Behind())


def test_last_touched_is_what_git_log_says_of_the_lines_and_the_anchor_broke_with_what_drift_finds(
    upstream: Upstream,
) -> None:
    upstream.grow(*REWRITTEN)
    found = behind(upstream.path, upstream, HOST)
    line = host(BODY, MENTION)[HOST].splitlines().index(OWN.splitlines()[0]) + 1
    said = upstream.git("log", "-1", "-s", "--format=%H", f"-L{line},{line + 2}:{HOST}", "main")
    assert found.touched.startswith(said[:12])
    assert found.touched.endswith("Rewrite it (#2)")
    (turn,) = [turn for _, turn in upstream.drift().findings if any(part.after.path == HOST for part in turn.parts)]
    assert found.broke == str(turn.commit)
    assert found.broke.endswith("Bring a fade of upstream's own (#1)")
    assert list(found.lines) == [f"last touched upstream by {found.touched}", f"the anchor broke with {found.broke}"]


def test_a_commit_that_did_both_is_named_once(upstream: Upstream) -> None:
    upstream.grow(REWRITTEN[0], REWRITTEN[3])
    found = behind(upstream.path, upstream, HOST)
    assert (found.touched[-4:], found.broke) == ("(#1)", "")


def test_a_definition_that_is_gone_was_last_touched_by_the_commit_that_took_it_away(upstream: Upstream) -> None:
    later = changed(RENAMED, (b"+ 1.0f", b"+ 2.0f"))
    upstream.grow(Step("Rename it (#1)", {METAL: RENAMED}), Step("Brighten more, unlike brighten (#2)", {METAL: later}))
    found = behind(upstream.path, upstream, METAL)
    assert (found.touched[-4:], found.broke) == ("(#1)", "")


def test_the_lines_of_a_python_class_and_of_a_yaml_entry_are_theirs_alone(upstream: Upstream) -> None:
    entry = changed(TREE[NATIVE_FUNCTIONS], (b"fade_cuda\n", b"fade_cuda\n    MPS: fade_metal\n"))
    test = TREE[TESTS] + b"\n    def test_fade(self):\n        assert not self\n"
    after = test + b"\n    def test_more(self):\n        assert self\n"
    more = changed(entry, (b"CPU, CUDA: brighten", b"CPU, CUDA, XPU: brighten"))
    upstream.grow(
        Step("Register and test (#1)", {NATIVE_FUNCTIONS: entry, TESTS: test}),
        Step("Around them (#2)", {NATIVE_FUNCTIONS: more, TESTS: after}),
    )
    for file in (NATIVE_FUNCTIONS, TESTS):
        assert behind(upstream.path, upstream, file).touched.endswith("(#1)"), file


def clone(upstream: Upstream, tmp_path: Path, *options: str) -> Path:
    upstream.git("config", "uploadpack.allowFilter", "true")
    path = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", *options, f"file://{upstream.path}", str(path)], check=True)
    return path


def test_a_shallow_clone_does_not_blame_the_commit_at_which_it_is_cut_off(upstream: Upstream, tmp_path: Path) -> None:
    upstream.grow(*REWRITTEN)
    path = clone(upstream, tmp_path, "--depth=1")
    assert behind(path, upstream, HOST).touched.startswith("(unknown: this clone is shallow")
    upstream.grow(Step("Rename it (#1)", {METAL: RENAMED}), Step("Nothing (#2)"))
    subprocess.run(["git", "fetch", "-q", "--depth=1", "origin", "+main:main", "-u"], cwd=path, check=True)
    assert behind(path, upstream, METAL).touched.startswith("(unknown: this clone is shallow")


def test_a_partial_clone_says_that_it_lacks_the_files_and_fetches_none(upstream: Upstream, tmp_path: Path) -> None:
    upstream.grow(*REWRITTEN)
    path = clone(upstream, tmp_path, "--filter=blob:none")
    found = behind(path, upstream, HOST)
    assert found == Behind("(unknown: this clone does not hold the files of earlier commits)")


def test_a_search_without_time_says_so(upstream: Upstream) -> None:
    upstream.grow(*REWRITTEN)
    assert behind(upstream.path, upstream, HOST, budget=0).touched.startswith("(unknown: ")


def test_a_conflict_that_always_was_is_blamed_on_nobody(upstream: Upstream) -> None:
    upstream.grow(Step("Rename it (#1)", {METAL: RENAMED}))
    tree = upstream.git("rev-parse", "main^{tree}")
    first = upstream.git("-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", tree, "-m", "All at once")
    upstream.git("update-ref", "refs/heads/main", first)
    assert behind(upstream.path, upstream, METAL) == Behind()


@pytest.mark.parametrize("option", ["log.showSignature=true", "diff.external=false", "core.quotePath=true"])
def test_no_setting_of_the_user_gets_into_the_answer(upstream: Upstream, option: str) -> None:
    upstream.grow(*REWRITTEN)
    upstream.git("config", *option.split("="))
    assert behind(upstream.path, upstream, HOST).touched.endswith("Rewrite it (#2)")
