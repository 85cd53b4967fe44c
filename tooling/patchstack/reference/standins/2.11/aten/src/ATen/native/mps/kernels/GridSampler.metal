#include <ATen/native/mps/kernels/GridSampler.h>
#include <c10/metal/utils.h>
#include <metal_array>
#include <metal_stdlib>

using namespace metal;
using namespace c10::metal;

// Index of a tap that lies in zero padding.
constant int32_t IDX_ZERO = -1;

// Maps a grid coordinate in [-1, 1] to a position in pixels.
static float grid_sampler_unnormalize(
    float coord,
    int32_t size,
    bool align_corners) {
  const float shifted = coord + 1;
  return align_corners ? shifted / 2 * (size - 1) : (shifted * size - 1) / 2;
}

static float clip_coordinates(float coord, int32_t size) {
  return ::metal::clamp(coord, 0.0f, static_cast<float>(size - 1));
}

// Mirrors a position at low and low + span until it lies between them.
static float reflect_coordinates(float coord, float low, float span) {
  if (span == 0) {
    return 0;
  }
  const auto folded = ::metal::fmod(fabs(coord - low), 2 * span);
  return low + (folded < span ? folded : 2 * span - folded);
}

// Converts only what the bounds tests below can still tell apart.
static int32_t to_index(float position) {
  return static_cast<int32_t>(::metal::clamp(position, -1e9f, 1e9f));
}

// Paddings. `compute_source` pads a position before its taps are chosen, `pad`
// one tap; the result of `pad` is IDX_ZERO where there is no pixel to read.
struct PadZeros {
  static int32_t pad(int32_t index, int32_t size, bool) {
    return index < 0 || index >= size ? IDX_ZERO : index;
  }

  static float compute_source(float coord, int32_t size, bool align_corners) {
    return grid_sampler_unnormalize(coord, size, align_corners);
  }
};

struct PadBorder {
  static int32_t pad(int32_t index, int32_t size, bool) {
    return ::metal::clamp(index, 0, size - 1);
  }

  static float compute_source(float coord, int32_t size, bool align_corners) {
    return clip_coordinates(
        grid_sampler_unnormalize(coord, size, align_corners), size);
  }
};

struct PadReflection {
  static int32_t pad(int32_t index, int32_t size, bool align_corners) {
    return to_index(reflect(static_cast<float>(index), size, align_corners));
  }

  static float compute_source(float coord, int32_t size, bool align_corners) {
    return reflect(
        grid_sampler_unnormalize(coord, size, align_corners),
        size,
        align_corners);
  }

 private:
  static float reflect(float position, int32_t size, bool align_corners) {
    const auto mirrored = align_corners
        ? reflect_coordinates(position, 0.0f, size - 1.0f)
        : reflect_coordinates(position, -0.5f, size);
    return clip_coordinates(mirrored, size);
  }
};

// One channel of one sample of the input.
template <typename T>
struct Plane2D {
  constant T* data;
  int32_t height;
  int32_t width;
  int32_t row_stride;
  int32_t column_stride;
  bool align_corners;

  template <typename Pad>
  opmath_t<T> at(int32_t y, int32_t x) const thread {
    const auto row = Pad::pad(y, height, align_corners);
    const auto column = Pad::pad(x, width, align_corners);
    if (row == IDX_ZERO || column == IDX_ZERO) {
      return 0;
    }
    return static_cast<opmath_t<T>>(
        data[row * row_stride + column * column_stride]);
  }
};

template <typename Pad>
struct Bilinear2D {
  template <typename T>
  static T interpolate(const thread Plane2D<T>& plane, float x, float y) {
    x = Pad::compute_source(x, plane.width, plane.align_corners);
    y = Pad::compute_source(y, plane.height, plane.align_corners);
    const auto left = floor(x);
    const auto top = floor(y);
    const auto right_share = x - left;
    const auto bottom_share = y - top;
    const auto column = to_index(left);
    const auto row = to_index(top);
    const auto upper = plane.template at<Pad>(row, column) * (1 - right_share) +
        plane.template at<Pad>(row, column + 1) * right_share;
    const auto lower =
        plane.template at<Pad>(row + 1, column) * (1 - right_share) +
        plane.template at<Pad>(row + 1, column + 1) * right_share;
    return static_cast<T>(upper * (1 - bottom_share) + lower * bottom_share);
  }
};

template <typename Pad>
struct Nearest2D {
  template <typename T>
  static T interpolate(const thread Plane2D<T>& plane, float x, float y) {
    x = Pad::compute_source(x, plane.width, plane.align_corners);
    y = Pad::compute_source(y, plane.height, plane.align_corners);
    return static_cast<T>(
        plane.template at<Pad>(to_index(rint(y)), to_index(rint(x))));
  }
};

// Value at distance t from p1 on the way to p2, by cubic convolution.
static float cubic_interp1d(float p0, float p1, float p2, float p3, float t) {
  const float a = -0.75f;
  const float u = 1 - t;
  const float w0 = a * t * u * u;
  const float w1 = ((a + 2) * t - (a + 3)) * t * t + 1;
  const float w2 = ((a + 2) * u - (a + 3)) * u * u + 1;
  const float w3 = a * u * t * t;
  return p0 * w0 + p1 * w1 + p2 * w2 + p3 * w3;
}

template <typename Pad>
struct Bicubic2D {
  template <typename T>
  static T interpolate(const thread Plane2D<T>& plane, float x, float y) {
    x = grid_sampler_unnormalize(x, plane.width, plane.align_corners);
    y = grid_sampler_unnormalize(y, plane.height, plane.align_corners);
    const auto column = to_index(floor(x));
    const auto row = to_index(floor(y));
    float rows[4];
    for (int32_t i = 0; i < 4; ++i) {
      rows[i] = cubic_interp1d(
          plane.template at<Pad>(row - 1 + i, column - 1),
          plane.template at<Pad>(row - 1 + i, column),
          plane.template at<Pad>(row - 1 + i, column + 1),
          plane.template at<Pad>(row - 1 + i, column + 2),
          x - floor(x));
    }
    return static_cast<T>(
        cubic_interp1d(rows[0], rows[1], rows[2], rows[3], y - floor(y)));
  }
};

// 2D grid sampler: one thread per output position, which walks the channels.
template <typename Interp, typename T>
kernel void grid_sampler_2d(
    device T* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant T* grid [[buffer(2)]],
    constant GridSamplerParams<4>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  const auto out_H = params.output_sizes[2];
  const auto out_W = params.output_sizes[3];
  const int32_t w = tid % out_W;
  const int32_t h = (tid / out_W) % out_H;
  const int32_t n = tid / (out_W * out_H);

  constant T* coords = grid + n * params.grid_strides[0] +
      h * params.grid_strides[1] + w * params.grid_strides[2];
  const auto x = static_cast<float>(coords[0]);
  const auto y = static_cast<float>(coords[params.grid_strides[3]]);

  device T* result = output + n * params.output_strides[0] +
      h * params.output_strides[2] + w * params.output_strides[3];
  for (int32_t c = 0; c < params.output_sizes[1]; ++c) {
    Plane2D<T> plane = {
        input + n * params.input_strides[0] + c * params.input_strides[1],
        params.input_sizes[2],
        params.input_sizes[3],
        params.input_strides[2],
        params.input_strides[3],
        params.align_corners};
    result[c * params.output_strides[1]] =
        Interp::template interpolate<T>(plane, x, y);
  }
}

// 3D bilinear grid sampler: one thread per output element.
template <typename Pad, typename T>
kernel void grid_sampler_3d(
    device T* output [[buffer(0)]],
    constant T* input [[buffer(1)]],
    constant T* grid [[buffer(2)]],
    constant GridSamplerParams<5>& params [[buffer(3)]],
    uint tid [[thread_position_in_grid]]) {
  int32_t position[5];
  auto rest = static_cast<int32_t>(tid);
  for (int32_t dim = 4; dim >= 0; --dim) {
    position[dim] = rest % params.output_sizes[dim];
    rest /= params.output_sizes[dim];
  }

  constant T* coords = grid + position[0] * params.grid_strides[0];
  constant T* volume = input + position[0] * params.input_strides[0] +
      position[1] * params.input_strides[1];
  device T* result = output + position[0] * params.output_strides[0] +
      position[1] * params.output_strides[1];
  for (int32_t dim = 2; dim < 5; ++dim) {
    coords += position[dim] * params.grid_strides[dim - 1];
    result += position[dim] * params.output_strides[dim];
  }

  // Per axis the offsets and the shares of the two neighbors. The last axis of
  // the input is the first coordinate.
  int32_t offset[3][2];
  float share[3][2];
  for (int32_t axis = 0; axis < 3; ++axis) {
    const auto size = params.input_sizes[axis + 2];
    const auto stride = params.input_strides[axis + 2];
    const auto source = Pad::compute_source(
        static_cast<float>(coords[(2 - axis) * params.grid_strides[4]]),
        size,
        params.align_corners);
    const auto lower = to_index(floor(source));
    for (int32_t side = 0; side < 2; ++side) {
      const auto index = Pad::pad(lower + side, size, params.align_corners);
      const auto far_share = source - floor(source);
      share[axis][side] = index == IDX_ZERO ? 0.0f
          : side == 0                       ? 1 - far_share
                                            : far_share;
      offset[axis][side] = index == IDX_ZERO ? 0 : index * stride;
    }
  }

  float sum = 0;
  for (int32_t corner = 0; corner < 8; ++corner) {
    const auto i = corner >> 2;
    const auto j = (corner >> 1) & 1;
    const auto k = corner & 1;
    sum += share[0][i] * share[1][j] * share[2][k] *
        static_cast<float>(volume[offset[0][i] + offset[1][j] + offset[2][k]]);
  }
  *result = static_cast<T>(sum);
}

#define REGISTER_GRID_SAMPLER_2D(interp, INTERP, padding, PAD, T)   \
  template [[host_name(                                             \
      "grid_sampler_2d_" #interp "_" #padding "_" #T)]] kernel void \
  grid_sampler_2d<INTERP<PAD>, T>(                                  \
      device T * output [[buffer(0)]],                              \
      constant T * input [[buffer(1)]],                             \
      constant T * grid [[buffer(2)]],                              \
      constant GridSamplerParams<4> & params [[buffer(3)]],         \
      uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_3D(T, PAD, padding)           \
  template [[host_name("grid_sampler_3d_" padding "_" #T)]] \
  kernel void grid_sampler_3d<PAD, T>(                      \
      device T * output [[buffer(0)]],                      \
      constant T * input [[buffer(1)]],                     \
      constant T * grid [[buffer(2)]],                      \
      constant GridSamplerParams<5> & params [[buffer(3)]], \
      uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_2D_INTERPS(T, padding, PAD)         \
  REGISTER_GRID_SAMPLER_2D(bilinear, Bilinear2D, padding, PAD, T) \
  REGISTER_GRID_SAMPLER_2D(nearest, Nearest2D, padding, PAD, T)   \
  REGISTER_GRID_SAMPLER_2D(bicubic, Bicubic2D, padding, PAD, T)

#define REGISTER_GRID_SAMPLER_OPS(T)                             \
  REGISTER_GRID_SAMPLER_2D_INTERPS(T, zeros, PadZeros)           \
  REGISTER_GRID_SAMPLER_2D_INTERPS(T, border, PadBorder)         \
  REGISTER_GRID_SAMPLER_2D_INTERPS(T, reflection, PadReflection) \
  REGISTER_GRID_SAMPLER_3D(T, PadZeros, "zeros")                 \
  REGISTER_GRID_SAMPLER_3D(T, PadBorder, "border")               \
  REGISTER_GRID_SAMPLER_3D(T, PadReflection, "reflection")

REGISTER_GRID_SAMPLER_OPS(float);
REGISTER_GRID_SAMPLER_OPS(half);
REGISTER_GRID_SAMPLER_OPS(bfloat);
