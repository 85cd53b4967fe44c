// One kernel per fault that a run mode must catch. The line with the fault ends in a comment that names the kind of
// the report; a second line of the same report is marked "other".
#include <metal_stdlib>
using namespace metal;

kernel void read_past_end(device const float* in, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = in[i + 1]; // fault: out-of-bounds
}

kernel void write_before_begin(device float* out, uint i [[thread_position_in_grid]]) {
  out[int(i) - 1] = 1; // fault: out-of-bounds
}

kernel void write_between_elements(device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = 1; // fault: out-of-bounds
}

kernel void read_past_constants(constant int* table, device int* out, uint i [[thread_position_in_grid]]) {
  out[i] = table[i]; // fault: out-of-bounds
}

kernel void write_read_only(device const float* in, uint i [[thread_position_in_grid]]) {
  device float* sneaky = (device float*)in;
  sneaky[i] = 0; // fault: read-only-write
}

kernel void past_threadgroup_array(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float shared[8];
  threadgroup float* at = shared;
  at[i] = float(i); // fault: out-of-bounds
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 8)
    out[i] = at[i];
}

kernel void past_private_array(device int* out, constant int& n, uint i [[thread_position_in_grid]]) {
  int local_values[4] = {1, 2, 3, 4};
  out[i] = local_values[n + int(i)]; // fault: undefined
}

static void fill(thread int* to, int n) {
  for (int k = 0; k < n; ++k)
    to[k] = k; // fault: undefined past_private_pointer
}

kernel void past_private_pointer(device int* out, constant int& n, uint i [[thread_position_in_grid]]) {
  int values[4];
  fill(values, n);
  out[i] = values[i & 3];
}

kernel void coordinate_cast(device const float* in, device int* out, uint i [[thread_position_in_grid]]) {
  out[i] = int(in[i]); // fault: undefined
}

kernel void signed_overflow(device const int* in, device int* out, uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * 65536; // fault: undefined
}

struct Indirect {
  device int* at;
};
kernel void through_null(device Indirect* table, device int* out, uint i [[thread_position_in_grid]]) {
  out[i] = *table->at; // fault: undefined
}

kernel void divide_by_zero(device const int* in, device int* out, uint i [[thread_position_in_grid]]) {
  out[i] = 7 / in[i]; // fault: undefined
}

kernel void misaligned(device const char* in, device uint* out, uint i [[thread_position_in_grid]]) {
  device const uint* words = (device const uint*)(in + 1);
  out[i] = words[i]; // fault: undefined
}

kernel void not_a_bool(device const uchar* in, device int* out, uint i [[thread_position_in_grid]]) {
  device const bool* flags = (device const bool*)in;
  out[i] = flags[i] ? 3 : 4; // fault: undefined
}

kernel void missing_barrier(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float shared[64];
  shared[i] = float(i); // other
  out[i] = shared[63 - i]; // fault: race
}

kernel void race_between_groups(device int* out, uint g [[threadgroup_position_in_grid]]) {
  out[0] = int(g); // fault: race
}

kernel void atomic_and_plain(device atomic_int* counter, device int* seen, uint i [[thread_position_in_grid]]) {
  if (i == 0)
    *(device int*)counter = 5; // other
  else
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed); // fault: race
  seen[i] = 1;
}

kernel void wrong_barrier_flags(device float* data, device float* out, uint i [[thread_index_in_threadgroup]]) {
  data[i] = float(i); // other
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = data[63 - i]; // fault: race
}

kernel void barrier_missing_in_loop(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float shared[64];
  shared[i] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = 32; step > 0; step /= 2)
    if (i < step)
      shared[i] += shared[i + step]; // fault: race
  if (i == 0)
    out[0] = shared[0];
}

kernel void unwritten_threadgroup(device float* out, uint i [[thread_index_in_threadgroup]]) {
  threadgroup float shared[64];
  if (i < 32)
    shared[i] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[i]; // fault: uninitialised
}

kernel void read_unwritten_output(device float* out, uint i [[thread_position_in_grid]]) {
  out[i] += 1; // fault: uninitialised
}

kernel void forgets_the_last(device float* out, constant uint& n, uint i [[thread_position_in_grid]]) { // fault: unwritten
  if (i + 1 < n)
    out[i] = 1;
}

kernel void some_have_left(device float* out, constant uint& n, uint i [[thread_position_in_grid]]) {
  if (i >= n)
    return;
  threadgroup_barrier(mem_flags::mem_device); // fault: barrier-divergence
  out[i] = 1;
}

kernel void two_barriers(device float* out, uint i [[thread_position_in_grid]]) {
  if (i < 32)
    threadgroup_barrier(mem_flags::mem_device); // fault: barrier-divergence
  else
    threadgroup_barrier(mem_flags::mem_device); // other
  out[i] = 1;
}

kernel void lane_that_has_left(device float* out, uint i [[thread_position_in_grid]]) {
  if (i >= 20)
    return;
  out[i] = simd_shuffle_xor(float(i), 16); // fault: inactive-lane
}

kernel void sum_of_some(device float* out, uint i [[thread_position_in_grid]]) {
  if (i % 3 == 0)
    out[i] = simd_sum(1.0f); // fault: divergent-simdgroup
  out[i] = simd_max(out[i]);
}

// What hung a GPU: the lanes whose left side is false never come to the function on the right.
kernel void behind_and(device float* out, uint i [[thread_position_in_grid]]) {
  bool all = i < 20 && simd_all(i < 40); // fault: divergent-simdgroup
  out[i] = all;
  simdgroup_barrier(mem_flags::mem_none);
}

kernel void loops_apart(device float* out, uint i [[thread_position_in_grid]]) {
  for (uint step = 0; step <= i; ++step)
    out[i] += simd_shuffle_xor(1.0f, 1); // fault: divergent-simdgroup
  threadgroup_barrier(mem_flags::mem_none);
}

kernel void quad_apart(device float* out, uint i [[thread_position_in_grid]]) {
  if (i != 6)
    out[i] = quad_sum(1.0f); // fault: divergent-simdgroup
  simdgroup_barrier(mem_flags::mem_none);
}

kernel void last_one_wins(device int* out, device atomic_int* turn, uint i [[thread_position_in_grid]]) { // fault: order-dependent
  out[i] = atomic_fetch_add_explicit(turn, 1, memory_order_relaxed);
}

kernel void asks_for_nan(device const float* in, device float* out, uint i [[thread_position_in_grid]]) { // fault: fast-math-sensitive
  float x = in[i];
  out[i] = x != x ? 1.0f : 2.0f;
}
