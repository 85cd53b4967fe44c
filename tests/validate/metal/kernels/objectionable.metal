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
