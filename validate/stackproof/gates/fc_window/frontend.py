"""The Python frontend of a tree: which files belong to it, which of their lines a stack wrote, and what they use."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from patchstack.tree.git import GitCommitHash, Repository, Tree
from stackproof.gates.common.changes import AddedLines, added_lines
from stackproof.gates.common.python_source import parse_python
from stackproof.gates.fc_window.probe import Probe
from stackproof.gates.fc_window.uses import Use, find_uses

FOLDER = "torch"
_NOT_FRONTEND = re.compile(
    r"""torch/(?:testing|include|lib|share|test|bin)/      # test code and build products
      | (?:^|/)(?:tests?|testing|_tests?)/                 # test folders of subpackages
      | /(?:test_\w+|testing|conftest)\.py$                # test modules beside the code
      | /serialized_patterns/ | /autoheuristic/artifacts/  # generated tables
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Scan:
    """What the files of a tree use.

    Attributes:
        uses: in order of path and line.
        files: how many files were looked at.
        unparsed: files that name an operator of interest but are not Python that this Python can read, with the reason.
    """

    uses: tuple[Use, ...]
    files: int
    unparsed: Mapping[str, str]


def is_frontend(path: str) -> bool:
    """Whether a path is Python frontend code: below ``torch/``, and neither test code nor generated data."""
    return path.startswith(f"{FOLDER}/") and path.endswith(".py") and _NOT_FRONTEND.search(path) is None


def frontend_files(tree: Tree) -> Iterator[str]:
    """Every frontend file of a tree."""
    return (path for path in tree.walk(FOLDER) if is_frontend(path))


def scan(tree: Tree, paths: Iterable[str], probes: Mapping[str, Probe]) -> Scan:
    """Find every use of the probed operators in some files of a tree."""
    if not probes:
        return Scan((), 0, {})
    mentions = _mention_pattern(probes)
    uses: list[Use] = []
    unparsed: dict[str, str] = {}
    count = 0
    for path in paths:
        count += 1
        content = tree.read(path)
        if content is None or not mentions.search(content):
            continue
        module = parse(content)
        if isinstance(module, str):
            unparsed[path] = module
        else:
            uses += find_uses(module, path, probes)
    return Scan(tuple(uses), count, unparsed)


def parse(content: bytes) -> ast.Module | str:
    """The syntax tree of a file, or why there is none."""
    try:
        return parse_python(content)
    except SyntaxError as error:
        return f"{error.msg}" + (f" (line {error.lineno})" if error.lineno else "")


def frontend_changes(repository: Repository, base: GitCommitHash, head: GitCommitHash) -> dict[str, AddedLines]:
    """The frontend lines that the range wrote, by path."""
    changes = added_lines(repository, base, head, f":(glob){FOLDER}/**/*.py")
    return {path: lines for path, lines in changes.items() if is_frontend(path)}


def _mention_pattern(probes: Mapping[str, Probe]) -> re.Pattern[bytes]:
    """Finds the names at all, in any of the spellings that :mod:`~stackproof.gates.fc_window.uses` follows."""
    names = set(probes)
    for base in probes:
        for prefix in ("linalg_", "fft_", "special_", "sparse_"):
            names.add(base.removeprefix(prefix))
    return re.compile(rb"\b(?:" + b"|".join(re.escape(name).encode() for name in sorted(names)) + rb")\b")
