"""The schema parser: every shape that ``func:`` lines have, and one clear word about what is no schema."""

from __future__ import annotations

import pytest

from stackproof.gates.common.schema import parse_schema


def test_every_part_of_a_schema_is_read() -> None:
    schema = parse_schema(
        'deal.cards(Tensor(a -> *) self, SymInt[2] size, int[]? at=[1, 2], *, str how="a, (b", Tensor(b!) out) '
        "-> Tensor(b!)"
    )
    assert (schema.namespace, schema.base, schema.overload) == ("aten", "deal", "cards")
    assert schema.name == "aten::deal.cards"
    assert [(a.name, a.type, a.default) for a in schema.arguments] == [
        ("self", "Tensor", None),
        ("size", "SymInt[2]", None),
        ("at", "int[]?", "[1, 2]"),
        ("how", "str", '"a, (b"'),
        ("out", "Tensor", None),
    ]
    assert [a.alias for a in schema.arguments] == ["a -> *", "", "", "", "b!"]
    assert [a.name for a in schema.outs] == ["out"]
    assert [a.kwarg_only for a in schema.arguments] == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("text", "returns"),
    [
        ("f() -> ()", []),
        ("f() -> Tensor", [("", "Tensor")]),
        ("f() -> Tensor(a)[]", [("", "Tensor[]")]),
        ("f() -> (Tensor left, SymInt n)", [("left", "Tensor"), ("n", "SymInt")]),
    ],
)
def test_returns_are_read_with_and_without_names(text: str, returns: list[tuple[str, str]]) -> None:
    assert [(value.name, value.type) for value in parse_schema(text).returns] == returns


def test_a_namespace_other_than_aten_is_kept() -> None:
    assert parse_schema("paint::fade(Tensor self) -> Tensor").name == "paint::fade"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("f", "no argument list"),
        ("f(Tensor self -> Tensor", "not closed"),
        ("f(Tensor self)", "no '->'"),
        ("f(Tensor self) ->", "no return type"),
        ("f(Tensor) -> Tensor", "is not an argument"),
        ("f(Tensor self, int self) -> Tensor", "stands there twice"),
        ("f(Tensor self, *, *, int n) -> Tensor", "two '*'"),
        ("2f(Tensor self) -> Tensor", "not an operator name"),
        ("f(Tensor! self) -> Tensor", "is not a type"),
    ],
)
def test_what_is_no_schema_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_schema(text)
    assert said in str(caught.value)
