// What lands are the fragments between the marker lines; the rest is context
// that lets this file be read. Checks, dims and the names of modes are those of
// the overlay's GridSampler.mm.
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS

// fragment: ceil_div_include
#include <ATen/ceil_div.h>
// end fragment

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#else
// fragment: empty_include
#include <ATen/ops/empty.h>
// end fragment
#endif

namespace at::native {
namespace mps {

// fragment: grid_sampler_gradients
// What the kernels of one call have in common.
struct GridSamplerCall {
  const char* op;
  GridSamplerInterpolation interpolation_mode;
  GridSamplerPadding padding_mode;
  bool align_corners;
  bool compute_grad_input;

  bool is_nearest() const {
    return interpolation_mode == GridSamplerInterpolation::Nearest;
  }
};

// How the work of a sampling position is divided; see the kernels.
struct GridSamplerDivision {
  int64_t lanes; // that share a position; 0: a thread has it
  bool is_staged; // grad_output is turned in threadgroup memory

  // Positions of a threadgroup.
  int64_t tile() const {
    return lanes == 0 ? 128 : lanes == 8 ? 64 : 32;
  }
};

// Whether 32 bits hold every offset within an image, of what is dense if it is made here, and the distance from one
// image to the next.
static bool grid_sampler_images_fit_32_bits(const Tensor& grad_output, const Tensor& input, const Tensor& grid) {
  constexpr int64_t max = std::numeric_limits<int32_t>::max();
  const auto fits = [](const Tensor& t) {
    int64_t last = 0;
    for (const auto dim : c10::irange(1, t.dim())) {
      last += (t.size(dim) - 1) * t.stride(dim);
    }
    return t.numel() / t.size(0) <= max && last <= max && t.stride(0) <= max;
  };
  return fits(grad_output) && fits(input) && fits(grid);
}

// By layout, channels and interpolation, since the grid's contents are not known here: lanes over channels lose where
// channels are few and the grid is smooth, because neighboring threads then read from and add to neighboring addresses
// in contiguous memory too. The thresholds are crossovers that were measured on an NVIDIA H200, whose simdgroups have
// 32 lanes too; a GPU of Apple's may have others.
static GridSamplerDivision grid_sampler_division(const GridSamplerCall& call,
                                                 const Tensor& grad_output,
                                                 const Tensor& input,
                                                 const Tensor& grid) {
  const bool is_bicubic = call.interpolation_mode == GridSamplerInterpolation::Bicubic;
  const int64_t few_channels = call.is_nearest() ? 32 : is_bicubic ? 4 : 12;
  const auto channels = input.size(1);
  const bool is_staged = grad_output.stride(1) != 1;
  // In contiguous float, nearest has neither a layout to change nor a sum to round.
  const bool is_plain = call.is_nearest() && is_staged && input.scalar_type() == kFloat;
  if (channels <= few_channels || is_plain || !grid_sampler_images_fit_32_bits(grad_output, input, grid)) {
    return {0, false};
  }
  return {channels <= 32 ? 8 : 32, is_staged};
}

// The distance from one position of grad_output to the next, if it is the same from row to row. Axes of size 1 have no
// say: their strides may be anything.
static std::optional<int64_t> grid_sampler_position_stride(const Tensor& grad_output) {
  std::optional<int64_t> stride;
  int64_t next = 0;
  for (auto dim = grad_output.dim() - 1; dim >= 2; --dim) {
    if (grad_output.size(dim) == 1) {
      continue;
    }
    if (stride && grad_output.stride(dim) != next) {
      return std::nullopt;
    }
    stride = stride ? stride : grad_output.stride(dim);
    next = grad_output.size(dim) * grad_output.stride(dim);
  }
  return stride ? stride : 0;
}

// The kernel takes the tensors, then params.
template <typename params_type_t>
static void run_grid_sampler_kernel(const std::string& kernel,
                                    TensorList tensors,
                                    const params_type_t& params,
                                    MTLSize threads,
                                    int64_t group_size) {
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
      [computeEncoder dispatchThreads:threads threadsPerThreadgroup:MTLSizeMake(group_size, 1, 1)];
      getMPSProfiler().endProfileKernel(pso);
    }
  });
}

// Runs a kernel that changes the layout of an input, or of its gradient; the tensors are those that the kernel takes.
static void turn_grid_sampler_input(const char* direction, const Tensor& input, TensorList tensors, bool zeroes_sums) {
  constexpr int64_t group_size = 256;
  constexpr int64_t tile_pixels = 64;
  const auto channels = input.size(1);
  const auto pixels = input.numel() / (input.size(0) * channels);
  const int64_t tile_channels = channels <= 16 ? 16 : 32; // the tile that wastes the least
  GridSamplerTurnParams params{};
  params.channels = static_cast<int32_t>(channels);
  params.pixels = static_cast<int32_t>(pixels);
  params.zeroes_sums = zeroes_sums;
  const auto kernel =
      fmt::format("grid_sampler_{}_channels_last_{}_{}", direction, scalarToMetalTypeString(input), tile_channels);
  const auto threads =
      MTLSizeMake(at::ceil_div(pixels, tile_pixels) * group_size, at::ceil_div(channels, tile_channels), input.size(0));
  run_grid_sampler_kernel(kernel, tensors, params, threads, group_size);
}

template <unsigned N, typename idx_type_t>
static GridSamplerGradientParams<N, idx_type_t> grid_sampler_gradient_params(const GridSamplerCall& call,
                                                                             const Tensor& grad_output,
                                                                             const Tensor& input,
                                                                             const Tensor& grid) {
  GridSamplerGradientParams<N, idx_type_t> params{};
  params.grad_output_sizes = grid_sampler_dims<N, idx_type_t>(grad_output.sizes());
  params.grad_output_strides = grid_sampler_dims<N, idx_type_t>(grad_output.strides());
  params.input_sizes = grid_sampler_dims<N, idx_type_t>(input.sizes());
  params.input_strides = grid_sampler_dims<N, idx_type_t>(input.strides());
  params.grid_strides = grid_sampler_dims<N, idx_type_t>(grid.strides());
  params.padding_mode = call.padding_mode;
  params.align_corners = call.align_corners;
  params.compute_grad_input = call.compute_grad_input;
  return params;
}

// Runs the kernel with the work, over `positions` times `rows`. It takes the tensors, of which the first may be
// undefined, then params.
template <typename params_type_t>
static void run_grid_sampler_gradients(const std::string& kernel,
                                       const GridSamplerDivision& division,
                                       const Tensor& sums,
                                       const Tensor& grad_grid,
                                       const Tensor& grad_output,
                                       const Tensor& input,
                                       const Tensor& grid,
                                       params_type_t params,
                                       int64_t positions,
                                       int64_t rows) {
  constexpr int64_t group_size = 128;
  // A launch counts its threads in 32 bits, so a larger grid takes several.
  constexpr int64_t max_launch = int64_t{1} << 30;
  const int64_t at_once = max_launch / group_size * division.tile();
  // Metal wants a buffer in every slot, also in one that the kernel leaves alone.
  const Tensor& sums_slot = sums.defined() ? sums : grad_grid;
  for (int64_t first = 0; first < positions; first += at_once) {
    params.first_position = static_cast<decltype(params.first_position)>(first);
    const auto groups = at::ceil_div(std::min(positions - first, at_once), division.tile());
    run_grid_sampler_kernel(kernel,
                            {sums_slot, grad_grid, grad_output, input, grid},
                            params,
                            MTLSizeMake(groups * group_size, rows, 1),
                            group_size);
  }
}

// A thread has a position.
template <unsigned N, typename idx_type_t>
static void run_grid_sampler_positions(const GridSamplerCall& call,
                                       const Tensor& sums,
                                       const Tensor& grad_grid,
                                       const Tensor& grad_output,
                                       const Tensor& input,
                                       const Tensor& grid) {
  constexpr int64_t nearest_channels = 8; // of a thread; for the others, all of them
  auto params = grid_sampler_gradient_params<N, idx_type_t>(call, grad_output, input, grid);
  if (sums.defined()) {
    params.grad_input_strides = grid_sampler_dims<N, idx_type_t>(sums.strides());
  }
  const auto kernel = fmt::format("{}_positions_{}_{}{}",
                                  call.op,
                                  interp_to_string(call.interpolation_mode),
                                  scalarToMetalTypeString(input),
                                  std::is_same_v<idx_type_t, int64_t> ? "_int64" : "");
  const auto positions = grid.numel() / grid.size(-1);
  const auto rows = call.is_nearest() ? at::ceil_div(input.size(1), nearest_channels) : 1;
  run_grid_sampler_gradients(kernel, {0, false}, sums, grad_grid, grad_output, input, grid, params, positions, rows);
}

// Returns grad_input.
template <unsigned N>
static Tensor grid_sampler_gradients_by_positions(const GridSamplerCall& call,
                                                  const Tensor& grad_grid,
                                                  const Tensor& grad_output,
                                                  const Tensor& input,
                                                  const Tensor& grid) {
  Tensor sums;
  if (call.compute_grad_input) {
    sums = at::zeros(input.sizes(), input.options().dtype(kFloat));
  }
  const auto run = grid_sampler_fits_32_bits({sums, grad_grid, grad_output, input, grid})
      ? run_grid_sampler_positions<N, int32_t>
      : run_grid_sampler_positions<N, int64_t>;
  run(call, sums, grad_grid, grad_output, input, grid);
  return call.compute_grad_input ? sums.to(input.scalar_type()) : Tensor();
}

// A position has several lanes, which want channels-last memory. Returns grad_input.
template <unsigned N>
static Tensor grid_sampler_gradients_by_lanes(const GridSamplerCall& call,
                                              const GridSamplerDivision& division,
                                              const Tensor& grad_grid,
                                              const Tensor& grad_output,
                                              const Tensor& input,
                                              const Tensor& grid) {
  // From so many sums on, zeroing them by a launch of its own is faster than on the way of the input.
  constexpr int64_t separate_zeros_bytes = int64_t{1} << 27;
  constexpr auto channels_last = N == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  const auto batch = input.size(0);
  const bool is_turned = !call.is_nearest() && input.is_contiguous() && !input.is_contiguous(channels_last);
  const bool zeroes_sums =
      is_turned && call.compute_grad_input && input.numel() * int64_t{sizeof(float)} < separate_zeros_bytes;
  Tensor sums;
  if (call.compute_grad_input) {
    const std::array<int64_t, 3> sizes{batch, input.numel() / (batch * input.size(1)), input.size(1)};
    const auto options = input.options().dtype(kFloat);
    sums = zeroes_sums ? at::empty(sizes, options) : at::zeros(sizes, options);
  }
  Tensor values = input;
  if (is_turned) {
    values = at::empty(input.sizes(), input.options(), channels_last);
    turn_grid_sampler_input("to", input, {values, zeroes_sums ? sums : values, input}, zeroes_sums);
  } else if (!call.is_nearest()) {
    values = input.contiguous(channels_last);
  }

  auto position_stride = grid_sampler_position_stride(grad_output);
  const Tensor grads = position_stride ? grad_output : grad_output.contiguous();
  auto params = grid_sampler_gradient_params<N, int32_t>(call, grads, values, grid);
  params.grad_output_strides[N - 1] = static_cast<int32_t>(position_stride.value_or(1));
  const auto kernel = fmt::format("{}_lanes_{}_{}_{}{}",
                                  call.op,
                                  interp_to_string(call.interpolation_mode),
                                  scalarToMetalTypeString(input),
                                  division.lanes,
                                  division.is_staged ? "_staged" : "");
  const auto positions = grid.numel() / (batch * grid.size(-1));
  run_grid_sampler_gradients(kernel, division, sums, grad_grid, grads, values, grid, params, positions, batch);
  if (!call.compute_grad_input) {
    return Tensor();
  }
  Tensor grad_input = at::empty(input.sizes(), input.options());
  turn_grid_sampler_input("from", input, {grad_input, sums}, false);
  return grad_input;
}

// N is the number of dimensions of input.
template <unsigned N>
static std::tuple<Tensor, Tensor> grid_sampler_gradients(const char* op,
                                                         const Tensor& grad_output,
                                                         const Tensor& input,
                                                         const Tensor& grid,
                                                         int64_t interpolation_mode,
                                                         int64_t padding_mode,
                                                         bool align_corners,
                                                         bool compute_grad_input) {
  check_grid_sampler_arguments(op, input, grid, interpolation_mode, padding_mode);
  check_grid_sampler_grad_output(op, grad_output, input, grid);
  const GridSamplerCall call{op,
                             static_cast<GridSamplerInterpolation>(interpolation_mode),
                             static_cast<GridSamplerPadding>(padding_mode),
                             align_corners,
                             compute_grad_input};
  if (grad_output.numel() == 0 || (call.is_nearest() && !compute_grad_input)) {
    // Without channels there is nothing to sum, but grad_grid has elements all the same.
    return std::make_tuple(compute_grad_input ? at::zeros(input.sizes(), input.options()) : Tensor(),
                           at::zeros(grid.sizes(), grid.options()));
  }
  Tensor grad_grid = at::empty(grid.sizes(), grid.options());
  const auto division = grid_sampler_division(call, grad_output, input, grid);
  Tensor grad_input = division.lanes == 0
      ? grid_sampler_gradients_by_positions<N>(call, grad_grid, grad_output, input, grid)
      : grid_sampler_gradients_by_lanes<N>(call, division, grad_grid, grad_output, input, grid);
  return std::make_tuple(std::move(grad_input), std::move(grad_grid));
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
  check_grid_sampler_common(input, grid);
  check_grid_sampler_2d(input, grid);
  if (output_mask[0]) {
    // The order of the atomic additions is not determined.
    globalContext().alertNotDeterministic("grid_sampler_2d_backward_mps");
  }
  // Only output_mask[0] is looked at: grad_grid is always computed, as on the other backends.
  return mps::grid_sampler_gradients<4>("grid_sampler_2d_backward",
                                        grad_output,
                                        input,
                                        grid,
                                        interpolation_mode,
                                        padding_mode,
                                        align_corners,
                                        output_mask[0]);
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
  return mps::grid_sampler_gradients<5>("grid_sampler_3d_backward",
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
