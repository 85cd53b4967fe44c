// What lands are the fragments between the marker lines: a hook in each host
// function of the backward, after its checks. The functions around them are
// context, with the parameters that the trees' functions have.
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/mps/OperationUtils.h>
// fragment: lanes_include
#include <ATen/native/mps/operations/GridSamplerLanes.h>
// end fragment

namespace at::native {

std::tuple<Tensor, Tensor> grid_sampler_2d_backward_mps(const Tensor& grad_output,
                                                        const Tensor& input,
                                                        const Tensor& grid,
                                                        int64_t _interpolation_mode,
                                                        int64_t _padding_mode,
                                                        bool align_corners,
                                                        std::array<bool, 2> output_mask) {
  // fragment: lanes_hook_2d
  if (auto gradients = mps::grid_sampler_backward_lanes(
          grad_output, input, grid, _interpolation_mode, _padding_mode, align_corners, output_mask[0])) {
    return *std::move(gradients);
  }
  // end fragment
  Tensor grad_input;
  return std::make_tuple(grad_input, grad_input);
}

std::tuple<Tensor, Tensor> grid_sampler_3d_backward_mps(const Tensor& grad_output,
                                                        const Tensor& input,
                                                        const Tensor& grid,
                                                        int64_t interpolation_mode,
                                                        int64_t padding_mode,
                                                        bool align_corners,
                                                        std::array<bool, 2> output_mask) {
  // fragment: lanes_hook
  if (auto gradients = mps::grid_sampler_backward_lanes(
          grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask[0])) {
    return *std::move(gradients);
  }
  // end fragment
  Tensor grad_input;
  return std::make_tuple(grad_input, grad_input);
}

} // namespace at::native
