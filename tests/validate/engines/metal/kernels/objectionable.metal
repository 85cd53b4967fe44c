// Compiles, but breaks a static rule; the line ends in a comment that names it.
#include <metal_stdlib>
using namespace metal;

template <typename T>
kernel void doubled(
    constant T* in [[buffer(0)]], // constant-data
    device T* out [[buffer(1)]],
    constant uint* strides [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  out[i * strides[0]] = in[i] + in[i]; // narrow-offset
}
template [[host_name("doubled_float")]] kernel void doubled<float>(constant float*, device float*, constant uint*, uint);
template [[host_name("doubled_half")]] kernel void doubled<half>(constant half*, device half*, constant uint*, uint); // missing-dtype

template <typename T, int N>
kernel void shifted(device T* out, uint i [[thread_position_in_grid]]) {
  out[i] += T(N);
}
#define SHIFTED(T, N) template [[host_name("shifted_" #N "_" #T)]] kernel void shifted<T, N>(device T*, uint)
SHIFTED(float, 1);
SHIFTED(half, 1);
SHIFTED(bfloat, 1);
SHIFTED(float, 2);
SHIFTED(half, 2); // missing-dtype
template kernel void shifted<bfloat, 3>(device bfloat*, uint); // missing-host-name missing-dtype
template [[host_name("shifted_1_float")]] kernel void shifted<float, 4>(device float*, uint); // duplicate-host-name missing-dtype

static float first(float* values) { // missing-address-space
  return values[0];
}

kernel void precise_sum(device float* out, uint i [[thread_position_in_grid]]) {
  double sum = 0; // not-in-metal
  float own[2] = {1.0f, 2.0f};
  out[i] = float(sum) + first(own);
}

static float sum_below(float value, uint lane, uint many) {
  const uint last = lane + 1;
  return last < many ? simd_sum(value) : 0.0f; // divergent-simdgroup
}

struct Shared {
  bool all;
  bool mine;
};

static Shared shared_of(uint lane) {
  Shared shared = {simd_all(lane < 40), false};
  shared.mine = lane < 7;
  return shared;
}

kernel void some_lanes(
    device float* out,
    constant uint& many,
    uint3 position [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  const uint i = position.x;
  bool inside = i < many;
  if (position.y < many)
    out[i] = simd_sum(out[i]);
  bool all = inside && simd_all(out[i] > 0); // divergent-simdgroup
  if (lane % 2)
    out[i] = simd_max(out[i]); // divergent-simdgroup
  for (uint step = lane; step < many; step += 32) {
    out[i] += simd_shuffle_down(out[i], 1); // divergent-simdgroup
    float next = out[i + 1];
    while (next < 3) {
      next = simd_sum(next); // divergent-simdgroup
    }
  }
  if (i < 64 && many > 2 && simd_any(inside))
    out[i] = sum_below(out[i], lane, many);
  const auto shared = shared_of(lane);
  if (shared.all)
    out[i] = simd_sum(out[i]);
  if (shared.mine)
    out[i] = simd_sum(out[i]); // divergent-simdgroup
  if (simdgroup == 0 || many > 3)
    out[i] = simd_sum(out[i]);
  if (simd_all(inside))
    out[i] = many > 4 ? simd_sum(1.0f) : quad_max(2.0f);
}
