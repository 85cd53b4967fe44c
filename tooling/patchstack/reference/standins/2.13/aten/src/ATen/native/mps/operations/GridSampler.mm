#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/CanUse32BitIndexMath.h>
#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/Pool.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/native/mps/kernels/GridSampler.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/empty_like.h>
#include <ATen/ops/grid_sampler_2d.h>
#include <ATen/ops/grid_sampler_2d_backward_native.h>
#include <ATen/ops/grid_sampler_2d_native.h>
#include <ATen/ops/grid_sampler_3d_backward_native.h>
#include <ATen/ops/grid_sampler_3d_native.h>
#include <ATen/ops/zeros_like.h>
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

static void grid_sampler_2d_mps_impl(Tensor& output,
                                     const Tensor& input,
                                     const Tensor& grid,
                                     int64_t _interpolation_mode,
                                     int64_t _padding_mode,
                                     bool align_corners) {
  check_grid_sampler_common(input, grid);
  check_grid_sampler_2d(input, grid);
  TORCH_CHECK(input.scalar_type() == grid.scalar_type(), "grid_sampler_2d: input and grid must have the same dtype");
  TORCH_CHECK_NOT_IMPLEMENTED(!input.is_complex(), "grid_sampler_2d has no complex kernels on MPS");

  const bool is_narrow = canUse32BitIndexMath(output) && canUse32BitIndexMath(input) && canUse32BitIndexMath(grid);
  const auto kernel = fmt::format("grid_sampler_2d_{}_{}_{}_{}",
                                  interp_to_string(static_cast<GridSamplerInterpolation>(_interpolation_mode)),
                                  padding_to_string(static_cast<GridSamplerPadding>(_padding_mode)),
                                  is_narrow ? "i32" : "i64",
                                  scalarToMetalTypeString(input));
  const auto threads = output.size(0) * output.size(2) * output.size(3);

  MPSStream* mpsStream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(mpsStream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = mpsStream->commandEncoder();
      auto pso = lib.getPipelineStateForFunc(kernel);
      getMPSProfiler().beginProfileKernel(pso, "grid_sampler_2d", {input, grid});
      [computeEncoder setComputePipelineState:pso];
      if (is_narrow) {
        mtl_setArgs(
            computeEncoder, output, input, grid, GridSamplerParams<4, int32_t>(output, input, grid, align_corners));
      } else {
        mtl_setArgs(
            computeEncoder, output, input, grid, GridSamplerParams<4, int64_t>(output, input, grid, align_corners));
      }
      mtl_dispatch1DJob(computeEncoder, pso, threads);
      getMPSProfiler().endProfileKernel(pso);
    }
  });
}

static void grid_sampler_3d_mps_impl(Tensor& output,
                                     const Tensor& input,
                                     const Tensor& grid,
                                     int64_t _interpolation_mode,
                                     int64_t _padding_mode,
                                     bool align_corners,
                                     int32_t sampler_dims,
                                     const std::string& op_name) {
  TORCH_INTERNAL_ASSERT(sampler_dims == 3, op_name, " samples volumes, but was asked for dimensions ", sampler_dims);
  check_grid_sampler_common(input, grid);
  check_grid_sampler_3d(input, grid, _interpolation_mode);
  TORCH_CHECK(input.scalar_type() == grid.scalar_type(), op_name, ": input and grid must have the same dtype");
  const auto interpolation_mode = static_cast<GridSamplerInterpolation>(_interpolation_mode);
  TORCH_CHECK(interpolation_mode == GridSamplerInterpolation::Bilinear ||
                  interpolation_mode == GridSamplerInterpolation::Nearest,
              op_name,
              ": no such interpolation on MPS: mode ",
              _interpolation_mode);
  output.resize_({input.size(0), input.size(1), grid.size(1), grid.size(2), grid.size(3)}, MemoryFormat::Contiguous);

  const bool is_narrow = canUse32BitIndexMath(output) && canUse32BitIndexMath(input) && canUse32BitIndexMath(grid);
  const auto kernel = fmt::format("grid_sampler_3d_{}_{}_{}_{}",
                                  interp_to_string(interpolation_mode),
                                  padding_to_string(static_cast<GridSamplerPadding>(_padding_mode)),
                                  is_narrow ? "i32" : "i64",
                                  scalarToMetalTypeString(input));

  MPSStream* mpsStream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(mpsStream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = mpsStream->commandEncoder();
      auto pso = lib.getPipelineStateForFunc(kernel);
      getMPSProfiler().beginProfileKernel(pso, op_name, {input, grid});
      [computeEncoder setComputePipelineState:pso];
      if (is_narrow) {
        mtl_setArgs(
            computeEncoder, output, input, grid, GridSamplerParams<5, int32_t>(output, input, grid, align_corners));
      } else {
        mtl_setArgs(
            computeEncoder, output, input, grid, GridSamplerParams<5, int64_t>(output, input, grid, align_corners));
      }
      mtl_dispatch1DJob(computeEncoder, pso, output.numel());
      getMPSProfiler().endProfileKernel(pso);
    }
  });
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
  Tensor output = at::empty({0}, input.options());
  mps::grid_sampler_3d_mps_impl(
      output, input, grid, interpolation_mode, padding_mode, align_corners, 3, "grid_sampler_3d");
  return output;
}

std::tuple<Tensor, Tensor> grid_sampler_2d_backward_mps(const Tensor& grad_output,
                                                        const Tensor& input,
                                                        const Tensor& grid,
                                                        int64_t _interpolation_mode,
                                                        int64_t _padding_mode,
                                                        bool align_corners,
                                                        std::array<bool, 2> output_mask) {
  using namespace mps;
  check_grid_sampler_common(input, grid);
  check_grid_sampler_2d(input, grid);
  TORCH_CHECK(input.scalar_type() == grid.scalar_type(),
              "grid_sampler_2d_backward: input and grid must have the same dtype");
  TORCH_CHECK_NOT_IMPLEMENTED(!input.is_complex(), "grid_sampler_2d_backward has no complex kernels on MPS");
  const auto interpolation_mode = static_cast<GridSamplerInterpolation>(_interpolation_mode);
  const auto padding_mode = static_cast<GridSamplerPadding>(_padding_mode);
  const bool is_nearest = interpolation_mode == GridSamplerInterpolation::Nearest;

  Tensor grad_input;
  if (output_mask[0]) {
    grad_input = at::zeros_like(input, LEGACY_CONTIGUOUS_MEMORY_FORMAT);
  }
  // A nearest sample does not change with its position.
  Tensor grad_grid = is_nearest ? at::zeros_like(grid, LEGACY_CONTIGUOUS_MEMORY_FORMAT)
                                : at::empty_like(grid, LEGACY_CONTIGUOUS_MEMORY_FORMAT);
  const auto threads = grid.size(0) * grid.size(1) * grid.size(2);
  if (threads == 0) {
    return std::make_tuple(std::move(grad_input), std::move(grad_grid));
  }

  const bool is_narrow = canUse32BitIndexMath(grad_output) && canUse32BitIndexMath(input) &&
      canUse32BitIndexMath(grid) && canUse32BitIndexMath(grad_grid) &&
      (!grad_input.defined() || canUse32BitIndexMath(grad_input));
  // The bicubic kernels have the padding in their names.
  const auto suffix = fmt::format("{}{}_{}",
                                  interpolation_mode == GridSamplerInterpolation::Bicubic
                                      ? fmt::format("{}_", padding_to_string(padding_mode))
                                      : "",
                                  is_narrow ? "i32" : "i64",
                                  scalarToMetalTypeString(input));
  const auto prefix = fmt::format("grid_sampler_2d_backward_{}", interp_to_string(interpolation_mode));

  MPSStream* mpsStream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(mpsStream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = mpsStream->commandEncoder();
      const auto set_args = [&](auto&&... tensors) {
        if (is_narrow) {
          const GridSamplerBackwardParams<4, int32_t> params(
              grad_output, input, grid, grad_input, grad_grid, align_corners, padding_mode, interpolation_mode);
          mtl_setArgs(computeEncoder, tensors..., params);
        } else {
          const GridSamplerBackwardParams<4, int64_t> params(
              grad_output, input, grid, grad_input, grad_grid, align_corners, padding_mode, interpolation_mode);
          mtl_setArgs(computeEncoder, tensors..., params);
        }
      };

      if (grad_input.defined()) {
        auto pso = lib.getPipelineStateForFunc(fmt::format("{}_input_{}", prefix, suffix));
        getMPSProfiler().beginProfileKernel(pso, "grid_sampler_2d_backward_input", {grad_output, grid});
        [computeEncoder setComputePipelineState:pso];
        set_args(grad_input, grad_output, grid);
        mtl_dispatch1DJob(computeEncoder, pso, threads);
        getMPSProfiler().endProfileKernel(pso);
      }
      if (!is_nearest) {
        auto pso = lib.getPipelineStateForFunc(fmt::format("{}_grid_{}", prefix, suffix));
        getMPSProfiler().beginProfileKernel(pso, "grid_sampler_2d_backward_grid", {grad_output, input, grid});
        [computeEncoder setComputePipelineState:pso];
        set_args(grad_grid, grad_output, input, grid);
        mtl_dispatch1DJob(computeEncoder, pso, threads);
        getMPSProfiler().endProfileKernel(pso);
      }
    }
  });
  return std::make_tuple(std::move(grad_input), std::move(grad_grid));
}

std::tuple<Tensor, Tensor> grid_sampler_3d_backward_mps(const Tensor& grad_output,
                                                        const Tensor& input,
                                                        const Tensor& grid,
                                                        int64_t interpolation_mode,
                                                        int64_t padding_mode,
                                                        bool align_corners,
                                                        std::array<bool, 2> output_mask) {
  using namespace mps;
  check_grid_sampler_common(input, grid);
  check_grid_sampler_3d(input, grid, interpolation_mode);
  TORCH_CHECK(input.scalar_type() == grid.scalar_type(),
              "grid_sampler_3d_backward: input and grid must have the same dtype");
  const auto interp_mode = static_cast<GridSamplerInterpolation>(interpolation_mode);
  const auto pad_mode = static_cast<GridSamplerPadding>(padding_mode);
  const bool is_nearest = interp_mode == GridSamplerInterpolation::Nearest;
  TORCH_CHECK_NOT_IMPLEMENTED(is_nearest || interp_mode == GridSamplerInterpolation::Bilinear,
                              "grid_sampler_3d_backward: no such interpolation on MPS: mode ",
                              interpolation_mode);

  Tensor grad_input;
  if (output_mask[0]) {
    grad_input = at::zeros_like(input);
  }
  Tensor grad_grid =
      is_nearest ? at::zeros_like(grid, MemoryFormat::Contiguous) : at::empty_like(grid, MemoryFormat::Contiguous);
  if (is_nearest && !output_mask[0]) {
    return std::make_tuple(std::move(grad_input), std::move(grad_grid));
  }
  const Tensor output_slot = grad_output.contiguous();
  const Tensor input_slot = input.contiguous();
  const Tensor grid_slot = grid.contiguous();
  // Every slot wants a buffer, also that of a gradient nobody asked for.
  const Tensor sums_slot = output_mask[0] ? grad_input : at::zeros({1, 1, 1, 1, 1}, input.options());

  const bool is_narrow = canUse32BitIndexMath(output_slot) && canUse32BitIndexMath(input_slot) &&
      canUse32BitIndexMath(grid_slot) && canUse32BitIndexMath(sums_slot) && canUse32BitIndexMath(grad_grid);
  const auto kernel =
      fmt::format("grid_sampler_3d_backward_{}_{}", is_narrow ? "i32" : "i64", scalarToMetalTypeString(input));

  MPSStream* mpsStream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(mpsStream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = mpsStream->commandEncoder();
      auto pso = lib.getPipelineStateForFunc(kernel);
      getMPSProfiler().beginProfileKernel(pso, "grid_sampler_3d_backward", {output_slot, input_slot, grid_slot});
      [computeEncoder setComputePipelineState:pso];
      const auto set_args = [&](const auto& params) {
        mtl_setArgs(computeEncoder, output_slot, input_slot, grid_slot, sums_slot, grad_grid, params);
      };
      if (is_narrow) {
        set_args(GridSamplerBackwardParams<5, int32_t>(
            output_slot, input_slot, grid_slot, grad_input, grad_grid, align_corners, pad_mode, interp_mode));
      } else {
        set_args(GridSamplerBackwardParams<5, int64_t>(
            output_slot, input_slot, grid_slot, grad_input, grad_grid, align_corners, pad_mode, interp_mode));
      }
      // Columns, then the rows of all slices, then samples of the batch.
      [computeEncoder dispatchThreads:MTLSizeMake(grid.size(3), grid.size(2) * grid.size(1), grid.size(0))
                threadsPerThreadgroup:MTLSizeMake(16, 16, 1)];
      getMPSProfiler().endProfileKernel(pso);
    }
  });
  return std::make_tuple(std::move(grad_input), std::move(grad_grid));
}

} // namespace at::native
