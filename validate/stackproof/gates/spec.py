"""What is known of a gate before it is imported."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from importlib import import_module

from stackproof.model import Gate


class Keeps(enum.Enum):
    """What a gate builds in the cache, and so needs of it."""

    NOTHING = "nothing"
    FILES = "files"
    PROGRAMS = "programs"  # libraries that it loads, too


@dataclass(frozen=True)
class GateEntry:
    """Where a gate is found.

    Attributes:
        name: as typed after ``--only``.
        summary: one line for ``--list``.
        factory: ``module:callable`` that makes the gate. Imported on use only, since some gates need packages that
            others do not.
        keeps: what it builds in the cache.
        runs: whose code it executes, beside that of installed packages; empty where it only reads and compiles.
        can_do_without: whether it comes to a result without running that, where it is not needed or was run before.
        needs: importable packages without which the gate is not run; those that every installation has are left out.
    """

    name: str
    summary: str
    factory: str
    needs: tuple[str, ...] = ()
    keeps: Keeps = Keeps.NOTHING
    runs: str = ""
    can_do_without: bool = False

    def load(self) -> Gate:
        """Import and make the gate."""
        module, _, attribute = self.factory.partition(":")
        gate: Gate = getattr(import_module(module), attribute)()
        return gate
