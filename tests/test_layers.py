"""What may import what: each package only what stands below it here, no gate another, no module in a circle."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# From the bottom. A name is a module or a package, with all that it holds.
APPLIER = (
    ("patchstack.errors",),
    ("patchstack.cache", "patchstack.python_processes"),
    ("patchstack.confine",),
    ("patchstack.tree",),
    ("patchstack.messages",),
    ("patchstack.manifest",),
    ("patchstack.edits",),
    ("patchstack.series",),
    ("patchstack.closure",),
    ("patchstack.planning",),
    ("patchstack.stack",),
    ("patchstack.pulls",),
    ("patchstack.applying", "patchstack.reference"),
    ("patchstack.capture", "patchstack.drift"),
    ("patchstack.refresh",),
    ("patchstack.resolve",),
    ("patchstack.cli",),
)
PROOF = (
    ("stackproof.model", "stackproof.packages"),
    ("stackproof.launches",),
    ("stackproof.report",),
    ("stackproof.base_commit",),
    ("stackproof.engines",),
    ("stackproof.ops",),
    ("stackproof.gates",),
    ("stackproof.runner",),
    ("stackproof.cli",),
)
ENGINES = (
    (
        "stackproof.engines.errors",
        "stackproof.engines.kernels",
        "stackproof.engines.object_files",
    ),
    ("stackproof.engines.mac_build",),
    ("stackproof.engines.pool",),
    ("stackproof.engines.metal",),
    ("stackproof.engines.apple", "stackproof.engines.gpu", "stackproof.engines.standin"),
)
COMMON = "stackproof.gates.common"
TABLE = ("stackproof.gates.table", "stackproof.gates.spec")


def _modules() -> dict[str, Path]:
    found = {}
    for folder in ("tooling", "validate"):
        for file in (ROOT / folder).rglob("*.py"):
            parts = file.relative_to(ROOT / folder).with_suffix("").parts
            if "standins" not in parts[:-1]:
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = _modules()


@functools.cache
def imports() -> dict[str, set[str]]:
    """By module, the modules that it imports anywhere in its text, inside functions too."""
    edges: dict[str, set[str]] = defaultdict(set)
    for module, file in MODULES.items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                edges[module] |= {alias.name for alias in node.names} & MODULES.keys()
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    edges[module] |= {inner if inner in MODULES else node.module} & MODULES.keys()
    return edges


def _inside(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _level(module: str, order: tuple[tuple[str, ...], ...]) -> tuple[int, str] | None:
    """Which layer a module is of, and which package of it."""
    for number, packages in enumerate(order):
        for package in packages:
            if _inside(module, package):
                return number, package
    return None


def _against(order: tuple[tuple[str, ...], ...], edges: dict[str, set[str]]) -> list[str]:
    found = []
    for module, imported in edges.items():
        own = _level(module, order)
        for one in imported:
            other = _level(one, order)
            if own and other and own[1] != other[1] and other[0] >= own[0]:
                found.append(f"{module} imports {one}")
    return sorted(found)


def test_every_module_has_a_layer() -> None:
    roots = {"patchstack", "stackproof"}
    assert [one for one in MODULES if one not in roots and _level(one, APPLIER + PROOF) is None] == []
    engines = [one for one in MODULES if _inside(one, "stackproof.engines") and one != "stackproof.engines"]
    assert [one for one in engines if _level(one, ENGINES) is None] == []


def test_no_package_imports_one_of_its_own_layer_or_above() -> None:
    assert _against(APPLIER, imports()) == []
    assert _against(PROOF, imports()) == []
    assert _against(ENGINES, imports()) == []


def test_the_applier_does_not_import_the_proof() -> None:
    wrong = [(one, other) for one in imports() for other in imports()[one] if (one + other).startswith("patchstack")]
    assert [pair for pair in wrong if pair[0].startswith("patchstack") and pair[1].startswith("stackproof")] == []


def test_no_gate_imports_another() -> None:
    def gate_of(module: str) -> str:
        parts = module.split(".")
        return parts[2] if module.startswith("stackproof.gates.") and module not in TABLE else ""

    wrong = [
        f"{module} imports {one}"
        for module, imported in imports().items()
        for one in imported
        if gate_of(module) and gate_of(one) not in ("", "common", gate_of(module))
    ]
    assert wrong == []


def test_no_module_is_part_of_a_circle() -> None:
    assert _circle(imports()) == []


def test_a_circle_and_a_wrong_layer_are_seen() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) != []
    assert _against(ENGINES, {"stackproof.engines.pool.tasks": {"stackproof.engines.metal.model"}}) != []


def _circle(edges: dict[str, set[str]]) -> list[str]:
    """Modules that are left when those that import nothing of the rest are taken away, again and again."""
    left = {module: set(imported) - {module} for module, imported in edges.items()}
    while free := [module for module, imported in left.items() if not imported & left.keys()]:
        for module in free:
            del left[module]
    needed = {one for imported in left.values() for one in imported}
    return sorted(module for module in left if module in needed)
