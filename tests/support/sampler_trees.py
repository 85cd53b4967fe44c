"""Small trees around one op, in the shapes that PyTorch's grid sampler had before and after April 2026.

The names are upstream's, since the states are told by names; every text is this project's own and does nothing.
``SERIES`` brings a backward of its own, with the names that a replacement of upstream's would have.
"""

from __future__ import annotations

NATIVE = "aten/src/ATen/native/native_functions.yaml"
HEADER = "aten/src/ATen/native/mps/kernels/GridSampler.h"
METAL = "aten/src/ATen/native/mps/kernels/GridSampler.metal"
HOST = "aten/src/ATen/native/mps/operations/GridSampler.mm"
LISTS = "torch/testing/_internal/common_mps.py"
TESTS = "test/test_mps.py"

MANIFEST = f"""\
format: 1
changes:
  - id: backward
    title: "[MPS] Add grid_sampler_2d_backward"
    message: message.md
    upstream:
      - {{dispatch: grid_sampler_2d_backward, key: MPS}}
      - {{defines: grid_sampler_2d_backward_mps, path: {HOST}}}
    edits:
      - {{kind: add-dispatch-key, path: {NATIVE}, op: grid_sampler_2d_backward, key: MPS,
         function: grid_sampler_2d_backward_mps}}
      - {{kind: place-fragment, path: {HEADER}, fragment: params, after: {{struct: GridSamplerParams, in: global}}}}
      - kind: place-fragment
        path: {METAL}
        fragment: kernels
        end_of: {{file: end}}
        replaces:
          - {{kernel: grid_sampler_2d_backward_bilinear_input, in: global}}
          - {{kernel: grid_sampler_2d_backward_bilinear_grid, in: global}}
          - {{struct: BackwardPreamble, in: global}}
          - {{macro: REGISTER_GRID_SAMPLER_2D_BACKWARD_GRID}}
      - {{kind: place-fragment, path: {HOST}, fragment: zeros_include,
         into: {{include_block: ATen/ops/grid_sampler_2d_native.h}}}}
      - {{kind: place-fragment, path: {HOST}, fragment: host,
         after: {{function: grid_sampler_2d_mps, in: "at::native"}}}}
      - {{kind: remove-python-entry, path: {LISTS}, in: [{{assign: XFAILLIST_GRAD}}], entry: '"grid_sampler_2d"',
         value: None}}
      - {{kind: place-fragment, path: {TESTS}, fragment: tests, end_of: [{{class: TestMPS}}]}}
"""

PARAMS = """\
// What host and kernel share.
template <unsigned N>
struct GridSamplerBackwardParams {
  ::c10::metal::array<int32_t, N> grad_output_strides;
  ::c10::metal::array<int32_t, N> input_sizes;
  ::c10::metal::array<int32_t, N> input_strides;
  bool align_corners;
};
"""
KERNELS = """\
// The distance between two pixels, and what it is worth.
static float2 position_and_slope(float coordinate, int32_t size, bool align_corners) {
  const float slope = align_corners ? 0.5f * (size - 1) : 0.5f * size;
  const float position = align_corners ? (coordinate + 1) * slope : (coordinate + 1) * slope - 0.5f;
  return {position, slope};
}

template <typename T>
kernel void grid_sampler_2d_backward(
    device float* grad_input [[buffer(0)]],
    device T* grad_grid [[buffer(1)]],
    device const T* grad_output [[buffer(2)]],
    constant GridSamplerBackwardParams<4>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  const float2 x = position_and_slope(grad_grid[2 * tid], params.input_sizes[3], params.align_corners);
  const float2 y = position_and_slope(grad_grid[2 * tid + 1], params.input_sizes[2], params.align_corners);
  for (int32_t channel = 0; channel < params.input_sizes[1]; ++channel) {
    grad_input[channel * params.input_strides[1]] += grad_output[tid] * x.x * y.x;
  }
  grad_grid[2 * tid] = x.y;
  grad_grid[2 * tid + 1] = y.y;
}

#define REGISTER_GRID_SAMPLER_2D_BACKWARD(T) \\
  template [[host_name("grid_sampler_2d_backward_" #T)]] kernel void grid_sampler_2d_backward<T>( \\
      device float*, device T*, device const T*, constant GridSamplerBackwardParams<4>&, uint);

REGISTER_GRID_SAMPLER_2D_BACKWARD(float);
REGISTER_GRID_SAMPLER_2D_BACKWARD(half);
"""
HOST_FUNCTION = """\
std::tuple<Tensor, Tensor> grid_sampler_2d_backward_mps(const Tensor& grad_output,
                                                        const Tensor& input,
                                                        const Tensor& grid,
                                                        std::array<bool, 2> output_mask) {
  TORCH_CHECK(grad_output.size(0) == input.size(0), "one batch for all");
  Tensor grad_input = output_mask[0] ? at::zeros(input.sizes(), input.options()) : Tensor();
  Tensor grad_grid = at::empty(grid.sizes(), grid.options());
  launch(grad_input, grad_grid, grad_output, input, grid);
  return {grad_input, grad_grid};
}
"""
TEST_MEMBERS = """\
    def test_grid_sampler_2d_backward(self):
        for size in [(2, 3, 5, 7), (1, 1, 1, 4)]:
            self.check_against_float64(torch.randn(size), torch.rand(size[0], 4, 6, 2) * 3 - 1.5)
"""


def _fragments(mark: str, **named: str) -> bytes:
    return "".join(f"{mark} fragment: {name}\n{text}{mark} end fragment\n" for name, text in named.items()).encode()


OVERLAY = {
    HEADER: _fragments("//", params=PARAMS),
    METAL: _fragments("//", kernels=KERNELS),
    HOST: _fragments("//", zeros_include="#include <ATen/ops/zeros.h>\n", host=HOST_FUNCTION),
    TESTS: _fragments("#", tests=TEST_MEMBERS),
}

BEFORE = {
    NATIVE: b"""\
- func: grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, bool[2] mask) -> (Tensor, Tensor)
  dispatch:
    CPU: grid_sampler_2d_backward_cpu
    CUDA: grid_sampler_2d_backward_cuda

- func: grid_sampler_3d(Tensor input, Tensor grid) -> Tensor
  dispatch:
    CPU: grid_sampler_3d_cpu
""",
    HEADER: b"""\
#pragma once
#include <c10/metal/common.h>

template <unsigned N>
struct GridSamplerParams {
  ::c10::metal::array<int32_t, N> sizes;
};
""",
    METAL: b"""\
#include <ATen/native/mps/kernels/GridSampler.h>
using namespace metal;

template <typename T>
kernel void grid_sampler_2d(device T* output [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  output[tid] = 0;
}

#define REGISTER_GRID_SAMPLER_OPS(T) \\
  template [[host_name("grid_sampler_2d_" #T)]] kernel void grid_sampler_2d<T>(device T*, uint);

REGISTER_GRID_SAMPLER_OPS(float);
""",
    HOST: b"""\
#include <ATen/ops/empty.h>
#include <ATen/ops/grid_sampler_2d_native.h>

namespace at::native {

Tensor grid_sampler_2d_mps(const Tensor& input, const Tensor& grid) {
  Tensor output = at::empty(grid.sizes(), input.options());
  return output;
}

Tensor grid_sampler_3d_mps(const Tensor& input, const Tensor& grid) {
  return at::empty(grid.sizes(), input.options());
}

} // namespace at::native
""",
    LISTS: b'XFAILLIST_GRAD = {\n    "grid_sampler_2d": None,\n    "masked.scatter": None,\n}\n',
    TESTS: b"class TestMPS(TestCase):\n    def test_grid_sampler_2d(self):\n        self.forward()\n",
}

# Of after April 2026: a kernel for each gradient, a preamble in a type of its own, one host function behind the key.
UPSTREAM_KERNELS = """\

// ---- gradients ----

// Where a thread works.
template <typename T>
struct BackwardPreamble {
  int n;
  float x, y;
};

// Adds to the four neighbours.
template <typename T>
kernel void grid_sampler_2d_backward_bilinear_input(
    device AtomicType_t<T>* gi [[buffer(0)]],
    constant GridSamplerBackwardParams<4>& p [[buffer(1)]],
    uint id [[thread_position_in_grid]]) {
  BackwardPreamble<T> where;
  where.n = id % p.forward.sizes[0];
  AtomicType<T>::atomic_add(gi, where.n, T(1));
}

template <typename T>
kernel void grid_sampler_2d_backward_bilinear_grid(
    device T* gg [[buffer(0)]],
    constant GridSamplerBackwardParams<4>& p [[buffer(1)]],
    uint id [[thread_position_in_grid]]) {
  gg[id * p.grad_grid_strides[2]] = T(0);
}

#define REGISTER_GRID_SAMPLER_2D_BACKWARD_GRID(DTYPE) \\
  template [[host_name("grid_sampler_2d_backward_bilinear_grid_" #DTYPE)]] kernel void \\
  grid_sampler_2d_backward_bilinear_grid<DTYPE>(device DTYPE*, constant GridSamplerBackwardParams<4>&, uint);

#define REGISTER_GRID_SAMPLER_2D_BACKWARD(DTYPE, INTERP) \\
  template [[host_name("grid_sampler_2d_backward_" #INTERP "_" #DTYPE)]] kernel void \\
  grid_sampler_2d_backward_##INTERP<DTYPE>( \\
      device AtomicType_t<DTYPE>*, constant GridSamplerBackwardParams<4>&, uint);

REGISTER_GRID_SAMPLER_2D_BACKWARD_GRID(float);
REGISTER_GRID_SAMPLER_2D_BACKWARD(float, bilinear_input);
REGISTER_GRID_SAMPLER_2D_BACKWARD(half, bilinear_input);
"""
UPSTREAM_PARAMS = """\

template <unsigned N = 5>
struct GridSamplerBackwardParams {
  GridSamplerParams<N> forward;
  ::c10::metal::array<int32_t, N> grad_grid_strides;
  GridSamplerPadding padding_mode;
};
"""
UPSTREAM_HOST = """\
std::tuple<Tensor, Tensor> grid_sampler_2d_backward_mps(const Tensor& grad_output,
                                                        const Tensor& input,
                                                        const Tensor& grid,
                                                        std::array<bool, 2> output_mask) {
  auto stream = mps::getCurrentMPSStream();
  if (output_mask[0]) {
    stream->encode("grid_sampler_2d_backward_bilinear_input", input.numel());
  }
  stream->encode("grid_sampler_2d_backward_bilinear_grid", grid.numel());
  return std::make_tuple(at::zeros_like(input), at::empty_like(grid));
}

"""


def replaced(tree: dict[str, bytes], path: str, old: str | bytes, new: str | bytes) -> dict[str, bytes]:
    """The tree with one text of one file put for another, which must be there."""
    before, after = (text.encode() if isinstance(text, str) else text for text in (old, new))
    assert before in tree[path], f"{path} has no {before!r}"
    return {**tree, path: tree[path].replace(before, after)}


def after_april() -> dict[str, bytes]:
    """The tree in which upstream has a backward of its own."""
    tree = replaced(BEFORE, NATIVE, "backward_cuda\n", "backward_cuda\n    MPS: grid_sampler_2d_backward_mps\n")
    tree = {**tree, HEADER: tree[HEADER] + UPSTREAM_PARAMS.encode(), METAL: tree[METAL] + UPSTREAM_KERNELS.encode()}
    tree = replaced(tree, HOST, "} // namespace at::native", UPSTREAM_HOST + "} // namespace at::native")
    return replaced(tree, LISTS, '    "grid_sampler_2d": None,\n', "")
