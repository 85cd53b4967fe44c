"""Which host files a stack concerns: those that it changes, and those whose kernels it changes."""

from __future__ import annotations

from collections.abc import Collection

from patchstack.errors import PatchstackError
from patchstack.tree.git import Tree
from stackproof.engines.standin.stack import OPERATIONS, HostFile, HostStack
from stackproof.gates.common.sources import stack_of, touched_sources
from stackproof.gates.op_run.recorded import base_name
from stackproof.model import Finding, GateContext


def op_stack(context: GateContext) -> HostStack:
    """The host side of a stack, with the host files that launch kernels which the stack changes."""
    stack = stack_of(context)
    base, head = (Tree.at(context.repository, commit) for commit in (context.base, context.head))
    try:
        sources = set(touched_sources(base, head))
    except PatchstackError:
        sources = set()  # metal-check says so
    files = {file.path: None for file in stack.files}
    for path in sorted(head.walk(OPERATIONS)) if sources else ():
        text = head.read(path) or b""
        if path.endswith(".mm") and sources & set(HostFile(path, text.decode(errors="replace")).kernel_sources):
            files[path] = None
    return HostStack.of(head, list(files), base)


def not_found(asked: Collection[str], found: Collection[str]) -> list[Finding]:
    """Notes about ops that the user or the manifest names, and whose functions the stack does not show.

    Args:
        asked: the names, with or without an overload.
        found: base names of the ops of the stack.
    """
    text = "'ops' names it, but no MPS function of it was found in the host files that the stack concerns: not run here"
    missing = dict.fromkeys(base_name(op) for op in asked)
    return [Finding(f"{op}: {text}", rule="not-found", fails=False) for op in missing if op not in found]
