#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace at::native::mps {

// Gradients of a grid sampler by kernels that divide a sampling position among
// lanes, if these kernels suit the call; otherwise the caller's own kernels are
// to be used. The caller has checked its arguments as the op requires.
//
// Takes what the backward op takes, with output_mask[0] as compute_grad_input.
// Returns (grad_input, grad_grid), both contiguous; grad_input is undefined if
// it is not asked for.
std::optional<std::tuple<Tensor, Tensor>> grid_sampler_backward_lanes(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& grid,
    int64_t interpolation_mode,
    int64_t padding_mode,
    bool align_corners,
    bool compute_grad_input);

} // namespace at::native::mps
