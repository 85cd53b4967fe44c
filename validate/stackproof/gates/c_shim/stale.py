"""Whether the checked-in headers are what the tree's own torchgen makes of the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from patchstack.confine.policy import TreeCodeForbiddenError
from patchstack.tree.c_shim import HEADER_FOLDER, ShimDelta, classify, header_path, parse_declarations
from patchstack.tree.git import Tree
from patchstack.tree.torchgen_run import TorchgenError, generate_c_shims
from stackproof.gates.common.functions import FUNCTIONS_PATH, TAGS_PATH

_INPUTS = (HEADER_FOLDER, "torchgen", FUNCTIONS_PATH, TAGS_PATH)


@dataclass(frozen=True)
class StaleHeader:
    """One header that differs from what torchgen makes.

    Attributes:
        path: of the header.
        delta: from the stored header to the generated one.
        text_only: whether the declarations are the same and only other text differs.
    """

    path: str
    delta: ShimDelta
    text_only: bool


@dataclass(frozen=True)
class Freshness:
    """What torchgen says about the headers of one tree.

    Attributes:
        stale: headers that differ.
        checked: paths that were compared.
        not_made: stored headers that torchgen does not make, and so were not compared.
        refusal: why nothing was compared; empty when something was.
        refused_by_torchgen: whether torchgen ran and refused the tree, as against not being there.
        refused_line: of native_functions.yaml, where it named one; 0 elsewhere.
    """

    stale: tuple[StaleHeader, ...] = ()
    checked: tuple[str, ...] = ()
    not_made: tuple[str, ...] = ()
    refusal: str = ""
    refused_by_torchgen: bool = field(default=False)
    refused_line: int = 0


def check_freshness(tree: Tree, devices: Sequence[str]) -> Freshness:
    """Compare the stored headers of ``devices`` with those that the tree's own torchgen makes."""
    if not tree.exists("torchgen/gen.py"):
        return Freshness(refusal="the tree has no torchgen")
    try:
        made = generate_c_shims(tree, devices)
    except TorchgenError as error:
        return Freshness(refusal=str(error), refused_by_torchgen=True, refused_line=error.line)
    except TreeCodeForbiddenError as error:
        return Freshness(refusal=str(error))
    stale: list[StaleHeader] = []
    checked: list[str] = []
    not_made: list[str] = []
    for path in map(header_path, devices):
        stored, wanted = tree.read(path), made.get(path)
        if stored is None or wanted is None:
            not_made += [path] if stored is not None else []
            continue
        checked.append(path)
        if stored != wanted:
            ours, theirs = parse_declarations(stored, path=path), parse_declarations(wanted, path=f"generated {path}")
            delta = classify(ours, theirs)
            stale.append(StaleHeader(path, delta, delta.is_empty))
    refusal = "" if checked else "the tree's torchgen makes none of these headers"
    return Freshness(tuple(stale), tuple(checked), tuple(not_made), refusal)


def same_inputs(base: Tree, head: Tree) -> bool:
    """Whether the range left alone the headers and everything that torchgen makes them from."""
    return all(base.entry(path) == head.entry(path) for path in _INPUTS)
