"""Which kernels of a stack no gate launched, although gates that launch kernels were asked for.

The gates may all have been not run, for want of a package or of a proof of the op. So the kernels are looked up here,
and not taken from what some gate says of itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from patchstack.errors import PatchstackError
from patchstack.tree.git import GitCommitHash, Repository, Tree
from stackproof.gates.table import PROVING
from stackproof.launches import launched_by, ran_uncounted
from stackproof.model import GateResult

_KERNELS = "aten/src/ATen/native/mps"


def unproved_kernels(
    repository: Repository, base: GitCommitHash, head: GitCommitHash, results: Sequence[GateResult], cache: Path
) -> tuple[str, ...]:
    """The kernels that a range brings and no gate launched, by host name; none where no gate was to launch any.

    On a real device launches are not counted: what passed there is not called unproved.

    Args:
        repository: that has both commits.
        base: below the range.
        head: the commit that was judged.
        results: of all gates on this range.
        cache: folder for what was found out.
    """
    executing = [result for result in results if result.name in PROVING]
    if not executing or ran_uncounted(executing):
        return ()
    trees = Tree.at(repository, base), Tree.at(repository, head)
    launched = launched_by(executing)
    return tuple(kernel for kernel in _brought(*trees, cache) if kernel not in launched)


def _brought(base: Tree, head: Tree, cache: Path) -> list[str]:
    """Host names; for a source that cannot be read here, that it has kernels."""
    sources = [path for path in head.walk(_KERNELS) if path.endswith(".metal") and base.read(path) != head.read(path)]
    try:
        from stackproof.engines.metal.brought import kernels_brought
        from stackproof.gates.common.sources import touched_sources

        sources = touched_sources(base, head)
        return sorted(kernels_brought(base, head, sources, cache))
    except (PatchstackError, ModuleNotFoundError, OSError):  # the cache may not be written either
        return [f"(every one of {path})" for path in sources]
