"""Declarations that are replaced in a type, a namespace or a file: known by their tokens, whatever stands around."""

from __future__ import annotations

import pytest

from edit_bench import edit_from, plan_on
from patchstack.edits import Status
from patchstack.edits.model import Outcome
from patchstack.errors import ManifestError
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.cxx_declarations import declarations
from patchstack.tree.cxx_digest import code_digest

HEADER = b"""\
#pragma once
#include <one.h>

namespace at::native {

struct TORCH_API Shade final : public Base {
 public:
  explicit Shade(int depth);
  // How deep.
  [[nodiscard]] int depth() const;
  int depth(int other) {
    return other;
  }

 private:
  int depth_ = 0;
  bool is_dark_{false};
};

extern "C" {
void shade_all(int depth);
}

#ifdef USE_TINT
void tint(int depth);
#endif

} // namespace at::native
"""
SCOPES = {
    "struct": "{struct: Shade, in: 'at::native'}",
    "namespace": "{namespace: 'at::native'}",
    "file": "{file: all}",
}


def planned(source: bytes, old: bytes, new: bytes, statements: int, scope: str) -> Outcome:
    entry = (
        f"{{kind: replace-statements, path: a.h, fragment: new, scope: {SCOPES[scope]}, statements: {statements}, "
        f"replaces: ['{code_digest(old)}']}}"
    )
    return plan_on(edit_from(entry, {"a.h": new}), source)


CASES = [
    (b"  int depth_ = 0;\n", b"  int64_t depth_ = 0;\n  int limit_ = 9;\n", 1, "struct"),
    (b"  // How deep.\n  [[nodiscard]] int depth() const;\n", b"  int depth() const noexcept;\n", 1, "struct"),
    (b"void shade_all(int depth);\n", b"void shade_all(int depth, bool dark);\n", 1, "namespace"),
    (b"#ifdef USE_TINT\nvoid tint(int depth);\n#endif\n", b"void tint(int depth);\n", 3, "namespace"),
    (b"#include <one.h>\n", b"#include <two.h>\n", 1, "file"),
]


@pytest.mark.parametrize(("old", "new", "statements", "scope"), CASES)
def test_declarations_are_replaced_and_the_rest_stays(old: bytes, new: bytes, statements: int, scope: str) -> None:
    outcome = planned(HEADER, old, new, statements, scope)
    assert outcome.after == HEADER.replace(old, new)
    assert planned(outcome.after, old, new, statements, scope).status is Status.SATISFIED


@pytest.mark.parametrize(
    ("upstream", "becomes"),
    [
        (b"  bool is_dark_{false};\n", b"  bool is_dark_{true};\n"),
        (b"  int depth_ = 0;\n", b"  // Deep.\n  int   depth_\n      = 0;\n"),
        (b" private:\n", b" private:\n  int other_ = 1;\n"),
        (b"#pragma once\n", b"#pragma once\nint depth_ = 0;\n"),
    ],
)
def test_what_upstream_changes_around_them_or_in_their_layout_does_not_matter(upstream: bytes, becomes: bytes) -> None:
    outcome = planned(HEADER.replace(upstream, becomes), b"int depth_ = 0;", b"  long depth_ = 0;\n", 1, "struct")
    assert outcome.status is Status.APPLIES
    assert b"  long depth_ = 0;\n" in (outcome.after or b"")


def test_a_declaration_that_upstream_changed_is_a_conflict() -> None:
    source = HEADER.replace(b"depth_ = 0", b"depth_ = 1")
    outcome = planned(source, b"int depth_ = 0;", b"  long depth_ = 0;\n", 1, "struct")
    assert outcome.status is Status.CONFLICT
    assert "0 runs of declarations in Shade are what the series knows, expected 1" in str(outcome.conflict)


def test_a_declaration_that_stands_twice_is_a_conflict() -> None:
    source = HEADER + b"\nnamespace at::native {\nvoid shade_all(int depth);\n}\n"
    outcome = planned(source, b"void shade_all(int depth);", b"void shade_all();\n", 1, "namespace")
    assert (outcome.status, outcome.after) == (Status.CONFLICT, None)
    assert "2 runs of declarations in at::native" in str(outcome.conflict)


def test_the_same_declaration_in_another_scope_does_not_count() -> None:
    source = HEADER + b"\nstruct Other {\n  int depth_ = 0;\n};\n"
    outcome = planned(source, b"int depth_ = 0;", b"  long depth_ = 0;\n", 1, "struct")
    assert outcome.after == source.replace(b"  int depth_ = 0;\n", b"  long depth_ = 0;\n", 1)


def test_a_comment_alone_can_be_replaced() -> None:
    old, new = (
        b"  // How deep.\n  [[nodiscard]] int depth() const;\n",
        b"  // Deeper.\n  [[nodiscard]] int depth() const;\n",
    )
    outcome = planned(HEADER, old, new, 1, "struct")
    assert outcome.after == HEADER.replace(old, new)
    assert planned(outcome.after, old, new, 1, "struct").status is Status.SATISFIED


def test_a_file_whose_braces_do_not_pair_has_no_declarations_to_replace() -> None:
    outcome = planned(HEADER.replace(b"};\n", b";\n"), b"#include <one.h>\n", b"#include <two.h>\n", 1, "file")
    assert outcome.status is Status.CONFLICT


def test_a_replacement_that_opens_a_brace_is_refused() -> None:
    outcome = planned(HEADER, b"int depth_ = 0;", b"  struct Inner {\n", 1, "struct")
    assert outcome.status is Status.CONFLICT


def test_overloads_of_a_function_are_told_apart_by_their_statements() -> None:
    source = b"int f(int a) {\n  return a;\n}\nint f(int a, int b) {\n  return a + b;\n}\n"
    entry = (
        "{kind: replace-statements, path: a.h, fragment: new, definition: {function: f}, statements: 1, "
        f"replaces: ['{code_digest(b'return a + b;')}']}}"
    )
    outcome = plan_on(edit_from(entry, {"a.h": b"  return b + a;\n"}), source)
    assert outcome.after == source.replace(b"return a + b", b"return b + a")


def test_a_scope_has_no_signature() -> None:
    with pytest.raises(ManifestError, match="a scope has no signature"):
        planned(HEADER, b"int depth_ = 0;", b"  long depth_ = 0;\n", 0, "struct")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (b"int a = 1, b{2};\nint c;\n", [b"int a = 1, b{2};", b"int c;"]),
        (b"Foo::Foo() : a_{1}, b_(2) {}\nint x;\n", [b"Foo::Foo() : a_{1}, b_(2) {}", b"int x;"]),
        (b"template <class T>\nvoid f() const {}\nint x;\n", [b"template <class T>\nvoid f() const {}", b"int x;"]),
        (b"enum class E { A, B };\nint x;\n", [b"enum class E { A, B };", b"int x;"]),
        (b"struct S f(struct S s) {\n}\nint x;\n", [b"struct S f(struct S s) {\n}", b"int x;"]),
        (b"struct A {\n} a;\nint x;\n", [b"struct A {\n} a;", b"int x;"]),
        (b"std::function<void()> f = [] { g(); };\nint x;\n", [b"std::function<void()> f = [] { g(); };", b"int x;"]),
        (b"REGISTER_SHADE(f)\nREGISTER_SHADE(g)\nint x;\n", [b"REGISTER_SHADE(f)", b"REGISTER_SHADE(g)", b"int x;"]),
        (b"#undef A\n#undef B\n", [b"#undef A", b"#undef B"]),
        (b"@interface A : B {\n  int i;\n}\n@end\nint x;\n", [b"@interface A : B {\n  int i;\n}\n@end", b"int x;"]),
    ],
)  # fmt: skip
def test_declarations_end_where_they_end(source: bytes, expected: list[bytes]) -> None:
    file = parse_cxx(source)
    assert [one.text for one in declarations(file, 0, len(source))] == expected


def placed(source: bytes, new: bytes, where: str) -> Outcome:
    return plan_on(edit_from(f"{{kind: place-fragment, path: a.h, fragment: new, {where}}}", {"a.h": new}), source)


FIELD = b"  bool is_deep_ = false;\n"
BEHIND_FIELD = "after: {declaration: depth_, in: 'at::native::Shade'}"


def test_a_field_lands_behind_another_and_is_not_added_again() -> None:
    outcome = placed(HEADER, FIELD, BEHIND_FIELD)
    assert outcome.after == HEADER.replace(b"  int depth_ = 0;\n", b"  int depth_ = 0;\n" + FIELD)
    assert placed(outcome.after, FIELD, BEHIND_FIELD).status is Status.SATISFIED


def test_the_type_of_the_field_that_is_named_does_not_matter() -> None:
    outcome = placed(HEADER.replace(b"int depth_ = 0", b"int64_t depth_{2}"), FIELD, BEHIND_FIELD)
    assert b"  int64_t depth_{2};\n" + FIELD in (outcome.after or b"")


def test_a_field_that_another_type_has_does_not_count_as_there() -> None:
    source = HEADER + b"\nstruct Other {\n" + FIELD + b"};\n"
    outcome = placed(source, FIELD, BEHIND_FIELD)
    assert outcome.after == source.replace(b"  int depth_ = 0;\n", b"  int depth_ = 0;\n" + FIELD, 1)


def test_a_field_with_a_value_lands_at_the_end_of_its_type() -> None:
    outcome = placed(HEADER, FIELD, "end_of: {struct: Shade, in: 'at::native'}")
    assert outcome.after == HEADER.replace(b"{false};\n", b"{false};\n" + FIELD)


@pytest.mark.parametrize(
    ("new", "where", "behind"),
    [
        (b"void shade_none();\n", "after: {declaration: shade_all, in: 'at::native'}", b"void shade_all(int depth);\n"),
        (b"using at::Two;\n", "after: {declaration: One, in: global}", b"using at::One;\n"),
    ],
)
def test_a_prototype_and_a_using_line_are_anchors(new: bytes, where: str, behind: bytes) -> None:
    source = b"using at::One;\n" + HEADER
    assert placed(source, new, where).after == source.replace(behind, behind + new)


def test_overloads_are_two_places() -> None:
    source = HEADER.replace(b"void shade_all(int depth);\n", b"void shade_all(int depth);\nvoid shade_all();\n")
    outcome = placed(source, b"void f();\n", "after: {declaration: shade_all, in: 'at::native'}")
    assert outcome.after is None
    assert "2 places match" in str(outcome.conflict)


def test_a_declaration_that_is_gone_is_a_conflict() -> None:
    outcome = placed(HEADER.replace(b"int depth_", b"int deep_"), FIELD, BEHIND_FIELD)
    assert "0 places match 'after declaration depth_ in at::native::Shade', expected 1" in str(outcome.conflict)
