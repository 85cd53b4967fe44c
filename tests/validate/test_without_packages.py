"""An installation that lacks packages: what needs them is not run and says what to type; the rest works."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bare_environments import ROOT, Bare, bare_environment, build_wheel
from references import clone_of
from stackproof.gates.spec import Spec
from stackproof.gates.table import GATES

EVERYTHING = ("torch", "numpy", "ziglang", "expecttest", "clang-format", "ruff", "lief", "llvmlite")
_ALWAYS_THERE = {"click", "rich", "yaml", "ruamel", "jinja2", "tree_sitter", "tree_sitter_cpp", "tree_sitter_python"}
# Without torch nothing asks for these, and torchgen comes with it.
_WITH_TORCH = {"torchgen"}

Make = Callable[..., Bare]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Makes an environment with these packages."""
    wheel = build_wheel(tmp_path_factory.mktemp("wheel"))
    return lambda *packages: bare_environment(tmp_path_factory.mktemp("bare") / "venv", wheel, *packages)


@pytest.fixture(scope="module")
def bare(make: Make) -> Bare:
    return make()


@pytest.fixture(scope="module")
def checkout(bare: Bare, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 2.11 reference tree with the series on it, which the bare installation applied."""
    folder = tmp_path_factory.mktemp("checkout")
    path = clone_of("2.11", folder / "tree")
    done = bare.run("apply-stack", "--onto", "main", cwd=path, cache=folder / "cache")
    assert (done.returncode, done.stderr) == (0, "")
    return path


def gates_of(bare: Bare, checkout: Path, *arguments: str) -> dict[str, Any]:
    """Each gate's part of the report."""
    done = bare.run("validate-stack", *arguments, "--json", "-", cwd=checkout, cache=checkout.parent / "cache")
    assert "Traceback" not in done.stdout + done.stderr
    return {gate["name"]: gate for gate in json.loads(done.stdout)["gates"]}


@pytest.mark.parametrize("program", ["apply-stack", "validate-stack"])
def test_help_needs_nothing_but_the_installation(bare: Bare, program: str, tmp_path: Path) -> None:
    done = bare.run(program, "--help", cwd=tmp_path, cache=tmp_path / "cache")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {program}")


def test_the_list_has_every_gate(bare: Bare, tmp_path: Path) -> None:
    done = bare.run("validate-stack", "--list", cwd=tmp_path, cache=tmp_path / "cache")
    assert [line.split()[0] for line in done.stdout.splitlines()] == [spec.name for spec in GATES]


def test_without_torch_what_can_run_runs_and_the_rest_says_what_to_type(bare: Bare, checkout: Path) -> None:
    gates = gates_of(bare, checkout)
    verdicts = {name: gate["verdict"] for name, gate in gates.items() if name not in ("build", "lint")}
    assert verdicts == {
        "metal-check": "not run",
        "metal-run": "not run",
        "host-check": "not run",
        "host-run": "not run",
        "test-mps": "not run",
        "op-run": "not run",
        "fc-window": "passed",
        "c-shim": "passed",
        "apple-kernels": "not run",
        "bench": "not run",
    }
    assert gates["metal-check"]["reason"].endswith("(next: pip install 'ziglang>=0.13')")
    assert gates["metal-run"]["reason"] == (
        "needs the packages torch, numpy (next: pip install 'torch>=2.6' 'numpy>=1.26')"
    )
    for name in ("host-check", "host-run", "test-mps", "apple-kernels", "bench"):
        assert "(next: pip install 'torch>=2.6' 'numpy>=1.26'" in gates[name]["reason"]


def test_the_plan_says_what_to_type_too(bare: Bare, checkout: Path) -> None:
    done = bare.run("validate-stack", "--dry-run", cwd=checkout, cache=checkout.parent / "cache")
    assert done.returncode == 0
    assert "# needs the packages torch, numpy (next: pip install 'torch>=2.6' 'numpy>=1.26')" in done.stdout


def test_lint_looks_at_blanks_without_any_formatter(bare: Bare, tmp_path: Path) -> None:
    from compat_trees import TreeRepository

    lab = TreeRepository(tmp_path / "tree")
    base = lab.commit({"torch/a.py": "x = 1\n"})
    head = lab.commit({"torch/a.py": "x = 1\ny = 2 \n"}, parents=(base,))
    arguments = ("--base", base, "--head", head, "--only", "lint")
    lint = gates_of(bare, tmp_path / "tree", *arguments)["lint"]
    assert (lint["verdict"], lint["findings"][0]["rule"]) == ("failed", "SPACES/trailing spaces")


def test_metal_check_needs_no_torch(make: Make, checkout: Path) -> None:
    gate = gates_of(make("ziglang"), checkout, "--only", "metal-check")["metal-check"]
    assert gate["verdict"] == "passed"


@pytest.fixture(scope="module")
def whole(make: Make) -> Bare:
    return make(*EVERYTHING)


@pytest.fixture
def lacking(whole: Bare, request: pytest.FixtureRequest) -> Iterator[Bare]:
    """The whole installation without one package."""
    (site,) = whole.folder.glob("lib/python*/site-packages")
    link = site / request.param
    target = link.readlink()
    link.unlink()
    yield whole
    link.symlink_to(target)


@pytest.mark.parametrize(
    ("lacking", "advice", "gates"),
    [
        ("numpy", "pip install 'numpy>=1.26'", ("metal-run", "host-check", "host-run", "test-mps", "bench")),
        ("ziglang", "pip install 'ziglang>=0.13'", ("metal-check", "metal-run", "host-check", "host-run", "bench")),
        ("expecttest", "pip install 'expecttest>=0.2'", ("host-run", "test-mps")),
        ("lief", "pip install 'lief>=0.16'", ("host-check", "host-run", "op-run", "test-mps", "apple-kernels")),
        ("llvmlite", "pip install 'llvmlite>=0.50'", ("apple-kernels",)),
    ],
    indirect=["lacking"],
)
def test_one_package_that_lacks_is_named_with_the_command_that_brings_it(
    lacking: Bare, checkout: Path, advice: str, gates: tuple[str, ...]
) -> None:
    found = gates_of(lacking, checkout, "--only", ",".join(gates))
    assert {name: gate["verdict"] for name, gate in found.items()} == dict.fromkeys(gates, "not run")
    assert all(f"(next: {advice})" in gate["reason"] for gate in found.values())


@pytest.mark.parametrize(
    ("package", "advice"), [("clang-format", "pip install 'clang-format>=15'"), ("ruff", "pip install 'ruff>=0.6'")]
)
def test_a_missing_formatter_is_named_with_the_command_that_brings_it(
    bare: Bare, tmp_path: Path, package: str, advice: str
) -> None:
    from compat_trees import TreeRepository

    path, settings = {
        "clang-format": ("aten/src/ATen/native/mps/a.mm", {".clang-format": "BasedOnStyle: LLVM\n"}),
        "ruff": ("torch/a.py", {"ruff.toml": "line-length = 88\n"}),
    }[package]
    lab = TreeRepository(tmp_path / "tree")
    base = lab.commit(settings)
    head = lab.commit({path: "int x;\n" if path.endswith("mm") else "x = 1\n"}, parents=(base,))
    lint = gates_of(bare, tmp_path / "tree", "--base", base, "--head", head, "--only", "lint")["lint"]
    assert lint["verdict"] == "not run"
    assert f"{package} is not installed (next: {advice})" in lint["reason"]


def test_a_subcommand_without_its_package_is_one_sentence(bare: Bare, tmp_path: Path) -> None:
    wheel = tmp_path / "libtorch_cpu.dylib"
    wheel.write_bytes(b"\xcf\xfa\xed\xfe" + bytes(100))
    arguments = ("apple-kernels", "list", "--file", str(wheel))
    done = bare.run("validate-stack", *arguments, cwd=tmp_path, cache=tmp_path / "cache")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "(next: pip install 'lief>=0.16')" in done.stderr


@pytest.mark.parametrize("spec", GATES, ids=lambda spec: spec.name)
def test_a_gate_declares_every_package_that_its_modules_import(spec: Spec) -> None:
    imported = _imported_by(spec.load().__name__)  # type: ignore[attr-defined]
    assert imported - _ALWAYS_THERE - _WITH_TORCH <= set(spec.needs)


@pytest.mark.parametrize("spec", GATES, ids=lambda spec: spec.name)
def test_what_is_known_of_a_gate_is_known_without_its_packages(spec: Spec) -> None:
    assert _imported_by(spec.module) <= _ALWAYS_THERE


def test_the_command_itself_imports_nothing_that_an_installation_may_lack() -> None:
    assert _imported_by("stackproof.cli.main") <= _ALWAYS_THERE


def _imported_by(module: str) -> set[str]:
    """Packages of others that are imported with a module: by the module bodies that its import runs."""
    found: set[str] = set()
    waiting, seen = [module], set()
    while waiting:
        name = waiting.pop()
        if name in seen or (file := _file(name)) is None:
            continue
        seen.add(name)
        waiting.append(name.rpartition(".")[0])
        for imported in _imports(ast.parse(file.read_text(encoding="utf-8")).body):
            top = imported.partition(".")[0]
            if top in ("stackproof", "patchstack"):
                waiting.append(imported)
            elif top not in sys.stdlib_module_names:
                found.add(top)
    return found


def _imports(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file(module: str) -> Path | None:
    base = ROOT / ("validate" if module.startswith("stackproof") else "tooling") / module.replace(".", "/")
    return next((file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()), None)
