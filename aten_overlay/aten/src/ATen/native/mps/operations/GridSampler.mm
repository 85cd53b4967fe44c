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
// fragment: backward_3d_native_include
#include <ATen/ops/grid_sampler_3d_backward_native.h>
// end fragment
#include <ATen/ops/grid_sampler_3d_native.h>
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

// fragment: grid_sampler_checks
// The ops are reachable without going through grid_sampler, see NOTE [ grid_sampler Native Functions ], and the kernels
// trust all that is checked here, after check_grid_sampler_common and the op's own check of the dimensions.
static void check_grid_sampler_arguments(const char* op,
                                         const Tensor& input,
                                         const Tensor& grid,
                                         int64_t interpolation_mode,
                                         int64_t padding_mode) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      supportedFloatingType(input), op, " is not supported for ", input.scalar_type(), " on MPS");
  TORCH_CHECK(input.scalar_type() == grid.scalar_type(),
              op,
              ": expected input and grid to have the same type, but got ",
              input.scalar_type(),
              " and ",
              grid.scalar_type());
  TORCH_CHECK(interpolation_mode >= static_cast<int64_t>(GridSamplerInterpolation::Bilinear) &&
                  interpolation_mode <= static_cast<int64_t>(GridSamplerInterpolation::Bicubic),
              op,
              ": unrecognised interpolation mode: ",
              interpolation_mode);
  TORCH_CHECK(padding_mode >= static_cast<int64_t>(GridSamplerPadding::Zeros) &&
                  padding_mode <= static_cast<int64_t>(GridSamplerPadding::Reflection),
              op,
              ": unrecognised padding mode: ",
              padding_mode);
  // The kernels count pixels in 32 bits, and for reflection up to twice the axis.
  constexpr int64_t max_axis_size = int64_t{1} << 30;
  for (const auto size : input.sizes().slice(2)) {
    TORCH_CHECK(size < max_axis_size,
                op,
                ": expected spatial dimensions of input below ",
                max_axis_size,
                " on MPS, but got sizes ",
                input.sizes());
  }
}

static void check_grid_sampler_gradient(const char* op,
                                        const Tensor& grad_output,
                                        const Tensor& input,
                                        const Tensor& grid) {
  TORCH_CHECK(grad_output.scalar_type() == input.scalar_type(),
              op,
              ": expected grad_output and input to have the same type, but got ",
              grad_output.scalar_type(),
              " and ",
              input.scalar_type());
  TORCH_CHECK(grad_output.device() == input.device(),
              op,
              ": expected grad_output to be on ",
              input.device(),
              ", but it is on ",
              grad_output.device());
  TORCH_CHECK(grad_output.layout() == kStrided,
              op,
              ": expected grad_output to have torch.strided layout, but it has ",
              grad_output.layout());
  DimVector output_sizes(grid.sizes().slice(0, grid.dim() - 1));
  output_sizes.insert(output_sizes.begin() + 1, input.size(1));
  TORCH_CHECK(grad_output.sizes() == IntArrayRef(output_sizes),
              op,
              ": expected grad_output to have sizes ",
              IntArrayRef(output_sizes),
              ", but got ",
              grad_output.sizes());
}

// Whether 32 bits hold every offset into the tensors; undefined ones are not asked.
static bool grid_sampler_fits_32_bits(TensorList tensors) {
  return std::all_of(
      tensors.begin(), tensors.end(), [](const Tensor& t) { return !t.defined() || canUse32BitIndexMath(t); });
}
// end fragment

// fragment: grid_sampler_dims
// Sizes or strides, as the kernels take them.
template <unsigned N, typename idx_type_t>
static c10::metal::array<idx_type_t, N> grid_sampler_dims(IntArrayRef values) {
  TORCH_INTERNAL_ASSERT_DEBUG_ONLY(values.size() == N);
  c10::metal::array<idx_type_t, N> dims;
  std::transform(values.begin(), values.end(), dims.begin(), [](int64_t v) { return static_cast<idx_type_t>(v); });
  return dims;
}
// end fragment

// fragment: grid_sampler_backward_impl
// Runs a kernel of the op, one thread per sampling position. It takes the tensors, of which grid is the last, then
// params.
template <typename idx_type_t, typename params_type_t>
static void launch_grid_sampler(const char* op,
                                TensorList tensors,
                                const params_type_t& params,
                                GridSamplerInterpolation interpolation_mode,
                                GridSamplerPadding padding_mode) {
  const Tensor& grid = tensors.back();
  const auto kernel = fmt::format("{}_{}_{}_{}{}",
                                  op,
                                  interp_to_string(interpolation_mode),
                                  padding_to_string(padding_mode),
                                  scalarToMetalTypeString(grid),
                                  std::is_same_v<idx_type_t, int64_t> ? "_int64" : "");
  // A launch counts its threads in 32 bits, so a larger grid takes several.
  const int64_t positions = grid.numel() / grid.size(-1);
  constexpr int64_t max_launch = int64_t{1} << 30;
  MPSStream* mpsStream = getCurrentMPSStream();

  dispatch_sync_with_rethrow(mpsStream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = mpsStream->commandEncoder();
      auto pso = lib.getPipelineStateForFunc(kernel);
      getMPSProfiler().beginProfileKernel(pso, kernel, tensors);
      [computeEncoder setComputePipelineState:pso];
      for (const auto slot : c10::irange(tensors.size())) {
        mtl_setBuffer(computeEncoder, tensors[slot], slot);
      }
      auto launch_params = params;
      for (int64_t first = 0; first < positions; first += max_launch) {
        launch_params.first_position = static_cast<idx_type_t>(first);
        mtl_setBytes(computeEncoder, launch_params, tensors.size());
        mtl_dispatch1DJob(computeEncoder, pso, std::min(positions - first, max_launch));
      }
      getMPSProfiler().endProfileKernel(pso);
    }
  });
}

// grad_input is a zero-filled float tensor, or undefined if it is not asked for; grad_grid is contiguous.
template <unsigned N, typename idx_type_t>
static void grid_sampler_backward_mps_impl(const char* op,
                                           const Tensor& grad_input,
                                           const Tensor& grad_grid,
                                           const Tensor& grad_output,
                                           const Tensor& input,
                                           const Tensor& grid,
                                           GridSamplerInterpolation interpolation_mode,
                                           GridSamplerPadding padding_mode,
                                           bool align_corners) {
  GridSamplerGradientParams<N, idx_type_t> params{};
  params.grad_output_sizes = grid_sampler_dims<N, idx_type_t>(grad_output.sizes());
  params.grad_output_strides = grid_sampler_dims<N, idx_type_t>(grad_output.strides());
  params.input_sizes = grid_sampler_dims<N, idx_type_t>(input.sizes());
  params.input_strides = grid_sampler_dims<N, idx_type_t>(input.strides());
  params.grid_strides = grid_sampler_dims<N, idx_type_t>(grid.strides());
  params.align_corners = align_corners;
  params.compute_grad_input = grad_input.defined();
  if (grad_input.defined()) {
    params.grad_input_strides = grid_sampler_dims<N, idx_type_t>(grad_input.strides());
  }
  // Metal wants a buffer in every slot, also in one that the kernel leaves alone.
  const Tensor& grad_input_slot = grad_input.defined() ? grad_input : grad_grid;
  launch_grid_sampler<idx_type_t>(
      op, {grad_input_slot, grad_grid, grad_output, input, grid}, params, interpolation_mode, padding_mode);
}

// N is the number of dimensions of input.
template <unsigned N>
static std::tuple<Tensor, Tensor> grid_sampler_backward_mps(const char* op,
                                                            const Tensor& grad_output,
                                                            const Tensor& input,
                                                            const Tensor& grid,
                                                            int64_t interpolation_mode,
                                                            int64_t padding_mode,
                                                            bool align_corners,
                                                            bool compute_grad_input) {
  check_grid_sampler_arguments(op, input, grid, interpolation_mode, padding_mode);
  check_grid_sampler_gradient(op, grad_output, input, grid);
  Tensor grad_input;
  if (compute_grad_input) {
    // Summed in float for every dtype, rounded once below.
    grad_input = at::zeros(input.sizes(), input.options().dtype(kFloat));
  }
  // Without channels there is nothing to sum, but grad_grid has elements all the same.
  Tensor grad_grid =
      grad_output.numel() == 0 ? at::zeros(grid.sizes(), grid.options()) : at::empty(grid.sizes(), grid.options());

  if (grad_output.numel() != 0) {
    const auto impl = grid_sampler_fits_32_bits({grad_input, grad_grid, grad_output, input, grid})
        ? grid_sampler_backward_mps_impl<N, int32_t>
        : grid_sampler_backward_mps_impl<N, int64_t>;
    impl(op,
         grad_input,
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

// fragment: grid_sampler_3d_mps_impl
template <typename idx_type_t>
static void grid_sampler_3d_mps_impl(const Tensor& output,
                                     const Tensor& input,
                                     const Tensor& grid,
                                     GridSamplerInterpolation interpolation_mode,
                                     GridSamplerPadding padding_mode,
                                     bool align_corners) {
  GridSamplerForwardParams<5, idx_type_t> params{};
  params.output_sizes = grid_sampler_dims<5, idx_type_t>(output.sizes());
  params.output_strides = grid_sampler_dims<5, idx_type_t>(output.strides());
  params.input_sizes = grid_sampler_dims<5, idx_type_t>(input.sizes());
  params.input_strides = grid_sampler_dims<5, idx_type_t>(input.strides());
  params.grid_strides = grid_sampler_dims<5, idx_type_t>(grid.strides());
  params.align_corners = align_corners;
  launch_grid_sampler<idx_type_t>("grid_sampler_3d", {output, input, grid}, params, interpolation_mode, padding_mode);
}
// end fragment

} // namespace mps

// fragment: grid_sampler_2d_backward_mps
std::tuple<Tensor, Tensor> grid_sampler_2d_backward_mps(const Tensor& grad_output,
                                                        const Tensor& input,
                                                        const Tensor& grid,
                                                        int64_t _interpolation_mode,
                                                        int64_t _padding_mode,
                                                        bool align_corners,
                                                        std::array<bool, 2> output_mask) {
  check_grid_sampler_common(input, grid);
  check_grid_sampler_2d(input, grid);
  if (output_mask[0]) {
    // The order of the atomic additions is not determined.
    globalContext().alertNotDeterministic("grid_sampler_2d_backward_mps");
  }
  // Only output_mask[0] is looked at: grad_grid is always computed, as on the other backends.
  return mps::grid_sampler_backward_mps<4>("grid_sampler_2d_backward",
                                           grad_output,
                                           input,
                                           grid,
                                           _interpolation_mode,
                                           _padding_mode,
                                           align_corners,
                                           output_mask[0]);
}
// end fragment

// fragment: grid_sampler_3d_mps
Tensor grid_sampler_3d_mps(const Tensor& input,
                           const Tensor& grid,
                           int64_t interpolation_mode,
                           int64_t padding_mode,
                           bool align_corners) {
  check_grid_sampler_common(input, grid);
  check_grid_sampler_3d(input, grid, interpolation_mode);
  mps::check_grid_sampler_arguments("grid_sampler_3d", input, grid, interpolation_mode, padding_mode);
  Tensor output = at::empty({input.size(0), input.size(1), grid.size(1), grid.size(2), grid.size(3)}, input.options());
  if (output.numel() != 0) {
    const auto impl = mps::grid_sampler_fits_32_bits({output, input, grid}) ? mps::grid_sampler_3d_mps_impl<int32_t>
                                                                            : mps::grid_sampler_3d_mps_impl<int64_t>;
    impl(output,
         input,
         grid,
         static_cast<GridSamplerInterpolation>(interpolation_mode),
         static_cast<GridSamplerPadding>(padding_mode),
         align_corners);
  }
  return output;
}
// end fragment

// fragment: grid_sampler_3d_backward_mps
std::tuple<Tensor, Tensor> grid_sampler_3d_backward_mps(const Tensor& grad_output,
                                                        const Tensor& input,
                                                        const Tensor& grid,
                                                        int64_t interpolation_mode,
                                                        int64_t padding_mode,
                                                        bool align_corners,
                                                        std::array<bool, 2> output_mask) {
  check_grid_sampler_common(input, grid);
  check_grid_sampler_3d(input, grid, interpolation_mode);
  if (output_mask[0]) {
    // The order of the atomic additions is not determined.
    globalContext().alertNotDeterministic("grid_sampler_3d_backward_mps");
  }
  return mps::grid_sampler_backward_mps<5>("grid_sampler_3d_backward",
                                           grad_output,
                                           input,
                                           grid,
                                           interpolation_mode,
                                           padding_mode,
                                           align_corners,
                                           output_mask[0]);
}
// end fragment

} // namespace at::native
