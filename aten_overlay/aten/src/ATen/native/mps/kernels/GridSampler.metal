// What lands are the fragments between the marker lines; the rest is context
// that lets this file be read and compiled alone.
#include <ATen/native/mps/kernels/GridSampler.h>
// fragment: window_include
#include <ATen/native/mps/kernels/GridSamplerWindow.h>
// end fragment
// fragment: atomic_include
#include <c10/metal/atomic.h>
// end fragment
#include <c10/metal/utils.h>
#include <metal_array>
#include <metal_stdlib>

using namespace metal;
using namespace c10::metal;

// fragment: grid_sampler_3d_kernel
// 3D grid sampler: one thread per sampling position, which walks the channels.
template <typename Interp, typename T, typename idx_t>
kernel void grid_sampler_3d(
    device T* output [[buffer(0)]],
    const device T* input [[buffer(1)]],
    const device T* grid [[buffer(2)]],
    constant GridSamplerForwardParams<5, idx_t>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  const auto where = GridPosition<3, idx_t>::of_thread(
      params.first_position + static_cast<idx_t>(tid), params.output_sizes);
  using Window = GridWindow<3, Interp>;
  const auto window = Window::around(
      grid + where.grid_offset(params.grid_strides),
      params.grid_strides[4],
      params.input_sizes,
      params.align_corners);

  idx_t input_channel = where.index[0] * params.input_strides[0];
  idx_t output_offset = where.output_offset(params.output_strides);
  for (idx_t c = 0; c < params.output_sizes[1]; ++c) {
    float sum = 0.0f;
#pragma unroll
    for (int32_t pixel = 0; pixel < Window::pixels_count; ++pixel) {
      if (window.is_inside(pixel)) {
        const auto value = static_cast<float>(
            input[input_channel + window.offset(pixel, params.input_strides)]);
        sum += window.weight(pixel) * value;
      }
    }
    output[output_offset] = static_cast<T>(sum);
    input_channel += params.input_strides[1];
    output_offset += params.output_strides[1];
  }
}
// end fragment

// fragment: grid_sampler_3d_instantiation
#define REGISTER_GRID_SAMPLER_3D_KERNEL(interp, I, pad, P, T, idx, X)       \
  template[                                                                 \
      [host_name("grid_sampler_3d_" #interp "_" pad "_" #T X)]] kernel void \
  grid_sampler_3d<I<P>, T, idx>(                                            \
      device T * output [[buffer(0)]],                                      \
      const device T* input [[buffer(1)]],                                  \
      const device T* grid [[buffer(2)]],                                   \
      constant GridSamplerForwardParams<5, idx>& params [[buffer(3)]],      \
      uint tid [[thread_position_in_grid]]);
// end fragment

// fragment: grid_sampler_3d_registration
// PAD is a padding of the 2D kernels; Grid##PAD is its like for any number of
// axes.
#define REGISTER_GRID_SAMPLER_3D(T, PAD, pad)                       \
  REGISTER_GRID_SAMPLER_3D_KERNEL(                                  \
      bilinear, GridBilinear, pad, Grid##PAD, T, int32_t, "")       \
  REGISTER_GRID_SAMPLER_3D_KERNEL(                                  \
      nearest, GridNearest, pad, Grid##PAD, T, int32_t, "")         \
  REGISTER_GRID_SAMPLER_3D_KERNEL(                                  \
      bilinear, GridBilinear, pad, Grid##PAD, T, int64_t, "_int64") \
  REGISTER_GRID_SAMPLER_3D_KERNEL(                                  \
      nearest, GridNearest, pad, Grid##PAD, T, int64_t, "_int64")
// end fragment

// The forward kernels' registrations.
#define REGISTER_GRID_SAMPLER_OPS(T)               \
  REGISTER_GRID_SAMPLER_3D(T, PadZeros, "zeros")   \
  REGISTER_GRID_SAMPLER_3D(T, PadBorder, "border") \
  REGISTER_GRID_SAMPLER_3D(T, PadReflection, "reflection")

REGISTER_GRID_SAMPLER_OPS(float);
REGISTER_GRID_SAMPLER_OPS(half);
REGISTER_GRID_SAMPLER_OPS(bfloat);

// fragment: backward_kernels
// Gradients of a grid sampler over D axes. One thread per sampling position
// walks the channels. grad_input is summed in float whatever T is: 16-bit sums
// stop growing at 2048 (half) or 256 (bfloat), and 16-bit atomics are emulated
// and slow. grad_grid is contiguous.
template <int32_t D, typename Interp, typename T, typename idx_t>
kernel void grid_sampler_backward(
    device atomic<float>* grad_input [[buffer(0)]],
    device T* grad_grid [[buffer(1)]],
    const device T* grad_output [[buffer(2)]],
    const device T* input [[buffer(3)]],
    const device T* grid [[buffer(4)]],
    constant GridSamplerGradientParams<D + 2, idx_t>& params [[buffer(5)]],
    uint tid [[thread_position_in_grid]]) {
  const idx_t position = params.first_position + static_cast<idx_t>(tid);
  const auto where =
      GridPosition<D, idx_t>::of_thread(position, params.grad_output_sizes);
  using Window = GridWindow<D, Interp>;
  const auto window = Window::around(
      grid + where.grid_offset(params.grid_strides),
      params.grid_strides[D + 1],
      params.input_sizes,
      params.align_corners);

  const idx_t grad_output_start =
      where.output_offset(params.grad_output_strides);
  const idx_t input_start = where.index[0] * params.input_strides[0];
  const idx_t grad_input_start = where.index[0] * params.grad_input_strides[0];
  const bool compute_grad_input = params.compute_grad_input;
  float grad_position[D] = {};

  for (idx_t c = 0; c < params.grad_output_sizes[1]; ++c) {
    const auto grad = static_cast<float>(
        grad_output[grad_output_start + c * params.grad_output_strides[1]]);
    const idx_t input_channel = input_start + c * params.input_strides[1];
    const idx_t grad_input_channel =
        grad_input_start + c * params.grad_input_strides[1];
    float values[Window::pixels_count] = {}; // padding stays 0

#pragma unroll
    for (int32_t pixel = 0; pixel < Window::pixels_count; ++pixel) {
      if (!window.is_inside(pixel)) {
        continue;
      }
      if (compute_grad_input) {
        AtomicType<float>::atomic_add(
            grad_input,
            grad_input_channel +
                window.offset(pixel, params.grad_input_strides),
            window.weight(pixel) * grad);
      }
      if (Interp::is_differentiable) {
        values[pixel] = static_cast<float>(
            input[input_channel + window.offset(pixel, params.input_strides)]);
      }
    }
    if (Interp::is_differentiable) {
#pragma unroll
      for (int32_t axis = 0; axis < D; ++axis) {
        grad_position[axis] += window.slope(axis, values) * grad;
      }
    }
  }

  for (int32_t axis = 0; axis < D; ++axis) {
    grad_grid[D * position + (D - 1 - axis)] =
        static_cast<T>(window.axes[axis].derivative * grad_position[axis]);
  }
}

#define REGISTER_GRID_GRADIENTS_PADDING(D, interp, I, pad, P, T, idx, X)    \
  template[[host_name(                                                      \
      "grid_sampler_" #D "d_backward_" #interp "_" #pad                     \
      "_" #T X)]] kernel void                                               \
  grid_sampler_backward<D, I<P>, T, idx>(                                   \
      device atomic<float> * grad_input [[buffer(0)]],                      \
      device T * grad_grid [[buffer(1)]],                                   \
      const device T* grad_output [[buffer(2)]],                            \
      const device T* input [[buffer(3)]],                                  \
      const device T* grid [[buffer(4)]],                                   \
      constant GridSamplerGradientParams<D + 2, idx>& params [[buffer(5)]], \
      uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_GRADIENTS(D, interp, I, T, idx, X) \
  REGISTER_GRID_GRADIENTS_PADDING(                       \
      D, interp, I, zeros, GridPadZeros, T, idx, X)      \
  REGISTER_GRID_GRADIENTS_PADDING(                       \
      D, interp, I, border, GridPadBorder, T, idx, X)    \
  REGISTER_GRID_GRADIENTS_PADDING(                       \
      D, interp, I, reflection, GridPadReflection, T, idx, X)

#define REGISTER_GRID_GRADIENTS_2D(T, idx, X)                   \
  REGISTER_GRID_GRADIENTS(2, bilinear, GridBilinear, T, idx, X) \
  REGISTER_GRID_GRADIENTS(2, nearest, GridNearest, T, idx, X)   \
  REGISTER_GRID_GRADIENTS(2, bicubic, GridBicubic, T, idx, X)

REGISTER_GRID_GRADIENTS_2D(float, int32_t, "");
REGISTER_GRID_GRADIENTS_2D(half, int32_t, "");
REGISTER_GRID_GRADIENTS_2D(bfloat, int32_t, "");
REGISTER_GRID_GRADIENTS_2D(float, int64_t, "_int64");
REGISTER_GRID_GRADIENTS_2D(half, int64_t, "_int64");
REGISTER_GRID_GRADIENTS_2D(bfloat, int64_t, "_int64");
// end fragment

// fragment: backward_3d_registration
#define REGISTER_GRID_GRADIENTS_3D(T, idx, X)                   \
  REGISTER_GRID_GRADIENTS(3, bilinear, GridBilinear, T, idx, X) \
  REGISTER_GRID_GRADIENTS(3, nearest, GridNearest, T, idx, X)

REGISTER_GRID_GRADIENTS_3D(float, int32_t, "");
REGISTER_GRID_GRADIENTS_3D(half, int32_t, "");
REGISTER_GRID_GRADIENTS_3D(bfloat, int32_t, "");
REGISTER_GRID_GRADIENTS_3D(float, int64_t, "_int64");
REGISTER_GRID_GRADIENTS_3D(half, int64_t, "_int64");
REGISTER_GRID_GRADIENTS_3D(bfloat, int64_t, "_int64");
// end fragment
