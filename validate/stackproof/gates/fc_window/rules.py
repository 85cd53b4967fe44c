"""Backward and forward compatibility of two schemas, in plain words.

Torch's own checker stays the authority where it can parse both schemas, but it often says no more than "no". These
rules restate what it does, argument by argument, and always give the reason; the tests hold them to torch's answer on
every changed entry between real releases. They also judge the entries that the torch at hand cannot parse.

*Backward compatible*: a call or a saved program written for the old schema still works with the new one.
*Forward compatible*: a call written for the new schema, new arguments left alone, still works with the old one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from stackproof.gates.common.schema import Argument, Schema

# Torch represents these as plain integers (or booleans) in programs, so that swapping them changes nothing there.
_SAME_AS = {"SymInt": "int", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int", "SymBool": "bool"}


@dataclass(frozen=True)
class Judgement:
    """Both verdicts on one pair of schemas.

    Attributes:
        backward: whether old callers still work; ``None`` when not judged.
        forward: whether new callers work on old runtimes; ``None`` when not judged.
        backward_reason: why not, one clause; empty when compatible.
        forward_reason: why not, one clause; empty when compatible.
        judged_by: who said so: ``torch 2.13.0``, ``rules``, ``the tree's torchgen and rules``.
    """

    backward: bool | None
    forward: bool | None
    backward_reason: str = ""
    forward_reason: str = ""
    judged_by: str = "rules"


def judge(old: Schema, new: Schema) -> Judgement:
    """Apply the rules to two schemas of one operator."""
    backward = next(_backward_faults(old, new), "")
    forward = next(_forward_faults(old, new), "")
    return Judgement(not backward, not forward, backward, forward)


def _backward_faults(old: Schema, new: Schema) -> Iterator[str]:
    yield from _shape_faults(old, new)
    if len(new.arguments) < len(old.arguments):
        gone = ", ".join(a.name for a in old.arguments if new.argument(a.name) is None)
        yield f"callers that pass {gone or 'the last argument'} break: the new schema has fewer arguments"
    for before, after in zip(old.returns, new.returns, strict=False):
        if not _is_subtype(after.type, before.type):
            yield f"a return changes from {before.type} to {after.type}, which old callers do not expect"
        elif before.name != after.name:
            yield f"a return is renamed from {before.name or '(no name)'} to {after.name or '(no name)'}"
        elif before.alias != after.alias:
            yield f"a return changes its aliasing from ({before.alias}) to ({after.alias})"
    for before, after in zip_longest(old.inputs, new.inputs):
        if before is None:
            if after.default is None:
                yield f"the new argument {after.name} has no default, so every old call lacks it"
        elif after is None:
            yield f"the argument {before.name} is gone"
        else:
            yield from _backward_argument_faults(before, after)
    for before, after in zip(old.outs, new.outs, strict=False):
        yield from _backward_argument_faults(before, after)
    if len(old.outs) != len(new.outs):
        yield "the number of out arguments changes"


def _backward_argument_faults(before: Argument, after: Argument) -> Iterator[str]:
    yield from _place_faults(before, after)
    if not _is_subtype(before.type, after.type):
        yield f"{before.name} no longer takes what it took: {before.type} becomes {after.type}"
    if before.default is not None and not _same_default(before, after):
        yield f"old calls that leave out {before.name} {_default_change(before, after)}"


def _forward_faults(old: Schema, new: Schema) -> Iterator[str]:
    yield from _shape_faults(old, new)
    if len(old.outs) != len(new.outs):
        yield "the number of out arguments changes"
    for before, after in zip(old.inputs, new.inputs, strict=False):
        yield from _forward_argument_faults(before, after)
    for after in new.inputs[len(old.inputs) :]:
        if after.default is None:
            yield f"the new argument {after.name} has no default, so every new call passes what old runtimes refuse"
        elif after.default.startswith("[") or after.type.endswith("]"):
            yield f"the new argument {after.name} has a list as default, which torch writes out into every saved call"
    for before, after in zip(old.outs, new.outs, strict=False):
        yield from _forward_argument_faults(before, after)


def _forward_argument_faults(before: Argument, after: Argument) -> Iterator[str]:
    yield from _place_faults(before, after)
    if not _is_subtype(after.type, before.type):
        yield f"{before.name} takes more than old runtimes know: {before.type} becomes {after.type}"
    if before.default is None and after.default is not None:
        yield f"{before.name} gets a default, so new calls may leave it out and old runtimes need it"
    elif before.default is not None and not _same_default(before, after):
        meant = after.default or "a given value"
        yield f"old runtimes fill in {before.name}={before.default} where new calls mean {meant}"


def _shape_faults(old: Schema, new: Schema) -> Iterator[str]:
    if old.name != new.name:
        yield f"{old.name} and {new.name} are two operators: saved programs find an operator by name and overload"
    if len(old.returns) != len(new.returns):
        yield f"the number of returns changes from {len(old.returns)} to {len(new.returns)}"


def _place_faults(before: Argument, after: Argument) -> Iterator[str]:
    """What breaks in both directions: arguments are matched by position, name and aliasing."""
    if before.name != after.name:
        yield f"the argument at the place of {before.name} is now {after.name} (renamed, moved, or one put before it)"
    if before.alias != after.alias:
        yield f"{before.name} changes its aliasing from ({before.alias}) to ({after.alias})"
    if _list_length(before.type) != _list_length(after.type):
        yield f"{before.name} changes its fixed list length: {before.type} becomes {after.type}"
    if after.kwarg_only and not before.kwarg_only:
        yield f"{before.name} becomes keyword-only, so calls that pass it by position break"


def _default_change(before: Argument, after: Argument) -> str:
    if after.default is None:
        return "break: it has no default any more"
    return f"change their meaning: the default was {before.default} and is {after.default}"


def _same_default(before: Argument, after: Argument) -> bool:
    if before.default is None or after.default is None:
        return before.default == after.default
    old, new = _value(before), _value(after)
    return type(old) is type(new) and old == new


def _value(argument: Argument) -> object:
    """The default as torch stores it: a whole number is a float where the type is, one value fills a fixed list."""
    assert argument.default is not None
    try:
        value: object = ast.literal_eval(argument.default)
    except (ValueError, SyntaxError):
        return argument.default  # a name, such as contiguous_format
    if argument.type.startswith("float") and type(value) is int:
        value = float(value)
    length = _list_length(argument.type)
    return [value] * int(length) if length and type(value) in (int, float, bool) else value


def _list_length(type_: str) -> str:
    """``2`` of ``int[2]``; empty for anything else."""
    return type_.rstrip("?").rpartition("[")[2].rstrip("]") if "[" in type_ else ""


def _is_subtype(narrow: str, wide: str) -> bool:
    """Whether every value of ``narrow`` is one of ``wide``, as torch's type system has it."""
    narrow, wide = _normal(narrow), _normal(wide)
    if narrow == wide:
        return True
    if wide.endswith("?"):
        return _is_subtype(narrow.removesuffix("?"), wide[:-1])
    return wide == "Scalar" and narrow in ("int", "float", "complex")


def _normal(type_: str) -> str:
    name = type_.split("[")[0].split("?")[0]
    suffix = type_[len(name) :]
    length = _list_length(type_)
    return _SAME_AS.get(name, name) + (suffix.replace(f"[{length}]", "[]") if length else suffix)
