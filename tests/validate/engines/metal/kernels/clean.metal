// Correct kernels for everything that the executor has to get right; no run mode may report anything about them.
#include <metal_stdlib>
using namespace metal;

kernel void group_sum(
    device const float* in [[buffer(0)]],
    device float* out [[buffer(1)]],
    constant uint& n [[buffer(2)]],
    uint tid [[thread_position_in_grid]],
    uint index [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint size [[threads_per_threadgroup]]) {
  threadgroup float shared[256];
  shared[index] = tid < n ? in[tid] : 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = 128; step > 0; step /= 2) {
    if (index < step && index + step < size)
      shared[index] += shared[index + step];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (index == 0)
    out[group] = shared[0];
}

template <typename T>
kernel void simdgroup_sum(
    device const T* in,
    device T* sums,
    device T* largest,
    uint tid [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]],
    uint simdgroups [[simdgroups_per_threadgroup]]) {
  T sum = simd_sum(in[tid]);
  T most = simd_max(in[tid]);
  if (lane == 0) {
    sums[group * simdgroups + simdgroup] = sum;
    largest[group * simdgroups + simdgroup] = most;
  }
}
template [[host_name("simdgroup_sum_float")]] kernel void simdgroup_sum<float>(
    device const float*, device float*, device float*, uint, uint, uint, uint, uint);
template [[host_name("simdgroup_sum_int")]] kernel void simdgroup_sum<int>(
    device const int*, device int*, device int*, uint, uint, uint, uint, uint);

kernel void contended(
    device atomic_float* sum,
    device atomic_int* count,
    device atomic_uint* largest,
    device atomic_uint* bits,
    uint tid [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(sum, 0.5f, memory_order_relaxed);
  int seen = atomic_load_explicit(count, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(
      count, &seen, seen + 2, memory_order_relaxed, memory_order_relaxed))
    ;
  atomic_fetch_max_explicit(largest, tid, memory_order_relaxed);
  atomic_fetch_or_explicit(bits, 1u << (tid % 32), memory_order_relaxed);
}

kernel void histogram(
    device const int* in,
    device atomic_int* out,
    uint tid [[thread_position_in_grid]],
    uint index [[thread_index_in_threadgroup]]) {
  threadgroup atomic_int bins[16];
  if (index < 16)
    atomic_store_explicit(&bins[index], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&bins[in[tid] & 15], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (index < 16)
    atomic_fetch_add_explicit(out + index, atomic_load_explicit(&bins[index], memory_order_relaxed), memory_order_relaxed);
}

kernel void rotate_in_loop(
    device int* data,
    constant int& rounds,
    uint index [[thread_index_in_threadgroup]],
    uint size [[threads_per_threadgroup]]) {
  for (int r = 0; r < rounds; ++r) {
    int next = data[(index + 1) % size];
    threadgroup_barrier(mem_flags::mem_device);
    data[index] = next;
    threadgroup_barrier(mem_flags::mem_device);
  }
}

kernel void passed_memory(
    device const float* in,
    device float* out,
    threadgroup float* scratch [[threadgroup(0)]],
    uint index [[thread_index_in_threadgroup]],
    uint size [[threads_per_threadgroup]]) {
  scratch[index] = in[index];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[index] = scratch[size - 1 - index];
}

kernel void lanes(
    device const int* in,
    device int* out,
    uint tid [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  int v = in[tid];
  device int* row = out + tid * 12;
  row[0] = simd_shuffle_xor(v, 5);
  row[1] = simd_shuffle_down(v, 3);
  row[2] = simd_shuffle_up(v, 2);
  row[3] = simd_broadcast(v, 7);
  row[4] = simd_prefix_inclusive_sum(v);
  row[5] = simd_prefix_exclusive_sum(v);
  row[6] = int(ulong(simd_ballot(v % 2 == 0)) & 0x7fffffff);
  row[7] = simd_shuffle_and_fill_down(v, -1, 4);
  row[8] = quad_sum(v);
  row[9] = simd_any(v == 31) + 2 * simd_all(v >= 0);
  row[10] = simd_xor(v);
  row[11] = simd_shuffle_rotate_down(v, 30);
}

kernel void tile_product(
    device const half* a,
    device const float* b,
    device float* c,
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  simdgroup_half8x8 left;
  simdgroup_float8x8 right, sum = make_filled_simdgroup_matrix<float, 8>(1.0f);
  simdgroup_load(left, a, 8);
  simdgroup_load(right, b, 8, 0, true);
  simdgroup_multiply_accumulate(sum, left, right, sum);
  simdgroup_store(sum, c, 8);
}

struct Extents {
  int2 size;
  float scale[3];
  packed_float3 offset;
  bool flip;
};

kernel void structured(
    device float4* out,
    constant Extents& extents,
    constant array<ulong2, 2>& steps,
    uint3 at [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]]) {
  Extents own = extents;
  float3 offset = own.offset;
  float4 v = float4(float(at.x), float(at.y), float(at.z), own.flip ? -1.0f : 1.0f);
  v.xz = v.zx + own.scale[1];
  v.yw *= float2(own.size);
  v.xyz += offset.zyx;
  uint linear = (at.z * grid.y + at.y) * grid.x + at.x;
  out[linear] = v + float(steps[1].y);
}

kernel void rounding(device const half* in, device half* out, device bfloat* wide, uint i [[thread_position_in_grid]]) {
  half sum = in[i] + half(2048.0f);
  out[i] = sum + half(1.0f);
  wide[i] = bfloat(float(in[i])) + bfloat(256.0f) + bfloat(1.0f);
}

// Lanes that have finished, whole simdgroups, whole quadgroups, and what is said to be meant.
kernel void apart_on_purpose(device float* out, uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  if (i >= 90)
    return;
  out[i] = simd_sum(1.0f);
  if (i >= 64)
    out[i] += simd_sum(1.0f);
  if (lane < 8)
    out[i] += quad_sum(1.0f);
  if (lane > 20)
    out[i] += simd_sum(1.0f); // NOLINT(divergent-simdgroup): the last lanes of a row
  if (lane > 10 && simd_is_first())
    out[i] += 100.0f;
  // NOLINTNEXTLINE(divergent-simdgroup): only these
  float largest = lane % 2 ? simd_max(out[i]) : 0.0f;
  out[i] = max(out[i], largest);
}
