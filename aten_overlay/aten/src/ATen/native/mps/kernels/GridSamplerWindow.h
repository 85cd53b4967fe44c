#pragma once
#include <c10/metal/common.h>
#include <metal_stdlib>

// Samples over any number of axes.
//
// Every interpolation is separable: along one axis a sample reads 1, 2 or 4
// pixels, its taps, and a pixel's share in the sample is the product of one
// weight per axis. So a kernel is written once, for any number of axes and
// taps, and an interpolation only says what the taps of one axis are.
//
// Coordinates that are not finite, or so large that un-normalizing them may not
// be, must not be converted to an integer, which is undefined:
//  - zeros and reflection take them as outside of the input: such a sample
//    reads no pixel, and its gradients are 0;
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
  const auto bits = ::metal::as_type<uint32_t>(coord);
  if ((bits & 0x7fffffffu) > ::metal::as_type<uint32_t>(GRID_COORD_LIMIT)) {
    const bool is_right = bits <= 0x7f800000u; // neither negative nor NaN
    return {is_right ? GRID_POSITION_LIMIT : -GRID_POSITION_LIMIT, 0.0f};
  }
  const float shifted = coord + 1;
  const float position =
      align_corners ? shifted / 2 * (size - 1) : (shifted * size - 1) / 2;
  return {position, (align_corners ? size - 1 : size) / 2.0f};
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
  return ::metal::fabs(position) < 2.0f * size + 4.0f;
}

// Paddings. `pad_position` moves a position into the input, for interpolations
// that pad before they choose their taps; `wrap` only moves it to where it can
// be converted, without changing which pixels it reads, for bicubic, which pads
// each tap by itself with `pad_index`.
struct GridPadZeros {
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

struct GridPadBorder {
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

struct GridPadReflection {
  // Mirrors lie on the centers of the edge pixels (align_corners) or on their
  // outer sides; this is the distance between them.
  static int32_t span(int32_t size, bool align_corners) {
    return align_corners ? size - 1 : size;
  }

  static GridPixel pad_position(
      GridPixel pixel,
      int32_t size,
      bool align_corners) {
    if (!(::metal::fabs(pixel.position) < GRID_POSITION_LIMIT)) {
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
    if (!(::metal::fabs(pixel.position) < GRID_POSITION_LIMIT)) {
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
struct GridNearest {
  static constant constexpr int32_t taps_count = 1;
  static constant constexpr bool is_differentiable = false;

  static GridTaps<1> taps(float coord, int32_t size, bool align_corners) {
    const auto pixel = Pad::pad_position(
        grid_pixel_unnormalize(coord, size, align_corners),
        size,
        align_corners);
    GridTaps<1> taps = {{-1}, {1.0f}, {0.0f}, 0.0f};
    const auto nearest =
        ::metal::rint(pixel.position); // halves go to even, as on CPU
    if (grid_is_convertible(nearest, size)) {
      taps.index[0] =
          Pad::pad_index(static_cast<int32_t>(nearest), size, align_corners);
    }
    return taps;
  }
};

template <typename Pad>
struct GridBilinear {
  static constant constexpr int32_t taps_count = 2;
  static constant constexpr bool is_differentiable = true;

  static GridTaps<2> taps(float coord, int32_t size, bool align_corners) {
    const auto pixel = Pad::pad_position(
        grid_pixel_unnormalize(coord, size, align_corners),
        size,
        align_corners);
    GridTaps<2> taps = {
        {-1, -1}, {0.0f, 0.0f}, {-1.0f, 1.0f}, pixel.derivative};
    const auto left = ::metal::floor(pixel.position);
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
struct GridBicubic {
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
    const auto second = ::metal::floor(pixel.position);
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

// Sizes or strides: batch, channels, then D axes; of the grid batch, D axes,
// then coordinates.
template <int32_t D, typename idx_t>
using GridDims = c10::metal::array<idx_t, D + 2>;

// Where a thread's sampling position lies in the output and the grid.
template <int32_t D, typename idx_t>
struct GridPosition {
  idx_t index[D + 1]; // the batch, then the axes

  // `sizes` are those of the output.
  static GridPosition of_thread(
      idx_t position,
      constant GridDims<D, idx_t>& sizes) {
    GridPosition result;
    for (int32_t axis = D; axis > 0; --axis) {
      const idx_t rest = position / sizes[axis + 1];
      result.index[axis] = position - rest * sizes[axis + 1];
      position = rest;
    }
    result.index[0] = position;
    return result;
  }

  idx_t grid_offset(constant GridDims<D, idx_t>& strides) const thread {
    idx_t offset = 0;
    for (int32_t dim = 0; dim <= D; ++dim) {
      offset += index[dim] * strides[dim];
    }
    return offset;
  }

  // Of channel 0.
  idx_t output_offset(constant GridDims<D, idx_t>& strides) const thread {
    idx_t offset = index[0] * strides[0];
    for (int32_t axis = 1; axis <= D; ++axis) {
      offset += index[axis] * strides[axis + 1];
    }
    return offset;
  }
};

// The pixels that one sample reads: the product of its taps along D axes. A
// pixel's number is made of one digit per axis, its tap; the last axis has the
// lowest digit. Loops over pixels and axes are unrolled: then the arrays that
// they index stay in registers.
template <int32_t D, typename Interp>
struct GridWindow {
  static constant constexpr int32_t taps_count = Interp::taps_count;
  static constant constexpr int32_t digit_bits = taps_count / 2; // of 1, 2, 4
  static constant constexpr int32_t pixels_count = 1 << (digit_bits * D);

  GridTaps<taps_count> axes[D]; // in the order of the input's dimensions

  template <typename T, typename idx_t>
  static GridWindow around(
      const device T* coords,
      idx_t coordinate_stride,
      constant GridDims<D, idx_t>& input_sizes,
      bool align_corners) {
    GridWindow window;
#pragma unroll
    for (int32_t axis = 0; axis < D; ++axis) {
      // The first coordinate belongs to the last axis.
      window.axes[axis] = Interp::taps(
          static_cast<float>(coords[(D - 1 - axis) * coordinate_stride]),
          static_cast<int32_t>(input_sizes[axis + 2]),
          align_corners);
    }
    return window;
  }

  bool is_inside(int32_t pixel) const thread {
    bool inside = true;
    for (int32_t axis = 0; axis < D; ++axis) {
      inside = inside && axes[axis].index[tap(pixel, axis)] >= 0;
    }
    return inside;
  }

  // From pixel 0 of a channel, for a pixel inside.
  template <typename idx_t>
  idx_t offset(int32_t pixel, constant GridDims<D, idx_t>& strides)
      const thread {
    idx_t offset = 0;
    for (int32_t axis = 0; axis < D; ++axis) {
      const idx_t index = axes[axis].index[tap(pixel, axis)];
      offset += index * strides[axis + 2];
    }
    return offset;
  }

  float weight(int32_t pixel) const thread {
    float product = axes[0].weight[tap(pixel, 0)];
    for (int32_t axis = 1; axis < D; ++axis) {
      product *= axes[axis].weight[tap(pixel, axis)];
    }
    return product;
  }

  // Derivative of the sample with respect to its position along one axis. The
  // slopes are summed before the other axes' weights are applied: pixels that
  // nearly cancel then do so without having been rounded.
  float slope(int32_t axis, const thread float* values) const thread {
    float sum = 0.0f;
#pragma unroll
    for (int32_t line = 0; line < pixels_count; ++line) {
      if (tap(line, axis) != 0) {
        continue; // not the first pixel of its line along the axis
      }
      float difference = 0.0f;
      for (int32_t i = 0; i < taps_count; ++i) {
        difference += values[line + (i << shift(axis))] * axes[axis].slope[i];
      }
      float weight = 1.0f;
      for (int32_t other = 0; other < D; ++other) {
        weight *= other == axis ? 1.0f : axes[other].weight[tap(line, other)];
      }
      sum += difference * weight;
    }
    return sum;
  }

 private:
  static int32_t shift(int32_t axis) {
    return digit_bits * (D - 1 - axis);
  }

  static int32_t tap(int32_t pixel, int32_t axis) {
    return (pixel >> shift(axis)) & (taps_count - 1);
  }
};
