"""What a Python caller can newly rely on: functions, overloads, arguments and defaults, as comparable keys.

A key is present in a tree or it is not; that makes "new since" a set difference and lets history be searched without
comparing schemas pair by pair:

====================== =====================================================
``aten::f``            some overload of ``f`` exists
``aten::f.o``          this overload exists (``aten::f.`` is the default one)
``aten::f.o(x)``       it takes an argument ``x``
``aten::f.o(x=)``      ``x`` may be left out
====================== =====================================================
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from stackproof.gates.common.functions import NativeFunction
from stackproof.gates.common.schema import Schema, parse_schema

_FUNC_LINE = re.compile(rb"""^- func:[ \t]*(["']?)(.+?)\1[ \t]*(?:#.*)?\r?$""", re.MULTILINE)
_AUTOGEN_LINE = re.compile(rb"^  autogen:[ \t]*([^#\r\n]+)", re.MULTILINE)


class FeatureKind(enum.Enum):
    """What is new about an operator."""

    FUNCTION = "function"
    OVERLOAD = "overload"
    ARGUMENT = "defaulted argument"
    DEFAULT = "default of an existing argument"


@dataclass(frozen=True)
class Feature:
    """One thing that existing code could newly use.

    Attributes:
        key: see the module.
        kind: see :class:`FeatureKind`.
        base: operator name without namespace and overload.
        overload: empty for the default overload, and for a whole function.
        argument: empty unless the feature is about one.
    """

    key: str
    kind: FeatureKind
    base: str
    overload: str = ""
    argument: str = ""

    def __str__(self) -> str:
        name = f"{self.base}.{self.overload}" if self.overload else self.base
        if self.kind is FeatureKind.FUNCTION:
            return f"function {self.base}"
        if self.kind is FeatureKind.OVERLOAD:
            return f"overload {self.base}.{self.overload or 'default'}"
        if self.kind is FeatureKind.ARGUMENT:
            return f"argument {self.argument} of {name}"
        return f"leaving out {self.argument} of {name}"


@functools.lru_cache(maxsize=1 << 15)
def keys_of(schema: Schema) -> frozenset[str]:
    """Every key of one schema."""
    function = f"{schema.namespace}::{schema.base}"
    overload = f"{function}.{schema.overload}"
    keys = {function, overload}
    for argument in schema.arguments:
        keys.add(f"{overload}({argument.name})")
        if argument.default is not None:
            keys.add(f"{overload}({argument.name}=)")
    return frozenset(keys)


def keys_in(content: bytes) -> frozenset[str]:
    """Every key of a ``native_functions.yaml`` at some point in history.

    The lines are found by pattern, not by a YAML parser: history holds many versions, and entries that cannot be read
    any more say nothing about the branch of today.
    """
    keys: set[str] = set()
    for match in _FUNC_LINE.finditer(content):
        try:
            keys |= keys_of(parse_schema(match[2].decode(errors="replace")))
        except ValueError:
            continue
    for match in _AUTOGEN_LINE.finditer(content):
        keys.update(_derived_keys(match[1].decode(errors="replace").split(",")))
    return frozenset(keys)


def new_features(functions: Mapping[str, NativeFunction], settled: frozenset[str]) -> Iterator[Feature]:
    """The features of a tree that are not among the ``settled`` keys, each at its coarsest.

    A new function is one feature, not also a new overload with new arguments.
    """
    seen: set[str] = set()
    for function in functions.values():
        for feature in _features_of(function.schema, settled):
            if feature.key not in seen:
                seen.add(feature.key)
                yield feature
    for function in functions.values():
        for name in function.autogen:
            base, _, overload = name.partition(".")
            for feature in _named_features(f"aten::{base}", base, overload, settled):
                if feature.key not in seen:
                    seen.add(feature.key)
                    yield feature


def _features_of(schema: Schema, settled: frozenset[str]) -> Iterator[Feature]:
    function = f"{schema.namespace}::{schema.base}"
    overload = f"{function}.{schema.overload}"
    if function not in settled or overload not in settled:
        yield from _named_features(function, schema.base, schema.overload, settled)
        return
    if not any(f"{overload}({argument.name})" in settled for argument in schema.arguments):
        return  # the branch knew the overload by name only, as one that torchgen derives
    for argument in schema.arguments:
        taken, left_out = f"{overload}({argument.name})", f"{overload}({argument.name}=)"
        place = (schema.base, schema.overload, argument.name)
        if argument.default is None and taken not in settled:
            yield Feature(taken, FeatureKind.ARGUMENT, *place)
        elif argument.default is not None and left_out not in settled:
            kind = FeatureKind.DEFAULT if taken in settled else FeatureKind.ARGUMENT
            yield Feature(left_out, kind, *place)


def _named_features(function: str, base: str, overload: str, settled: frozenset[str]) -> Iterator[Feature]:
    if function not in settled:
        yield Feature(function, FeatureKind.FUNCTION, base)
    elif f"{function}.{overload}" not in settled:
        yield Feature(f"{function}.{overload}", FeatureKind.OVERLOAD, base, overload)


def _derived_keys(names: Iterable[str]) -> Iterator[str]:
    for name in filter(None, (name.strip() for name in names)):
        base, _, overload = name.partition(".")
        yield f"aten::{base}"
        yield f"aten::{base}.{overload}"
