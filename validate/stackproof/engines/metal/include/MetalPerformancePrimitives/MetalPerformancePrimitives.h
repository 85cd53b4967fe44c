// Matrix products of Metal 4 on cooperative tensors, to be type-checked: nothing here computes, and a kernel that uses it
// is not executed.
#pragma once
#include <metal_stdlib>
#ifndef __METAL_HOST_MACROS_ONLY__
#if __METAL_VERSION__ >= 400
namespace metal {
struct execution_thread {};
struct execution_simdgroup {};
template <int N>
struct execution_simdgroups {};
} // namespace metal

namespace mpp {
namespace tensor_ops {
struct matmul2d_descriptor {
  enum class mode { multiply, multiply_accumulate };
  constexpr matmul2d_descriptor(
      int m, int n, int k = 0, bool left = false, bool right = false, bool relaxed = false, mode how = mode::multiply)
      : all(m * 1000003 + n * 1009 + k * 17 + (left ? 8 : 0) + (right ? 4 : 0) + (relaxed ? 2 : 0) + int(how)) {}
  // A template argument may not be of a class before C++20.
  constexpr operator int() const { return all; }

 private:
  int all;
};

// The part of a tensor that one thread of a group holds.
template <typename T>
struct __cooperative_tensor {
  typedef T value_type;
  enum { capacity = 64 };
  __METAL_HOST_COPIES(__cooperative_tensor)
  T& operator[](int i) { return held[i]; }
  const T& operator[](int i) const { return held[i]; }
  static constexpr int get_capacity() { return capacity; }
  bool is_valid_element(int) const { return true; }
  template <typename Tensor>
  void load(Tensor) {}
  template <typename Tensor>
  void store(Tensor) const {}

 private:
  T held[capacity];
};

template <int Descriptor, typename Scope, typename... Rest>
struct matmul2d {
  template <typename L, typename R, typename D, typename... More>
  __cooperative_tensor<L> get_left_input_cooperative_tensor() const { return {}; }
  template <typename L, typename R, typename D, typename... More>
  __cooperative_tensor<R> get_right_input_cooperative_tensor() const { return {}; }
  template <typename L, typename R, typename D, typename... More>
  __cooperative_tensor<D> get_destination_cooperative_tensor() const { return {}; }
  template <typename L, typename R, typename D>
  void run(thread L&, thread R&, thread D&) const {}
};
} // namespace tensor_ops
} // namespace mpp
#endif
#endif
