"""Deciding whether one call uses something new of an operator, from the call's shape alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from stackproof.gates.common.functions import NativeFunction
from stackproof.gates.common.schema import Argument, Schema
from stackproof.gates.fc_window.features import Feature, FeatureKind, keys_of


@dataclass(frozen=True)
class CallShape:
    """What is known of a call without running it.

    Attributes:
        positional: number of positional arguments as the schema counts them (``self`` of a method included);
            ``None`` when the call has a ``*sequence``.
        keywords: keyword names, with the line range of each.
        open_keywords: whether the call has a ``**mapping``.
    """

    positional: int | None
    keywords: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    open_keywords: bool = False

    @classmethod
    def of(cls, call: ast.Call, *, is_method: bool) -> CallShape:
        starred = any(isinstance(argument, ast.Starred) for argument in call.args)
        keywords = {k.arg: (k.lineno, k.end_lineno or k.lineno) for k in call.keywords if k.arg}
        return cls(None if starred else len(call.args) + is_method, keywords, any(k.arg is None for k in call.keywords))


@dataclass(frozen=True)
class Probe:
    """Everything about one operator that telling old calls from new ones needs.

    Attributes:
        base: name without overload.
        features: its new features.
        schemas: its overloads in the head tree.
        settled_keywords: keywords that some overload has taken for long enough.
        settled_positional: the most positional arguments that a call could have for long enough.
        has_method: whether it can be called on a tensor.
    """

    base: str
    features: tuple[Feature, ...]
    schemas: Mapping[str, Schema]
    settled_keywords: frozenset[str]
    settled_positional: int
    has_method: bool

    @property
    def is_new(self) -> Feature | None:
        """The feature that the whole operator is, if it is one."""
        return next((feature for feature in self.features if feature.kind is FeatureKind.FUNCTION), None)

    def new_overload(self, overload: str) -> Feature | None:
        """The feature that this overload is, if it is one."""
        new = (f for f in self.features if f.kind is FeatureKind.OVERLOAD and f.overload == overload)
        return next(new, None)

    def used_by(self, shape: CallShape, overload: str | None) -> Iterator[tuple[Feature, tuple[int, int] | None]]:
        """New features that a call needs, each with the line range of the keyword that says so.

        Args:
            shape: the call.
            overload: the overload it names, ``None`` when it leaves the choice to PyTorch.
        """
        whole = self.is_new or (self.new_overload(overload) if overload is not None else None)
        if whole:
            yield whole, None
            return
        for feature in self.features:
            if overload is None or feature.overload == overload:
                where = self._needs(feature, shape, named=overload is not None)
                if where is not None:
                    yield feature, where or None

    def _needs(self, feature: Feature, shape: CallShape, *, named: bool) -> tuple[int, int] | tuple[()] | None:
        """Line range of the telling keyword, ``()`` when the positional arguments tell, ``None`` when nothing does."""
        schema = self.schemas.get(feature.overload)
        if schema is None:  # derived by torchgen: no schema line to read
            return None
        if feature.kind is FeatureKind.DEFAULT:
            return () if (named or len(self.schemas) == 1) and _left_out(schema, feature.argument, shape) else None
        if feature.kind is FeatureKind.ARGUMENT:
            arguments = [argument for argument in schema.arguments if argument.name == feature.argument]
        else:
            arguments = list(schema.arguments)
        for argument in arguments:
            keyword = python_name(argument)
            if keyword in shape.keywords and (named or keyword not in self.settled_keywords):
                return shape.keywords[keyword]
        return () if self._by_position(schema, arguments, shape, named=named) else None

    def _by_position(self, schema: Schema, arguments: list[Argument], shape: CallShape, *, named: bool) -> bool:
        order = positional_arguments(schema)
        if shape.positional is None or shape.positional > len(order):
            return False
        reached = order[: shape.positional]
        return any(a in reached for a in arguments) and (named or shape.positional > self.settled_positional)


def make_probes(
    features: Iterable[Feature], functions: Mapping[str, NativeFunction], settled: frozenset[str]
) -> dict[str, Probe]:
    """One probe per operator that has a new feature, by base name."""
    by_base: dict[str, list[Feature]] = {}
    for feature in features:
        by_base.setdefault(feature.base, []).append(feature)
    overloads: dict[str, list[NativeFunction]] = {base: [] for base in by_base}
    for function in functions.values():
        if function.schema.base in overloads:
            overloads[function.schema.base].append(function)
    return {base: _probe(base, tuple(new), overloads[base], settled) for base, new in by_base.items()}


def _probe(base: str, features: tuple[Feature, ...], functions: list[NativeFunction], settled: frozenset[str]) -> Probe:
    keywords: set[str] = set()
    positional = 0
    for schema in (function.schema for function in functions):
        if not keys_of(schema) & settled:
            continue
        overload = f"{schema.namespace}::{schema.base}.{schema.overload}"
        old = [a for a in schema.arguments if f"{overload}({a.name})" in settled]
        keywords.update(python_name(argument) for argument in old)
        positional = max(positional, sum(argument in positional_arguments(schema) for argument in old))
    return Probe(
        base=base,
        features=features,
        schemas={function.schema.overload: function.schema for function in functions},
        settled_keywords=frozenset(keywords),
        settled_positional=positional,
        has_method=any("method" in function.variants for function in functions),
    )


def python_name(argument: Argument) -> str:
    """The keyword that Python callers use: every out argument is ``out`` there."""
    return "out" if argument.is_out else argument.name


def positional_arguments(schema: Schema) -> list[Argument]:
    """The arguments before the ``*``."""
    return [argument for argument in schema.arguments if not argument.kwarg_only]


def _left_out(schema: Schema, name: str, shape: CallShape) -> bool:
    if shape.positional is None or shape.open_keywords or name in shape.keywords:
        return False
    reached = [argument.name for argument in positional_arguments(schema)[: shape.positional]]
    return name not in reached
