"""Mach-O and ELF files: which symbols they want and which they define."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from patchstack.errors import PatchstackError
from skips import require_packages
from stackproof.engines.object_files import Symbols, elf_symbols, macho_symbols
from stackproof.engines.standin.missing import missing_symbols
from stackproof.packages import MissingPackageError

require_packages("lief")


def mach_o(symbols: list[tuple[str, int]]) -> bytes:
    """A Mach-O file with nothing but a symbol table: names with their type bytes."""
    strings, table = b"\0", b""
    for name, kind in symbols:
        table += struct.pack("<IBBHQ", len(strings), kind, 0, 0, 0)
        strings += name.encode() + b"\0"
    head = struct.pack("<8I", 0xFEEDFACF, 0x0100000C, 0, 1, 1, 24, 0, 0)
    offset = len(head) + 24
    command = struct.pack("<6I", 2, 24, offset, len(symbols), offset + len(table), len(strings))
    return head + command + table + strings


UNDEFINED, DEFINED, LOCAL = 0x01, 0x0F, 0x0E


def test_symbols_of_a_mach_o_file_are_told_apart_by_who_defines_them() -> None:
    data = mach_o([("__ZN2at5emptyEv", UNDEFINED), ("_mine", DEFINED), ("_private", LOCAL), ("_free", UNDEFINED)])
    assert macho_symbols(data) == Symbols(frozenset({"__ZN2at5emptyEv", "_free"}), frozenset({"_mine"}))


SOURCE = """
extern int wanted(void), optional(void) __attribute__((weak));
int defined(void) { return wanted(); }
__attribute__((weak)) int weak(void) { return optional ? optional() : 0; }
static int hidden(void) { return 1; }
int (*pointer)(void) = hidden;
"""


def compile_c(text: str, output: Path, *options: str) -> Path:
    source = output.with_suffix(".c")
    source.write_text(text)
    zig = (sys.executable, "-m", "ziglang", "cc", "--target=x86_64-linux-gnu", "-fPIC")
    subprocess.run([*zig, *options, "-o", str(output), str(source)], check=True)
    return output


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_packages("ziglang")
    folder = tmp_path_factory.mktemp("object")
    compile_c(SOURCE, folder / "object.o", "-c")
    compile_c(SOURCE, folder / "library.so", "-shared", "-nostdlib")
    return folder


def test_an_elf_object_does_not_want_what_is_weak_nor_show_what_is_static(compiled: Path) -> None:
    assert elf_symbols(compiled / "object.o") == Symbols(
        frozenset({"wanted"}), frozenset({"defined", "weak", "pointer"})
    )


def test_an_elf_library_exports_what_its_dynamic_table_has(compiled: Path) -> None:
    found = elf_symbols(compiled / "library.so")
    assert found.wanted == {"wanted"}
    assert {"defined", "weak", "pointer"} <= found.defined
    assert "hidden" not in found.defined


def test_what_neither_an_object_nor_a_library_defines_is_missing(compiled: Path, tmp_path: Path) -> None:
    called = ("_ZN2at4goneEv", "_ZN2at4hereEv", "other")
    text = "".join(f"extern void {name}(void);\n" for name in called)
    text += f"void caller(void) {{ {' '.join(f'{name}();' for name in called)} }}\n"
    caller = compile_c(text, tmp_path / "caller.o", "-c")
    here = compile_c("void _ZN2at4hereEv(void) {}\n", tmp_path / "here.o", "-c")
    assert missing_symbols([caller], []) == ["_ZN2at4goneEv", "_ZN2at4hereEv"]
    assert missing_symbols([caller, here], [compiled / "library.so"]) == ["_ZN2at4goneEv"]


def test_another_file_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PatchstackError, match="not a Mach-O file"):
        macho_symbols(b"\x7fELF" + bytes(64))
    file = tmp_path / "object.o"
    file.write_bytes(b"\xcf\xfa\xed\xfe" + bytes(64))
    with pytest.raises(PatchstackError, match="not an ELF file"):
        elf_symbols(file)


def test_without_lief_the_sentence_has_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lief", None)
    with pytest.raises(MissingPackageError, match=r"'lief' is not installed.*next: pip install 'lief>=0\.16'"):
        macho_symbols(b"")
