"""Which names the headers bring that a file includes: headers of the tree, and those that a build generates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from patchstack.closure.file import ScannedFile
from patchstack.closure.known import is_system_include
from patchstack.edits.cxx_edit import CXX_SUFFIXES
from patchstack.errors import MissingObjectError
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH, parse_native_functions

_ROOTS = ("aten/src/", "", "torch/csrc/api/include/")
_ALWAYS_THERE = ("aten/src/ATen/ATen.h", "c10/macros/Macros.h")
_OWN = ("ATen/", "c10/", "torch/", "caffe2/")
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*(?:include|import)[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_MONOLITHIC = re.compile(
    rb"^#[ \t]*(?:ifndef AT_PER_OPERATOR_HEADERS|if !defined\(AT_PER_OPERATOR_HEADERS\))(.*?)^#[ \t]*(?:else|endif)",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OP_HEADER = re.compile(r"ATen/ops/(\w+?)(?:_(?:native|ops|meta|dispatch|\w+_dispatch))?\.h")
_OF_A_BACKEND = re.compile(r"ATen/(?:[A-Z]\w*)?Functions(?:_inl)?\.h")
_BEHIND_OPERATOR = """
ATen/Context.h ATen/DeviceGuard.h ATen/TensorUtils.h ATen/TracerMode.h ATen/core/Generator.h ATen/core/Reduction.h
ATen/core/Tensor.h c10/core/Scalar.h c10/core/Storage.h c10/core/TensorOptions.h c10/util/Deprecated.h
"""
_BEHIND_NATIVE = """
ATen/core/Reduction.h ATen/core/Tensor.h ATen/TensorIterator.h ATen/TensorMeta.h c10/core/QScheme.h c10/core/Scalar.h
c10/core/Storage.h c10/core/TensorOptions.h c10/util/Deprecated.h
"""
_ALL_OPS = ("ATen/Functions.h", "ATen/NativeFunctions.h", "ATen/Operators.h", "ATen/RedispatchFunctions.h")
_GENERATED: Mapping[str, str] = {
    "ATen/core/TensorBody.h": "Tensor TensorOptions OptionalTensorRef make_tensor",
    "ATen/core/ATenOpList.h": "is_custom_op",
    "ATen/core/enum_tag.h": "Tag",
    "ATen/core/aten_interned_strings.h": "aten",
    "ATen/Config.h": "AT_MKLDNN_ENABLED AT_MKL_ENABLED AT_PARALLEL_OPENMP AT_BLAS_F2C AT_BUILD_WITH_LAPACK",
    "c10/macros/cmake_macros.h": "",
    "torch/version.h": "TORCH_VERSION",
}
"""Headers that a build makes, with names of theirs that no other header has."""

_BEHIND_EVERY_OPERATOR = ("at", "c10", "native", "Tensor", "Scalar", "TensorOptions")


class Contents:
    """What is known of files by the ids of their blobs: the trees of a stack share most of theirs.

    Attributes:
        lacks_objects: whether a file could not be read, so that an answer may be another when it can be.
    """

    def __init__(self) -> None:
        self.lacks_objects = False
        self._data: dict[tuple[str, str], bytes] = {}
        self._includes: dict[bytes, tuple[str, ...]] = {}
        self._entries: dict[bytes, dict[str, str]] = {}
        self._code: dict[bytes, bytes] = {}
        self._base_files: dict[tuple[str, str], bool] = {}

    def read(self, tree: Tree, path: str) -> bytes | None:
        """The content of a file; ``None`` where its object is not there."""
        if path in tree.replaced:
            return tree.replaced[path]
        entry = tree.entry(path)
        key = (path, entry.hash if entry else "")
        if key not in self._data:
            try:
                self._data[key] = tree.read(path) or b""
            except MissingObjectError:  # a partial clone has the files of the series, not every header
                self.lacks_objects = True
                return None
        return self._data[key]

    def is_file(self, tree: Tree, path: str) -> bool:
        """Whether a tree has a file."""
        if path in tree.replaced:
            return True
        key = (tree.base, path)
        if key not in self._base_files:
            entry = None if ".." in path else tree.entry(path)
            self._base_files[key] = entry is not None and entry.is_file
        return self._base_files[key]

    def includes(self, data: bytes) -> tuple[str, ...]:
        """The include lines of a header, without those for where operators have no headers of their own."""
        if data not in self._includes:
            lines = _INCLUDE.finditer(_MONOLITHIC.sub(b"", data))
            self._includes[data] = tuple(match.group(1).decode(errors="replace") for match in lines)
        return self._includes[data]

    def uncommented(self, data: bytes) -> bytes:
        """A header without its comments."""
        if data not in self._code:
            self._code[data] = _COMMENT.sub(b" ", data)
        return self._code[data]

    def entries(self, data: bytes) -> dict[str, str]:
        """The text of the entries of native_functions.yaml by the name of the op."""
        if data not in self._entries:
            self._entries[data] = _entries_of(data)
        return self._entries[data]


def _entries_of(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for overload, text in parse_native_functions(data).texts():
        name = overload.partition(".")[0]
        for known in {name, name.removesuffix("_")}:
            found[known] = found.get(known, "") + text
    return found


class Headers:
    """The headers of one tree.

    Attributes:
        tree: the tree.
        lacks_objects: whether one of them could not be read, so that nothing is certain to be nowhere.
    """

    def __init__(self, tree: Tree, contents: Contents) -> None:
        self.tree = tree
        self.lacks_objects = False
        self._contents = contents
        self._places: dict[tuple[str, str], str] = {}
        self._below: dict[str, tuple[str, ...]] = {}
        self._levels: dict[str, list[tuple[str, ...]]] = {}
        self._has: dict[tuple[str, str], bool] = {}

    def scanned(self, path: str, *, is_metal: bool) -> ScannedFile:
        """A file of the tree with its names."""
        data = self._read(path)
        file = _SCANNED.get((data, is_metal))
        if file is None:
            file = _SCANNED[data, is_metal] = ScannedFile(parse_cxx(data), is_metal=is_metal)
            while len(_SCANNED) > _MOST_SCANNED:
                _SCANNED.pop(next(iter(_SCANNED)))
        return file

    def place(self, include: str, includer: str) -> str:
        """What an include line means: a path in the tree; ``generated:`` and its name; empty where it is in neither."""
        key = (include, includer.rpartition("/")[0])
        if key not in self._places:
            self._places[key] = self._place(include, key[1])
        return self._places[key]

    def is_lacking(self, include: str, includer: str) -> bool:
        """Whether an include line names a header of PyTorch that neither the tree has nor a build makes."""
        return self.is_whole and include.startswith(_OWN) and not self.place(include, includer)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the tree has PyTorch's headers at all, so that one which is not there is missed."""
        return all(self._is_file(path) for path in _ALWAYS_THERE)

    def is_unknown(self, include: str, includer: str) -> bool:
        """Whether nothing is known of what an include line brings."""
        return not self.place(include, includer) and not is_system_include(include)

    def bring(self, include: str, includer: str, name: str) -> bool:
        """Whether a header, or one that it includes, has a name."""
        place = self.place(include, includer)
        return bool(place) and self.bring_at(place, name, _DEEPEST)

    def bring_at(self, place: str, name: str, depth: int) -> bool:
        """Whether a header has a name, or one that it includes in at most so many steps."""
        return any(self.has_name(path, name) for at in range(depth + 1) for path in self.level(place, at))

    def level(self, place: str, depth: int) -> tuple[str, ...]:
        """The headers that a header includes in so many steps and in no fewer; read as far as somebody asks."""
        levels = self._levels.setdefault(place, [(place,)])
        while len(levels) <= depth and levels[-1]:
            known = {path for level in levels for path in level}
            found = dict.fromkeys(there for here in levels[-1] for there in self._included(here) if there not in known)
            levels.append(tuple(found))
        return levels[depth] if depth < len(levels) else ()

    def _included(self, place: str) -> tuple[str, ...]:
        if place not in self._below:
            there = (self.place(include, place) for include in self._includes(place))
            self._below[place] = tuple(filter(None, there))
        return self._below[place]

    def _place(self, include: str, folder: str) -> str:
        for root in (*_ROOTS, f"{folder}/"):
            path = f"{root}{include}"
            if self._is_file(path):
                return path
        op = _OP_HEADER.fullmatch(include)
        is_made = self._is_monolithic(include) or include in _GENERATED or include.endswith("_metallib.h")
        if is_made or (op and (op.group(1) in self._entries or include[len("ATen/ops/") : -2] in self._entries)):
            return f"generated:{include}"
        return ""

    def _is_file(self, path: str) -> bool:
        return self._contents.is_file(self.tree, path)

    def _includes(self, place: str) -> Iterator[str]:
        if place.startswith("generated:ATen/ops/"):
            yield from (_BEHIND_NATIVE if place.endswith(("_native.h", "_meta.h")) else _BEHIND_OPERATOR).split()
        elif place.startswith("generated:") and self._is_monolithic(place.removeprefix("generated:")):
            yield from (_BEHIND_NATIVE + _BEHIND_OPERATOR).split()
        elif not place.startswith("generated:"):
            yield from self._contents.includes(self._read(place))

    def has_name(self, place: str, name: str) -> bool:
        """Whether the header itself has a name."""
        key = (place, name)
        if key not in self._has:
            self._has[key] = self._look(place, name)
        return self._has[key]

    def _look(self, place: str, name: str) -> bool:
        if place.startswith("generated:"):
            return self._generated(place.removeprefix("generated:"), name)
        if place in self.tree.replaced and place.endswith(CXX_SUFFIXES):
            return name in self.scanned(place, is_metal=False).names()
        word = name.encode()
        if word not in self._read(place):
            return False
        return has_word(self._contents.uncommented(self._read(place)), word)

    def _generated(self, include: str, name: str) -> bool:
        if include.endswith("_metallib.h"):
            return name == "lib"
        if name in _BEHIND_EVERY_OPERATOR:
            return True
        if self._is_monolithic(include):
            return name in self._entries or re.search(rb"\b%s\b" % re.escape(name.encode()), self._yaml) is not None
        op = _OP_HEADER.fullmatch(include)
        if op:
            entry = self._entries.get(include[len("ATen/ops/") : -2], "") + self._entries.get(op.group(1), "")
            bare = re.sub(r"_(?:outf?|symint)\Z", "", name)
            return bare == op.group(1) or re.search(rf"\b{re.escape(name)}\b", entry) is not None
        return name in _GENERATED[include].split()

    @staticmethod
    def _is_monolithic(include: str) -> bool:
        """Whether a header stands for all operators."""
        return include in _ALL_OPS or _OF_A_BACKEND.fullmatch(include) is not None

    @cached_property
    def _yaml(self) -> bytes:
        return self._read(FUNCTIONS_PATH)

    @cached_property
    def _entries(self) -> dict[str, str]:
        return self._contents.entries(self._yaml)

    def _read(self, path: str) -> bytes:
        data = self._contents.read(self.tree, path)
        self.lacks_objects = self.lacks_objects or data is None
        return data or b""


_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_INSIDE = _WORD + b"."


def has_word(text: bytes, word: bytes) -> bool:
    """Whether a word stands in a text, other than as a member; a pattern would try every letter."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        before, behind = text[at - 1 : at], text[end : end + 1]
        if not (before and before in _INSIDE) and not (behind and behind in _WORD):
            return True
        at = text.find(word, end)
    return False


_DEEPEST = 40  # steps from an include line to a header
_MOST_SCANNED = 32
_SCANNED: dict[tuple[bytes, bool], ScannedFile] = {}
