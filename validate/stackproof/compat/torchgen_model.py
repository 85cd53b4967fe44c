"""A tree's own torchgen as a second reader of schemas, for entries that the torch at hand cannot parse.

The tree's ``torchgen`` package is laid out in a scratch folder from git objects and asked in a subprocess: the judged
tree may be years away from the installed one, and importing it here would mix the two.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from patchstack.git import Tree
from patchstack.python_processes import SAFE_FOLDER, code_command
from stackproof.compat.schema import Argument, Schema

PACKAGE = "torchgen"
TIMEOUT_SECONDS = 120

_SCRIPT = """
import json
sys.path.insert(0, sys.argv[1])
from torchgen.model import FunctionSchema

def one(value, kwarg_only):
    default = getattr(value, "default", None)
    alias = str(value.annotation) if value.annotation is not None else ""
    return [value.name or "", str(value.type), alias, default, kwarg_only]

answer = {}
for text in json.load(sys.stdin):
    try:
        schema = FunctionSchema.parse(text)
        arguments = schema.arguments
        by_keyword = {id(a) for a in (*arguments.flat_kwarg_only, *arguments.out)}
        everything = [one(a, id(a) in by_keyword) for a in arguments.flat_all]
        answer[text] = [str(schema.name), everything, [one(r, False) for r in schema.returns]]
    except Exception:
        continue
json.dump(answer, sys.stdout)
"""


_KEYS_SCRIPT = """
import json
sys.path.insert(0, sys.argv[1])
from torchgen.model import DispatchKey, dispatch_keys

answer = {}
for key in json.load(sys.stdin):
    try:
        if DispatchKey.parse(key) not in dispatch_keys:
            answer[key] = f"{key} is not a supported dispatch key"
    except Exception as error:
        answer[key] = str(error)
json.dump(answer, sys.stdout)
"""


class TreeTorchgen:
    """The torchgen of one tree, used as a :data:`~stackproof.compat.judge.TreeParser`."""

    def __init__(self, tree: Tree, cache: Path) -> None:
        self._tree = tree
        self._cache = cache

    def __call__(self, texts: frozenset[str]) -> Mapping[str, Schema]:
        """The schemas that the tree's torchgen can read; empty where the tree has none, or it does not run."""
        return {text: _schema(text, *parts) for text, parts in self._asked(_SCRIPT, texts).items()}

    def refused_keys(self, keys: frozenset[str]) -> Mapping[str, str]:
        """Of dispatch keys, those that the tree's torchgen does not take, with its own sentence about each."""
        return self._asked(_KEYS_SCRIPT, keys)

    def _asked(self, script: str, texts: frozenset[str]) -> dict[str, Any]:
        root = lay_out(self._tree, PACKAGE, self._cache / "torchgen-package")
        if root is None or not texts:
            return {}
        done = subprocess.run(
            code_command(script, str(root)),
            cwd=SAFE_FOLDER,
            input=json.dumps(sorted(texts)),
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        answer: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
        return answer


def lay_out(tree: Tree, folder: str, cache: Path) -> Path | None:
    """Write the Python files of ``folder`` of a committed tree below ``cache``, once per content.

    Returns:
        The folder that holds ``folder``, ready for ``sys.path``; ``None`` where the tree has no such folder.
    """
    entry = tree.entry(folder)
    if entry is None or not entry.is_directory:
        return None
    done = cache / entry.hash
    if done.is_dir():
        return done
    cache.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=cache))
    try:
        for path in tree.walk(folder):
            content = tree.read(path)
            if path.endswith(".py") and content is not None:
                target = scratch / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        scratch.rename(done)
    except OSError:
        if not done.is_dir():  # another run may have been first
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return done


def _schema(text: str, name: str, arguments: Iterable[list[object]], returns: Iterable[list[object]]) -> Schema:
    namespace, _, rest = name.rpartition("::")
    base, _, overload = rest.partition(".")
    parts = tuple(map(_argument, arguments)), tuple(map(_argument, returns))
    return Schema(namespace or "aten", base, overload, *parts, text)


def _argument(fields: list[object]) -> Argument:
    name, type_, alias, default, kwarg_only = fields
    return Argument(str(name), str(type_), str(alias), None if default is None else str(default), bool(kwarg_only))
