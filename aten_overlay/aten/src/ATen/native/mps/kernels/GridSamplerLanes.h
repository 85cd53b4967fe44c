#pragma once
#include <c10/metal/common.h>

// The values are those of at::native::GridSamplerPadding.
enum class GridSamplerLanesPadding { Zeros, Border, Reflection };

// Arguments of the kernels that compute the gradients of a grid sampler, in the
// layout that host and kernel share. `idx_type_t` is wide enough for the
// offsets within an image; sizes and strides count elements.
template <unsigned N = 4, typename idx_type_t = int32_t>
struct GridSamplerLanesParams {
  ::c10::metal::array<idx_type_t, N> grad_output_sizes;
  ::c10::metal::array<idx_type_t, N> grad_output_strides;
  ::c10::metal::array<idx_type_t, N> input_sizes;
  ::c10::metal::array<idx_type_t, N> grid_strides;
  // Where the launch begins: one launch counts its threads in 32 bits, so a
  // larger grid takes several.
  idx_type_t first_position;
  // Not template parameters: branches that are the same for all threads cost
  // little, and each parameter would multiply the number of kernels.
  GridSamplerLanesPadding padding_mode;
  bool align_corners;
  bool compute_grad_input;
};

// Arguments of the kernels that transpose an image of rows and columns:
// channels and pixels, or pixels and channels.
struct GridSamplerTransposeParams {
  int32_t rows;
  int32_t columns;
  bool zeroes_sums;
};
