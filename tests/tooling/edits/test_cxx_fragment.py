"""Fragments of C++: where exactly they land, and when they are there already."""

from __future__ import annotations

import pytest

from edit_bench import applied, edit_from, plan_on, tree_of
from patchstack.cli.report import _notable_lines
from patchstack.edits import Outcome, Status
from patchstack.errors import ManifestError
from patchstack.planning.model import EditPlan
from patchstack.tree.cxx_digest import code_digest

FRAGMENT = b"void added(int a) {\n  run(a);\n}\n"


def placed(place: str, source: str, fragment: bytes = FRAGMENT) -> Outcome:
    edit = edit_from(f"{{kind: place-fragment, path: a.mm, fragment: new, {place}}}", {"a.mm": fragment})
    return plan_on(edit, source.encode())


def result(place: str, source: str, fragment: bytes = FRAGMENT) -> str:
    outcome = placed(place, source, fragment)
    assert outcome.after is not None, outcome
    return outcome.after.decode()


ADDED = FRAGMENT.decode()
LANDS = {
    "after a function, a blank line between": (
        "after: {function: f}",
        "void f() {\n}\nvoid g() {}\n",
        f"void f() {{\n}}\n\n{ADDED}\nvoid g() {{}}\n",
    ),
    "after a function, blank lines kept": (
        "after: {function: f}",
        "void f() {\n}\n\nvoid g() {}\n",
        f"void f() {{\n}}\n\n{ADDED}\nvoid g() {{}}\n",
    ),
    "before a function, its comment included": (
        "before: {function: f}",
        "int a;\n\n// About f.\nvoid f() {}\n",
        f"int a;\n\n{ADDED}\n// About f.\nvoid f() {{}}\n",
    ),
    "before a function, its attributes included": (
        "before: {kernel: f}",
        'int a;\n\n[[host_name("f")]]\nkernel void f() {}\n',
        f'int a;\n\n{ADDED}\n[[host_name("f")]]\nkernel void f() {{}}\n',
    ),
    "last in a namespace": (
        "end_of: {namespace: a}",
        "namespace a {\nvoid f() {}\n} // namespace a\n",
        f"namespace a {{\nvoid f() {{}}\n\n{ADDED}}} // namespace a\n",
    ),
    "first in a namespace": (
        "start_of: {namespace: a}",
        "namespace a { // paint\nvoid f() {}\n}\n",
        f"namespace a {{ // paint\n{ADDED}\nvoid f() {{}}\n}}\n",
    ),
    "in an empty namespace": ("end_of: {namespace: a}", "namespace a {\n}\n", f"namespace a {{\n{ADDED}}}\n"),
    "in a namespace on one line": (
        "end_of: {namespace: a}",
        "namespace a { int b; }\n",
        f"namespace a {{ int b; \n\n{ADDED}}}\n",
    ),
    "first in a namespace on one line": (
        "start_of: {namespace: a}",
        "namespace a { int b; }\n",
        f"namespace a {{\n\n{ADDED}\n int b; }}\n",
    ),
    "in an anonymous namespace": (
        "end_of: {namespace: 'a::(anonymous)'}",
        "namespace a {\nnamespace {\nint b;\n}\n}\n",
        f"namespace a {{\nnamespace {{\nint b;\n\n{ADDED}}}\n}}\n",
    ),
    "at the end of a file without a line feed": ("end_of: {file: end}", "int a;", f"int a;\n\n{ADDED}"),
    "in an empty file": ("end_of: {file: end}", "", ADDED),
    "first in a file": ("start_of: {file: start}", "int a;\n", f"{ADDED}\nint a;\n"),
}


@pytest.mark.parametrize(("place", "before", "after"), LANDS.values(), ids=LANDS.keys())
def test_a_fragment_lands(place: str, before: str, after: str) -> None:
    assert result(place, before) == after


def test_a_name_in_another_namespace_is_told_apart_by_its_scope() -> None:
    source = "namespace a {\nvoid f() {}\n}\nnamespace b {\nvoid f() {}\n}\n"
    assert placed("after: {function: f}", source).status is Status.CONFLICT
    assert result("after: {function: f, in: b}", source).endswith(f"void f() {{}}\n\n{ADDED}}}\n")
    assert placed("after: {function: f, in: global}", source).status is Status.CONFLICT


def test_a_reopened_namespace_is_two_places_unless_the_manifest_says_which() -> None:
    source = "namespace a {\nint b;\n}\nnamespace a {\nint c;\n}\n"
    assert placed("end_of: {namespace: a}", source).status is Status.CONFLICT
    assert "int c;\n\nvoid added" in result("end_of: {namespace: a, matches: 2, pick: last}", source)
    assert "int b;\n\nvoid added" in result("end_of: {namespace: a, matches: 2}", source)
    assert placed("end_of: {namespace: a, matches: 3}", source).status is Status.CONFLICT


def test_a_function_that_shares_its_last_line_with_the_end_of_its_namespace_is_refused() -> None:
    outcome = placed("after: {function: f}", "namespace a { void f() {} }\nint b;\n")
    assert outcome.status is Status.CONFLICT
    assert outcome.conflict is not None
    assert outcome.conflict.problem == "the fragment would land in the global namespace, not in a"


BROKEN = {
    "leaves a brace open": b"void added(int a) {\n",
    "closes one too many": b"}\nvoid added(int a) {\n}\n",
    "opens a comment": b"void added(int a) {}\n/*\n",
    "opens a string": b'const char* added = R"(\n',
    "opens an #if 0": b"#if 0\nvoid added() {}\n",
}


@pytest.mark.parametrize("fragment", BROKEN.values(), ids=BROKEN.keys())
def test_a_fragment_is_refused_that(fragment: bytes) -> None:
    outcome = placed("after: {function: f}", "namespace a {\nvoid f() {}\nvoid g() {}\n}\nvoid h() {}\n", fragment)
    assert outcome.status is Status.CONFLICT


THERE = {
    "as it is": (f"void f() {{}}\n\n{ADDED}", Status.SATISFIED),
    "as it is, somewhere else": (f"{ADDED}\nvoid f() {{}}\n", Status.SATISFIED),
    "with other line endings": (f"void f() {{}}\n\n{ADDED}".replace("\n", "\r\n"), Status.SATISFIED),
    "without the final line feed": (f"void f() {{}}\n\n{ADDED}".rstrip(), Status.SATISFIED),
    "with another body": (f"void f() {{}}\n\n{ADDED}".replace("run", "walk"), Status.DIFFERENT),
    "with other parameters": (f"void f() {{}}\n\n{ADDED}".replace("int a", "long a"), Status.DIFFERENT),
    "in a comment": (f"void f() {{}}\n/*\n{ADDED}*/\n", Status.APPLIES),
    "in a raw string": (f'void f() {{}}\nconst char* t = R"(\n{ADDED})";\n', Status.APPLIES),
    "in an #if 0": (f"void f() {{}}\n#if 0\n{ADDED}#endif\n", Status.APPLIES),
    "in a comment, then as it is": (f"void f() {{}}\n/*\n{ADDED}*/\n\n{ADDED}", Status.SATISFIED),
    "in another namespace": ("void f() {}\nnamespace b {\nvoid added(long a) {}\n}\n", Status.APPLIES),
    "as a declaration only": ("void f() {}\nvoid added(int a);\n", Status.APPLIES),
}


@pytest.mark.parametrize(("source", "status"), THERE.values(), ids=THERE.keys())
def test_what_the_fragment_defines_is_there(source: str, status: Status) -> None:
    assert placed("after: {function: f}", source).status is status


def test_a_fragment_that_is_there_is_found_even_where_its_anchor_is_gone() -> None:
    assert placed("after: {function: gone}", ADDED).status is Status.SATISFIED
    assert placed("after: {function: gone}", ADDED.replace("run", "walk")).status is Status.DIFFERENT


INCLUDE = b"#include <b.h>\n"
INCLUDES = {
    "sorted in": ("#include <a.h>\n#include <c.h>\n", "#include <a.h>\n#include <b.h>\n#include <c.h>\n"),
    "sorted behind": ("#include <a.h>\n", "#include <a.h>\n#include <b.h>\n"),
    "only in its block": (
        "#include <z.h>\n\n#include <a.h>\n#include <y.h>\n",
        "#include <z.h>\n\n#include <a.h>\n#include <b.h>\n#include <y.h>\n",
    ),
    "at the end of a file without a line feed": ("#include <a.h>", "#include <a.h>\n#include <b.h>\n"),
    "in the branch the block is in": (
        "#ifndef P\n#include <all.h>\n#else\n#include <a.h>\n#endif\n",
        "#ifndef P\n#include <all.h>\n#else\n#include <a.h>\n#include <b.h>\n#endif\n",
    ),
    "although a comment names it": (
        "// #include <b.h>\n#include <a.h>\n",
        "// #include <b.h>\n#include <a.h>\n#include <b.h>\n",
    ),
    "although an #if 0 has it": (
        "#include <a.h>\n#if 0\n#include <b.h>\n#endif\n",
        "#include <a.h>\n#include <b.h>\n#if 0\n#include <b.h>\n#endif\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), INCLUDES.values(), ids=INCLUDES.keys())
def test_an_include_line_goes(before: str, after: str) -> None:
    assert result("into: {include_block: a.h}", before, INCLUDE) == after


def test_an_include_line_that_is_there_says_nothing_about_the_change() -> None:
    outcome = placed("into: {include_block: a.h}", "#include <a.h>\n#include <b.h>\n", INCLUDE)
    assert outcome.status is Status.SATISFIED
    assert outcome.neutral


def test_include_lines_of_which_only_some_are_there_are_refused() -> None:
    source = "#include <a.h>\n#include <b.h>\n#include <b.h>\n"
    outcome = placed("into: {include_block: a.h}", source, b"#include <b.h>\n#include <c.h>\n")
    assert outcome.conflict is not None
    assert "not c.h" in outcome.conflict.problem


def test_code_after_an_include_block_is_set_off_by_a_blank_line() -> None:
    assert result("after: {include_block: a.h}", "#include <a.h>\nint b;\n") == f"#include <a.h>\n\n{ADDED}\nint b;\n"


def test_a_fragment_that_is_no_include_line_does_not_go_into_an_include_block() -> None:
    with pytest.raises(ManifestError, match="is not include lines"):
        placed("into: {include_block: a.h}", "#include <a.h>\n")


@pytest.mark.parametrize("place", ["into: {function: f}", "end_of: {enum: f}", "start_of: {include: a.h}"])
def test_a_relation_that_an_anchor_does_not_have_is_refused_on_load(place: str) -> None:
    with pytest.raises(ManifestError, match="does not go with"):
        placed(place, "")


def test_a_missing_file_is_a_conflict_that_names_the_nearest() -> None:
    edit = edit_from(
        "{kind: place-fragment, path: k/Tint.mm, fragment: new, end_of: {file: end}}", {"k/Tint.mm": FRAGMENT}
    )
    outcome = edit.plan(tree_of({"k/Tints.mm": b"", "k/Shade.mm": b"", "Tint.mm": b""}))
    assert outcome.conflict is not None
    assert outcome.conflict.problem == "the tree has no such file"
    assert tuple(map(str, outcome.conflict.nearest)) == ("k/Tints.mm",)


class TestReplacement:
    OLD = b"// Old.\ntemplate <class T>\nT f(T a) {\n  return a;\n}\n"
    NEW = b"// New.\ntemplate <class T>\nT f(T a) {\n  return a + 1;\n}\n"
    SOURCE = b"int before;\n\n" + OLD + b"\nint behind;\n"

    def planned(self, source: bytes, known: bytes = OLD) -> Outcome:
        entry = (
            f"{{kind: replace-definition, path: a.mm, fragment: new, replaces: ['{code_digest(known)}'], "
            "definition: {function: f}}"
        )
        return plan_on(edit_from(entry, {"a.mm": self.NEW}), source)

    def test_takes_the_comment_and_the_template_head_along(self) -> None:
        assert self.planned(self.SOURCE).after == self.SOURCE.replace(self.OLD, self.NEW)

    def test_accepts_the_old_text_in_another_layout(self) -> None:
        source = self.SOURCE.replace(b"  return a;", b"\t\treturn   a;").replace(b"\n", b"\r\n")
        assert self.planned(source).status is Status.APPLIES

    def test_of_a_text_that_upstream_changed_is_refused_with_its_digest(self) -> None:
        changed = self.SOURCE.replace(b"return a;", b"return -a;")
        outcome = self.planned(changed)
        assert outcome.status is Status.DIFFERENT
        assert outcome.conflict is not None
        assert code_digest(self.OLD.replace(b"return a;", b"return -a;")) in outcome.conflict.problem

    def test_accepts_the_old_text_with_other_comments_and_names_those_that_go(self) -> None:
        source = self.SOURCE.replace(b"// Old.", b"// Older.\n// And wiser.").replace(
            b"(T a)", b"(\n  /* by value */ T a)"
        )
        outcome = self.planned(source)
        assert outcome.after == self.SOURCE.replace(self.OLD, self.NEW)
        assert outcome.note == ("comments that go with what it replaces: line 3 (Older. And wiser.), line 7 (by value)")

    def test_names_the_beginning_and_the_end_of_a_long_comment(self) -> None:
        first, last = "Half of what it is given, and rounded down.", "Not for a tensor of integers."
        note = self.planned(self.SOURCE.replace(b"// Old.", f"// {first}\n// {last}".encode())).note
        assert "line 3 (Half of what it is given, and ... Not for a tensor of integers.)" in note

    def test_the_report_names_the_comments_without_being_asked(self) -> None:
        outcome = self.planned(self.SOURCE)
        entry = "{kind: replace-definition, path: a.mm, fragment: new, replaces: [], definition: {function: f}}"
        plan = EditPlan(edit_from(entry, {"a.mm": self.NEW}), outcome, self.SOURCE)
        assert list(_notable_lines(plan)) == ["      a.mm: comments that go with what it replaces: line 3 (Old.)"]

    def test_says_nothing_of_a_comment_that_the_fragment_has_too(self) -> None:
        assert self.planned(self.SOURCE.replace(b"// Old.", b"/* New.\n */")).note == ""

    def test_that_differs_in_a_comment_alone_applies(self) -> None:
        source = self.SOURCE.replace(self.OLD, self.NEW.replace(b"// New.", b"// Newer."))
        assert self.planned(source).after == self.SOURCE.replace(self.OLD, self.NEW)

    def test_that_is_there_in_other_lines_changes_nothing(self) -> None:
        source = self.SOURCE.replace(self.OLD, self.NEW.replace(b"return a + 1;", b"return a\n      + 1;"))
        assert self.planned(source).status is Status.SATISFIED

    def test_that_is_there_already_changes_nothing(self) -> None:
        assert self.planned(self.SOURCE.replace(self.OLD, self.NEW)).status is Status.SATISFIED

    @pytest.mark.parametrize(
        "extra", [b"T f(T a, T b) {\n  return b;\n}\n", b"template <>\nint f<int>(int a) {\n  return a;\n}\n"]
    )
    def test_of_one_overload_or_specialisation_of_several_is_refused(self, extra: bytes) -> None:
        assert self.planned(self.SOURCE + extra).status is Status.CONFLICT

    def test_does_not_touch_a_macro_call_right_above(self) -> None:
        source = b"REGISTER_IT(g);\n" + self.OLD
        assert self.planned(source).after == b"REGISTER_IT(g);\n" + self.NEW


class TestCreatedFile:
    EDIT = "{kind: create-file, path: k/new/Tint.metal}"

    def planned(self, files: dict[str, bytes]) -> Outcome:
        return edit_from(self.EDIT, {"k/new/Tint.metal": b"int a;\n"}).plan(tree_of(files))

    def test_is_new_where_nothing_is_there(self) -> None:
        assert self.planned({"k/other": b""}).status is Status.APPLIES

    def test_with_the_same_content_is_there_already(self) -> None:
        assert self.planned({"k/new/Tint.metal": b"int a;\n"}).status is Status.SATISFIED

    def test_with_another_content_is_present_but_different(self) -> None:
        assert self.planned({"k/new/Tint.metal": b"int b;\n"}).status is Status.DIFFERENT

    def test_must_not_have_fragment_markers(self) -> None:
        with pytest.raises(ManifestError, match="lands whole"):
            edit_from(self.EDIT, {"k/new/Tint.metal": b"// fragment: a\nint a;\n// end fragment\n"})


def test_a_rung_is_exact_only_on_a_blob_the_edit_was_written_against() -> None:
    source = b"void f() {}\n"
    assert applied(
        edit_from("{kind: place-fragment, path: a.mm, fragment: new, after: {function: f}}", {"a.mm": FRAGMENT}), source
    )
