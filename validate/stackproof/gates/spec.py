"""What is known of a gate before anything that it needs is imported.

The folder of a gate has a ``spec.py`` with its :class:`Spec` and the type of its options, which import no package that
an installation may lack, and a ``gate.py`` with a function ``run(context, options)``.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import Any

from stackproof.gates.common.options import NoOptions
from stackproof.model import Gate, GateContext, GateResult


class Keeps(enum.Enum):
    """What a gate builds in the cache, and so needs of it."""

    NOTHING = "nothing"
    FILES = "files"
    PROGRAMS = "programs"  # libraries that it loads, too


@dataclass(frozen=True)
class Spec:
    """One gate.

    Attributes:
        module: ``__name__`` of the module that has this spec; ``gate.py`` stands beside it.
        name: as typed after ``--only``.
        summary: one line for ``--list``.
        options: the type of its options: a frozen dataclass, every field with a default.
        limits: what its results do not show, one sentence each.
        needs: importable packages without which the gate is not run; those that every installation has are left out.
        keeps: what it builds in the cache.
        runs: whose code it executes, beside that of installed packages; empty where it only reads and compiles.
        can_do_without: whether it comes to a result without running that, where it is not needed or was run before.
        proves_kernels: whether it proves kernels by executing them.
    """

    module: str
    name: str
    summary: str
    options: type[Any] = NoOptions
    limits: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    keeps: Keeps = Keeps.NOTHING
    runs: str = ""
    can_do_without: bool = False
    proves_kernels: bool = False

    def load(self) -> Gate:
        """Import the gate."""
        gate: Any = import_module(f"{self.module.rpartition('.')[0]}.gate")
        return gate  # type: ignore[no-any-return]

    def options_of(self, given: Mapping[str, Any]) -> Any:
        """The gate's options, from everything that was given for any gate, by name."""
        own = (one.name for one in fields(self.options))
        return self.options(**{name: given[name] for name in own if given.get(name)})

    def judge(self, context: GateContext, options: Any) -> GateResult:
        """Run the gate, and time it."""
        started = time.perf_counter()
        result = self.load().run(context, options)
        return replace(result, seconds=time.perf_counter() - started)
