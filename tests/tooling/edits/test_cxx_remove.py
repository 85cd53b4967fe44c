"""Definitions that nothing uses any more: taken out, or left with the reason."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from edit_bench import edit_from, plan_on, tree_of, write_series
from patchstack.edits import Outcome, Status
from patchstack.edits.cxx_remove import RemoveUnusedDefinition
from patchstack.errors import ManifestError
from patchstack.reference import standins
from patchstack.series import load_series
from patchstack.tree.cxx_digest import code_digest, comment_digest

HELPER = "// Half of it.\ntemplate <typename T>\nT half_of(T a) {\n  return a / 2;\n}\n"
USER = "void run() {\n  half_of(3);\n}\n"


def removed(source: str, definition: str = "{function: half_of}", more: str = "") -> Outcome:
    keys = ", ".join(filter(None, (f"definition: {definition}", more)))
    edit = edit_from(f"{{kind: remove-unused-definition, path: a.mm, {keys}}}", {})
    return plan_on(edit, source.encode())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"int a;\n\n{HELPER}\nint b;\n", "int a;\n\nint b;\n"),
        (f"int a;\n\n{HELPER}", "int a;\n"),
        (f"{HELPER}\nint b;\n", "int b;\n"),
        (f"namespace n {{\n{HELPER}}}\n", "namespace n {\n}\n"),
        (f"int a;\n\n{HELPER}\nint b; // not half_of\n", "int a;\n\nint b; // not half_of\n"),
        (
            f"int a;\r\n\r\n{HELPER}\r\nint b;\r\n".replace("\r\n", "\n").replace("\n", "\r\n"),
            "int a;\r\n\r\nint b;\r\n",
        ),
    ],
    ids=["between", "last", "first", "in a namespace", "named in a comment only", "CRLF"],
)
def test_an_unused_definition_goes_with_its_comment_and_its_blank_line(before: str, after: str) -> None:
    outcome = removed(before)
    assert outcome.status is Status.APPLIES
    assert outcome.after == after.encode()


@pytest.mark.parametrize(
    "use", [USER, "#define RUN half_of(3)\n", "#if 0\nint c = half_of(1);\n#endif\n", "using n::half_of;\n"]
)
def test_a_definition_that_is_still_used_is_left_and_the_report_says_by_which_line(use: str) -> None:
    outcome = removed(f"{HELPER}\n{use}")
    assert (outcome.status, outcome.after, outcome.neutral) == (Status.SATISFIED, None, True)
    before = f"{HELPER}\n".count("\n")
    line = before + next(number for number, text in enumerate(use.splitlines(), 1) if "half_of" in text)
    assert outcome.said == f"left: it is used at line {line}"


def test_a_definition_that_only_uses_itself_is_unused() -> None:
    outcome = removed("int half_of(int a) {\n  return a ? half_of(a - 2) + 1 : 0;\n}\n\nint b;\n")
    assert outcome.after == b"int b;\n"


def test_a_definition_that_is_not_there_says_nothing_about_the_change() -> None:
    outcome = removed("int b;\n")
    assert (outcome.status, outcome.neutral, outcome.said) == (Status.SATISFIED, True, "no such definition")


def test_two_types_of_the_name_are_a_conflict() -> None:
    both = "#ifdef A\nstruct Half {\n  int a;\n};\n#else\nstruct Half {\n  long a;\n};\n#endif\n"
    outcome = removed(both, "{struct: Half}")
    assert outcome.status is Status.CONFLICT
    assert outcome.matches == (2, 6)


OVERLOADS = """template <typename T>
static T half_of(T a);

template <>
int half_of<int>(int a) {
  return a / 2;
}

// At run time.
static int half_of(int a, bool up) {
  return half_of<int>(a + up);
}

"""


def test_overloads_and_specializations_go_together_with_their_prototype() -> None:
    outcome = removed(f"int a;\n\n{OVERLOADS}int b;\n")
    assert outcome.after == b"int a;\n\nint b;\n"


def test_overloads_stay_together_where_one_is_used() -> None:
    outcome = removed(f"{OVERLOADS}{USER}")
    assert (outcome.status, outcome.after) == (Status.SATISFIED, None)
    assert "half_of(3)" in f"{OVERLOADS}{USER}".splitlines()[outcome.spots[0].line - 1]


def test_the_prototype_of_a_function_in_another_namespace_is_a_use_that_keeps_it() -> None:
    outcome = removed(f"namespace n {{\nint half_of(int a);\n}}\n{HELPER}")
    assert (outcome.status, outcome.said) == (Status.SATISFIED, "left: it is used at line 2")


KERNEL = "// One thread a row.\ntemplate <typename T>\nkernel void rows(device T* a) {\n}\n"
MACRO = '#define REGISTER_ROWS(T) \\\n  template [[host_name("rows_" #T)]] kernel void rows<T>(device T*);\n'
CALLS = "REGISTER_ROWS(float);\nREGISTER_ROWS(half);\n"


def known(text: str) -> str:
    return f"replaces: ['{code_digest(text.encode())}']"


class TestWhatTheHostFindsByName:
    def test_goes_where_its_text_is_known(self) -> None:
        outcome = removed(f"int a;\n\n{KERNEL}\nint b;\n", "{kernel: rows}", known(KERNEL))
        assert (outcome.status, outcome.after) == (Status.APPLIES, b"int a;\n\nint b;\n")

    @pytest.mark.parametrize("more", ["", known(KERNEL + "int later;\n")], ids=["no digest", "another digest"])
    def test_is_left_where_it_is_not(self, more: str) -> None:
        outcome = removed(KERNEL, "{kernel: rows}", more)
        assert (outcome.status, outcome.after, outcome.neutral) == (Status.SATISFIED, None, True)
        assert outcome.said == f"left: not a version the series knows (its digest is {code_digest(KERNEL.encode())})"

    def test_goes_whatever_its_comments_and_line_breaks_are(self) -> None:
        other = KERNEL.replace("a row", "each row, later").replace("void rows(", "void rows( // the pixels\n    ")
        outcome = removed(f"int a;\n\n{other}\nint b;\n", "{kernel: rows}", known(KERNEL))
        assert (outcome.status, outcome.after) == (Status.APPLIES, b"int a;\n\nint b;\n")

    def test_a_kernel_is_left_while_a_macro_registers_it(self) -> None:
        outcome = removed(f"{KERNEL}\n{MACRO}{CALLS}", "{kernel: rows}", known(KERNEL))
        assert outcome.said == "left: it is used at line 7"

    def test_a_macro_takes_its_registrations_along_and_then_the_kernel_is_unused(self) -> None:
        source = f"int a;\n\n{KERNEL}\n{MACRO}\n{CALLS}\nint b;\n"
        first = removed(source, "{macro: REGISTER_ROWS}", known(MACRO))
        assert first.after is not None
        assert b"REGISTER_ROWS" not in first.after
        second = removed(first.after.decode(), "{kernel: rows}", known(KERNEL))
        assert second.after == b"int a;\n\nint b;\n"

    def test_a_macro_that_another_macro_calls_is_left(self) -> None:
        outcome = removed(f"{MACRO}#define ALL() REGISTER_ROWS(float)\n", "{macro: REGISTER_ROWS}", known(MACRO))
        assert outcome.said == "left: it is used at line 3"


@pytest.mark.parametrize("kind", ["struct", "function"])
def test_what_upstream_edited_and_nothing_uses_any_more_is_a_conflict(kind: str) -> None:
    text = {"struct": "struct half_of {\n};\n", "function": "int half_of() {\n}\n"}[kind]
    assert removed(text, f"{{{kind}: half_of}}").after == b""
    assert removed(text, f"{{{kind}: half_of}}", known(text)).after == b""
    outcome = removed(f"int a;\n{text}", f"{{{kind}: half_of}}", known("other"))
    assert (outcome.status, outcome.after, outcome.matches) == (Status.DIFFERENT, None, (2,))
    problem = f"is not a version the series knows (its digest is {code_digest(text.encode())})"
    assert outcome.conflict
    assert outcome.conflict.problem == f"half_of {problem}, and nothing would use it any more"


def test_what_upstream_edited_stays_where_something_else_uses_it_or_the_change_replaces_all_the_same() -> None:
    text = f"{HELPER}{USER}"
    assert "left: not a version" in removed(text, "{function: half_of}", known("other")).said
    edit = edit_from(
        f"{{kind: remove-unused-definition, path: a.metal, definition: {{function: half_of}}, {known('other')}}}", {}
    )
    outcome = edit.replace(tree_of({"a.metal": HELPER.encode()}))
    assert (outcome.status, outcome.conflict) == (Status.SATISFIED, None)
    assert "left: not a version" in outcome.said


def test_what_an_earlier_change_wrote_needs_no_digest(tmp_path: Path) -> None:
    manifest = """\
format: 1
changes:
  - {id: one, title: One, message: message.md, upstream: [{defines: rows, path: a.metal}],
     edits: [{kind: place-fragment, path: a.metal, fragment: rows, end_of: {file: end}}]}
  - {id: two, title: Two, message: message.md, upstream: [{defines: columns, path: a.metal}],
     edits: [{kind: remove-unused-definition, path: a.metal, definition: {kernel: rows}}]}
"""
    series = write_series(
        tmp_path / "s", manifest, {"a.metal": f"// fragment: rows\n{KERNEL}// end fragment\n".encode()}
    )
    (removal,) = series.changes[1].edits
    assert plan_on(removal, f"int a;\n\n{KERNEL}".encode()).after == b"int a;\n"
    assert plan_on(removal, f"int a;\n\n{KERNEL.replace('row', 'line')}".encode()).after is None


def test_a_header_is_refused_because_other_files_use_it() -> None:
    with pytest.raises(ManifestError, match="may be used by other files"):
        edit_from("{kind: remove-unused-definition, path: a.h, definition: {function: half_of}}", {})


CYCLE = """// A padding.
struct Pad {
  static float source(float a) { return a; }
};

static float source(float a, int mode) {
  return mode ? Pad::source(a) : 0;
}

int mode;
"""
BOTH = "[{struct: Pad, in: global}, {function: source, in: global}, {function: gone_before}]"


def several(source: str, definitions: str, more: str = "") -> Outcome:
    keys = ", ".join(filter(None, (f"definitions: {definitions}", more)))
    edit = edit_from(f"{{kind: remove-unused-definition, path: a.metal, {keys}}}", {})
    return plan_on(edit, source.encode())


def test_definitions_that_only_use_one_another_go_together() -> None:
    outcome = several(CYCLE, BOTH)
    assert (outcome.status, outcome.after, outcome.said) == (Status.APPLIES, b"int mode;\n", "")
    assert outcome.matches == (2, 6)


def test_of_several_definitions_those_go_that_nothing_which_stays_uses() -> None:
    helper = "static int one() {\n  return 1;\n}\n\n"
    outcome = several(helper + CYCLE + "float at = source(1, mode);\n", f"[{{function: one}}, {BOTH[1:]}")
    assert outcome.after == (CYCLE + "float at = source(1, mode);\n").encode()
    assert outcome.said == "Pad left: it is used at line 11; source left: it is used at line 15"


def test_of_several_kernels_the_ones_of_a_known_text_go() -> None:
    other = KERNEL.replace("rows", "columns")
    places = "[{kernel: rows}, {kernel: columns}]"
    outcome = several(f"{KERNEL}\n{other}", places, known(KERNEL))
    assert outcome.after == other.encode()
    assert outcome.said == f"columns left: not a version the series knows (its digest is {code_digest(other.encode())})"


def test_none_of_several_definitions_being_there_says_nothing_about_the_change() -> None:
    outcome = several("int b;\n", BOTH)
    assert (outcome.status, outcome.neutral, outcome.said) == (Status.SATISFIED, True, "no such definitions")


def test_one_definition_and_several_are_not_given_at_once() -> None:
    with pytest.raises(ManifestError, match="exactly one of definition, definitions"):
        several(CYCLE, BOTH, "definition: {function: source}")


HELPERS = b"#pragma once\nint weight(int a);\ninline int share(int a) {\n  return a;\n}\n"
INCLUDES = "#include <ATen/Helpers.h>\n#include <metal_stdlib>\n\n"


@pytest.mark.parametrize(
    ("header", "user", "note"),
    [
        (HELPERS, "int a; // share\n", ""),
        (HELPERS, "int a = share(1);\n", "ATen/Helpers.h left: it is used at line 4"),
        (HELPERS.replace(b"once\n", b"once\n#include <b.h>\n"), "int a;\n", "what it brings is not known"),
        (b"", "int a;\n", "what it brings is not known"),
    ],
    ids=["unused", "used", "includes more", "empty"],
)
def test_an_include_line_goes_if_nothing_of_its_header_is_used(header: bytes, user: str, note: str) -> None:
    keys = "definitions: [{include: ATen/Helpers.h}, {function: f}]"
    edit = edit_from(f"{{kind: remove-unused-definition, path: a.metal, {keys}}}", {})
    files = {"a.metal": (INCLUDES + user).encode(), "aten/src/ATen/Helpers.h": header}
    outcome = edit.plan(tree_of(files))
    if note:
        assert outcome.after is None
        assert outcome.said.endswith(note)
    else:
        assert outcome.after == ("#include <metal_stdlib>\n\n" + user).encode()


COMMENT = "// What follows halves.\n// All of it.\n"


def test_a_known_comment_between_definitions_goes_along() -> None:
    source = f"int a;\n\n{COMMENT}\n{HELPER}\n// Another.\n\nint b;\n"
    known_comment = f"comments: ['{comment_digest(COMMENT.encode())}']"
    assert several(source, "[{function: half_of}]", known_comment).after == b"int a;\n\n// Another.\n\nint b;\n"
    assert several(source, "[{function: half_of}]").after == f"int a;\n\n{COMMENT}\n// Another.\n\nint b;\n".encode()
    assert several(source + USER, "[{function: half_of}]", known_comment).after is None


def test_helpers_of_upstream_go_in_the_words_the_series_knows_and_stay_where_somebody_edited_them() -> None:
    for change in load_series().changes:
        for edit in change.edits:
            file = Path(standins.__file__).parent / "standins/2.13" / edit.path
            if not isinstance(edit, RemoveUnusedDefinition) or not change.only_where:
                continue
            source = file.read_bytes()
            for place in edit.places:
                if place.kind == "function":
                    head = re.compile(rb"\b%s\(" % place.name.encode())
                    edited = head.sub(lambda found: b"MINE " + found.group(), source)
                    assert f"{place.name} left: not a version the series knows" not in plan_on(edit, source).said
                    outcome = plan_on(edit, edited)
                    told = f"{outcome.said} {outcome.conflict.problem if outcome.conflict else ''}"
                    assert re.search(rf"\b{place.name} (left: |is )not a version the series knows", told)


def test_the_second_change_takes_out_what_only_the_old_forward_kernel_used_users_first() -> None:
    edits = [e for e in load_series().changes[1].edits if isinstance(e, RemoveUnusedDefinition)]
    places = [place for edit in edits for place in edit.places]
    names = [place.name for place in places]
    # Each uses the one behind it, as upstream's do, so any other order would leave some.
    source = "".join(
        f"struct {name} {{}};\n\n" if place.kind == "struct" else f"static void {name}() {{ {used}; }}\n\n"
        for place, name, used in zip(places, names, [*names[1:], ""], strict=True)
    ).encode()
    for edit in edits:
        outcome = plan_on(replace(edit, replaces=()), source)
        assert outcome.after is not None, outcome
        source = outcome.after
