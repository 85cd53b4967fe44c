// Candidates for a faster grid_sampler_2d_backward, measured by measure.py.
//
// This is a fragment: it follows the fragments of aten_overlay's
// GridSampler.metal, whose taps, paddings and interpolations it uses.
//
// Two ways of dividing the work. Where there are few channels, a thread has a
// sampling position, as in change 1, and neighboring threads add up what they
// would add to one pixel. Else a position has several lanes, each with some of
// its channels: in channels-last memory they read and add to neighboring
// addresses. Inputs of another layout are brought into that one first, and
// grad_input is summed in it, in float, and brought into its own layout and
// type last; grad_output is turned in threadgroup memory as it is read.

// grad_output as the kernels with several lanes for a position see it.
struct GridSamplerGradOutput {
  int32_t channels;
  int32_t positions; // of one image; its rows must follow each other
  int32_t stride_n;
  int32_t stride_c;
  int32_t stride_position;
};

struct GridSamplerLanesParams {
  GridSamplerGradOutput grad_output;
  int32_t height; // of the input
  int32_t width;
  int32_t output_width;
  int32_t grid_strides[4];
  int32_t align_corners;
  int32_t compute_grad_input;
};

constant constexpr int32_t GRID_GROUP_SIZE = 128;

// What a position's lanes need to know of it. Pixels are named by column and
// row, and by their offset in units of pixels.
template <int32_t N>
struct GridCell;

template <>
struct GridCell<1> {
  int32_t x; // -2: there is no such pixel
  int32_t y;

  static GridCell make(GridTaps<1> tx, GridTaps<1> ty, int32_t) {
    const bool is_inside = tx.index[0] >= 0 && ty.index[0] >= 0;
    return {is_inside ? tx.index[0] : -2, is_inside ? ty.index[0] : -2};
  }
};

// The left and upper pixel, the others follow from it.
template <>
struct GridCell<2> {
  int32_t x; // -2: there is neither this pixel nor its neighbor
  int32_t y;
  float right; // weight of the right pixel
  float lower;

  static int32_t first(GridTaps<2> taps) {
    return taps.index[0] >= 0 ? taps.index[0]
        : taps.index[1] >= 0  ? taps.index[1] - 1
                              : -2;
  }

  static GridCell make(GridTaps<2> tx, GridTaps<2> ty, int32_t) {
    return {first(tx), first(ty), tx.weight[1], ty.weight[1]};
  }
};

template <>
struct GridCell<4> {
  int32_t x[4];
  int32_t y[4]; // times width
  float weight_x[4];
  float weight_y[4];
  float slope_x[4];
  float slope_y[4];

  // Any of its pixels is: negative numbers have their highest bit in common.
  bool is_inside() const thread {
    return (x[0] & x[1] & x[2] & x[3]) >= 0 &&
        (y[0] & y[1] & y[2] & y[3]) >= 0;
  }

  static GridCell make(GridTaps<4> tx, GridTaps<4> ty, int32_t width) {
    GridCell cell;
#pragma unroll
    for (int32_t i = 0; i < 4; ++i) {
      cell.x[i] = tx.index[i];
      cell.y[i] = ty.index[i] < 0 ? -1 : ty.index[i] * width;
      cell.weight_x[i] = tx.weight[i];
      cell.weight_y[i] = ty.weight[i];
      cell.slope_x[i] = tx.slope[i];
      cell.slope_y[i] = ty.slope[i];
    }
    return cell;
  }
};

// The memory of one image, seen from one lane: its channels are `lane`,
// `lane + LANES` and so on.
template <typename T, int32_t LANES, int32_t CHANNELS>
struct GridImage {
  device atomic<float>* grad_input;
  const device T* input;
  int32_t channel;
  int32_t channels;
  int32_t height;
  int32_t width;
  bool compute_grad_input;

  bool has(int32_t k) const thread {
    return channel + k * LANES < channels;
  }

  // What is not read counts as 0. Sixteen loads should be on their way at
  // once: NVIDIA's compiler makes 32-bit loads conditional without a branch,
  // but not 16-bit ones, which are read at a clamped address instead.
  void load(thread float* value, bool is_inside, int32_t pixel) const thread {
    const device T* first = input + (is_inside ? pixel : 0) * channels;
#pragma unroll
    for (int32_t k = 0; k < CHANNELS; ++k) {
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

  void add(thread const float* value, bool is_inside, int32_t pixel) const thread {
    if (!is_inside || !compute_grad_input) {
      return;
    }
#pragma unroll
    for (int32_t k = 0; k < CHANNELS; ++k) {
      if (has(k)) {
        AtomicType<float>::atomic_add(
            grad_input, pixel * channels + channel + k * LANES, value[k]);
      }
    }
  }
};

// Walks positions that follow each other. `visit` takes the next one with its
// grad_output and returns the derivatives with respect to its position, of this
// lane's channels.
template <int32_t N, typename Image, int32_t CHANNELS>
struct GridWalk;

template <typename Image, int32_t CHANNELS>
struct GridWalk<1, Image, CHANNELS> {
  float sum[CHANNELS];
  int32_t x;
  int32_t y;

  void start() thread {
    x = -2;
    y = -2;
#pragma unroll
    for (int32_t k = 0; k < CHANNELS; ++k) {
      sum[k] = 0.0f;
    }
  }

  void finish(thread const Image& image) thread {
    image.add(sum, x >= 0, y * image.width + x);
  }

  float2 visit(
      thread const Image& image,
      GridCell<1> cell,
      thread const float* grad) thread {
    if (cell.x < 0) {
      return float2(0.0f);
    }
    const bool is_same = cell.x == x && cell.y == y;
    if (!is_same) {
      finish(image);
      x = cell.x;
      y = cell.y;
    }
#pragma unroll
    for (int32_t k = 0; k < CHANNELS; ++k) {
      sum[k] = (is_same ? sum[k] : 0.0f) + grad[k];
    }
    return float2(0.0f);
  }
};

// Bilinear: the sums of the four pixels stay in registers while the samples
// stay between them, and two of them when a sample moves on by one pixel.
template <typename Image, int32_t CHANNELS>
struct GridWalk<2, Image, CHANNELS> {
  float sum[4][CHANNELS]; // upper left, upper right, lower left, lower right
  int32_t x;
  int32_t y;

  void start() thread {
    x = -2;
    y = -2;
#pragma unroll
    for (int32_t k = 0; k < CHANNELS; ++k) {
      sum[0][k] = sum[1][k] = sum[2][k] = sum[3][k] = 0.0f;
    }
  }

  void finish(thread const Image& image) thread {
    flush(image, false, false, false, false);
  }

  // Adds the pixels to grad_input, but for those that are kept.
  void flush(
      thread const Image& image,
      bool keeps_left,
      bool keeps_right,
      bool keeps_upper,
      bool keeps_lower) thread {
    const bool has_left = x >= 0;
    const bool has_right = x >= -1 && x + 1 < image.width;
    const bool has_upper = y >= 0;
    const bool has_lower = y >= -1 && y + 1 < image.height;
    const int32_t pixel = y * image.width + x;
    image.add(
        sum[0], has_left && has_upper && !keeps_left && !keeps_upper, pixel);
    image.add(
        sum[1],
        has_right && has_upper && !keeps_right && !keeps_upper,
        pixel + 1);
    image.add(
        sum[2],
        has_left && has_lower && !keeps_left && !keeps_lower,
        pixel + image.width);
    image.add(
        sum[3],
        has_right && has_lower && !keeps_right && !keeps_lower,
        pixel + image.width + 1);
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
    for (int32_t k = 0; k < CHANNELS; ++k) {
      const float before[4] = {sum[0][k], sum[1][k], sum[2][k], sum[3][k]};
      sum[0][k] = keeps_right ? before[1] : keeps_lower ? before[2] : 0.0f;
      sum[1][k] = keeps_left ? before[0] : keeps_lower ? before[3] : 0.0f;
      sum[2][k] = keeps_right ? before[3] : keeps_upper ? before[0] : 0.0f;
      sum[3][k] = keeps_left ? before[2] : keeps_upper ? before[1] : 0.0f;
    }
    x = new_x;
    y = new_y;
  }

  float2 visit(
      thread const Image& image,
      GridCell<2> cell,
      thread const float* grad) thread {
    if (cell.x < -1 || cell.y < -1) {
      return float2(0.0f);
    }
    const bool has_left = cell.x >= 0;
    const bool has_right = cell.x + 1 < image.width;
    const bool has_upper = cell.y >= 0;
    const bool has_lower = cell.y + 1 < image.height;
    const int32_t pixel = cell.y * image.width + cell.x;
    float value[4][CHANNELS];
    image.load(value[0], has_left && has_upper, pixel);
    image.load(value[1], has_right && has_upper, pixel + 1);
    image.load(value[2], has_left && has_lower, pixel + image.width);
    image.load(value[3], has_right && has_lower, pixel + image.width + 1);
    move(image, cell.x, cell.y);
    const float left = 1.0f - cell.right;
    const float upper = 1.0f - cell.lower;
    float2 total = float2(0.0f);
#pragma unroll
    for (int32_t k = 0; k < CHANNELS; ++k) {
      sum[0][k] += left * upper * grad[k];
      sum[1][k] += cell.right * upper * grad[k];
      sum[2][k] += left * cell.lower * grad[k];
      sum[3][k] += cell.right * cell.lower * grad[k];
      total.x += grad[k] *
          (upper * (value[1][k] - value[0][k]) +
           cell.lower * (value[3][k] - value[2][k]));
      total.y += grad[k] *
          (left * (value[2][k] - value[0][k]) +
           cell.right * (value[3][k] - value[1][k]));
    }
    return total;
  }
};

// Bicubic: all sixteen pixels are read before the first is added to.
template <typename Image, int32_t CHANNELS>
struct GridWalk<4, Image, CHANNELS> {
  void start() thread {}

  void finish(thread const Image&) thread {}

  float2 visit(
      thread const Image& image,
      GridCell<4> cell,
      thread const float* grad) thread {
    if (!cell.is_inside()) {
      return float2(0.0f);
    }
    float sample_x[CHANNELS];
    float column_slope[4][CHANNELS];
#pragma unroll
    for (int32_t k = 0; k < CHANNELS; ++k) {
      sample_x[k] = 0.0f;
      column_slope[0][k] = column_slope[1][k] = 0.0f;
      column_slope[2][k] = column_slope[3][k] = 0.0f;
    }
#pragma unroll
    for (int32_t i = 0; i < 4; ++i) {
      float value[4][CHANNELS];
#pragma unroll
      for (int32_t j = 0; j < 4; ++j) {
        image.load(
            value[j], cell.y[i] >= 0 && cell.x[j] >= 0, cell.y[i] + cell.x[j]);
      }
#pragma unroll
      for (int32_t k = 0; k < CHANNELS; ++k) {
        float row_slope = 0.0f;
#pragma unroll
        for (int32_t j = 0; j < 4; ++j) {
          row_slope += value[j][k] * cell.slope_x[j];
          column_slope[j][k] += value[j][k] * cell.slope_y[i];
        }
        sample_x[k] += row_slope * cell.weight_y[i];
      }
    }
    float2 total = float2(0.0f);
#pragma unroll
    for (int32_t k = 0; k < CHANNELS; ++k) {
      float sample_y = 0.0f;
#pragma unroll
      for (int32_t j = 0; j < 4; ++j) {
        sample_y += column_slope[j][k] * cell.weight_x[j];
      }
      total.x += grad[k] * sample_x[k];
      total.y += grad[k] * sample_y;
    }
#pragma unroll
    for (int32_t i = 0; i < 4; ++i) {
#pragma unroll
      for (int32_t j = 0; j < 4; ++j) {
        float part[CHANNELS];
#pragma unroll
        for (int32_t k = 0; k < CHANNELS; ++k) {
          part[k] = cell.weight_y[i] * cell.weight_x[j] * grad[k];
        }
        image.add(
            part, cell.y[i] >= 0 && cell.x[j] >= 0, cell.y[i] + cell.x[j]);
      }
    }
    return total;
  }
};

// Sums of x and y over LANES neighboring lanes; the first of them gets that of
// x, the one in the middle that of y. One exchange less than half of what two
// sums would take: in the first, a lane keeps one and gives the other.
template <int32_t LANES>
float grid_sum_lanes(float2 value, int32_t lane) {
  const bool is_upper = lane >= LANES / 2;
  const float given = is_upper ? value.x : value.y;
  float kept = is_upper ? value.y : value.x;
  kept += simd_shuffle_xor(given, LANES / 2);
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

// Brings BLOCK channels of TILE positions of grad_output to threadgroup memory.
// All of a batch are on their way before the first is waited for, which is why
// addresses are clamped and not tested; what is beyond the last channel or
// position is never used.
template <typename T, int32_t BLOCK, int32_t TILE>
void grid_stage(
    threadgroup T* staged,
    const device T* grad_output,
    constant GridSamplerGradOutput& layout,
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
      const int32_t c =
          ::metal::min(channel + element / TILE, layout.channels - 1);
      const int32_t p =
          ::metal::min(position + element % TILE, layout.positions - 1);
      values[i] = grad_output[c * layout.stride_c + p * layout.stride_position];
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
template <
    typename Interp,
    typename T,
    int32_t LANES,
    int32_t CHANNELS,
    int32_t TILE,
    bool STAGED>
kernel void grid_sampler_2d_backward_lanes(
    device atomic<float>* grad_input [[buffer(0)]],
    device T* grad_grid [[buffer(1)]],
    const device T* grad_output [[buffer(2)]],
    const device T* input [[buffer(3)]],
    const device T* grid [[buffer(4)]],
    constant GridSamplerLanesParams& params [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int32_t taps_count = Interp::taps_count;
  constexpr int32_t block = LANES * CHANNELS;
  constexpr int32_t run = TILE * LANES / GRID_GROUP_SIZE;
  constexpr int32_t pitch = grid_pitch<T>(TILE);
  constexpr int32_t staged_size = STAGED ? block * pitch : 1;
  threadgroup GridCell<taps_count> cells[TILE];
  threadgroup float2 derivatives[TILE];
  threadgroup float sums[2 * TILE];
  threadgroup T staged[staged_size];

  const int32_t index = static_cast<int32_t>(thread_index);
  const int32_t first = static_cast<int32_t>(group.x) * TILE;
  const int32_t n = static_cast<int32_t>(group.y);
  const bool has_position = index < TILE && first + index < params.grad_output.positions;
  float coord_x = 0.0f;
  float coord_y = 0.0f;
  if (has_position) {
    const int32_t h = (first + index) / params.output_width;
    const int32_t w = first + index - h * params.output_width;
    const device T* coords = grid + n * params.grid_strides[0] +
        h * params.grid_strides[1] + w * params.grid_strides[2];
    coord_x = static_cast<float>(coords[0]);
    coord_y = static_cast<float>(coords[params.grid_strides[3]]);
  }

  const int32_t lane = index % LANES;
  const int32_t run_first = index / LANES * run;
  const int32_t image_start =
      n * params.height * params.width * params.grad_output.channels;
  const device T* image_grad_output =
      grad_output + n * params.grad_output.stride_n;
  GridImage<T, LANES, CHANNELS> image = {
      grad_input + image_start,
      input + image_start,
      lane,
      params.grad_output.channels,
      params.height,
      params.width,
      params.compute_grad_input != 0};

  for (int32_t c = 0; c < params.grad_output.channels; c += block) {
    if (STAGED) {
      if (c != 0) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      grid_stage<T, block, TILE>(
          staged, image_grad_output, params.grad_output, c, first, index);
    }
    if (c == 0 && index < TILE) {
      auto x = Interp::taps(coord_x, params.width, params.align_corners);
      auto y = Interp::taps(coord_y, params.height, params.align_corners);
      if (!has_position) {
#pragma unroll
        for (int32_t tap = 0; tap < taps_count; ++tap) {
          x.index[tap] = -1;
        }
      }
      cells[index] = GridCell<taps_count>::make(x, y, params.width);
      derivatives[index] = float2(x.derivative, y.derivative);
      sums[2 * index] = 0.0f;
      sums[2 * index + 1] = 0.0f;
    }
    if (STAGED || c == 0) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    image.channel = c + lane;
    GridWalk<taps_count, GridImage<T, LANES, CHANNELS>, CHANNELS> walk;
    walk.start();
#pragma clang loop unroll(disable)
    for (int32_t r = 0; r < run; ++r) {
      const int32_t i = run_first + r;
      float grad[CHANNELS];
#pragma unroll
      for (int32_t k = 0; k < CHANNELS; ++k) {
        if (STAGED) {
          grad[k] =
              static_cast<float>(staged[(lane + k * LANES) * pitch + i]);
        } else {
          grad[k] = image.has(k) && first + i < params.grad_output.positions
              ? static_cast<float>(
                    image_grad_output
                        [(c + lane + k * LANES) * params.grad_output.stride_c +
                         (first + i) * params.grad_output.stride_position])
              : 0.0f;
        }
      }
      const float2 total = walk.visit(image, cells[i], grad);
      if (Interp::is_differentiable) {
        const float sum = grid_sum_lanes<LANES>(total, lane);
        if (lane % (LANES / 2) == 0) {
          sums[2 * i + lane / (LANES / 2)] += sum;
        }
      }
    }
    walk.finish(image);
  }

  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int32_t i = index; i < 2 * TILE; i += GRID_GROUP_SIZE) {
    if (first + i / 2 < params.grad_output.positions) {
      const float2 derivative = derivatives[i / 2];
      grad_grid[2 * (n * params.grad_output.positions + first) + i] =
          static_cast<T>(sums[i] * (i % 2 == 0 ? derivative.x : derivative.y));
    }
  }
}

struct GridSamplerTurnParams {
  int32_t channels;
  int32_t pixels; // of one image
};

// Input of (N, C, pixels) to channels last; ZEROES: the sums of grad_input,
// which have the same size, are zeroed on the way, which saves a launch.
template <typename T, int32_t CHANNELS, int32_t PIXELS, bool ZEROES>
kernel void grid_sampler_to_channels_last(
    device T* turned [[buffer(0)]],
    device float* zeroed [[buffer(1)]],
    const device T* input [[buffer(2)]],
    constant GridSamplerTurnParams& params [[buffer(3)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int32_t group_size = 256;
  constexpr int32_t count = CHANNELS * PIXELS / group_size;
  constexpr int32_t pitch = grid_pitch<T>(PIXELS);
  threadgroup T tile[CHANNELS * pitch];
  const int32_t index = static_cast<int32_t>(thread_index);
  const int32_t pixel = static_cast<int32_t>(group.x) * PIXELS;
  const int32_t channel = static_cast<int32_t>(group.y) * CHANNELS;
  const int32_t start =
      static_cast<int32_t>(group.z) * params.channels * params.pixels;
  T values[count];
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * group_size;
    const int32_t c =
        ::metal::min(channel + element / PIXELS, params.channels - 1);
    const int32_t p = ::metal::min(pixel + element % PIXELS, params.pixels - 1);
    values[i] = input[start + c * params.pixels + p];
  }
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * group_size;
    tile[element / PIXELS * pitch + element % PIXELS] = values[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * group_size;
    const int32_t c = element % CHANNELS;
    const int32_t p = element / CHANNELS;
    if (channel + c < params.channels && pixel + p < params.pixels) {
      const int32_t at = start + (pixel + p) * params.channels + channel + c;
      turned[at] = tile[c * pitch + p];
      if (ZEROES) {
        zeroed[at] = 0.0f;
      }
    }
  }
}

// The sums of grad_input, channels last in float, to (N, C, pixels) of T.
template <typename T, int32_t CHANNELS, int32_t PIXELS>
kernel void grid_sampler_from_channels_last(
    device T* grad_input [[buffer(0)]],
    const device float* sums [[buffer(1)]],
    constant GridSamplerTurnParams& params [[buffer(2)]],
    uint3 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int32_t group_size = 256;
  constexpr int32_t count = CHANNELS * PIXELS / group_size;
  constexpr int32_t pitch = grid_pitch<float>(PIXELS);
  threadgroup float tile[CHANNELS * pitch];
  const int32_t index = static_cast<int32_t>(thread_index);
  const int32_t pixel = static_cast<int32_t>(group.x) * PIXELS;
  const int32_t channel = static_cast<int32_t>(group.y) * CHANNELS;
  const int32_t start =
      static_cast<int32_t>(group.z) * params.channels * params.pixels;
  float values[count];
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * group_size;
    const int32_t c =
        ::metal::min(channel + element % CHANNELS, params.channels - 1);
    const int32_t p =
        ::metal::min(pixel + element / CHANNELS, params.pixels - 1);
    values[i] = sums[start + p * params.channels + c];
  }
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * group_size;
    tile[element % CHANNELS * pitch + element / CHANNELS] = values[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (int32_t i = 0; i < count; ++i) {
    const int32_t element = index + i * group_size;
    const int32_t c = element / PIXELS;
    const int32_t p = element % PIXELS;
    if (channel + c < params.channels && pixel + p < params.pixels) {
      grad_input[start + (channel + c) * params.pixels + pixel + p] =
          static_cast<T>(tile[c * pitch + p]);
    }
  }
}

// Few channels: a thread has a position and walks its channels, which may lie
// anywhere. Threads of a simdgroup that add to the same pixels do so together:
// all of them where their positions lie between the same pixels, and else, for
// bilinear, each with the neighbor whose left pixels are its right ones.
struct GridSamplerPositionsParams {
  int32_t channels;
  int32_t height;
  int32_t width;
  int32_t output_width;
  int32_t positions; // of one image
  int32_t grad_output_strides[4];
  int32_t input_strides[4];
  int32_t grid_strides[4];
  int32_t grad_input_strides[4];
  int32_t align_corners;
  int32_t compute_grad_input;
};

template <typename Interp, typename T, int32_t CHANNELS>
kernel void grid_sampler_2d_backward_positions(
    device atomic<float>* grad_input [[buffer(0)]],
    device T* grad_grid [[buffer(1)]],
    const device T* grad_output [[buffer(2)]],
    const device T* input [[buffer(3)]],
    const device T* grid [[buffer(4)]],
    constant GridSamplerPositionsParams& params [[buffer(5)]],
    uint2 thread_position [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  constexpr int32_t N = Interp::taps_count;
  const int32_t position = static_cast<int32_t>(thread_position.x);
  const int32_t n = static_cast<int32_t>(thread_position.y);
  const bool exists = position < params.positions;
  const int32_t h = position / params.output_width;
  const int32_t w = position - h * params.output_width;
  GridTaps<N> x;
  GridTaps<N> y;
#pragma unroll
  for (int32_t tap = 0; tap < N; ++tap) {
    x.index[tap] = y.index[tap] = -1;
    x.weight[tap] = y.weight[tap] = x.slope[tap] = y.slope[tap] = 0.0f;
  }
  if (exists) {
    const device T* coords = grid + n * params.grid_strides[0] +
        h * params.grid_strides[1] + w * params.grid_strides[2];
    x = Interp::taps(
        static_cast<float>(coords[0]), params.width, params.align_corners);
    y = Interp::taps(
        static_cast<float>(coords[params.grid_strides[3]]),
        params.height,
        params.align_corners);
  }

  // Every lane takes part in every exchange: none may be behind a condition.
  // The last taps are compared too, since padding may have dropped the first.
  const int32_t first_x = simd_broadcast_first(x.index[0]);
  const int32_t first_y = simd_broadcast_first(y.index[0]);
  const int32_t last_x = simd_broadcast_first(x.index[N - 1]);
  const int32_t last_y = simd_broadcast_first(y.index[N - 1]);
  const bool is_same = simd_all(
      x.index[0] == first_x && y.index[0] == first_y &&
      x.index[N - 1] == last_x && y.index[N - 1] == last_y);
  bool takes = false;
  bool gives = false;
  if (N == 2) {
    const int32_t before_x = simd_shuffle_up(x.index[N - 1], 1);
    const int32_t before_upper = simd_shuffle_up(y.index[0], 1);
    const int32_t before_lower = simd_shuffle_up(y.index[N - 1], 1);
    takes = !is_same && x.index[0] >= 0 && lane > 0 &&
        x.index[0] == before_x && y.index[0] == before_upper &&
        y.index[N - 1] == before_lower;
    const int32_t next_takes = simd_shuffle_down(static_cast<int32_t>(takes), 1);
    gives = next_takes != 0 && lane < 31;
  }
  const bool any_takes = N == 2 && simd_any(takes);

  const device T* grads = grad_output + n * params.grad_output_strides[0] +
      (exists
           ? h * params.grad_output_strides[2] +
               w * params.grad_output_strides[3]
           : 0);
  const device T* values = input + n * params.input_strides[0];
  device atomic<float>* sums = grad_input + n * params.grad_input_strides[0];
  float grad_x = 0.0f;
  float grad_y = 0.0f;
  for (int32_t first = 0; first < params.channels; first += CHANNELS) {
    // All of these channels are read before the first is added to.
    float grad[CHANNELS];
    float value[N][N][CHANNELS];
#pragma unroll
    for (int32_t k = 0; k < CHANNELS; ++k) {
      const int32_t c = ::metal::min(first + k, params.channels - 1);
      const auto loaded = static_cast<float>(
          grads[exists ? c * params.grad_output_strides[1] : 0]);
      grad[k] = exists && first + k < params.channels ? loaded : 0.0f;
#pragma unroll
      for (int32_t i = 0; i < N; ++i) {
#pragma unroll
        for (int32_t j = 0; j < N; ++j) {
          const bool is_inside = x.index[j] >= 0 && y.index[i] >= 0;
          const int32_t pixel = is_inside
              ? y.index[i] * params.input_strides[2] +
                  x.index[j] * params.input_strides[3]
              : 0;
          const auto read = Interp::is_differentiable
              ? static_cast<float>(values[c * params.input_strides[1] + pixel])
              : 0.0f;
          value[i][j][k] = is_inside ? read : 0.0f;
        }
      }
    }
    if (Interp::is_differentiable) {
#pragma unroll
      for (int32_t k = 0; k < CHANNELS; ++k) {
        float sample_x = 0.0f;
        float sample_y = 0.0f;
#pragma unroll
        for (int32_t i = 0; i < N; ++i) {
          float row_slope = 0.0f;
          float column_slope = 0.0f;
#pragma unroll
          for (int32_t j = 0; j < N; ++j) {
            row_slope += value[i][j][k] * x.slope[j];
            column_slope += value[j][i][k] * y.slope[j];
          }
          sample_x += row_slope * y.weight[i];
          sample_y += column_slope * x.weight[i];
        }
        grad_x += sample_x * grad[k];
        grad_y += sample_y * grad[k];
      }
    }
    if (!params.compute_grad_input) {
      continue;
    }
#pragma unroll
    for (int32_t k = 0; k < CHANNELS; ++k) {
      const int32_t channel = (first + k) * params.grad_input_strides[1];
#pragma unroll
      for (int32_t i = 0; i < N; ++i) {
        float part[N];
#pragma unroll
        for (int32_t j = 0; j < N; ++j) {
          part[j] = y.weight[i] * x.weight[j] * grad[k];
        }
        if (any_takes) {
          const float given = simd_shuffle_up(part[N - 1], 1);
          part[0] += takes ? given : 0.0f;
        }
#pragma unroll
        for (int32_t j = 0; j < N; ++j) {
          const bool adds = x.index[j] >= 0 && y.index[i] >= 0 &&
              first + k < params.channels;
          const int32_t offset = channel +
              y.index[i] * params.grad_input_strides[2] +
              x.index[j] * params.grad_input_strides[3];
          if (is_same) {
            const float all = simd_sum(part[j]);
            if (adds && lane == 0) {
              AtomicType<float>::atomic_add(sums, offset, all);
            }
          } else if (adds && !(j == N - 1 && gives)) {
            AtomicType<float>::atomic_add(sums, offset, part[j]);
          }
        }
      }
    }
  }
  if (exists) {
    const int32_t at = 2 * (n * params.positions + position);
    grad_grid[at] = static_cast<T>(x.derivative * grad_x);
    grad_grid[at + 1] = static_cast<T>(y.derivative * grad_y);
  }
}

// Adds a position's channels, `first` and those after it, to one pixel, at
// `pixel` of each channel's memory; negative: to none. All threads of the
// simdgroup take part, and add together if they have one pixel.
template <int32_t CHANNELS>
void grid_add_nearest(
    device atomic<float>* sums,
    thread const float* grad,
    int32_t pixel,
    int32_t stride_c,
    int32_t first,
    int32_t channels,
    uint lane) {
  const int32_t first_pixel = simd_broadcast_first(pixel);
  const bool is_same = simd_all(pixel == first_pixel);
#pragma unroll
  for (int32_t k = 0; k < CHANNELS; ++k) {
    const bool adds = pixel >= 0 && first + k < channels;
    const int32_t offset = (first + k) * stride_c + pixel;
    if (is_same) {
      const float all = simd_sum(grad[k]);
      if (adds && lane == 0) {
        AtomicType<float>::atomic_add(sums, offset, all);
      }
    } else if (adds) {
      AtomicType<float>::atomic_add(sums, offset, grad[k]);
    }
  }
}

// Nearest reads no input and has no gradient with respect to the grid: threads
// share the channels of a position too.
template <typename Interp, typename T, int32_t CHANNELS>
kernel void grid_sampler_2d_backward_nearest(
    device atomic<float>* grad_input [[buffer(0)]],
    device T* grad_grid [[buffer(1)]],
    const device T* grad_output [[buffer(2)]],
    const device T* grid [[buffer(3)]],
    constant GridSamplerPositionsParams& params [[buffer(4)]],
    uint3 thread_position [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int32_t position = static_cast<int32_t>(thread_position.x);
  const int32_t first = static_cast<int32_t>(thread_position.y) * CHANNELS;
  const int32_t n = static_cast<int32_t>(thread_position.z);
  const bool exists = position < params.positions;
  const int32_t h = exists ? position / params.output_width : 0;
  const int32_t w = exists ? position - h * params.output_width : 0;
  const device T* grads = grad_output + n * params.grad_output_strides[0] +
      h * params.grad_output_strides[2] + w * params.grad_output_strides[3];
  float grad[CHANNELS];
#pragma unroll
  for (int32_t k = 0; k < CHANNELS; ++k) {
    const int32_t c = ::metal::min(first + k, params.channels - 1);
    grad[k] = static_cast<float>(grads[c * params.grad_output_strides[1]]);
  }
  const device T* coords = grid + n * params.grid_strides[0] +
      h * params.grid_strides[1] + w * params.grid_strides[2];
  const auto x = Interp::taps(
      static_cast<float>(coords[0]), params.width, params.align_corners);
  const auto y = Interp::taps(
      static_cast<float>(coords[params.grid_strides[3]]),
      params.height,
      params.align_corners);
  const bool is_inside = exists && x.index[0] >= 0 && y.index[0] >= 0;
  const int32_t pixel = is_inside
      ? y.index[0] * params.grad_input_strides[2] +
          x.index[0] * params.grad_input_strides[3]
      : -1;
  if (params.compute_grad_input) {
    grid_add_nearest<CHANNELS>(
        grad_input + n * params.grad_input_strides[0],
        grad,
        pixel,
        params.grad_input_strides[1],
        first,
        params.channels,
        lane);
  }
  if (exists && first == 0) {
    const int32_t at = 2 * (n * params.positions + position);
    grad_grid[at] = T(0);
    grad_grid[at + 1] = T(0);
  }
}

// Three dimensions: bilinear (that is, trilinear) and nearest, the
// interpolations that grid_sampler_3d has.
struct GridSamplerLanes3DParams {
  GridSamplerGradOutput grad_output;
  int32_t sizes[3]; // of the input: depth, height, width
  int32_t output_height;
  int32_t output_width;
  int32_t grid_strides[5];
  int32_t align_corners;
  int32_t compute_grad_input;
};

template <int32_t N>
struct GridCell3D;

template <>
struct GridCell3D<1> {
  int32_t pixel; // -1: there is none

  static GridCell3D make(
      GridTaps<1> tx,
      GridTaps<1> ty,
      GridTaps<1> tz,
      constant int32_t* sizes) {
    const bool is_inside =
        tx.index[0] >= 0 && ty.index[0] >= 0 && tz.index[0] >= 0;
    const int32_t pixel =
        (tz.index[0] * sizes[1] + ty.index[0]) * sizes[2] + tx.index[0];
    return {is_inside ? pixel : -1};
  }

  template <int32_t CHANNELS, typename Image>
  float3 visit(
      thread const Image& image,
      constant int32_t*,
      thread const float* grad) const thread {
    image.add(grad, pixel >= 0, pixel);
    return float3(0.0f);
  }
};

// The pixel with the lowest indices, the others follow from it.
template <>
struct GridCell3D<2> {
  int32_t x; // -2: there is neither this pixel nor its neighbor
  int32_t y;
  int32_t z;
  float weight_x; // of the pixels after it
  float weight_y;
  float weight_z;

  static GridCell3D make(
      GridTaps<2> tx,
      GridTaps<2> ty,
      GridTaps<2> tz,
      constant int32_t*) {
    return {
        GridCell<2>::first(tx),
        GridCell<2>::first(ty),
        GridCell<2>::first(tz),
        tx.weight[1],
        ty.weight[1],
        tz.weight[1]};
  }

  template <int32_t CHANNELS, typename Image>
  float3 visit(
      thread const Image& image,
      constant int32_t* sizes,
      thread const float* grad) const thread {
    if (x < -1 || y < -1 || z < -1) {
      return float3(0.0f);
    }
    bool has[8];
    int32_t pixel[8];
    float weight[8];
    float value[8][CHANNELS];
#pragma unroll
    for (int32_t corner = 0; corner < 8; ++corner) {
      const int32_t cx = x + (corner & 1);
      const int32_t cy = y + (corner / 2 & 1);
      const int32_t cz = z + corner / 4;
      has[corner] = cx >= 0 && cx < sizes[2] && cy >= 0 && cy < sizes[1] &&
          cz >= 0 && cz < sizes[0];
      pixel[corner] = (cz * sizes[1] + cy) * sizes[2] + cx;
      weight[corner] = (corner & 1 ? weight_x : 1.0f - weight_x) *
          (corner / 2 & 1 ? weight_y : 1.0f - weight_y) *
          (corner / 4 ? weight_z : 1.0f - weight_z);
      image.load(value[corner], has[corner], pixel[corner]);
    }
    float3 total = float3(0.0f);
#pragma unroll
    for (int32_t k = 0; k < CHANNELS; ++k) {
      float line[4]; // sampled along x
      float slope_x[4];
#pragma unroll
      for (int32_t i = 0; i < 4; ++i) {
        slope_x[i] = value[2 * i + 1][k] - value[2 * i][k];
        line[i] = (1.0f - weight_x) * value[2 * i][k] +
            weight_x * value[2 * i + 1][k];
      }
      const float near = 1.0f - weight_z;
      const float upper = 1.0f - weight_y;
      total.x += grad[k] *
          (near * (upper * slope_x[0] + weight_y * slope_x[1]) +
           weight_z * (upper * slope_x[2] + weight_y * slope_x[3]));
      total.y += grad[k] *
          (near * (line[1] - line[0]) + weight_z * (line[3] - line[2]));
      total.z += grad[k] *
          (upper * (line[2] - line[0]) + weight_y * (line[3] - line[1]));
    }
#pragma unroll
    for (int32_t corner = 0; corner < 8; ++corner) {
      float part[CHANNELS];
#pragma unroll
      for (int32_t k = 0; k < CHANNELS; ++k) {
        part[k] = weight[corner] * grad[k];
      }
      image.add(part, has[corner], pixel[corner]);
    }
    return total;
  }
};

template <
    typename Interp,
    typename T,
    int32_t LANES,
    int32_t CHANNELS,
    int32_t TILE,
    bool STAGED>
kernel void grid_sampler_3d_backward_lanes(
    device atomic<float>* grad_input [[buffer(0)]],
    device T* grad_grid [[buffer(1)]],
    const device T* grad_output [[buffer(2)]],
    const device T* input [[buffer(3)]],
    const device T* grid [[buffer(4)]],
    constant GridSamplerLanes3DParams& params [[buffer(5)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_index [[thread_index_in_threadgroup]]) {
  constexpr int32_t taps_count = Interp::taps_count;
  constexpr int32_t block = LANES * CHANNELS;
  constexpr int32_t run = TILE * LANES / GRID_GROUP_SIZE;
  constexpr int32_t pitch = grid_pitch<T>(TILE);
  constexpr int32_t staged_size = STAGED ? block * pitch : 1;
  threadgroup GridCell3D<taps_count> cells[TILE];
  threadgroup float derivatives[3 * TILE];
  threadgroup float sums[3 * TILE];
  threadgroup T staged[staged_size];

  const int32_t index = static_cast<int32_t>(thread_index);
  const int32_t first = static_cast<int32_t>(group.x) * TILE;
  const int32_t n = static_cast<int32_t>(group.y);
  const int32_t channels = params.grad_output.channels;
  const int32_t positions = params.grad_output.positions;
  if (index < TILE) {
    const bool exists = first + index < positions;
    const int32_t position = exists ? first + index : 0;
    const int32_t row = position / params.output_width;
    const int32_t w = position - row * params.output_width;
    const int32_t d = row / params.output_height;
    const int32_t h = row - d * params.output_height;
    const device T* coords = grid + n * params.grid_strides[0] +
        d * params.grid_strides[1] + h * params.grid_strides[2] +
        w * params.grid_strides[3];
    auto x = Interp::taps(
        static_cast<float>(coords[0]), params.sizes[2], params.align_corners);
    const auto y = Interp::taps(
        static_cast<float>(coords[params.grid_strides[4]]),
        params.sizes[1],
        params.align_corners);
    const auto z = Interp::taps(
        static_cast<float>(coords[2 * params.grid_strides[4]]),
        params.sizes[0],
        params.align_corners);
    if (!exists) {
#pragma unroll
      for (int32_t tap = 0; tap < taps_count; ++tap) {
        x.index[tap] = -1;
      }
    }
    cells[index] = GridCell3D<taps_count>::make(x, y, z, params.sizes);
    derivatives[3 * index] = x.derivative;
    derivatives[3 * index + 1] = y.derivative;
    derivatives[3 * index + 2] = z.derivative;
    sums[3 * index] = sums[3 * index + 1] = sums[3 * index + 2] = 0.0f;
  }

  const int32_t lane = index % LANES;
  const int32_t run_first = index / LANES * run;
  const int32_t image_start =
      n * params.sizes[0] * params.sizes[1] * params.sizes[2] * channels;
  const device T* image_grad_output =
      grad_output + n * params.grad_output.stride_n;
  GridImage<T, LANES, CHANNELS> image = {
      grad_input + image_start,
      input + image_start,
      lane,
      channels,
      params.sizes[1],
      params.sizes[2],
      params.compute_grad_input != 0};

  for (int32_t c = 0; c < channels; c += block) {
    if (STAGED) {
      if (c != 0) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      grid_stage<T, block, TILE>(
          staged, image_grad_output, params.grad_output, c, first, index);
    }
    if (STAGED || c == 0) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    image.channel = c + lane;
#pragma clang loop unroll(disable)
    for (int32_t r = 0; r < run; ++r) {
      const int32_t i = run_first + r;
      float grad[CHANNELS];
#pragma unroll
      for (int32_t k = 0; k < CHANNELS; ++k) {
        if (STAGED) {
          grad[k] = static_cast<float>(staged[(lane + k * LANES) * pitch + i]);
        } else {
          grad[k] = image.has(k) && first + i < positions
              ? static_cast<float>(
                    image_grad_output
                        [(c + lane + k * LANES) * params.grad_output.stride_c +
                         (first + i) * params.grad_output.stride_position])
              : 0.0f;
        }
      }
      const GridCell3D<taps_count> cell = cells[i];
      const float3 total =
          cell.template visit<CHANNELS>(image, params.sizes, grad);
      if (Interp::is_differentiable) {
        const float sum =
            grid_sum_lanes<LANES>(float2(total.x, total.y), lane);
        const float sum_z = grid_sum_lanes<LANES>(float2(total.z, 0.0f), lane);
        if (lane % (LANES / 2) == 0) {
          sums[3 * i + lane / (LANES / 2)] += sum;
        }
        if (lane == 0) {
          sums[3 * i + 2] += sum_z;
        }
      }
    }
  }

  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int32_t i = index; i < 3 * TILE; i += GRID_GROUP_SIZE) {
    if (first + i / 3 < positions) {
      grad_grid[3 * (n * positions + first) + i] =
          static_cast<T>(sums[i] * derivatives[i]);
    }
  }
}

// Nearest with a thread per position, as in two dimensions; grad_input is
// contiguous.
template <typename Interp, typename T, int32_t CHANNELS>
kernel void grid_sampler_3d_backward_nearest(
    device atomic<float>* grad_input [[buffer(0)]],
    device T* grad_grid [[buffer(1)]],
    const device T* grad_output [[buffer(2)]],
    const device T* grid [[buffer(3)]],
    constant GridSamplerLanes3DParams& params [[buffer(4)]],
    uint3 thread_position [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  const int32_t index = static_cast<int32_t>(thread_position.x);
  const int32_t first = static_cast<int32_t>(thread_position.y) * CHANNELS;
  const int32_t n = static_cast<int32_t>(thread_position.z);
  const int32_t channels = params.grad_output.channels;
  const int32_t positions = params.grad_output.positions;
  const bool exists = index < positions;
  const int32_t position = exists ? index : 0;
  const device T* grads = grad_output + n * params.grad_output.stride_n +
      position * params.grad_output.stride_position;
  float grad[CHANNELS];
#pragma unroll
  for (int32_t k = 0; k < CHANNELS; ++k) {
    const int32_t c = ::metal::min(first + k, channels - 1);
    grad[k] = static_cast<float>(grads[c * params.grad_output.stride_c]);
  }
  const int32_t row = position / params.output_width;
  const int32_t w = position - row * params.output_width;
  const int32_t d = row / params.output_height;
  const int32_t h = row - d * params.output_height;
  const device T* coords = grid + n * params.grid_strides[0] +
      d * params.grid_strides[1] + h * params.grid_strides[2] +
      w * params.grid_strides[3];
  const auto x = Interp::taps(
      static_cast<float>(coords[0]), params.sizes[2], params.align_corners);
  const auto y = Interp::taps(
      static_cast<float>(coords[params.grid_strides[4]]),
      params.sizes[1],
      params.align_corners);
  const auto z = Interp::taps(
      static_cast<float>(coords[2 * params.grid_strides[4]]),
      params.sizes[0],
      params.align_corners);
  const int32_t pixel =
      exists ? GridCell3D<1>::make(x, y, z, params.sizes).pixel : -1;
  const int32_t pixels = params.sizes[0] * params.sizes[1] * params.sizes[2];
  if (params.compute_grad_input) {
    grid_add_nearest<CHANNELS>(
        grad_input + n * channels * pixels,
        grad,
        pixel,
        pixels,
        first,
        channels,
        lane);
  }
  if (exists && first == 0) {
    const int32_t at = 3 * (n * positions + position);
    grad_grid[at] = grad_grid[at + 1] = grad_grid[at + 2] = T(0);
  }
}
