"""What a stack touches: a kernel by all it is made of, a host function likewise, and nothing that only moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_trees import commit
from patchstack.tree.git import Repository
from stackproof.engines.standin.stack import KERNELS, OPERATIONS
from stackproof.gates.common.touched import Touched
from stackproof.model import GateContext

SOURCE = f"{KERNELS}/Some.metal"
FILES = {
    SOURCE: """\
#include <metal_stdlib>
#include <ATen/native/mps/kernels/Some.h>
using namespace metal;

static float doubled(float x) { return twice(x); }
static float alone(float x) { return x; }

template <typename T>
kernel void double_it(device T* out, uint i [[thread_position_in_grid]]) { out[i] = doubled(out[i]); }
template <typename T>
kernel void keep_it(device T* out, uint i [[thread_position_in_grid]]) { out[i] = alone(out[i]); }

#define MAKE(NAME, T) \\
  template [[host_name(#NAME "_" #T)]] kernel void NAME<T>(device T*, uint);
MAKE(double_it, float)
MAKE(keep_it, float)
""",
    f"{KERNELS}/Some.h": "#pragma once\ninline float twice(float x) { return 2 * x; }\n",
    f"{OPERATIONS}/Some.mm": """\
#include <ATen/native/mps/Some_metallib.h>
namespace at::native {
static void launch(const std::string& name, int64_t threads) { encode(lib.kernel(name), threads); }
static void check(const Tensor& self) { TORCH_CHECK(self.dim() > 0); }

Tensor double_it_mps(const Tensor& self) {
  check(self);
  launch(fmt::format("double_it_{}", type_of(self)), self.numel());
  return self;
}

Tensor keep_it_mps(const Tensor& self) {
  launch("keep_it_" + type_of(self), self.numel());
  return self;
}
} // namespace at::native
""",
    "aten/src/ATen/native/native_functions.yaml": """\
- func: double_it(Tensor self) -> Tensor
  dispatch:
    MPS: double_it_mps

- func: keep_it(Tensor self) -> Tensor
  dispatch:
    MPS: keep_it_mps

- func: elsewhere(Tensor self) -> Tensor
  dispatch:
    MPS: elsewhere_mps
""",
}
HOST = f"{OPERATIONS}/Some.mm"
FUNCTIONS = "aten/src/ATen/native/native_functions.yaml"
NOTHING: set[str] = set()
DOUBLE, KEEP = {"double_it_float", "double_it"}, {"keep_it_float", "keep_it"}
MORE = "kernel void more(device float* out) { out[0] = 0; }\n"
PRAGMA = "#pragma METAL fp math_mode(safe)\n"
OVERLOAD = "inline float alone(int x) { return x; }\n"
EDITS = {
    "a comment": (SOURCE, "using namespace metal;", "using namespace metal;\n// words", NOTHING),
    "another kernel": (SOURCE, "#define MAKE", f"{MORE}#define MAKE", NOTHING),
    "line breaks": (SOURCE, "{ return x; }", "{\n  return x;\n}", NOTHING),
    "a function that one kernel calls": (SOURCE, "{ return x; }", "{ return -x; }", {"keep_it_float"}),
    "a function in a header, two calls away": (f"{KERNELS}/Some.h", "2 * x", "x + x", {"double_it_float"}),
    "an instantiation": (SOURCE, "MAKE(keep_it, float)", "MAKE(keep_it, half)", {"keep_it_float"}),
    "a pragma over the whole file": (SOURCE, "using", f"{PRAGMA}using", {"double_it_float", "keep_it_float"}),
    "a host function": (HOST, "  check(self);\n", "", DOUBLE),
    "what one host function calls": (HOST, "self.dim() > 0", "self.dim() > 1", DOUBLE),
    "what launches both": (HOST, "encode(lib", "encode_again(lib", DOUBLE | KEEP),
    "a host file beside it, with names that this one has too": (
        f"{OPERATIONS}/Other.mm",
        "",
        "static void launch(int threads) {}\nstatic void check() {}\n",
        NOTHING,
    ),
    "the function behind the key": (FUNCTIONS, "MPS: keep_it_mps", "MPS: other_mps", {"keep_it"}),
    "an overload": (SOURCE, "#define MAKE", f"{OVERLOAD}#define MAKE", {"keep_it_float"}),
}  # fmt: skip


HOOK = "  if (auto faster = fast(self)) {\n    return *faster;\n  }\n"
BUT_FOR_HOOKS = {
    "a statement before the launch": (HOST, "  check(self);\n", f"  check(self);\n{HOOK}", NOTHING),
    "a statement in the place of another": (HOST, "  check(self);\n", HOOK, DOUBLE),
    "a statement less": (HOST, "  check(self);\n", "", DOUBLE),
    "an argument more": (HOST, "check(self);\n  launch", "check(self, 1);\n  launch", DOUBLE),
    "a statement put into a kernel": (SOURCE, "{ return x; }", "{ x = -x; return x; }", {"keep_it_float"}),
}


def touched(root: Path, path: str, old: str, new: str, *, hooks_touch: bool = True) -> set[str]:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    commit(root, "base")
    text = FILES.get(path, "")
    assert old in text
    (root / path).write_text(text.replace(old, new))
    commit(root, "head")
    with Repository.open(root) as repository:
        base, head = (repository.commit(name).hash for name in ("HEAD~1", "HEAD"))
        found = Touched.by(GateContext(repository, base, head, root / "cache"))
        found = found if hooks_touch else found.but_for_hooks
        kernels = {name for name in ("double_it_float", "keep_it_float") if found.kernel(SOURCE, name)}
        assert not found.op("elsewhere")
        return kernels | {op for op in ("double_it", "keep_it") if found.op(op)}


@pytest.mark.parametrize("edit", EDITS)
def test_a_kernel_is_touched_by_what_it_is_made_of_and_by_what_launches_it(edit: str, tmp_path: Path) -> None:
    path, old, new, expected = EDITS[edit]
    assert touched(tmp_path / "tree", path, old, new) == expected


@pytest.mark.parametrize("edit", BUT_FOR_HOOKS)
def test_where_hooks_do_not_count_only_what_was_there_before_is_touched(edit: str, tmp_path: Path) -> None:
    path, old, new, expected = BUT_FOR_HOOKS[edit]
    assert touched(tmp_path / "tree", path, old, new, hooks_touch=False) == expected
    assert touched(tmp_path / "again", path, old, new) >= expected


def test_an_op_that_one_of_the_trees_does_not_have_is_touched(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    touched(root, HOST, "  check(self);\n", "")
    with Repository.open(root) as repository:
        base, head = (repository.commit(name).hash for name in ("HEAD~1", "HEAD"))
        found = Touched.by(GateContext(repository, base, head, root / "cache"))
        assert found.op("no_such_op")
        assert found.kernel(SOURCE, "no_such_kernel")
