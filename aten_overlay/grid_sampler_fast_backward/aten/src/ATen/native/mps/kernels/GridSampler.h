// What lands are the fragments between the marker lines; the rest is context
// that lets this file be read and compiled alone.
#pragma once
#include <c10/metal/common.h>

#ifdef __METAL__
enum class GridSamplerPadding { Zeros, Border, Reflection };
#else
#include <ATen/native/GridSamplerUtils.h>
using at::native::GridSamplerPadding;
#endif

// fragment: gradient_params
// Arguments of the grid sampler's backward kernels, in the layout that host
// and kernel share. `idx_type_t` is wide enough for the offsets that a kernel
// computes in it; sizes and strides count elements.
template <unsigned N = 4, typename idx_type_t = int32_t>
struct GridSamplerGradientParams {
  ::c10::metal::array<idx_type_t, N> grad_output_sizes;
  ::c10::metal::array<idx_type_t, N> grad_output_strides;
  ::c10::metal::array<idx_type_t, N> input_sizes;
  ::c10::metal::array<idx_type_t, N> input_strides;
  ::c10::metal::array<idx_type_t, N> grid_strides;
  ::c10::metal::array<idx_type_t, N> grad_input_strides;
  // Where the launch begins: one launch counts its threads in 32 bits, so a
  // larger grid takes several.
  idx_type_t first_position;
  // Neither of these is a template parameter: a branch that is the same for all
  // threads costs nothing beside what is behind it, while each would multiply
  // the number of kernels.
  GridSamplerPadding padding_mode;
  bool align_corners;
  bool compute_grad_input;
};

// Arguments of the kernels that bring a tensor of (batch, channels, pixels) to
// channels-last memory and back.
struct GridSamplerTurnParams {
  int32_t channels;
  int32_t pixels; // of one image
  bool zeroes_sums;
};
// end fragment
