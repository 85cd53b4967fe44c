"""The parts of host-check that need no compiler: queue blocks, struct layouts, symbols."""

from __future__ import annotations

import pytest

from stackproof.engines.standin.layouts import compare_layouts, parse_layouts
from stackproof.engines.standin.queue_rules import check_queue_rules
from stackproof.engines.standin.symbols import missing_symbols, readable

PATH = "aten/src/ATen/native/mps/operations/A.mm"
HOST = """
void launch(const Tensor& t) {
  TORCH_CHECK(t.dim() == 2, "in dispatch_sync(");
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    auto encoder = stream->commandEncoder(); // TORCH_CHECK(no)
    [encoder setComputePipelineState:pso];
  });
}
"""


def rules(text: str) -> list[tuple[str, int]]:
    return [(finding.rule, finding.line) for finding in check_queue_rules(PATH, text)]


def test_checks_before_the_block_and_the_encoder_inside_it_are_right() -> None:
    assert rules(HOST) == []


def test_a_check_inside_the_block_is_found_at_its_line() -> None:
    text = HOST.replace("    [encoder", '    TORCH_CHECK_VALUE(t.is_mps(), "too late");\n    [encoder')
    assert rules(text) == [("check-inside-block", 6)]


def test_an_encoder_taken_outside_the_block_is_found_at_its_line() -> None:
    text = HOST.replace("  dispatch_sync_with", "  auto early = stream->commandEncoder();\n  dispatch_sync_with")
    assert rules(text) == [("encoder-outside-block", 4)]


def test_what_is_in_a_raw_string_or_a_branch_that_is_never_compiled_is_no_code() -> None:
    quoted = 'auto text = R"(" TORCH_CHECK(no) ")"; // "\n'
    dead = "#if 0\n    TORCH_CHECK(no);\n#endif\n"
    assert rules(HOST.replace("    [encoder", f"    {quoted}{dead}    [encoder")) == []


def dump(name: str, fields: list[tuple[int, str]], size: int) -> str:
    lines = [f"         0 | struct {name}", *(f"{offset:10} |   {text}" for offset, text in fields)]
    return "\n*** Dumping AST Record Layout\n" + "\n".join(lines) + f"\n           | [sizeof={size}, align=4]\n"


def differences(host: str, kernel: str) -> list[str]:
    return compare_layouts(parse_layouts(host), parse_layouts(kernel), ["Params"])


def test_the_same_layout_with_other_types_is_no_difference() -> None:
    host = dump("Params<4, long long>", [(0, "struct std::array<int, 4> sizes"), (16, "_Bool flag")], 20)
    kernel = dump("Params<4, long>", [(0, "struct metal::array<int, 4> sizes"), (16, "bool flag")], 20)
    assert differences(host, kernel) == []


@pytest.mark.parametrize(
    ("fields", "size", "words"),
    [
        ([(0, "bool flag"), (4, "int sizes")], 8, "sizes at 0 and 4"),
        ([(0, "int sizes")], 8, "other fields on the host than in the kernel: flag"),
        ([(0, "int sizes"), (4, "bool flag")], 16, "8 bytes on the host and 16 in the kernel"),
    ],
)
def test_another_layout_is_named(fields: list[tuple[int, str]], size: int, words: str) -> None:
    host = dump("Params<4>", [(0, "int sizes"), (4, "bool flag")], 8)
    (text,) = differences(host, dump("Params<4>", fields, size))
    assert text.startswith("Params<4>")
    assert words in text


def test_structs_that_no_kernel_takes_are_not_compared() -> None:
    assert differences(dump("Other", [(0, "int a")], 4), dump("Other", [(0, "int b")], 4)) == []


def test_only_pytorchs_own_missing_symbols_are_told() -> None:
    wanted = ("__ZN2at3mps4goneEv", "__ZNK3c105there", "_free", "__ZN3fmt7vformatEv", "__ZNSt3__14coutE")
    assert missing_symbols(wanted, frozenset({"__ZNK3c105there"})) == ("__ZN2at3mps4goneEv",)


def test_a_mangled_name_is_shown_as_a_qualified_one() -> None:
    assert readable("__ZN2at6native3mps4goneERKNS_6TensorE") == "at::native::mps::gone"
