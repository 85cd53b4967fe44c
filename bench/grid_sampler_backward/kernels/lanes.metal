// The kernel whose positions have several lanes each.

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
