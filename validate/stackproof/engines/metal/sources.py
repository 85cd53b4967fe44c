"""The files of a tree that a Metal compiler needs for one source: that source and what it includes, from git objects.

A checkout is not needed and a whole tree is not written: includes are followed from the ``.metal`` file, as the build
would find them, and end up in a folder named by their content.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from patchstack.errors import PatchstackError
from patchstack.tree.git import Tree

# Where PyTorch's build looks for `#include <...>`, relative to the top of the tree.
INCLUDE_FOLDERS = ("aten/src", "")


_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*(?:include|import)[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


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
