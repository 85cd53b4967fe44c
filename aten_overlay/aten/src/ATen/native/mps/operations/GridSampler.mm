// What lands are the fragments between the marker lines; the rest is context
// that lets this file be read and compiled alone.
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
// fragment: context_include
#include <ATen/Context.h>
// end fragment
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/native/mps/kernels/GridSampler.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/empty.h>
// fragment: backward_native_include
#include <ATen/ops/grid_sampler_2d_backward_native.h>
// end fragment
// fragment: zeros_include
#include <ATen/ops/zeros.h>
// end fragment
#endif

namespace at::native {

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/GridSampler_metallib.h>
#endif

namespace mps {

// The forward functions' helpers, which the fragments below call.
static const char* interp_to_string(GridSamplerInterpolation mode) {
  return mode == GridSamplerInterpolation::Bilinear ? "bilinear"
      : mode == GridSamplerInterpolation::Nearest   ? "nearest"
                                                    : "bicubic";
}

static const char* padding_to_string(GridSamplerPadding mode) {
  return mode == GridSamplerPadding::Zeros ? "zeros" : mode == GridSamplerPadding::Border ? "border" : "reflection";
}

// fragment: grid_sampler_2d_backward_impl
// The op is reachable without going through grid_sampler, see NOTE [ grid_sampler Native Functions ], and the kernel
// trusts all that is checked here.
static void check_grid_sampler_2d_backward(const Tensor& grad_output,
                                           const Tensor& input,
                                           const Tensor& grid,
                                           int64_t interpolation_mode,
                                           int64_t padding_mode) {
  check_grid_sampler_common(input, grid);
  check_grid_sampler_2d(input, grid);
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(input), "grid_sampler_2d_backward is not supported for ", input.scalar_type(), " on MPS");
  TORCH_CHECK(input.scalar_type() == grid.scalar_type() && input.scalar_type() == grad_output.scalar_type(),
              "grid_sampler_2d_backward: expected grad_output, input and grid to have the same type, but got ",
              grad_output.scalar_type(),
              ", ",
              input.scalar_type(),
              " and ",
              grid.scalar_type());
  TORCH_CHECK(grad_output.device() == input.device(),
              "grid_sampler_2d_backward: expected grad_output to be on ",
              input.device(),
              ", but it is on ",
              grad_output.device());
  TORCH_CHECK(grad_output.layout() == kStrided,
              "grid_sampler_2d_backward: expected grad_output to have torch.strided layout, but it has ",
              grad_output.layout());
  const std::array<int64_t, 4> output_sizes{input.size(0), input.size(1), grid.size(1), grid.size(2)};
  TORCH_CHECK(grad_output.sizes() == IntArrayRef(output_sizes),
              "grid_sampler_2d_backward: expected grad_output to have sizes ",
              IntArrayRef(output_sizes),
              ", but got ",
              grad_output.sizes());
  TORCH_CHECK(interpolation_mode >= static_cast<int64_t>(GridSamplerInterpolation::Bilinear) &&
                  interpolation_mode <= static_cast<int64_t>(GridSamplerInterpolation::Bicubic),
              "grid_sampler_2d_backward: unrecognised interpolation mode: ",
              interpolation_mode);
  TORCH_CHECK(padding_mode >= static_cast<int64_t>(GridSamplerPadding::Zeros) &&
                  padding_mode <= static_cast<int64_t>(GridSamplerPadding::Reflection),
              "grid_sampler_2d_backward: unrecognised padding mode: ",
              padding_mode);
  // The kernel counts pixels in 32 bits, and for reflection up to twice the axis.
  constexpr int64_t max_axis_size = int64_t{1} << 30;
  TORCH_CHECK(input.size(2) < max_axis_size && input.size(3) < max_axis_size,
              "grid_sampler_2d_backward: expected input height and width below ",
              max_axis_size,
              " on MPS, but got sizes ",
              input.sizes());
}

// grad_input is a zero-filled float tensor, or undefined if it is not asked for; grad_grid is contiguous.
template <typename idx_type_t>
static void grid_sampler_2d_backward_mps_impl(const Tensor& grad_input,
                                              const Tensor& grad_grid,
                                              const Tensor& grad_output,
                                              const Tensor& input,
                                              const Tensor& grid,
                                              GridSamplerInterpolation interpolation_mode,
                                              GridSamplerPadding padding_mode,
                                              bool align_corners) {
  GridSamplerBackwardParams<4, idx_type_t> params{};
  params.align_corners = align_corners;
  params.compute_grad_input = grad_input.defined();
  for (const auto dim : c10::irange(4)) {
    params.grad_output_sizes[dim] = static_cast<idx_type_t>(grad_output.size(dim));
    params.grad_output_strides[dim] = static_cast<idx_type_t>(grad_output.stride(dim));
    params.input_sizes[dim] = static_cast<idx_type_t>(input.size(dim));
    params.input_strides[dim] = static_cast<idx_type_t>(input.stride(dim));
    params.grid_strides[dim] = static_cast<idx_type_t>(grid.stride(dim));
    params.grad_input_strides[dim] = grad_input.defined() ? static_cast<idx_type_t>(grad_input.stride(dim)) : 0;
  }

  const auto kernel = fmt::format("grid_sampler_2d_backward_{}_{}_{}{}",
                                  interp_to_string(interpolation_mode),
                                  padding_to_string(padding_mode),
                                  scalarToMetalTypeString(input),
                                  std::is_same_v<idx_type_t, int64_t> ? "_int64" : "");
  // Metal wants a buffer in every slot, also in one that the kernel leaves alone.
  const Tensor& grad_input_slot = grad_input.defined() ? grad_input : grad_grid;
  const int64_t positions = grid.size(0) * grid.size(1) * grid.size(2);
  constexpr int64_t max_launch = int64_t{1} << 30;
  MPSStream* mpsStream = getCurrentMPSStream();

  dispatch_sync_with_rethrow(mpsStream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = mpsStream->commandEncoder();
      auto pso = lib.getPipelineStateForFunc(kernel);
      getMPSProfiler().beginProfileKernel(pso, kernel, {grad_output, input, grid});
      [computeEncoder setComputePipelineState:pso];
      auto launch_params = params;
      for (int64_t first = 0; first < positions; first += max_launch) {
        launch_params.first_position = static_cast<idx_type_t>(first);
        mtl_setArgs(computeEncoder, grad_input_slot, grad_grid, grad_output, input, grid, launch_params);
        mtl_dispatch1DJob(computeEncoder, pso, std::min(positions - first, max_launch));
      }
      getMPSProfiler().endProfileKernel(pso);
    }
  });
}
// end fragment

} // namespace mps

// fragment: grid_sampler_2d_backward_mps
std::tuple<Tensor, Tensor> grid_sampler_2d_backward_mps(const Tensor& grad_output,
                                                        const Tensor& input,
                                                        const Tensor& grid,
                                                        int64_t interpolation_mode,
                                                        int64_t padding_mode,
                                                        bool align_corners,
                                                        std::array<bool, 2> output_mask) {
  mps::check_grid_sampler_2d_backward(grad_output, input, grid, interpolation_mode, padding_mode);
  // Only output_mask[0] is looked at: grad_grid is always computed, as on the other backends.
  const bool compute_grad_input = output_mask[0];
  if (compute_grad_input) {
    // The order of the atomic additions is not determined.
    globalContext().alertNotDeterministic("grid_sampler_2d_backward_mps");
  }

  Tensor grad_input;
  if (compute_grad_input) {
    // Summed in float for every dtype, rounded once below.
    grad_input = at::zeros(input.sizes(), input.options().dtype(kFloat));
  }
  // Without channels there is nothing to sum, but grad_grid has elements all the same.
  Tensor grad_grid =
      grad_output.numel() == 0 ? at::zeros(grid.sizes(), grid.options()) : at::empty(grid.sizes(), grid.options());

  if (grad_output.numel() != 0) {
    const bool use_32bit_index = canUse32BitIndexMath(grad_output) && canUse32BitIndexMath(input) &&
        canUse32BitIndexMath(grid) && canUse32BitIndexMath(grad_grid) &&
        (!compute_grad_input || canUse32BitIndexMath(grad_input));
    const auto impl = use_32bit_index ? mps::grid_sampler_2d_backward_mps_impl<int32_t>
                                      : mps::grid_sampler_2d_backward_mps_impl<int64_t>;
    impl(grad_input,
         grad_grid,
         grad_output,
         input,
         grid,
         static_cast<GridSamplerInterpolation>(interpolation_mode),
         static_cast<GridSamplerPadding>(padding_mode),
         align_corners);
  }

  if (compute_grad_input) {
    grad_input = grad_input.to(input.scalar_type());
  }
  return std::make_tuple(std::move(grad_input), std::move(grad_grid));
}
// end fragment

} // namespace at::native
