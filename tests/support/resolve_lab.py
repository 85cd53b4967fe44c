"""A series that was captured and applied, and a main that moves on in the way of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capture_lab import Checkout, run
from documents import document

HOST, TEST, NOTES = "ops/Tint.mm", "test/test_tint.py", "docs/tint.md"
FUNCTIONS = "aten/src/ATen/native/native_functions.yaml"
BACKWARD = "Tensor tint_backward_mps(const Tensor& grad) {\n  return grad;\n}\n"
TITLES = ("[MPS] Add tint_backward", "[MPS] Test tint_backward")


class Resolving:
    """A series of two changes that is on ``main`` as ``stack/mine``.

    Attributes:
        place: the checkout.
        folder: the series.
        cache: where worktrees are made.
    """

    def __init__(self, place: Checkout, folder: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.place, self.folder, self.cache, self._capsys = place, folder, cache, capsys
        place.git("checkout", "-q", "-b", "work")
        key = ("    CPU: tint_backward_cpu\n", "    CPU: tint_backward_cpu\n    MPS: tint_backward_mps\n")
        files = place.replaced(FUNCTIONS, *key) | place.replaced(
            HOST, "  return out;\n}\n", f"  return out;\n}}\n\n{BACKWARD}"
        )
        place.commit(f"{TITLES[0]}\n\nThe gradient.", files)
        test = place.replaced(TEST, "2)\n", "2)\n\n    def test_backward(self):\n        self.assertTrue(backward())\n")
        place.commit(TITLES[1], test | place.replaced(NOTES, "Line 7 of", "The seventh line of"))
        place.git("checkout", "-q", "main")
        self.ok("capture", "main..work", "--series", folder)
        self.ok("--onto", "main", "--series", folder)
        self.old = place.git("rev-parse", "main")
        self.old_files = self.branch_files()

    def ok(self, *arguments: Any) -> Any:
        code, out, err = self.run(*arguments, "--json")
        assert code == 0, (out, err)
        return document(out)

    def run(self, *arguments: Any) -> tuple[int, str, str]:
        where = () if "--repo" in arguments else ("--repo", self.place.path)
        return run(self._capsys, *arguments, *where)

    def apply(self, *more: str) -> Any:
        return self.ok("--onto", "main", "--series", self.folder, *more)

    def meets_a_conflict(self, *more: str) -> Any:
        """``--resolve``, which opens a worktree; the report of it."""
        code, out, err = self.run("--onto", "main", "--series", self.folder, "--resolve", "--json", *more)
        assert code == 3, (out, err)
        found = document(out)["resolve"]
        assert found["worktree"], out
        return found

    def goes_on(self) -> Any:
        return self.ok("resolve", "--continue")

    def refused(self, *arguments: str) -> str:
        """A command that ends with exit code 3 and one sentence."""
        code, out, err = self.run(*arguments)
        assert (code, err.count("\n")) == (3, 1), (code, out, err)
        return err

    def edit(self, worktree: str, path: str, old: str, new: str) -> None:
        file = Path(worktree) / path
        assert old in file.read_text(), file.read_text()
        file.write_text(file.read_text().replace(old, new, 1))

    def branch_files(self, branch: str = "stack/mine") -> list[dict[str, str]]:
        commits = self.place.git("rev-list", "--reverse", f"main..{branch}").split("\n")
        return [self.place.files_of(commit) for commit in commits]

    def require_no_trace(self) -> None:
        """No worktree, no state, and no branch but the known ones."""
        assert len(self.place.git("worktree", "list").split("\n")) == 1
        assert not (self.place.path / ".git" / "worktrees").exists()
        assert not (self.place.path / ".git" / "apply-stack" / "resolve.json").exists()
        assert not (self.cache / "resolve").exists()
        assert self.place.git("status", "--porcelain") == ""
        assert "refs/apply-stack" not in self.place.git("for-each-ref")

    def require_learned(self) -> None:
        """Without anybody's help, the series gives the branch on main, and on the old main what it gave there."""
        wanted = self.branch_files()
        self.apply("--branch", "again")
        assert self.branch_files("again") == wanted
        self.place.git("checkout", "-q", "--detach", self.old)
        self.place.git("branch", "-f", "main", self.old)
        self.apply("--branch", "before")
        assert self.branch_files("before") == self.old_files


def forget_bases(folder: Path) -> None:
    """Take the blob ids out of a series, as if nobody knew what it was written against."""
    lines = (folder / "series.yaml").read_text().split("\n")
    start = lines.index("bases:")
    end = next(n for n in range(start + 1, len(lines)) if not lines[n].startswith(" "))
    (folder / "series.yaml").write_text("\n".join([*lines[:start], *lines[end:]]))


@pytest.fixture
def resolving(
    place: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Resolving:
    """A series on ``main``, and a cache of the test's own for the worktrees."""
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
    return Resolving(place, tmp_path / "mine", tmp_path / "cache", capsys)


def rename_anchor(resolving: Resolving) -> None:
    """Upstream renames the function that the fragment stands behind, and closes it another way."""
    text = (resolving.place.path / HOST).read_text().replace("Tensor tint_mps(", "Tensor tint_on_mps(")
    resolving.place.commit("Rename", {HOST: text.replace("  return out;\n}\n", "  return out;\n} // on\n")})


def put_in(resolving: Resolving, found: dict[str, Any]) -> None:
    """Put the fragment that lies beside its file into the file, behind the renamed function."""
    worktree = Path(found["worktree"])
    (one,) = found["files"]
    fragment = (worktree / one["beside"]).read_text().strip()
    resolving.edit(str(worktree), HOST, "} // on\n", f"}} // on\n\n{fragment}\n")
