"""Every Metal and Objective-C++ file of a real tree, beside a scanner that knows nothing of the parser."""

from __future__ import annotations

import re

import pytest

from patchstack.tree.cxx import CxxFile
from patchstack.tree.git import Repository, Tree
from references import require_reference

FOLDER = "aten/src/ATen/native/mps"
HARD = {f"{FOLDER}/OperationUtils.mm"}
"""Files the grammar does not get through without an error; their functions are found all the same."""

_NOT_CODE = re.compile(rb'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|@?"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_FUNCTION = re.compile(
    rb"^(?![\s#}]|else\b|namespace\b|return\b|struct\b|template\b|class\b)[^;{}#=(]*[\s*&]([\w:~]+)\s*\([^;{}]*\)\s*(?:const\s*)?\{",
    re.M,
)


def scanned(data: bytes) -> set[str]:
    """Names in front of a parameter list and a brace, on lines that begin in the first column."""
    blanked = _NOT_CODE.sub(lambda match: re.sub(rb"[^\n]", b" ", match.group()), data)
    blanked = re.sub(rb"\[\[.*?\]\]|__attribute__\(\(.*?\)\)", b"", blanked)
    return {name.decode() for name in _FUNCTION.findall(blanked) if not re.match(rb"[A-Z][A-Z0-9_]+$", name)}


@pytest.fixture(scope="module")
def sources() -> dict[str, bytes]:
    reference = require_reference("2.6")
    with Repository.open(reference.path) as repository:
        tree = Tree.at(repository, reference.commit)
        found = {path: tree.read(path) or b"" for path in tree.walk(FOLDER) if path.endswith((".mm", ".metal"))}
    assert sum(path.endswith(".metal") for path in found) == 15
    assert sum("/operations/" in path and path.endswith(".mm") for path in found) >= 59
    return found


@pytest.mark.needs_reference
def test_all_files_are_read_without_an_error_but_the_known_ones(sources: dict[str, bytes]) -> None:
    assert {path for path, data in sources.items() if CxxFile(data).broken} == HARD


@pytest.mark.needs_reference
def test_every_function_that_a_plain_scanner_sees_is_found(sources: dict[str, bytes]) -> None:
    missed = {}
    count = 0
    for path, data in sources.items():
        expected = scanned(data)
        count += len(expected)
        missed[path] = expected - {d.name for d in CxxFile(data).definitions if d.kind in ("function", "kernel")}
    assert count > 400
    assert {path: names for path, names in missed.items() if names} == {}


@pytest.mark.needs_reference
def test_every_definition_ends_on_a_line_that_closes_it(sources: dict[str, bytes]) -> None:
    for path, data in sources.items():
        file = CxxFile(data)
        for found in file.definitions:
            if found.kind in ("function", "kernel", "struct", "class"):
                last = file.uncommented[found.start : found.end].rstrip()
                assert last.endswith((b"}", b"};")) or found.end - found.start < 200, (path, found)
                assert last.count(b"{") >= 1, (path, found)


def test_the_scanner_sees_a_function_that_the_parser_would_miss() -> None:
    source = b"// void no() {\nvoid yes(int a) {\n}\nstatic Tensor& also(\n    Tensor& a) {\n}\n"
    source += b'char* t = R"(\nvoid no() {\n)";\n'
    assert scanned(source) == {"yes", "also"}
