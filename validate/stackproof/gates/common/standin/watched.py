"""Which ops must not end in the CPU fallback while the stack is proved on the stand-in device."""

from __future__ import annotations

from collections.abc import Iterator

from patchstack.tree.git import Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH, parse_native_functions
from patchstack.tree.yaml_nodes import YamlSyntaxError
from stackproof.engines.standin.build import DeviceBuild
from stackproof.engines.standin.stack import HostStack
from stackproof.gates.common.options import OpsOptions
from stackproof.launches import Launches, fell_back
from stackproof.model import Finding

_MPS = "MPS"


def watched_ops(stack: HostStack, options: OpsOptions) -> frozenset[str]:
    """The ops that a host file of the stack implements, and those that the series names but nothing dispatches.

    A series may name an op for another device: its entry has changed, and MPS is no part of the change. The ops of
    the default series are nobody's claim about this stack, so they count only where they are asked for.
    """
    asked = options.named_ops if options.ops or options.series else ()
    return frozenset({*(op.overload for op in stack.ops), *(op for op in asked if _is_undispatched(stack, op))})


def fallback_findings(launches: Launches, stack: HostStack, build: DeviceBuild, options: OpsOptions) -> list[Finding]:
    """What is said of the stack's ops that ended in the CPU fallback."""
    left_out = {sentence.partition(":")[0] for sentence in build.left_out}
    return fell_back(launches, watched_ops(stack, options), left_out)


def _is_undispatched(stack: HostStack, op: str) -> bool:
    if not stack.files:
        return False
    after = dict(_dispatch(stack.tree, op))
    before = dict(_dispatch(stack.base, op)) if stack.base is not None else after
    return _MPS not in after and (_MPS in before or after == before)


def _dispatch(tree: Tree, op: str) -> Iterator[tuple[str, str]]:
    """The function of each dispatch key of an op; nothing for one that the tree does not have."""
    try:
        entries = parse_native_functions(tree.read(FUNCTIONS_PATH) or b"").find(op)
    except YamlSyntaxError:
        return  # the gates that read the whole file say so
    for entry in entries:
        for line in entry.dispatch:
            yield from ((key, line.function) for key in line.keys)
