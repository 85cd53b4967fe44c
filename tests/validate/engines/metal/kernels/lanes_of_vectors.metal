// Simdgroup functions on vectors and 16-bit numbers, each lane with a value of its own.
#include <metal_stdlib>
using namespace metal;

kernel void move_vectors(
    device float4* out [[buffer(0)]],
    device half* out16 [[buffer(1)]],
    uint lane [[thread_index_in_simdgroup]]) {
  const float4 v = float4(lane, lane + 100, lane + 200, lane + 300);
  const half h = half(lane);
  out[lane] = simd_shuffle_up(v, 1) + simd_shuffle_down(v, 2) + simd_shuffle_xor(v, 3);
  out16[lane] = simd_shuffle_down(h, 1) + simd_shuffle_and_fill_up(h, half(50), 2) + quad_shuffle_up(h, 1);
}
