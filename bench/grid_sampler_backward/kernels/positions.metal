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
