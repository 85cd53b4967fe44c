// What lands are the fragments between the marker lines; the rest is context
// that lets this file be read and compiled alone.
#include <ATen/native/mps/kernels/GridSampler.h>
// fragment: atomic_include
#include <c10/metal/atomic.h>
// end fragment
#include <c10/metal/utils.h>
#include <metal_array>
#include <metal_stdlib>

using namespace metal;
using namespace c10::metal;

// The forward kernels' helper, which the fragment below calls.
static float grid_sampler_unnormalize(
    float coord,
    int32_t size,
    bool align_corners) {
  const float shifted = coord + 1;
  return align_corners ? shifted / 2 * (size - 1) : (shifted * size - 1) / 2;
}

// fragment: backward_kernels
// Gradients of grid_sampler_2d.
//
// Every interpolation is separable: along one axis a sample reads 1, 2 or 4
// pixels, its taps, and a pixel's share in the sample is the product of one
// weight per axis. So the kernel is written once, for any number of taps, and
// an interpolation only says what the taps of one axis are.
//
// Coordinates that are not finite, or so large that un-normalizing them may not
// be, must not be converted to an integer, which is undefined:
//  - zeros and reflection take them as outside of the input: such a sample adds
//    nothing to grad_input, and its grad_grid is 0;
//  - border clips them as any other: infinities go to the nearest edge, NaN
//    goes to pixel 0, with a gradient of 0 along that axis.
// They are replaced before any arithmetic, by looking at their bits: under fast
// math neither a comparison nor min and max say anything about NaN. A float is
// converted only when it is within a few pixels of the (possibly mirrored)
// input, and the integer is checked once more against the bounds.

// Position along one axis of the input, in pixels, and its derivative with
// respect to the normalized coordinate it was made from.
struct GridPixel {
  float position;
  float derivative;
};

// The pixels that one sample reads along one axis.
template <int32_t N>
struct GridTaps {
  int32_t index[N]; // negative: padding, there is no such pixel
  float weight[N];
  float slope[N]; // derivative of weight with respect to the position
  float derivative; // of the position with respect to the grid coordinate
};

// Beyond these, coordinates and positions count as not finite: far above what
// any input spans, yet what is computed from them stays finite.
constant constexpr float GRID_COORD_LIMIT = 1e20f;
constant constexpr float GRID_POSITION_LIMIT = 1e30f;

static GridPixel grid_pixel_outside() {
  return {-GRID_POSITION_LIMIT, 0.0f};
}

static GridPixel grid_pixel_unnormalize(
    float coord,
    int32_t size,
    bool align_corners) {
  // The bits of floats without their sign are ordered as the floats are, with
  // infinity and then NaN behind all of them.
  const auto bits = as_type<uint32_t>(coord);
  if ((bits & 0x7fffffffu) > as_type<uint32_t>(GRID_COORD_LIMIT)) {
    const bool is_right = bits <= 0x7f800000u; // neither negative nor NaN
    return {is_right ? GRID_POSITION_LIMIT : -GRID_POSITION_LIMIT, 0.0f};
  }
  return {
      grid_sampler_unnormalize(coord, size, align_corners),
      (align_corners ? size - 1 : size) / 2.0f};
}

// Clips to the centers of the edge pixels. Their own gradient is 0, as in
// clip_coordinates_set_grad of ATen/native/GridSampler.h. NaN goes to pixel 0.
static GridPixel grid_pixel_clip(GridPixel pixel, int32_t size) {
  const auto last = static_cast<float>(size - 1);
  if (!(pixel.position > 0.0f)) {
    return {0.0f, 0.0f};
  }
  if (!(pixel.position < last)) {
    return {last, 0.0f};
  }
  return pixel;
}

// Index of the pixel in which `index` is found, or -1.
static int32_t grid_index_within(int32_t index, int32_t size) {
  return index >= 0 && index < size ? index : -1;
}

// Can be converted to int32_t, together with the neighbors that a sample reads.
// The host function keeps size below 2^30.
static bool grid_is_convertible(float position, int32_t size) {
  return fabs(position) < 2.0f * size + 4.0f;
}

// Paddings for the backward pass. `pad_position` moves a position into the
// input, for interpolations that pad before they choose their taps; `wrap` only
// moves it to where it can be converted, without changing which pixels it
// reads, for bicubic, which pads each tap by itself with `pad_index`.
struct GridGradZeros {
  static GridPixel pad_position(GridPixel pixel, int32_t, bool) {
    return pixel;
  }

  static GridPixel wrap(GridPixel pixel, int32_t, bool) {
    return pixel;
  }

  static int32_t pad_index(int32_t index, int32_t size, bool) {
    return grid_index_within(index, size);
  }
};

struct GridGradBorder {
  static GridPixel pad_position(GridPixel pixel, int32_t size, bool) {
    return grid_pixel_clip(pixel, size);
  }

  // Beyond these limits all four taps are the same edge pixel, so the sample
  // is constant.
  static GridPixel wrap(GridPixel pixel, int32_t size, bool) {
    const auto last = static_cast<float>(size + 2);
    if (!(pixel.position > -3.0f)) {
      return {-3.0f, 0.0f};
    }
    if (!(pixel.position < last)) {
      return {last, 0.0f};
    }
    return pixel;
  }

  static int32_t pad_index(int32_t index, int32_t size, bool) {
    return ::metal::clamp(index, 0, size - 1);
  }
};

struct GridGradReflection {
  // Mirrors lie on the centers of the edge pixels (align_corners) or on their
  // outer sides; this is the distance between them.
  static int32_t span(int32_t size, bool align_corners) {
    return align_corners ? size - 1 : size;
  }

  static GridPixel pad_position(
      GridPixel pixel,
      int32_t size,
      bool align_corners) {
    if (!(fabs(pixel.position) < GRID_POSITION_LIMIT)) {
      return grid_pixel_outside();
    }
    const auto mirror = static_cast<float>(span(size, align_corners));
    if (mirror == 0.0f) {
      return {0.0f, 0.0f};
    }
    const float low = align_corners ? 0.0f : -0.5f;
    float distance = pixel.position - low;
    float derivative = pixel.derivative;
    if (distance < 0.0f) {
      distance = -distance;
      derivative = -derivative;
    }
    distance = ::metal::fmod(distance, 2.0f * mirror);
    if (distance >= mirror) {
      distance = 2.0f * mirror - distance;
      derivative = -derivative;
    }
    return grid_pixel_clip({distance + low, derivative}, size);
  }

  // The mirror images repeat, and fmod is exact.
  static GridPixel wrap(GridPixel pixel, int32_t size, bool align_corners) {
    if (!(fabs(pixel.position) < GRID_POSITION_LIMIT)) {
      return grid_pixel_outside();
    }
    const auto mirror = static_cast<float>(span(size, align_corners));
    if (mirror == 0.0f) {
      return {0.0f, 0.0f};
    }
    return {::metal::fmod(pixel.position, 2.0f * mirror), pixel.derivative};
  }

  static int32_t pad_index(int32_t index, int32_t size, bool align_corners) {
    const auto mirror = span(size, align_corners);
    if (mirror == 0) {
      return 0;
    }
    if (index < 0) {
      index = align_corners ? -index : -1 - index;
    }
    const auto images = index / mirror;
    const auto rest = index - images * mirror;
    const auto is_reversed = (images & 1) == 1;
    index = is_reversed ? size - 1 - rest : rest;
    return grid_index_within(index, size);
  }
};

template <typename Pad>
struct GridGradNearest {
  static constant constexpr int32_t taps_count = 1;
  static constant constexpr bool is_differentiable = false;

  static GridTaps<1> taps(float coord, int32_t size, bool align_corners) {
    const auto pixel = Pad::pad_position(
        grid_pixel_unnormalize(coord, size, align_corners),
        size,
        align_corners);
    GridTaps<1> taps = {{-1}, {1.0f}, {0.0f}, 0.0f};
    const auto nearest = rint(pixel.position); // halves go to even, as on CPU
    if (grid_is_convertible(nearest, size)) {
      taps.index[0] =
          Pad::pad_index(static_cast<int32_t>(nearest), size, align_corners);
    }
    return taps;
  }
};

template <typename Pad>
struct GridGradBilinear {
  static constant constexpr int32_t taps_count = 2;
  static constant constexpr bool is_differentiable = true;

  static GridTaps<2> taps(float coord, int32_t size, bool align_corners) {
    const auto pixel = Pad::pad_position(
        grid_pixel_unnormalize(coord, size, align_corners),
        size,
        align_corners);
    GridTaps<2> taps = {
        {-1, -1}, {0.0f, 0.0f}, {-1.0f, 1.0f}, pixel.derivative};
    const auto left = floor(pixel.position);
    if (grid_is_convertible(left, size)) {
      const auto index = static_cast<int32_t>(left);
      taps.index[0] = Pad::pad_index(index, size, align_corners);
      // Padding was applied to the position: a right neighbor that is still
      // outside has weight 0.
      taps.index[1] = grid_index_within(index + 1, size);
      taps.weight[0] = (left + 1.0f) - pixel.position;
      taps.weight[1] = pixel.position - left;
    }
    return taps;
  }
};

template <typename Pad>
struct GridGradBicubic {
  static constant constexpr int32_t taps_count = 4;
  static constant constexpr bool is_differentiable = true;

  static GridTaps<4> taps(float coord, int32_t size, bool align_corners) {
    const auto pixel = Pad::wrap(
        grid_pixel_unnormalize(coord, size, align_corners),
        size,
        align_corners);
    GridTaps<4> taps = {
        {-1, -1, -1, -1},
        {0.0f, 0.0f, 0.0f, 0.0f},
        {0.0f, 0.0f, 0.0f, 0.0f},
        pixel.derivative};
    const auto second = floor(pixel.position);
    if (grid_is_convertible(second, size)) {
      const auto first = static_cast<int32_t>(second) - 1;
      for (int32_t tap = 0; tap < 4; ++tap) {
        taps.index[tap] = Pad::pad_index(first + tap, size, align_corners);
      }
      set_weights(taps, pixel.position - second);
    }
    return taps;
  }

 private:
  // Cubic convolution with A = -0.75, the polynomials of
  // get_cubic_upsample_coefficients of ATen/native/UpSample.h. `t` is the
  // distance to the second tap and `u` to the third. Those of the outer taps
  // are written in t and u as well, because 1 + t would round t.
  static void set_weights(thread GridTaps<4>& taps, float t) {
    const float u = 1.0f - t;
    taps.weight[0] = A * t * u * u;
    taps.weight[1] = inner_weight(t);
    taps.weight[2] = inner_weight(u);
    taps.weight[3] = A * u * t * t;
    taps.slope[0] = A * u * (u - 2.0f * t);
    taps.slope[1] = inner_slope(t);
    taps.slope[2] = -inner_slope(u);
    taps.slope[3] = A * t * (2.0f * u - t);
  }

  static constant constexpr float A = -0.75f;

  static float inner_weight(float distance) {
    return ((A + 2.0f) * distance - (A + 3.0f)) * distance * distance + 1.0f;
  }

  static float inner_slope(float distance) {
    return (3.0f * (A + 2.0f) * distance - 2.0f * (A + 3.0f)) * distance;
  }
};

// One thread per sampling position walks the channels. grad_input is summed in
// float whatever T is: 16-bit sums stop growing at 2048 (half) or 256 (bfloat),
// and 16-bit atomics are emulated and slow. grad_grid is contiguous.
template <typename Interp, typename T, typename idx_t>
kernel void grid_sampler_2d_backward(
    device atomic<float>* grad_input [[buffer(0)]],
    device T* grad_grid [[buffer(1)]],
    const device T* grad_output [[buffer(2)]],
    const device T* input [[buffer(3)]],
    const device T* grid [[buffer(4)]],
    constant GridSamplerBackwardParams<4, idx_t>& params [[buffer(5)]],
    uint tid [[thread_position_in_grid]]) {
  const idx_t position = params.first_position + static_cast<idx_t>(tid);
  const idx_t image_row = position / params.grad_output_sizes[3];
  const idx_t w = position - image_row * params.grad_output_sizes[3];
  const idx_t n = image_row / params.grad_output_sizes[2];
  const idx_t h = image_row - n * params.grad_output_sizes[2];

  const device T* coords = grid + n * params.grid_strides[0] +
      h * params.grid_strides[1] + w * params.grid_strides[2];
  const auto x = Interp::taps(
      static_cast<float>(coords[0]),
      static_cast<int32_t>(params.input_sizes[3]),
      params.align_corners);
  const auto y = Interp::taps(
      static_cast<float>(coords[params.grid_strides[3]]),
      static_cast<int32_t>(params.input_sizes[2]),
      params.align_corners);

  const idx_t grad_output_start = n * params.grad_output_strides[0] +
      h * params.grad_output_strides[2] + w * params.grad_output_strides[3];
  const idx_t input_start = n * params.input_strides[0];
  const idx_t grad_input_start = n * params.grad_input_strides[0];
  const bool compute_grad_input = params.compute_grad_input;
  float grad_x = 0.0f;
  float grad_y = 0.0f;

  for (idx_t c = 0; c < params.grad_output_sizes[1]; ++c) {
    const auto grad = static_cast<float>(
        grad_output[grad_output_start + c * params.grad_output_strides[1]]);
    const idx_t input_channel = input_start + c * params.input_strides[1];
    const idx_t grad_input_channel =
        grad_input_start + c * params.grad_input_strides[1];

    // Derivatives of this channel's sample with respect to its position. The
    // slopes are summed before the weights are applied: pixels that nearly
    // cancel then do so without having been rounded.
    float sample_x = 0.0f;
    float sample_y = 0.0f;
    float column_slope[Interp::taps_count] = {};

    for (int32_t i = 0; i < Interp::taps_count; ++i) {
      const idx_t pixel_y = y.index[i];
      if (pixel_y < 0) {
        continue;
      }
      float row_slope = 0.0f;
      for (int32_t j = 0; j < Interp::taps_count; ++j) {
        const idx_t pixel_x = x.index[j];
        if (pixel_x < 0) {
          continue;
        }
        if (compute_grad_input) {
          AtomicType<float>::atomic_add(
              grad_input,
              grad_input_channel + pixel_y * params.grad_input_strides[2] +
                  pixel_x * params.grad_input_strides[3],
              y.weight[i] * x.weight[j] * grad);
        }
        if (Interp::is_differentiable) {
          const auto value = static_cast<float>(
              input
                  [input_channel + pixel_y * params.input_strides[2] +
                   pixel_x * params.input_strides[3]]);
          row_slope += value * x.slope[j];
          column_slope[j] += value * y.slope[i];
        }
      }
      sample_x += row_slope * y.weight[i];
    }
    for (int32_t j = 0; j < Interp::taps_count; ++j) {
      sample_y += column_slope[j] * x.weight[j];
    }
    grad_x += sample_x * grad;
    grad_y += sample_y * grad;
  }

  grad_grid[2 * position] = static_cast<T>(x.derivative * grad_x);
  grad_grid[2 * position + 1] = static_cast<T>(y.derivative * grad_y);
}

#define REGISTER_GRID_SAMPLER_2D_BACKWARD(interp, I, pad, P, T, idx, X)    \
  template[[host_name(                                                     \
      "grid_sampler_2d_backward_" #interp "_" #pad "_" #T X)]] kernel void \
  grid_sampler_2d_backward<I<P>, T, idx>(                                  \
      device atomic<float> * grad_input [[buffer(0)]],                     \
      device T * grad_grid [[buffer(1)]],                                  \
      const device T* grad_output [[buffer(2)]],                           \
      const device T* input [[buffer(3)]],                                 \
      const device T* grid [[buffer(4)]],                                  \
      constant GridSamplerBackwardParams<4, idx>& params [[buffer(5)]],    \
      uint tid [[thread_position_in_grid]]);

#define REGISTER_GRID_SAMPLER_2D_BACKWARD_PADDING(pad, P, T, idx, X) \
  REGISTER_GRID_SAMPLER_2D_BACKWARD(                                 \
      bilinear, GridGradBilinear, pad, P, T, idx, X)                 \
  REGISTER_GRID_SAMPLER_2D_BACKWARD(                                 \
      nearest, GridGradNearest, pad, P, T, idx, X)                   \
  REGISTER_GRID_SAMPLER_2D_BACKWARD(bicubic, GridGradBicubic, pad, P, T, idx, X)

#define REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(T, idx, X)                       \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_PADDING(zeros, GridGradZeros, T, idx, X)   \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_PADDING(border, GridGradBorder, T, idx, X) \
  REGISTER_GRID_SAMPLER_2D_BACKWARD_PADDING(                                   \
      reflection, GridGradReflection, T, idx, X)

REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(float, int32_t, "");
REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(half, int32_t, "");
REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(bfloat, int32_t, "");
REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(float, int64_t, "_int64");
REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(half, int64_t, "_int64");
REGISTER_GRID_SAMPLER_2D_BACKWARD_OPS(bfloat, int64_t, "_int64");
// end fragment
