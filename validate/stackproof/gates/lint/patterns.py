"""Which of the tree's linters apply to which file, from the tree's own ``.lintrunner.toml``."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from patchstack.tree.git import Tree
from stackproof.gates.common.errors import MalformedTreeError
from stackproof.gates.common.functions import read_limited

CONFIG_PATH = ".lintrunner.toml"

_FALLBACK = {
    "CLANGFORMAT": (("**/*.metal", "**/*.mm", "aten/src/ATen/native/mps/**/*.h"), ("**/generated/**",)),
    "RUFF": (("**/*.py", "**/*.pyi"), ("third_party/**",)),
    "SPACES": (("**",), ("third_party/**", "**/*.expect", "**/*.patch", "**/*.diff")),
    "TABS": (("**",), ("third_party/**", "**/*.svg", "**/*Makefile", "**/*.go", "**/*.bat", "**/*.patch")),
    "NEWLINE": (("**",), ("third_party/**", "**/*.expect", "**/*.bat")),
}


@dataclass(frozen=True)
class LinterPatterns:
    """Include and exclude patterns by linter code.

    Attributes:
        by_code: ``CLANGFORMAT`` and so on to include and exclude patterns.
        from_tree: whether they are the tree's; otherwise they are plain defaults of this project.
    """

    by_code: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    from_tree: bool

    def applies(self, code: str, path: str) -> bool:
        """Whether a linter wants to see a file."""
        include, exclude = self.by_code.get(code, ((), ()))
        return any(_regex(p).fullmatch(path) for p in include) and not any(_regex(p).fullmatch(path) for p in exclude)


def read_patterns(tree: Tree) -> LinterPatterns:
    """The patterns of a tree; defaults where it has no configuration, or this Python has no TOML reader (3.10).

    Raises:
        MalformedTreeError: the configuration is not TOML.
    """
    content = read_limited(tree, CONFIG_PATH)
    toml = _toml()
    if content is None or toml is None:
        return LinterPatterns(_FALLBACK, from_tree=False)
    try:
        config = toml.loads(content.decode())
    except ValueError as error:  # both TOMLDecodeError and UnicodeDecodeError
        raise MalformedTreeError(f"not TOML: {error}", where=CONFIG_PATH) from None
    found = {
        str(linter.get("code")): (tuple(linter.get("include_patterns", ())), tuple(linter.get("exclude_patterns", ())))
        for linter in config.get("linter", ())
    }
    return LinterPatterns({code: found.get(code, _FALLBACK[code]) for code in _FALLBACK}, from_tree=True)


@functools.lru_cache(maxsize=4096)
def _regex(pattern: str) -> re.Pattern[str]:
    """A glob as ``lintrunner`` reads it: ``**`` crosses folders, ``*`` does not."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(parts.get(piece, re.escape(piece)) for piece in pieces))


def _toml() -> ModuleType | None:
    for name in ("tomllib", "tomli"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
