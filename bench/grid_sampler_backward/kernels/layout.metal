// Kernels that bring tensors to channels-last memory and back.

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
