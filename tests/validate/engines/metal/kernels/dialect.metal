// What real kernels write and Clang's C++ for OpenCL would not take as it is.
#include <metal_array>
#include <metal_stdlib>
using namespace metal;

template <int N>
struct Sizes {
  array<int, N> sizes;
};

static int sum(constant int* values, int n) {
  int total = 0;
  for (int i = 0; i < n; ++i)
    total += values[i];
  return total;
}

static int last(const constant int* end) {
  return end[-1];
}

kernel void constant_data(device int* out, constant Sizes<3>& p, uint i [[thread_position_in_grid]]) {
  out[i] = i == 0 ? sum(p.sizes.data(), 3) : last(p.sizes.end());
}

template <typename T>
T zero_or(bool is_zero, T value) {
  return is_zero ? 0 : value;
}

template <typename T>
T value_or_two(bool is_value, T value) {
  return is_value ? value : 2;
}

kernel void zero_or_number(
    device const bfloat* in,
    device bfloat* out,
    device float* other,
    uint i [[thread_position_in_grid]]) {
  const bfloat value = in[i];
  out[i] = (i % 2 ? 0 : in[i]) + zero_or(i > 2, value) + value_or_two(i < 2, value);
  other[i] = zero_or(i % 2 == 0, float(value)) + value_or_two(i > 1, half(value)) + (i == 3 ? 1000 : uchar(i));
}

template <int N>
kernel void sized_by_a_choice(device float* out, uint i [[thread_position_in_grid]]) {
  threadgroup float values[N > 2 ? 8 : 4];
  values[i] = N * i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = values[i ^ 1] + sizeof(values);
}
template [[host_name("sized_8")]] kernel void sized_by_a_choice<3>(device float*, uint);
template [[host_name("sized_4")]] kernel void sized_by_a_choice<1>(device float*, uint);
