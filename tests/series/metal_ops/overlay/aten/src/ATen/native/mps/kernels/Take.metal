#include <metal_stdlib>
using namespace metal;

// One thread per index. Negative indices count from the end.
template <typename T>
kernel void take(
    device T* out [[buffer(0)]],
    device const T* values [[buffer(1)]],
    device const long* indices [[buffer(2)]],
    constant long& count [[buffer(3)]],
    uint at [[thread_position_in_grid]]) {
  const long index = indices[at] < 0 ? indices[at] + count : indices[at];
  out[at] = index >= 0 && index < count ? values[index] : T(0);
}

#define REGISTER_TAKE(T)                                  \
  template [[host_name("take_" #T)]] kernel void take<T>( \
      device T * out [[buffer(0)]],                       \
      device const T* values [[buffer(1)]],               \
      device const long* indices [[buffer(2)]],           \
      constant long& count [[buffer(3)]],                 \
      uint at [[thread_position_in_grid]])

REGISTER_TAKE(float);
REGISTER_TAKE(half);
#if __METAL_VERSION__ >= 310
REGISTER_TAKE(bfloat);
#endif
REGISTER_TAKE(long);
REGISTER_TAKE(int);
REGISTER_TAKE(short);
REGISTER_TAKE(char);
REGISTER_TAKE(uchar);
REGISTER_TAKE(bool);
REGISTER_TAKE(float2);
REGISTER_TAKE(half2);
