"""How the options of a gate are declared, and those that several gates have.

The options of a gate are the fields of a frozen dataclass. The name of a field is the name on the command line:
``run_modes`` is typed ``--run-modes``. A field that is declared with :func:`option` brings that option; one without is
set by an option of the command itself, of the same name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from patchstack.series import load_series

_TYPED = "typed"


@dataclass(frozen=True)
class Typed:
    """How an option is typed.

    Attributes:
        help: one sentence.
        metavar: what stands for the value in the help; empty for a switch.
        kind: of the value: ``str``, ``bool``, ``tuple`` (of words, separated by commas) or ``datetime``.
        choices: the values, or members of the list, that exist; any where there is none.
    """

    help: str
    metavar: str
    kind: type
    choices: tuple[str, ...] = ()


def option(default: Any, help_: str, metavar: str = "", *, kind: type = str, choices: tuple[str, ...] = ()) -> Any:
    """A field that is an option of the command line; its kind follows from the default unless that is ``None``."""
    typed = Typed(help_, metavar, kind if default is None else type(default), choices)
    return field(default=default, metadata={_TYPED: typed})


def typed_by(metadata: Any) -> Typed | None:
    """How a field with this metadata is typed; ``None`` for one that the command itself sets."""
    typed: Typed | None = metadata.get(_TYPED)
    return typed


@dataclass(frozen=True)
class NoOptions:
    """Of a gate that has none."""


@dataclass(frozen=True)
class OpsOptions:
    """Which operators are judged.

    Attributes:
        series: name or folder of the series whose operators they are; the one of this distribution otherwise.
        ops: these instead.
    """

    series: str | None = None
    ops: tuple[str, ...] = option((), "Judge these operators only (default: those of the stack's changes).", "OP,..")

    @property
    def named_ops(self) -> tuple[str, ...]:
        """The operators to judge.

        Raises:
            PatchstackError: there is no such series, or its manifest is malformed.
        """
        return self.ops or load_series(self.series).ops


@dataclass(frozen=True)
class KindsOptions(OpsOptions):
    """Which scenarios of the operators are run on the stand-in device.

    Attributes:
        kinds: of scenarios; all of them where it is empty.
    """

    kinds: tuple[str, ...] = option((), "Only these kinds of scenarios (values, detectors, ...).", "KIND,..")

    def wants(self, kind: str) -> bool:
        """Whether scenarios of a kind are run."""
        return not self.kinds or kind in self.kinds


@dataclass(frozen=True)
class MatchOptions:
    """Which batches of cases are run.

    Attributes:
        match: a part of their names.
    """

    match: str = option("", "Only batches whose name has this text.", "TEXT")


@dataclass(frozen=True)
class SmallOptions:
    """How many cases are run.

    Attributes:
        small: the small table of cases instead of the whole.
    """

    small: bool = option(False, "The small table of cases only.")
