#include <ATen/native/mps/kernels/GridSampler.h>
#include <ATen/native/mps/kernels/SamplingHelpers.h>
#include <c10/metal/atomic.h>
#include <c10/metal/utils.h>
#include <metal_array>
#include <metal_stdlib>

using namespace metal;
using namespace c10::metal;

// Remainder of a division that rounds down, for a positive b.
static int32_t mod(int32_t a, int32_t b) {
  const auto remainder = a % b;
  return remainder < 0 ? remainder + b : remainder;
}

// What `pad` returns for a tap that lies in zero padding.
constant int32_t IDX_ZERO = -1;

// From a grid coordinate, where the input spans [-1, 1], to pixels.
static float grid_sampler_unnormalize(
    float coord,
    int32_t size,
    bool align_corners) {
  const float from_left = coord + 1;
  return align_corners ? from_left / 2 * (size - 1)
                       : (from_left * size - 1) / 2;
}

// The nearest of the positions from 0 to max_val.
static float clip_coordinates(float in, float max_val) {
  return ::metal::min(::metal::max(in, 0.0f), max_val);
}

// Mirrors a position at low and at high until it lies between them.
template <typename T>
static T reflect_coordinates(T in, T low, T high) {
  const T span = high - low;
  if (span == 0) {
    return 0;
  }
  const T distance = fabs(in - low);
  const auto crossings = static_cast<int32_t>(floor(distance / span));
  const T rest = fmod(distance, span);
  return low + (crossings % 2 == 0 ? rest : span - rest);
}

// Paddings: `pad` says which pixel a tap reads, `apply_padding` moves a
// position into the input, and `compute_source` does so from a grid coordinate.
struct PadZeros {
  static constant constexpr bool checks_bounds = true;

  static int32_t pad(int32_t idx, int32_t input_size, bool) {
    const bool is_inside = idx >= 0 && idx < input_size;
    return is_inside ? idx : IDX_ZERO;
  }

  static float apply_padding(float coord, int32_t, bool) {
    return coord;
  }

  static float compute_source(float coord, int32_t size, bool align_corners) {
    return grid_sampler_unnormalize(coord, size, align_corners);
  }
};

struct PadBorder {
  static constant constexpr bool checks_bounds = false;

  static int32_t pad(int32_t idx, int32_t input_size, bool) {
    return ::metal::min(::metal::max(idx, 0), input_size - 1);
  }

  static float apply_padding(float coord, int32_t size, bool) {
    return clip_coordinates(coord, static_cast<float>(size - 1));
  }

  static float compute_source(float coord, int32_t size, bool align_corners) {
    const auto position = grid_sampler_unnormalize(coord, size, align_corners);
    return apply_padding(position, size, align_corners);
  }
};

struct PadReflection {
  static constant constexpr bool checks_bounds = false;

  static int32_t pad(int32_t idx, int32_t input_size, bool align_corners) {
    const int32_t period = align_corners ? input_size - 1 : input_size;
    const int32_t rest = mod(idx, period);
    const int32_t images = abs(idx - rest) / period;
    return images % 2 == 0 ? rest : input_size - 1 - rest;
  }

  static float apply_padding(float coord, int32_t size, bool align_corners) {
    const float last = size - 1.0f;
    const float mirrored = align_corners
        ? reflect_coordinates(coord, 0.0f, last)
        : reflect_coordinates(coord, -0.5f, last + 0.5f);
    return clip_coordinates(mirrored, last);
  }

  static float compute_source(float coord, int32_t size, bool align_corners) {
    const auto position = grid_sampler_unnormalize(coord, size, align_corners);
    return apply_padding(position, size, align_corners);
  }
};

// One channel at a position that is given as grid coordinates, by linear
// interpolation along both axes.
template <typename Pad, typename T, typename idx_t>
static T interpolate_bilinear_2d(
    constant T* input,
    float ix,
    float iy,
    int32_t inp_H,
    int32_t inp_W,
    idx_t inp_sH,
    idx_t inp_sW,
    bool align_corners) {
  ix = grid_sampler_unnormalize(ix, inp_W, align_corners);
  iy = grid_sampler_unnormalize(iy, inp_H, align_corners);
  const auto left = static_cast<int32_t>(floor(ix));
  const auto top = static_cast<int32_t>(floor(iy));

  opmath_t<T> sum = 0;
  for (int32_t corner = 0; corner < 4; ++corner) {
    const int32_t right_side = corner & 1;
    const int32_t lower_side = corner >> 1;
    const int32_t x = Pad::pad(left + right_side, inp_W, align_corners);
    const int32_t y = Pad::pad(top + lower_side, inp_H, align_corners);
    if (x == IDX_ZERO || y == IDX_ZERO) {
      continue;
    }
    // A corner's share is the area between the position and the opposite one.
    const float width = right_side ? ix - left : left + 1 - ix;
    const float height = lower_side ? iy - top : top + 1 - iy;
    sum += static_cast<opmath_t<T>>(input[y * inp_sH + x * inp_sW]) *
        (width * height);
  }
  return static_cast<T>(sum);
}

// The same, of the nearest pixel.
template <typename Pad, typename T, typename idx_t>
static T interpolate_nearest_2d(
    constant T* input,
    opmath_t<T> ix,
    opmath_t<T> iy,
    int32_t inp_H,
    int32_t inp_W,
    idx_t inp_sH,
    idx_t inp_sW,
    bool align_corners) {
  const auto x =
      static_cast<int32_t>(rint(Pad::compute_source(ix, inp_W, align_corners)));
  const auto y =
      static_cast<int32_t>(rint(Pad::compute_source(iy, inp_H, align_corners)));
  const bool is_inside = x >= 0 && x < inp_W && y >= 0 && y < inp_H;
  if (Pad::checks_bounds && !is_inside) {
    return 0;
  }
  return input[y * inp_sH + x * inp_sW];
}

// A tap of the bicubic forward.
template <typename Pad, typename T, typename idx_t>
static opmath_t<T> get_bicubic_value(
    constant T* input,
    int32_t y,
    int32_t x,
    int32_t inp_H,
    int32_t inp_W,
    idx_t inp_sH,
    idx_t inp_sW,
    bool align_corners) {
  x = Pad::pad(x, inp_W, align_corners);
  y = Pad::pad(y, inp_H, align_corners);
  return x == IDX_ZERO || y == IDX_ZERO
      ? opmath_t<T>(0)
      : static_cast<opmath_t<T>>(input[y * inp_sH + x * inp_sW]);
}

// The same, by cubic convolution along both axes.
template <typename Pad, typename T, typename idx_t>
static T interpolate_bicubic_2d(
    constant T* input,
    float ix,
    float iy,
    int32_t inp_H,
    int32_t inp_W,
    idx_t inp_sH,
    idx_t inp_sW,
    bool align_corners) {
  ix = grid_sampler_unnormalize(ix, inp_W, align_corners);
  iy = grid_sampler_unnormalize(iy, inp_H, align_corners);
  const auto first_x = static_cast<int32_t>(floor(ix)) - 1;
  const auto first_y = static_cast<int32_t>(floor(iy)) - 1;

  opmath_t<T> lines[4];
  for (int32_t row = 0; row < 4; ++row) {
    opmath_t<T> taps[4];
    for (int32_t column = 0; column < 4; ++column) {
      taps[column] = get_bicubic_value<Pad, T>(
          input,
          first_y + row,
          first_x + column,
          inp_H,
          inp_W,
          inp_sH,
          inp_sW,
          align_corners);
    }
    lines[row] =
        cubic_interp1d(taps[0], taps[1], taps[2], taps[3], ix - floor(ix));
  }
  return static_cast<T>(
      cubic_interp1d(lines[0], lines[1], lines[2], lines[3], iy - floor(iy)));
}

// Interpolations of the 2D kernel.
template <typename Pad>
struct Bilinear2D {
  template <typename T, typename idx_t>
  static T interpolate(
      constant T* input,
      opmath_t<T> ix,
      opmath_t<T> iy,
      int32_t inp_H,
      int32_t inp_W,
      idx_t inp_sH,
      idx_t inp_sW,
      bool align_corners) {
    return interpolate_bilinear_2d<Pad>(
        input, ix, iy, inp_H, inp_W, inp_sH, inp_sW, align_corners);
  }
};

template <typename Pad>
struct Nearest2D {
  template <typename T, typename idx_t>
  static T interpolate(
      constant T* input,
      opmath_t<T> ix,
      opmath_t<T> iy,
      int32_t inp_H,
      int32_t inp_W,
      idx_t inp_sH,
      idx_t inp_sW,
      bool align_corners) {
    return interpolate_nearest_2d<Pad>(
        input, ix, iy, inp_H, inp_W, inp_sH, inp_sW, align_corners);
  }
};

template <typename Pad>
struct Bicubic2D {
  template <typename T, typename idx_t>
  static T interpolate(
      constant T* input,
      float ix,
      float iy,
      int32_t inp_H,
      int32_t inp_W,
      idx_t inp_sH,
      idx_t inp_sW,
      bool align_corners) {
    return interpolate_bicubic_2d<Pad>(
        input, ix, iy, inp_H, inp_W, inp_sH, inp_sW, align_corners);
  }
};

// 2D forward: a thread computes all channels of a sampling position.
template <typename Interp, typename T, typename idx_t>
kernel void grid_sampler_2d(
    device T* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant T* grid [[buffer(2)]],
    constant GridSamplerParams<4, idx_t>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  const auto columns = params.output_sizes[3];
  const auto rows = params.output_sizes[2];
  const int32_t w = tid % columns;
  const int32_t h = tid / columns % rows;
  const int32_t n = tid / (columns * rows);

  constant T* place = grid + n * params.grid_strides[0] +
      h * params.grid_strides[1] + w * params.grid_strides[2];
  const auto x = static_cast<opmath_t<T>>(place[0]);
  const auto y = static_cast<opmath_t<T>>(place[params.grid_strides[3]]);

  constant T* image = input + n * params.input_strides[0];
  device T* result = output + n * params.output_strides[0] +
      h * params.output_strides[2] + w * params.output_strides[3];
  for (int32_t c = 0; c < params.output_sizes[1]; ++c) {
    *result = Interp::template interpolate<T>(
        image,
        x,
        y,
        params.input_sizes[2],
        params.input_sizes[3],
        params.input_strides[2],
        params.input_strides[3],
        params.align_corners);
    image += params.input_strides[1];
    result += params.output_strides[1];
  }
}

// One channel of a volume, by linear interpolation along three axes.
template <typename Pad, typename T, typename idx_t>
static T interpolate_trilinear_3d(
    constant T* input,
    opmath_t<T> ix,
    opmath_t<T> iy,
    opmath_t<T> iz,
    int32_t inp_D,
    int32_t inp_H,
    int32_t inp_W,
    idx_t inp_sD,
    idx_t inp_sH,
    idx_t inp_sW,
    bool align_corners) {
  ix = grid_sampler_unnormalize(ix, inp_W, align_corners);
  iy = grid_sampler_unnormalize(iy, inp_H, align_corners);
  iz = grid_sampler_unnormalize(iz, inp_D, align_corners);
  const auto left = static_cast<int32_t>(floor(ix));
  const auto top = static_cast<int32_t>(floor(iy));
  const auto front = static_cast<int32_t>(floor(iz));

  opmath_t<T> sum = 0;
  for (int32_t corner = 0; corner < 8; ++corner) {
    const int32_t dx = corner & 1;
    const int32_t dy = (corner >> 1) & 1;
    const int32_t dz = corner >> 2;
    const int32_t x = Pad::pad(left + dx, inp_W, align_corners);
    const int32_t y = Pad::pad(top + dy, inp_H, align_corners);
    const int32_t z = Pad::pad(front + dz, inp_D, align_corners);
    if (Pad::checks_bounds &&
        (x == IDX_ZERO || y == IDX_ZERO || z == IDX_ZERO)) {
      continue;
    }
    const float width = dx ? ix - left : 1 - (ix - left);
    const float height = dy ? iy - top : 1 - (iy - top);
    const float depth = dz ? iz - front : 1 - (iz - front);
    sum +=
        static_cast<opmath_t<T>>(input[z * inp_sD + y * inp_sH + x * inp_sW]) *
        (depth * height * width);
  }
  return static_cast<T>(sum);
}

// The same, of the nearest pixel.
template <typename Pad, typename T, typename idx_t>
static T interpolate_nearest_3d(
    constant T* input,
    opmath_t<T> ix,
    opmath_t<T> iy,
    opmath_t<T> iz,
    int32_t inp_D,
    int32_t inp_H,
    int32_t inp_W,
    idx_t inp_sD,
    idx_t inp_sH,
    idx_t inp_sW,
    bool align_corners) {
  const auto x =
      static_cast<int32_t>(rint(Pad::compute_source(ix, inp_W, align_corners)));
  const auto y =
      static_cast<int32_t>(rint(Pad::compute_source(iy, inp_H, align_corners)));
  const auto z =
      static_cast<int32_t>(rint(Pad::compute_source(iz, inp_D, align_corners)));
  const bool is_inside =
      x >= 0 && x < inp_W && y >= 0 && y < inp_H && z >= 0 && z < inp_D;
  if (Pad::checks_bounds && !is_inside) {
    return 0;
  }
  return input[z * inp_sD + y * inp_sH + x * inp_sW];
}

// Interpolations of the 3D kernel.
template <typename Pad>
struct Bilinear3D {
  template <typename T, typename idx_t>
  static T interpolate(
      constant T* input,
      opmath_t<T> ix,
      opmath_t<T> iy,
      opmath_t<T> iz,
      int32_t inp_D,
      int32_t inp_H,
      int32_t inp_W,
      idx_t inp_sD,
      idx_t inp_sH,
      idx_t inp_sW,
      bool align_corners) {
    return interpolate_trilinear_3d<Pad>(
        input,
        ix,
        iy,
        iz,
        inp_D,
        inp_H,
        inp_W,
        inp_sD,
        inp_sH,
        inp_sW,
        align_corners);
  }
};

template <typename Pad>
struct Nearest3D {
  template <typename T, typename idx_t>
  static T interpolate(
      constant T* input,
      opmath_t<T> ix,
      opmath_t<T> iy,
      opmath_t<T> iz,
      int32_t inp_D,
      int32_t inp_H,
      int32_t inp_W,
      idx_t inp_sD,
      idx_t inp_sH,
      idx_t inp_sW,
      bool align_corners) {
    return interpolate_nearest_3d<Pad>(
        input,
        ix,
        iy,
        iz,
        inp_D,
        inp_H,
        inp_W,
        inp_sD,
        inp_sH,
        inp_sW,
        align_corners);
  }
};

// 3D forward: a thread computes one element of the output.
template <typename Interp, typename T, typename idx_t>
kernel void grid_sampler_3d(
    device T* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant T* grid [[buffer(2)]],
    constant GridSamplerParams<5, idx_t>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  int32_t index[5]; // of the element: n, c, d, h, w
  idx_t rest = tid;
  for (int32_t dim = 4; dim > 0; --dim) {
    index[dim] = rest % params.output_sizes[dim];
    rest /= params.output_sizes[dim];
  }
  index[0] = rest;

  constant T* place = grid + index[0] * params.grid_strides[0];
  device T* result = output + index[0] * params.output_strides[0] +
      index[1] * params.output_strides[1];
  for (int32_t dim = 2; dim < 5; ++dim) {
    place += index[dim] * params.grid_strides[dim - 1];
    result += index[dim] * params.output_strides[dim];
  }
  const auto step = params.grid_strides[4];
  *result = Interp::template interpolate<T>(
      input + index[0] * params.input_strides[0] +
          index[1] * params.input_strides[1],
      static_cast<opmath_t<T>>(place[0]),
      static_cast<opmath_t<T>>(place[step]),
      static_cast<opmath_t<T>>(place[2 * step]),
      params.input_sizes[2],
      params.input_sizes[3],
      params.input_sizes[4],
      params.input_strides[2],
      params.input_strides[3],
      params.input_strides[4],
      params.align_corners);
}

// The coordinate transforms once more for the backward kernels: x is what they
// return, y its derivative with respect to the argument.
static float2 grid_sampler_unnormalize_set_grad(
    float coord,
    int32_t size,
    bool align_corners) {
  const int32_t span = align_corners ? size - 1 : size;
  return {
      grid_sampler_unnormalize(coord, size, align_corners),
      static_cast<float>(span) / 2};
}

static float2 clip_coordinates_set_grad(float in, float max_val) {
  const auto clipped = clip_coordinates(in, max_val);
  const bool is_between = in > 0.0f && in < max_val;
  return {clipped, is_between ? 1.0f : 0.0f};
}

static float2 reflect_coordinates_set_grad(float in, float low, float high) {
  const float span = high - low;
  if (span == 0) {
    return {0.0f, 0.0f};
  }
  const float distance = fabs(in - low);
  const auto crossings = static_cast<int>(floor(distance / span));
  const float direction = in < low ? -1.0f : 1.0f;
  const float rest = fmod(distance, span);
  return crossings % 2 == 0 ? float2(low + rest, direction)
                            : float2(low + (span - rest), -direction);
}

// From a grid coordinate to a position in the padded input.
template <typename Pad>
static float2 compute_source_index_set_grad(
    float coord,
    int32_t size,
    bool align_corners);

template <>
float2 compute_source_index_set_grad<PadZeros>(
    float coord,
    int32_t size,
    bool align_corners) {
  return grid_sampler_unnormalize_set_grad(coord, size, align_corners);
}

template <>
float2 compute_source_index_set_grad<PadBorder>(
    float coord,
    int32_t size,
    bool align_corners) {
  const auto pixel =
      grid_sampler_unnormalize_set_grad(coord, size, align_corners);
  const auto clipped = clip_coordinates_set_grad(pixel.x, size - 1.0f);
  return {clipped.x, clipped.y * pixel.y};
}

template <>
float2 compute_source_index_set_grad<PadReflection>(
    float coord,
    int32_t size,
    bool align_corners) {
  const float last = size - 1.0f;
  const auto pixel =
      grid_sampler_unnormalize_set_grad(coord, size, align_corners);
  const auto mirrored = align_corners
      ? reflect_coordinates_set_grad(pixel.x, 0.0f, last)
      : reflect_coordinates_set_grad(pixel.x, -0.5f, last + 0.5f);
  const auto clipped = clip_coordinates_set_grad(mirrored.x, last);
  return {clipped.x, clipped.y * mirrored.y * pixel.y};
}

// For kernels that are told their padding at run time.
static float2 compute_source_index_set_grad(
    float coord,
    int32_t size,
    bool align_corners,
    GridSamplerPadding padding_mode) {
  if (padding_mode == GridSamplerPadding::Border) {
    return compute_source_index_set_grad<PadBorder>(coord, size, align_corners);
  }
  if (padding_mode == GridSamplerPadding::Reflection) {
    return compute_source_index_set_grad<PadReflection>(
        coord, size, align_corners);
  }
  return compute_source_index_set_grad<PadZeros>(coord, size, align_corners);
}

static float compute_source(
    float coord,
    int32_t size,
    bool align_corners,
    GridSamplerPadding padding_mode) {
  if (padding_mode == GridSamplerPadding::Border) {
    return PadBorder::compute_source(coord, size, align_corners);
  }
  if (padding_mode == GridSamplerPadding::Reflection) {
    return PadReflection::compute_source(coord, size, align_corners);
  }
  return PadZeros::compute_source(coord, size, align_corners);
}

// T is a vector of as many axes as are looked at.
template <typename T>
static bool within_bounds(T pos, T size) {
  return all(pos >= 0) && all(pos < size);
}

// 3D backward: both gradients, a thread for each sampling position.
template <typename T, typename idx_t>
kernel void grid_sampler_3d_backward(
    constant T* grad_output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant T* grid [[buffer(2)]],
    device AtomicType_t<T>* grad_input [[buffer(3)]],
    device T* grad_grid [[buffer(4)]],
    constant GridSamplerBackwardParams<5, idx_t>& params [[buffer(5)]],
    uint3 thread_index [[thread_position_in_grid]]) {
  const int32_t rows = params.forward.output_sizes[3];
  const int32_t w = thread_index.x;
  const int32_t h = thread_index.y % rows;
  const int32_t d = thread_index.y / rows;
  const int32_t n = thread_index.z;
  if (n >= params.forward.input_sizes[0] ||
      d >= params.forward.output_sizes[2] || h >= rows ||
      w >= params.forward.output_sizes[4]) {
    return;
  }
  const bool align_corners = params.forward.align_corners;
  const auto padding_mode = params.padding_mode;
  const int3 size = {
      static_cast<int32_t>(params.forward.input_sizes[4]),
      static_cast<int32_t>(params.forward.input_sizes[3]),
      static_cast<int32_t>(params.forward.input_sizes[2])};
  const vec<idx_t, 3> input_stride = {
      params.forward.input_strides[4],
      params.forward.input_strides[3],
      params.forward.input_strides[2]};
  const vec<idx_t, 3> grad_input_stride = {
      params.grad_input_strides[4],
      params.grad_input_strides[3],
      params.grad_input_strides[2]};

  const auto step = params.forward.grid_strides[4];
  constant T* place = grid + n * params.forward.grid_strides[0] +
      d * params.forward.grid_strides[1] + h * params.forward.grid_strides[2] +
      w * params.forward.grid_strides[3];
  const float coord[3] = {
      static_cast<float>(place[0]),
      static_cast<float>(place[step]),
      static_cast<float>(place[2 * step])};

  constant T* grad = grad_output + n * params.grad_output_strides[0] +
      d * params.grad_output_strides[2] + h * params.grad_output_strides[3] +
      w * params.grad_output_strides[4];
  constant T* volume = input + n * params.forward.input_strides[0];
  idx_t sums = n * params.grad_input_strides[0];

  if (params.interpolation_mode == GridSamplerInterpolation::Nearest) {
    if (!params.compute_grad_input) {
      return;
    }
    int3 pixel;
    for (int32_t axis = 0; axis < 3; ++axis) {
      pixel[axis] = static_cast<int32_t>(rint(compute_source(
          coord[axis], size[axis], align_corners, padding_mode)));
    }
    if (!within_bounds(pixel, size)) {
      return;
    }
    sums += pixel.x * grad_input_stride.x + pixel.y * grad_input_stride.y +
        pixel.z * grad_input_stride.z;
    for (int32_t c = 0; c < params.forward.input_sizes[1]; ++c) {
      AtomicType<T>::atomic_add(grad_input, sums, *grad);
      sums += params.grad_input_strides[1];
      grad += params.grad_output_strides[1];
    }
    return;
  }

  int3 first;
  float derivative[3];
  float share[3][2];
  for (int32_t axis = 0; axis < 3; ++axis) {
    const auto source = compute_source_index_set_grad(
        coord[axis], size[axis], align_corners, padding_mode);
    first[axis] = static_cast<int32_t>(floor(source.x));
    derivative[axis] = source.y;
    share[axis][1] = source.x - first[axis];
    share[axis][0] = 1 - share[axis][1];
  }

  float slope[3] = {0, 0, 0};
  for (int32_t c = 0; c < params.forward.input_sizes[1]; ++c) {
    const auto g = static_cast<float>(*grad);
    for (int32_t corner = 0; corner < 8; ++corner) {
      const int3 side = {corner & 1, (corner >> 1) & 1, corner >> 2};
      const int3 pixel = first + side;
      if (!within_bounds(pixel, size)) {
        continue;
      }
      const float sx = share[0][side.x];
      const float sy = share[1][side.y];
      const float sz = share[2][side.z];
      if (params.compute_grad_input) {
        const auto offset = pixel.x * grad_input_stride.x +
            pixel.y * grad_input_stride.y + pixel.z * grad_input_stride.z;
        AtomicType<T>::atomic_add(
            grad_input, sums + offset, static_cast<T>(sx * sy * sz * g));
      }
      if (params.compute_grad_grid) {
        const auto value =
            g *
            static_cast<float>(
                volume
                    [pixel.x * input_stride.x + pixel.y * input_stride.y +
                     pixel.z * input_stride.z]);
        slope[0] += (side.x == 0 ? -value : value) * sy * sz;
        slope[1] += (side.y == 0 ? -value : value) * sx * sz;
        slope[2] += (side.z == 0 ? -value : value) * sx * sy;
      }
    }
    sums += params.grad_input_strides[1];
    grad += params.grad_output_strides[1];
    volume += params.forward.input_strides[1];
  }

  if (params.compute_grad_grid) {
    device T* result = grad_grid + n * params.grad_grid_strides[0] +
        d * params.grad_grid_strides[1] + h * params.grad_grid_strides[2] +
        w * params.grad_grid_strides[3];
    for (int32_t axis = 0; axis < 3; ++axis) {
      result[axis * params.grad_grid_strides[4]] =
          static_cast<T>(derivative[axis] * slope[axis]);
    }
  }
}

#define REGISTER_GRID_SAMPLER_2D(                                           \
    T, INTERP, interp, PAD, padding, INDEX, index)                          \
  template [[host_name(                                                     \
      "grid_sampler_2d_" interp "_" padding "_" index "_" #T)]] kernel void \
  grid_sampler_2d<INTERP<PAD>, T, INDEX>(                                   \
      device T * output [[buffer(0)]],                                      \
      constant T * input [[buffer(1)]],                                     \
      constant T * grid [[buffer(2)]],                                      \
      constant GridSamplerParams<4, INDEX> & params [[buffer(3)]],          \
      uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_2D_INTERP_IDX(T, INTERP, interp, INDEX, index)   \
  REGISTER_GRID_SAMPLER_2D(T, INTERP, interp, PadZeros, "zeros", INDEX, index) \
  REGISTER_GRID_SAMPLER_2D(                                                    \
      T, INTERP, interp, PadBorder, "border", INDEX, index)                    \
  REGISTER_GRID_SAMPLER_2D(                                                    \
      T, INTERP, interp, PadReflection, "reflection", INDEX, index)

#define REGISTER_GRID_SAMPLER_2D_INTERP(T, INTERP, interp)           \
  REGISTER_GRID_SAMPLER_2D_INTERP_IDX(T, INTERP, interp, int, "i32") \
  REGISTER_GRID_SAMPLER_2D_INTERP_IDX(T, INTERP, interp, long, "i64")

#define REGISTER_GRID_SAMPLER_3D(                                           \
    T, INTERP, interp, PAD, padding, INDEX, index)                          \
  template [[host_name(                                                     \
      "grid_sampler_3d_" interp "_" padding "_" index "_" #T)]] kernel void \
  grid_sampler_3d<INTERP<PAD>, T, INDEX>(                                   \
      device T * output [[buffer(0)]],                                      \
      constant T * input [[buffer(1)]],                                     \
      constant T * grid [[buffer(2)]],                                      \
      constant GridSamplerParams<5, INDEX> & params [[buffer(3)]],          \
      uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_3D_INTERP_IDX(T, INTERP, interp, INDEX, index)   \
  REGISTER_GRID_SAMPLER_3D(T, INTERP, interp, PadZeros, "zeros", INDEX, index) \
  REGISTER_GRID_SAMPLER_3D(                                                    \
      T, INTERP, interp, PadBorder, "border", INDEX, index)                    \
  REGISTER_GRID_SAMPLER_3D(                                                    \
      T, INTERP, interp, PadReflection, "reflection", INDEX, index)

#define REGISTER_GRID_SAMPLER_3D_INTERP(T, INTERP, interp)           \
  REGISTER_GRID_SAMPLER_3D_INTERP_IDX(T, INTERP, interp, int, "i32") \
  REGISTER_GRID_SAMPLER_3D_INTERP_IDX(T, INTERP, interp, long, "i64")

#define REGISTER_GRID_SAMPLER_BACKWARD_IDX(T, INDEX, index)                \
  template [[host_name("grid_sampler_3d_backward_" index "_" #T)]]         \
  kernel void grid_sampler_3d_backward<T, INDEX>(                          \
      constant T * grad_output [[buffer(0)]],                              \
      constant T * input [[buffer(1)]],                                    \
      constant T * grid [[buffer(2)]],                                     \
      device AtomicType_t<T> * grad_input [[buffer(3)]],                   \
      device T * grad_grid [[buffer(4)]],                                  \
      constant GridSamplerBackwardParams<5, INDEX> & params [[buffer(5)]], \
      uint3 thread_index [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_BACKWARD(T)           \
  REGISTER_GRID_SAMPLER_BACKWARD_IDX(T, int, "i32") \
  REGISTER_GRID_SAMPLER_BACKWARD_IDX(T, long, "i64")

#define REGISTER_GRID_SAMPLER_OPS(T)                         \
  REGISTER_GRID_SAMPLER_2D_INTERP(T, Bilinear2D, "bilinear") \
  REGISTER_GRID_SAMPLER_2D_INTERP(T, Nearest2D, "nearest")   \
  REGISTER_GRID_SAMPLER_2D_INTERP(T, Bicubic2D, "bicubic")   \
  REGISTER_GRID_SAMPLER_3D_INTERP(T, Bilinear3D, "bilinear") \
  REGISTER_GRID_SAMPLER_3D_INTERP(T, Nearest3D, "nearest")   \
  REGISTER_GRID_SAMPLER_BACKWARD(T)

REGISTER_GRID_SAMPLER_OPS(float);
REGISTER_GRID_SAMPLER_OPS(half);
REGISTER_GRID_SAMPLER_OPS(bfloat);

// The backward of 2D: a kernel for each of the two gradients.

// Adds to one pixel of a channel, unless there is no such pixel.
template <typename T, typename idx_t>
static void safe_add_2d_atomic(
    device AtomicType_t<T>* data,
    int2 pos,
    vec<idx_t, 2> stride,
    int2 size,
    opmath_t<T> delta,
    long NC_offset) {
  if (!within_bounds(pos, size)) {
    return;
  }
  const long offset = NC_offset + pos.x * stride.x + pos.y * stride.y;
  AtomicType<T>::atomic_add(data, offset, static_cast<T>(delta));
}

// The pixel that a bicubic tap stands for.
template <typename Pad>
static int2 apply_padding_2d(float x, float y, int2 size, bool align_corners) {
  const auto column = Pad::apply_padding(x, size.x, align_corners);
  const auto row = Pad::apply_padding(y, size.y, align_corners);
  return {static_cast<int32_t>(column), static_cast<int32_t>(row)};
}

template <typename Pad, typename T, typename idx_t>
static opmath_t<T> get_value_bounded_backward(
    constant T* data,
    float x,
    float y,
    int2 size,
    vec<idx_t, 2> stride,
    bool align_corners) {
  const auto pixel = apply_padding_2d<Pad>(x, y, size, align_corners);
  return within_bounds(pixel, size)
      ? static_cast<opmath_t<T>>(data[pixel.x * stride.x + pixel.y * stride.y])
      : opmath_t<T>(0);
}

template <typename Pad, typename T, typename idx_t>
static void add_value_bounded_backward(
    device AtomicType_t<T>* data,
    float x,
    float y,
    int2 size,
    vec<idx_t, 2> stride,
    opmath_t<T> delta,
    bool align_corners,
    long NC_offset) {
  const auto pixel = apply_padding_2d<Pad>(x, y, size, align_corners);
  safe_add_2d_atomic<T>(data, pixel, stride, size, delta, NC_offset);
}

// Derivatives of the four weights of a cubic convolution, A = -0.75, at
// distance t from the second tap.
template <typename T>
static void get_cubic_coefficients_grad(T coeffs[4], T t) {
  const T A = static_cast<T>(-0.75);
  const T u = 1 - t;
  coeffs[0] = A * u * (1 - 3 * t);
  coeffs[1] = (3 * (A + 2) * t - 2 * (A + 3)) * t;
  coeffs[2] = (2 * (A + 3) - 3 * (A + 2) * u) * u;
  coeffs[3] = A * t * (2 - 3 * t);
}

// What every 2D backward kernel starts with: a thread's sampling position.
template <typename T, typename idx_t>
struct BackwardPreamble {
  int32_t n, h, w;
  float x, y;

  BackwardPreamble(
      constant T* grid,
      constant GridSamplerBackwardParams<4, idx_t>& params,
      uint tid) {
    const auto columns = params.forward.output_sizes[3];
    const auto rows = params.forward.output_sizes[2];
    n = tid / (columns * rows);
    h = tid / columns % rows;
    w = tid % columns;
    constant T* place = grid + n * params.forward.grid_strides[0] +
        h * params.forward.grid_strides[1] + w * params.forward.grid_strides[2];
    x = static_cast<float>(place[0]);
    y = static_cast<float>(place[params.forward.grid_strides[3]]);
  }
};

template <typename T, typename idx_t>
kernel void grid_sampler_2d_backward_bilinear_input(
    device AtomicType_t<T>* grad_input [[buffer(0)]],
    constant T* grad_output [[buffer(1)]],
    constant T* grid [[buffer(2)]],
    constant GridSamplerBackwardParams<4, idx_t>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  const BackwardPreamble<T, idx_t> p(grid, params, tid);
  const int2 size = {
      static_cast<int32_t>(params.forward.input_sizes[3]),
      static_cast<int32_t>(params.forward.input_sizes[2])};
  const vec<idx_t, 2> stride = {
      params.grad_input_strides[3], params.grad_input_strides[2]};
  const float ix = compute_source(
      p.x, size.x, params.forward.align_corners, params.padding_mode);
  const float iy = compute_source(
      p.y, size.y, params.forward.align_corners, params.padding_mode);
  const auto left = static_cast<int32_t>(floor(ix));
  const auto top = static_cast<int32_t>(floor(iy));
  const float columns[2] = {left + 1 - ix, ix - left};
  const float rows[2] = {top + 1 - iy, iy - top};

  constant T* grad = grad_output + p.n * params.grad_output_strides[0] +
      p.h * params.grad_output_strides[2] + p.w * params.grad_output_strides[3];
  long sums = p.n * params.grad_input_strides[0];
  for (int32_t c = 0; c < params.forward.input_sizes[1]; ++c) {
    const auto g = static_cast<opmath_t<T>>(*grad);
    for (int32_t corner = 0; corner < 4; ++corner) {
      const int2 side = {corner & 1, corner >> 1};
      safe_add_2d_atomic<T>(
          grad_input,
          int2(left, top) + side,
          stride,
          size,
          columns[side.x] * rows[side.y] * g,
          sums);
    }
    sums += params.grad_input_strides[1];
    grad += params.grad_output_strides[1];
  }
}

template <typename T, typename idx_t>
kernel void grid_sampler_2d_backward_bilinear_grid(
    device T* grad_grid [[buffer(0)]],
    constant T* grad_output [[buffer(1)]],
    constant T* input [[buffer(2)]],
    constant T* grid [[buffer(3)]],
    constant GridSamplerBackwardParams<4, idx_t>& params [[buffer(4)]],
    uint tid [[thread_position_in_grid]]) {
  const BackwardPreamble<T, idx_t> p(grid, params, tid);
  const int2 size = {
      static_cast<int32_t>(params.forward.input_sizes[3]),
      static_cast<int32_t>(params.forward.input_sizes[2])};
  const vec<idx_t, 2> stride = {
      params.forward.input_strides[3], params.forward.input_strides[2]};
  const float2 ix = compute_source_index_set_grad(
      p.x, size.x, params.forward.align_corners, params.padding_mode);
  const float2 iy = compute_source_index_set_grad(
      p.y, size.y, params.forward.align_corners, params.padding_mode);
  const auto left = static_cast<int32_t>(floor(ix.x));
  const auto top = static_cast<int32_t>(floor(iy.x));
  const float columns[2] = {left + 1 - ix.x, ix.x - left};
  const float rows[2] = {top + 1 - iy.x, iy.x - top};

  constant T* grad = grad_output + p.n * params.grad_output_strides[0] +
      p.h * params.grad_output_strides[2] + p.w * params.grad_output_strides[3];
  constant T* image = input + p.n * params.forward.input_strides[0];
  opmath_t<T> slope_x = 0;
  opmath_t<T> slope_y = 0;
  for (int32_t c = 0; c < params.forward.input_sizes[1]; ++c) {
    const auto g = static_cast<opmath_t<T>>(*grad);
    for (int32_t corner = 0; corner < 4; ++corner) {
      const int2 side = {corner & 1, corner >> 1};
      const int2 pixel = int2(left, top) + side;
      if (!within_bounds(pixel, size)) {
        continue;
      }
      const auto value = static_cast<opmath_t<T>>(
                             image[pixel.x * stride.x + pixel.y * stride.y]) *
          g;
      slope_x += (side.x == 0 ? -value : value) * rows[side.y];
      slope_y += (side.y == 0 ? -value : value) * columns[side.x];
    }
    image += params.forward.input_strides[1];
    grad += params.grad_output_strides[1];
  }
  device T* result = grad_grid + tid * params.grad_grid_strides[2];
  result[0] = static_cast<T>(slope_x * ix.y);
  result[1] = static_cast<T>(slope_y * iy.y);
}

template <typename T, typename idx_t>
kernel void grid_sampler_2d_backward_nearest_input(
    device AtomicType_t<T>* grad_input [[buffer(0)]],
    constant T* grad_output [[buffer(1)]],
    constant T* grid [[buffer(2)]],
    constant GridSamplerBackwardParams<4, idx_t>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  const BackwardPreamble<T, idx_t> p(grid, params, tid);
  const int2 size = {
      static_cast<int32_t>(params.forward.input_sizes[3]),
      static_cast<int32_t>(params.forward.input_sizes[2])};
  const vec<idx_t, 2> stride = {
      params.grad_input_strides[3], params.grad_input_strides[2]};
  const float ix = compute_source(
      p.x, size.x, params.forward.align_corners, params.padding_mode);
  const float iy = compute_source(
      p.y, size.y, params.forward.align_corners, params.padding_mode);
  const int2 pixel = {
      static_cast<int32_t>(rint(ix)), static_cast<int32_t>(rint(iy))};

  constant T* grad = grad_output + p.n * params.grad_output_strides[0] +
      p.h * params.grad_output_strides[2] + p.w * params.grad_output_strides[3];
  long sums = p.n * params.grad_input_strides[0];
  for (int32_t c = 0; c < params.forward.input_sizes[1]; ++c) {
    const auto g = static_cast<opmath_t<T>>(*grad);
    safe_add_2d_atomic<T>(grad_input, pixel, stride, size, g, sums);
    sums += params.grad_input_strides[1];
    grad += params.grad_output_strides[1];
  }
}

template <typename Pad, typename T, typename idx_t>
kernel void grid_sampler_2d_backward_bicubic_input(
    device AtomicType_t<T>* grad_input [[buffer(0)]],
    constant T* grad_output [[buffer(1)]],
    constant T* grid [[buffer(2)]],
    constant GridSamplerBackwardParams<4, idx_t>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  const BackwardPreamble<T, idx_t> p(grid, params, tid);
  const bool align_corners = params.forward.align_corners;
  const int2 size = {
      static_cast<int32_t>(params.forward.input_sizes[3]),
      static_cast<int32_t>(params.forward.input_sizes[2])};
  const vec<idx_t, 2> stride = {
      params.grad_input_strides[3], params.grad_input_strides[2]};
  const float ix = grid_sampler_unnormalize(p.x, size.x, align_corners);
  const float iy = grid_sampler_unnormalize(p.y, size.y, align_corners);
  const auto first_x = static_cast<int32_t>(floor(ix)) - 1;
  const auto first_y = static_cast<int32_t>(floor(iy)) - 1;
  float columns[4];
  float rows[4];
  get_cubic_coefficients(columns, ix - floor(ix));
  get_cubic_coefficients(rows, iy - floor(iy));

  constant T* grad = grad_output + p.n * params.grad_output_strides[0] +
      p.h * params.grad_output_strides[2] + p.w * params.grad_output_strides[3];
  long sums = p.n * params.grad_input_strides[0];
  for (int32_t c = 0; c < params.forward.input_sizes[1]; ++c) {
    const auto g = static_cast<opmath_t<T>>(*grad);
    for (int32_t tap = 0; tap < 16; ++tap) {
      const int32_t column = tap & 3;
      const int32_t row = tap >> 2;
      add_value_bounded_backward<Pad, T>(
          grad_input,
          first_x + column,
          first_y + row,
          size,
          stride,
          columns[column] * rows[row] * g,
          align_corners,
          sums);
    }
    sums += params.grad_input_strides[1];
    grad += params.grad_output_strides[1];
  }
}

template <typename Pad, typename T, typename idx_t>
kernel void grid_sampler_2d_backward_bicubic_grid(
    device T* grad_grid [[buffer(0)]],
    constant T* grad_output [[buffer(1)]],
    constant T* input [[buffer(2)]],
    constant T* grid [[buffer(3)]],
    constant GridSamplerBackwardParams<4, idx_t>& params [[buffer(4)]],
    uint tid [[thread_position_in_grid]]) {
  const BackwardPreamble<T, idx_t> p(grid, params, tid);
  const bool align_corners = params.forward.align_corners;
  const int2 size = {
      static_cast<int32_t>(params.forward.input_sizes[3]),
      static_cast<int32_t>(params.forward.input_sizes[2])};
  const vec<idx_t, 2> stride = {
      params.forward.input_strides[3], params.forward.input_strides[2]};
  const auto ix = grid_sampler_unnormalize_set_grad(p.x, size.x, align_corners);
  const auto iy = grid_sampler_unnormalize_set_grad(p.y, size.y, align_corners);
  const auto first_x = static_cast<int32_t>(floor(ix.x)) - 1;
  const auto first_y = static_cast<int32_t>(floor(iy.x)) - 1;
  const float tx = ix.x - floor(ix.x);
  const float ty = iy.x - floor(iy.x);
  float columns[4];
  float rows[4];
  float column_slopes[4];
  float row_slopes[4];
  get_cubic_coefficients(columns, tx);
  get_cubic_coefficients(rows, ty);
  get_cubic_coefficients_grad(column_slopes, tx);
  get_cubic_coefficients_grad(row_slopes, ty);

  constant T* grad = grad_output + p.n * params.grad_output_strides[0] +
      p.h * params.grad_output_strides[2] + p.w * params.grad_output_strides[3];
  constant T* image = input + p.n * params.forward.input_strides[0];
  opmath_t<T> slope_x = 0;
  opmath_t<T> slope_y = 0;
  for (int32_t c = 0; c < params.forward.input_sizes[1]; ++c) {
    const auto g = static_cast<opmath_t<T>>(*grad);
    for (int32_t tap = 0; tap < 16; ++tap) {
      const int32_t column = tap & 3;
      const int32_t row = tap >> 2;
      const auto value = get_value_bounded_backward<Pad, T>(
                             image,
                             first_x + column,
                             first_y + row,
                             size,
                             stride,
                             align_corners) *
          g;
      slope_x += value * column_slopes[column] * rows[row];
      slope_y += value * columns[column] * row_slopes[row];
    }
    image += params.forward.input_strides[1];
    grad += params.grad_output_strides[1];
  }
  device T* result = grad_grid + tid * params.grad_grid_strides[2];
  result[0] = static_cast<T>(slope_x * ix.y);
  result[1] = static_cast<T>(slope_y * iy.y);
}

// The padding of the bilinear and nearest kernels is an argument; the bicubic
// ones need it for each of their taps and have it as a template parameter.
#define REGISTER_GRID_SAMPLER_2D_BACKWARD_IDX(T, INTERP, INDEX, index)     \
  template [[host_name(                                                    \
      "grid_sampler_2d_backward_" #INTERP "_input_" index                  \
      "_" #T)]] kernel void                                                \
  grid_sampler_2d_backward_##INTERP##_input<T, INDEX>(                     \
      device AtomicType_t<T> * grad_input [[buffer(0)]],                   \
      constant T * grad_output [[buffer(1)]],                              \
      constant T * grid [[buffer(2)]],                                     \
      constant GridSamplerBackwardParams<4, INDEX> & params [[buffer(3)]], \
      uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_2D_BACKWARD(T, INTERP)           \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_IDX(T, INTERP, int, "i32") \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_IDX(T, INTERP, long, "i64")

#define REGISTER_GRID_SAMPLER_2D_BACKWARD_BICUBIC_IDX(                     \
    T, PAD, padding, INDEX, index)                                         \
  template [[host_name(                                                    \
      "grid_sampler_2d_backward_bicubic_input_" padding "_" index          \
      "_" #T)]] kernel void                                                \
  grid_sampler_2d_backward_bicubic_input<PAD, T, INDEX>(                   \
      device AtomicType_t<T> * grad_input [[buffer(0)]],                   \
      constant T * grad_output [[buffer(1)]],                              \
      constant T * grid [[buffer(2)]],                                     \
      constant GridSamplerBackwardParams<4, INDEX> & params [[buffer(3)]], \
      uint tid [[thread_position_in_grid]]);                               \
  template [[host_name(                                                    \
      "grid_sampler_2d_backward_bicubic_grid_" padding "_" index           \
      "_" #T)]] kernel void                                                \
  grid_sampler_2d_backward_bicubic_grid<PAD, T, INDEX>(                    \
      device T * grad_grid [[buffer(0)]],                                  \
      constant T * grad_output [[buffer(1)]],                              \
      constant T * input [[buffer(2)]],                                    \
      constant T * grid [[buffer(3)]],                                     \
      constant GridSamplerBackwardParams<4, INDEX> & params [[buffer(4)]], \
      uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_2D_BACKWARD_BICUBIC(T, PAD, padding)           \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_BICUBIC_IDX(T, PAD, padding, int, "i32") \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_BICUBIC_IDX(T, PAD, padding, long, "i64")

#define REGISTER_GRID_SAMPLER_2D_BACKWARD_BILINEAR_GRID_IDX(T, INDEX, index)   \
  template                                                                     \
      [[host_name("grid_sampler_2d_backward_bilinear_grid_" index "_" #T)]]    \
      kernel void grid_sampler_2d_backward_bilinear_grid<T, INDEX>(            \
          device T * grad_grid [[buffer(0)]],                                  \
          constant T * grad_output [[buffer(1)]],                              \
          constant T * input [[buffer(2)]],                                    \
          constant T * grid [[buffer(3)]],                                     \
          constant GridSamplerBackwardParams<4, INDEX> & params [[buffer(4)]], \
          uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(T)                      \
  REGISTER_GRID_SAMPLER_2D_BACKWARD(T, bilinear)                      \
  REGISTER_GRID_SAMPLER_2D_BACKWARD(T, nearest)                       \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_BILINEAR_GRID_IDX(T, int, "i32")  \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_BILINEAR_GRID_IDX(T, long, "i64") \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_BICUBIC(T, PadZeros, "zeros")     \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_BICUBIC(T, PadBorder, "border")   \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_BICUBIC(T, PadReflection, "reflection")

REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(float);
REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(half);
REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(bfloat);
