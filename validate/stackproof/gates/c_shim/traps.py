"""Version entries that torchgen takes without complaint and turns into a wrong first version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stackproof.gates.c_shim.fallback import FallbackOperator, FallbackOperators, Version, VersionForm
from stackproof.gates.common.functions import NativeFunction


def find_traps(
    operators: FallbackOperators, functions: Mapping[str, NativeFunction]
) -> Iterator[tuple[FallbackOperator, int, str]]:
    """Operator, line and problem of every version entry that does not do what it seems to.

    Args:
        operators: of the tree.
        functions: the tree's ``native_functions.yaml``, by operator name.
    """
    for listed in operators.by_list.values():
        for operator in listed.values():
            for version, problem in _problems(operator, operators.form, functions.get(operator.schema_name)):
                yield operator, version.line, problem


def _problems(
    operator: FallbackOperator, form: VersionForm, function: NativeFunction | None
) -> Iterator[tuple[Version, str]]:
    taken: set[str] = set()
    for position, version in enumerate(operator.versions, 2):
        if version.number != position:
            yield version, f"{version.raw_key!r} stands where v{position} is expected"
        if version.form is not form:
            yield version, _wrong_form(version, form)
            continue
        if not version.arguments:
            yield version, f"{version.raw_key} adds no argument, so it repeats the version before it"
        for name in version.arguments:
            if name in taken:
                yield version, f"{version.raw_key} adds {name}, which an earlier version adds already"
            taken.add(name)
            problem = _argument_problem(name, form, function)
            if problem:
                yield version, f"{version.raw_key} of {operator.name}: {problem}"


def _wrong_form(version: Version, form: VersionForm) -> str:
    if form is VersionForm.NONE:
        return f"{version.raw_key}: this tree's torchgen knows no versions of shims"
    silent = "it takes this for argument names and leaves every argument in v1"
    effect = silent if form is VersionForm.LIST else "it stops"
    return f"{version.raw_key} is not in the form that this tree's torchgen takes ({form.value}): {effect}"


def _argument_problem(name: str, form: VersionForm, function: NativeFunction | None) -> str:
    if function is None:
        return "the operator is not in native_functions.yaml"
    argument = function.schema.argument(name)
    if argument is None:
        known = ", ".join(a.name for a in function.schema.arguments)
        return f"there is no argument {name!r}, so v1 keeps every argument in silence; the schema has {known}"
    if form is VersionForm.LIST and not argument.type.endswith("?"):
        return f"{name} is no optional argument ({argument.type}), and v1 would pass std::nullopt for it"
    if form is VersionForm.MAPPING and argument.default is None and not argument.type.endswith("?"):
        return f"{name} has no default that v1 could pass for it"
    return ""
