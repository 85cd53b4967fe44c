"""Makes one text of a Metal source and the tree's headers that it includes.

``torch.mps.compile_shader`` takes text, and would find the installed wheel's headers where the stack changes the
tree's. Headers are therefore put in place of their includes beforehand. What the tree does not have (``metal_stdlib``)
stays an include.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from patchstack.errors import PatchstackError
from stackproof.engines.metal.sources import INCLUDE_FOLDERS

_DIRECTIVE = re.compile(r"^\s*#\s*(ifdef|ifndef|if|elif|else|endif)\b\s*(.*)")
_INCLUDE = re.compile(r'^\s*#\s*(?:include|import)\s*([<"])([^>"]+)[>"]')
_ONCE = re.compile(r"^\s*#\s*pragma\s+once\b")
# Headers shared with the host include half of ATen there; for Metal these conditions are known.
_IS_METAL = re.compile(r"^(?:defined\s*\(?\s*)?__METAL(?:_VERSION)?__\s*\)?\s*$")


def embed(files: Mapping[str, bytes], source: str) -> str:
    """The source with every include of one of ``files`` replaced by that file's text.

    ``#line`` directives keep the tree's paths and lines in compiler messages. Includes that only the host sees
    (``#ifndef __METAL__``) are dropped.

    Args:
        files: content by path in the tree.
        source: path of the file to begin with.

    Raises:
        PatchstackError: a header includes itself without ``#pragma once``.
    """
    return "\n".join(_Embedding(files).lines(source, conditional=False)) + "\n"


class _Conditions:
    """The conditions that the current line is under: each holds for Metal, does not, or cannot be told (``None``)."""

    def __init__(self) -> None:
        self._open: list[bool | None] = []

    def read(self, line: str) -> None:
        """Take one line of source."""
        directive = _DIRECTIVE.match(line)
        if directive is None:
            return
        word, rest = directive[1], directive[2]
        if word in ("if", "ifdef", "ifndef"):
            self._open.append(_truth(word, rest))
        elif self._open and word == "endif":
            self._open.pop()
        elif self._open:
            before = self._open[-1]
            self._open[-1] = False if before else (True if before is False and word == "else" else None)

    @property
    def dead(self) -> bool:
        return False in self._open

    @property
    def uncertain(self) -> bool:
        return None in self._open


def _truth(word: str, rest: str) -> bool | None:
    negated = rest.lstrip().startswith("!")
    if not _IS_METAL.match(rest.partition("//")[0].strip().removeprefix("!").strip()):
        return None
    return (word != "ifndef") != negated


class _Embedding:
    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._open: list[str] = []
        self._settled: set[str] = set()  # headers that need not come again, wherever they are included from

    def lines(self, path: str, *, conditional: bool) -> Iterator[str]:
        """The lines of one file; ``conditional`` says that its include may not be reached."""
        text = self._files[path].decode("utf-8", errors="replace").splitlines()
        once = any(_ONCE.match(line) for line in text)
        if path in self._settled or (once and path in self._open):
            return
        if path in self._open:
            raise PatchstackError("a header includes itself", where=path, expected="#pragma once")
        if once and not conditional:
            self._settled.add(path)
        guard = f"STACKPROOF_EMBEDDED_{re.sub('[^0-9A-Za-z]', '_', path)}"
        self._open.append(path)
        if once:
            yield f"#ifndef {guard}"
            yield f"#define {guard}"
        yield f'#line 1 "{path}"'
        yield from self._body(path, text, conditional)
        if once:
            yield "#endif"
        self._open.pop()

    def _body(self, path: str, text: list[str], conditional: bool) -> Iterator[str]:
        conditions = _Conditions()
        for number, line in enumerate(text, 1):
            conditions.read(line)
            include = _INCLUDE.match(line)
            header = self._resolve(path, include[1], include[2]) if include else None
            if header is None:
                yield "" if _ONCE.match(line) else line
            elif not conditions.dead:
                yield from self.lines(header, conditional=conditional or conditions.uncertain)
                yield f'#line {number + 1} "{path}"'
            else:
                yield ""

    def _resolve(self, path: str, quote: str, name: str) -> str | None:
        beside = (str(PurePosixPath(path).parent),) if quote == '"' else ()
        for folder in (*beside, *INCLUDE_FOLDERS):
            candidate = f"{folder}/{name}" if folder else name
            if candidate in self._files:
                return candidate
        return None
