// The vector and matrix names that Metal sources share with code for the processor.
#pragma once
#include <metal_types>
#ifndef __METAL_HOST_MACROS_ONLY__
#define __METAL_HOST_SHARED(T)      \
  namespace simd {                  \
  using ::T##2;                     \
  using ::T##3;                     \
  using ::T##4;                     \
  }                                 \
  typedef T##2 simd_##T##2;         \
  typedef T##3 simd_##T##3;         \
  typedef T##4 simd_##T##4;         \
  typedef T##2 vector_##T##2;       \
  typedef T##3 vector_##T##3;       \
  typedef T##4 vector_##T##4;
__METAL_HOST_SHARED(char)
__METAL_HOST_SHARED(uchar)
__METAL_HOST_SHARED(short)
__METAL_HOST_SHARED(ushort)
__METAL_HOST_SHARED(int)
__METAL_HOST_SHARED(uint)
__METAL_HOST_SHARED(long)
__METAL_HOST_SHARED(ulong)
__METAL_HOST_SHARED(float)
#define __METAL_HOST_SHARED_MATRIX(NAME) \
  namespace simd {                       \
  using ::float##NAME;                   \
  using ::half##NAME;                    \
  }                                      \
  typedef float##NAME simd_float##NAME;  \
  typedef float##NAME matrix_float##NAME;
namespace simd {
using ::packed_float2;
using ::packed_float3;
using ::packed_float4;
using ::half2;
using ::half3;
using ::half4;
} // namespace simd
__METAL_HOST_SHARED_MATRIX(2x2)
__METAL_HOST_SHARED_MATRIX(2x3)
__METAL_HOST_SHARED_MATRIX(2x4)
__METAL_HOST_SHARED_MATRIX(3x2)
__METAL_HOST_SHARED_MATRIX(3x3)
__METAL_HOST_SHARED_MATRIX(3x4)
__METAL_HOST_SHARED_MATRIX(4x2)
__METAL_HOST_SHARED_MATRIX(4x3)
__METAL_HOST_SHARED_MATRIX(4x4)
#endif
