"""Edits that replace what a file has in their place: exactly that goes, and an edit that cannot tell refuses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edit_bench import edit_from, tree_of
from patchstack.edits import Edit, Outcome, Status, cxx_fragment, python_fragment
from patchstack.errors import ManifestError
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.text import Splice

FRAGMENT = b"""\
// How it is mixed.
constant constexpr float SHARE = 0.5f;

// A word that stands alone.

struct Mix {
  float share;
};

static float mix(float a, float b) {
  return a * SHARE + b * (1 - SHARE);
}
"""
AROUND = b"namespace paint {\n\nvoid shade() {\n}\n\n%svoid light() {\n}\n\n} // namespace paint\n"
MORE = b"namespace paint {\n\n%svoid more() {\n}\n\n} // namespace paint\n"
PLACE = "{kind: place-fragment, path: a.metal, fragment: new, after: {function: shade, in: paint}}"


def replacing(edit: Edit, data: bytes) -> Outcome:
    return edit.replace(tree_of({edit.path: data}))


def place(entry: str = PLACE, fragment: bytes = FRAGMENT) -> Edit:
    return edit_from(entry, {"a.metal": fragment})


def gone(outcome: Outcome) -> list[str]:
    return [piece.name for piece in outcome.replaced]


class TestAFragment:
    def test_takes_the_place_of_definitions_of_its_names_wherever_they_stand(self) -> None:
        theirs = b"static float mix(float a) {\n  return a;\n}\n\n"
        source = AROUND % b"" + MORE % theirs
        outcome = replacing(place(), source)
        assert outcome.after == AROUND % (FRAGMENT + b"\n") + MORE % b""
        assert gone(outcome) == ["mix"]

    def test_leaves_a_definition_of_its_name_in_another_scope_alone(self) -> None:
        source = b"float mix(float a) {\n  return a;\n}\n" + AROUND % b""
        outcome = replacing(place(), source)
        assert gone(outcome) == []
        assert outcome.after is not None
        assert outcome.after.startswith(b"float mix(float a) {")

    def test_takes_out_only_what_is_named_where_its_own_text_is_there(self) -> None:
        entry = PLACE[:-1] + ", replaces: [{function: old_mix, in: paint}, {struct: Mix}]}"
        source = AROUND % (FRAGMENT + b"\nvoid old_mix() {\n}\n\n")
        outcome = replacing(place(entry), source)
        assert (outcome.after, gone(outcome)) == (AROUND % (FRAGMENT + b"\n"), ["old_mix"])

    def test_keeps_its_own_last_lines_and_the_line_endings_of_a_file_with_crlf(self) -> None:
        fragment = FRAGMENT + b"\n#define REGISTER_MIX(T) mix<T>\nREGISTER_MIX(float);\nREGISTER_MIX(half);\n"
        entry = PLACE[:-1] + ", replaces: [{function: old_mix, in: paint}]}"
        source = (AROUND % (fragment + b"\nvoid old_mix() {\n}\n\n")).replace(b"\n", b"\r\n")
        outcome = replacing(place(entry, fragment), source)
        assert outcome.after == (AROUND % (fragment + b"\n")).replace(b"\n", b"\r\n")
        changed = source.replace(b"a * SHARE", b"a * 2")
        assert replacing(place(entry, fragment), changed).after == outcome.after

    def test_is_an_ordinary_insertion_where_there_is_nothing_to_replace(self) -> None:
        source = AROUND % b""
        assert replacing(place(), source) == place().plan(tree_of({"a.metal": source}))

    def test_with_an_anchor_that_is_not_there_is_refused(self) -> None:
        source = AROUND.replace(b"shade", b"dim") % b"struct Mix {\n};\n\n"
        outcome = replacing(place(), source)
        assert (outcome.status, outcome.after) == (Status.CONFLICT, None)

    def test_that_would_take_away_more_than_what_is_named_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = AROUND % b"struct Mix {\n};\n\n"
        monkeypatch.setattr(
            cxx_fragment, "without", lambda file, _gone: parse_cxx(file.data[: file.data.index(b"struct")] + b"}\n")
        )
        outcome = replacing(place(), source)
        assert (outcome.status, outcome.after) == (Status.CONFLICT, None)
        assert outcome.conflict is not None
        assert "would take more away: light" in outcome.conflict.problem

    def test_in_a_file_whose_braces_do_not_pair_is_refused(self) -> None:
        outcome = replacing(place(), (AROUND % b"struct Mix {\n};\n\n").replace(b"void light() {\n}\n", b"}\n"))
        assert (outcome.status, outcome.after) == (Status.CONFLICT, None)
        assert outcome.conflict is not None
        assert "braces of the file cannot be paired" in outcome.conflict.problem

    def test_names_only_definitions_in_what_it_replaces(self) -> None:
        with pytest.raises(ManifestError, match="exactly one of function"):
            place(PLACE[:-1] + ", replaces: [{include: a.h}]}")


class TestADefinition:
    ENTRY = (
        "{kind: replace-definition, path: a.metal, fragment: new, replaces: ['sha256:0000000000000000'], "
        "definition: {function: mix}}"
    )
    NEW = b"static float mix(float a, float b) {\n  return a + b;\n}\n"

    def test_of_an_unknown_version_is_replaced_and_named(self) -> None:
        source = AROUND % b"// Theirs.\nstatic float mix(float a) {\n  return a;\n}\n\n"
        edit = place(self.ENTRY, self.NEW)
        assert edit.plan(tree_of({"a.metal": source})).status is Status.DIFFERENT
        outcome = replacing(edit, source)
        assert (outcome.after, gone(outcome)) == (AROUND % (self.NEW + b"\n"), ["mix"])

    def test_is_refused_where_the_file_has_another_name_of_the_fragment_elsewhere(self) -> None:
        fragment = b"static float half() {\n  return 0.5f;\n}\n" + self.NEW
        source = AROUND % b"static float mix(float a) {\n  return a;\n}\n\nstatic float half() {\n  return 1;\n}\n\n"
        outcome = replacing(place(self.ENTRY, fragment), source)
        assert (outcome.status, outcome.after) == (Status.CONFLICT, None)
        assert outcome.conflict is not None
        assert "already defines half" in outcome.conflict.problem

    def test_that_is_not_there_is_refused(self) -> None:
        outcome = replacing(place(self.ENTRY, self.NEW), AROUND % b"")
        assert (outcome.status, outcome.after) == (Status.CONFLICT, None)


class TestAFile:
    def test_of_another_content_is_replaced_whole_and_kept_in_the_outcome(self) -> None:
        edit = edit_from("{kind: create-file, path: a.metal}", {"a.metal": b"kernel void tint() {\n}\n"})
        outcome = replacing(edit, b"theirs\n")
        assert outcome.after == b"kernel void tint() {\n}\n"
        assert [piece.text for piece in outcome.replaced] == [b"theirs\n"]


class TestMembersOfAClass:
    ENTRY = "{kind: place-fragment, path: a.py, fragment: new, end_of: [{class: TestA}]}"
    MEMBERS = b"    def test_a(self):\n        new()\n"

    OTHER = b"    def test_b(self):\n        pass\n"

    def edit(self) -> Edit:
        return edit_from(self.ENTRY, {"a.py": self.MEMBERS})

    def test_of_the_fragments_names_go_and_the_others_stay(self) -> None:
        source = (
            b"class TestA:\n    @slow\n    def test_a(self):\n        old()\n\n    def test_b(self):\n        pass\n"
        )
        outcome = replacing(self.edit(), source)
        assert outcome.after == b"class TestA:\n" + self.OTHER + b"\n" + self.MEMBERS
        assert [piece.text for piece in outcome.replaced] == [b"@slow\ndef test_a(self):\n    old()\n"]

    def test_that_are_all_the_class_has_are_not_replaced(self) -> None:
        outcome = replacing(self.edit(), b"class TestA:\n    def test_a(self):\n        old()\n")
        assert (outcome.status, outcome.after) == (Status.DIFFERENT, None)

    def test_are_not_replaced_by_a_removal_that_takes_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        source = (
            b"class TestA:\n    def test_a(self):\n        old()\n\n    def test_b(self):\n        pass\n\n    x = 1\n"
        )
        monkeypatch.setattr(
            python_fragment, "member_removal", lambda _data, _member: Splice(13, source.index(b"    x"), b"")
        )
        assert replacing(self.edit(), source).status is Status.DIFFERENT


class TestAnEntry:
    def test_of_another_value_is_replaced_at_the_edits_own_place(self) -> None:
        entry = """{kind: add-python-entry, path: a.py, in: [{assign: D}], entry: '"b"', value: '2', after: '"a"'}"""
        outcome = replacing(edit_from(entry), b'D = {\n    "a": 1,\n    "c": 3,\n    "b": 9,  # theirs\n}\n')
        assert outcome.after == b'D = {\n    "a": 1,\n    "b": 2,\n    "c": 3,\n}\n'
        assert [piece.text for piece in outcome.replaced] == [b'"b": 9\n']

    def test_that_is_there_twice_is_refused(self) -> None:
        entry = """{kind: add-python-entry, path: a.py, in: [{assign: D}], entry: '"b"', value: '2'}"""
        assert replacing(edit_from(entry), b'D = {"b": 1, "b": 3}\n').status is Status.CONFLICT


TWEAKS = st.lists(
    st.tuples(
        st.integers(0, FRAGMENT.count(b"\n") - 1),
        st.sampled_from([b"  // why\n", b"  (void)0;\n", b"\n", b"drop", b"static int more = 1;\n"]),
    ),
    max_size=5,
)


@settings(max_examples=150, deadline=None)
@given(tweaks=TWEAKS)
def test_however_a_reviewer_edits_the_fragment_ours_is_back_or_it_is_refused(tweaks: list[tuple[int, bytes]]) -> None:
    lines = FRAGMENT.splitlines(keepends=True)
    for at, what in tweaks:
        pairs = b"{" in lines[at] or b"}" in lines[at]  # half a pair of braces is no edit that passes review
        lines[at] = b"" if what == b"drop" and not pairs else lines[at] + what.replace(b"drop", b"")
    source = AROUND % (b"".join(lines) + b"\n")
    edit = place()
    outcome = replacing(edit, source)
    if outcome.after is None:
        assert outcome.status in (Status.CONFLICT, Status.DIFFERENT, Status.SATISFIED)
        return
    assert edit.plan(tree_of({"a.metal": outcome.after})).status is Status.SATISFIED
    names = [d.name for d in parse_cxx(outcome.after).definitions if d.name != "more"]
    assert sorted(names) == ["Mix", "SHARE", "light", "mix", "shade"]
