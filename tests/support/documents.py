"""What a command printed with ``--json``, held against the schema that is published for it."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

# The first member of a document that no other kind has tells its kind.
_KINDS = {
    "error": ("patchstack", "error"),
    "onto_commit": ("patchstack", "apply-stack"),
    "aborted": ("patchstack", "resolve-abort"),
    "rewritten": ("patchstack", "refresh"),
    "range_diff": ("patchstack", "diff"),
    "visited": ("patchstack", "drift"),
    "concerns": ("patchstack", "submit-check"),
    "required_not_run": ("stackproof", "validate-stack"),
    "library": ("stackproof", "apple-kernels-list"),
    "intrinsics": ("stackproof", "apple-kernels-show"),
    "written": ("patchstack", "capture"),
}


@cache
def schema(package: str, name: str) -> Any:
    """A published schema, which is one of JSON Schema 2020-12."""
    content = json.loads(files(package).joinpath("schemas", f"{name}.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(content)
    return content


def kinds() -> set[tuple[str, str]]:
    """Package and name of every schema that a document can be held against."""
    return set(_KINDS.values())


def document(text: str) -> Any:
    """The document.

    Raises:
        AssertionError: no schema is published for it, or it is not what its schema says.
    """
    found = json.loads(text)
    kind = next((one for key, one in _KINDS.items() if key in found), None)
    assert kind, f"no schema for a document of {sorted(found)}"
    for error in Draft202012Validator(schema(*kind)).iter_errors(found):
        raise AssertionError(f"{kind[1]}, at {'/'.join(map(str, error.path)) or 'the top'}: {error.message}")
    return found
