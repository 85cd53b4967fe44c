"""Finds the kernels of a preprocessed source and writes an entry point for each.

A kernel is an explicit instantiation with ``[[host_name]]``, or a plain ``kernel void`` function. Types come from the
instantiation, thread attributes from whichever declaration of the template has them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from stackproof.engines.errors import RewriteError
from stackproof.engines.metal.declarations import declarator
from stackproof.engines.metal.model import Parameter, ParameterKind
from stackproof.engines.metal.tokens import Edit, TokenStream

POSITIONS = (
    "thread_position_in_grid",
    "threadgroup_position_in_grid",
    "thread_position_in_threadgroup",
    "threads_per_threadgroup",
    "dispatch_threads_per_threadgroup",
    "threadgroups_per_grid",
    "threads_per_grid",
    "grid_origin",
)
"""Attributes that may have up to three dimensions."""
# Order of `enum attribute` in runtime/runtime.h; the aliases are Metal's own.
ATTRIBUTE_SLOTS = (
    *POSITIONS,
    "thread_index_in_threadgroup",
    "thread_index_in_simdgroup",
    "simdgroup_index_in_threadgroup",
    "simdgroups_per_threadgroup",
    "threads_per_simdgroup",
    "dispatch_simdgroups_per_threadgroup",
    "thread_index_in_quadgroup",
    "quadgroup_index_in_threadgroup",
    "quadgroups_per_threadgroup",
)
_ALIASES = {
    "thread_execution_width": "threads_per_simdgroup",
    "grid_size": "threads_per_grid",
    "thread_index_in_quad_group": "thread_index_in_quadgroup",
}
_INDEXED = re.compile(r"(buffer|threadgroup|texture|sampler)\((\d+)\)")
_MAX_THREADS = re.compile(r"max_total_threads_per_threadgroup\((\d+)\)")
# Types whose values only a GPU has: kernels that take one are checked and not run.
_OPAQUE = re.compile(
    r"\b(texture\w*|depth\w*|sampler|visible_function_table|intersection_function_table|instance_acceleration_structure"
    r"|primitive_acceleration_structure|acceleration_structure|imageblock|tensor|command_buffer|render_command)\b"
)
_OPAQUE_ATTRIBUTES = ("stage_in", "texture", "sampler", "imageblock_data", "user")


@dataclass(frozen=True)
class Declared:
    """One parameter as one declaration writes it."""

    text: str
    name: str
    attributes: tuple[str, ...]
    by_value: bool
    threadgroup: bool
    read_only: bool
    reference: bool
    line: int


@dataclass(frozen=True)
class KernelDeclaration:
    """One occurrence of ``kernel``: a template, a definition or an explicit instantiation.

    Attributes:
        name: as written, with scopes and template arguments.
        host_name: of its ``[[host_name]]``, empty where there is none.
        template: a primary template (with ``template <...>``).
        instantiation: an explicit instantiation.
        defined: it has a body.
        returns_void: as every kernel must; true where an alias or ``decltype`` stands for its type.
        max_threads: of its ``[[max_total_threads_per_threadgroup]]``, 0 without one.
        parameters: in order; ``None`` where the type is only given as ``decltype``.
        end: offset after the declaration, where an entry point can go.
        file, line: place of its name.
    """

    name: str
    host_name: str
    template: bool
    instantiation: bool
    defined: bool
    parameters: tuple[Declared, ...] | None
    end: int
    file: str
    line: int
    returns_void: bool = True
    max_threads: int = 0

    @property
    def simple_name(self) -> str:
        """The name without scopes and template arguments."""
        return self.name.split("<")[0].replace(" ", "").split("::")[-1]


@dataclass(frozen=True)
class Kernel:
    """A kernel that can be launched: its declaration and what each parameter is bound to."""

    declaration: KernelDeclaration
    host_name: str
    number: int
    parameters: tuple[Parameter, ...]

    @property
    def runs(self) -> bool:
        """Whether a host can hand it all of its parameters."""
        return all(one.kind is not ParameterKind.OPAQUE for one in self.parameters)

    @property
    def max_threads(self) -> int:
        """Threads that a threadgroup may have by the kernel's own word, 0 where it says nothing."""
        return self.declaration.max_threads


@dataclass(frozen=True)
class Found:
    """The result of :func:`find_kernels`.

    Attributes:
        kernels: launchable ones, in source order; the number of each is its position.
        declarations: every ``kernel`` of the source.
        edits: remove what Clang does not parse, add the entry points.
    """

    kernels: tuple[Kernel, ...]
    declarations: tuple[KernelDeclaration, ...]
    edits: tuple[Edit, ...] = field(repr=False)


def find_kernels(tokens: TokenStream, *, entry_points: bool = True) -> Found:
    """Find every kernel and derive its bindings; without ``entry_points`` the edits do not add any.

    Raises:
        RewriteError: a parameter of a launchable kernel has no binding.
    """
    declarations, edits = [], []
    for index, token in enumerate(tokens):
        if token.text == "kernel" and token.kind == "word":
            declaration, more = _declaration(tokens, index)
            if declaration:
                declarations.append(declaration)
                edits += more
    kernels: list[Kernel] = []
    for declaration in declarations:
        launchable = declaration.instantiation or (declaration.defined and not declaration.template)
        if launchable:
            number = len(kernels)
            parameters = _bind(declaration, declarations)
            name = declaration.host_name or declaration.simple_name
            kernel = Kernel(declaration, name, number, parameters)
            if entry_points and not kernel.runs:
                continue
            kernels.append(kernel)
            if entry_points:
                edits.append(Edit(declaration.end, declaration.end, _entry_point(declaration, number, parameters)))
    return Found(tuple(kernels), tuple(declarations), tuple(edits))


def _declaration(tokens: TokenStream, index: int) -> tuple[KernelDeclaration | None, list[Edit]]:
    begin = index
    while begin > 0 and not tokens.is_text(begin - 1, ";", "}", "{"):
        begin = tokens.partner[begin - 1] if tokens.is_text(begin - 1, ")", "]") else begin - 1
    prefix = tokens.source(begin, index)
    instantiation = bool(re.match(r"(extern )?template (?!<)", prefix + " "))
    is_template = prefix.startswith("template <")
    edits = []
    host_name, max_threads, within = "", 0, 0
    at = begin
    while at < index:
        if tokens.is_text(at, "[") and tokens.is_text(at + 1, "["):
            end = tokens.partner[at]
            host_name = host_name or _host_name(tokens, at + 2, end - 1)
            limit = _MAX_THREADS.search(tokens.source(at + 2, end - 1).replace(" ", ""))
            max_threads = int(limit[1]) if limit else max_threads
            edits.append(Edit(tokens[at].start, tokens[end].end, ""))
            within = end if end > index else within
            at = end
        at += 1
    # `[[kernel]]` as an attribute: the declaration goes on after it.
    after = max(index, within) + 1
    name_begin, name_end, parameters, returns_void = _name(tokens, after)
    if name_end >= len(tokens) or not tokens.is_text(name_end, "(", ";"):
        return None, []
    close = tokens.partner[name_end] if tokens.is_text(name_end, "(") else name_end - 1
    tail = close + 1
    while tail < len(tokens) and not tokens.is_text(tail, ";", "{"):
        tail += 1
    defined = tokens.is_text(tail, "{")
    last = tokens[tokens.partner[tail]] if defined else tokens[tail]
    named = tokens[name_begin]
    declared = tuple(_declared(tokens, *span) for span in tokens.split(name_end + 1, close)) if parameters else None
    declaration = KernelDeclaration(
        tokens.source(name_begin, name_end),
        host_name,
        is_template,
        instantiation,
        defined,
        declared,
        last.end,
        named.file,
        named.line,
        returns_void or instantiation,
        max_threads,
    )
    return declaration, edits


def _name(tokens: TokenStream, at: int) -> tuple[int, int, bool, bool]:
    """Where the kernel's name begins and ends, whether a parameter list follows, and whether it returns nothing."""
    result = declarator(tokens, at)
    # `void kernel name(...)`: the type stands in front, and what follows is the name.
    named = result is None or tokens.is_text(result.end, "(", ";")
    begin = end = at if named or result is None else result.end
    while end < len(tokens) and not tokens.is_text(end, "(", ";", "{"):
        end = max(tokens.skip_angles(end), end + 1)
    returns_void = named or result is None or (result.type_name in ("void", "") and not result.indirect)
    return begin, end, tokens.is_text(end, "("), returns_void


def _host_name(tokens: TokenStream, begin: int, end: int) -> str:
    if not tokens.is_text(begin, "host_name"):
        return ""
    # Not ast.literal_eval: Python's parser is not safe in several threads.
    parts = [tokens[i].text[1:-1] for i in range(begin, end) if tokens[i].kind == "string"]
    return codecs.decode("".join(parts), "unicode_escape")


def _declared(tokens: TokenStream, begin: int, end: int) -> Declared:
    attributes: list[str] = []
    kept: list[str] = []
    at = begin
    while at < end:
        if tokens.is_text(at, "[") and tokens.is_text(at + 1, "["):
            close = tokens.partner[at]
            attributes += [tokens.source(low, high).replace(" ", "") for low, high in tokens.split(at + 2, close - 1)]
            at = close
        elif tokens.is_text(at, "coherent"):
            at = tokens.partner[at + 1] if tokens.is_text(at + 1, "(") else at
        else:
            kept.append(tokens[at].text)
        at += 1
    outside = _outside_angles(kept)
    pointers = [i for i, text in enumerate(outside) if text in ("*", "&")]
    words = [text for text in outside if re.fullmatch(r"[A-Za-z_]\w*", text)]
    name = words[-1] if outside and outside[-1] == words[-1] and len(words) > 1 else ""
    before = outside[: pointers[0]] if pointers else outside
    return Declared(
        text=" ".join(kept),
        name=name,
        attributes=tuple(attributes),
        by_value=not pointers and "[" not in kept,
        threadgroup="threadgroup" in outside,
        read_only="constant" in before or "const" in before,
        reference=bool(pointers) and outside[pointers[-1]] == "&",
        line=tokens[begin].line,
    )


def _outside_angles(texts: Sequence[str]) -> list[str]:
    kept, depth = [], 0
    for text in texts:
        if text == ">":
            depth -= 1
        elif depth == 0:
            kept.append(text)
        if text == "<":
            depth += 1
    return kept


def _bind(declaration: KernelDeclaration, declarations: Sequence[KernelDeclaration]) -> tuple[Parameter, ...]:
    parameters = declaration.parameters
    alike = [
        other.parameters
        for other in declarations
        if other.simple_name == declaration.simple_name
        and other.template
        and other.parameters is not None
        and (parameters is None or len(other.parameters) == len(parameters))
    ]
    best = max(alike, key=lambda ps: sum(len(p.attributes) for p in ps), default=parameters)
    own = best if parameters is None else parameters
    if own is None or best is None:
        raise RewriteError(
            f"no declaration of kernel {declaration.name} gives its parameters",
            where=f"{declaration.file}:{declaration.line}",
        )
    bound: list[Parameter] = []
    for position, (mine, theirs) in enumerate(zip(own, best, strict=True)):
        attributes = mine.attributes or theirs.attributes
        name = mine.name or theirs.name
        bound.append(_bind_one(declaration, position, mine, name, attributes, bound))
    return tuple(bound)


def _bind_one(
    declaration: KernelDeclaration,
    position: int,
    mine: Declared,
    name: str,
    attributes: Sequence[str],
    before: Sequence[Parameter],
) -> Parameter:
    for attribute in attributes:
        plain = _ALIASES.get(attribute, attribute)
        if plain in ATTRIBUTE_SLOTS:
            return Parameter(position, name, mine.text, ParameterKind.ATTRIBUTE, attribute=plain)
    if mine.by_value and (
        _OPAQUE.search(mine.text) or any(one.partition("(")[0] in _OPAQUE_ATTRIBUTES for one in attributes)
    ):
        return Parameter(position, name, mine.text, ParameterKind.OPAQUE)
    if mine.by_value:
        raise RewriteError(
            f"parameter {name or position} of kernel {declaration.name} is bound to nothing",
            where=f"{declaration.file}:{declaration.line}",
            expected="a thread position attribute or a buffer",
            found=mine.text,
        )
    kind = (
        ParameterKind.THREADGROUP
        if mine.threadgroup
        else ParameterKind.CONSTANT
        if "constant" in mine.text.split()
        else ParameterKind.DEVICE
    )
    taken = {p.index for p in before if (p.kind is ParameterKind.THREADGROUP) == mine.threadgroup}
    index = next(i for i in range(len(taken) + 1) if i not in taken)
    for attribute in attributes:
        if match := _INDEXED.fullmatch(attribute):
            index = int(match[2])
    return Parameter(position, name, mine.text, kind, index, reference=mine.reference, read_only=mine.read_only)


def _entry_point(declaration: KernelDeclaration, number: int, parameters: Sequence[Parameter]) -> str:
    """Text after the declaration: the function's type, the entry point, and a description of the buffers."""
    kind = f"__metal_kernel_{number}"
    if declaration.parameters is None:
        typedef = f"typedef decltype({declaration.name}) {kind};"
    else:
        listed = ", ".join(p.text for p in declaration.parameters)
        typedef = f"typedef void {kind}({listed});"
    arguments, described, slot = [], [], 0
    for parameter in parameters:
        type_ = f"__metal_host::nth_t<{parameter.position}, {kind}>"
        if parameter.kind is ParameterKind.ATTRIBUTE:
            arguments.append(f"__METAL_HOST_ATTRIBUTE({ATTRIBUTE_SLOTS.index(parameter.attribute)}, {type_})")
        else:
            arguments.append(f"__METAL_HOST_ARGUMENT({slot}, {type_})")
            described.append(f"__metal_host::describe<{type_}>(out + {6 * slot});")
            slot += 1
    called = declaration.name if declaration.instantiation else declaration.simple_name
    return (
        f" {typedef} __METAL_HOST_ENTRY({number})"
        f" {{ __METAL_HOST_ENTER(); {called}({', '.join(arguments)}); }}"
        f" __METAL_HOST_DESCRIBE({number}) {{ {' '.join(described)} }} "
    )
