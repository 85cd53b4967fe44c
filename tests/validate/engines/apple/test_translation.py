"""From a module's text to a kernel that runs: its metadata is read, and what is not understood is named."""

from __future__ import annotations

import pytest
import torch

import air_modules
from stackproof.engines.apple.build import AirSource, compile_kernels
from stackproof.engines.apple.errors import AppleKernelError, TranslationError, UnmappedIntrinsicError
from stackproof.engines.apple.show import kernel_as_json, kernel_lines
from stackproof.engines.metal import ALL_DETECTORS, CallError, ReportKind, RunMode

air_modules.require_llvmlite()

STRUCTS = """!air.kernel = !{!1}
!1 = !{ptr @scale, !2, !3, !9}
!2 = !{}
!3 = !{!4, !5, !8}
!4 = !{i32 0, !"air.buffer", !"air.location_index", i32 1, i32 1, !"air.read_write", !"air.address_space", i32 1, !"air.arg_type_size", i32 4, !"air.arg_type_align_size", i32 4, !"air.arg_type_name", !"float", !"air.arg_name", !"out"}
!5 = !{i32 1, !"air.buffer", !"air.buffer_size", i32 24, !"air.location_index", i32 0, i32 1, !"air.read", !"air.address_space", i32 2, !"air.struct_type_info", !6, !"air.arg_type_size", i32 24, !"air.arg_type_align_size", i32 4, !"air.arg_type_name", !"Params", !"air.arg_name", !"params"}
!6 = !{!"air.struct_type_info", !7, i32 0, i32 12, i32 0, !"metal::array", !"factors", !"air.struct_type_info", !10, i32 12, i32 8, i32 0, !"Inner", !"inner", i32 20, i32 1, i32 0, !"bool", !"flip"}
!7 = !{i32 0, i32 4, i32 3, !"float", !"__elems"}
!8 = !{i32 2, !"air.thread_position_in_grid", !"air.arg_type_name", !"uint", !"air.arg_name", !"tid"}
!9 = !{!"air.max_work_group_size", i32 256}
!10 = !{i32 0, i32 4, i32 0, !"float", !"offset", i32 4, i32 4, i32 0, !"SomeEnum", !"kind"}
!air.language_version = !{!11}
!11 = !{!"Metal", i32 3, i32 1, i32 0}
"""  # noqa: E501 -- LLVM's metadata has no line breaks


def _scale() -> AirSource:
    """``out[tid] = tid * factors[2] + inner.offset``"""
    text = f"""{air_modules.HEADER}
define weak_odr void @scale(ptr addrspace(1) %0, ptr addrspace(2) %1, i32 %2) {{
  %4 = getelementptr inbounds float, ptr addrspace(2) %1, i64 2
  %5 = load float, ptr addrspace(2) %4, align 4
  %6 = getelementptr inbounds float, ptr addrspace(2) %1, i64 3
  %7 = load float, ptr addrspace(2) %6, align 4
  %8 = tail call float @air.convert.f.f32.u.i32(i32 %2)
  %9 = tail call float @air.fma.f32(float %8, float %5, float %7)
  %10 = zext i32 %2 to i64
  %11 = getelementptr inbounds float, ptr addrspace(1) %0, i64 %10
  store float %9, ptr addrspace(1) %11, align 4
  ret void
}}

declare float @air.convert.f.f32.u.i32(i32)
declare float @air.fma.f32(float, float, float)

{STRUCTS}"""
    return AirSource.of_text("scale", text)


def test_metadata_gives_buffers_attributes_limits_and_nested_layouts() -> None:
    kernel = _scale().kernel()
    assert [(p.name, p.location, p.address_space, p.writable) for p in kernel.parameters[:2]] == [
        ("out", 1, 1, True),
        ("params", 0, 2, False),
    ]
    assert kernel.parameters[2].attribute == "thread_position_in_grid"
    assert (kernel.max_threads, kernel.language) == (256, "Metal 3.1")
    layout = kernel.struct("params")
    assert layout.size == 24
    assert [(f.path, f.offset, f.code, f.count) for f in layout.fields] == [
        ("factors", 0, "f", 3),
        ("inner.offset", 12, "f", 1),
        ("inner.kind", 16, "i", 1),
        ("flip", 20, "?", 1),
    ]
    with pytest.raises(TranslationError, match="no struct parameter of that name; expected params, found out"):
        kernel.struct("out")


def test_what_is_shown_has_every_offset_and_the_json_says_the_same() -> None:
    kernel = _scale().kernel()
    text = "\n".join(kernel_lines(kernel))
    assert "[constant 0]  Params params (reads, 24 bytes)" in text
    assert "16  SomeEnum inner.kind" in text
    shown = kernel_as_json(kernel)
    assert shown["parameters"][1]["layout"][2] == {
        "path": "inner.kind", "type_name": "SomeEnum", "offset": 16, "size": 4, "count": 1,
    }  # fmt: skip
    assert shown["intrinsics"] == ["air.convert.f.f32.u.i32", "air.fma.f32"]


@pytest.mark.parametrize("mode", [RunMode.PLAIN, ALL_DETECTORS | RunMode.TRAFFIC])
def test_buffers_are_bound_by_index_and_structs_by_value(mode: RunMode) -> None:
    source = _scale()
    library = air_modules.compiled((source,), mode)
    values = {"factors": (0.0, 0.0, 2.5), "inner.offset": 100.0, "inner.kind": 0, "flip": True}
    out = torch.zeros(5)
    library.scale(source.kernel().struct("params").pack(values), out, threads=5)
    assert out.tolist() == [100.0, 102.5, 105.0, 107.5, 110.0]
    assert library.reports() == []
    if mode:
        assert library.traffic["stores"] == 5


def test_too_few_bytes_for_a_struct_are_refused() -> None:
    with pytest.raises(CallError, match="params: too few bytes; expected 24, found 8"):
        air_modules.compiled((_scale(),)).scale(b"\0" * 8, torch.zeros(5), threads=5)


def test_an_access_outside_is_reported_with_the_line_of_the_disassembly() -> None:
    source = _scale()
    library = air_modules.compiled((source,), ALL_DETECTORS)
    library.scale(b"\0" * 24, torch.zeros(3), threads=5)
    (report,) = library.reports()
    library.clear_reports()
    assert report.kind is ReportKind.OUT_OF_BOUNDS
    assert report.file == "scale.ll"
    assert "store float" in source.text.split("\n")[report.line - 1]


def test_a_write_to_a_read_only_buffer_is_reported() -> None:
    text = _scale().text.replace('!"air.location_index", i32 1, i32 1, !"air.read_write"',
                                 '!"air.location_index", i32 1, i32 1, !"air.read"')  # fmt: skip
    library = air_modules.compiled((AirSource.of_text("scale", text),), ALL_DETECTORS)
    library.scale(b"\0" * 24, torch.zeros(5), threads=5)
    assert {report.kind for report in library.reports()} == {ReportKind.READ_ONLY_WRITE}
    library.clear_reports()


def test_an_unmapped_function_is_named_with_its_kernel() -> None:
    source = air_modules.call_module("strange", "air.guess.f32", "float", ["float"])
    with pytest.raises(UnmappedIntrinsicError, match=r"strange: a function .*; found float air\.guess\.f32\(float\)"):
        air_modules.compiled((source,))


@pytest.mark.parametrize(
    ("function", "result", "arguments"),
    [
        ("air.convert.x.f32.f.f32", "float", ["float"]),
        ("air.max.f.f32", "float", ["float", "float"]),
        ("air.simd_sum.f64", "i64", ["i64"]),
        ("air.wg.sleep", "i32", ["i32"]),
    ],
)
def test_a_known_family_with_unknown_types_is_unmapped_too(function: str, result: str, arguments: list[str]) -> None:
    source = air_modules.call_module("strange", function, result, arguments)
    with pytest.raises(UnmappedIntrinsicError, match=function.replace(".", r"\.")):
        air_modules.compiled((source,))


def test_damaged_metadata_is_one_sentence() -> None:
    good = _scale().text
    broken = {
        "not a module of one kernel": good.replace("!air.kernel =", "!air.other ="),
        "no number after air.address_space": good.replace('!"air.address_space", i32 2', '!"air.address_space", !"x"'),
        "a field of a struct": good.replace('i32 20, i32 1, i32 0, !"bool", !"flip"', 'i32 20, !"bool"'),
    }
    for problem, text in broken.items():
        assert text != good
        with pytest.raises(TranslationError) as caught:
            AirSource.of_text("scale", text).kernel()
        assert problem in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_attribute_that_the_executor_lacks_is_refused() -> None:
    text = _scale().text.replace("air.thread_position_in_grid", "air.amplification_id")
    with pytest.raises(TranslationError, match="cannot provide; found amplification_id"):
        air_modules.compiled((AirSource.of_text("scale", text),))


def test_text_that_is_no_module_is_refused() -> None:
    with pytest.raises(AppleKernelError, match="LLVM cannot read the text"):
        AirSource.of_text("nonsense", "define nothing")


def test_fast_math_is_not_ours_to_choose() -> None:
    with pytest.raises(AppleKernelError, match="fast math is decided when"):
        compile_kernels((_scale(),), RunMode.FAST_MATH, air_modules.cache())


def test_a_second_build_comes_from_the_cache(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile_kernels((_scale(),), RunMode.PLAIN, air_modules.cache())
    monkeypatch.setattr("stackproof.engines.apple.build.link_kernels", None)
    again = compile_kernels((_scale(),), RunMode.PLAIN, air_modules.cache())
    assert again.kernel_names == first.kernel_names == ["scale"]
