// What Apple's compiler rejects, one kernel each; the line ends in a comment that names the rule.
#include <metal_stdlib>
using namespace metal;

kernel void writes_constant(constant float* in, uint i [[thread_position_in_grid]]) {
  in[i] = 1; // compile
}

kernel void mixes_spaces(device float* in, uint i [[thread_position_in_grid]]) {
  threadgroup float* at = in; // compile
  at[i] = 0;
}

kernel void too_modern(device float* out, uint i [[thread_position_in_grid]]) {
  if constexpr (sizeof(float) == 4) // pre-c++17-compat
    out[i] = 1;
}

template <typename T>
kernel void narrows(device T* out, constant float& scale, uint i [[thread_position_in_grid]]) {
  out[i] = scale * float(out[i]); // implicit-bfloat
}
template [[host_name("narrows_float")]] kernel void narrows<float>(device float*, constant float&, uint);
template [[host_name("narrows_half")]] kernel void narrows<half>(device half*, constant float&, uint);
template [[host_name("narrows_bfloat")]] kernel void narrows<bfloat>(device bfloat*, constant float&, uint);

kernel void bfloat_literal(device bfloat* out, uint i [[thread_position_in_grid]]) {
  bfloat x = 1.5f; // implicit-bfloat
  out[i] = x;
}

kernel void ambiguous_max(device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = max(1, 2.0f); // compile
}

kernel void atomic_half(device atomic<half>* out, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(out + i, half(1), memory_order_relaxed); // compile
}

kernel void wide_lanes(device long* out, uint i [[thread_position_in_grid]]) {
  out[i] = simd_sum(out[i]); // compile
}

kernel void vector_of_other_type(device float4* out, device int4* in, uint i [[thread_position_in_grid]]) {
  out[i] = in[i]; // compile
}

kernel void threadgroup_float_atomic(device float* out, threadgroup atomic_float* sum [[threadgroup(0)]]) {
  atomic_fetch_add_explicit(sum, 1.0f, memory_order_relaxed); // compile
  out[0] = 0;
}
