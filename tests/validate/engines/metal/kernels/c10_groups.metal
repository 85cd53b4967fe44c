// PyTorch's reductions over a threadgroup and its atomics on small types.
#include <c10/metal/atomic.h>
#include <c10/metal/reduction_utils.h>
#include <metal_stdlib>
using namespace metal;
using namespace c10::metal;

kernel void reductions(
    device const float* in,
    device float* out,
    device int* where,
    uint tid [[thread_index_in_threadgroup]],
    uint size [[threads_per_threadgroup]]) {
  threadgroup float scratch[32];
  threadgroup int indices[32];
  float total = threadgroup_sum(scratch, in[tid], tid, size);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float most = c10::metal::threadgroup_max(scratch, in[tid], tid, size);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int place = threadgroup_argmax(scratch, indices, in[tid], int(tid), tid, size);
  if (tid == 0) {
    out[0] = total;
    out[1] = most;
    where[0] = place;
  }
}

kernel void half_contention(
    device AtomicType_t<half>* out,
    device AtomicType_t<bfloat>* other,
    device AtomicType_t<long>* whole) {
  AtomicType<half>::atomic_add(out, 1, half(1.0f));
  AtomicType<bfloat>::atomic_add(other, 0, bfloat(1.0f));
  AtomicType<long>::atomic_add(whole, 0, 0x80000001L);
}
