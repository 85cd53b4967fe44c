#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/ceil_div.h>
#include <ATen/mps/MPSProfiler.h>
#include <ATen/native/GridSamplerUtils.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/native/mps/kernels/GridSamplerLanes.h>
#include <ATen/native/mps/operations/GridSamplerLanes.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#else
#include <ATen/ops/empty.h>
#endif

namespace at::native::mps {

#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/GridSamplerLanes_metallib.h>
#endif

namespace {

// What the kernels of one call have in common.
struct LanesCall {
  GridSamplerInterpolation interpolation_mode;
  GridSamplerLanesPadding padding_mode;
  bool align_corners;
  bool compute_grad_input;

  const char* interpolation() const {
    return interpolation_mode == GridSamplerInterpolation::Bicubic ? "bicubic" : "bilinear";
  }
};

// How many lanes share a sampling position, and whether grad_output is transposed in threadgroup memory.
struct LanesDivision {
  int64_t lanes;
  bool is_staged;

  // Positions of a threadgroup.
  int64_t tile() const {
    return lanes == 8 ? 64 : 32;
  }
};

// Whether 32 bits hold every offset within an image, dense or as it is, and the distance between images.
bool images_fit_32_bits(const Tensor& t) {
  constexpr int64_t max = std::numeric_limits<int32_t>::max();
  int64_t last = 0;
  for (const auto dim : c10::irange(1, t.dim())) {
    last += (t.size(dim) - 1) * t.stride(dim);
  }
  return t.numel() / t.size(0) <= max && last <= max && t.stride(0) <= max;
}

// Whether the tensors are what the kernels read: dtypes, and the shape of grad_output.
bool are_supported(const Tensor& grad_output, const Tensor& input, const Tensor& grid) {
  const auto dtype = input.scalar_type();
  if ((dtype != kFloat && dtype != kHalf && dtype != kBFloat16) || grid.scalar_type() != dtype ||
      grad_output.scalar_type() != dtype || grad_output.device() != input.device() ||
      grad_output.layout() != kStrided) {
    return false;
  }
  DimVector output_sizes(grid.sizes().slice(0, grid.dim() - 1));
  output_sizes.insert(output_sizes.begin() + 1, input.size(1));
  if (grad_output.numel() == 0 || grad_output.sizes() != IntArrayRef(output_sizes)) {
    return false;
  }
  // The kernels count pixels in 32 bits, and for reflection up to twice the axis.
  constexpr int64_t max_axis_size = int64_t{1} << 30;
  const auto axes = input.sizes().slice(2);
  return std::all_of(axes.begin(), axes.end(), [](int64_t size) { return size < max_axis_size; }) &&
      images_fit_32_bits(grad_output) && images_fit_32_bits(input) && images_fit_32_bits(grid);
}

// By channels and interpolation, since the grid's contents are not known here. The thresholds are crossovers measured
// on an NVIDIA H200, which has 32 lanes too; Apple GPUs may have others. Nearest has little to gain, with one addition
// per channel, and a gradient of the grid alone has none: it is not worth a change of layout.
std::optional<LanesDivision> division_of(const LanesCall& call, const Tensor& grad_output, const Tensor& input) {
  const bool is_half_bicubic =
      call.interpolation_mode == GridSamplerInterpolation::Bicubic && input.scalar_type() != kFloat;
  const int64_t few_channels = is_half_bicubic ? 4 : 12;
  const auto channels = input.size(1);
  if (call.interpolation_mode == GridSamplerInterpolation::Nearest || !call.compute_grad_input ||
      channels <= few_channels) {
    return std::nullopt;
  }
  return LanesDivision{channels <= 32 ? 8 : 32, grad_output.stride(1) != 1};
}

// The distance from one position of grad_output to the next, if it is the same from row to row. Axes of size 1 have no
// say: their strides may be anything.
std::optional<int64_t> position_stride_of(const Tensor& grad_output) {
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
void run_kernel(const std::string& kernel,
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

// Transposes some images of an input ("to"), or of its gradient ("from"). The kernel wants a buffer for `sums` in any
// case; they are of the same size as what is transposed.
void transpose_input(const char* direction,
                     const Tensor& transposed,
                     const Tensor& sums,
                     const Tensor& images,
                     const Tensor& input,
                     bool zeroes_sums) {
  constexpr int64_t group_size = 256;
  constexpr int64_t tile_pixels = 64;
  const auto channels = input.size(1);
  const auto pixels = input.numel() / (input.size(0) * channels);
  const int64_t tile_channels = channels <= 16 ? 16 : 32; // the tile that wastes the least
  const bool is_to = direction == std::string_view("to");
  GridSamplerTransposeParams params{};
  params.rows = static_cast<int32_t>(is_to ? channels : pixels);
  params.columns = static_cast<int32_t>(is_to ? pixels : channels);
  params.zeroes_sums = zeroes_sums;
  const auto kernel =
      fmt::format("grid_sampler_{}_channels_last_{}_{}", direction, scalarToMetalTypeString(input), tile_channels);
  const auto tiles = at::ceil_div(pixels, tile_pixels) * at::ceil_div(channels, tile_channels);
  const auto threads = MTLSizeMake(tiles * group_size, images.size(0), 1);
  run_kernel(kernel, {transposed, sums, images}, params, threads, group_size);
}

// Sizes or strides, as the kernels take them.
template <unsigned N>
c10::metal::array<int32_t, N> dims_of(IntArrayRef values) {
  TORCH_INTERNAL_ASSERT_DEBUG_ONLY(values.size() == N);
  c10::metal::array<int32_t, N> dims;
  std::transform(values.begin(), values.end(), dims.begin(), [](int64_t v) { return static_cast<int32_t>(v); });
  return dims;
}

// How many images are worked on at a time, so that scratch memory does not grow with the batch; one image may need more
// than that. Groups are of about the same size.
int64_t images_at_once(int64_t batch, int64_t scratch_bytes_of_image) {
  constexpr int64_t scratch_bytes = int64_t{1} << 28;
  const auto most = std::max(scratch_bytes / std::max<int64_t>(scratch_bytes_of_image, 1), int64_t{1});
  return at::ceil_div(batch, at::ceil_div(batch, most));
}

// N is the number of dimensions of input.
template <unsigned N>
std::tuple<Tensor, Tensor> gradients_of(const LanesCall& call,
                                        const LanesDivision& division,
                                        const Tensor& grad_output,
                                        const Tensor& input,
                                        const Tensor& grid) {
  // From so many sums on, zeroing them by a launch of its own is faster than while the input is transposed.
  constexpr int64_t separate_zeros_bytes = int64_t{1} << 26;
  constexpr auto channels_last = N == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  constexpr int64_t group_size = 128;
  // A launch counts its threads in 32 bits, so a larger grid takes several.
  constexpr int64_t max_launch = int64_t{1} << 30;
  const int64_t at_once = max_launch / group_size * division.tile();
  const auto batch = input.size(0);
  const auto channels = input.size(1);
  const auto pixels = input.numel() / (batch * channels);
  const auto positions = grid.numel() / (batch * grid.size(-1));
  const bool is_copied = !input.is_contiguous(channels_last);
  const bool is_transposed = is_copied && input.is_contiguous();
  const auto position_stride = position_stride_of(grad_output);
  const int64_t scratch = channels *
      (pixels * ((call.compute_grad_input ? int64_t{sizeof(float)} : 0) + (is_copied ? input.element_size() : 0)) +
       (position_stride ? 0 : positions * grad_output.element_size()));
  const auto images = images_at_once(batch, scratch);
  const bool zeroes_sums = is_transposed && call.compute_grad_input &&
      images * channels * pixels * int64_t{sizeof(float)} < separate_zeros_bytes;

  Tensor grad_input = call.compute_grad_input ? at::empty(input.sizes(), input.options()) : Tensor();
  Tensor grad_grid = at::empty(grid.sizes(), grid.options());
  // Metal wants a buffer in every slot, also in one that the kernel leaves alone.
  const Tensor all_sums = call.compute_grad_input ? at::empty({images, pixels, channels}, input.options().dtype(kFloat))
                                                  : grad_grid.view({batch, -1});
  DimVector image_sizes(input.sizes());
  image_sizes[0] = images;
  const Tensor all_values = is_transposed ? at::empty(image_sizes, input.options(), channels_last) : Tensor();
  const auto kernel = fmt::format("grid_sampler_{}d_backward_lanes_{}_{}_{}{}",
                                  N - 2,
                                  call.interpolation(),
                                  scalarToMetalTypeString(input),
                                  division.lanes,
                                  division.is_staged ? "_staged" : "");
  for (int64_t image = 0; image < batch; image += images) {
    const auto count = std::min(images, batch - image);
    const auto sums = all_sums.narrow(0, 0, count);
    if (call.compute_grad_input && !zeroes_sums) {
      sums.zero_();
    }
    Tensor values = input.narrow(0, image, count);
    if (is_transposed) {
      const auto last = all_values.narrow(0, 0, count);
      transpose_input("to", last, zeroes_sums ? sums : last, values, input, zeroes_sums);
      values = last;
    } else if (is_copied) {
      values = values.contiguous(channels_last);
    }
    Tensor grads = grad_output.narrow(0, image, count);
    if (!position_stride) {
      grads = grads.contiguous();
    }
    const auto coords = grid.narrow(0, image, count);
    GridSamplerLanesParams<N> params{};
    params.grad_output_sizes = dims_of<N>(grads.sizes());
    params.grad_output_strides = dims_of<N>(grads.strides());
    params.grad_output_strides[N - 1] = static_cast<int32_t>(position_stride.value_or(1));
    params.input_sizes = dims_of<N>(values.sizes());
    params.grid_strides = dims_of<N>(coords.strides());
    params.padding_mode = call.padding_mode;
    params.align_corners = call.align_corners;
    params.compute_grad_input = call.compute_grad_input;
    for (int64_t first = 0; first < positions; first += at_once) {
      params.first_position = static_cast<int32_t>(first);
      const auto groups = at::ceil_div(std::min(positions - first, at_once), division.tile());
      run_kernel(kernel,
                 {sums, grad_grid.narrow(0, image, count), grads, values, coords},
                 params,
                 MTLSizeMake(groups * group_size, count, 1),
                 group_size);
    }
    if (call.compute_grad_input) {
      transpose_input("from", grad_input.narrow(0, image, count), sums, sums, input, false);
    }
  }
  return std::make_tuple(std::move(grad_input), std::move(grad_grid));
}

} // namespace

std::optional<std::tuple<Tensor, Tensor>> grid_sampler_backward_lanes(const Tensor& grad_output,
                                                                      const Tensor& input,
                                                                      const Tensor& grid,
                                                                      int64_t interpolation_mode,
                                                                      int64_t padding_mode,
                                                                      bool align_corners,
                                                                      bool compute_grad_input) {
  const auto last_interpolation =
      static_cast<int64_t>(input.dim() == 4 ? GridSamplerInterpolation::Bicubic : GridSamplerInterpolation::Nearest);
  if (interpolation_mode < 0 || interpolation_mode > last_interpolation || padding_mode < 0 ||
      padding_mode > static_cast<int64_t>(GridSamplerPadding::Reflection) || !are_supported(grad_output, input, grid)) {
    return std::nullopt;
  }
  const LanesCall call{static_cast<GridSamplerInterpolation>(interpolation_mode),
                       static_cast<GridSamplerLanesPadding>(padding_mode),
                       align_corners,
                       compute_grad_input};
  const auto division = division_of(call, grad_output, input);
  if (!division) {
    return std::nullopt;
  }
  return input.dim() == 4 ? gradients_of<4>(call, *division, grad_output, input, grid)
                          : gradients_of<5>(call, *division, grad_output, input, grid);
}

} // namespace at::native::mps
