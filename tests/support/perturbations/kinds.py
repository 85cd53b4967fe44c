"""The kinds of edits, each a function from upstream's files to the edited ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from patchstack.tree.cxx import CxxFile, Definition
from patchstack.tree.cxx_statements import body_of

KERNELS = "aten/src/ATen/native/mps/kernels"
HEADER, METAL = f"{KERNELS}/GridSampler.h", f"{KERNELS}/GridSampler.metal"
HOST = "aten/src/ATen/native/mps/operations/GridSampler.mm"
NAMESPACE = "at::native::mps"
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Edited:
    """What an edit made.

    Attributes:
        files: the files that it changed, whole.
        names: what a true report of a conflict names: one of these.
        kept: texts of the edit, by path, that a stack must still have, in something that is used.
        told: texts that a stack must still have, or else the report says that they go.
        order: names of one file, the second of which has to stay below the first.
    """

    files: Files
    names: tuple[str, ...]
    kept: tuple[tuple[str, bytes], ...] = ()
    told: tuple[tuple[str, bytes], ...] = ()
    order: tuple[str, str] | tuple[()] = ()


@dataclass(frozen=True)
class Kind:
    """One variant of a kind of edit.

    Attributes:
        name: of the kind; several variants share it.
        variant: what is edited.
        keeps_meaning: whether the ops do the same as before, for every call.
        edit: the edit; None where the files have no place for it.
    """

    name: str
    variant: str
    keeps_meaning: bool
    edit: Callable[[Files], Edited | None]


def _find(file: CxxFile, name: str, kind: str = "function") -> Definition | None:
    found = [one for one in file.definitions if one.name == name and one.kind == kind]
    return found[0] if found else None


def _put(text: bytes, at: int, new: bytes) -> bytes:
    return text[:at] + new + text[at:]


def _swap(path: str, kind: str, first: str, second: str) -> Callable[[Files], Edited | None]:
    """Move one definition, with its comment, below another one of the same scope."""

    def edit(files: Files) -> Edited | None:
        file = CxxFile(files[path])
        one, other = _find(file, first, kind), _find(file, second, kind)
        if one is None or other is None or one.scope != other.scope or other.start < one.end:
            return None
        start = file.comment_start(one)
        data = file.data
        moved = data[:start] + data[one.end : other.end] + b"\n" + data[start : one.end] + data[other.end :]
        return Edited({path: moved}, (first, second), order=(second, first))

    return edit


def _rename(path: str, kind: str, *names: str) -> Callable[[Files], Edited | None]:
    """Rename the first of these that is there, wherever it is used."""

    def edit(files: Files) -> Edited | None:
        file = CxxFile(files[path])
        name = next((one for one in names if _find(file, one, kind)), None)
        if name is None:
            return None
        word = re.compile(rb"\b%s\b" % name.encode())
        new = f"renamed_{name}".encode()
        changed = {where: word.sub(new, text) for where, text in files.items() if word.search(text)}
        users = {
            one.name
            for where in changed
            for one in CxxFile(files[where]).definitions
            if word.search(files[where], one.start, one.end)
        }
        return Edited(changed, (name, new.decode(), *sorted(users)))

    return edit


def _parameter(path: str, kind: str, *names: str) -> Callable[[Files], Edited | None]:
    """Give the first of these that is there a last parameter; a default value keeps its callers right."""

    def edit(files: Files) -> Edited | None:
        file = CxxFile(files[path])
        one = next((found for name in names if (found := _find(file, name, kind))), None)
        span = one and body_of(file, one)
        if one is None or not span:
            return None
        close = file.uncommented.rindex(b")", one.start, span[0])
        new = (
            b", bool added_parameter = false" if kind == "function" else b", uint added_parameter [[threads_per_grid]]"
        )
        changed = _put(file.data, close, new)
        if kind == "kernel":  # what instantiates it has its parameters too
            changed = re.sub(rb"\b%s<[^;]*(?=\)\s*;)" % one.name.encode(), lambda found: found.group() + new, changed)
        return Edited({path: changed}, (one.name, "added_parameter"), ((path, new[2:].split(b" [")[0]),))

    return edit


def _reflow(path: str, kind: str, *names: str) -> Callable[[Files], Edited | None]:
    """Break the lines of a definition after each comma outside comments, literals and directives."""

    def edit(files: Files) -> Edited | None:
        file = CxxFile(files[path])
        one = next((found for name in names if (found := _find(file, name, kind))), None)
        span = one and body_of(file, one)
        if one is None or not span:
            return None
        head = file.data[one.start : span[0]]
        if b"//" in head:
            return None
        flowed = re.sub(rb",[ \t]*\n?[ \t]*", b",\n      ", head)
        changed = file.data[: one.start] + flowed + file.data[span[0] :]
        return Edited({path: changed}, (one.name,)) if changed != file.data else None

    return edit


def _comment(path: str, kind: str, name: str, *, inside: bool) -> Callable[[Files], Edited | None]:
    """Put a comment above a definition, or first in its body."""

    def edit(files: Files) -> Edited | None:
        file = CxxFile(files[path])
        one = _find(file, name, kind)
        span = one and body_of(file, one)
        if one is None or not span:
            return None
        at = file.data.index(b"{", span[0] - 1) + 1 if inside else one.start
        new = b"\n  // A note of upstream's.\n" if inside else b"// A note of upstream's.\n"
        return Edited({path: _put(file.data, at, new)}, (name,), told=((path, b"A note of upstream's."),))

    return edit


def _condition(path: str, kind: str, name: str) -> Callable[[Files], Edited | None]:
    """Put a definition between ``#if`` and ``#endif`` that hold."""

    def edit(files: Files) -> Edited | None:
        file = CxxFile(files[path])
        one = _find(file, name, kind)
        if one is None:
            return None
        start = file.comment_start(one)
        changed = _put(_put(file.data, one.end, b"#endif\n"), start, b"#if !defined(WITHOUT_THIS_PART)\n")
        return Edited({path: changed}, (name, "WITHOUT_THIS_PART"), ((path, b"WITHOUT_THIS_PART"),))

    return edit


def _caller(path: str, kind: str, name: str) -> Callable[[Files], Edited | None]:
    """A second function with the parameters of another, which calls it with them."""

    def edit(files: Files) -> Edited | None:
        file = CxxFile(files[path])
        one = _find(file, name, kind)
        span = one and body_of(file, one)
        if one is None or not span:
            return None
        head = file.uncommented[one.start : span[0]]
        opening, closing = head.index(name.encode()) + len(name), head.rindex(b")")
        opening = head.index(b"(", opening)
        given = [re.findall(rb"\w+", part.partition(b"=")[0])[-1] for part in _parts(head[opening + 1 : closing])]
        new = re.sub(rb"\b%s\b" % name.encode(), b"second_caller", head, count=1).rstrip(b" {\n")
        new += b" {\n  return %s(%s);\n}\n" % (name.encode(), b", ".join(given))
        return Edited(
            {path: _put(file.data, one.end, b"\n" + new)}, (name, "second_caller"), ((path, b"second_caller"),)
        )

    return edit


def _parts(text: bytes) -> list[bytes]:
    """Parameters of a list, split at the commas outside brackets."""
    parts, depth = [b""], 0
    for letter in text.decode():
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and not depth:
            parts.append(b"")
        else:
            parts[-1] += letter.encode()
    return [part for part in parts if part.strip()]


def _include(path: str, line: bytes, *, last: bool) -> Callable[[Files], Edited | None]:
    """A further include line, before the first or behind the last of the includes."""

    def edit(files: Files) -> Edited | None:
        file = CxxFile(files[path])
        if line in file.data or not file.includes:
            return None
        at = file.includes[-1].end if last else file.includes[0].start
        return Edited({path: _put(file.data, at, line)}, (line.decode().strip(),), ((path, line),))

    return edit


def _split(path: str, kind: str, *names: str) -> Callable[[Files], Edited | None]:
    """Move the first of these that is there to a header of its own, included where it stood in the file."""

    def edit(files: Files) -> Edited | None:
        file = CxxFile(files[path])
        one = next((found for name in names if (found := _find(file, name, kind))), None)
        if one is None or one.scope or not file.includes:
            return None
        header = f"{KERNELS}/GridSamplerPart.h"
        start = file.comment_start(one)
        line = b"#include <ATen/native/mps/kernels/GridSamplerPart.h>\n"
        changed = file.data[:start] + line + file.data[one.end :]
        return Edited(
            {path: changed, header: b"#pragma once\n" + file.data[start : one.end]}, (one.name,), ((path, line),)
        )

    return edit


def _check(path: str, name: str, *, first: bool) -> Callable[[Files], Edited | None]:
    """A further check in a host function, first in its body, or other words in the first one it has."""

    def edit(files: Files) -> Edited | None:
        file = CxxFile(files[path])
        one = _find(file, name)
        span = one and body_of(file, one)
        if one is None or not span:
            return None
        if first:
            at = file.data.index(b"{", span[0] - 1) + 1
            new = b'\n  TORCH_CHECK(input.numel() >= 0, "a check of upstream\'s");'
            return Edited({path: _put(file.data, at, new)}, (name,), ((path, b"a check of upstream's"),))
        at = file.data.find(b"TORCH_CHECK(", span[0], span[1])
        quote = file.data.find(b'"', at, span[1])
        if at < 0 or quote < 0:
            return None
        return Edited({path: _put(file.data, quote + 1, b"other words: ")}, (name,), ((path, b"other words: "),))

    return edit


_IMPLS = ("grid_sampler_2d_mps_impl", "grid_sampler_forward_mps", "grid_sampler_3d_mps_impl")
_HELPERS = ("reflect_coordinates", "clip_coordinates", "compute_source", "get_tensor_val", "within_bounds")
KINDS = (
    Kind("reorder", "2D kernel below 3D", True, _swap(METAL, "kernel", "grid_sampler_2d", "grid_sampler_3d")),
    Kind("reorder", "2D op below 3D", True, _swap(HOST, "function", "grid_sampler_2d_mps", "grid_sampler_3d_mps")),
    Kind("rename", "a Metal helper", True, _rename(METAL, "function", *_HELPERS)),
    Kind("rename", "the host function of the forward", True, _rename(HOST, "function", *_IMPLS)),
    Kind("parameter", "a Metal kernel", False, _parameter(METAL, "kernel", "grid_sampler_3d")),
    Kind("parameter", "the host function of the 3D forward", False, _parameter(HOST, "function", *reversed(_IMPLS))),
    Kind("reflow", "the 3D kernel", True, _reflow(METAL, "kernel", "grid_sampler_3d")),
    Kind("reflow", "the 3D op", True, _reflow(HOST, "function", "grid_sampler_3d_mps")),
    Kind("comment", "above the 3D kernel", True, _comment(METAL, "kernel", "grid_sampler_3d", inside=False)),
    Kind("comment", "in the 3D op", True, _comment(HOST, "function", "grid_sampler_3d_mps", inside=True)),
    Kind("#if", "around the 2D kernel", True, _condition(METAL, "kernel", "grid_sampler_2d")),
    Kind("#if", "around the host function of the 3D forward", True, _condition(HOST, "function", _IMPLS[2])),
    Kind("caller", "of the host function of the 2D forward", True, _caller(HOST, "function", _IMPLS[0])),
    Kind("caller", "of the host function of the 3D forward", True, _caller(HOST, "function", _IMPLS[2])),
    Kind("include", "first in the host file", True, _include(HOST, b"#include <c10/util/Exception.h>\n", last=False)),
    Kind("include", "last in the kernels", True, _include(METAL, b"#include <c10/metal/special_math.h>\n", last=True)),
    Kind("split", "a helper of the kernels", True, _split(METAL, "function", *_HELPERS)),
    Kind("split", "a struct of the header", True, _split(HEADER, "struct", "GridSamplerParams")),
    Kind("check", "one more in the 2D op", False, _check(HOST, "grid_sampler_2d_mps", first=True)),
    Kind("check", "other words in the 3D forward", False, _check(HOST, _IMPLS[2], first=False)),
)
