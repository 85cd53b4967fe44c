"""Regenerate a C-shim header with the tree's own torchgen; accept only the declarations that the series announces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from patchstack.edits.model import Edit, Outcome, Rung, Status
from patchstack.errors import MissingObjectError, PatchstackError
from patchstack.tree.c_shim import ShimDelta, classify, parse_declarations
from patchstack.tree.git import Tree
from patchstack.tree.torchgen_run import TorchgenError, generate_c_shims


@dataclass(frozen=True, kw_only=True)
class RegenerateShim(Edit):
    """The header becomes what torchgen makes of the tree with the change's other edits in it.

    A declaration that changes or goes away stops the run: compiled models call the functions by name and argument list
    (facts: the C-shim ABI rule, ``c_shim_*.h``). So does an addition nobody announced: the header was stale before.

    Attributes:
        backend: device in upper case, as the dispatch key (``MPS``).
        adds: functions that the header must gain.
    """

    kind: ClassVar[str] = "regenerate-c-shim"
    runs_torchgen: ClassVar[bool] = True
    anchor: ClassVar[str] = "the tree's own torchgen"
    backend: str
    adds: tuple[str, ...]

    def describe(self) -> str:
        return f"regenerate with the tree's torchgen ({', '.join(self.adds) or 'no new declaration'})"

    def plan(self, tree: Tree) -> Outcome:
        settled = self.plan_without_torchgen(tree)
        if settled is not None:
            return settled
        stored = tree.read(self.path) or b""
        try:
            before = parse_declarations(stored, path=self.path)
            generated = generate_c_shims(tree, [self.backend]).get(self.path)
            if generated is None:
                return self.failed(self.anchor, f"the tree's torchgen makes no header for {self.backend}")
            delta = classify(before, parse_declarations(generated, path=self.path))
        except MissingObjectError:
            raise
        except (TorchgenError, PatchstackError) as error:
            return self.failed(self.anchor, str(error))
        problem = self._judge(delta)
        if problem:
            return self.failed(self.anchor, problem)
        if generated == stored:
            return Outcome(Status.SATISFIED, self.anchor)
        return Outcome(
            Status.APPLIES, self.anchor, rung=Rung.REGENERATED, after=generated, note=f"{len(delta.added)} declared"
        )

    def plan_without_torchgen(self, tree: Tree) -> Outcome | None:
        """What the stored header alone decides; ``None`` where only torchgen can tell what would become of it."""
        stored = tree.read(self.path)
        if stored is None:
            return Outcome(Status.NOT_APPLICABLE, self.anchor, note="this tree has no such header")
        try:
            declared = {d.name for d in parse_declarations(stored, path=self.path)}
        except PatchstackError as error:
            return self.failed(self.anchor, str(error))
        return Outcome(Status.SATISFIED, self.anchor) if self.adds and declared >= set(self.adds) else None

    def _judge(self, delta: ShimDelta) -> str:
        """One sentence about what must not happen to a header, or nothing."""
        touched = [d.name for d in delta.removed] + [c.before.name for c in delta.changed]
        if touched:
            return f"regenerating would change or remove declarations that compiled models call: {', '.join(touched)}"
        if delta.reordered or delta.regated:
            return "regenerating would move declarations: the stored header is not what this tree's torchgen makes"
        added = {d.name for d in delta.added}
        foreign, missing = sorted(added - set(self.adds)), sorted(set(self.adds) - added)
        if foreign:
            return (
                f"the stored header is stale: regenerating also adds {', '.join(foreign)}, which is not of this series"
            )
        if missing:
            return f"regenerating does not add {', '.join(missing)}: is the op in torchgen/aoti/fallback_ops.py?"
        return ""


def generate_together(edits: Iterable[Edit], tree: Tree) -> None:
    """Run torchgen once for several headers of a tree; each edit then finds its header in the cache.

    What goes wrong is said by the edit that it goes wrong for.
    """
    shims = [edit for edit in edits if isinstance(edit, RegenerateShim) and edit.runs_torchgen]
    backends = [edit.backend for edit in shims if edit.plan_without_torchgen(tree) is None]
    if len(backends) > 1:
        with contextlib.suppress(TorchgenError, PatchstackError):
            generate_c_shims(tree, backends)
