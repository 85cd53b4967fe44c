// What lands are the fragments between the marker lines, in the file that newer trees (since April 2026) have;
// `grid_sampler_checks` of the overlay's own GridSampler.mm goes before them.

namespace at::native {
namespace mps {

// fragment: run_grid_sampler
// Runs a kernel that takes the tensors, then params.
template <typename params_type_t>
static void run_grid_sampler(const std::string& kernel,
                             TensorList tensors,
                             const params_type_t& params,
                             MTLSize threads) {
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
      mtl_setBytes(computeEncoder, params, tensors.size());
      if (threads.height * threads.depth == 1) {
        mtl_dispatch1DJob(computeEncoder, pso, threads.width);
      } else {
        [computeEncoder dispatchThreads:threads threadsPerThreadgroup:MTLSizeMake(16, 16, 1)];
      }
      getMPSProfiler().endProfileKernel(pso);
    }
  });
}

// N is the number of dimensions of input.
template <unsigned N>
static void grid_sampler_forward_mps(const char* op,
                                     const Tensor& output,
                                     const Tensor& input,
                                     const Tensor& grid,
                                     int64_t interpolation_mode,
                                     int64_t padding_mode,
                                     bool align_corners,
                                     int64_t num_threads) {
  const bool i32 = grid_sampler_fits_32_bits({output, input, grid});
  const auto kernel = fmt::format("{}_{}_{}_{}_{}",
                                  op,
                                  interp_to_string(static_cast<GridSamplerInterpolation>(interpolation_mode)),
                                  padding_to_string(static_cast<GridSamplerPadding>(padding_mode)),
                                  i32 ? "i32" : "i64",
                                  scalarToMetalTypeString(input));
  const auto run = [&](auto idx_tag) {
    const GridSamplerParams<N, decltype(idx_tag)> params(output, input, grid, align_corners);
    run_grid_sampler(kernel, {output, input, grid}, params, MTLSizeMake(num_threads, 1, 1));
  };
  i32 ? run(int32_t{}) : run(int64_t{});
}
// end fragment

// fragment: grid_sampler_gradients
static std::tuple<Tensor, Tensor> grid_sampler_2d_gradients(const Tensor& grad_output,
                                                            const Tensor& input,
                                                            const Tensor& grid,
                                                            int64_t interpolation_mode,
                                                            int64_t padding_mode,
                                                            bool align_corners,
                                                            bool compute_grad_input) {
  constexpr auto op = "grid_sampler_2d_backward";
  const auto interpolation = static_cast<GridSamplerInterpolation>(interpolation_mode);
  const auto padding = static_cast<GridSamplerPadding>(padding_mode);
  const bool is_nearest = interpolation == GridSamplerInterpolation::Nearest;
  // Summed in float for every dtype, rounded once below.
  auto grad_input = compute_grad_input ? at::zeros_like(input, kFloat, LEGACY_CONTIGUOUS_MEMORY_FORMAT) : Tensor();
  // Without channels there is nothing to sum, but grad_grid has elements all the same.
  auto grad_grid = is_nearest || grad_output.numel() == 0 ? at::zeros_like(grid, LEGACY_CONTIGUOUS_MEMORY_FORMAT)
                                                          : at::empty_like(grid, LEGACY_CONTIGUOUS_MEMORY_FORMAT);

  if (grad_output.numel() != 0) {
    const bool i32 = grid_sampler_fits_32_bits({grad_output, input, grid, grad_input, grad_grid});
    // Only the bicubic kernels are made for one padding each.
    const auto suffix = fmt::format(
        "{}{}_{}",
        interpolation == GridSamplerInterpolation::Bicubic ? fmt::format("{}_", padding_to_string(padding)) : "",
        i32 ? "i32" : "i64",
        scalarToMetalTypeString(input));
    const auto threads = MTLSizeMake(grid.numel() / grid.size(3), 1, 1);
    const auto run = [&](auto idx_tag) {
      const GridSamplerBackwardParams<4, decltype(idx_tag)> params(
          grad_output, input, grid, grad_input, grad_grid, align_corners, padding, interpolation);
      const auto kernel = [&](const char* gradient) {
        return fmt::format("{}_{}_{}_{}", op, interp_to_string(interpolation), gradient, suffix);
      };
      if (grad_input.defined()) {
        run_grid_sampler(kernel("input"), {grad_input, grad_output, grid}, params, threads);
      }
      if (!is_nearest) {
        run_grid_sampler(kernel("grid"), {grad_grid, grad_output, input, grid}, params, threads);
      }
    };
    i32 ? run(int32_t{}) : run(int64_t{});
  }

  if (grad_input.defined()) {
    grad_input = grad_input.to(input.scalar_type());
  }
  return std::make_tuple(std::move(grad_input), std::move(grad_grid));
}

static std::tuple<Tensor, Tensor> grid_sampler_3d_gradients(const Tensor& grad_output,
                                                            const Tensor& input,
                                                            const Tensor& grid,
                                                            int64_t interpolation_mode,
                                                            int64_t padding_mode,
                                                            bool align_corners,
                                                            bool compute_grad_input) {
  constexpr auto op = "grid_sampler_3d_backward";
  const auto interpolation = static_cast<GridSamplerInterpolation>(interpolation_mode);
  const auto padding = static_cast<GridSamplerPadding>(padding_mode);
  const bool is_nearest = interpolation == GridSamplerInterpolation::Nearest;
  // Summed in float for every dtype, rounded once below.
  auto grad_input = compute_grad_input ? at::zeros_like(input, kFloat) : Tensor();
  // Always there, as on CPU and CUDA and in 2D; without channels there is nothing to sum.
  auto grad_grid = is_nearest || grad_output.numel() == 0 ? at::zeros_like(grid, MemoryFormat::Contiguous)
                                                          : at::empty_like(grid, MemoryFormat::Contiguous);

  if (grad_output.numel() != 0 && (compute_grad_input || !is_nearest)) {
    const bool i32 = grid_sampler_fits_32_bits({grad_output, input, grid, grad_input, grad_grid});
    const auto kernel = fmt::format("{}_{}_{}", op, i32 ? "i32" : "i64", scalarToMetalTypeString(input));
    const auto threads = MTLSizeMake(grid.size(3), grid.size(2) * grid.size(1), grid.size(0));
    // Metal wants a buffer in every slot, also in one that the kernel leaves alone.
    const auto& grad_input_slot = grad_input.defined() ? grad_input : grad_grid;
    const auto run = [&](auto idx_tag) {
      const GridSamplerBackwardParams<5, decltype(idx_tag)> params(
          grad_output, input, grid, grad_input, grad_grid, align_corners, padding, interpolation);
      run_grid_sampler(kernel, {grad_output, input, grid, grad_input_slot, grad_grid}, params, threads);
    };
    i32 ? run(int32_t{}) : run(int64_t{});
  }

  if (grad_input.defined()) {
    grad_input = grad_input.to(input.scalar_type());
  }
  return std::make_tuple(std::move(grad_input), std::move(grad_grid));
}
// end fragment

} // namespace mps

// fragment: grid_sampler_2d_mps
Tensor grid_sampler_2d_mps(const Tensor& input,
                           const Tensor& grid,
                           int64_t interpolation_mode,
                           int64_t padding_mode,
                           bool align_corners) {
  check_grid_sampler_common(input, grid);
  check_grid_sampler_2d(input, grid);
  mps::check_grid_sampler_arguments("grid_sampler_2d", input, grid, interpolation_mode, padding_mode);
  auto output = at::empty({input.size(0), input.size(1), grid.size(1), grid.size(2)}, input.options());
  if (output.numel() != 0) {
    mps::grid_sampler_forward_mps<4>("grid_sampler_2d",
                                     output,
                                     input,
                                     grid,
                                     interpolation_mode,
                                     padding_mode,
                                     align_corners,
                                     /*num_threads=*/output.numel() / output.size(1));
  }
  return output;
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
  auto output = at::empty({input.size(0), input.size(1), grid.size(1), grid.size(2), grid.size(3)}, input.options());
  if (output.numel() != 0) {
    mps::grid_sampler_forward_mps<5>("grid_sampler_3d",
                                     output,
                                     input,
                                     grid,
                                     interpolation_mode,
                                     padding_mode,
                                     align_corners,
                                     /*num_threads=*/output.numel());
  }
  return output;
}
// end fragment

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
  mps::check_grid_sampler_arguments("grid_sampler_2d_backward", input, grid, _interpolation_mode, _padding_mode);
  mps::check_grid_sampler_gradient("grid_sampler_2d_backward", grad_output, input, grid);
  // Only output_mask[0] is looked at: grad_grid is always computed, as on the other backends.
  return mps::grid_sampler_2d_gradients(
      grad_output, input, grid, _interpolation_mode, _padding_mode, align_corners, output_mask[0]);
}
// end fragment

// Trees with a shared check of grad_output.
// fragment: grid_sampler_2d_backward_mps_checked
std::tuple<Tensor, Tensor> grid_sampler_2d_backward_mps(const Tensor& grad_output,
                                                        const Tensor& input,
                                                        const Tensor& grid,
                                                        int64_t _interpolation_mode,
                                                        int64_t _padding_mode,
                                                        bool align_corners,
                                                        std::array<bool, 2> output_mask) {
  check_grid_sampler_2d_backward(input, grid, grad_output);
  mps::check_grid_sampler_arguments("grid_sampler_2d_backward", input, grid, _interpolation_mode, _padding_mode);
  mps::check_grid_sampler_gradient("grid_sampler_2d_backward", grad_output, input, grid);
  // Only output_mask[0] is looked at: grad_grid is always computed, as on the other backends.
  return mps::grid_sampler_2d_gradients(
      grad_output, input, grid, _interpolation_mode, _padding_mode, align_corners, output_mask[0]);
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
  mps::check_grid_sampler_arguments("grid_sampler_3d_backward", input, grid, interpolation_mode, padding_mode);
  mps::check_grid_sampler_gradient("grid_sampler_3d_backward", grad_output, input, grid);
  // Only output_mask[0] is looked at: grad_grid is always computed, as on the other backends.
  return mps::grid_sampler_3d_gradients(
      grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask[0]);
}
// end fragment

// Trees with a shared check of grad_output.
// fragment: grid_sampler_3d_backward_mps_checked
std::tuple<Tensor, Tensor> grid_sampler_3d_backward_mps(const Tensor& grad_output,
                                                        const Tensor& input,
                                                        const Tensor& grid,
                                                        int64_t interpolation_mode,
                                                        int64_t padding_mode,
                                                        bool align_corners,
                                                        std::array<bool, 2> output_mask) {
  check_grid_sampler_3d_backward(input, grid, grad_output, interpolation_mode);
  mps::check_grid_sampler_arguments("grid_sampler_3d_backward", input, grid, interpolation_mode, padding_mode);
  mps::check_grid_sampler_gradient("grid_sampler_3d_backward", grad_output, input, grid);
  // Only output_mask[0] is looked at: grad_grid is always computed, as on the other backends.
  return mps::grid_sampler_3d_gradients(
      grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask[0]);
}
// end fragment

} // namespace at::native
