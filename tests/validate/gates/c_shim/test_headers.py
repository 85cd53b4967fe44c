"""C-shim headers as data: what is declared, and how two versions differ."""

from __future__ import annotations

import pytest

from patchstack.errors import TreeError
from patchstack.tree.c_shim import ShimDelta, classify, parse_declarations

HEAD = """
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
"""
TAIL = """
#ifdef __cplusplus
} // extern "C"
#endif
"""


def header(*lines: str) -> bytes:
    return (HEAD + "\n".join(lines) + TAIL).encode()


def declare(name: str, parameters: str = "AtenTensorHandle self, AtenTensorHandle* ret0") -> str:
    return f"AOTI_TORCH_EXPORT AOTITorchError aoti_torch_mps_{name}({parameters});"


def delta(before: list[str], after: list[str]) -> ShimDelta:
    return classify(parse_declarations(header(*before)), parse_declarations(header(*after)))


def names(delta_part: object) -> list[str]:
    assert isinstance(delta_part, tuple)
    return [getattr(one, "name", "") or one.after.name for one in delta_part]


def test_a_declaration_has_name_text_line_and_parameters() -> None:
    (found,) = parse_declarations(header(declare("fade", "const int64_t* size, int64_t size_len_")))
    assert found.name == "aoti_torch_mps_fade"
    assert found.text == "AOTITorchError aoti_torch_mps_fade(const int64_t* size, int64_t size_len_)"
    assert found.line == 6
    assert found.parameters == ("const int64_t* size", "int64_t size_len_")
    assert found.binary_signature == ("AOTITorchError", "const int64_t*", "int64_t")
    assert found.guard == ()


def test_layout_and_comments_do_not_count() -> None:
    plain = [declare("fade", "const int64_t** range, double p")]
    spread = [
        "/* AOTI_TORCH_EXPORT AOTITorchError aoti_torch_mps_ghost(int32_t a); */",
        "AOTI_TORCH_EXPORT  AOTITorchError",
        "aoti_torch_mps_fade( const int64_t * * range , // of the tint",
        "    double p ) ;",
    ]
    assert delta(plain, spread).is_empty


def test_each_kind_of_difference_is_classified() -> None:
    before = [declare("a"), declare("b"), declare("c", "double x"), declare("d"), declare("e", "double x")]
    after = [declare("d"), declare("a"), declare("c", "int64_t x"), declare("e", "double y"), declare("f")]
    found = delta(before, after)
    assert names(found.added) == ["aoti_torch_mps_f"]
    assert names(found.removed) == ["aoti_torch_mps_b"]
    assert names(found.changed) == ["aoti_torch_mps_c", "aoti_torch_mps_e"]
    assert [change.names_only for change in found.changed] == [False, True]
    assert names(found.reordered) == ["aoti_torch_mps_d"]
    assert found.unchanged == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int64_t a", "int64_t* a"),
        ("int64_t a", "int32_t a"),
        ("int64_t a, double b", "double b, int64_t a"),
        ("int64_t a", "int64_t a, int64_t b"),
        ("int64_t a", "const int64_t a"),
    ],
)
def test_a_change_of_types_is_never_taken_for_a_change_of_names(old: str, new: str) -> None:
    (change,) = delta([declare("f", old)], [declare("f", new)]).changed
    assert not change.names_only


def test_the_fewest_moves_are_reported_as_reordered() -> None:
    order = [declare(name) for name in "abcdef"]
    assert names(delta(order, order[1:] + order[:1]).reordered) == ["aoti_torch_mps_a"]
    assert len(delta(order, order[::-1]).reordered) == 5


def test_an_addition_in_the_middle_moves_nothing() -> None:
    found = delta([declare("a"), declare("c")], [declare("a"), declare("b"), declare("c")])
    assert (names(found.added), found.reordered, found.changed, found.removed) == (["aoti_torch_mps_b"], (), (), ())


def test_a_guard_is_part_of_the_declaration_but_not_of_its_text() -> None:
    guarded = ["#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_12_0", declare("a"), "#endif // TORCH_FEATURE_VERSION"]
    found = delta([declare("a")], guarded)
    assert (found.changed, names(found.regated), found.unchanged) == ((), ["aoti_torch_mps_a"], 0)
    assert found.regated[0].after.guard == ("TORCH_FEATURE_VERSION >= TORCH_VERSION_2_12_0",)


def test_an_else_branch_is_another_guard() -> None:
    either = ["#ifdef NEW", declare("a", "int64_t x"), "#else", declare("a", "int32_t x"), "#endif"]
    assert [one.guard for one in parse_declarations(header(*either))] == [("ifdef NEW",), ("not (ifdef NEW)",)]


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        (["<<<<<<< ours", declare("a")], 6, "unresolved merge conflict"),
        ([declare("a"), "=======", declare("b")], 7, "unresolved merge conflict"),
        ([declare("a")[:-1], declare("b")], 6, "the declaration does not end"),
        ([declare("a")[:-1]], 7, "a preprocessor line cuts a declaration"),
        ([declare("a"), declare("a")], 7, "declared twice"),
        (["#if X", declare("a")], 6, "the #if is never closed"),
        ([declare("a"), "#endif", "#endif"], 7, "#endif without #if"),
        (["AOTI_TORCH_EXPORT int32_t;"], 6, "not a function declaration"),
    ],
)
def test_a_header_that_cannot_be_read_is_one_error_with_its_line(lines: list[str], line: int, said: str) -> None:
    with pytest.raises(TreeError) as caught:
        parse_declarations(header(*lines), path="c_shim_mps.h")
    assert said in caught.value.problem
    assert caught.value.where == f"c_shim_mps.h:{line}"


def test_an_empty_header_declares_nothing() -> None:
    assert parse_declarations(header()) == ()
    assert classify((), ()).is_empty
