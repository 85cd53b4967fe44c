"""The keys of every JSON document that a command writes, as they were when this was recorded.

What reads the output of a command reads keys; a key that goes away or is called otherwise breaks it. The record is
``json_shape.json``: a list of paths for each document, with ``[]`` for the members of a list and ``*`` for names that
depend on the input. ``PATCHSTACK_RECORD_SHAPES=1`` writes it anew, for keys that are added on purpose.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from documents import document
from references import clone_of

RECORD = Path(__file__).with_name("json_shape.json")
_APPLY, _VALIDATE = "from patchstack.cli import main; main()", "from stackproof.cli import main; main()"
# Objects whose keys are values: paths, names of kernels, of confinements.
_OPEN = {"environment", "digests", "markers"}

COMMANDS = {
    "apply-stack": (_APPLY, "--onto", "main", "--dry-run", "--json"),
    "apply-stack --explain": (_APPLY, "--onto", "main", "--dry-run", "--explain", "--json"),
    "submit-check": (_APPLY, "submit-check", "--json"),
    "drift": (_APPLY, "drift", "--since", "main", "--onto", "main", "--json"),
    "validate-stack": (_VALIDATE, "--only", "lint,c-shim,fc-window,metal-check", "--json", "-"),
}


def _paths(value: Any, at: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        opened = at.rpartition(".")[2] in _OPEN
        for key, inner in value.items():
            yield from _paths(inner, f"{at}.*" if opened else f"{at}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{at}[]")
        if not value:
            yield f"{at}[]"
    else:
        yield at


def _ran(command: tuple[str, ...], repository: Path) -> Any:
    code, *words = command
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--repo", str(repository)], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    return document(done.stdout)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 2.11 reference tree with the stack on it."""
    repository = clone_of("2.11", tmp_path_factory.mktemp("shape") / "tree")
    for name, value in (("user.name", "A"), ("user.email", "a@example.com")):
        subprocess.run(["git", "-C", str(repository), "config", name, value], check=True)
    made = [sys.executable, "-c", _APPLY, "--onto", "main", "--repo", str(repository)]
    subprocess.run(made, check=True, capture_output=True)
    return repository


@pytest.mark.needs_reference
@pytest.mark.parametrize("name", COMMANDS)
def test_no_key_of_a_document_went_away(name: str, checkout: Path) -> None:
    found = sorted(set(_paths(_ran(COMMANDS[name], checkout))))
    assert found
    if os.environ.get("PATCHSTACK_RECORD_SHAPES"):
        known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        RECORD.write_text(json.dumps({**known, name: found}, indent=1, sort_keys=True) + "\n")
    gone = set(json.loads(RECORD.read_text())[name]) - set(found)
    assert not gone, f"{name} no longer has {sorted(gone)}"
