"""replace-definition in Python: a function that the series knows, with its decorators, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

from patchstack.edits import Status
from patchstack.edits.python_replace import ReplacePythonDefinition
from patchstack.manifest.overlay import Fragment
from patchstack.tree.git import Repository, Tree
from patchstack.tree.python import Step
from patchstack.tree.text import digest

OLD = "    @marked\n    def shade(self):\n        return 1\n"
NEW = "    @marked\n    @twice\n    def shade(self):\n        return 2\n"
TEXT = f"class Tint:\n{OLD}\n    def other(self):\n        return 1\n"
PATH = "test/tint.py"


def _plan(
    folder: Path, text: str, fragment: str = NEW, steps: tuple[str, ...] = ("Tint", "shade")
) -> tuple[Status, bytes]:
    subprocess.run(["git", "init", "-q", folder], check=True)
    with Repository.open(folder) as repository:
        empty = repository.git("hash-object", "-w", "-t", "tree", "--stdin", stdin=b"").decode().strip()
        tree = Tree(repository, empty, {PATH: text.encode()})  # type: ignore[arg-type]
        way = tuple(Step(kind, name) for kind, name in zip(("class", "function"), steps, strict=True))
        edit = ReplacePythonDefinition(
            path=PATH, steps=way, fragment=Fragment("shade", fragment.encode(), ""), replaces=(digest(OLD.encode()),)
        )
        outcome = edit.plan(tree)
        return outcome.status, outcome.after or b""


def test_the_function_goes_with_its_decorators_and_the_rest_stays(tmp_path: Path) -> None:
    assert _plan(tmp_path, TEXT) == (Status.APPLIES, TEXT.replace(OLD, NEW).encode())


def test_a_function_that_is_there_needs_nothing(tmp_path: Path) -> None:
    assert _plan(tmp_path, TEXT.replace(OLD, NEW)) == (Status.SATISFIED, b"")


def test_a_function_that_upstream_changed_is_not_replaced(tmp_path: Path) -> None:
    assert _plan(tmp_path, TEXT.replace("return 1\n\n", "return 3\n\n")) == (Status.DIFFERENT, b"")


def test_a_text_that_brings_another_member_is_refused(tmp_path: Path) -> None:
    assert _plan(tmp_path, TEXT, f"{NEW}\n    def more(self):\n        pass\n")[0] is Status.CONFLICT


def test_a_class_without_the_function_is_a_conflict(tmp_path: Path) -> None:
    assert _plan(tmp_path, "class Tint:\n    pass\n")[0] is Status.CONFLICT
