"""``native_functions.yaml`` and ``tags.yaml`` of one tree, with the schemas parsed.

Whatever is wrong with a file ends in one :class:`MalformedTreeError` that names the line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from patchstack.tree.git import Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH as FUNCTIONS_PATH
from patchstack.tree.native_functions import TAGS_PATH as TAGS_PATH
from patchstack.tree.native_functions import FunctionFields, read_all, tag_names
from patchstack.tree.yaml_nodes import YamlSyntaxError, words
from stackproof.gates.common.errors import MalformedTreeError
from stackproof.gates.common.schema import Schema, parse_schema

LARGEST_FILE = 16 << 20
"""Bytes; the real file has 0.6 MB. Anything near this is not a ``native_functions.yaml``."""


@dataclass(frozen=True)
class NativeFunction:
    """One entry of ``native_functions.yaml``.

    Attributes:
        schema: the parsed ``func:`` value.
        line: 1-based line of the ``func:`` value.
        dispatch: dispatch key to kernel, comma keys split, in key order of the file.
        tags: names of its tags.
        variants: ``function`` and/or ``method``.
        python_module: ``nn``, ``linalg``, ...; empty for plain ``torch``.
        autogen: operator names that torchgen derives from this entry.
        rest: every other key with its value as text.
    """

    schema: Schema
    line: int
    dispatch: Mapping[str, str]
    tags: frozenset[str] = frozenset()
    variants: frozenset[str] = frozenset({"function"})
    python_module: str = ""
    autogen: tuple[str, ...] = ()
    rest: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_core(self) -> bool:
        """Whether the operator belongs to the core ATen set, which promises more."""
        return "core" in self.tags


@dataclass(frozen=True)
class NativeFunctions:
    """All entries of one tree.

    Attributes:
        by_name: ``aten::add.Tensor`` to entry, in file order.
        tags: tag names that ``tags.yaml`` declares; ``None`` where the tree has no such file.
    """

    by_name: Mapping[str, NativeFunction]
    tags: frozenset[str] | None = None


def read_functions(tree: Tree) -> NativeFunctions | None:
    """Read both files of a tree; ``None`` where it has no ``native_functions.yaml``.

    Raises:
        MalformedTreeError: one of the files cannot be read as what it should be.
    """
    content = read_limited(tree, FUNCTIONS_PATH)
    if content is None:
        return None
    entries: dict[str, NativeFunction] = {}
    with _faults_of(FUNCTIONS_PATH):
        for function in map(_function, read_all(content)):
            first = entries.setdefault(function.schema.name, function)
            if first is not function:
                problem = f"{function.schema.name} is defined twice"
                raise YamlSyntaxError(function.line, problem, f"line {first.line}")
    tags = read_limited(tree, TAGS_PATH)
    with _faults_of(TAGS_PATH):
        return NativeFunctions(entries, None if tags is None else frozenset(tag_names(tags)))


def _function(fields: FunctionFields) -> NativeFunction:
    try:
        schema = parse_schema(fields.schema)
    except ValueError as error:
        raise YamlSyntaxError(fields.line, f"the schema cannot be read: {error}", repr(fields.schema[:120])) from None
    rest = dict(fields.rest)
    tags, variants, module, autogen = (
        words(rest.pop(key, None)) for key in ("tags", "variants", "python_module", "autogen")
    )
    return NativeFunction(
        schema, fields.line, fields.dispatch, frozenset(tags), frozenset(variants or ("function",)), "".join(module),
        autogen, {key: yaml.serialize(value) for key, value in rest.items()},
    )  # fmt: skip


@contextlib.contextmanager
def _faults_of(path: str) -> Iterator[None]:
    """While active, a fault of a YAML file is one of the judged tree."""
    try:
        yield
    except YamlSyntaxError as error:
        where = f"{path}:{error.line}" if error.line else path
        raise MalformedTreeError(error.problem, where=where, found=error.found) from None


def read_limited(tree: Tree, path: str) -> bytes | None:
    """The file at ``path``, or ``None``.

    Raises:
        MalformedTreeError: it is larger than :data:`LARGEST_FILE`; its content is not loaded then.
    """
    blob = tree.blob_hash(path)
    size = int(tree.repository.text("cat-file", "-s", blob)) if blob else 0
    if size > LARGEST_FILE:
        raise MalformedTreeError(
            "the file is too large to be what its name says",
            where=path,
            expected=f"at most {LARGEST_FILE >> 20} MiB",
            found=f"{size / (1 << 20):.0f} MiB",
        )
    return tree.read(path)
