// What lands are the fragments between the marker lines, in the file that trees
// with upstream's backward have. It includes GridSamplerWindow.h.

// fragment: grid_sample
// One channel of a sample: the sum of its pixels, each with its weight.
template <int32_t D, typename Interp, typename T, typename idx_t>
static T grid_sample(
    const device T* channel,
    constant GridDims<D, idx_t>& strides,
    const thread GridWindow<D, Interp>& window) {
  float sum = 0.0f;
#pragma unroll
  for (int32_t pixel = 0; pixel < window.pixels_count; ++pixel) {
    if (window.is_inside(pixel)) {
      const auto value =
          static_cast<float>(channel[window.offset(pixel, strides)]);
      sum += window.weight(pixel) * value;
    }
  }
  return static_cast<T>(sum);
}
// end fragment

// fragment: grid_sampler_2d_kernel
// 2D grid sampler: one thread per sampling position, which walks the channels.
template <typename Interp, typename T, typename idx_t>
kernel void grid_sampler_2d(
    device T* output [[buffer(0)]],
    const device T* input [[buffer(1)]],
    const device T* grid [[buffer(2)]],
    constant GridSamplerParams<4, idx_t>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  const auto where = GridPosition<2, idx_t>::of_thread(
      static_cast<idx_t>(tid), params.output_sizes);
  const auto window = GridWindow<2, Interp>::around(
      grid + where.grid_offset(params.grid_strides),
      params.grid_strides[3],
      params.input_sizes,
      params.align_corners);

  idx_t input_offset = where.index[0] * params.input_strides[0];
  idx_t output_offset = where.output_offset(params.output_strides);
  for (idx_t c = 0; c < params.output_sizes[1]; ++c) {
    output[output_offset] =
        grid_sample(input + input_offset, params.input_strides, window);
    input_offset += params.input_strides[1];
    output_offset += params.output_strides[1];
  }
}
// end fragment

// fragment: grid_sampler_3d_kernel
// 3D grid sampler: one thread per output element (n, c, d, h, w).
template <typename Interp, typename T, typename idx_t>
kernel void grid_sampler_3d(
    device T* output [[buffer(0)]],
    const device T* input [[buffer(1)]],
    const device T* grid [[buffer(2)]],
    constant GridSamplerParams<5, idx_t>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  auto where = GridPosition<3, idx_t>::of_thread(
      static_cast<idx_t>(tid), params.output_sizes);
  const idx_t n = where.index[0] / params.output_sizes[1];
  const idx_t c = where.index[0] - n * params.output_sizes[1];
  where.index[0] = n;
  const auto window = GridWindow<3, Interp>::around(
      grid + where.grid_offset(params.grid_strides),
      params.grid_strides[4],
      params.input_sizes,
      params.align_corners);
  const auto channel =
      input + n * params.input_strides[0] + c * params.input_strides[1];
  output
      [where.output_offset(params.output_strides) +
       c * params.output_strides[1]] =
          grid_sample(channel, params.input_strides, window);
}
// end fragment

// fragment: backward_helpers
// Taps of a padding that is known at run time. Only making them depends on it,
// so kernels choose once per axis and not for each pixel and channel.
template <template <typename> class Interp>
static auto grid_taps(
    float coord,
    int32_t size,
    bool align_corners,
    GridSamplerPadding padding) {
  switch (padding) {
    case GridSamplerPadding::Border:
      return Interp<GridPadBorder>::taps(coord, size, align_corners);
    case GridSamplerPadding::Reflection:
      return Interp<GridPadReflection>::taps(coord, size, align_corners);
    default:
      return Interp<GridPadZeros>::taps(coord, size, align_corners);
  }
}

// As GridWindow::around, of such a padding; which one it was does not matter to
// the window any more.
template <
    int32_t D,
    template <typename> class Interp,
    typename T,
    typename idx_t>
static GridWindow<D, Interp<GridPadZeros>> grid_window(
    const device T* grid,
    constant GridSamplerBackwardParams<D + 2, idx_t>& params,
    const thread GridPosition<D, idx_t>& where) {
  const auto coords = grid + where.grid_offset(params.forward.grid_strides);
  GridWindow<D, Interp<GridPadZeros>> window;
#pragma unroll
  for (int32_t axis = 0; axis < D; ++axis) {
    // The first coordinate belongs to the last axis.
    window.axes[axis] = grid_taps<Interp>(
        static_cast<float>(
            coords[(D - 1 - axis) * params.forward.grid_strides[D + 1]]),
        static_cast<int32_t>(params.forward.input_sizes[axis + 2]),
        params.forward.align_corners,
        params.padding_mode);
  }
  return window;
}

// Adds what a sample gives to the gradients of its pixels. They are summed in
// float whatever T is: 16-bit sums stop growing at 2048 (half) or 256 (bfloat),
// and 16-bit atomics are emulated.
template <int32_t D, typename Interp, typename T, typename idx_t>
static void grid_sampler_add_grad_input(
    device AtomicType_t<float>* grad_input,
    const device T* grad_output,
    constant GridSamplerBackwardParams<D + 2, idx_t>& params,
    const thread GridPosition<D, idx_t>& where,
    const thread GridWindow<D, Interp>& window) {
  idx_t grad_output_offset = where.output_offset(params.grad_output_strides);
  idx_t grad_input_offset = where.index[0] * params.grad_input_strides[0];
  for (idx_t c = 0; c < params.forward.input_sizes[1]; ++c) {
    const auto grad = static_cast<float>(grad_output[grad_output_offset]);
#pragma unroll
    for (int32_t pixel = 0; pixel < window.pixels_count; ++pixel) {
      if (window.is_inside(pixel)) {
        AtomicType<float>::atomic_add(
            grad_input,
            grad_input_offset + window.offset(pixel, params.grad_input_strides),
            window.weight(pixel) * grad);
      }
    }
    grad_output_offset += params.grad_output_strides[1];
    grad_input_offset += params.grad_input_strides[1];
  }
}

template <int32_t D, typename Interp, typename T, typename idx_t>
static void grid_sampler_write_grad_grid(
    device T* grad_grid,
    const device T* grad_output,
    const device T* input,
    constant GridSamplerBackwardParams<D + 2, idx_t>& params,
    const thread GridPosition<D, idx_t>& where,
    const thread GridWindow<D, Interp>& window) {
  idx_t grad_output_offset = where.output_offset(params.grad_output_strides);
  idx_t input_offset = where.index[0] * params.forward.input_strides[0];
  float grad_position[D] = {};
  for (idx_t c = 0; c < params.forward.input_sizes[1]; ++c) {
    const auto grad = static_cast<float>(grad_output[grad_output_offset]);
    float values[GridWindow<D, Interp>::pixels_count] = {}; // padding stays 0
#pragma unroll
    for (int32_t pixel = 0; pixel < window.pixels_count; ++pixel) {
      if (window.is_inside(pixel)) {
        values[pixel] = static_cast<float>(
            input
                [input_offset +
                 window.offset(pixel, params.forward.input_strides)]);
      }
    }
#pragma unroll
    for (int32_t axis = 0; axis < D; ++axis) {
      grad_position[axis] += window.slope(axis, values) * grad;
    }
    grad_output_offset += params.grad_output_strides[1];
    input_offset += params.forward.input_strides[1];
  }

  const auto result = grad_grid + where.grid_offset(params.grad_grid_strides);
  for (int32_t axis = 0; axis < D; ++axis) {
    result[(D - 1 - axis) * params.grad_grid_strides[D + 1]] =
        static_cast<T>(window.axes[axis].derivative * grad_position[axis]);
  }
}
// end fragment

// fragment: grid_sampler_3d_backward_kernel
template <typename T, typename idx_t>
kernel void grid_sampler_3d_backward(
    const device T* grad_output [[buffer(0)]],
    const device T* input [[buffer(1)]],
    const device T* grid [[buffer(2)]],
    device AtomicType_t<float>* grad_input [[buffer(3)]],
    device T* grad_grid [[buffer(4)]],
    constant GridSamplerBackwardParams<5, idx_t>& params [[buffer(5)]],
    uint3 thread_index [[thread_position_in_grid]]) {
  const idx_t w = thread_index.x;
  const idx_t d_h_combined = thread_index.y;
  const idx_t n = thread_index.z;
  const idx_t d = d_h_combined / params.forward.output_sizes[3];
  const idx_t h = d_h_combined - d * params.forward.output_sizes[3];
  const GridPosition<3, idx_t> where = {{n, d, h, w}};

  if (params.interpolation_mode == GridSamplerInterpolation::Nearest) {
    if (params.compute_grad_input) {
      const auto window = grid_window<3, GridNearest>(grid, params, where);
      grid_sampler_add_grad_input(
          grad_input, grad_output, params, where, window);
    }
    return;
  }
  const auto window = grid_window<3, GridBilinear>(grid, params, where);
  if (params.compute_grad_input) {
    grid_sampler_add_grad_input(grad_input, grad_output, params, where, window);
  }
  if (params.compute_grad_grid) {
    grid_sampler_write_grad_grid(
        grad_grid, grad_output, input, params, where, window);
  }
}
// end fragment

// fragment: forward_registration
#define REGISTER_GRID_SAMPLER_PADDING(D, interp, I, pad, P, T, idx, X)     \
  template [[host_name(                                                    \
      "grid_sampler_" #D "d_" #interp "_" #pad "_" X "_" #T)]] kernel void \
  grid_sampler_##D##d<I<P>, T, idx>(                                       \
      device T * output [[buffer(0)]],                                     \
      const device T* input [[buffer(1)]],                                 \
      const device T* grid [[buffer(2)]],                                  \
      constant GridSamplerParams<D + 2, idx>& params [[buffer(3)]],        \
      uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER(D, interp, I, T, idx, X)                        \
  REGISTER_GRID_SAMPLER_PADDING(D, interp, I, zeros, GridPadZeros, T, idx, X) \
  REGISTER_GRID_SAMPLER_PADDING(                                              \
      D, interp, I, border, GridPadBorder, T, idx, X)                         \
  REGISTER_GRID_SAMPLER_PADDING(                                              \
      D, interp, I, reflection, GridPadReflection, T, idx, X)

#define REGISTER_GRID_SAMPLER_3D_BACKWARD(T, idx, X)                       \
  template [[host_name("grid_sampler_3d_backward_" X "_" #T)]] kernel void \
  grid_sampler_3d_backward<T, idx>(                                        \
      const device T* grad_output [[buffer(0)]],                           \
      const device T* input [[buffer(1)]],                                 \
      const device T* grid [[buffer(2)]],                                  \
      device AtomicType_t<float>* grad_input [[buffer(3)]],                \
      device T* grad_grid [[buffer(4)]],                                   \
      constant GridSamplerBackwardParams<5, idx>& params [[buffer(5)]],    \
      uint3 thread_index [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_INDEX(T, idx, X)                \
  REGISTER_GRID_SAMPLER(2, bilinear, GridBilinear, T, idx, X) \
  REGISTER_GRID_SAMPLER(2, nearest, GridNearest, T, idx, X)   \
  REGISTER_GRID_SAMPLER(2, bicubic, GridBicubic, T, idx, X)   \
  REGISTER_GRID_SAMPLER(3, bilinear, GridBilinear, T, idx, X) \
  REGISTER_GRID_SAMPLER(3, nearest, GridNearest, T, idx, X)   \
  REGISTER_GRID_SAMPLER_3D_BACKWARD(T, idx, X)

#define REGISTER_GRID_SAMPLER_OPS(T)             \
  REGISTER_GRID_SAMPLER_INDEX(T, int32_t, "i32") \
  REGISTER_GRID_SAMPLER_INDEX(T, int64_t, "i64")
// end fragment

// fragment: bilinear_input_kernel
template <typename T, typename idx_t>
kernel void grid_sampler_2d_backward_bilinear_input(
    device AtomicType_t<float>* grad_input [[buffer(0)]],
    const device T* grad_output [[buffer(1)]],
    const device T* grid [[buffer(2)]],
    constant GridSamplerBackwardParams<4, idx_t>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  const auto where = GridPosition<2, idx_t>::of_thread(
      static_cast<idx_t>(tid), params.forward.output_sizes);
  const auto window = grid_window<2, GridBilinear>(grid, params, where);
  grid_sampler_add_grad_input(grad_input, grad_output, params, where, window);
}
// end fragment

// fragment: bilinear_grid_kernel
template <typename T, typename idx_t>
kernel void grid_sampler_2d_backward_bilinear_grid(
    device T* grad_grid [[buffer(0)]],
    const device T* grad_output [[buffer(1)]],
    const device T* input [[buffer(2)]],
    const device T* grid [[buffer(3)]],
    constant GridSamplerBackwardParams<4, idx_t>& params [[buffer(4)]],
    uint tid [[thread_position_in_grid]]) {
  const auto where = GridPosition<2, idx_t>::of_thread(
      static_cast<idx_t>(tid), params.forward.output_sizes);
  const auto window = grid_window<2, GridBilinear>(grid, params, where);
  grid_sampler_write_grad_grid(
      grad_grid, grad_output, input, params, where, window);
}
// end fragment

// fragment: nearest_input_kernel
template <typename T, typename idx_t>
kernel void grid_sampler_2d_backward_nearest_input(
    device AtomicType_t<float>* grad_input [[buffer(0)]],
    const device T* grad_output [[buffer(1)]],
    const device T* grid [[buffer(2)]],
    constant GridSamplerBackwardParams<4, idx_t>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  const auto where = GridPosition<2, idx_t>::of_thread(
      static_cast<idx_t>(tid), params.forward.output_sizes);
  const auto window = grid_window<2, GridNearest>(grid, params, where);
  grid_sampler_add_grad_input(grad_input, grad_output, params, where, window);
}
// end fragment

// fragment: bicubic_input_kernel
template <typename Pad, typename T, typename idx_t>
kernel void grid_sampler_2d_backward_bicubic_input(
    device AtomicType_t<float>* grad_input [[buffer(0)]],
    const device T* grad_output [[buffer(1)]],
    const device T* grid [[buffer(2)]],
    constant GridSamplerBackwardParams<4, idx_t>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  const auto where = GridPosition<2, idx_t>::of_thread(
      static_cast<idx_t>(tid), params.forward.output_sizes);
  const auto window = GridWindow<2, GridBicubic<Pad>>::around(
      grid + where.grid_offset(params.forward.grid_strides),
      params.forward.grid_strides[3],
      params.forward.input_sizes,
      params.forward.align_corners);
  grid_sampler_add_grad_input(grad_input, grad_output, params, where, window);
}
// end fragment

// fragment: bicubic_grid_kernel
template <typename Pad, typename T, typename idx_t>
kernel void grid_sampler_2d_backward_bicubic_grid(
    device T* grad_grid [[buffer(0)]],
    const device T* grad_output [[buffer(1)]],
    const device T* input [[buffer(2)]],
    const device T* grid [[buffer(3)]],
    constant GridSamplerBackwardParams<4, idx_t>& params [[buffer(4)]],
    uint tid [[thread_position_in_grid]]) {
  const auto where = GridPosition<2, idx_t>::of_thread(
      static_cast<idx_t>(tid), params.forward.output_sizes);
  const auto window = GridWindow<2, GridBicubic<Pad>>::around(
      grid + where.grid_offset(params.forward.grid_strides),
      params.forward.grid_strides[3],
      params.forward.input_sizes,
      params.forward.align_corners);
  grid_sampler_write_grad_grid(
      grad_grid, grad_output, input, params, where, window);
}
// end fragment

// fragment: backward_registration
// `pad` is empty for kernels that are told their padding at run time; template
// arguments follow X.
#define REGISTER_GRID_SAMPLER_2D_BACKWARD_INPUT(interp, pad, T, idx, X, ...) \
  template [[host_name(                                                      \
      "grid_sampler_2d_backward_" #interp "_input" pad "_" X                 \
      "_" #T)]] kernel void                                                  \
  grid_sampler_2d_backward_##interp##_input<__VA_ARGS__>(                    \
      device AtomicType_t<float> * grad_input [[buffer(0)]],                 \
      const device T* grad_output [[buffer(1)]],                             \
      const device T* grid [[buffer(2)]],                                    \
      constant GridSamplerBackwardParams<4, idx>& params [[buffer(3)]],      \
      uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_2D_BACKWARD_GRID(interp, pad, T, idx, X, ...) \
  template [[host_name(                                                     \
      "grid_sampler_2d_backward_" #interp "_grid" pad "_" X                 \
      "_" #T)]] kernel void                                                 \
  grid_sampler_2d_backward_##interp##_grid<__VA_ARGS__>(                    \
      device T * grad_grid [[buffer(0)]],                                   \
      const device T* grad_output [[buffer(1)]],                            \
      const device T* input [[buffer(2)]],                                  \
      const device T* grid [[buffer(3)]],                                   \
      constant GridSamplerBackwardParams<4, idx>& params [[buffer(4)]],     \
      uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_2D_BACKWARD_PADDING(pad, P, T, idx, X) \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_INPUT(                           \
      bicubic, "_" pad, T, idx, X, P, T, idx)                        \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_GRID(bicubic, "_" pad, T, idx, X, P, T, idx)

#define REGISTER_GRID_SAMPLER_2D_BACKWARD_INDEX(T, idx, X)                    \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_INPUT(bilinear, "", T, idx, X, T, idx)    \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_GRID(bilinear, "", T, idx, X, T, idx)     \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_INPUT(nearest, "", T, idx, X, T, idx)     \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_PADDING("zeros", GridPadZeros, T, idx, X) \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_PADDING(                                  \
      "border", GridPadBorder, T, idx, X)                                     \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_PADDING(                                  \
      "reflection", GridPadReflection, T, idx, X)

#define REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(T)             \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_INDEX(T, int32_t, "i32") \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_INDEX(T, int64_t, "i64")
// end fragment
