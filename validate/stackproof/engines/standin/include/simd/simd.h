// The vector types of Apple's <simd/simd.h> that ATen's host files name.
#pragma once
typedef unsigned simd_uint3 __attribute__((ext_vector_type(3)));
typedef unsigned simd_uint4 __attribute__((ext_vector_type(4)));
typedef unsigned long simd_ulong3 __attribute__((ext_vector_type(3)));
