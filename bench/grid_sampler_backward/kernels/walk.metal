// Candidates for a faster grid_sampler_2d_backward, measured by measure.py.
//
// These files are fragments, in the order that instances.py gives them: they
// follow the fragments of aten_overlay's GridSampler.metal, whose taps, paddings
// and interpolations they use.
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
