"""A context for gates that judge no commit of their own: this repository stands in for the tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from patchstack.cache import cache_dir
from patchstack.tree.git import Repository
from stackproof.model import GateContext


def context_of(**options: Any) -> GateContext:
    """A context with these options; both commits are this repository's HEAD."""
    repository = Repository.open(Path(__file__).parent)
    head = repository.resolve_commit("HEAD")
    assert head
    return GateContext(repository, head, head, cache_dir(), jobs=1, options=options)
