"""The text of the small tree, and of the series that goes on it. None of it is PyTorch's."""

from __future__ import annotations

from collections.abc import Mapping

NATIVE_FUNCTIONS = "aten/src/ATen/native/native_functions.yaml"
METAL = "aten/src/ATen/native/mps/kernels/Fade.metal"
HOST = "aten/src/ATen/native/mps/operations/Fade.mm"
LISTS = "torch/testing/_internal/common_mps.py"
TESTS = "test/test_mps.py"

TREE: Mapping[str, bytes] = {
    NATIVE_FUNCTIONS: b"""\
- func: brighten(Tensor self) -> Tensor
  variants: function
  dispatch:
    CPU, CUDA: brighten

- func: fade(Tensor self, float amount) -> Tensor
  variants: function
  dispatch:
    CPU: fade_cpu
    CUDA: fade_cuda

- func: wash(Tensor self) -> Tensor
""",
    METAL: b"""\
#include <metal_stdlib>
using namespace metal;

kernel void brighten(device float* out [[buffer(0)]], uint at [[thread_position_in_grid]]) {
  out[at] = out[at] + 1.0f;
}
""",
    HOST: b"""\
#include <ATen/native/mps/Paint.h>

namespace at::native {
namespace mps {

static void brighten_impl(Tensor& out) {
  paint(out);
}

} // namespace mps

Tensor brighten_mps(const Tensor& self) {
  return self;
}

} // namespace at::native
""",
    LISTS: b"""\
XFAILLIST = {
    "brighten": None,
    "fade": None,
}
""",
    TESTS: b"""\
class TestMPS:
    def test_brighten(self):
        assert self
""",
    "caf\u00e9/na\u00efve name.txt": b"a name that is not ASCII\n",
    "windows.txt": b"one\r\ntwo\r\n",
    "README.md": b"A tree for tests.\n",
}

MANIFEST = """\
format: 1
changes:
  - id: fade
    title: "[MPS] Add fade"
    message: fade.md
    ops: [fade]
    upstream:
      - dispatch: fade
        key: MPS
    edits:
      - kind: add-dispatch-key
        path: aten/src/ATen/native/native_functions.yaml
        op: fade
        key: MPS
        function: fade_mps
      - kind: place-fragment
        path: aten/src/ATen/native/mps/kernels/Fade.metal
        fragment: fade_kernel
        after: {kernel: brighten}
      - kind: place-fragment
        path: aten/src/ATen/native/mps/operations/Fade.mm
        fragment: fade_mps
        after: {function: brighten_mps}
  - id: fade_tests
    title: "[MPS] Test fade"
    message: fade_tests.md
    ops: [fade]
    needs: [fade]
    upstream:
      - path: test/test_mps.py
        defines: TestFade
    edits:
      - kind: remove-python-entry
        path: torch/testing/_internal/common_mps.py
        in: [{assign: XFAILLIST}]
        entry: '"fade"'
      - kind: place-fragment
        path: test/test_mps.py
        fragment: fade_tests
        end_of: [{class: TestMPS}]
  - id: fade_notes
    title: "[MPS] Describe fade"
    message: fade_notes.md
    ops: [fade]
    upstream:
      - path: docs/fade.md
        declares: fade_notes
    edits:
      - kind: create-file
        path: docs/fade.md
"""

MESSAGES: Mapping[str, str] = {
    "fade.md": "Fade a tensor on the GPU.\n\n- one kernel\n- no copy\n",
    "fade_tests.md": "The expected failure goes, a test comes.\n",
    "fade_notes.md": "What fading means.\n",
}

OVERLAY: Mapping[str, str] = {
    METAL: """\
// fragment: fade_kernel

kernel void fade(device float* out [[buffer(0)]], uint at [[thread_position_in_grid]]) {
  out[at] = out[at] * 0.5f;
}
// end fragment
""",
    HOST: """\
// fragment: fade_mps

Tensor fade_mps(const Tensor& self, double amount) {
  return self;
}
// end fragment
""",
    TESTS: """\
class TestMPS:
    # fragment: fade_tests
    def test_fade(self):
        assert self
    # end fragment
""",
    "docs/fade.md": "Fading halves what is there.\n",
}

TITLES = ("[MPS] Add fade", "[MPS] Test fade", "[MPS] Describe fade")
"""Bottom first."""
