// What lands are the fragments between the marker lines; the rest is context
// that lets this file be read and compiled alone.
#pragma once
#include <c10/metal/common.h>

// fragment: backward_params
// Arguments of the grid sampler's backward kernels, in the layout that host
// and kernel share. `idx_type_t` is wide enough for the largest offset into any
// of the tensors; sizes and strides count elements.
template <unsigned N = 4, typename idx_type_t = int32_t>
struct GridSamplerGradientParams {
  ::c10::metal::array<idx_type_t, N> grad_output_sizes;
  ::c10::metal::array<idx_type_t, N> grad_output_strides;
  ::c10::metal::array<idx_type_t, N> input_sizes;
  ::c10::metal::array<idx_type_t, N> input_strides;
  ::c10::metal::array<idx_type_t, N> grid_strides;
  ::c10::metal::array<idx_type_t, N> grad_input_strides;
  // Sampling position of the launch's thread 0: one launch counts its threads
  // in 32 bits, so a larger grid takes several.
  idx_type_t first_position;
  bool align_corners;
  // Not a template parameter: the branch is the same for all threads and
  // nothing beside the atomics it skips, while it would double the kernels.
  bool compute_grad_input;
};
// end fragment

// fragment: forward_params
// Arguments of the grid_sampler_3d kernels; as for the backward kernels.
template <unsigned N = 5, typename idx_type_t = int32_t>
struct GridSamplerForwardParams {
  ::c10::metal::array<idx_type_t, N> output_sizes;
  ::c10::metal::array<idx_type_t, N> output_strides;
  ::c10::metal::array<idx_type_t, N> input_sizes;
  ::c10::metal::array<idx_type_t, N> input_strides;
  ::c10::metal::array<idx_type_t, N> grid_strides;
  idx_type_t first_position;
  bool align_corners;
};
// end fragment
