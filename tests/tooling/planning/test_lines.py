"""Lines in a plan are those of the files in the onto commit, however many edits were planned before."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from edit_bench import commit_of, write_series
from patchstack.cli.report import edit_diff
from patchstack.edits.cxx_anchor import CxxPlace
from patchstack.edits.cxx_fragment import PlaceCxxFragment
from patchstack.errors import TreeError
from patchstack.manifest.overlay import Fragment
from patchstack.planning import StackPlan, plan_stack
from patchstack.planning.lines import AS_THEY_ARE

NATIVE = "aten/src/ATen/native/native_functions.yaml"
CODE = "k/Tint.metal"
TESTS = "test/test_mps.py"
TREE = {
    NATIVE: b"- func: tint(T s) -> T\n  dispatch:\n    CPU: a\n\n- func: wash(T s) -> T\n  dispatch:\n    CPU: b\n",
    CODE: b"""\
template <typename T>
T first(T a) {
  return a;
}

template <typename T>
T second(T a) {
  return a;
}

template <typename T>
T third(T a) {
  return first(a);
}
""",
    TESTS: b"""\
class TestMPS:
    def test_a(self):
        pass


class TestLater:
    def test_b(self):
        pass
""",
}
OVERLAY = {
    CODE: b"""\
// fragment: between
template <typename T>
T between(T a) {
  return a;
}
// end fragment
""",
    TESTS: b"""\
class TestMPS:
    # fragment: more
    def test_more(self):
        pass
    # end fragment
""",
}
OTHER = b"""\
// fragment: other
template <typename T>
T other(T a) {
  return a;
}
// end fragment
"""
MARKER = f"{{defines: other, path: {CODE}}}"
BELOW = f"""\
format: 1
changes:
  - id: below
    title: Below
    message: message.md
    upstream: [{{defines: upstreams_own, path: {CODE}}}]
    edits:
      - {{kind: add-dispatch-key, path: {NATIVE}, op: tint, key: MPS, function: tint_mps}}
      - {{kind: place-fragment, path: {CODE}, fragment: between, after: {{function: first}}}}
      - {{kind: place-fragment, path: {TESTS}, fragment: more, end_of: [{{class: TestMPS}}]}}
  - id: above
    title: Above
    message: message.md
    upstream: [{MARKER}]
    edits:
"""
ABOVE = {
    "place": f"{{kind: place-fragment, path: {CODE}, fragment: other, after: {{function: NAME}}}}",
    "remove": f"{{kind: remove-unused-definition, path: {CODE}, definition: {{function: NAME}}}}",
    "replace": f"{{kind: replace-definition, path: {CODE}, fragment: other, definition: {{function: NAME}}, "
    "replaces: ['sha256:0000000000000000']}",
    "dispatch": f"{{kind: add-dispatch-key, path: {NATIVE}, op: NAME, key: MPS, function: other_mps}}",
    "member": f"{{kind: remove-class-member, path: {TESTS}, in: [{{class: TestLater}}], member: NAME}}",
}

Above = Callable[..., StackPlan]


@pytest.fixture
def above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Above:
    """Plan the edit ``kind`` of the thing ``name`` above a change that put text into every file."""
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))

    def planned(
        kind: str, name: str, tree: dict[str, bytes] = TREE, *, times: int = 1, marker: str = MARKER
    ) -> StackPlan:
        manifest = BELOW.replace(MARKER, marker) + f"      - {ABOVE[kind].replace('NAME', name)}\n" * times
        overlay = {**OVERLAY, CODE: OVERLAY[CODE] + OTHER} if "fragment: other" in manifest else OVERLAY
        series = write_series(tmp_path / "tints", manifest, overlay)
        repository, commit = commit_of(tmp_path / f"tree{len(list(tmp_path.glob('tree*')))}", tree)
        with repository:
            return plan_stack(repository, series, commit)

    return planned


@pytest.mark.parametrize(
    ("kind", "name", "path", "text"),
    [
        ("place", "second", CODE, b"template <typename T>\nT second"),
        ("remove", "second", CODE, b"template <typename T>\nT second"),
        ("dispatch", "wash", NATIVE, b"- func: wash"),
        ("member", "test_b", TESTS, b"    def test_b"),
    ],
)
def test_a_match_below_the_text_of_another_change_has_the_line_of_the_onto_commit(
    above: Above, kind: str, name: str, path: str, text: bytes
) -> None:
    (edit,) = above(kind, name).changes[1].edits
    line = TREE[path][: TREE[path].index(text)].count(b"\n") + 1
    assert (edit.outcome.matches, edit.outcome.brought_by) == ((line,), ())


def test_the_nearest_candidate_and_the_digest_conflict_have_the_line_of_the_onto_commit(above: Above) -> None:
    (edit,) = above("place", "secnd").changes[1].edits
    assert [str(spot) for spot in edit.outcome.conflict.nearest] == ["function second at line 6"]
    (edit,) = above("replace", "third").changes[1].edits
    assert edit.outcome.conflict.matches == (11,)
    assert "(line 11)" in str(edit.outcome.conflict)


def test_a_use_that_keeps_a_definition_has_the_line_of_the_onto_commit(above: Above) -> None:
    (edit,) = above("remove", "first").changes[1].edits
    assert edit.outcome.said == "left: it is used at line 13"


def test_text_that_a_change_below_brought_is_named_by_its_change(above: Above) -> None:
    (edit,) = above("place", "betwen").changes[1].edits
    assert "function between in text of change below" in map(str, edit.outcome.conflict.nearest)
    (edit,) = above("place", "between").changes[1].edits
    assert (edit.outcome.matches, edit.outcome.brought_by) == ((0,), ("below",))


def test_a_place_that_is_there_once_in_the_tree_and_once_in_a_change_has_both(above: Above) -> None:
    tree = {**TREE, CODE: TREE[CODE] + b"\nnamespace other {\nint between(int a) {\n  return a;\n}\n}\n"}
    (edit,) = above("place", "between", tree).changes[1].edits
    assert edit.outcome.conflict.problem.startswith("2 places match")
    assert "(line 17, in text of change below)" in str(edit.outcome.conflict)


def test_an_edit_of_the_same_change_moves_no_line_either(above: Above) -> None:
    tree = {**TREE, CODE: TREE[CODE].replace(b"T third(T a) {\n  return first(a);\n}", b"T third(T);")}
    plan = above("remove", "second", tree, times=2)
    assert [edit.outcome.matches for edit in plan.changes[1].edits] == [(6,), ()]


def test_the_hunks_of_the_diff_begin_at_lines_of_the_onto_commit(above: Above) -> None:
    (edit,) = above("place", "third").changes[1].edits
    hunks = [line for line in edit_diff(edit) if line.startswith("@@")]
    assert hunks == ["@@ line 12 @@"]
    shown = edit_diff(edit)[edit_diff(edit).index(hunks[0]) + 1]
    assert shown == " " + TREE[CODE].splitlines()[11].decode()


def test_what_upstream_has_of_a_carried_change_moves_nothing_for_the_next(above: Above) -> None:
    carried = {**TREE, CODE: TREE[CODE] + b"\nint upstreams_own(int a) {\n  return 0;\n}\n"}
    (edit,) = above("place", "third", carried).changes[1].edits
    assert edit.outcome.matches == (11,)


def test_every_line_of_a_file_is_found_again_after_the_edits(above: Above) -> None:
    """The lines that the series left alone, each of which stands once in the file, by what they say."""
    body = b"".join(b"int value_%d() {\n  return %d;\n}\n\n" % (n, n) for n in range(60))
    tree = {**TREE, CODE: TREE[CODE] + b"\n" + body}
    plan = above("remove", "value_7", tree)
    (edit,) = plan.changes[1].edits
    lines = edit.lines
    now = (edit.before or b"").splitlines()
    then = tree[CODE].splitlines()
    for number, text in enumerate(now, 1):
        if re.search(rb"value_\d+|second|third", text):
            assert lines.origin(CODE, number) == (then.index(text) + 1, "")


def test_an_entry_that_cannot_be_read_is_told_with_its_line_though_a_change_below_added_lines_above(
    above: Above,
) -> None:
    broken = TREE[NATIVE] + b"\n- func: wet(T s) -> T\n  dispatch:\n    CPU: a: b\n"
    with pytest.raises(TreeError) as caught:
        above("place", "third", {**TREE, NATIVE: broken}, marker="{dispatch: wet, key: MPS}")
    line = broken[: broken.index(b"CPU: a: b")].count(b"\n") + 1
    assert caught.value.where == f"{NATIVE}:{line}"


@pytest.mark.parametrize("known", [True, False], ids=["the text is known", "the text is not known"])
def test_the_lines_that_stay_keep_their_numbers_wherever_others_come_and_go(known: bool) -> None:
    chance = random.Random(1)
    for _ in range(2000):
        old = [b"old %d" % number for number in range(chance.randint(0, 8))]
        start = chance.randint(0, len(old))
        new = [b"new %d" % number for number in range(chance.randint(0, 3))]
        end = chance.choice([b"", b"\n"])
        before = b"\n".join(old) + end
        after = b"\n".join([*old[:start], *new, *old[chance.randint(start, len(old)) :]]) + end
        fragment = Fragment("new", b"\n".join(new) if known else b"", "")
        edit = PlaceCxxFragment(path="a.metal", fragment=fragment, place=CxxPlace("end_of", "file", "end"))
        lines = AS_THEY_ARE.edited(edit, "mine", before, after)
        for number, text in enumerate(after.split(b"\n"), 1):
            kind, _, rest = text.partition(b" ")
            if kind:
                wanted = (int(rest) + 1, "") if kind == b"old" else (0, "mine")
                assert lines.origin("a.metal", number) == wanted, (before, after)
