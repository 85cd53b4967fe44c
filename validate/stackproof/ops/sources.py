"""The kernels of an op in a tree: which files they are, written to a cache, compiled and loaded once in a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from patchstack.errors import PatchstackError
from patchstack.tree.git import Tree
from stackproof.engines.metal import CompileError, MetalLibrary, RunMode, compile_library
from stackproof.engines.metal.build import Source, compile_source
from stackproof.engines.metal.sources import INCLUDE_FOLDERS, collect_sources, write_sources
from stackproof.ops.model import OpProof

BUILDS = "metal-run"
"""Folder of the cache: gates that run the same kernels share what is written and compiled."""


JOINED = "joined.metal"
"""Includes all sources of an op that has several, at the top of the folder."""


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


@dataclass(frozen=True)
class OpSource:
    """Where the kernels of an op are, once materialised.

    Attributes:
        root: folder that stands for the top of the tree.
        source: the ``.metal`` file to compile, relative to ``root``.
        include_dirs: folders to look for includes in.
        headers: text of the headers that the proof asked for.
        path: the op's own source in the tree, for findings about no line.
        before: the same of the commit below the stack; ``None`` where it is not asked for, or not there.
    """

    root: Path
    source: str
    include_dirs: tuple[Path, ...]
    headers: tuple[bytes, ...]
    path: str
    before: OpSource | None = None


@cache
def library_of(source: OpSource, cache_folder: Path, mode: RunMode) -> MetalLibrary | CompileError:
    """The kernels of a source, compiled once in this process; the error where they do not compile."""
    try:
        return compile_library(source.root / source.source, source.include_dirs, cache=cache_folder, mode=mode)
    except CompileError as error:
        return error


def compile_error(source: OpSource, cache_folder: Path, mode: RunMode) -> CompileError | None:
    """Compile the kernels of a source without loading them; the error where they do not compile."""
    directories = tuple(one.resolve() for one in source.include_dirs)
    try:
        compile_source(Source((source.root / source.source).resolve(), directories), mode, cache_folder)
    except CompileError as error:
        return error
    return None


def written_source(tree: Tree, proof: OpProof, cache: Path) -> OpSource:
    """The op's source and headers in a tree, written to the gate's part of ``cache``; without the commit below.

    Raises:
        PatchstackError: the tree lacks one of them.
    """
    found = collect_op(tree, proof)
    root = write_sources(found.files, cache / BUILDS)
    include_dirs = tuple(root / folder for folder in INCLUDE_FOLDERS)
    return OpSource(root, found.source, include_dirs, found.headers, proof.source)
