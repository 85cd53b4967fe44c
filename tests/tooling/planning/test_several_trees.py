"""One edit for old and new trees: several places that are tried in order, and several texts with their conditions."""

from __future__ import annotations

from pathlib import Path

import pytest

from edit_bench import applied, commit_of, edit_from, plan_on, write_series
from patchstack.cli.report import _edit_lines
from patchstack.edits import Status
from patchstack.errors import ManifestError
from patchstack.planning import ChangeState, StackPlan, plan_stack
from patchstack.tree.native_functions import FUNCTIONS_PATH

ADDED = b"void added() {}\n"
PLACES = "places: [{after: {function: new_name}}, {after: {function: old_name}}, {end_of: {namespace: n}}]"
EDIT = f"{{kind: place-fragment, path: a.mm, fragment: new, {PLACES}}}"


class TestPlaces:
    @pytest.mark.parametrize(
        ("source", "line"),
        [
            (b"void old_name() {}\nvoid new_name() {}\n", b"void new_name() {}\n"),
            (b"void old_name() {}\nvoid last() {}\n", b"void old_name() {}\n"),
            (b"void new_name() {}\nvoid new_name(int a) {}\nvoid old_name() {}\n", b"void old_name() {}\n"),
            (b"namespace n {\nvoid last() {}\n}\n", b"void last() {}\n"),
        ],
        ids=["the first", "the second", "the second where the first is ambiguous", "the last"],
    )
    def test_the_first_that_the_tree_has_is_taken(self, source: bytes, line: bytes) -> None:
        after = applied(edit_from(EDIT, {"a.mm": ADDED}), source)
        assert line + b"\n" + ADDED in after

    def test_where_there_is_none_the_conflict_names_them_all(self) -> None:
        outcome = plan_on(edit_from(EDIT, {"a.mm": ADDED}), b"int a;\n")
        assert outcome.conflict is not None
        assert outcome.conflict.problem == (
            "0 places match 'after function new_name', expected 1; nor is there what else may do: "
            "after function old_name, end of namespace n"
        )

    def test_a_text_that_is_there_is_found_wherever_it_stands(self) -> None:
        source = b"void old_name() {}\n\n" + ADDED
        assert plan_on(edit_from(EDIT, {"a.mm": ADDED}), source).status is Status.SATISFIED

    def test_a_name_clashes_in_the_scope_of_the_place_that_is_taken(self) -> None:
        source = b"void old_name() {}\nnamespace m {\nvoid added() { run(); }\n}\n"
        assert plan_on(edit_from(EDIT, {"a.mm": ADDED}), source).status is Status.APPLIES

    def test_the_definition_to_replace_may_have_several_names(self) -> None:
        entry = (
            "{kind: replace-definition, path: a.mm, fragment: new, replaces: ['sha256:0000000000000000'], "
            "places: [{definition: {function: new_name}}, {definition: {function: old_name}}]}"
        )
        outcome = plan_on(edit_from(entry, {"a.mm": ADDED}), b"void old_name() {}\n")
        assert outcome.status is Status.DIFFERENT
        replaced = edit_from(entry, {"a.mm": b"void old_name() { run(); }\n"})
        assert "old_name" in str(plan_on(replaced, b"void old_name() {}\n").conflict)

    @pytest.mark.parametrize(
        "places",
        [
            "places: []",
            "places: [{after: {function: f}}], after: {function: f}",
            "places: [{after: {function: f}}, {start_of: {function: f}}]",
        ],
    )
    def test_that_are_none_are_refused_on_load(self, places: str) -> None:
        with pytest.raises(ManifestError):
            edit_from(f"{{kind: place-fragment, path: a.mm, fragment: new, {places}}}", {"a.mm": ADDED})


MANIFEST = """\
format: 1
changes:
  - id: hook
    title: Hook
    message: message.md
    upstream: [{defines: hook, path: a.mm}]
    edits:
      - kind: place-fragment
        path: a.mm
        after: {function: shade}
        fragments:
          - fragment: checked
            only_where: [{defines: check, path: b.mm, reason: upstream checks first}]
          - fragment: wide
            only_where: [{defines: wide_index, path: a.mm, reason: the index may be wide}]
          - fragment: plain
      - kind: place-fragment
        path: b.mm
        fragment: beside
        end_of: {file: end}
        only_where: [{defines: check, path: b.mm, reason: it is beside the check}]
"""
TEXTS = {name: f"void hook() {{\n  {name}();\n}}\n" for name in ("checked", "wide", "plain")}
OVERLAY = {
    "a.mm": "".join(f"// fragment: {name}\n{text}// end fragment\n" for name, text in TEXTS.items()).encode(),
    "b.mm": b"// fragment: beside\nvoid beside() {}\n// end fragment\n",
}
SHADE, WIDE, CHECK = b"void shade() {}\n", b"void wide_index() {}\n", b"void check() {}\n"


def planned(folder: Path, host: bytes, other: bytes, manifest: str = MANIFEST) -> StackPlan:
    repository, onto = commit_of(folder / "tree", {FUNCTIONS_PATH: b"", "a.mm": host, "b.mm": other})
    return plan_stack(repository, write_series(folder / "s", manifest, OVERLAY), onto, closure=False)


@pytest.mark.parametrize(
    ("host", "other", "text"),
    [
        (SHADE + WIDE, CHECK, "checked"),
        (SHADE + WIDE, b"", "wide"),
        (SHADE, CHECK, "checked"),
        (SHADE, b"", "plain"),
    ],
)
def test_the_first_text_whose_conditions_hold_lands(tmp_path: Path, host: bytes, other: bytes, text: str) -> None:
    plan = planned(tmp_path, host, other)
    (change,) = plan.changes
    assert (change.state, change.conflicts) == (ChangeState.ABSENT, ())
    after = change.tree.read("a.mm") or b""
    assert [name for name in TEXTS if TEXTS[name].encode() in after] == [text]
    assert (b"beside" in (change.tree.read("b.mm") or b"")) == (other == CHECK)


def test_the_report_tells_the_place_that_was_taken(tmp_path: Path) -> None:
    place = "places: [{after: {function: wide_index}}, {after: {function: shade}}]"
    manifest = MANIFEST.replace("after: {function: shade}", place, 1)
    assert manifest != MANIFEST
    (change,) = planned(tmp_path, SHADE, b"", manifest).changes
    told = [line for plan in change.edits for line in _edit_lines(plan) if "plain" in line]
    assert told[0].startswith("      a.mm: add 'plain' after function shade")


def test_what_is_left_out_is_told_with_its_reason_when_asked_for(tmp_path: Path) -> None:
    (change,) = planned(tmp_path, SHADE + WIDE, b"").changes
    told = [(edit.outcome.status, edit.outcome.note) for edit in change.edits]
    assert told == [
        (Status.NOT_APPLICABLE, "left out, it is for trees in which b.mm defines check (upstream checks first)"),
        (Status.APPLIES, ""),
        (
            Status.NOT_APPLICABLE,
            "left out, another text is for trees in which a.mm defines wide_index (the index may be wide)",
        ),
        (Status.NOT_APPLICABLE, "left out, it is for trees in which b.mm defines check (it is beside the check)"),
    ]
    assert all(list(_edit_lines(edit)) for edit in change.edits)


def test_a_stack_made_again_on_itself_has_the_change_already(tmp_path: Path) -> None:
    (first,) = planned(tmp_path / "one", SHADE + WIDE, b"").changes
    (again,) = planned(tmp_path / "two", first.tree.read("a.mm") or b"", b"").changes
    assert again.state is ChangeState.IDENTICAL


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "          - fragment: checked\n            only_where:",
            "          - fragment: plain\n          - fragment: checked\n            only_where:",
            "would never land",
        ),
        (
            "kind: place-fragment\n        path: a.mm",
            "kind: create-file\n        path: a.mm",
            "'fragments' does not go with",
        ),
        ("        fragments:\n", "        fragment: plain\n        fragments:\n", "unknown key 'fragment'"),
        ("reason: upstream checks first", "reasons: none", "unknown key 'reasons'"),
    ],
)
def test_texts_that_cannot_be_told_apart_are_refused_on_load(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in MANIFEST
    with pytest.raises(ManifestError, match=problem):
        planned(tmp_path, SHADE, b"", MANIFEST.replace(old, new, 1))
