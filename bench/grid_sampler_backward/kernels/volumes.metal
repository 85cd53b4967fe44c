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
