"""The gate ``c-shim``: changed declarations with their recipe, stale headers, version entries that do nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest

from compat_trees import TreeRepository, functions, of_rule
from gate_contexts import run_gate
from patchstack.tree.c_shim import header_path
from patchstack.tree.git import Tree
from patchstack.tree.torchgen_run import TorchgenError
from stackproof.gates.c_shim import stale
from stackproof.gates.c_shim.fallback import FALLBACK_PATH, GENERATOR_PATH
from stackproof.gates.c_shim.gate import MOST_CALLERS
from stackproof.gates.c_shim.recipe import REGENERATE, VERSION_PATH
from stackproof.gates.c_shim.spec import SPEC as C_SHIM
from stackproof.gates.common.errors import MALFORMED_RULE
from stackproof.gates.common.functions import FUNCTIONS_PATH
from stackproof.model import GateResult, Verdict

MPS, CPU = header_path("mps"), header_path("cpu")
BLEND = "blend(Tensor self, float? weight=None) -> Tensor"
V1 = "AtenTensorHandle self, double* weight, AtenTensorHandle* ret0"
WIDER = "AtenTensorHandle self, double* weight, int64_t* steps, int64_t steps_len_, AtenTensorHandle* ret0"
LIST_FORM = "def take(info):\n    return [k for k in info if k.startswith('v')]\n"
MAPPING_FORM = LIST_FORM + "def new(entry):\n    return entry.get('new_args', [])\n"
CHOOSER = (
    "from torchgen.aoti.fallback_ops import inductor_fallback_ops\ndef pick(name, n):\n    return f'{name}_v{n}'\n"
)


def header(device: str = "mps", **declarations: str) -> str:
    lines = (
        f"AOTI_TORCH_EXPORT AOTITorchError aoti_torch_{device}_{name}({parameters});"
        for name, parameters in declarations.items()
    )
    return "#pragma once\n" + "\n".join(lines) + "\n"


def fallback(entry: str = "{}") -> str:
    return f'inductor_fallback_ops = {{\n    "aten.blend.default": {entry},\n}}\n'


def tree(form: str = LIST_FORM, **more: str) -> dict[str, str]:
    """A small tree with one shim; keyword names stand for paths in the obvious way."""
    return {
        FUNCTIONS_PATH: functions(BLEND),
        FALLBACK_PATH: fallback(),
        GENERATOR_PATH: form,
        VERSION_PATH: "2.14.0a0\n",
        "torchgen/gen.py": "",
        "torch/_inductor/ir.py": CHOOSER,
        MPS: header(blend=V1),
        **more,
    }


def as_stored(tree_: Tree, devices: Sequence[str]) -> Mapping[str, bytes]:
    """A torchgen that agrees with what is checked in."""
    return {header_path(device): tree_.read(header_path(device)) or b"" for device in devices}


def judged(
    tmp_path: Path, before: Mapping[str, str], after: Mapping[str, str | None], generate: object = as_stored
) -> GateResult:
    lab = TreeRepository(tmp_path / "tree")
    base = lab.commit(before)
    head = lab.commit(after, parents=(base,))
    with patch.object(stale, "generate_c_shims", generate):
        return run_gate(C_SHIM, lab.context(base, head))


def test_an_added_declaration_passes(tmp_path: Path) -> None:
    result = judged(tmp_path, tree(), {MPS: header(blend=V1, glow=V1)})
    assert result.verdict is Verdict.PASSED
    assert result.details["summary"] == "1 declaration added, none changed"
    assert [(f.rule, f.line, f.fails) for f in result.findings] == [("summary", 0, False), ("added", 3, False)]
    assert result.findings[0].message == result.details["summary"]
    assert result.details["devices"]["mps"]["unchanged"] == 1


@pytest.mark.parametrize(
    ("form", "entry"),
    [
        (LIST_FORM, '"aten.blend.default": {"v2": ["steps"]}'),
        (MAPPING_FORM, '"aten.blend.default": {"v2": {"new_args": ["steps"], "since": "TORCH_VERSION_2_14_0"}}'),
    ],
    ids=["list", "mapping"],
)
def test_a_changed_declaration_fails_with_the_recipe_in_the_form_of_the_tree(
    tmp_path: Path, form: str, entry: str
) -> None:
    result = judged(tmp_path, tree(form), {MPS: header(blend=WIDER)})
    assert result.verdict is Verdict.FAILED
    (finding,) = of_rule(result, "changed")
    assert (finding.path, finding.line) == (MPS, 2)
    assert finding.message.endswith(f"write {entry} in {FALLBACK_PATH}, then run {REGENERATE}")


def test_the_next_version_follows_the_ones_that_are_there(tmp_path: Path) -> None:
    before = tree(**{FALLBACK_PATH: fallback('{"v2": ["weight"]}')})
    (finding,) = of_rule(judged(tmp_path, before, {MPS: header(blend=WIDER)}), "changed")
    assert '{"v3": ["steps"]}' in finding.message


def test_a_tree_whose_torchgen_has_no_versions_gets_other_advice(tmp_path: Path) -> None:
    before = tree("def take(): ...\n", **{FALLBACK_PATH: 'inductor_fallback_ops = {"aten.blend.default"}\n'})
    (finding,) = of_rule(judged(tmp_path, before, {MPS: header(blend=WIDER)}), "changed")
    assert "leave the schema as it was" in finding.message


def test_a_change_that_adds_no_argument_cannot_be_a_v2(tmp_path: Path) -> None:
    (finding,) = of_rule(judged(tmp_path, tree(), {MPS: header(blend=V1.replace("double*", "double"))}), "changed")
    assert "no v2 can express it" in finding.message


def test_renamed_parameters_fail_with_a_finding_of_their_own(tmp_path: Path) -> None:
    result = judged(tmp_path, tree(), {MPS: header(blend=V1.replace("weight", "amount"))})
    assert result.verdict is Verdict.FAILED
    assert of_rule(result, "renamed-parameters")
    assert result.details["summary"].endswith("1 changed, 1 of them in parameter names only")


def test_a_removed_declaration_fails(tmp_path: Path) -> None:
    result = judged(tmp_path, tree(**{MPS: header(blend=V1, glow=V1)}), {MPS: header(blend=V1)})
    assert result.verdict is Verdict.FAILED
    assert "aoti_torch_mps_glow" in of_rule(result, "removed")[0].message


def test_a_removed_header_removes_all_its_declarations(tmp_path: Path) -> None:
    result = judged(tmp_path, tree(**{CPU: header("cpu", blend=V1)}), {CPU: None})
    assert [finding.path for finding in of_rule(result, "removed")] == [CPU]


def test_a_moved_declaration_is_information(tmp_path: Path) -> None:
    result = judged(tmp_path, tree(**{MPS: header(a=V1, b=V1)}), {MPS: header(b=V1, a=V1)})
    assert result.verdict is Verdict.PASSED
    assert len(of_rule(result, "reordered")) == 1


def test_every_device_is_judged(tmp_path: Path) -> None:
    before = tree(**{CPU: header("cpu", blend=V1)})
    result = judged(tmp_path, before, {CPU: header("cpu", blend=WIDER), MPS: header(blend=WIDER)})
    assert sorted(finding.path for finding in of_rule(result, "changed")) == [CPU, MPS]


def test_a_header_that_torchgen_would_write_otherwise_is_stale(tmp_path: Path) -> None:
    def generate(tree_: Tree, devices: Sequence[str]) -> dict[str, bytes]:
        is_new = b"glow" in (tree_.read(FUNCTIONS_PATH) or b"")
        return {MPS: (header(blend=V1, glow=V1) if is_new else header(blend=V1)).encode()}

    result = judged(tmp_path, tree(), {FUNCTIONS_PATH: functions(BLEND, "glow(Tensor self) -> Tensor")}, generate)
    assert result.verdict is Verdict.FAILED
    (finding,) = of_rule(result, "stale")
    assert "1 missing: aoti_torch_mps_glow" in finding.message
    assert finding.message.endswith(f"run {REGENERATE}")


def test_text_outside_of_declarations_can_be_stale_too(tmp_path: Path) -> None:
    def generate(tree_: Tree, devices: Sequence[str]) -> dict[str, bytes]:
        is_new = (tree_.read(GENERATOR_PATH) or b"").endswith(b"# new\n")
        return {MPS: (header(blend=V1) + ("// another end\n" if is_new else "")).encode()}

    result = judged(tmp_path, tree(), {GENERATOR_PATH: LIST_FORM + "# new\n"}, generate)
    assert result.verdict is Verdict.FAILED
    assert "text outside of declarations differs" in of_rule(result, "stale")[0].message


def test_a_header_that_was_stale_before_is_not_the_ranges_fault(tmp_path: Path) -> None:
    def generate(tree_: Tree, devices: Sequence[str]) -> dict[str, bytes]:
        return {MPS: header(blend=V1, glow=V1).encode()}

    result = judged(tmp_path, tree(), {"torchgen/gen.py": "x = 1\n"}, generate)
    assert result.verdict is Verdict.PASSED
    assert [finding.fails for finding in of_rule(result, "stale")] == [False]


def test_torchgen_is_not_asked_when_nothing_it_reads_changed(tmp_path: Path) -> None:
    def generate(tree_: Tree, devices: Sequence[str]) -> dict[str, bytes]:
        raise AssertionError("asked")

    result = judged(tmp_path, tree(), {"README.md": "more"}, generate)
    assert result.verdict is Verdict.PASSED
    assert result.details["torchgen_not_asked"]


def test_a_torchgen_that_refuses_what_the_stack_writes_fails(tmp_path: Path) -> None:
    def generate(tree_: Tree, devices: Sequence[str]) -> dict[str, bytes]:
        if (tree_.read(FUNCTIONS_PATH) or b"").endswith(b"\n\n"):
            raise TorchgenError("no such dispatch key", "")
        return {MPS: header(blend=V1).encode()}

    result = judged(tmp_path, tree(), {FUNCTIONS_PATH: functions(BLEND) + "\n"}, generate)
    assert result.verdict is Verdict.FAILED
    assert "no such dispatch key" in of_rule(result, "torchgen")[0].message


def test_a_tree_without_torchgen_is_not_run_but_changes_still_fail(tmp_path: Path) -> None:
    before = {MPS: header(blend=V1)}
    result = judged(tmp_path, before, {MPS: header(blend=V1, glow=V1)})
    assert result.verdict is Verdict.NOT_RUN
    assert "the tree has no torchgen" in result.reason
    assert judged(tmp_path / "other", before, {MPS: header(blend=WIDER)}).verdict is Verdict.FAILED


def test_a_tree_without_shims_is_not_run(tmp_path: Path) -> None:
    result = judged(tmp_path, {"README.md": "a"}, {"README.md": "b"})
    assert result.verdict is Verdict.NOT_RUN


@pytest.mark.parametrize(
    ("form", "entry", "said"),
    [
        (LIST_FORM, '{"v2": ["wieght"]}', "there is no argument 'wieght', so v1 keeps every argument in silence"),
        (LIST_FORM, '{"v2": {"new_args": ["weight"], "since": "TORCH_VERSION_2_14_0"}}', "leaves every argument in v1"),
        (LIST_FORM, '{"v2": ["self"]}', "is no optional argument"),
        (LIST_FORM, '{"v3": ["weight"]}', "'v3' stands where v2 is expected"),
        (LIST_FORM, '{"v2": []}', "adds no argument"),
        (LIST_FORM, '{"v2": ["weight"], "v3": ["weight"]}', "which an earlier version adds already"),
        (MAPPING_FORM, '{"v2": ["weight"]}', "not in the form that this tree's torchgen takes"),
        (MAPPING_FORM, '{"v2": {"new_args": ["self"]}}', "has no default that v1 could pass"),
        ("def take(): ...\n", '{"v2": ["weight"]}', "knows no versions"),
    ],
)
def test_a_version_entry_that_does_not_do_what_it_seems_to_fails(
    tmp_path: Path, form: str, entry: str, said: str
) -> None:
    result = judged(tmp_path, tree(form), {FALLBACK_PATH: fallback(entry)})
    assert result.verdict is Verdict.FAILED
    found = of_rule(result, "silent-v1")
    assert any(said in finding.message for finding in found), [finding.message for finding in found]
    assert found[0].line == 2


@pytest.mark.parametrize(
    ("form", "entry"),
    [
        (LIST_FORM, '{"v2": ["weight"]}'),
        (MAPPING_FORM, '{"since": "TORCH_VERSION_2_9_0", "v2": {"new_args": ["weight"]}}'),
    ],
)
def test_a_right_version_entry_is_no_trap(tmp_path: Path, form: str, entry: str) -> None:
    after = {FALLBACK_PATH: fallback(entry), MPS: header(blend=V1, blend_v2=WIDER)}
    assert judged(tmp_path, tree(form), after).verdict is Verdict.PASSED


def test_a_new_version_that_inductor_would_never_call_fails(tmp_path: Path) -> None:
    before = tree(**{"torch/_inductor/ir.py": "def pick(name):\n    return name\n"})
    after = {FALLBACK_PATH: fallback('{"v2": ["weight"]}'), MPS: header(blend=V1, blend_v2=WIDER)}
    (finding,) = of_rule(judged(tmp_path, before, after), "caller")
    assert finding.fails
    assert finding.message.endswith("would call v1 and never aoti_torch_mps_blend_v2")


def test_callers_of_the_old_version_are_listed_up_to_a_limit(tmp_path: Path) -> None:
    calls = "x = 'aoti_torch_mps_blend'\n" * (MOST_CALLERS + 5)
    before = tree(**{"torch/_inductor/table.py": calls, "torch/csrc/a.cpp": "int y = aoti_torch_mps_blend_more();\n"})
    after = {FALLBACK_PATH: fallback('{"v2": ["weight"]}'), MPS: header(blend=V1, blend_v2=WIDER)}
    found = of_rule(judged(tmp_path, before, after), "caller")
    assert len(found) == MOST_CALLERS + 1
    listed = [finding for finding in found if finding.path]
    assert {finding.message for finding in listed} == {
        "calls aoti_torch_mps_blend, though aoti_torch_mps_blend_v2 is there now"
    }


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (MPS, "<<<<<<< ours\n"),
        (FALLBACK_PATH, "inductor_fallback_ops = {\n"),
        (FALLBACK_PATH, "inductor_fallback_ops = f()\n"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_finding_with_its_line(tmp_path: Path, path: str, content: str) -> None:
    result = judged(tmp_path, tree(), {path: content})
    assert result.verdict is Verdict.FAILED
    (finding,) = result.findings
    assert (finding.rule, finding.path) == (MALFORMED_RULE, path)
    assert finding.line == 1
