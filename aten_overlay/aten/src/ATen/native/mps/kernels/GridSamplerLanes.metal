// Gradients of a linear or cubic grid sampler over D axes. 8 or 32 lanes have a
// sampling position, each some of its channels: in channels-last memory they
// read from and add to neighboring addresses, wherever the sample lies.
//
// An input of another layout is transposed first and the sums of grad_input
// after; grad_output is transposed in threadgroup memory as it is read. Sums
// are in float, rounded once. Whole simdgroups call simdgroup functions.
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

// Taps along one axis. The padding is looked at here, once per position; all
// that follows is the same for all paddings.
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

// What the lanes of a position need to know of it.
template <int32_t D, int32_t N>
struct GridCell {
  GridTaps<N> rows;
  GridTaps<N> columns;
  static GridCell make(thread const GridTaps<N>* taps) {
    return {taps[0], taps[1]};
  }
};

// The pixel with the lowest index along each axis; the others follow from it.
template <int32_t D>
struct GridCell<D, 2> {
  int32_t first[D]; // -2: there is neither this pixel nor the one after it
  float weight[D]; // of the pixel after it

  static GridCell make(thread const GridTaps<2>* taps) {
    GridCell cell;
#pragma unroll
    for (int32_t axis = 0; axis < D; ++axis) {
      const int32_t first = taps[axis].index[0];
      const int32_t second = taps[axis].index[1];
      cell.first[axis] = first >= 0 ? first : second >= 0 ? second - 1 : -2;
      cell.weight[axis] = taps[axis].weight[1];
    }
    return cell;
  }
};

// Channels-last memory of one image, seen from one lane: two of its channels,
// `channel` and `channel + LANES`.
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

  // A negative pixel counts as 0. Loads should be on their way at once, without
  // a branch around each. NVIDIA's compiler does so for conditional loads of 32
  // bits, and for 16 bits at a clamped address: 2.7 times faster for bicubic.
  float2 load(int32_t pixel) const thread {
    const bool is_inside = pixel >= 0;
    const device T* first = input + (is_inside ? pixel : 0) * channels;
    float value[2] = {};
#pragma unroll
    for (int32_t k = 0; k < 2; ++k) {
      if (sizeof(T) == 2) {
        const int32_t c = ::metal::min(channel + k * LANES, channels - 1);
        const auto read = static_cast<float>(first[c]);
        value[k] = is_inside && has(k) ? read : 0.0f;
      } else if (is_inside && has(k)) {
        value[k] = static_cast<float>(first[channel + k * LANES]);
      }
    }
    return float2(value[0], value[1]);
  }

  void add(float2 value, int32_t pixel) const thread {
    if (pixel < 0 || !compute_grad_input) {
      return;
    }
    const int32_t at = pixel * channels + channel;
    if (has(0)) {
      AtomicType<float>::atomic_add(grad_input, at, value.x);
    }
    if (has(1)) {
      AtomicType<float>::atomic_add(grad_input, at + LANES, value.y);
    }
  }
};

// Walks positions that follow each other. `visit` takes the next one with its
// grad_output, of the lane's channels, and gives the derivatives with respect
// to its position in `slopes`, the last axis first.
template <int32_t D, int32_t N, typename Image>
struct GridWalk;

// Bilinear: the sums of the four pixels stay in registers while the samples
// stay between them, and two of them when a sample moves on by one pixel.
template <typename Image>
struct GridWalk<2, 2, Image> {
  float2 sum[4]; // of corners: 1 is right, 2 below
  int32_t x;
  int32_t y;

  void start() thread {
    x = y = -2;
    sum[0] = sum[1] = sum[2] = sum[3] = float2(0.0f);
  }

  void finish(thread const Image& image) const thread {
    const bool none[4] = {};
    flush(image, none);
  }

  void visit(
      thread const Image& image,
      GridCell<2, 2> cell,
      float2 grad,
      thread float2* slopes) thread {
    const int32_t cell_x = cell.first[1];
    const int32_t cell_y = cell.first[0];
    if (cell_x < -1 || cell_y < -1) {
      return;
    }
    float2 value[4];
#pragma unroll
    for (int32_t corner = 0; corner < 4; ++corner) {
      value[corner] = image.load(pixel_at(image, cell_x, cell_y, corner));
    }
    move(image, cell_x, cell_y);
    const float right = cell.weight[1];
    const float left = 1.0f - right;
    const float lower = cell.weight[0];
    const float upper = 1.0f - lower;
    sum[0] += left * upper * grad;
    sum[1] += right * upper * grad;
    sum[2] += left * lower * grad;
    sum[3] += right * lower * grad;
    slopes[0] =
        grad * (upper * (value[1] - value[0]) + lower * (value[3] - value[2]));
    slopes[1] =
        grad * (left * (value[2] - value[0]) + right * (value[3] - value[1]));
  }

 private:
  static int32_t pixel_at(
      thread const Image& image,
      int32_t x,
      int32_t y,
      int32_t corner) {
    x += corner & 1;
    y += corner / 2;
    const bool is_inside =
        x >= 0 && x < image.sizes[1] && y >= 0 && y < image.sizes[0];
    return is_inside ? y * image.sizes[1] + x : -1;
  }

  // Adds the pixels to grad_input, but for those that the next cell has too.
  void flush(thread const Image& image, thread const bool* keeps) const thread {
#pragma unroll
    for (int32_t corner = 0; corner < 4; ++corner) {
      const bool is_kept = keeps[corner & 1] || keeps[2 + corner / 2];
      image.add(sum[corner], is_kept ? -1 : pixel_at(image, x, y, corner));
    }
  }

  void move(thread const Image& image, int32_t new_x, int32_t new_y) thread {
    const int32_t right = new_x - x;
    const int32_t down = new_y - y;
    if (right == 0 && down == 0) {
      return;
    }
    const bool keeps_left = right == -1 && down == 0;
    const bool keeps_right = right == 1 && down == 0;
    const bool keeps_upper = right == 0 && down == -1;
    const bool keeps_lower = right == 0 && down == 1;
    const bool keeps[4] = {keeps_left, keeps_right, keeps_upper, keeps_lower};
    flush(image, keeps);
    const float2 before[4] = {sum[0], sum[1], sum[2], sum[3]};
    const float2 none = float2(0.0f);
    sum[0] = keeps_right ? before[1] : keeps_lower ? before[2] : none;
    sum[1] = keeps_left ? before[0] : keeps_lower ? before[3] : none;
    sum[2] = keeps_right ? before[3] : keeps_upper ? before[0] : none;
    sum[3] = keeps_left ? before[2] : keeps_upper ? before[1] : none;
    x = new_x;
    y = new_y;
  }
};

// No sums are kept: more of them would take more registers than they save.
struct GridAddsAtOnce {
  void start() thread {}

  template <typename Image>
  void finish(thread const Image&) const thread {}
};

// Trilinear: all eight pixels are read before the first is added to.
template <typename Image>
struct GridWalk<3, 2, Image> : GridAddsAtOnce {
  void visit(
      thread const Image& image,
      GridCell<3, 2> cell,
      float2 grad,
      thread float2* slopes) thread {
    if (cell.first[0] < -1 || cell.first[1] < -1 || cell.first[2] < -1) {
      return;
    }
    int32_t pixel[8];
    float2 value[8];
#pragma unroll
    for (int32_t corner = 0; corner < 8; ++corner) {
      const int32_t z = cell.first[0] + corner / 4;
      const int32_t y = cell.first[1] + (corner / 2 & 1);
      const int32_t x = cell.first[2] + (corner & 1);
      const bool is_inside = z >= 0 && z < image.sizes[0] && y >= 0 &&
          y < image.sizes[1] && x >= 0 && x < image.sizes[2];
      pixel[corner] =
          is_inside ? (z * image.sizes[1] + y) * image.sizes[2] + x : -1;
      value[corner] = image.load(pixel[corner]);
    }
#pragma unroll
    for (int32_t corner = 0; corner < 8; ++corner) {
      const float z = corner / 4 ? cell.weight[0] : 1.0f - cell.weight[0];
      const float y = corner / 2 & 1 ? cell.weight[1] : 1.0f - cell.weight[1];
      const float x = corner & 1 ? cell.weight[2] : 1.0f - cell.weight[2];
      const float2 part = grad * value[corner];
      slopes[0] += (corner & 1 ? y * z : -y * z) * part;
      slopes[1] += (corner / 2 & 1 ? x * z : -x * z) * part;
      slopes[2] += (corner / 4 ? x * y : -x * y) * part;
      image.add(x * y * z * grad, pixel[corner]);
    }
  }
};

// Bicubic: all sixteen pixels are read before the first is added to. The taps
// stay in threadgroup memory: in registers they would take 26 of each lane.
template <typename Image>
struct GridWalk<2, 4, Image> : GridAddsAtOnce {
  void visit(
      thread const Image& image,
      threadgroup const GridCell<2, 4>& cell,
      float2 grad,
      thread float2* slopes) thread {
    // Negative numbers have their highest bit in common.
    threadgroup const int32_t* y = cell.rows.index;
    threadgroup const int32_t* x = cell.columns.index;
    if ((y[0] & y[1] & y[2] & y[3]) < 0 || (x[0] & x[1] & x[2] & x[3]) < 0) {
      return; // negative numbers have their highest bit in common
    }
    float2 column_slope[4] = {};
#pragma unroll
    for (int32_t i = 0; i < 4; ++i) {
      float2 value[4];
#pragma unroll
      for (int32_t j = 0; j < 4; ++j) {
        value[j] = image.load(
            pixel_at(image, cell.rows.index[i], cell.columns.index[j]));
      }
      float2 row_slope = float2(0.0f);
#pragma unroll
      for (int32_t j = 0; j < 4; ++j) {
        row_slope += value[j] * cell.columns.slope[j];
        column_slope[j] += value[j] * cell.rows.slope[i];
      }
      slopes[0] += grad * row_slope * cell.rows.weight[i];
    }
#pragma unroll
    for (int32_t j = 0; j < 4; ++j) {
      slopes[1] += grad * column_slope[j] * cell.columns.weight[j];
    }
#pragma unroll
    for (int32_t tap = 0; tap < 16; ++tap) {
      const int32_t i = tap / 4;
      const int32_t j = tap % 4;
      image.add(
          cell.rows.weight[i] * cell.columns.weight[j] * grad,
          pixel_at(image, cell.rows.index[i], cell.columns.index[j]));
    }
  }

 private:
  static int32_t pixel_at(thread const Image& image, int32_t y, int32_t x) {
    return (x | y) < 0 ? -1 : y * image.sizes[1] + x;
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

// Brings BLOCK channels of TILE positions to threadgroup memory. All loads are
// on their way before the first is waited for, which is why addresses are
// clamped and not tested; what is beyond the last is never used.
template <int32_t D, typename T, int32_t BLOCK, int32_t TILE>
void grid_stage(
    threadgroup T* staged,
    const device T* grads,
    constant GridSamplerLanesParams<D + 2>& params,
    int32_t last_position,
    int32_t channel,
    int32_t position,
    int32_t index) {
  constexpr int32_t count = BLOCK * TILE / GRID_GROUP_SIZE;
  const int32_t last_channel = params.input_sizes[1] - 1;
  T values[count];
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * GRID_GROUP_SIZE;
    const int32_t c = ::metal::min(channel + element / TILE, last_channel);
    const int32_t p = ::metal::min(position + element % TILE, last_position);
    values[i] = grads
        [c * params.grad_output_strides[1] +
         p * params.grad_output_strides[D + 1]];
  }
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * GRID_GROUP_SIZE;
    staged[element / TILE * grid_pitch<T>(TILE) + element % TILE] = values[i];
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
    constant GridSamplerLanesParams<D + 2>& params [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int32_t taps_count = Interp<GridPadZeros>::taps_count;
  constexpr int32_t block = LANES * 2; // channels at a time
  constexpr int32_t run = TILE * LANES / GRID_GROUP_SIZE;
  constexpr int32_t pitch = grid_pitch<T>(TILE);
  threadgroup GridCell<D, taps_count> cells[TILE];
  threadgroup float derivatives[D * TILE];
  threadgroup float sums[D * TILE];
  threadgroup T staged[STAGED ? block * pitch : 1];

  const int32_t index = static_cast<int32_t>(thread_index);
  const int32_t first =
      params.first_position + static_cast<int32_t>(group.x) * TILE;
  const int64_t n = static_cast<int64_t>(group.y);
  const int32_t channels = params.input_sizes[1];
  GridImage<D, T, LANES> image;
  int32_t positions = 1;
  int32_t pixels = 1;
#pragma unroll
  for (int32_t axis = 0; axis < D; ++axis) {
    positions *= params.grad_output_sizes[axis + 2];
    pixels *= params.input_sizes[axis + 2];
    image.sizes[axis] = params.input_sizes[axis + 2];
  }

  if (index < TILE) {
    const bool exists = first + index < positions;
    const auto where = GridPosition<D, int32_t>::of_thread(
        exists ? first + index : 0, params.grad_output_sizes);
    const device T* coords = grid + n * params.grid_strides[0] +
        where.grid_offset(params.grid_strides);
    GridTapsOf<Interp> taps[D];
#pragma unroll
    for (int32_t axis = 0; axis < D; ++axis) {
      const int32_t i = D - 1 - axis; // coordinates have the last axis first
      taps[axis] = grid_padded_taps<Interp>(
          static_cast<float>(coords[i * params.grid_strides[D + 1]]),
          params.input_sizes[axis + 2],
          params.align_corners,
          params.padding_mode);
      derivatives[D * index + i] = taps[axis].derivative;
      sums[D * index + i] = 0.0f;
    }
#pragma unroll
    for (int32_t tap = 0; tap < taps_count; ++tap) {
      taps[0].index[tap] = exists ? taps[0].index[tap] : -1;
    }
    cells[index] = GridCell<D, taps_count>::make(taps);
  }
  const device T* grads = grad_output + n * params.grad_output_strides[0];
  const int32_t lane = index % LANES;
  const int64_t image_start = n * pixels * channels;
  image.grad_input = grad_input + image_start;
  image.input = input + image_start;
  image.channels = channels;
  image.compute_grad_input = params.compute_grad_input;
  for (int32_t c = 0; c < channels; c += block) {
    if (STAGED || c == 0) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (STAGED) {
      grid_stage<D, T, block, TILE>(
          staged, grads, params, positions - 1, c, first, index);
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    image.channel = c + lane;
    GridWalk<D, taps_count, GridImage<D, T, LANES>> walk;
    walk.start();
#pragma clang loop unroll(disable)
    for (int32_t r = 0; r < run; ++r) {
      const int32_t i = index / LANES * run + r;
      float grad[2];
#pragma unroll
      for (int32_t k = 0; k < 2; ++k) {
        const int32_t row = lane + k * LANES;
        grad[k] = 0.0f;
        if (STAGED && image.has(k)) {
          grad[k] = static_cast<float>(staged[row * pitch + i]);
        } else if (image.has(k) && first + i < positions) {
          grad[k] = static_cast<float>(
              grads
                  [(image.channel + k * LANES) * params.grad_output_strides[1] +
                   (first + i) * params.grad_output_strides[D + 1]]);
        }
      }
      float2 slopes[D] = {};
      walk.visit(image, cells[i], float2(grad[0], grad[1]), slopes);
      const float sum = grid_sum_lanes<LANES>(
          slopes[0].x + slopes[0].y, slopes[1].x + slopes[1].y, lane);
      if (lane % (LANES / 2) == 0) {
        sums[D * i + lane / (LANES / 2)] += sum;
      }
      if (D == 3) {
        const float sum_z = grid_sum_lanes<LANES>(
            slopes[D - 1].x + slopes[D - 1].y, 0.0f, lane);
        if (lane == 0) {
          sums[D * i + D - 1] += sum_z;
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

// Transposes dense images of rows and columns, each threadgroup a tile. All
// loads of a tile are on their way before the first is waited for, so their
// addresses are clamped. `sums`, of the size of `transposed`, are zeroed on the
// way where that is asked for: it saves a launch.
template <typename T, typename U, int32_t ROWS, int32_t COLUMNS>
[[max_total_threads_per_threadgroup(GRID_TRANSPOSE_GROUP_SIZE)]] kernel void
grid_sampler_transpose(
    device U* transposed [[buffer(0)]],
    device float* sums [[buffer(1)]],
    const device T* images [[buffer(2)]],
    constant GridSamplerTransposeParams& params [[buffer(3)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int32_t count = ROWS * COLUMNS / GRID_TRANSPOSE_GROUP_SIZE;
  constexpr int32_t pitch = grid_pitch<T>(COLUMNS);
  threadgroup T tile[ROWS * pitch];
  const int32_t index = static_cast<int32_t>(thread_index);
  const int32_t tiles = (params.columns + COLUMNS - 1) / COLUMNS;
  const int32_t row = static_cast<int32_t>(group.x) / tiles * ROWS;
  const int32_t column = static_cast<int32_t>(group.x) % tiles * COLUMNS;
  const int64_t start = int64_t(group.y) * params.rows * params.columns;
  T values[count];
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * GRID_TRANSPOSE_GROUP_SIZE;
    const int32_t r = ::metal::min(row + element / COLUMNS, params.rows - 1);
    const int32_t c =
        ::metal::min(column + element % COLUMNS, params.columns - 1);
    values[i] = images[start + r * params.columns + c];
  }
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * GRID_TRANSPOSE_GROUP_SIZE;
    tile[element / COLUMNS * pitch + element % COLUMNS] = values[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * GRID_TRANSPOSE_GROUP_SIZE;
    const int32_t r = element % ROWS;
    const int32_t c = element / ROWS;
    if (row + r < params.rows && column + c < params.columns) {
      const int64_t at = start + (column + c) * params.rows + row + r;
      transposed[at] = static_cast<U>(tile[r * pitch + c]);
      if (params.zeroes_sums) {
        sums[at] = 0.0f;
      }
    }
  }
}

// A position has 8 lanes for up to 32 channels, and 32 for more. STAGED goes
// with a grad_output that is not channels last.
#define REGISTER_GRID_SAMPLER_LANES(D, interp, I, T, LANES, TILE, STAGED, X) \
  template[[host_name(                                                       \
      "grid_sampler_" #D "d_backward_lanes_" #interp "_" #T                  \
      "_" #LANES X)]] kernel void                                            \
  grid_sampler_backward_lanes<D, I, T, LANES, TILE, STAGED>(                 \
      device atomic<float> * grad_input [[buffer(0)]],                       \
      device T * grad_grid [[buffer(1)]],                                    \
      const device T* grad_output [[buffer(2)]],                             \
      const device T* input [[buffer(3)]],                                   \
      const device T* grid [[buffer(4)]],                                    \
      constant GridSamplerLanesParams<D + 2>& params [[buffer(5)]],          \
      uint2 group [[threadgroup_position_in_grid]],                          \
      uint thread_index [[thread_index_in_threadgroup]]);

// Tiles of 64 pixels and as many channels as waste the least.
#define REGISTER_GRID_SAMPLER_TRANSPOSE(way, X, T, From, To, ROWS, COLUMNS) \
  template[                                                                 \
      [host_name("grid_sampler_" way "_channels_last_" #T X)]] kernel void  \
  grid_sampler_transpose<From, To, ROWS, COLUMNS>(                          \
      device To * transposed [[buffer(0)]],                                 \
      device float* sums [[buffer(1)]],                                     \
      const device From* images [[buffer(2)]],                              \
      constant GridSamplerTransposeParams& params [[buffer(3)]],            \
      uint2 group [[threadgroup_position_in_grid]],                         \
      uint thread_index [[thread_index_in_threadgroup]]);

#define REGISTER_GRID_SAMPLER_LANES_OPS(D, interp, I, T)               \
  REGISTER_GRID_SAMPLER_LANES(D, interp, I, T, 8, 64, false, "")       \
  REGISTER_GRID_SAMPLER_LANES(D, interp, I, T, 8, 64, true, "_staged") \
  REGISTER_GRID_SAMPLER_LANES(D, interp, I, T, 32, 32, false, "")      \
  REGISTER_GRID_SAMPLER_LANES(D, interp, I, T, 32, 32, true, "_staged")

#define REGISTER_GRID_SAMPLER_LANES_DTYPE(T)                          \
  REGISTER_GRID_SAMPLER_LANES_OPS(2, bilinear, GridBilinear, T)       \
  REGISTER_GRID_SAMPLER_LANES_OPS(2, bicubic, GridBicubic, T)         \
  REGISTER_GRID_SAMPLER_LANES_OPS(3, bilinear, GridBilinear, T)       \
  REGISTER_GRID_SAMPLER_TRANSPOSE("to", "_16", T, T, T, 16, 64)       \
  REGISTER_GRID_SAMPLER_TRANSPOSE("to", "_32", T, T, T, 32, 64)       \
  REGISTER_GRID_SAMPLER_TRANSPOSE("from", "_16", T, float, T, 64, 16) \
  REGISTER_GRID_SAMPLER_TRANSPOSE("from", "_32", T, float, T, 64, 32)

REGISTER_GRID_SAMPLER_LANES_DTYPE(float);
REGISTER_GRID_SAMPLER_LANES_DTYPE(half);
REGISTER_GRID_SAMPLER_LANES_DTYPE(bfloat);
