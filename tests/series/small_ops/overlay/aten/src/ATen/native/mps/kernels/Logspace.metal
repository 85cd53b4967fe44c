#include <metal_stdlib>
using namespace metal;

// One thread per element. The exponent is counted from the nearer end: both ends come out exact.
template <typename T>
kernel void logspace(
    device T* out [[buffer(0)]],
    constant float3& start_end_base [[buffer(1)]],
    constant uint& steps [[buffer(2)]],
    uint at [[thread_position_in_grid]]) {
  const float start = start_end_base.x;
  const float end = start_end_base.y;
  const float stride = steps > 1 ? (end - start) / float(steps - 1) : 0.0f;
  const float exponent = at < steps / 2 || steps == 1
      ? start + stride * float(at)
      : end - stride * float(steps - 1 - at);
  out[at] = static_cast<T>(precise::pow(start_end_base.z, exponent));
}

#define INSTANTIATE_LOGSPACE(T)                         \
  template [[host_name("logspace_" #T)]] kernel void    \
  logspace<T>(                                          \
      device T * out [[buffer(0)]],                     \
      constant float3 & start_end_base [[buffer(1)]],   \
      constant uint & steps [[buffer(2)]],              \
      uint at [[thread_position_in_grid]])

INSTANTIATE_LOGSPACE(float);
INSTANTIATE_LOGSPACE(half);
INSTANTIATE_LOGSPACE(long);
INSTANTIATE_LOGSPACE(int);
INSTANTIATE_LOGSPACE(short);
INSTANTIATE_LOGSPACE(char);
INSTANTIATE_LOGSPACE(uchar);
