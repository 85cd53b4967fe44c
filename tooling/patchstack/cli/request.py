"""What the command line of ``apply-stack --onto REF`` asks for, and the command line again."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from patchstack.confine.policy import OPTION

_FLAGS = ("dry_run", "explain", "as_json", "checkout", "force", "check", "resolve")


@dataclass(frozen=True)
class Request:
    """What the command line asks for."""

    onto: str
    repo: Path | None = None
    reference: str | None = None
    series: str | None = None
    branch: str | None = None
    only: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    dry_run: bool = False
    explain: bool = False
    as_json: bool = False
    format_patch: Path | None = None
    checkout: bool = False
    force: bool = False
    results: Path | None = None
    bench: tuple[str, ...] = ()
    check: bool = False
    tree_code: bool = True
    resolve: bool = False
    more_series: tuple[str, ...] = ()

    def command(self, *, only: Collection[str], replace: Collection[str]) -> str:
        """What to type for the same with other changes chosen.

        Results and tables are left out: they are about the commits of this choice.
        """
        words = ["apply-stack", "--onto", self.onto]
        for option in ("repo", "reference", "series", "branch", "format_patch"):
            if (value := getattr(self, option)) is not None:
                words += [_spelt(option), str(value)]
        words += [word for name in self.more_series for word in ("--series", name)]
        words += [word for name in only for word in ("--only", name)]
        words += [word for name in replace for word in ("--replace", name)]
        words += [_spelt(flag) for flag in _FLAGS if getattr(self, flag)]
        words += [] if self.tree_code else [OPTION]
        return shlex.join(words)


def _spelt(name: str) -> str:
    return "--json" if name == "as_json" else f"--{name.replace('_', '-')}"
