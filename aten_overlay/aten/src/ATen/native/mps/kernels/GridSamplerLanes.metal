// Gradients of a grid sampler over D axes. 8 or 32 lanes have a sampling
// position, each some of its channels: in channels-last memory they read from
// and add to neighboring addresses, wherever the sample lies.
//
// An input of another layout is transposed first and the sums of grad_input
// after; grad_output is transposed in threadgroup memory as it is read. The
// sums are in float whatever T is, and rounded once. No simdgroup function is
// behind a condition that may differ within a simdgroup.
#include <ATen/native/mps/kernels/GridSamplerLanes.h>
#include <ATen/native/mps/kernels/GridSamplerWindow.h>
#include <c10/metal/atomic.h>
#include <c10/metal/common.h>
#include <metal_stdlib>

using namespace metal;
using namespace c10::metal;

constant constexpr int32_t GRID_GROUP_SIZE = 128; // threads of a threadgroup

template <template <typename> class Interp>
using GridTapsOf = GridTaps<Interp<GridPadZeros>::taps_count>;

// Taps along one axis. The padding is looked at here, once per position, and
// all that follows is the same for all paddings.
template <template <typename> class Interp>
GridTapsOf<Interp> grid_padded_taps(
    float coord,
    int32_t size,
    bool align_corners,
    GridSamplerLanesPadding padding) {
  if (padding == GridSamplerLanesPadding::Border) {
    return Interp<GridPadBorder>::taps(coord, size, align_corners);
  }
  if (padding == GridSamplerLanesPadding::Reflection) {
    return Interp<GridPadReflection>::taps(coord, size, align_corners);
  }
  return Interp<GridPadZeros>::taps(coord, size, align_corners);
}

// Taps along each axis, of a sample at `coords`, of which the first belongs to
// the last axis; a sample that does not exist has no pixels.
template <int32_t D, template <typename> class Interp, typename idx_t>
GridWindow<D, Interp<GridPadZeros>> grid_padded_window(
    const thread float* coords,
    bool exists,
    constant GridSamplerLanesParams<D + 2, idx_t>& params) {
  GridWindow<D, Interp<GridPadZeros>> window;
#pragma unroll
  for (int32_t axis = 0; axis < D; ++axis) {
    window.axes[axis] = grid_padded_taps<Interp>(
        coords[D - 1 - axis],
        static_cast<int32_t>(params.input_sizes[axis + 2]),
        params.align_corners,
        params.padding_mode);
  }
  if (!exists) {
#pragma unroll
    for (int32_t tap = 0; tap < Interp<GridPadZeros>::taps_count; ++tap) {
      window.axes[0].index[tap] = -1;
    }
  }
  return window;
}

template <int32_t D, typename T, typename idx_t>
void grid_load_coords(
    thread float* coords,
    const device T* grid,
    constant GridDims<D, idx_t>& strides) {
#pragma unroll
  for (int32_t i = 0; i < D; ++i) {
    coords[i] = static_cast<float>(grid[i * strides[D + 1]]);
  }
}

// What the lanes of a position need to know of it.
template <int32_t D, int32_t N>
struct GridCell;

template <int32_t D>
struct GridCell<D, 1> {
  int32_t pixel; // negative: there is none

  static GridCell make(
      thread const GridTaps<1>* axes,
      constant GridDims<D, int32_t>& sizes) {
    int32_t pixel = 0;
    bool is_inside = true;
#pragma unroll
    for (int32_t axis = 0; axis < D; ++axis) {
      pixel = pixel * sizes[axis + 2] + axes[axis].index[0];
      is_inside = is_inside && axes[axis].index[0] >= 0;
    }
    return {is_inside ? pixel : -1};
  }
};

// The pixel with the lowest index along each axis; the others follow from it.
template <int32_t D>
struct GridCell<D, 2> {
  int32_t first[D]; // -2: there is neither this pixel nor the one after it
  float weight[D]; // of the pixel after it

  static GridCell make(
      thread const GridTaps<2>* axes,
      constant GridDims<D, int32_t>&) {
    GridCell cell;
#pragma unroll
    for (int32_t axis = 0; axis < D; ++axis) {
      const int32_t first = axes[axis].index[0];
      const int32_t second = axes[axis].index[1];
      cell.first[axis] = first >= 0 ? first : second >= 0 ? second - 1 : -2;
      cell.weight[axis] = axes[axis].weight[1];
    }
    return cell;
  }
};

template <>
struct GridCell<2, 4> {
  int32_t x[4];
  int32_t y[4]; // times width
  float weight_x[4];
  float weight_y[4];
  float slope_x[4];
  float slope_y[4];

  static GridCell make(
      thread const GridTaps<4>* axes,
      constant GridDims<2, int32_t>& sizes) {
    GridCell cell;
#pragma unroll
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t row = axes[0].index[i];
      cell.x[i] = axes[1].index[i];
      cell.y[i] = row < 0 ? -1 : row * sizes[3];
      cell.weight_x[i] = axes[1].weight[i];
      cell.weight_y[i] = axes[0].weight[i];
      cell.slope_x[i] = axes[1].slope[i];
      cell.slope_y[i] = axes[0].slope[i];
    }
    return cell;
  }

  // Any of its pixels is: negative numbers have their highest bit in common.
  bool is_inside() const thread {
    return (x[0] & x[1] & x[2] & x[3]) >= 0 && (y[0] & y[1] & y[2] & y[3]) >= 0;
  }
};

// Channels of a lane at a time.
constant constexpr int32_t GRID_LANE_CHANNELS = 2;

// Channels-last memory of one image, seen from one lane: its channels are
// `channel`, `channel + LANES` and so on.
template <int32_t D, typename T, int32_t LANES>
struct GridImage {
  device atomic<float>* grad_input;
  const device T* input;
  int32_t channel;
  int32_t channels;
  int32_t sizes[D];
  bool compute_grad_input;

  bool has(int32_t k) const thread {
    return channel + k * LANES < channels;
  }

  // What is not read counts as 0. Loads should be on their way at once:
  // NVIDIA's compiler makes 32-bit loads conditional without a branch, but not
  // 16-bit ones, which are read at a clamped address instead.
  void load(thread float* value, bool is_inside, int32_t pixel) const thread {
    const device T* first = input + (is_inside ? pixel : 0) * channels;
#pragma unroll
    for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
      value[k] = 0.0f;
      if (sizeof(T) == 2) {
        const int32_t c = ::metal::min(channel + k * LANES, channels - 1);
        const auto read = static_cast<float>(first[c]);
        value[k] = is_inside && has(k) ? read : 0.0f;
      } else if (is_inside && has(k)) {
        value[k] = static_cast<float>(first[channel + k * LANES]);
      }
    }
  }

  void add(thread const float* value, bool is_inside, int32_t pixel)
      const thread {
    if (!is_inside || !compute_grad_input) {
      return;
    }
#pragma unroll
    for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
      if (has(k)) {
        AtomicType<float>::atomic_add(
            grad_input, pixel * channels + channel + k * LANES, value[k]);
      }
    }
  }
};

// Walks positions that follow each other. `visit` takes the next one with its
// grad_output, of the lane's channels, and adds the derivatives with respect to
// its position to `slopes`, the last axis first.
template <int32_t D, int32_t N, typename Image>
struct GridWalk;

// Nearest: the sum of a pixel stays in a register while samples stay on it.
template <int32_t D, typename Image>
struct GridWalk<D, 1, Image> {
  float sum[GRID_LANE_CHANNELS];
  int32_t pixel;

  void start() thread {
    pixel = -1;
#pragma unroll
    for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
      sum[k] = 0.0f;
    }
  }

  void finish(thread const Image& image) const thread {
    image.add(sum, pixel >= 0, pixel);
  }

  void visit(
      thread const Image& image,
      GridCell<D, 1> cell,
      thread const float* grad,
      thread float*) thread {
    if (cell.pixel < 0) {
      return;
    }
    const bool is_same = cell.pixel == pixel;
    if (!is_same) {
      finish(image);
      pixel = cell.pixel;
    }
#pragma unroll
    for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
      sum[k] = (is_same ? sum[k] : 0.0f) + grad[k];
    }
  }
};

// Bilinear: the sums of the four pixels stay in registers while the samples
// stay between them, and two of them when a sample moves on by one pixel.
template <typename Image>
struct GridWalk<2, 2, Image> {
  // upper left, upper right, lower left, lower right
  float sum[4][GRID_LANE_CHANNELS];
  int32_t x;
  int32_t y;

  void start() thread {
    x = -2;
    y = -2;
#pragma unroll
    for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
      sum[0][k] = sum[1][k] = sum[2][k] = sum[3][k] = 0.0f;
    }
  }

  void finish(thread const Image& image) const thread {
    flush(image, false, false, false, false);
  }

  void visit(
      thread const Image& image,
      GridCell<2, 2> cell,
      thread const float* grad,
      thread float* slopes) thread {
    const int32_t cell_x = cell.first[1];
    const int32_t cell_y = cell.first[0];
    if (cell_x < -1 || cell_y < -1) {
      return;
    }
    const int32_t width = image.sizes[1];
    const bool has_left = cell_x >= 0;
    const bool has_right = cell_x + 1 < width;
    const bool has_upper = cell_y >= 0;
    const bool has_lower = cell_y + 1 < image.sizes[0];
    const int32_t pixel = cell_y * width + cell_x;
    float value[4][GRID_LANE_CHANNELS];
    image.load(value[0], has_left && has_upper, pixel);
    image.load(value[1], has_right && has_upper, pixel + 1);
    image.load(value[2], has_left && has_lower, pixel + width);
    image.load(value[3], has_right && has_lower, pixel + width + 1);
    move(image, cell_x, cell_y);
    const float right = cell.weight[1];
    const float left = 1.0f - right;
    const float lower = cell.weight[0];
    const float upper = 1.0f - lower;
#pragma unroll
    for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
      sum[0][k] += left * upper * grad[k];
      sum[1][k] += right * upper * grad[k];
      sum[2][k] += left * lower * grad[k];
      sum[3][k] += right * lower * grad[k];
      slopes[0] += grad[k] *
          (upper * (value[1][k] - value[0][k]) +
           lower * (value[3][k] - value[2][k]));
      slopes[1] += grad[k] *
          (left * (value[2][k] - value[0][k]) +
           right * (value[3][k] - value[1][k]));
    }
  }

 private:
  // Adds the pixels to grad_input, but for those that are kept.
  void flush(
      thread const Image& image,
      bool keeps_left,
      bool keeps_right,
      bool keeps_upper,
      bool keeps_lower) const thread {
    const int32_t width = image.sizes[1];
    const bool has_left = x >= 0;
    const bool has_right = x >= -1 && x + 1 < width;
    const bool has_upper = y >= 0;
    const bool has_lower = y >= -1 && y + 1 < image.sizes[0];
    const int32_t pixel = y * width + x;
    image.add(
        sum[0], has_left && has_upper && !keeps_left && !keeps_upper, pixel);
    image.add(
        sum[1],
        has_right && has_upper && !keeps_right && !keeps_upper,
        pixel + 1);
    image.add(
        sum[2],
        has_left && has_lower && !keeps_left && !keeps_lower,
        pixel + width);
    image.add(
        sum[3],
        has_right && has_lower && !keeps_right && !keeps_lower,
        pixel + width + 1);
  }

  void move(thread const Image& image, int32_t new_x, int32_t new_y) thread {
    const int32_t right = new_x - x;
    const int32_t down = new_y - y;
    if (right == 0 && down == 0) {
      return;
    }
    const bool keeps_right = right == 1 && down == 0;
    const bool keeps_left = right == -1 && down == 0;
    const bool keeps_lower = right == 0 && down == 1;
    const bool keeps_upper = right == 0 && down == -1;
    flush(image, keeps_left, keeps_right, keeps_upper, keeps_lower);
#pragma unroll
    for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
      const float before[4] = {sum[0][k], sum[1][k], sum[2][k], sum[3][k]};
      sum[0][k] = keeps_right ? before[1] : keeps_lower ? before[2] : 0.0f;
      sum[1][k] = keeps_left ? before[0] : keeps_lower ? before[3] : 0.0f;
      sum[2][k] = keeps_right ? before[3] : keeps_upper ? before[0] : 0.0f;
      sum[3][k] = keeps_left ? before[2] : keeps_upper ? before[1] : 0.0f;
    }
    x = new_x;
    y = new_y;
  }
};

// Trilinear.
template <typename Image>
struct GridWalk<3, 2, Image> {
  void start() thread {}

  void finish(thread const Image&) const thread {}

  void visit(
      thread const Image& image,
      GridCell<3, 2> cell,
      thread const float* grad,
      thread float* slopes) thread {
    if (cell.first[0] < -1 || cell.first[1] < -1 || cell.first[2] < -1) {
      return;
    }
    const float back = cell.weight[0];
    const float lower = cell.weight[1];
    const float right = cell.weight[2];
    bool has[8];
    int32_t pixel[8];
    float value[8][GRID_LANE_CHANNELS];
#pragma unroll
    for (int32_t corner = 0; corner < 8; ++corner) {
      const int32_t z = cell.first[0] + corner / 4;
      const int32_t y = cell.first[1] + (corner / 2 & 1);
      const int32_t x = cell.first[2] + (corner & 1);
      has[corner] = z >= 0 && z < image.sizes[0] && y >= 0 &&
          y < image.sizes[1] && x >= 0 && x < image.sizes[2];
      pixel[corner] = (z * image.sizes[1] + y) * image.sizes[2] + x;
      image.load(value[corner], has[corner], pixel[corner]);
    }
    const float front = 1.0f - back;
    const float upper = 1.0f - lower;
#pragma unroll
    for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
      float line[4]; // sampled along x
      float slope_x[4];
#pragma unroll
      for (int32_t i = 0; i < 4; ++i) {
        slope_x[i] = value[2 * i + 1][k] - value[2 * i][k];
        line[i] =
            (1.0f - right) * value[2 * i][k] + right * value[2 * i + 1][k];
      }
      slopes[0] += grad[k] *
          (front * (upper * slope_x[0] + lower * slope_x[1]) +
           back * (upper * slope_x[2] + lower * slope_x[3]));
      slopes[1] +=
          grad[k] * (front * (line[1] - line[0]) + back * (line[3] - line[2]));
      slopes[2] +=
          grad[k] * (upper * (line[2] - line[0]) + lower * (line[3] - line[1]));
    }
#pragma unroll
    for (int32_t corner = 0; corner < 8; ++corner) {
      const float weight = (corner & 1 ? right : 1.0f - right) *
          (corner / 2 & 1 ? lower : upper) * (corner / 4 ? back : front);
      float part[GRID_LANE_CHANNELS];
#pragma unroll
      for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
        part[k] = weight * grad[k];
      }
      image.add(part, has[corner], pixel[corner]);
    }
  }
};

// Bicubic: all sixteen pixels are read before the first is added to.
template <typename Image>
struct GridWalk<2, 4, Image> {
  void start() thread {}

  void finish(thread const Image&) const thread {}

  void visit(
      thread const Image& image,
      GridCell<2, 4> cell,
      thread const float* grad,
      thread float* slopes) thread {
    if (!cell.is_inside()) {
      return;
    }
    float sample_x[GRID_LANE_CHANNELS];
    float column_slope[4][GRID_LANE_CHANNELS];
#pragma unroll
    for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
      sample_x[k] = 0.0f;
      column_slope[0][k] = column_slope[1][k] = 0.0f;
      column_slope[2][k] = column_slope[3][k] = 0.0f;
    }
#pragma unroll
    for (int32_t i = 0; i < 4; ++i) {
      float value[4][GRID_LANE_CHANNELS];
#pragma unroll
      for (int32_t j = 0; j < 4; ++j) {
        image.load(
            value[j], cell.y[i] >= 0 && cell.x[j] >= 0, cell.y[i] + cell.x[j]);
      }
#pragma unroll
      for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
        float row_slope = 0.0f;
#pragma unroll
        for (int32_t j = 0; j < 4; ++j) {
          row_slope += value[j][k] * cell.slope_x[j];
          column_slope[j][k] += value[j][k] * cell.slope_y[i];
        }
        sample_x[k] += row_slope * cell.weight_y[i];
      }
    }
#pragma unroll
    for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
      float sample_y = 0.0f;
#pragma unroll
      for (int32_t j = 0; j < 4; ++j) {
        sample_y += column_slope[j][k] * cell.weight_x[j];
      }
      slopes[0] += grad[k] * sample_x[k];
      slopes[1] += grad[k] * sample_y;
    }
#pragma unroll
    for (int32_t i = 0; i < 4; ++i) {
#pragma unroll
      for (int32_t j = 0; j < 4; ++j) {
        float part[GRID_LANE_CHANNELS];
#pragma unroll
        for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
          part[k] = cell.weight_y[i] * cell.weight_x[j] * grad[k];
        }
        image.add(
            part, cell.y[i] >= 0 && cell.x[j] >= 0, cell.y[i] + cell.x[j]);
      }
    }
  }
};

// Sums of x and y over LANES neighboring lanes; the first of them gets that of
// x, the one in the middle that of y. One exchange less than half of what two
// sums would take: in the first, a lane keeps one and gives the other.
template <int32_t LANES>
float grid_sum_lanes(float x, float y, int32_t lane) {
  const bool is_upper = lane >= LANES / 2;
  float kept = is_upper ? y : x;
  kept += simd_shuffle_xor(is_upper ? x : y, LANES / 2);
#pragma unroll
  for (int32_t step = LANES / 4; step > 0; step /= 2) {
    kept += simd_shuffle_xor(kept, step);
  }
  return kept;
}

// Elements from one row of a tile in threadgroup memory to the next: one word
// more than a power of two, so that a column's elements are in different banks.
template <typename T>
constexpr int32_t grid_pitch(int32_t columns) {
  return columns + 4 / static_cast<int32_t>(sizeof(T));
}

// Brings BLOCK channels of TILE positions to threadgroup memory. All of a batch
// are on their way before the first is waited for, which is why addresses are
// clamped and not tested; what is beyond the last channel or position is never
// used.
template <typename T, typename idx_t, int32_t BLOCK, int32_t TILE>
void grid_stage(
    threadgroup T* staged,
    const device T* grads,
    idx_t stride_channel,
    idx_t stride_position,
    int32_t last_channel,
    int32_t last_position,
    int32_t channel,
    int32_t position,
    int32_t index) {
  constexpr int32_t count = BLOCK * TILE / GRID_GROUP_SIZE;
  constexpr int32_t batch = count < 16 ? count : 16;
#pragma unroll
  for (int32_t first = 0; first < count; first += batch) {
    T values[batch];
#pragma unroll
    for (int32_t i = 0; i < batch; ++i) {
      const int32_t element = index + (first + i) * GRID_GROUP_SIZE;
      const int32_t c = ::metal::min(channel + element / TILE, last_channel);
      const int32_t p = ::metal::min(position + element % TILE, last_position);
      values[i] = grads[c * stride_channel + p * stride_position];
    }
#pragma unroll
    for (int32_t i = 0; i < batch; ++i) {
      const int32_t element = index + (first + i) * GRID_GROUP_SIZE;
      staged[element / TILE * grid_pitch<T>(TILE) + element % TILE] = values[i];
    }
  }
}

// A threadgroup has TILE positions of one image that follow each other; each
// LANES lanes walk a run of them. STAGED: grad_output is read along positions
// and turned in threadgroup memory, for layouts in which these are neighbors.
//
// Input and sums of grad_input are channels last and dense. Positions of
// grad_output are grad_output_strides[D + 1] apart, also from row to row. Only
// offsets within an image are computed in 32 bits.
template <
    int32_t D,
    template <typename> class Interp,
    typename T,
    typename idx_t,
    int32_t LANES,
    int32_t TILE,
    bool STAGED>
[[max_total_threads_per_threadgroup(GRID_GROUP_SIZE)]] kernel void
grid_sampler_backward_lanes(
    device atomic<float>* grad_input [[buffer(0)]],
    device T* grad_grid [[buffer(1)]],
    const device T* grad_output [[buffer(2)]],
    const device T* input [[buffer(3)]],
    const device T* grid [[buffer(4)]],
    constant GridSamplerLanesParams<D + 2, idx_t>& params [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int32_t taps_count = Interp<GridPadZeros>::taps_count;
  constexpr bool is_differentiable = Interp<GridPadZeros>::is_differentiable;
  constexpr int32_t block = LANES * GRID_LANE_CHANNELS;
  constexpr int32_t run = TILE * LANES / GRID_GROUP_SIZE;
  constexpr int32_t pitch = grid_pitch<T>(TILE);
  constexpr int32_t staged_size = STAGED ? block * pitch : 1;
  threadgroup GridCell<D, taps_count> cells[TILE];
  threadgroup float derivatives[D * TILE];
  threadgroup float sums[D * TILE];
  threadgroup T staged[staged_size];

  const int32_t index = static_cast<int32_t>(thread_index);
  const int32_t first =
      params.first_position + static_cast<int32_t>(group.x) * TILE;
  const int64_t n = static_cast<int64_t>(group.y);
  const int32_t channels = params.input_sizes[1];
  const idx_t stride_channel = params.grad_output_strides[1];
  const idx_t stride_position = params.grad_output_strides[D + 1];
  int32_t positions = 1;
  int32_t pixels = 1;
#pragma unroll
  for (int32_t axis = 0; axis < D; ++axis) {
    positions *= params.grad_output_sizes[axis + 2];
    pixels *= params.input_sizes[axis + 2];
  }

  const bool exists = index < TILE && first + index < positions;
  const auto where = GridPosition<D, idx_t>::of_thread(
      exists ? first + index : 0, params.grad_output_sizes);
  float coords[D] = {};
  if (exists) {
    grid_load_coords<D, T, idx_t>(
        coords,
        grid + n * params.grid_strides[0] +
            where.grid_offset(params.grid_strides),
        params.grid_strides);
  }
  if (index < TILE) {
    const auto window =
        grid_padded_window<D, Interp, idx_t>(coords, exists, params);
    cells[index] =
        GridCell<D, taps_count>::make(window.axes, params.input_sizes);
#pragma unroll
    for (int32_t i = 0; i < D; ++i) {
      derivatives[D * index + i] = window.axes[D - 1 - i].derivative;
      sums[D * index + i] = 0.0f;
    }
  }
  const device T* grads = grad_output + n * params.grad_output_strides[0];
  const int32_t lane = index % LANES;
  const int32_t run_first = index / LANES * run;
  const int64_t image_start = n * pixels * channels;
  GridImage<D, T, LANES> image;
  image.grad_input = grad_input + image_start;
  image.input = input + image_start;
  image.channels = channels;
  image.compute_grad_input = params.compute_grad_input;
#pragma unroll
  for (int32_t axis = 0; axis < D; ++axis) {
    image.sizes[axis] = params.input_sizes[axis + 2];
  }

  for (int32_t c = 0; c < channels; c += block) {
    if (STAGED) {
      if (c != 0) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      grid_stage<T, idx_t, block, TILE>(
          staged,
          grads,
          stride_channel,
          stride_position,
          channels - 1,
          positions - 1,
          c,
          first,
          index);
    }
    if (STAGED || c == 0) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    image.channel = c + lane;
    GridWalk<D, taps_count, GridImage<D, T, LANES>> walk;
    walk.start();
#pragma clang loop unroll(disable)
    for (int32_t r = 0; r < run; ++r) {
      const int32_t i = run_first + r;
      float grad[GRID_LANE_CHANNELS];
#pragma unroll
      for (int32_t k = 0; k < GRID_LANE_CHANNELS; ++k) {
        if (STAGED) {
          grad[k] = static_cast<float>(staged[(lane + k * LANES) * pitch + i]);
        } else {
          grad[k] = image.has(k) && first + i < positions
              ? static_cast<float>(
                    grads
                        [(c + lane + k * LANES) * stride_channel +
                         (first + i) * stride_position])
              : 0.0f;
        }
      }
      float slopes[D] = {};
      walk.visit(image, cells[i], grad, slopes);
      if (is_differentiable) {
        const float sum = grid_sum_lanes<LANES>(slopes[0], slopes[1], lane);
        if (lane % (LANES / 2) == 0) {
          sums[D * i + lane / (LANES / 2)] += sum;
        }
        if (D == 3) {
          const float sum_z = grid_sum_lanes<LANES>(slopes[D - 1], 0.0f, lane);
          if (lane == 0) {
            sums[D * i + D - 1] += sum_z;
          }
        }
      }
    }
    walk.finish(image);
  }

  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int32_t i = index; i < D * TILE; i += GRID_GROUP_SIZE) {
    if (first + i / D < positions) {
      grad_grid[D * (n * positions + first) + i] =
          static_cast<T>(sums[i] * derivatives[i]);
    }
  }
}

constant constexpr int32_t GRID_TRANSPOSE_GROUP_SIZE = 256;
constant constexpr int32_t GRID_TRANSPOSE_PIXELS = 64; // of a tile

// Input of (batch, channels, pixels) to channels last. The sums of grad_input,
// which have the same size, are zeroed on the way where they are asked for:
// that saves a launch.
template <typename T, int32_t CHANNELS>
[[max_total_threads_per_threadgroup(GRID_TRANSPOSE_GROUP_SIZE)]] kernel void
grid_sampler_to_channels_last(
    device T* channels_last [[buffer(0)]],
    device float* sums [[buffer(1)]],
    const device T* input [[buffer(2)]],
    constant GridSamplerTransposeParams& params [[buffer(3)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int32_t count =
      CHANNELS * GRID_TRANSPOSE_PIXELS / GRID_TRANSPOSE_GROUP_SIZE;
  constexpr int32_t pitch = grid_pitch<T>(GRID_TRANSPOSE_PIXELS);
  threadgroup T tile[CHANNELS * pitch];
  const int32_t index = static_cast<int32_t>(thread_index);
  const int32_t pixel = static_cast<int32_t>(group.x) * GRID_TRANSPOSE_PIXELS;
  const int32_t channel = static_cast<int32_t>(group.y) * CHANNELS;
  const int64_t image_start =
      static_cast<int64_t>(group.z) * params.channels * params.pixels;
  const device T* image = input + image_start;
  T values[count];
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * GRID_TRANSPOSE_GROUP_SIZE;
    const int32_t c = ::metal::min(
        channel + element / GRID_TRANSPOSE_PIXELS, params.channels - 1);
    const int32_t p = ::metal::min(
        pixel + element % GRID_TRANSPOSE_PIXELS, params.pixels - 1);
    values[i] = image[c * params.pixels + p];
  }
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * GRID_TRANSPOSE_GROUP_SIZE;
    tile
        [element / GRID_TRANSPOSE_PIXELS * pitch +
         element % GRID_TRANSPOSE_PIXELS] = values[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * GRID_TRANSPOSE_GROUP_SIZE;
    const int32_t c = element % CHANNELS;
    const int32_t p = element / CHANNELS;
    if (channel + c < params.channels && pixel + p < params.pixels) {
      const int64_t at =
          image_start + (pixel + p) * params.channels + channel + c;
      channels_last[at] = tile[c * pitch + p];
      if (params.zeroes_sums) {
        sums[at] = 0.0f;
      }
    }
  }
}

// The sums of grad_input, channels last in float, to (batch, channels, pixels).
template <typename T, int32_t CHANNELS>
[[max_total_threads_per_threadgroup(GRID_TRANSPOSE_GROUP_SIZE)]] kernel void
grid_sampler_from_channels_last(
    device T* grad_input [[buffer(0)]],
    const device float* sums [[buffer(1)]],
    constant GridSamplerTransposeParams& params [[buffer(2)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int32_t count =
      CHANNELS * GRID_TRANSPOSE_PIXELS / GRID_TRANSPOSE_GROUP_SIZE;
  constexpr int32_t pitch = grid_pitch<float>(GRID_TRANSPOSE_PIXELS);
  threadgroup float tile[CHANNELS * pitch];
  const int32_t index = static_cast<int32_t>(thread_index);
  const int32_t pixel = static_cast<int32_t>(group.x) * GRID_TRANSPOSE_PIXELS;
  const int32_t channel = static_cast<int32_t>(group.y) * CHANNELS;
  const int64_t image_start =
      static_cast<int64_t>(group.z) * params.channels * params.pixels;
  const device float* image = sums + image_start;
  float values[count];
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * GRID_TRANSPOSE_GROUP_SIZE;
    const int32_t c =
        ::metal::min(channel + element % CHANNELS, params.channels - 1);
    const int32_t p =
        ::metal::min(pixel + element / CHANNELS, params.pixels - 1);
    values[i] = image[p * params.channels + c];
  }
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * GRID_TRANSPOSE_GROUP_SIZE;
    tile[element % CHANNELS * pitch + element / CHANNELS] = values[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * GRID_TRANSPOSE_GROUP_SIZE;
    const int32_t c = element / GRID_TRANSPOSE_PIXELS;
    const int32_t p = element % GRID_TRANSPOSE_PIXELS;
    if (channel + c < params.channels && pixel + p < params.pixels) {
      grad_input[image_start + (channel + c) * params.pixels + pixel + p] =
          static_cast<T>(tile[c * pitch + p]);
    }
  }
}

#define REGISTER_GRID_SAMPLER_LANES(D, interp, I, T, LANES, TILE, STAGED, X) \
  template[[host_name(                                                       \
      "grid_sampler_" #D "d_backward_lanes_" #interp "_" #T                  \
      "_" #LANES X)]] kernel void                                            \
  grid_sampler_backward_lanes<D, I, T, int32_t, LANES, TILE, STAGED>(        \
      device atomic<float> * grad_input [[buffer(0)]],                       \
      device T * grad_grid [[buffer(1)]],                                    \
      const device T* grad_output [[buffer(2)]],                             \
      const device T* input [[buffer(3)]],                                   \
      const device T* grid [[buffer(4)]],                                    \
      constant GridSamplerLanesParams<D + 2, int32_t>& params [[buffer(5)]], \
      uint2 group [[threadgroup_position_in_grid]],                          \
      uint thread_index [[thread_index_in_threadgroup]]);

#define REGISTER_GRID_SAMPLER_TRANSPOSES(T, CHANNELS)                    \
  template [[host_name(                                                  \
      "grid_sampler_to_channels_last_" #T "_" #CHANNELS)]] kernel void   \
  grid_sampler_to_channels_last<T, CHANNELS>(                            \
      device T * channels_last [[buffer(0)]],                            \
      device float* sums [[buffer(1)]],                                  \
      const device T* input [[buffer(2)]],                               \
      constant GridSamplerTransposeParams& params [[buffer(3)]],         \
      uint3 group [[threadgroup_position_in_grid]],                      \
      uint thread_index [[thread_index_in_threadgroup]]);                \
  template [[host_name(                                                  \
      "grid_sampler_from_channels_last_" #T "_" #CHANNELS)]] kernel void \
  grid_sampler_from_channels_last<T, CHANNELS>(                          \
      device T * grad_input [[buffer(0)]],                               \
      const device float* sums [[buffer(1)]],                            \
      constant GridSamplerTransposeParams& params [[buffer(2)]],         \
      uint3 group [[threadgroup_position_in_grid]],                      \
      uint thread_index [[thread_index_in_threadgroup]]);

// A position has 8 lanes for up to 32 channels, and 32 for more. STAGED goes
// with a grad_output that is not channels last.
#define REGISTER_GRID_SAMPLER_NARROW_LANES(D, interp, I, T)      \
  REGISTER_GRID_SAMPLER_LANES(D, interp, I, T, 8, 64, false, "") \
  REGISTER_GRID_SAMPLER_LANES(D, interp, I, T, 8, 64, true, "_staged")

#define REGISTER_GRID_SAMPLER_WIDE_LANES(D, interp, I, T)         \
  REGISTER_GRID_SAMPLER_LANES(D, interp, I, T, 32, 32, false, "") \
  REGISTER_GRID_SAMPLER_LANES(D, interp, I, T, 32, 32, true, "_staged")

// Nearest with up to 32 channels, or in contiguous float, is left to the
// kernels with a thread per position.
#define REGISTER_GRID_SAMPLER_NEAREST_OPS(T, STAGED, X)                      \
  REGISTER_GRID_SAMPLER_LANES(2, nearest, GridNearest, T, 32, 32, STAGED, X) \
  REGISTER_GRID_SAMPLER_LANES(3, nearest, GridNearest, T, 32, 32, STAGED, X)

#define REGISTER_GRID_SAMPLER_LANES_OPS(T)                         \
  REGISTER_GRID_SAMPLER_NARROW_LANES(2, bilinear, GridBilinear, T) \
  REGISTER_GRID_SAMPLER_NARROW_LANES(2, bicubic, GridBicubic, T)   \
  REGISTER_GRID_SAMPLER_NARROW_LANES(3, bilinear, GridBilinear, T) \
  REGISTER_GRID_SAMPLER_WIDE_LANES(2, bilinear, GridBilinear, T)   \
  REGISTER_GRID_SAMPLER_WIDE_LANES(2, bicubic, GridBicubic, T)     \
  REGISTER_GRID_SAMPLER_WIDE_LANES(3, bilinear, GridBilinear, T)   \
  REGISTER_GRID_SAMPLER_TRANSPOSES(T, 16)                          \
  REGISTER_GRID_SAMPLER_TRANSPOSES(T, 32)

REGISTER_GRID_SAMPLER_LANES_OPS(float);
REGISTER_GRID_SAMPLER_LANES_OPS(half);
REGISTER_GRID_SAMPLER_LANES_OPS(bfloat);
REGISTER_GRID_SAMPLER_NEAREST_OPS(float, false, "");
REGISTER_GRID_SAMPLER_NEAREST_OPS(half, false, "");
REGISTER_GRID_SAMPLER_NEAREST_OPS(bfloat, false, "");
REGISTER_GRID_SAMPLER_NEAREST_OPS(half, true, "_staged");
// NOLINTNEXTLINE(missing-dtype): float is left to a thread per position
REGISTER_GRID_SAMPLER_NEAREST_OPS(bfloat, true, "_staged");
