"""Finding uses in Python source: every spelling that reaches an operator, and nothing that only looks like one."""

from __future__ import annotations

import ast

import pytest

from compat_trees import functions
from stackproof.gates.common.functions import NativeFunction
from stackproof.gates.common.schema import parse_schema
from stackproof.gates.fc_window.features import keys_in, new_features
from stackproof.gates.fc_window.probe import make_probes
from stackproof.gates.fc_window.uses import Use, UseKind, find_uses

OLD = (
    "blend(Tensor self, Tensor other, float weight=0.5) -> Tensor",
    "tint(Tensor self, int hue) -> Tensor",
    "tint.out(Tensor self, int hue, *, Tensor(a!) out) -> Tensor(a!)",
    "weigh(Tensor self, int scale) -> Tensor",
)
NEW = (
    "glow(Tensor self, float power=1.0) -> Tensor",
    "linalg_shear(Tensor self) -> Tensor",
    "blend(Tensor self, Tensor other, float weight=0.5, bool soft=False) -> Tensor",
    "tint(Tensor self, int hue) -> Tensor",
    "tint.out(Tensor self, int hue, *, Tensor(a!) out) -> Tensor(a!)",
    "tint.Named(Tensor self, int hue, str name) -> Tensor",
    "weigh(Tensor self, int scale=1) -> Tensor",
)


def uses(source: str, path: str = "torch/paint.py") -> tuple[Use, ...]:
    """Uses of what NEW has over OLD."""
    settled = keys_in(functions(*OLD).encode())
    schemas = [parse_schema(text) for text in NEW]
    entries = {
        schema.name: NativeFunction(schema, 1, {}, variants=frozenset({"function", "method"})) for schema in schemas
    }
    return find_uses(ast.parse(source), path, make_probes(new_features(entries, settled), entries, settled))


def found(source: str, path: str = "torch/paint.py") -> list[tuple[str, UseKind]]:
    return [(str(use.feature), use.kind) for use in uses(source, path)]


GLOW_CALL = [("function glow", UseKind.CALL)]


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.glow(x)",
        "import torch as t\nt.glow(x)",
        "from torch import glow\nglow(x)",
        "from torch import glow as shine\nshine(x)",
        "import torch\ntorch.ops.aten.glow(x)",
        "import torch\ntorch.ops.aten.glow.default(x)",
        "import torch\nfrom torch import ops\nops.aten.glow(x)",
        "from torch import _VF\n_VF.glow(x)",
        "import torch\ntorch._VF.glow(x)",
        "import torch\ntorch._C._nn.glow(x)",
        "import torch._C as _C\n_C._nn.glow(x)",
        "from torch._C import _nn as nn_\nnn_.glow(x)",
        "import torch\ntorch._C._VariableFunctions.glow(x)",
        "from . import _VF as vf\nvf.glow(x)",
        "import torch\ndef f():\n    local = torch\n    return local.glow(x)",
    ],
)
def test_every_way_to_reach_a_new_function_is_a_call(source: str) -> None:
    assert found(source) == GLOW_CALL


def test_an_alias_of_the_operator_namespace_is_followed() -> None:
    assert found("import torch\naten = torch.ops.aten\naten.glow.default(x)") == GLOW_CALL


def test_a_module_prefix_belongs_to_the_operator_name() -> None:
    assert found("import torch\ntorch.linalg.shear(x)") == [("function linalg_shear", UseKind.CALL)]
    assert found("import torch\ntorch._C._linalg.linalg_shear(x)") == [("function linalg_shear", UseKind.CALL)]


def test_a_method_call_counts_because_the_receiver_may_be_a_tensor() -> None:
    assert found("def f(x):\n    return (x + 1).glow()") == [("function glow", UseKind.METHOD)]


def test_a_reference_without_a_call_counts() -> None:
    assert found("import torch\ntable = {torch.ops.aten.glow.default: 1}") == [("function glow", UseKind.REFERENCE)]


@pytest.mark.parametrize(
    "source",
    [
        "'torch.glow(x)'",
        '"""torch.glow(x)\n\n>>> torch.ops.aten.glow(x)\n"""',
        "# torch.glow(x)\nx = 1",
        "import os\nos.glow(x)",
        "import torch.nn.functional as F\nF.glow(x)",
        "import torch\ntorch.nn.glow(x)",
        "glow = 1\nprint(glow)",
        "import torch\ngetattr(torch, 'glow')",
        "def glow(x):\n    return x\nglow(1)",
        "import torch\ntorch.aglow(x)",
    ],
)
def test_strings_comments_and_other_names_are_no_uses(source: str) -> None:
    assert found(source) == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.blend(a, b)", []),
        ("torch.blend(a, b, 0.1)", []),
        ("torch.blend(a, b, weight=0.1)", []),
        ("torch.blend(a, b, soft=True)", ["argument soft of blend"]),
        ("torch.blend(a, b, 0.1, True)", ["argument soft of blend"]),
        ("torch.blend(a, *more)", []),
        ("torch.ops.aten.blend.default(a, b, 0.1, True)", ["argument soft of blend"]),
        ("a.blend(b, 0.1)", []),
        ("a.blend(b, 0.1, True)", ["argument soft of blend"]),
        ("a.blend(b, soft=True)", ["argument soft of blend"]),
        ("torch.tint(a, 3)", []),
        ("torch.tint(a, 3, out=b)", []),
        ("torch.tint(a, 3, 'n')", ["overload tint.Named"]),
        ("torch.tint(a, 3, name='n')", ["overload tint.Named"]),
        ("torch.ops.aten.tint.Named(a, 3, 'n')", ["overload tint.Named"]),
        ("torch.ops.aten.tint.out(a, 3, out=b)", []),
        ("torch.weigh(a, 2)", []),
        ("torch.weigh(a, scale=2)", []),
        ("torch.weigh(a)", ["leaving out scale of weigh"]),
        ("a.weigh()", ["leaving out scale of weigh"]),
        ("torch.weigh(a, **more)", []),
    ],
)
def test_the_shape_of_a_call_tells_new_from_old(call: str, expected: list[str]) -> None:
    assert [feature for feature, _ in found(f"import torch\n{call}")] == expected


def test_a_new_overload_is_used_by_naming_it() -> None:
    source = "import torch\nlookup[torch.ops.aten.tint.Named] = 1"
    assert found(source) == [("overload tint.Named", UseKind.REFERENCE)]


def test_the_line_is_that_of_the_new_keyword() -> None:
    (use,) = uses("import torch\ntorch.blend(\n    a,\n    b,\n    soft=True,\n)")
    assert (use.line, use.last_line) == (5, 5)


@pytest.mark.parametrize(
    "source",
    [
        "import torch\n@register_decomposition(torch.ops.aten.glow)\ndef glow(x): ...",
        "import torch\n@register_meta([torch.ops.aten.glow.default])\ndef f(x):\n    return torch.glow(x)",
        "import torch\nregister_lowering(torch.ops.aten.glow)(f)",
        "import torch\nmake_fallback(torch.ops.aten.glow)",
    ],
)
def test_decompositions_and_registrations_are_told_apart(source: str) -> None:
    kinds = {kind for _, kind in found(source)}
    assert kinds == {UseKind.REGISTRATION}


def test_whole_files_of_decompositions_are_registrations() -> None:
    kinds = {kind for _, kind in found("import torch\ntorch.glow(x)", "torch/_decomp/decompositions.py")}
    assert kinds == {UseKind.REGISTRATION}
