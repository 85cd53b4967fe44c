"""Struct layouts are those of C, and a header that changed is noticed."""

from __future__ import annotations

import ctypes
import struct

import pytest

from patchstack.errors import PatchstackError
from stackproof.engines.metal.struct_layout import StructTable

HEADER = b"""
#pragma once
enum class Colour { Red, Green };
enum class Small : uint8_t { One };
template <unsigned N = 5, typename index_t = int32_t>
struct Inner {
  int32_t dims;
  ::some::array<index_t, N> sizes;
  Colour colour;
  bool flag;
#ifndef DEVICE
  Inner(int dims_) : dims(dims_) {}
  int64_t product() const;
#endif
};
template <unsigned N, typename index_t>
struct Outer {
  bool first;
  Inner<N, index_t> inner;
  float x, weights[3];
  Small small;
  static constexpr int ignored = 3;
  index_t last;
};
struct Plain { half a; uint64_t b; };
"""


def fields_of(layout_name: str, *arguments: int | str) -> dict[str, tuple[int, str, int]]:
    layout = StructTable(HEADER).layout(layout_name, *arguments)
    return {field.path: (field.offset, field.code, field.count) for field in layout.fields}


@pytest.mark.parametrize(("index", "ctype"), [("int32_t", ctypes.c_int32), ("int64_t", ctypes.c_int64)])
def test_offsets_and_size_are_those_of_c(index: str, ctype: type) -> None:
    class Inner(ctypes.Structure):
        _fields_ = [("dims", ctypes.c_int32), ("sizes", ctype * 4), ("colour", ctypes.c_int32), ("flag", ctypes.c_bool)]

    class Outer(ctypes.Structure):
        _fields_ = [
            ("first", ctypes.c_bool),
            ("inner", Inner),
            ("x", ctypes.c_float),
            ("weights", ctypes.c_float * 3),
            ("small", ctypes.c_uint8),
            ("last", ctype),
        ]

    layout = StructTable(HEADER).layout("Outer", 4, index)
    assert (layout.size, layout.alignment) == (ctypes.sizeof(Outer), ctypes.alignment(Outer))
    offsets = {field.path: field.offset for field in layout.fields}
    for name, _ in Outer._fields_:
        if name != "inner":
            assert offsets[name] == getattr(Outer, name).offset
    for name, _ in Inner._fields_:
        assert offsets[f"inner.{name}"] == Outer.inner.offset + getattr(Inner, name).offset


def test_an_enum_has_the_width_of_its_declared_type() -> None:
    fields = fields_of("Outer", 2, "int32_t")
    assert fields["small"][1] == "B"
    assert fields["inner.colour"][1] == "i"


def test_values_are_packed_at_their_offsets() -> None:
    packed = StructTable(HEADER).layout("Plain").pack({"a": 1.5, "b": 2**40})
    assert packed == struct.pack("<e6xQ", 1.5, 2**40)


@pytest.mark.parametrize("values", [{"a": 1.0}, {"a": 1.0, "b": 1, "c": 2}, {"a": 1.0, "B": 1}])
def test_a_field_too_many_or_too_few_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(PatchstackError, match="does not have the fields"):
        StructTable(HEADER).layout("Plain").pack(values)


def test_a_wrong_number_of_elements_is_refused() -> None:
    layout = StructTable(b"struct S { int32_t a[2]; };").layout("S")
    with pytest.raises(PatchstackError, match="wrong number of elements for a"):
        layout.pack({"a": [1, 2, 3]})


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"struct S { unknown_t a; };", "type that is not understood"),
        (b"struct S { int32_t a[SIZE]; };", "array length"),
        (b"struct S {\n#ifdef A\n  int32_t a;\n#endif\n  int32_t b;\n};", "under #if"),
        (b"struct T { int32_t a; };", "no such struct"),
    ],
)
def test_what_is_not_understood_is_refused_not_guessed(header: bytes, problem: str) -> None:
    with pytest.raises(PatchstackError, match=problem):
        StructTable(header).layout("S")
