"""The torch that is installed and the tree are of different releases: what works, and what is not the stack's fault."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from patchstack.cache import cache_dir
from patchstack.tree.git import Repository, Tree
from references import require_reference
from skips import cannot
from stack_lab import HOST_FILE, OP, StackLab, applied
from stackproof.engines.standin.build import build_device
from stackproof.engines.standin.headers import mps_headers
from stackproof.engines.standin.stack import HostFile, HostStack
from stackproof.engines.standin.torches import SEEN
from stackproof.gates.host_run.spec import SPEC as HOST_RUN
from stackproof.model import Verdict

OTHER = "PATCHSTACK_OTHER_PYTHON"
UTILS = "aten/src/ATen/native/mps/OperationUtils.h"
COMMON = "c10/metal/common.h"
ONLY_HERE = "aten/src/ATen/native/OnlyInThisTree.h"
YAML = "aten/src/ATen/native/native_functions.yaml"
INCLUDE = "#include <ATen/native/mps/OperationUtils.h>\n"
FIRST_OF_FUNCTION = "  check_grid_sampler_gradient(op, grad_output, input, grid);\n"
HAS_DEVICE, HAS_FUNCTION = "-DSTANDIN_STREAM_HAS_DEVICE", "-DSTANDIN_HAS_FUNCTION"

needs_compiler = pytest.mark.usefixtures("compiler")


@pytest.mark.needs_reference
@pytest.mark.parametrize(
    ("reference", "switches"),
    [("2.6", ()), ("2.11", (HAS_DEVICE,)), ("2.13", (HAS_FUNCTION, HAS_DEVICE)), ("2.14", (HAS_FUNCTION, HAS_DEVICE))],
)
def test_the_device_implements_what_the_trees_headers_declare(
    reference: str, switches: tuple[str, ...], tmp_path: Path
) -> None:
    with Repository.open(require_reference(reference).path) as repository:
        headers = mps_headers(Tree.at(repository, "main"), tmp_path)
    assert headers.switches == switches
    assert (headers.most / UTILS).exists()
    assert not (headers.most / "aten/src/ATen/native/mps/operations").exists()
    assert (headers.most / "c10/metal").exists() == (reference != "2.6")


@pytest.mark.slow
@needs_compiler
def test_headers_about_mps_are_the_trees_whatever_torch_has(stack: StackLab, tmp_path: Path) -> None:
    # As in 2.14, whose helpers include a header that kernels share; and a helper that no release has.
    helper = "namespace at::native::mps {\ninline unsigned room_of_the_tree() {\n  return c10::metal::max_ndim;\n}\n}\n"
    head = stack.changed(
        {
            UTILS: stack.text(UTILS) + f"#include <{COMMON}>\n{helper}",
            HOST_FILE: stack.text(HOST_FILE).replace(
                FIRST_OF_FUNCTION, f"{FIRST_OF_FUNCTION}  TORCH_CHECK(room_of_the_tree() > 0);\n"
            ),
        }
    )
    build = build_device(HostStack.between(stack.repository, stack.base, head), cache_dir() / "host-run")
    assert OP in build.ops


@pytest.mark.slow
@needs_compiler
def test_a_file_that_only_its_own_trees_headers_suit_is_not_run_and_the_versions_are_named(stack: StackLab) -> None:
    head = stack.changed(
        {ONLY_HERE: "#pragma once\n", HOST_FILE: f"#include <ATen/native/OnlyInThisTree.h>\n{stack.text(HOST_FILE)}"}
    )
    result = stack.judge(HOST_RUN, head)
    assert result.verdict is Verdict.NOT_RUN
    assert "OnlyInThisTree.h' file not found" in result.reason
    assert "does not go with this tree" in result.reason
    assert ", ".join(SEEN["2.11"]) in result.reason


@pytest.mark.slow
@needs_compiler
def test_a_file_that_does_not_compile_anywhere_is_a_failed_stack(stack: StackLab) -> None:
    result = stack.judge(HOST_RUN, stack.replaced(FIRST_OF_FUNCTION, f"{FIRST_OF_FUNCTION}  no_such_name();\n"))
    assert result.verdict is Verdict.FAILED
    assert [finding.rule for finding in result.findings] == ["compile"]
    assert "no_such_name" in result.findings[0].message


@pytest.mark.slow
@needs_compiler
def test_a_header_about_mps_that_the_stack_broke_is_a_failed_stack(stack: StackLab) -> None:
    result = stack.judge(HOST_RUN, stack.changed({UTILS: stack.text(UTILS) + "no_such_type broken();\n"}))
    assert result.verdict is Verdict.FAILED
    assert (result.findings[0].path, result.findings[0].line) == (UTILS, stack.text(UTILS).count("\n") + 1)
    assert "no_such_type" in result.findings[0].message


@pytest.mark.slow
@needs_compiler
def test_an_op_whose_schema_the_installed_torch_does_not_have_is_not_run(stack: StackLab) -> None:
    text = stack.text(YAML)
    old = f"- func: {OP}(Tensor grad_output, "
    assert text.count(old) == 1
    head = stack.changed({YAML: text.replace(old, f"- func: {OP}(Tensor first, ")})
    result = stack.judge(HOST_RUN, head)
    assert result.verdict is Verdict.NOT_RUN
    assert f"{OP}: torch" in result.reason


@pytest.mark.slow
@needs_compiler
@pytest.mark.needs_reference
def test_the_host_gates_pass_with_another_torch_on_a_tree_of_another_release(tmp_path: Path) -> None:
    """One pair off the pinned version; bench/torch_versions.py has all."""
    python = os.environ.get(OTHER)
    if not python:
        pytest.skip(cannot(f"needs a Python with another torch, of several GB (make other-torch; then {OTHER}=PATH)"))
    with applied("2.13", tmp_path / "tree", series="metal_ops") as lab:
        report = tmp_path / "report.json"
        command: list[Any] = [
            python, "-c", "from stackproof.cli import main; main()", "--repo", lab.path, "--series",
            Path(__file__).parents[3] / "series/metal_ops", "--only", "host-check,host-run", "--json", report,
        ]  # fmt: skip
        done = subprocess.run([str(one) for one in command], capture_output=True, text=True, check=False)
        gates = json.loads(report.read_text())["gates"]
    assert {gate["name"]: (gate["verdict"], gate["reason"]) for gate in gates} == {
        "host-check": ("passed", ""),
        "host-run": ("passed", ""),
    }, done.stdout


@pytest.mark.needs_reference
def test_a_header_of_all_backends_is_the_trees_where_a_host_file_uses_what_the_installed_one_lacks(
    tmp_path: Path,
) -> None:
    path = "aten/src/ATen/native/GridSamplerUtils.h"
    with Repository.open(require_reference("2.13").path) as repository:
        tree = Tree.at(repository, "main").with_files({path: b"inline void check_of_this_tree() {}\n"})
        text = "#include <ATen/native/GridSamplerUtils.h>\n"
        plain = mps_headers(tree, tmp_path, [HostFile("a.mm", text)])
        uses = mps_headers(tree, tmp_path, [HostFile("a.mm", f"{text}void f() {{ check_of_this_tree(); }}\n")])
    assert [(one.own / path).exists() for one in (plain, uses)] == [False, True]
