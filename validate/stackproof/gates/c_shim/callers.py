"""Who calls a C shim in the tree, and whether they call the version they should."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from patchstack.tree.c_shim import HEADER_FOLDER
from patchstack.tree.git import Tree
from stackproof.gates.common.python_source import parse_python

INDUCTOR = "torch/_inductor"
_FOLDERS = (INDUCTOR, "torch/csrc")
_SUFFIXES = (".py", ".h", ".cpp", ".cu", ".mm")
_CHOOSERS = ("torch/_inductor/ir.py", "torch/_inductor/codegen/")
_VERSION_SUFFIX = re.compile(r"_v\d+$")


@dataclass(frozen=True)
class Caller:
    """One place that names a shim function.

    Attributes:
        path: file in the tree.
        line: 1-based.
        function: the function it names, as written.
    """

    path: str
    line: int
    function: str


def find_callers(tree: Tree, functions: Iterable[str]) -> Iterator[Caller]:
    """Every place that names one of these functions, in Inductor and in the C++ of ``torch/csrc``."""
    names = sorted(functions)
    if not names:
        return
    pattern = re.compile(rb"\b(?:" + b"|".join(re.escape(name).encode() for name in names) + rb")\b")
    for folder in _FOLDERS:
        for path in tree.walk(folder):
            if path.endswith(_SUFFIXES) and not path.startswith(HEADER_FOLDER):
                content = tree.read(path) or b""
                for match in pattern.finditer(content):
                    yield Caller(path, content.count(b"\n", 0, match.start()) + 1, match[0].decode())


def base_function(name: str) -> str:
    """``aoti_torch_cpu_f`` for ``aoti_torch_cpu_f_v3``."""
    return _VERSION_SUFFIX.sub("", name)


def inductor_chooses_versions(tree: Tree) -> bool:
    """Whether the tree's Inductor puts a version suffix on the shims it calls.

    It does when a string it formats has ``_v`` right before a value, in a file that also knows the fallback list.
    """
    for path in tree.walk(INDUCTOR):
        if not path.startswith(_CHOOSERS) or not path.endswith(".py"):
            continue
        content = tree.read(path) or b""
        if b"_v{" in content and b"fallback_ops" in content and _formats_version(content):
            return True
    return False


def _formats_version(content: bytes) -> bool:
    try:
        module = parse_python(content)
    except SyntaxError:
        return False
    for node in ast.walk(module):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for part, following in itertools.pairwise(parts):
            is_text = isinstance(part, ast.Constant) and str(part.value).endswith("_v")
            if is_text and isinstance(following, ast.FormattedValue):
                return True
    return False
