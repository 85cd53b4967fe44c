#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/Pool.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/native/mps/kernels/GridSampler.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/empty.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/grid_sampler_2d_native.h>
#include <ATen/ops/grid_sampler_3d_native.h>
#endif

namespace at::native {

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/GridSampler_metallib.h>
#endif

namespace mps {

static const char* interp_to_string(GridSamplerInterpolation mode) {
  static constexpr std::array<const char*, 3> names{"bilinear", "nearest", "bicubic"};
  const auto index = static_cast<size_t>(mode);
  TORCH_CHECK(index < names.size(), "grid_sampler: unknown interpolation mode ", index);
  return names[index];
}

static const char* padding_to_string(GridSamplerPadding mode) {
  static constexpr std::array<const char*, 3> names{"zeros", "border", "reflection"};
  const auto index = static_cast<size_t>(mode);
  TORCH_CHECK(index < names.size(), "grid_sampler: unknown padding mode ", index);
  return names[index];
}

// Sizes, strides and flags of one forward launch over N-dimensional tensors.
template <unsigned N>
static GridSamplerParams<N> forward_params(const Tensor& output,
                                           const Tensor& input,
                                           const Tensor& grid,
                                           GridSamplerInterpolation interpolation_mode,
                                           GridSamplerPadding padding_mode,
                                           bool align_corners) {
  GridSamplerParams<N> params{};
  params.sampler_dims = N - 2;
  params.interpolation_mode = interpolation_mode;
  params.padding_mode = padding_mode;
  params.align_corners = align_corners;
  for (const auto dim : c10::irange(N)) {
    params.output_sizes[dim] = safe_downcast<int32_t, int64_t>(output.size(dim));
    params.output_strides[dim] = safe_downcast<int32_t, int64_t>(output.stride(dim));
    params.input_sizes[dim] = safe_downcast<int32_t, int64_t>(input.size(dim));
    params.input_strides[dim] = safe_downcast<int32_t, int64_t>(input.stride(dim));
    params.grid_sizes[dim] = safe_downcast<int32_t, int64_t>(grid.size(dim));
    params.grid_strides[dim] = safe_downcast<int32_t, int64_t>(grid.stride(dim));
  }
  return params;
}

template <unsigned N>
static void launch_forward(const std::string& kernel,
                           const Tensor& output,
                           const Tensor& input,
                           const Tensor& grid,
                           const GridSamplerParams<N>& params,
                           int64_t threads) {
  if (threads == 0) {
    return;
  }
  const auto launch_params = params;
  MPSStream* mpsStream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(mpsStream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = mpsStream->commandEncoder();
      auto pso = lib.getPipelineStateForFunc(kernel);
      getMPSProfiler().beginProfileKernel(pso, kernel, {input, grid});
      [computeEncoder setComputePipelineState:pso];
      mtl_setArgs(computeEncoder, output, input, grid, launch_params);
      mtl_dispatch1DJob(computeEncoder, pso, threads);
      getMPSProfiler().endProfileKernel(pso);
    }
  });
}

static void grid_sampler_2d_mps_impl(Tensor& output,
                                     const Tensor& input,
                                     const Tensor& grid,
                                     int64_t _interpolation_mode,
                                     int64_t _padding_mode,
                                     bool align_corners) {
  check_grid_sampler_common(input, grid);
  check_grid_sampler_2d(input, grid);
  TORCH_CHECK(input.scalar_type() == grid.scalar_type(), "grid_sampler_2d: input and grid must have the same dtype");
  const auto interpolation_mode = static_cast<GridSamplerInterpolation>(_interpolation_mode);
  const auto padding_mode = static_cast<GridSamplerPadding>(_padding_mode);
  const auto kernel = fmt::format("grid_sampler_2d_{}_{}_{}",
                                  interp_to_string(interpolation_mode),
                                  padding_to_string(padding_mode),
                                  scalarToMetalTypeString(input));
  const auto params = forward_params<4>(output, input, grid, interpolation_mode, padding_mode, align_corners);
  launch_forward(kernel, output, input, grid, params, output.size(0) * output.size(2) * output.size(3));
}

static void grid_sampler_3d_mps_impl(Tensor& output,
                                     const Tensor& input,
                                     const Tensor& grid,
                                     int64_t _interpolation_mode,
                                     int64_t _padding_mode,
                                     bool align_corners) {
  check_grid_sampler_common(input, grid);
  check_grid_sampler_3d(input, grid, _interpolation_mode);
  TORCH_CHECK(input.scalar_type() == grid.scalar_type(), "grid_sampler_3d: input and grid must have the same dtype");
  const auto interpolation_mode = static_cast<GridSamplerInterpolation>(_interpolation_mode);
  const auto padding_mode = static_cast<GridSamplerPadding>(_padding_mode);
  TORCH_CHECK(interpolation_mode == GridSamplerInterpolation::Bilinear,
              "grid_sampler_3d: only bilinear interpolation is supported on MPS, but got ",
              interp_to_string(interpolation_mode));
  const auto kernel =
      fmt::format("grid_sampler_3d_{}_{}", padding_to_string(padding_mode), scalarToMetalTypeString(input));
  const auto params = forward_params<5>(output, input, grid, interpolation_mode, padding_mode, align_corners);
  launch_forward(kernel, output, input, grid, params, output.numel());
}

} // namespace mps

Tensor grid_sampler_2d_mps(const Tensor& input,
                           const Tensor& grid,
                           int64_t interpolation_mode,
                           int64_t padding_mode,
                           bool align_corners) {
  Tensor output = at::empty({input.size(0), input.size(1), grid.size(1), grid.size(2)}, input.options());
  mps::grid_sampler_2d_mps_impl(output, input, grid, interpolation_mode, padding_mode, align_corners);
  return output;
}

Tensor grid_sampler_3d_mps(const Tensor& input,
                           const Tensor& grid,
                           int64_t interpolation_mode,
                           int64_t padding_mode,
                           bool align_corners) {
  Tensor output = at::empty({input.size(0), input.size(1), grid.size(1), grid.size(2), grid.size(3)}, input.options());
  mps::grid_sampler_3d_mps_impl(output, input, grid, interpolation_mode, padding_mode, align_corners);
  return output;
}

} // namespace at::native
