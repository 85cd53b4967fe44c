"""The options of the gates as options of a command, made from the dataclasses that the gates' specs name."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import click

from patchstack.errors import UsageError
from stackproof.gates.common.options import Typed, typed_by
from stackproof.gates.spec import Spec

_DAY, _MINUTE = "%Y-%m-%d", "%Y-%m-%dT%H:%M"
_FEW = 3  # gates that the help of an option names

Command = Callable[..., None]


@dataclass(frozen=True)
class GateOption:
    """One option.

    Attributes:
        name: of the field, and of the parameter of the command.
        typed: how it is typed.
        gates: the names of those that have it; none where all have.
    """

    name: str
    typed: Typed
    gates: tuple[str, ...]

    @property
    def flag(self) -> str:
        """As it is typed."""
        return f"--{self.name.replace('_', '-')}"

    def decorator(self, *, hidden: bool) -> Callable[[Command], Command]:
        """What gives a command this option; where it is not given, its value is ``None``, false or an empty list."""
        of, text = f"Of {', '.join(self.gates)}: ", self.typed.help
        help_ = f"{of}{text[0].lower()}{text[1:]}" if 0 < len(self.gates) <= _FEW else text
        more: dict[str, Any] = {"metavar": self.typed.metavar or None}
        if self.typed.kind is bool:
            more = {"is_flag": True}
        elif self.typed.kind is tuple:
            more["callback"] = self._listed
        elif self.typed.kind is datetime.datetime:
            more["type"] = click.DateTime([_DAY, _MINUTE])
        elif self.typed.choices:
            more["type"] = click.Choice(self.typed.choices)
        return click.option(self.flag, hidden=hidden, help=help_, **more)

    def words(self, value: Any) -> list[str]:
        """The words that give it a value."""
        if self.typed.kind is bool:
            return [self.flag]
        if self.typed.kind is datetime.datetime:
            return [self.flag, value.strftime(_MINUTE).removesuffix("T00:00")]
        return [self.flag, shlex.quote(",".join(value) if self.typed.kind is tuple else value)]

    def _listed(self, _context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
        """The words of a list.

        Raises:
            UsageError: one of them does not exist.
        """
        words, choices = listed(text), self.typed.choices
        for word in words:
            if choices and word not in choices:
                what = self.name.replace("_", " ").removesuffix("s")
                raise UsageError(f"no {what} '{word}'", expected=f"some of {', '.join(choices)}")
        return words


def listed(text: str | None) -> tuple[str, ...]:
    """What a comma-separated list has."""
    return tuple(one.strip() for one in (text or "").split(",") if one.strip())


def options_of(specs: Sequence[Spec]) -> list[GateOption]:
    """The options of gates, each once, in the order of their first appearance."""
    typed: dict[str, Typed] = {}
    gates: dict[str, list[str]] = {}
    for spec in specs:
        for field in fields(spec.options):
            if one := typed_by(field.metadata):
                typed.setdefault(field.name, one)
                gates.setdefault(field.name, []).append(spec.name)
    return [
        GateOption(name, one, tuple(gates[name]) if len(gates[name]) < len(specs) else ())
        for name, one in typed.items()
    ]


def with_options(options: Iterable[GateOption], *, hidden: Iterable[str] = ()) -> Callable[[Command], Command]:
    """What gives a command options; ``hidden`` names those that its help leaves out."""

    def decorate(command: Command) -> Command:
        for one in reversed(list(options)):
            command = one.decorator(hidden=one.name in hidden)(command)
        return command

    return decorate


def typed_words(specs: Sequence[Spec], given: Mapping[str, Any]) -> Iterator[str]:
    """What was given for the options of some gates, as words of a command."""
    for one in options_of(specs):
        if given.get(one.name):
            yield from one.words(given[one.name])
