// What host files of ATen call besides streams and libraries: the allocator's interface, copies, old names.
#include <ATen/mps/MPSAllocatorInterface.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/empty_like.h>
#include <deque>
#if __has_include(<c10/core/CachingDeviceAllocator.h>)
#include <c10/core/CachingDeviceAllocator.h>
#define STANDIN_DEVICE_ALLOCATOR
#endif
#include "objects.h"

namespace at::mps {
namespace {
// Without `override`: what the interface has differs between releases.
struct Interface final : IMPSAllocator {
  // A real heap keeps what is freed: host files bind `allocate(n).get()`, whose DataPtr is gone by then.
  DataPtr allocate(size_t bytes) {
    StandinBuffer* made = [StandinBuffer withLength:bytes];
    [made retain];
    freed_.push_back(made);
    if (freed_.size() > 64) {
      [freed_.front() release];
      freed_.pop_front();
    }
    return {(void*)made, (void*)made, [](void* one) { [(StandinBuffer*)one release]; }, Device(kMPS, 0)};
  }
  DeleterFnPtr raw_deleter() const { return c10::GetAllocator(kMPS)->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const { c10::GetAllocator(kMPS)->copy_data(to, from, bytes); }
  void emptyCache() const {}
#ifdef STANDIN_DEVICE_ALLOCATOR
  bool initialized() { return true; }
  void emptyCache(c10::MempoolId_t pool) {}
  void recordStream(const c10::DataPtr& ptr, c10::Stream stream) {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) { return {}; }
  void resetAccumulatedStats(c10::DeviceIndex device) {}
  void resetPeakStats(c10::DeviceIndex device) {}
#endif
  void freeInactiveBuffers() const {}
  ssize_t getUnalignedBufferSize(const void* ptr) const { return ((const StandinBuffer*)ptr)->bytes; }
  IntArrayRef getBufferShape(const void* ptr) const { auto at = shapes_.find(ptr); return at == shapes_.end() ? IntArrayRef() : at->second; }
  id_t getBufferId(const void* ptr) const { return (id_t)(uintptr_t)ptr; }
  void setBufferShape(const void* ptr, const IntArrayRef& shape) const { shapes_[ptr] = shape.vec(); }
  bool isSharedBuffer(const void* ptr) const { return true; }
  bool isSharedStorageSupported() const { return true; }
  c10::DataPtr allocScalarBufferWithValue(void* value, size_t size) const {
    auto made = const_cast<Interface*>(this)->allocate(size);
    auto* buffer = (StandinBuffer*)made.get();
    std::memcpy(buffer->memory, value, size);
    [buffer markDefined];
    return made;
  }
  std::string formatSize(size_t size) const { return std::to_string(size); }
  void setLowWatermarkRatio(double ratio) const {}
  void setHighWatermarkRatio(double ratio) const {}
  ssize_t getLowWatermarkValue() const { return 0; }
  size_t getLowWatermarkLimit() const { return 0; }
  size_t getHighWatermarkLimit() const { return 0; }
  size_t getTotalAllocatedMemory() const { return 0; }
  size_t getCurrentAllocatedMemory() const { return 0; }
  size_t getDriverAllocatedMemory() const { return 0; }
  size_t getRecommendedMaxMemory() const { return 0; }
  std::pair<const void*, uint32_t> getSharedBufferPtr(const void* ptr) const { return {((const StandinBuffer*)ptr)->memory, 0}; }
  c10::Storage getHostAliasStorage(const c10::Storage& storage) const {
    return storage;
  }
  bool recordEvents(c10::ArrayRef<const void*> buffers) const { return false; }
  bool waitForEvents(c10::ArrayRef<const void*> buffers) const { return false; }
  mutable std::unordered_map<const void*, std::vector<int64_t>> shapes_;
  std::deque<StandinBuffer*> freed_;
};
} // namespace
// Older trees have the first, newer ones the second.
IMPSAllocator* getIMPSAllocator(bool shared) {
  static auto* const one = new Interface;
  return one;
}
IMPSAllocator* getIMPSAllocator() {
  return getIMPSAllocator(true);
}
} // namespace at::mps

namespace at::native::mps {
Tensor& mps_copy_(Tensor& to, const Tensor& from, bool non_blocking) {
  return to.copy_(from, non_blocking);
}
} // namespace at::native::mps
