// How many sectors of 32 bytes the lanes of a simdgroup touch together.
#include <metal_atomic>
#include <metal_stdlib>
using namespace metal;

kernel void beside_each_other(
    device float* out [[buffer(0)]],
    device const float* in [[buffer(1)]],
    uint tid [[thread_position_in_grid]]) {
  out[tid] = in[tid];
}

kernel void apart(
    device float* out [[buffer(0)]],
    device const float* in [[buffer(1)]],
    uint tid [[thread_position_in_grid]]) {
  out[tid] = in[8 * tid];
}

kernel void all_the_same(device atomic<float>* out [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(out, 1.0f, memory_order_relaxed);
}

// Each turn of the loop is an instruction of its own: the same sector again.
kernel void again_and_again(
    device float* out [[buffer(0)]],
    device const float* in [[buffer(1)]],
    uint tid [[thread_position_in_grid]]) {
  float sum = 0;
  for (int i = 0; i < 5; ++i)
    sum += in[(tid + i) % 8];
  out[tid] = sum;
}
