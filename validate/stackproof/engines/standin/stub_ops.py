"""Which ops a host file implements through a ``DispatchStub``: their shared native function calls the stub.

Names are followed through the definitions of one ``.cpp`` at a time, as far as they are at the start of a line. What is
found is registered for MPS; the stub then leads to the host file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from patchstack.tree.git import Tree

_NATIVE = "aten/src/ATen/native"
_STUB = re.compile(r"REGISTER_(?:MPS_)?DISPATCH\(\s*(\w+)")
_DEFINITION = re.compile(r"^(?=[A-Za-z_])(?!using|namespace|DEFINE_DISPATCH|template)[^\n]*\(", re.MULTILINE)
_NAME = re.compile(r"(?:TORCH_IMPL_FUNC|CREATE_\w+)\s*\(\s*(\w+)|[^(]*?\b(\w+)\s*\(")
_STEPS = 4


def functions_through_stubs(tree: Tree, texts: Iterable[str]) -> frozenset[str]:
    """Names of shared native functions that reach a stub which one of the host files registers."""
    stubs = {name for text in texts for name in _STUB.findall(text)}
    found: set[str] = set()
    for path in tree.walk(_NATIVE) if stubs else ():
        if path.endswith(".cpp") and path.count("/") == _NATIVE.count("/") + 1:
            text = (tree.read(path) or b"").decode(errors="replace")
            if any(stub in text for stub in stubs):
                found |= _users(text, stubs)
    return frozenset(found - stubs)


def _users(text: str, stubs: set[str]) -> set[str]:
    starts = [match.start() for match in _DEFINITION.finditer(text)] + [len(text)]
    bodies: dict[str, set[str]] = defaultdict(set)
    for start, end in pairwise(starts):
        piece = text[start:end]
        if match := _NAME.match(piece):
            bodies[match[1] or match[2]] |= set(re.findall(r"\w+", piece))
    known = set(stubs)
    for _step in range(_STEPS):
        known |= {name for name, words in bodies.items() if words & known}
    return known
