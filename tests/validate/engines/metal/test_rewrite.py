"""The rewriting of Metal into what Clang reads: tokens, dialect, kernels and their bindings, numbered places."""

from __future__ import annotations

from pathlib import Path

import pytest

from metal_kernels import cache
from stackproof.engines.metal import CompileError, RewriteError, compile_library
from stackproof.engines.metal.dialect import dialect_edits
from stackproof.engines.metal.kernels import find_kernels
from stackproof.engines.metal.model import ParameterKind
from stackproof.engines.metal.sites import number_sites
from stackproof.engines.metal.tokens import Edit, TokenStream


def rewritten(text: str) -> str:
    tokens = TokenStream(text)
    return tokens.apply(dialect_edits(tokens))


def test_line_markers_give_tokens_their_place() -> None:
    tokens = TokenStream('# 1 "a.metal"\nint x;\n# 7 "b.h" 2\n\nint y;\n')
    assert [(t.text, t.file, t.line) for t in tokens if t.kind == "word"] == [
        ("int", "a.metal", 1),
        ("x", "a.metal", 1),
        ("int", "b.h", 8),
        ("y", "b.h", 8),
    ]


def test_no_edit_changes_the_number_of_lines() -> None:
    text = "struct P {\n float2 v;\n};\nvoid f(int a[2]) {\n threadgroup float x[2], y;\n v.xy = c ? 1.0 : w.yx;\n}\n"
    assert rewritten(text).count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v.zx = w;", "v.__swizzle_into(__metal_host::lanes<2, 0>{}) = w;"),
        ("f(v.bgr);", "f(v.__swizzle(__metal_host::lanes<2, 1, 0>{}));"),
        ("p->xy == q;", "p->__swizzle(__metal_host::lanes<0, 1>{}) == q;"),
        ("v.x = 1;", "v.x = 1;"),
        ("v.xy();", "v.xy();"),
        ("x = 1.5 + 2e3 + .5f + 0x1p3 + 3h + 12;", "x = 1.5f + 2e3f + .5f + 0x1p3f + 3h + 12;"),
        ("x = 1.5h;", "x = half(1.5f);"),
        ("x = a ? b : c;", "x = a ? __metal_host::value(b) : __metal_host::value(c);"),
        ("template <float (*F)(float)> void g();", "template <float (&F)(float)> void g();"),
        ("void f(float a[4]);", "void f(thread float a[4]);"),
        ("void f(device float a[4]);", "void f(device float a[4]);"),
        ("y = f(a[4]);", "y = f(a[4]);"),
        ("threadgroup float* p = q;", "threadgroup float* p = q;"),
    ],
)
def test_the_dialect(text: str, expected: str) -> None:
    assert rewritten(text) == expected


def test_nested_conditionals_are_wrapped_inside_out() -> None:
    assert rewritten("x = a ? b ? 1 : 2 : c ? 3 : 4;").replace("__metal_host::value", "v") == (
        "x = a ? v(b ? v(1) : v(2)) : v(c ? v(3) : v(4));"
    )


def test_threadgroup_variables_get_memory_of_the_executor() -> None:
    text = rewritten("{ threadgroup array<float, 4> a[2][3], b; }")
    assert "threadgroup array < float , 4 > (&a)[ 2 ] [ 3 ] = *(threadgroup array < float , 4 > (*)[ 2 ] [ 3 ])" in text
    assert "threadgroup array < float , 4 > &b = " in text


def test_classes_become_copyable_out_of_constant() -> None:
    assert "{ __METAL_HOST_COPIES(P)  int x; }" in rewritten("struct P { int x; };")
    assert "__METAL_HOST_COPIES_ONLY(P)" in rewritten("struct P { P(int); };")
    assert "public: __METAL_HOST_COPIES(P) private:" in rewritten("class P { int x; };")
    assert "COPIES" not in rewritten("struct P { P(const thread P&); };")
    assert "COPIES" not in rewritten("struct P; enum class E { a };")


def test_a_field_spelled_like_a_swizzle_is_left_alone() -> None:
    assert "p.xy;" in rewritten("struct P { float xy; }; void f(P p) { p.xy; }")


TEMPLATE = """
template <typename T>
kernel void f(device T* a [[buffer(3)]], constant uint& n, threadgroup T* s [[threadgroup(1)]],
              uint2 at [[thread_position_in_grid]]) {}
"""


def test_an_instantiation_takes_attributes_from_its_template() -> None:
    text = TEMPLATE + 'template [[host_name("f_" "float")]] kernel void f<float>(device float*, constant uint&,'
    found = find_kernels(TokenStream(text + " threadgroup float*, uint2);"))
    (kernel,) = found.kernels
    assert kernel.host_name == "f_float"
    assert [(p.name, p.kind, p.index, p.attribute) for p in kernel.parameters] == [
        ("a", ParameterKind.DEVICE, 3, ""),
        ("n", ParameterKind.CONSTANT, 0, ""),
        ("s", ParameterKind.THREADGROUP, 1, ""),
        ("at", ParameterKind.ATTRIBUTE, -1, "thread_position_in_grid"),
    ]


def test_an_instantiation_by_decltype_is_found() -> None:
    text = TEMPLATE + 'template [[host_name("g")]] [[kernel]] decltype(f<half>) f<half>;'
    (kernel,) = find_kernels(TokenStream(text)).kernels
    assert (kernel.host_name, kernel.declaration.name, len(kernel.parameters)) == ("g", "f < half >", 4)


def test_a_value_parameter_without_attribute_is_refused() -> None:
    with pytest.raises(RewriteError, match="parameter n of kernel k is bound to nothing"):
        find_kernels(TokenStream("kernel void k(device float* a, uint n) {}"))


def test_unbalanced_brackets_are_refused_with_their_line() -> None:
    with pytest.raises(RewriteError, match=r"x.metal:2: unbalanced '\)'"):
        TokenStream('# 1 "x.metal"\nint f(\n]);\n'.replace("]", ")"))


def test_two_edits_of_one_place_are_refused() -> None:
    with pytest.raises(RewriteError, match="two rewrites"):
        TokenStream("abc").apply([Edit(0, 2, "x"), Edit(1, 3, "y")])


def test_calls_get_the_number_of_the_line_that_used_a_header() -> None:
    ir = """  call void @__tsan_read4(ptr %x), !dbg !5
  tail call void @__metal_host_barrier(i32 noundef 2) #1, !dbg !6
  call void @other(ptr %x), !dbg !5
declare void @__tsan_read4(ptr)
!1 = !DIFile(filename: "k.metal", directory: "/")
!2 = !DIFile(filename: "/headers/metal_x", directory: "/")
!3 = distinct !DISubprogram(name: "k", file: !1, line: 1)
!4 = distinct !DISubprogram(name: "h", file: !2, line: 9)
!5 = !DILocation(line: 7, column: 2, scope: !3)
!6 = !DILocation(line: 10, column: 1, scope: !4, inlinedAt: !7)
!7 = distinct !DILocation(line: 8, column: 3, scope: !3)
"""
    numbered = number_sites(ir, Path("/headers"))
    assert numbered.sites == (("k.metal", 7), ("k.metal", 8))
    assert "@__tsan_read4(ptr %x, i32 1), !dbg !5" in numbered.text
    assert "@__metal_host_barrier(i32 noundef 2, i32 2) #1" in numbered.text
    assert "@other(ptr %x)," in numbered.text
    assert "declare void @__tsan_read4(ptr, i32)" in numbered.text


def test_a_source_that_does_not_compile_says_where(tmp_path: Path) -> None:
    source = tmp_path / "wrong.metal"
    source.write_text("#include <metal_stdlib>\nkernel void k(device float* out) {\n  out[0] = lost;\n}\n")
    with pytest.raises(CompileError, match=r"wrong.metal:3: use of undeclared identifier 'lost'"):
        compile_library(source, cache=cache())


def test_copies_of_one_tree_share_a_build(tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        source = tmp_path / name / "k.metal"
        source.write_text("kernel void k(device float* out) {\n  out[0] = 3;\n}\n")
        paths.append(compile_library(source, cache=tmp_path / "cache", root=tmp_path / name)._build.path)
    assert paths[0] == paths[1]
