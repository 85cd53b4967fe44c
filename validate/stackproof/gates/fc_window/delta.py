"""What changed in ``native_functions.yaml`` between two trees, entry by entry and argument by argument."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from stackproof.gates.common.functions import NativeFunction, NativeFunctions
from stackproof.gates.common.schema import Argument, Schema


class ArgumentChangeKind(enum.Enum):
    """One way in which two schemas of the same operator differ."""

    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    REORDERED = "reordered"
    DEFAULT_ADDED = "default added"
    DEFAULT_REMOVED = "default removed"
    DEFAULT_CHANGED = "default changed"
    TYPE = "type"
    KWARG_ONLY = "kwarg-only"
    ALIAS = "alias"
    OUT_ADDED = "out added"
    OUT_REMOVED = "out removed"
    RETURNS = "returns"


@dataclass(frozen=True)
class ArgumentChange:
    """One difference between two schemas.

    Attributes:
        kind: see :class:`ArgumentChangeKind`.
        argument: name of the argument (of the new schema where it has one); empty for returns.
        before: how it was written, empty where it was not there.
        after: how it is written now, empty where it is gone.
    """

    kind: ArgumentChangeKind
    argument: str
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        change = f"{self.before} -> {self.after}" if self.before and self.after else self.before or self.after
        return f"{self.argument or 'returns'}: {self.kind.value}" + (f" ({change})" if change else "")


@dataclass(frozen=True)
class EntryDelta:
    """How one entry changed.

    Attributes:
        name: ``aten::add.Tensor``.
        before: the entry in the base tree, ``None`` when it is new.
        after: the entry in the head tree, ``None`` when it is gone.
        arguments: schema differences; empty when the schema is the same, or there is only one side.
        dispatch: dispatch keys that were added, removed or point to another kernel.
        tags: tags that were added or removed.
        autogen: operators derived from this entry that are new in the head tree, or not there any more.
        other: other keys of the entry (``variants``, ``structured``, ...) that changed.
        derived_on_other_side: the tree without this entry has the operator all the same, derived by torchgen.
        renamed_from: a removed operator with the same arguments and returns, for an entry that is new.
    """

    name: str
    before: NativeFunction | None
    after: NativeFunction | None
    arguments: tuple[ArgumentChange, ...] = ()
    dispatch: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    autogen: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    derived_on_other_side: bool = False
    renamed_from: str = ""

    @property
    def is_added(self) -> bool:
        return self.before is None

    @property
    def is_removed(self) -> bool:
        return self.after is None

    @property
    def is_schema_change(self) -> bool:
        """Whether the schema of an entry that both trees have differs."""
        return self.before is not None and self.after is not None and self.before.schema.text != self.after.schema.text

    @property
    def is_dispatch_only(self) -> bool:
        """Whether nothing but dispatch entries differs."""
        return bool(self.dispatch) and not (self._one_sided or self.is_schema_change or self._outside_dispatch)

    @property
    def is_tag_only(self) -> bool:
        """Whether nothing but tags differs."""
        others = self.dispatch or self.autogen or self.other
        return bool(self.tags) and not (self._one_sided or self.is_schema_change or others)

    @property
    def is_core(self) -> bool:
        """Whether the operator is, or was, in the core ATen set: a tag taken off does not take the promise back."""
        return any(side is not None and side.is_core for side in (self.before, self.after))

    @property
    def line(self) -> int:
        """Line in the head tree, or in the base tree for an entry that is gone."""
        side = self.after or self.before
        return side.line if side else 0

    @property
    def _one_sided(self) -> bool:
        return self.is_added or self.is_removed

    @property
    def _outside_dispatch(self) -> bool:
        return bool(self.tags or self.autogen or self.other)


@dataclass(frozen=True)
class SchemaDelta:
    """Everything that changed between two trees.

    Attributes:
        entries: changed entries, in file order of the head tree, the removed ones last.
        tags_added: tags that ``tags.yaml`` newly declares.
        tags_removed: tags that it declares no more.
        compared: how many operators either tree has.
    """

    entries: tuple[EntryDelta, ...]
    tags_added: tuple[str, ...] = ()
    tags_removed: tuple[str, ...] = ()
    compared: int = 0

    @property
    def added(self) -> tuple[EntryDelta, ...]:
        return tuple(entry for entry in self.entries if entry.is_added)

    @property
    def removed(self) -> tuple[EntryDelta, ...]:
        return tuple(entry for entry in self.entries if entry.is_removed)

    @property
    def changed(self) -> tuple[EntryDelta, ...]:
        """Entries of both trees whose schema differs."""
        return tuple(entry for entry in self.entries if entry.is_schema_change)

    @property
    def dispatch_only(self) -> tuple[EntryDelta, ...]:
        return tuple(entry for entry in self.entries if entry.is_dispatch_only)

    @property
    def tag_only(self) -> tuple[EntryDelta, ...]:
        return tuple(entry for entry in self.entries if entry.is_tag_only)


def compare(base: NativeFunctions, head: NativeFunctions) -> SchemaDelta:
    """Compare two trees' functions by operator name and overload."""
    removed = {name: entry for name, entry in base.by_name.items() if name not in head.by_name}
    derived_before, derived_after = _derived(base), _derived(head)
    known = (base.by_name.keys() | derived_before, head.by_name.keys() | derived_after)
    entries: list[EntryDelta | None] = []
    for name, after in head.by_name.items():
        if name in base.by_name:
            entries.append(_common_entry(name, base.by_name[name], after, known))
        else:
            twin = _twin(after.schema, removed)
            was_derived = name in derived_before
            entries.append(EntryDelta(name, None, after, derived_on_other_side=was_derived, renamed_from=twin))
    for name, before in removed.items():
        entries.append(EntryDelta(name, before, None, derived_on_other_side=name in derived_after))
    tags_before, tags_after = base.tags or frozenset(), head.tags or frozenset()
    return SchemaDelta(
        entries=tuple(entry for entry in entries if entry is not None),
        tags_added=tuple(sorted(tags_after - tags_before)),
        tags_removed=tuple(sorted(tags_before - tags_after)),
        compared=len(base.by_name.keys() | head.by_name.keys()),
    )


def argument_changes(old: Schema, new: Schema) -> tuple[ArgumentChange, ...]:
    """Every difference between two schemas of one operator; empty when they mean the same."""
    kind = ArgumentChangeKind
    changes: list[ArgumentChange] = []
    renamed = dict(_renames(old, new))
    for after in new.arguments:
        before = old.argument(renamed.get(after.name, after.name))
        if before is None:
            added = kind.OUT_ADDED if after.is_out else kind.ADDED
            changes.append(ArgumentChange(added, after.name, "", _written(after)))
        else:
            changes += _argument_change(before, after)
    kept = {renamed.get(argument.name, argument.name) for argument in new.arguments}
    for before in old.arguments:
        if before.name not in kept:
            gone = kind.OUT_REMOVED if before.is_out else kind.REMOVED
            changes.append(ArgumentChange(gone, before.name, _written(before)))
    changes += _reordered(old, new)
    if old.returns != new.returns:
        changes.append(ArgumentChange(kind.RETURNS, "", _all_written(old.returns), _all_written(new.returns)))
    return tuple(changes)


def _derived(functions: NativeFunctions) -> set[str]:
    return {f"aten::{name}" for entry in functions.by_name.values() for name in entry.autogen}


def _twin(schema: Schema, removed: Mapping[str, NativeFunction]) -> str:
    """A removed operator that had the same arguments and returns: probably the same one under its old name."""
    shape = (schema.arguments, schema.returns)
    twins = (name for name, old in removed.items() if (old.schema.arguments, old.schema.returns) == shape)
    return next(twins, "")


def _common_entry(
    name: str, before: NativeFunction, after: NativeFunction, known: tuple[Set[str], Set[str]]
) -> EntryDelta | None:
    """The delta of an entry that both trees have; ``known`` are all operator names of both trees."""
    gone = {derived for derived in before.autogen if f"aten::{derived}" not in known[1]}
    new = {derived for derived in after.autogen if f"aten::{derived}" not in known[0]}
    delta = EntryDelta(
        name,
        before,
        after,
        arguments=argument_changes(before.schema, after.schema),
        dispatch=_different(before.dispatch, after.dispatch),
        tags=tuple(sorted(before.tags ^ after.tags)),
        autogen=tuple(sorted(gone | new)),
        other=tuple(_other_keys(before, after)),
    )
    return delta if delta.is_schema_change or delta.dispatch or delta._outside_dispatch else None


def _other_keys(before: NativeFunction, after: NativeFunction) -> Iterator[str]:
    yield from _different(before.rest, after.rest)
    if before.variants != after.variants:
        yield "variants"
    if before.python_module != after.python_module:
        yield "python_module"


def _different(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(key for key in dict.fromkeys((*before, *after)) if before.get(key) != after.get(key))


def _renames(old: Schema, new: Schema) -> Iterator[tuple[str, str]]:
    """New name and old name of every argument that kept its place and type but not its name."""
    for before, after in zip(old.arguments, new.arguments, strict=False):
        unknown = old.argument(after.name) is None and new.argument(before.name) is None
        if unknown and before.type == after.type and before.is_out == after.is_out:
            yield after.name, before.name


def _argument_change(before: Argument, after: Argument) -> Iterator[ArgumentChange]:
    kind, name = ArgumentChangeKind, after.name
    if before.name != after.name:
        yield ArgumentChange(kind.RENAMED, name, before.name, after.name)
    if before.type != after.type:
        yield ArgumentChange(kind.TYPE, name, before.type, after.type)
    if before.alias != after.alias:
        yield ArgumentChange(kind.ALIAS, name, f"({before.alias})", f"({after.alias})")
    if before.kwarg_only != after.kwarg_only:
        places = ("positional", "keyword-only")
        yield ArgumentChange(kind.KWARG_ONLY, name, places[before.kwarg_only], places[after.kwarg_only])
    if before.default is None and after.default is not None:
        yield ArgumentChange(kind.DEFAULT_ADDED, name, "", after.default)
    elif before.default is not None and after.default is None:
        yield ArgumentChange(kind.DEFAULT_REMOVED, name, before.default, "")
    elif before.default != after.default:
        yield ArgumentChange(kind.DEFAULT_CHANGED, name, before.default or "", after.default or "")


def _reordered(old: Schema, new: Schema) -> Iterator[ArgumentChange]:
    before = [argument.name for argument in old.arguments if new.argument(argument.name)]
    after = [argument.name for argument in new.arguments if old.argument(argument.name)]
    if before != after:
        yield ArgumentChange(ArgumentChangeKind.REORDERED, ", ".join(after), ", ".join(before), ", ".join(after))


def _written(argument: Argument) -> str:
    default = f"={argument.default}" if argument.default is not None else ""
    return f"{argument.type} {argument.name}{default}".strip()


def _all_written(returns: tuple[Argument, ...]) -> str:
    return f"({', '.join(_written(value) + (f' ({value.alias})' if value.alias else '') for value in returns)})"
