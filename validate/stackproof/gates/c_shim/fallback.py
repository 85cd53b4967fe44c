"""``torchgen/aoti/fallback_ops.py`` of one tree: which operators get C shims, and how this tree writes their versions.

The form of a version entry changed between releases, and the older torchgen takes the newer form without a word and
emits a wrong first version. So the form is read from the tree's own generator, and the entries are read as literals.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from patchstack.tree.git import Tree
from stackproof.gates.common.errors import MalformedTreeError
from stackproof.gates.common.functions import read_limited
from stackproof.gates.common.python_source import parse_python

FALLBACK_PATH = "torchgen/aoti/fallback_ops.py"
GENERATOR_PATH = "torchgen/gen_aoti_c_shim.py"
_LISTS = ("inductor_fallback_ops", "aten_shimified_ops")


class VersionForm(enum.Enum):
    """How a tree's torchgen takes the arguments that a version of a shim adds."""

    NONE = "no versions"
    LIST = '{"v2": ["argument"]}'
    MAPPING = '{"v2": {"new_args": ["argument"], "since": "TORCH_VERSION_X_Y_Z"}}'


@dataclass(frozen=True)
class Version:
    """One version entry of an operator.

    Attributes:
        number: 2 for ``v2``.
        arguments: the argument names it adds, as far as the entry has any form that is known.
        form: the form it is written in; ``NONE`` for anything unknown.
        line: 1-based line.
        raw_key: the key as written.
    """

    number: int
    arguments: tuple[str, ...]
    form: VersionForm
    line: int
    raw_key: str


@dataclass(frozen=True)
class FallbackOperator:
    """One operator of the list.

    Attributes:
        name: ``aten.grid_sampler_2d_backward.default``.
        line: 1-based line.
        versions: its version entries, by number.
        since: version macro that guards the first version, empty when there is none.
    """

    name: str
    line: int
    versions: tuple[Version, ...] = ()
    since: str = ""

    @property
    def schema_name(self) -> str:
        """``aten::grid_sampler_2d_backward``: the name under which ``native_functions.yaml`` has it."""
        namespace, _, rest = self.name.partition(".")
        base, _, overload = rest.rpartition(".")
        return f"{namespace}::{base}" + ("" if overload == "default" else f".{overload}")

    @property
    def shim_suffix(self) -> str:
        """What stands after ``aoti_torch_<device>_`` for the first version."""
        base, _, overload = self.schema_name.partition("::")[2].partition(".")
        return f"{base}_{overload}" if overload else base


@dataclass(frozen=True)
class FallbackOperators:
    """The lists of one tree.

    Attributes:
        by_list: list name to operators by name.
        form: the form that this tree's torchgen takes.
    """

    by_list: Mapping[str, Mapping[str, FallbackOperator]]
    form: VersionForm

    def of_device(self, device: str) -> Mapping[str, FallbackOperator]:
        """The operators that a device's header is made from."""
        return self.by_list.get("aten_shimified_ops" if device == "aten" else "inductor_fallback_ops", {})

    def by_suffix(self, device: str) -> dict[str, FallbackOperator]:
        """The same by :attr:`FallbackOperator.shim_suffix`."""
        return {operator.shim_suffix: operator for operator in self.of_device(device).values()}


def read_fallback_operators(tree: Tree) -> FallbackOperators | None:
    """The lists of a tree; ``None`` where it has none.

    Raises:
        MalformedTreeError: the file is not Python, a key is there twice, or an entry is not a literal.
    """
    content = read_limited(tree, FALLBACK_PATH)
    if content is None:
        return None
    try:
        module = parse_python(content)
    except SyntaxError as error:
        raise MalformedTreeError(f"not Python: {error.msg}", where=f"{FALLBACK_PATH}:{error.lineno or 0}") from None
    found = {name: _operators(value) for name, value in _assignments(module) if name in _LISTS}
    return FallbackOperators(found, _form(tree)) if found else None


def _form(tree: Tree) -> VersionForm:
    """The generator names the key ``new_args`` when it takes mappings, and ``v`` when it takes versions at all."""
    content = read_limited(tree, GENERATOR_PATH)
    try:
        module = parse_python(content or b"")
    except SyntaxError:
        return VersionForm.NONE
    texts = {node.value for node in ast.walk(module) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    if "new_args" in texts:
        return VersionForm.MAPPING
    return VersionForm.LIST if "v" in texts else VersionForm.NONE


def _assignments(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for statement in module.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
            yield statement.target.id, statement.value


def _operators(value: ast.expr) -> dict[str, FallbackOperator]:
    found: dict[str, FallbackOperator] = {}
    for key, entry in _items(value):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise _bad("the operator name is not a plain string", value if key is None else key)
        if key.value in found:
            raise _bad(f"{key.value} is listed twice, the first time on line {found[key.value].line}", key)
        versions, since = _versions(entry)
        found[key.value] = FallbackOperator(key.value, key.lineno, versions, since)
    return found


def _items(value: ast.expr) -> Iterator[tuple[ast.expr | None, ast.expr | None]]:
    if isinstance(value, ast.Dict):
        yield from zip(value.keys, value.values, strict=True)
    elif isinstance(value, (ast.Set, ast.List, ast.Tuple)):
        yield from ((element, None) for element in value.elts)
    else:
        raise _bad("the list of operators is not a literal", value)


def _versions(entry: ast.expr | None) -> tuple[tuple[Version, ...], str]:
    """Version entries and the ``since`` of the first version."""
    if entry is None:
        return (), ""
    if not isinstance(entry, ast.Dict):
        raise _bad("the versions of an operator are not a mapping", entry)
    versions: list[Version] = []
    since = ""
    for key, value in zip(entry.keys, entry.values, strict=True):
        text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
        if text == "since":
            since = str(value.value) if isinstance(value, ast.Constant) else ""
        else:
            number = int(text[1:]) if text[:1] == "v" and text[1:].isdigit() else 0
            versions.append(Version(number, *_arguments(value), value.lineno, text))
    return tuple(sorted(versions, key=lambda version: version.number)), since


def _arguments(value: ast.expr) -> tuple[tuple[str, ...], VersionForm]:
    if isinstance(value, ast.List):
        return _strings(value), VersionForm.LIST
    if isinstance(value, ast.Dict):
        for key, inner in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "new_args" and isinstance(inner, ast.List):
                return _strings(inner), VersionForm.MAPPING
    return (), VersionForm.NONE


def _strings(value: ast.List) -> tuple[str, ...]:
    return tuple(str(element.value) for element in value.elts if isinstance(element, ast.Constant))


def _bad(problem: str, node: ast.expr) -> MalformedTreeError:
    return MalformedTreeError(problem, where=f"{FALLBACK_PATH}:{node.lineno}")
