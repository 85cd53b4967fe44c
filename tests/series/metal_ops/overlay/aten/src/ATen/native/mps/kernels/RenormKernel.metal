#include <metal_stdlib>
using namespace metal;

// fragment: renorm_factor
inline float renorm_factor(float norm, float largest) {
  return norm > largest ? largest / (norm + 1e-7f) : 1.0f;
}
// end fragment

// fragment: renorm
template <typename T>
kernel void renorm(
    const device T* norm [[buffer(0)]],
    device T* factor [[buffer(1)]],
    constant float& maxnorm [[buffer(2)]],
    uint at [[thread_position_in_grid]]) {
  factor[at] =
      static_cast<T>(renorm_factor(static_cast<float>(norm[at]), maxnorm));
}
// end fragment

// The name and the types of the kernels for the host function.
// fragment: register_renorm
#define REGISTER_RENORM_OP(T)                                 \
  template [[host_name("renorm_" #T)]] kernel void renorm<T>( \
      const device T* norm [[buffer(0)]],                     \
      device T* factor [[buffer(1)]],                         \
      constant float& maxnorm [[buffer(2)]],                  \
      uint at [[thread_position_in_grid]]);
// end fragment
