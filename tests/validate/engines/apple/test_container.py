"""The metallib container: what is in it is found, and what is damaged, cut short or hostile is one clear sentence."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metallib_bytes
from patchstack.errors import PatchstackError
from skips import require_packages
from stackproof.engines.apple.container import read_metallib
from stackproof.engines.apple.errors import ContainerError, NoSuchKernelError
from stackproof.engines.apple.macho import metallib_sections
from stackproof.engines.apple.release import open_file, wheel_metallib

require_packages("lief")

CODE = {"first": b"\xde\xc0\x17\x0b one", "second_kernel": b"\xde\xc0\x17\x0b and another"}
GOOD = metallib_bytes.container(CODE)


def test_functions_are_found_with_name_versions_and_bitcode() -> None:
    library = read_metallib(GOOD + b"what follows it in a section", "test")
    assert [entry.name for entry in library.entries] == list(CODE)
    assert {entry.name: library.bitcode(entry) for entry in library.entries} == CODE
    first = library.entry("first")
    assert (first.kind, first.air_version, first.language_version) == ("kernel", (2, 6), (3, 1))
    assert library.header.platform_version == (14, 0)


def test_an_unknown_name_says_how_many_there_are_and_how_to_list_them() -> None:
    with pytest.raises(NoSuchKernelError, match=r"nope: no such kernel; expected one of the 2 of test \(next: .*list"):
        read_metallib(GOOD, "test").entry("nope")


def test_changed_bitcode_is_found_by_its_digest() -> None:
    changed = bytearray(GOOD)
    changed[-1] ^= 1
    library = read_metallib(bytes(changed), "test")
    assert library.bitcode(library.entry("first")) == CODE["first"]
    with pytest.raises(ContainerError, match="the bitcode of second_kernel was changed"):
        library.bitcode(library.entry("second_kernel"))


def _patched(offset: int, format_: str, value: int) -> bytes:
    data = bytearray(GOOD)
    struct.pack_into(format_, data, offset, value)
    return bytes(data)


_FIRST = metallib_bytes.entry("first", CODE["first"], 0)
DAMAGED = {
    "empty": (b"", "cut short; expected a header of 88 bytes, found 0 bytes"),
    "another file": (b"\x7fELF" + GOOD[4:], "does not start like one; expected MTLB"),
    "cut in the middle": (GOOD[:-5], "cut short; expected"),
    "a size below its header": (_patched(16, "<Q", 3), "cut short"),
    "a section outside": (_patched(72, "<Q", 2**63), "its bitcode section ends outside it"),
    "a list outside": (_patched(24, "<Q", len(GOOD) - 2), "function list"),
    "a huge count": (
        _patched(88, "<I", 2**32 - 1),
        "function list is cut short; expected 4294967295 functions, found 2",
    ),
    "an entry of no length": (_patched(92, "<I", 0), "function 0 of its list has no usable length"),
    "an entry beyond the list": (_patched(92, "<I", 2**31), "function 0 of its list has no usable length"),
    "a tag beyond its entry": (_patched(100, "<H", 60000), "tag b'NAME' of function 0 ends outside it"),
    "a missing tag": (
        metallib_bytes.container(CODE, [metallib_bytes.entry("first", CODE["first"], 0, without=b"HASH")]),
        "function 0 of its list; expected a tag HASH of 32 bytes, found no such tag",
    ),
    "bitcode beyond its section": (
        metallib_bytes.container(CODE, [metallib_bytes.entry("first", CODE["first"], 1 << 40)]),
        "the bitcode of first ends outside its section",
    ),
    "two of one name": (metallib_bytes.container(CODE, [_FIRST, _FIRST]), "two functions are called first"),
    "a name of no text": (
        metallib_bytes.container(CODE, [_FIRST.replace(b"first", b"\xff\xfe\xfd\xfc\xfb")]),
        "the name of function 0 is no text",
    ),
    "a name with a control character": (
        metallib_bytes.container(CODE, [_FIRST.replace(b"first", b"fi\x1bst")]),
        "function 0 has no usable name",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_container_is_one_sentence(name: str) -> None:
    data, sentence = DAMAGED[name]
    with pytest.raises(ContainerError) as caught:
        read_metallib(data, "some.metallib")
    text = str(caught.value)
    assert text.startswith("some.metallib: not a usable metallib: ")
    assert sentence in text
    assert "\n" not in text


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_is_overwritten_either_reads_or_is_refused(data: st.DataObject) -> None:
    changed = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(GOOD) - 1))] = data.draw(st.integers(0, 255))
    sentence = ""
    try:
        library = read_metallib(bytes(changed[: data.draw(st.integers(0, len(GOOD)))]), "fuzzed")
        for entry in library.entries:
            library.bitcode(entry)
    except PatchstackError as error:
        sentence = str(error)
    assert "\n" not in sentence


def test_every_metallib_of_a_library_is_found_by_its_section(tmp_path: Path) -> None:
    library = tmp_path / "library.dylib"
    newer = metallib_bytes.container({"third": b"3"})
    library.write_bytes(metallib_bytes.macho({"__text": b"code" * 9, "metal_basic": GOOD, "metal_40": newer}))
    assert [(one.name, one.size) for one in metallib_sections(library)] == [
        ("metal_basic", len(GOOD)),
        ("metal_40", len(newer)),
    ]
    assert [entry.name for entry in open_file(library, "metal_40").entries] == ["third"]
    with pytest.raises(ContainerError, match="no such section; expected one of metal_basic, metal_40"):
        open_file(library, "metal_50")


def test_a_library_that_is_cut_short_or_none_is_refused(tmp_path: Path) -> None:
    library = tmp_path / "library.dylib"
    whole = metallib_bytes.macho({"metal_basic": GOOD})
    for content in (whole[:-10], whole[:40], b"", b"\x7fELF" * 50):
        library.write_bytes(content)
        with pytest.raises(ContainerError) as caught:
            open_file(library, "metal_basic")
        assert "\n" not in str(caught.value)


def test_a_wheel_is_unpacked_once(tmp_path: Path) -> None:
    wheel = metallib_bytes.wheel(tmp_path / "torch.whl", metallib_bytes.macho({"metal_basic": GOOD}))
    said: list[str] = []
    first = wheel_metallib(wheel, "metal_basic", tmp_path / "cache", progress=said.append)
    assert first.read_bytes() == GOOD
    again = wheel_metallib(wheel, "metal_basic", tmp_path / "cache", progress=said.append)
    assert again == first
    assert said == ["taking the Metal libraries out of torch.whl"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [first.parent.name]


def test_a_wheel_of_another_system_or_a_damaged_one_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    linux = metallib_bytes.wheel(tmp_path / "linux.whl", b"ELF", member="torch/lib/libtorch_cpu.so")
    with pytest.raises(
        ContainerError, match=r"linux\.whl: not a macOS wheel of torch; expected torch/lib/libtorch_cpu"
    ):
        wheel_metallib(linux, "metal_basic", tmp_path / "cache")
    damaged = tmp_path / "damaged.whl"
    damaged.write_bytes(linux.read_bytes()[:50])
    with pytest.raises(ContainerError, match="the wheel cannot be read"):
        wheel_metallib(damaged, "metal_basic", tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
