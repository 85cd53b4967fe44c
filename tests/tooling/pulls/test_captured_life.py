"""The whole life of a series that was captured: commits, apply-stack, ghstack, a review, a newer main."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from checkouts import Lab
from checkouts.sources import HOST, NATIVE_FUNCTIONS, TESTS
from ghstack_hub import pull

from .conftest import Contributor

BRANCH = "stack/mine"
TITLES = ("[MPS] Add fade", "[MPS] Test fade")
MOMENTS = 50
"""For each of the two commands: 100 in all."""


class Author:
    """A contributor with two commits on a branch of their own, and the series that becomes of them."""

    def __init__(self, contributor: Contributor) -> None:
        self.contributor, self.checkout = contributor, contributor.checkout
        self.lab: Lab = contributor.checkout.lab
        self.series = self.lab.root / "mine"
        self.checkout.git("switch", "-q", "-c", "work")
        files = self.replaced(NATIVE_FUNCTIONS, "    CUDA: fade_cuda\n", "    CUDA: fade_cuda\n    MPS: fade_mps\n")
        fade = "\nTensor fade_mps(const Tensor& self, double amount) {\n  return self;\n}\n"
        files |= self.replaced(HOST, "  return self;\n}\n", f"  return self;\n}}\n{fade}")
        self.checkout.commit(f"{TITLES[0]}\n\nOn the GPU.", files)
        test = "\n    def test_fade(self):\n        assert self\n"
        self.checkout.commit(TITLES[1], {TESTS: (self.checkout.path / TESTS).read_text() + test})

    def replaced(self, path: str, old: str, new: str) -> dict[str, str]:
        text = (self.checkout.path / path).read_text()
        assert old in text
        return {path: text.replace(old, new, 1)}

    def words(self, command: str, *more: str) -> list[str]:
        return [command, *more, "--series", str(self.series), "--repo", str(self.checkout.path)]

    def run(self, command: str, *more: str) -> None:
        self.lab.run(*self.words(command, *more)).require()

    def apply(self) -> None:
        self.run("--onto", "main", "--checkout")

    def resolve(self, path: str, old: str, new: str) -> None:
        """Meet the conflict, put the text of the change where it belongs now, and let the series learn it."""
        report = self.lab.run(*self.words("--onto", "main", "--resolve", "--json")).require(3).json["resolve"]
        file = Path(report["worktree"]) / path
        assert "\n||||||| base\n" in file.read_text()
        upstream = self.checkout.git("show", f"main:{path}") + "\n"
        assert old in upstream
        file.write_text(upstream.replace(old, new, 1))
        done = self.lab.run("resolve", "--continue", "--repo", str(self.checkout.path), "--json").require().json
        assert (len(done["resolve"]["learned"]), done["resolve"]["not_learned"]) == (1, {})

    def amend_first(self, old: str, new: str) -> None:
        """Amend the first commit of the stack, as a reviewer wants it; ghstack's words in its message stay."""
        first, second = self.checkout.git("rev-list", "--reverse", "main..HEAD").split("\n")
        self.checkout.git("switch", "-q", "--detach", first)
        words = self.checkout.git("log", "-1", "--format=%B")
        self.checkout.commit(words, self.replaced(HOST, old, new), "--amend")
        self.checkout.git("cherry-pick", second)
        self.checkout.git("branch", "-f", BRANCH, "HEAD")
        self.checkout.git("switch", "-q", BRANCH)

    def text(self, path: str) -> str:
        return self.checkout.git("show", f"{BRANCH}:{path}")


@pytest.fixture
def author(contributor: Contributor) -> Author:
    return Author(contributor)


def test_captured_commits_keep_their_pull_requests_through_a_review_and_a_newer_main(author: Author) -> None:
    author.run("capture", "main..work")
    author.apply()
    assert author.contributor.submit_as_predicted() == dict.fromkeys(TITLES, "Created")
    opened = [(pull.number, pull.title) for pull in author.contributor.hub.pulls()]

    author.amend_first("  return self;\n}\n\n} // namespace", "  return self * amount;\n}\n\n} // namespace")
    author.lab.run(*author.words("--onto", "main", "--checkout")).refused(3, "apply-stack refresh")
    author.run("refresh")
    author.contributor.upstream_goes_on("Upstream has more to say.\n")
    author.checkout.commit("Rename a function", author.replaced(HOST, "brighten_mps", "brighten_on_mps"))
    host = (author.checkout.path / HOST).read_text()
    author.checkout.commit("Rename the namespace", {HOST: host.replace("at::native", "at::mps_native")})
    author.checkout.git("push", "-q", "origin", "main")
    ours = "Tensor fade_mps(const Tensor& self, double amount) {\n  return self * amount;\n}\n"
    author.resolve(HOST, "\n} // namespace at::mps_native\n", f"\n{ours}\n}} // namespace at::mps_native\n")
    author.apply()

    assert "return self * amount;" in author.text(HOST)
    assert "brighten_on_mps" in author.text(HOST)
    assert "{function: brighten_on_mps" in (author.series / "series.yaml").read_text()
    assert "test_fade" in author.text(TESTS)
    assert author.contributor.submit_as_predicted() == dict.fromkeys(TITLES, "Updated")
    assert [(pull.number, pull.title) for pull in author.contributor.hub.pulls()] == opened
    assert opened == [(made.number, made.title) for made in (pull(500, TITLES[0]), pull(501, TITLES[1]))]


def _content(folder: Path) -> dict[str, bytes]:
    files = (Path(top) / name for top, _, names in os.walk(folder) for name in names)
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def _put_back(folder: Path, content: dict[str, bytes]) -> None:
    for name in _content(folder):
        (folder / name).unlink()
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def _kill_at(author: Author, words: Sequence[str], moment: float) -> None:
    """Begin a run and kill it, if it did not end before."""
    process = author.lab.start(words)
    time.sleep(moment)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    author.lab.warm.wait()


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", ["capture", "refresh"])
def test_a_run_that_is_killed_leaves_the_series_as_it_was_or_complete(author: Author, command: str) -> None:
    author.run("capture", "main..work~1" if command == "capture" else "main..work")
    words = author.words("capture", "work~1..work")
    if command == "refresh":
        author.apply()
        author.amend_first("  return self;\n}\n\n} // namespace", "  return self * amount;\n}\n\n} // namespace")
        words = author.words("refresh")
    record = author.checkout.git_dir / "apply-stack" / "made.jsonl"
    known = record.read_bytes() if record.exists() else b""
    before, refs = _content(author.series), author.checkout.git("for-each-ref")
    started = time.perf_counter()
    author.lab.run(*words).require()
    taken, after = time.perf_counter() - started, _content(author.series)
    assert before != after
    seen = set[str]()
    for number in range(2 * MOMENTS):
        if number >= MOMENTS and "after" in seen:
            break  # only a machine that became slower meanwhile needs more time
        _put_back(author.series, before)
        if known:
            record.write_bytes(known)
        _kill_at(author, words, taken * 1.1 * number / MOMENTS)
        found = _content(author.series)
        assert found in (before, after), f"moment {number}"
        seen.add("before" if found == before else "after")
        assert author.checkout.git("for-each-ref") == refs
    assert seen == {"before", "after"}


class Conflict:
    """A captured series on its branch, and a main on which it meets a conflict, which can be begun again and again."""

    def __init__(self, author: Author) -> None:
        self.author, self.checkout = author, author.checkout
        author.run("capture", "main..work")
        author.apply()
        author.checkout.git("switch", "-q", "main")
        author.checkout.commit("Rename a function", author.replaced(HOST, "brighten_mps", "brighten_on_mps"))
        host = (author.checkout.path / HOST).read_text()
        author.checkout.commit("Rename the namespace", {HOST: host.replace("at::native", "at::mps_native")})
        self._record = self.checkout.git_dir / "apply-stack" / "made.jsonl"
        self._known, self.series = self._record.read_bytes(), _content(author.series)
        self._tip, self.refs = self.checkout.tip(BRANCH), self.checkout.git("for-each-ref")
        self.begin = author.words("--onto", "main", "--resolve", "--json")
        self.go_on = ["resolve", "--continue", "--repo", str(self.checkout.path)]
        self.abort = ["resolve", "--abort", "--repo", str(self.checkout.path)]

    def reset(self) -> None:
        """Series, branch and record as they were before the resolve."""
        _put_back(self.author.series, self.series)
        self._record.write_bytes(self._known)
        self.checkout.git("update-ref", f"refs/heads/{BRANCH}", self._tip)

    def open(self) -> None:
        """Meet the conflict, and answer it in the worktree."""
        report = self.author.lab.run(*self.begin).require(3).json["resolve"]
        ours = "Tensor fade_mps(const Tensor& self, double amount) {\n  return self;\n}\n"
        end = "\n} // namespace at::mps_native\n"
        text = self.checkout.git("show", f"main:{HOST}") + "\n"
        (Path(report["worktree"]) / HOST).write_text(text.replace(end, f"\n{ours}{end}", 1))

    def require_no_trace(self) -> None:
        assert len(self.checkout.git("worktree", "list").split("\n")) == 1
        assert not (self.checkout.git_dir / "worktrees").exists()
        assert not (self.checkout.git_dir / "apply-stack" / "resolve.json").exists()
        assert not list(self.author.lab.home.rglob("mine-*"))


@pytest.fixture
def conflict(author: Author) -> Conflict:
    return Conflict(author)


_MOMENTS = pytest.mark.parametrize("moments", [4, pytest.param(33, marks=pytest.mark.exhaustive)])


def _time_of(author: Author, words: Sequence[str], status: int) -> float:
    started = time.perf_counter()
    author.lab.run(*words).require(status)
    return time.perf_counter() - started


@_MOMENTS
def test_a_killed_continue_leaves_series_and_branch_as_they_were_or_complete(conflict: Conflict, moments: int) -> None:
    author, checkout = conflict.author, conflict.checkout
    conflict.open()
    taken = _time_of(author, conflict.go_on, 0)
    after, refs = _content(author.series), checkout.git("for-each-ref")
    assert (after == conflict.series, refs == conflict.refs) == (False, False)
    conflict.require_no_trace()
    for number in range(moments):
        conflict.reset()
        conflict.open()
        _kill_at(author, conflict.go_on, taken * 1.1 * number / moments)
        assert _content(author.series) in (conflict.series, after), f"moment {number}"
        assert checkout.git("for-each-ref") in (conflict.refs, refs), f"moment {number}"
        again = author.lab.run(*conflict.go_on)
        assert again.status == 0 or "nothing is being resolved" in again.err, again.err
        assert (_content(author.series), checkout.git("for-each-ref")) == (after, refs), f"moment {number}"
        conflict.require_no_trace()


@_MOMENTS
@pytest.mark.parametrize("command", ["--resolve", "--abort"])
def test_a_killed_resolve_or_abort_changes_nothing_and_can_be_aborted(
    conflict: Conflict, command: str, moments: int
) -> None:
    author = conflict.author
    taken = _time_of(author, conflict.begin, 3)
    ended = _time_of(author, conflict.abort, 0)
    for number in range(moments):
        if command == "--abort":
            conflict.open()
            _kill_at(author, conflict.abort, ended * 1.1 * number / moments)
        else:
            _kill_at(author, conflict.begin, taken * 1.1 * number / moments)
            again = author.lab.run(*conflict.begin).require(3)
            assert "waits for you" in again.out or '"worktree": "' in again.out or "is under way" in again.err
        again = author.lab.run(*conflict.abort)
        assert again.status == 0 or "nothing is being resolved" in again.err, again.err
        assert (_content(author.series), conflict.checkout.git("for-each-ref")) == (conflict.series, conflict.refs)
        conflict.require_no_trace()
