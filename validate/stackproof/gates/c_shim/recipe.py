"""What to do when a shim declaration would change: the version entry, in the form that this very tree takes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchstack.tree.c_shim import ChangedDeclaration
from patchstack.tree.git import Tree
from stackproof.gates.c_shim.fallback import FALLBACK_PATH, FallbackOperator, VersionForm

REGENERATE = "python -m torchgen.gen --update-aoti-c-shim"
"""Run from the top of the checkout; as a module, since the script path would import the installed torchgen."""

VERSION_PATH = "version.txt"


def recipe(changed: ChangedDeclaration, operator: FallbackOperator | None, form: VersionForm, since: str) -> str:
    """How to keep the old declaration and add the new one, in one sentence.

    Args:
        changed: the declaration before and after.
        operator: its entry in ``fallback_ops.py``, ``None`` when it has none.
        form: the form of versions that the tree's torchgen takes.
        since: version macro for a new version in this tree (``TORCH_VERSION_2_14_0``).
    """
    if operator is None or form is VersionForm.NONE:
        return "this tree's torchgen cannot version it: leave the schema as it was and add a new operator or overload"
    added = new_parameters(changed)
    if not added:
        return "no argument was added, so no v2 can express it: leave the schema as it was and add a new overload"
    number = max((version.number for version in operator.versions), default=1) + 1
    entry = _entry(operator, number, added, form, since)
    return f"write {entry} in {FALLBACK_PATH}, then run {REGENERATE}"


def new_parameters(changed: ChangedDeclaration) -> tuple[str, ...]:
    """Schema arguments that the new declaration has and the old one has not.

    A list or a device takes two C parameters; the second one's name ends in ``_len_`` or ``_index_`` and is left out.
    """
    before = {_name(parameter) for parameter in changed.before.parameters}
    after = [_name(parameter) for parameter in changed.after.parameters]
    second = tuple(f"{name}{ending}" for name in after for ending in ("_len_", "_index_"))
    return tuple(n for n in after if n not in before and n not in second and not re.fullmatch(r"ret\d+", n))


def version_macro(tree: Tree) -> str:
    """The macro that guards what is new in this tree, from its ``version.txt``."""
    text = (tree.read(VERSION_PATH) or b"").decode(errors="replace")
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    return "TORCH_VERSION_{}_{}_{}".format(*match.groups()) if match else "TORCH_VERSION_X_Y_Z"


def _entry(operator: FallbackOperator, number: int, added: Sequence[str], form: VersionForm, since: str) -> str:
    names = ", ".join(f'"{name}"' for name in added)
    if form is VersionForm.LIST:
        return f'"{operator.name}": {{"v{number}": [{names}]}}'
    return f'"{operator.name}": {{"v{number}": {{"new_args": [{names}], "since": "{since}"}}}}'


def _name(parameter: str) -> str:
    return re.split(r"[\s*&]", parameter)[-1]
