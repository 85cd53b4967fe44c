"""The files of a tree that a Metal compiler needs for one source: that source and what it includes, from git objects.

A checkout is not needed and a whole tree is not written: includes are followed from the ``.metal`` file, as the build
would find them, and end up in a folder named by their content.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from patchstack.errors import PatchstackError
from patchstack.git import Tree
from stackproof.ops.model import OpProof

# Where PyTorch's build looks for `#include <...>`, relative to the top of the tree.
INCLUDE_FOLDERS = ("aten/src", "")

JOINED = "joined.metal"
"""Includes all sources of an op that has several, at the top of the folder."""

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*(?:include|import)[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


@dataclass(frozen=True)
class OpFiles:
    """What of a tree an op's kernels are compiled from.

    Attributes:
        source: the file to compile: the op's own, or :data:`JOINED`.
        files: content by path, of all that it includes.
        headers: text of the proof's headers, in its order, those that the tree has.
    """

    source: str
    files: Mapping[str, bytes]
    headers: tuple[bytes, ...]


def op_sources(tree: Tree, proof: OpProof) -> tuple[str, ...]:
    """The ``.metal`` files of an op: its own, and those beside it that the tree has."""
    return (proof.source, *(path for path in proof.beside if path.endswith(".metal") and tree.exists(path)))


def collect_op(tree: Tree, proof: OpProof) -> OpFiles:
    """The sources of an op: its own, and those beside it that the tree has.

    Raises:
        PatchstackError: the tree lacks the op's own source or header.
    """
    sources = op_sources(tree, proof)
    files = {path: text for source in sources for path, text in collect_sources(tree, source).items()}
    for path in proof.headers:
        if not tree.exists(path):
            raise PatchstackError("the tree does not have this header", where=path, expected="the parameters of an op")
    beside = [path for path in proof.beside if not path.endswith(".metal") and tree.exists(path)]
    headers = [*proof.headers, *beside]
    texts = tuple(tree.read(path) or b"" for path in headers)
    if len(sources) == 1:
        return OpFiles(proof.source, files, texts)
    joined = "".join(f'#include "{source}"\n' for source in sources)
    return OpFiles(JOINED, {**files, JOINED: joined.encode()}, texts)


def collect_sources(tree: Tree, source: str) -> dict[str, bytes]:
    """The source and every file of the tree that it includes, by path, directly or through others.

    Headers that the tree does not have (Metal's own) are left out; whether they exist is the compiler's business.

    Raises:
        PatchstackError: the tree has no such source.
    """
    found: dict[str, bytes] = {}
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        text = tree.read(path)
        if text is None:
            raise PatchstackError("the tree does not have this file", where=path, expected="the kernels of an op")
        found[path] = text
        waiting += _included(tree, path, text)
    return found


def _included(tree: Tree, path: str, text: bytes) -> Iterator[str]:
    for match in _INCLUDE.finditer(text):
        name = match[2].decode(errors="replace")
        beside = [str(PurePosixPath(path).parent)] if match[1] == b'"' else []
        for folder in (*beside, *INCLUDE_FOLDERS):
            candidate = f"{folder}/{name}" if folder else name
            entry = tree.entry(candidate) if ".." not in PurePosixPath(candidate).parts else None
            if candidate in tree.replaced or (entry is not None and entry.is_file):
                yield candidate
                break


def write_sources(files: Mapping[str, bytes], cache: Path) -> Path:
    """Write the files below a folder of ``cache`` that is named by their content, and return that folder."""
    digest = hashlib.sha256()
    for path, text in sorted(files.items()):
        digest.update(f"{path}\0{len(text)}\0".encode() + text)
    root = cache / "sources" / digest.hexdigest()[:20]
    for path, text in files.items():
        target = root / path
        if not target.is_file() or target.read_bytes() != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)
    return root
