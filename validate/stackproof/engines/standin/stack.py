"""What of a stack concerns the host: its host files, the kernels that they launch, the ops that they implement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from patchstack.errors import TreeError
from patchstack.tree.git import GitCommitHash, Repository, Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH, read_all
from patchstack.tree.yaml_nodes import YamlSyntaxError
from stackproof.engines.standin.stub_ops import functions_through_stubs

OPERATIONS = "aten/src/ATen/native/mps/operations"
KERNELS = "aten/src/ATen/native/mps/kernels"
_LIBRARY = re.compile(r"#\s*include\s*<ATen/native/mps/(\w+)_metallib\.h>")


@dataclass(frozen=True)
class HostFile:
    """One ``operations/*.mm`` of a tree.

    Attributes:
        path: in the tree.
        text: its content.
    """

    path: str
    text: str

    @property
    def kernel_sources(self) -> tuple[str, ...]:
        """The ``.metal`` files whose kernels it launches, by the library headers it includes."""
        names = dict.fromkeys(_LIBRARY.findall(self.text)) or {PurePosixPath(self.path).stem: None}
        return tuple(f"{KERNELS}/{name}.metal" for name in names)

    @property
    def builds_graphs(self) -> bool:
        """Whether it uses MPSGraph, which the stub headers do not describe; to include a header about it is no use."""
        used = re.sub(r"^[ \t]*#[^\n]*|//[^\n]*", "", self.text, flags=re.MULTILINE)
        return bool(re.search(r"\bMPSGraph\w*\b|\bmake_mps_graph\b|\bCachedGraph\b", used))


@dataclass(frozen=True)
class OpEntry:
    """An entry of ``native_functions.yaml`` that a host file implements.

    Attributes:
        schema: the ``func`` line.
        function: name of the C++ function for MPS.
    """

    schema: str
    function: str

    @property
    def overload(self) -> str:
        """``name.overload`` or ``name``."""
        return self.schema.partition("(")[0]

    @property
    def name(self) -> str:
        """Name without overload."""
        return self.overload.partition(".")[0]


@dataclass(frozen=True)
class HostStack:
    """The host side of a commit.

    Attributes:
        tree: the commit's tree.
        files: the host files that are judged.
        base: the tree without the stack, ``None`` where there is none to compare with.
    """

    tree: Tree
    files: tuple[HostFile, ...]
    base: Tree | None = None

    @classmethod
    def between(cls, repository: Repository, base: GitCommitHash, head: GitCommitHash) -> HostStack:
        """The host files that differ between two commits, as they are in the later one."""
        flags = ("--name-only", "--no-renames", "--diff-filter=d")
        changed = repository.text("diff", *flags, base, head, "--", OPERATIONS)
        paths = [path for path in changed.splitlines() if path.endswith(".mm")]
        return cls.of(Tree.at(repository, head), paths, Tree.at(repository, base))

    @classmethod
    def of(cls, tree: Tree, paths: Sequence[str], base: Tree | None = None) -> HostStack:
        """Named host files of a tree."""
        texts = ((path, tree.read(path)) for path in paths)
        files = tuple(HostFile(path, text.decode(errors="replace")) for path, text in texts if text is not None)
        return cls(tree, files, base)

    @property
    def kernel_sources(self) -> tuple[str, ...]:
        """The ``.metal`` files that the host files need and the tree has."""
        paths = dict.fromkeys(path for file in self.files for path in file.kernel_sources)
        return tuple(path for path in paths if self.tree.exists(path))

    @cached_property
    def ops(self) -> tuple[OpEntry, ...]:
        """The entries of the tree's ``native_functions.yaml`` whose MPS function one of the files defines.

        Or whose shared function reaches a stub that one of them registers.
        """
        text = "\n".join(file.text for file in self.files)
        shared = functions_through_stubs(self.tree, [text])
        return tuple(
            entry
            for entry in entries_of(self.tree)
            if entry.function in shared or re.search(rf"\b{entry.function}\b\s*[()]", text)
        )


def entries_of(tree: Tree) -> Iterator[OpEntry]:
    """The entries of a tree's ``native_functions.yaml`` that have a function for MPS.

    Raises:
        TreeError: the file cannot be read.
    """
    data = tree.read(FUNCTIONS_PATH)
    try:
        for entry in read_all(data) if data else ():
            if "MPS" in entry.dispatch:
                yield OpEntry(entry.schema, entry.dispatch["MPS"])
    except YamlSyntaxError as error:
        raise TreeError(error.problem, where=f"{FUNCTIONS_PATH}:{error.line}", found=error.found) from None
