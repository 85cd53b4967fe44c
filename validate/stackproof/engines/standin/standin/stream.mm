// at::mps: one stream whose queue runs blocks at once, a device without Metal, a profiler that measures nothing.
#include <ATen/mps/MPSDevice.h>
#include <ATen/mps/MPSProfiler.h>
#include <ATen/mps/MPSStream.h>
#include <c10/util/Exception.h>

#include "objects.h"

namespace {
struct InsideQueue {
  InsideQueue() {
    ++standin::queue_depth;
  }
  ~InsideQueue() {
    --standin::queue_depth;
  }
};
} // namespace

extern "C" {
dispatch_queue_t dispatch_queue_create(const char* label, void* attributes) {
  return reinterpret_cast<dispatch_queue_t>(1);
}
void dispatch_release(dispatch_queue_t queue) {}
void dispatch_sync(dispatch_queue_t queue, dispatch_block_t block) {
  InsideQueue inside;
  block();
}
void dispatch_async(dispatch_queue_t queue, dispatch_block_t block) {
  dispatch_sync(queue, block);
}
}

namespace at::mps {

void dispatch_sync_with_rethrow(dispatch_queue_t queue, void (^block)()) {
  InsideQueue inside;
  try {
    block();
  } catch (const std::exception& error) {
    // The stand-in's own refusals are reported where they are made.
    if (std::string_view(error.what()).find("stand-in device: ") == std::string_view::npos) {
      const std::string_view text(error.what());
      standin::note("check-inside-block",
                    "an error was raised inside the stream's queue block: " + std::string(text.substr(0, text.find('\n'))));
    }
    throw;
  }
}

MPSStream::MPSStream(Stream stream) : _stream(stream) {
  _serialQueue = dispatch_queue_create("stand-in", nullptr);
}
MPSStream::~MPSStream() = default;
MTLComputeCommandEncoder_t MPSStream::commandEncoder() {
  if (standin::queue_depth == 0) {
    standin::note("encoder-outside-block", "the stream's encoder was taken outside of its queue block");
  }
  if (!_commandEncoder) {
    _commandEncoder = [StandinEncoder new];
  }
  return _commandEncoder;
}
MPSCommandBuffer* MPSStream::commandBuffer() {
  TORCH_CHECK(false, "stand-in device: there are no command buffers, only the stream's compute encoder");
}
#ifdef STANDIN_STREAM_HAS_DEVICE
MTLDevice_t MPSStream::device() const {
  return nil;
}
#endif
void MPSStream::endKernelCoalescing() {
  [_commandEncoder release];
  _commandEncoder = nil;
}
void MPSStream::synchronize(SyncType kind) {
  if (kind != SyncType::NONE) {
    endKernelCoalescing();
  }
}
MPSStream* getCurrentMPSStream() {
  static auto* const stream = new MPSStream(Stream(Stream::DEFAULT, Device(kMPS, 0)));
  return stream;
}
MPSStream* getDefaultMPSStream() {
  return getCurrentMPSStream();
}

MPSDevice::MPSDevice() : _mtl_device([StandinMetalDevice new]) {}
MPSDevice::~MPSDevice() = default;
MPSDevice* MPSDevice::getInstance() {
  static auto* const device = new MPSDevice;
  return device;
}
bool MPSDevice::isMacOS13Plus(MacOSVersion version) const {
  return true;
}
bool is_available() {
  return true;
}
// One name up to 2.13, the other from 2.14 on.
bool is_macos_13_or_newer(MacOSVersion version) {
  return true;
}
bool is_macos_at_least(MacOSVersion version) {
  return true;
}

namespace Profiler {
MPSProfiler::MPSProfiler() = default;
MPSProfiler::~MPSProfiler() = default;
uint64_t MPSProfiler::beginProfileKernel(const void* handle, const std::string& key, bool is_graph) {
  return 0;
}
uint64_t MPSProfiler::beginProfileKernel(const void* handle, const std::string& name, const TensorList& tensors) {
  return 0;
}
void MPSProfiler::endProfileKernel(const void* handle, SyncType kind) {}
const std::string BaseInfo::toString(double gpu_time, double scheduling_time) const {
  return {};
}
const std::string OperationInfo::toString(double gpu_time, double scheduling_time) const {
  return {};
}
const std::string CpuFbInfo::toString(double gpu_time, double scheduling_time) const {
  return {};
}
} // namespace Profiler

Profiler::MPSProfiler& getMPSProfiler() {
  static auto* const profiler = new Profiler::MPSProfiler;
  return *profiler;
}

} // namespace at::mps

namespace at::native::mps {
// Its namespace up to 2.6.
void dispatch_sync_with_rethrow(dispatch_queue_t queue, void (^block)()) {
  at::mps::dispatch_sync_with_rethrow(queue, block);
}
} // namespace at::native::mps
