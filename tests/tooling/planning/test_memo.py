"""Plans are remembered by content: the same bytes give the same plan, anything else is planned anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edit_bench import edit_from, tree_of
from patchstack.edits import Edit, Outcome, Status
from patchstack.planning import memo
from patchstack.planning.memo import Memory, remembered, remembered_answer
from patchstack.tree.git import Tree

PATH = "torch/lists.py"
EDIT = edit_from(f"""{{kind: remove-python-entry, path: {PATH}, in: [{{assign: NAMES}}], entry: '"b"'}}""")
SOURCE = b'NAMES = ["a", "b", "c"]\n'


class Counted:
    """``EDIT.plan``, counting how often it is asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, tree: Tree) -> Outcome:
        self.calls += 1
        return EDIT.plan(tree)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def plan(source: bytes, plan_: Counted) -> Outcome:
    return remembered(EDIT, tree_of({PATH: source}), plan_)


def entries(cache: Path) -> list[Path]:
    return sorted((cache / "plans").rglob("*.json"))


@pytest.mark.parametrize(
    "source", [SOURCE, b'NAMES = ["a"]\n', b"OTHER = []\n", b'NAMES = ["b", "b"]\n', b"NAMES = [\n"]
)
def test_a_remembered_plan_equals_the_one_that_was_made(source: bytes) -> None:
    counted = Counted()
    assert plan(source, counted) == plan(source, counted) == EDIT.plan(tree_of({PATH: source}))
    assert counted.calls == 1


def test_other_bytes_are_planned_anew() -> None:
    counted = Counted()
    plan(SOURCE, counted)
    outcome = plan(SOURCE + b"# more\n", counted)
    assert counted.calls == 2
    assert outcome.after == b'NAMES = ["a", "c"]\n# more\n'


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"conflict": 3}', "null", "\x00"])
def test_an_entry_that_cannot_be_read_is_planned_anew(cache: Path, content: str) -> None:
    counted = Counted()
    first = plan(SOURCE, counted)
    (entry,) = entries(cache)
    entry.write_text(content)
    assert plan(SOURCE, counted) == first
    assert counted.calls == 2


def test_an_entry_whose_result_was_altered_is_planned_anew(cache: Path) -> None:
    counted = Counted()
    first = plan(SOURCE, counted)
    (entry,) = entries(cache)
    stored = json.loads(entry.read_text())
    stored["splice"][0] += 1
    entry.write_text(json.dumps(stored))
    assert plan(SOURCE, counted) == first
    assert counted.calls == 2


def test_without_a_cache_that_can_be_written_every_plan_is_made_anew(cache: Path) -> None:
    cache.mkdir()
    (cache / "plans").write_text("in the way")
    counted = Counted()
    assert plan(SOURCE, counted).status is Status.APPLIES
    assert plan(SOURCE, counted).status is Status.APPLIES
    assert counted.calls == 2


def test_an_answer_is_asked_for_once_for_the_same_question_and_bytes(cache: Path) -> None:
    asked = []

    def answer() -> bool:
        asked.append(1)
        return True

    assert [remembered_answer("q", b"x", answer), remembered_answer("q", b"x", answer)] == [True, True]
    assert len(asked) == 1
    remembered_answer("q", b"y", answer)
    remembered_answer("r", b"x", answer)
    assert len(asked) == 3
    for entry in entries(cache):
        entry.write_text('{"answer": "perhaps"}')
    assert remembered_answer("q", b"x", answer) is True
    assert len(asked) == 4


@pytest.mark.parametrize("change", [{"splice": []}, {"splice": [0]}, {"matches": 3}])
def test_an_entry_with_parts_missing_is_planned_anew(cache: Path, change: dict[str, object]) -> None:
    counted = Counted()
    first = plan(SOURCE, counted)
    (entry,) = entries(cache)
    entry.write_text(json.dumps({**json.loads(entry.read_text()), **change}))
    assert plan(SOURCE, counted) == first
    assert counted.calls == 2


def test_where_there_is_no_cache_every_plan_is_made_anew(cache: Path) -> None:
    cache.write_text("a file in the place of the folder")
    counted = Counted()
    assert plan(SOURCE, counted).status is Status.APPLIES
    assert remembered_answer("q", b"x", lambda: True)
    assert counted.calls == 1


class TestTheMemoryOfOneProcess:
    def test_plans_an_edit_on_the_same_bytes_once_even_without_a_cache(
        self, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cache.write_text("a file in the place of the folder")
        planned: list[bytes | None] = []
        plan_ = type(EDIT).plan

        def counted(edit: Edit, tree: Tree) -> Outcome:
            planned.append(tree.read(PATH))
            return plan_(EDIT, tree)

        monkeypatch.setattr(type(EDIT), "plan", counted)
        memory = Memory()
        trees = [tree_of({PATH: source}) for source in (SOURCE, SOURCE + b"# more\n", SOURCE)]
        first, other, again = (memory.outcome(EDIT, tree) for tree in trees)
        assert first is again
        assert first != other
        assert planned == [SOURCE, SOURCE + b"# more\n"]

    def test_plans_anew_where_the_file_is_not_there(self) -> None:
        memory = Memory()
        assert memory.outcome(EDIT, tree_of({PATH: SOURCE})).status is Status.APPLIES
        assert memory.outcome(EDIT, tree_of({"other.py": b""})).status is Status.CONFLICT

    def test_tells_two_edits_of_one_file_apart(self) -> None:
        other = edit_from(f"""{{kind: remove-python-entry, path: {PATH}, in: [{{assign: NAMES}}], entry: '"a"'}}""")
        memory, tree = Memory(), tree_of({PATH: SOURCE})
        assert memory.outcome(EDIT, tree).after != memory.outcome(other, tree).after

    def test_forgets_what_was_not_used_for_longest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memo, "_MOST_BYTES", 3 * len(SOURCE))
        memory = Memory()
        sources = [SOURCE + b"#%d\n" % number for number in range(9)]
        kept = [memory.outcome(EDIT, tree_of({PATH: source})) for source in sources]
        assert memory.outcome(EDIT, tree_of({PATH: sources[-1]})) is kept[-1]
        assert memory.outcome(EDIT, tree_of({PATH: sources[0]})) == kept[0]
        assert memory.outcome(EDIT, tree_of({PATH: sources[0]})) is not kept[0]
