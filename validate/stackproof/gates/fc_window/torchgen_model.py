"""A tree's own torchgen as a second reader of schemas, for entries that the torch at hand cannot parse.

The tree's ``torchgen`` package is laid out in a scratch folder from git objects and asked in a confined process: the
judged tree may be years away from the installed one, and importing it here would mix the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from patchstack.cache import made_folder
from patchstack.confine.command import run_confined
from patchstack.confine.policy import TreeCodeForbiddenError
from patchstack.tree.git import Tree
from patchstack.tree.torchgen_run import WHAT, lay_out
from stackproof.gates.common.schema import Argument, Schema

PACKAGE = "torchgen"
TIMEOUT_SECONDS = 120

_CHILD = Path(__file__).with_name("torchgen_child.py")


class TreeTorchgen:
    """The torchgen of one tree, used as a :data:`~stackproof.gates.fc_window.judge.TreeParser`."""

    def __init__(self, tree: Tree, cache: Path) -> None:
        self._tree = tree
        self._cache = cache

    def __call__(self, texts: frozenset[str]) -> Mapping[str, Schema]:
        """The schemas that the tree's torchgen can read; empty where the tree has none, or it does not run."""
        return {text: _schema(text, *parts) for text, parts in self._asked("schemas", texts).items()}

    def refused_keys(self, keys: frozenset[str]) -> Mapping[str, str]:
        """Of dispatch keys, those that the tree's torchgen does not take, with its own sentence about each."""
        return self._asked("keys", keys)

    def _asked(self, question: str, texts: frozenset[str]) -> dict[str, Any]:
        root = lay_out_once(self._tree, PACKAGE, self._cache / "torchgen-package")
        if root is None or not texts:
            return {}
        try:
            done = run_confined(
                WHAT,
                _CHILD,
                [str(root), question],
                readable=[root],
                timeout=TIMEOUT_SECONDS,
                stdin=json.dumps(sorted(texts)),
            )
        except TreeCodeForbiddenError:
            return {}
        try:
            answer = json.loads(done.stdout) if done.status == 0 else {}
        except ValueError:
            return {}
        return answer if isinstance(answer, dict) else {}


def lay_out_once(tree: Tree, folder: str, cache: Path) -> Path | None:
    """Write the files of ``folder`` of a committed tree below ``cache``, once per content.

    Returns:
        The folder that holds ``folder``, ready for ``sys.path``; ``None`` where the tree has no such folder.
    """
    entry = tree.entry(folder)
    if entry is None or not entry.is_directory:
        return None
    return made_folder(cache / entry.hash, lambda made: lay_out(tree, made, [folder]))


def _schema(text: str, name: str, arguments: Iterable[list[object]], returns: Iterable[list[object]]) -> Schema:
    namespace, _, rest = name.rpartition("::")
    base, _, overload = rest.partition(".")
    parts = tuple(map(_argument, arguments)), tuple(map(_argument, returns))
    return Schema(namespace or "aten", base, overload, *parts, text)


def _argument(fields: list[object]) -> Argument:
    name, type_, alias, default, kwarg_only = fields
    return Argument(str(name), str(type_), str(alias), None if default is None else str(default), bool(kwarg_only))
