"""Uses of new operators in one Python file: found in its syntax tree, so that strings and comments never count."""

from __future__ import annotations

import ast
import enum
from collections.abc import Mapping
from dataclasses import dataclass

from stackproof.gates.fc_window.features import Feature
from stackproof.gates.fc_window.imports import Names, dotted
from stackproof.gates.fc_window.probe import CallShape, Probe

_NAMESPACES = {
    "torch.ops.aten": "",
    "torch._C._VariableFunctions": "",
    "torch._C._nn": "",
    "torch._C._linalg": "",
    "torch._C._fft": "",
    "torch._C._special": "",
    "torch._C._sparse": "",
    "torch._C._nested": "",
    "torch._C.TensorBase": "",
    "torch.Tensor": "",
    "torch.linalg": "linalg_",
    "torch.fft": "fft_",
    "torch.special": "special_",
    "torch.sparse": "sparse_",
    "torch": "",
}
_REGISTERING = ("register", "make_fallback", "impl", "py_impl", "fake_impl", "fallthrough")
# Whole files that teach tracing and decomposition about operators; nothing in them is written into a saved program.
_TABLES = ("torch/_decomp/", "torch/_refs/", "torch/_prims/", "torch/_meta_registrations.py")


class UseKind(enum.Enum):
    """How something new is used."""

    CALL = "call"
    METHOD = "method call"
    REFERENCE = "reference"
    REGISTRATION = "registration"


@dataclass(frozen=True)
class Use:
    """One use of something new.

    Attributes:
        path: file in the tree.
        line: 1-based line of the operator's name, or of the keyword that is new.
        last_line: last line of that expression.
        feature: what is new.
        kind: see :class:`UseKind`.
        written: the operator as the file writes it.
        scope: names of the classes and functions around it, outermost first.
        binds: name that a module-level assignment gives to the use, empty otherwise.
    """

    path: str
    line: int
    last_line: int
    feature: Feature
    kind: UseKind
    written: str
    scope: tuple[str, ...] = ()
    binds: str = ""


def find_uses(module: ast.Module, path: str, probes: Mapping[str, Probe]) -> tuple[Use, ...]:
    """Every use in one file, in order of lines.

    Args:
        module: the parsed file.
        path: its path in the tree.
        probes: by base name of the operator.
    """
    visitor = _Visitor(path, Names(module, path), probes)
    visitor.visit(module)
    return tuple(sorted(visitor.found, key=lambda use: (use.line, use.feature.key)))


def operator_of(name: str) -> tuple[str, str | None] | None:
    """Base name and named overload (``None`` when PyTorch chooses) of a full dotted name below ``torch``."""
    if name.startswith("torch.ops.aten."):
        base, *rest = name.removeprefix("torch.ops.aten.").split(".")
        return base, ("" if rest[0] == "default" else rest[0]) if rest else None
    namespace, _, base = name.rpartition(".")
    prefix = _NAMESPACES.get(namespace)
    return None if prefix is None else (prefix + base, None)


class _Visitor(ast.NodeVisitor):
    def __init__(self, path: str, names: Names, probes: Mapping[str, Probe]) -> None:
        self.found: list[Use] = []
        self._path = path
        self._names = names
        self._probes = probes
        self._scope: tuple[str, ...] = ()
        self._registering = path.startswith(_TABLES)
        self._binds = ""

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        scope, registering, binds = self._scope, self._registering, self._binds
        registers = any(_is_registering(decorator) for decorator in node.decorator_list)
        self._scope, self._binds = (*scope, node.name), ""
        self._registering = registering or registers
        self.generic_visit(node)
        self._scope, self._registering, self._binds = scope, registering, binds

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815
    visit_ClassDef = visit_FunctionDef  # noqa: N815

    def visit_Assign(self, node: ast.Assign) -> None:
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if not self._scope and names:
            self._binds = names[0]
        self.generic_visit(node)
        self._binds = ""

    def visit_Call(self, node: ast.Call) -> None:
        registering = self._registering
        if isinstance(node.func, (ast.Attribute, ast.Name)) and self._call(node, node.func):
            parts: list[ast.AST] = [*node.args, *node.keywords]
            # The callee is accounted for; only what stands left of the operator can hold another use.
            if isinstance(node.func, ast.Attribute) and not dotted(node.func):
                parts.append(node.func.value)
        else:
            parts = [node.func, *node.args, *node.keywords]
        self._registering = registering or _is_registering(node)
        for part in parts:
            self.visit(part)
        self._registering = registering

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not self._reference(node):
            self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._reference(node)

    def _call(self, node: ast.Call, callee: ast.Attribute | ast.Name) -> bool:
        """Record what a call uses; whether its callee is a watched operator."""
        resolved = self._operator(callee)
        if resolved is not None:
            kind, overload = UseKind.CALL, resolved[1]
            probe = self._probes[resolved[0]]
        elif isinstance(callee, ast.Attribute) and self._is_method(callee):
            kind, overload = UseKind.METHOD, None
            probe = self._probes[callee.attr]
        else:
            return False
        shape = CallShape.of(node, is_method=kind is UseKind.METHOD)
        for feature, where in probe.used_by(shape, overload):
            self._record(callee, feature, kind, where or self._span(node, callee, feature, probe))
        return True

    def _span(self, node: ast.Call, callee: ast.expr, feature: Feature, probe: Probe) -> tuple[int, int]:
        """The operator's name for a new operator; the whole call where the number of arguments tells."""
        end = callee.end_lineno or callee.lineno
        if probe.is_new or probe.new_overload(feature.overload):
            return end, end
        return end, node.end_lineno or end

    def _reference(self, node: ast.Attribute | ast.Name) -> bool:
        resolved = self._operator(node)
        if resolved is None:
            return False
        base, overload = resolved
        probe = self._probes[base]
        feature = probe.is_new or (None if overload is None else probe.new_overload(overload))
        if feature:
            end = node.end_lineno or node.lineno
            self._record(node, feature, UseKind.REFERENCE, (end, end))
        return True

    def _operator(self, node: ast.expr) -> tuple[str, str | None] | None:
        name = dotted(node)
        full = self._names.resolve(name) if name else None
        operator = operator_of(full) if full else None
        return operator if operator and operator[0] in self._probes else None

    def _is_method(self, callee: ast.Attribute) -> bool:
        """Whether the callee may be a tensor's method: the receiver is no module that is known by name."""
        probe = self._probes.get(callee.attr)
        if probe is None or not probe.has_method:
            return False
        receiver = dotted(callee.value)
        return not receiver or self._names.resolve(receiver) is None

    def _record(self, node: ast.expr, feature: Feature, kind: UseKind, lines: tuple[int, int]) -> None:
        kind = UseKind.REGISTRATION if self._registering else kind
        written = ast.unparse(node)
        self.found.append(Use(self._path, *lines, feature, kind, written, self._scope, self._binds))


def _is_registering(node: ast.expr) -> bool:
    callee = node.func if isinstance(node, ast.Call) else node
    last = callee.attr if isinstance(callee, ast.Attribute) else callee.id if isinstance(callee, ast.Name) else ""
    return last.lstrip("_").startswith(_REGISTERING)
