"""Running a gate as the command does, with options that a user has."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from patchstack.cache import cache_dir
from patchstack.tree.git import Repository
from stackproof.gates.spec import Spec
from stackproof.gates.table import GATES
from stackproof.model import GateContext, GateResult

_KNOWN = {field.name for spec in GATES for field in fields(spec.options)}


def options_of(spec: Spec, **given: Any) -> Any:
    """The options of a gate, from those that are given for any gate."""
    assert given.keys() <= _KNOWN, f"no gate has {sorted(given.keys() - _KNOWN)}"
    return spec.options_of({name: tuple(one) if isinstance(one, list) else one for name, one in given.items()})


def run_gate(spec: Spec, context: GateContext, **given: Any) -> GateResult:
    """What a gate says with these options."""
    return spec.judge(context, options_of(spec, **given))


def own_context() -> GateContext:
    """A context for gates that judge no commit of their own: both commits are this repository's HEAD."""
    repository = Repository.open(Path(__file__).parent)
    head = repository.resolve_commit("HEAD")
    assert head
    return GateContext(repository, head, head, cache_dir(), jobs=1)
