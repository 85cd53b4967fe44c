"""Static rules: mistakes that type-check, and that reviewers or users of the MPS backend have reported.

Each rule reads the tokens of one source after the preprocessor, so that what macros instantiate is seen too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from stackproof.engines.metal.divergence import divergent_calls
from stackproof.engines.metal.kernels import Kernel, KernelDeclaration
from stackproof.engines.metal.narrow import narrow_products
from stackproof.engines.metal.signatures import called_kernels, declared_problems, type_problems
from stackproof.engines.metal.sites import said_to_be_meant
from stackproof.engines.metal.spaces import misplaced_storage, missing_spaces
from stackproof.engines.metal.tokens import Token
from stackproof.engines.metal.typecheck import CheckedSource

CONSTANT_DATA = "constant-data"
MISSING_HOST_NAME = "missing-host-name"
DUPLICATE_HOST_NAME = "duplicate-host-name"
MISSING_DTYPE = "missing-dtype"
NARROW_OFFSET = "narrow-offset"
MISSING_ADDRESS_SPACE = "missing-address-space"
MISPLACED_STORAGE = "misplaced-storage"
KERNEL_SIGNATURE = "kernel-signature"
NOT_IN_METAL = "not-in-metal"
DIVERGENT_SIMDGROUP = "divergent-simdgroup"
# Of these rules, what breaks them does not compile on a Mac; the others are a reviewer's.
REFUSED_BY_METAL = frozenset({MISSING_ADDRESS_SPACE, MISPLACED_STORAGE, KERNEL_SIGNATURE, NOT_IN_METAL})

_FLOATS = ("float", "half", "bfloat")
_UNKNOWN = {
    "double": "Metal has no double",
    "virtual": "Metal has no virtual functions",
    "new": "Metal has no heap",
    "delete": "Metal has no heap",
    "throw": "Metal has no exceptions",
    "try": "Metal has no exceptions",
    "dynamic_cast": "Metal has no type information at run time",
    "typeid": "Metal has no type information at run time",
    "thread_local": "Metal has no thread-local storage",
    "goto": "Metal has no goto",
}
_SINCE = {"coherent": 320}


@dataclass(frozen=True)
class RuleFinding:
    """One place that a rule objects to."""

    rule: str
    message: str
    file: str
    line: int


def apply_rules(checked: CheckedSource) -> list[RuleFinding]:
    """All rules over one source, in the order of file and line, each place once per rule."""
    found: dict[tuple[str, str, int, str], RuleFinding] = {}
    for rule in _RULES:
        for one in rule(checked):
            found.setdefault((one.rule, one.file, one.line, one.message), one)
    return sorted(found.values(), key=lambda one: (one.file, one.line, one.rule))


def _at(rule: str, token: Token, message: str) -> RuleFinding:
    return RuleFinding(rule, message, token.file, token.line)


def constant_data(checked: CheckedSource) -> Iterator[RuleFinding]:
    """Tensor data in ``constant``: such buffers need 4-byte-aligned offsets, which tensors do not promise."""
    for kernel in checked.declarations:
        for parameter in kernel.parameters or ():
            words = parameter.text.split()
            if kernel.instantiation or "constant" not in words or "*" not in words:
                continue
            pointee = [word for word in words[: words.index("*")] if word not in ("constant", "const", "volatile")]
            if pointee in (["void"], *([name] for name in _FLOATS)) or (
                kernel.template and _is_type_parameter(pointee)
            ):
                message = (
                    f"parameter {parameter.name or parameter.text} of kernel {kernel.simple_name} holds tensor data in"
                    " the constant address space, which needs 4-byte-aligned offsets; use device const"
                )
                yield RuleFinding(CONSTANT_DATA, message, kernel.file, parameter.line)


def _is_type_parameter(pointee: list[str]) -> bool:
    return (
        len(pointee) == 1
        and bool(re.fullmatch(r"[A-Z]\w{0,2}|\w*scalar_t|\w+_t_?|[A-Z]\w*T", pointee[0]))
        and not (re.fullmatch(r"u?int(8|16|32|64)?_t|size_t|ptrdiff_t", pointee[0]))
    )


def host_names(checked: CheckedSource) -> Iterator[RuleFinding]:
    """Instantiations that no host can find, and names that two of them share."""
    first: dict[str, KernelDeclaration] = {}
    for kernel in checked.kernels:
        declaration = kernel.declaration
        if declaration.instantiation and not declaration.host_name:
            message = f"the instantiation {declaration.name} has no host_name, so no host function can load it"
            yield RuleFinding(MISSING_HOST_NAME, message, declaration.file, declaration.line)
        elif kernel.host_name in first:
            other = first[kernel.host_name]
            message = f'the host name "{kernel.host_name}" is taken, by {other.name} at {other.file}:{other.line}'
            yield RuleFinding(DUPLICATE_HOST_NAME, message, declaration.file, declaration.line)
        else:
            first[kernel.host_name] = declaration


def dtypes(checked: CheckedSource) -> Iterator[RuleFinding]:
    """A floating-point dtype that a template is instantiated for, but not in every combination; or no bfloat at all.

    The source may say that a combination is left out on purpose, at the last one of it.
    """
    families: dict[tuple[str, int], dict[str, dict[str, Kernel]]] = defaultdict(lambda: defaultdict(dict))
    for kernel in checked.kernels:
        arguments = _template_arguments(kernel.declaration.name)
        for position, argument in enumerate(arguments):
            if argument in _FLOATS:
                # Arguments made of the dtype (`float3` beside `float`) follow it.
                rest = ", ".join(re.sub(rf"\b{argument}(?=\d?\b)", "*", one) for one in arguments)
                families[kernel.declaration.simple_name, position][rest][argument] = kernel
                break
    for (name, _position), combinations in families.items():
        seen = {dtype for kernels in combinations.values() for dtype in kernels}
        expected = seen | ({"bfloat"} if {"float", "half"} <= seen and checked.source.version_macro >= 310 else set())
        # Other arguments that change with the dtype make every combination partial: then all of them count as one.
        partial = all(expected - set(kernels) for kernels in combinations.values()) or any(
            "*" in rest and any(dtype in re.findall(r"\w+", rest) for dtype in _FLOATS) for rest in combinations
        )
        for rest, kernels in combinations.items():
            missing = expected - (seen if partial else set(kernels))
            if missing:
                last = list(kernels.values())[-1].declaration
                message = f"{name}<{rest}> is not instantiated for {' and '.join(d for d in _FLOATS if d in missing)}"
                if not said_to_be_meant(MISSING_DTYPE, {(last.file, last.line)}, checked.source.root):
                    yield RuleFinding(MISSING_DTYPE, message, last.file, last.line)


def _template_arguments(name: str) -> list[str]:
    _, opened, inside = name.partition("<")
    if not opened:
        return []
    arguments, depth = [""], 0
    for word in inside.rpartition(">")[0].split():
        depth += {"<": 1, ">": -1}.get(word, 0)
        if word == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] = f"{arguments[-1]} {word}".strip()
    return arguments


def narrow_offsets(checked: CheckedSource) -> Iterator[RuleFinding]:
    """32-bit products that become offsets, unless the source says at the product or declaration that it is meant."""
    found = list(narrow_products(checked.tokens))
    places = {(one.file, one.line) for product in found for one in (product.token, product.declared) if one}
    meant = said_to_be_meant(NARROW_OFFSET, places, checked.source.root)
    for product in found:
        if not any((one.file, one.line) in meant for one in (product.token, product.declared) if one):
            message = (
                f"a 32-bit product with {product.factor}, which the host hands in, feeds an index and wraps around past"
                " 2^31 elements; widen a factor, or choose the width by a template parameter"
            )
            yield _at(NARROW_OFFSET, product.token, message)


def address_spaces(checked: CheckedSource) -> Iterator[RuleFinding]:
    """Pointers and references without an address space, which Metal does not accept."""
    for token, message in missing_spaces(checked.tokens):
        yield _at(MISSING_ADDRESS_SPACE, token, message)


def storage(checked: CheckedSource) -> Iterator[RuleFinding]:
    """Variables where Metal has no memory for them."""
    for token, message in misplaced_storage(checked.tokens):
        yield _at(MISPLACED_STORAGE, token, message)


def signatures(checked: CheckedSource) -> Iterator[RuleFinding]:
    """Kernels that take, return or call what none may."""
    problems = (
        *declared_problems(checked.declarations),
        *type_problems(checked.kernels, checked.tokens),
        *called_kernels(checked.declarations, checked.tokens),
    )
    for file, line, message in problems:
        yield RuleFinding(KERNEL_SIGNATURE, message, file, line)


def unknown_to_metal(checked: CheckedSource) -> Iterator[RuleFinding]:
    """Words of C++ that Metal does not have and Clang accepts, and words of Metal that came later."""
    tokens, version = checked.tokens, checked.source.version_macro
    for index, token in enumerate(tokens):
        if token.kind == "word" and token.text in _UNKNOWN:
            yield _at(NOT_IN_METAL, token, f"'{token.text}': {_UNKNOWN[token.text]}")
        elif version < _SINCE.get(token.text, 0) and tokens[index + 1].kind == "word" and token.kind == "word":
            came = f"{_SINCE[token.text] // 100}.{_SINCE[token.text] // 10 % 10}"
            yield _at(
                NOT_IN_METAL, token, f"'{token.text}' came with Metal {came}, this is {checked.source.metal_version}"
            )


def divergent_simdgroup(checked: CheckedSource) -> Iterator[RuleFinding]:
    """Simdgroup functions that only some lanes call; the source may say that this is meant."""
    tokens = checked.tokens
    found = [(tokens[at], condition) for at, condition in divergent_calls(tokens)]
    meant = said_to_be_meant(DIVERGENT_SIMDGROUP, {(token.file, token.line) for token, _ in found}, checked.source.root)
    for token, condition in found:
        if (token.file, token.line) not in meant:
            message = f"{token.text} is called only where `{condition}`, which not all lanes of a simdgroup share"
            yield _at(DIVERGENT_SIMDGROUP, token, message)


_RULES: tuple[Callable[[CheckedSource], Iterable[RuleFinding]], ...] = (
    constant_data,
    host_names,
    dtypes,
    narrow_offsets,
    address_spaces,
    storage,
    signatures,
    unknown_to_metal,
    divergent_simdgroup,
)
