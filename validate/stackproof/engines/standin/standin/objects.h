// The Metal objects of the stand-in device. All memory is host memory and every command runs at once.
#pragma once
#include <Metal/Metal.h>
#include <array>
#include <cstring>
#include <string>
#include <vector>
#include "standin.h"

namespace standin {

struct Callbacks {
  standin_run run = nullptr;
  standin_find find = nullptr;
  standin_note note = nullptr;
  standin_call call = nullptr;
  standin_compile compile = nullptr;
};
Callbacks& callbacks();
void note(const char* rule, const std::string& message);

// How many queue blocks are running in this thread. A real queue runs them on a thread of its own, and only there may
// commands be encoded.
extern thread_local int queue_depth;

// What is bound by value, aligned for every type of Metal.
class Bytes {
 public:
  Bytes() = default;
  Bytes(const void* first, size_t length) : blocks_((length + sizeof(Block) - 1) / sizeof(Block)), length_(length) {
    std::memcpy(blocks_.data(), first, length);
  }
  const void* data() const {
    return blocks_.data();
  }
  size_t size() const {
    return length_;
  }

 private:
  struct alignas(256) Block {
    uint8_t bytes[256];
  };
  std::vector<Block> blocks_;
  size_t length_ = 0;
};

// A binding of the argument table. Real encoders keep it until it is overwritten, also across pipeline states.
struct Binding {
  standin_kind kind = STANDIN_UNSET;
  id<MTLBuffer> buffer = nil;
  NSUInteger offset = 0;
  Bytes bytes;
  uint64_t set_under_state = 0;
};

} // namespace standin

// Storage between guard bands; every byte has a shadow byte (addressable, defined).
@interface StandinBuffer : NSObject <MTLBuffer> {
 @public
  uint8_t* memory;
  uint8_t* shadow;
  NSUInteger bytes;
  uint64_t dtype;
  BOOL vast;  // only mapped: zeros, nothing is known of what is defined, and the host never reads or writes all of it
}
+ (StandinBuffer*)withLength:(NSUInteger)length;
- (BOOL)guardsAreIntact;
- (void)markDefined;
@end

@interface StandinFunction : NSObject <MTLFunction>
@end

@interface StandinMetalDevice : NSObject <MTLDevice>
@end

@interface StandinArgumentEncoder : NSObject <MTLArgumentEncoder> {
 @public
  StandinBuffer* target;
  NSUInteger start;
}
@end

@interface StandinPipelineState : NSObject <MTLComputePipelineState> {
 @public
  std::string* kernel;
}
+ (StandinPipelineState*)withKernel:(const std::string&)kernel;
@end

@interface StandinEncoder : NSObject <MTLComputeCommandEncoder> {
 @public
  StandinPipelineState* state;
  uint64_t states_set;
  std::array<standin::Binding, STANDIN_SLOTS>* table;
  std::array<uint64_t, STANDIN_SLOTS>* threadgroup_memory;
  std::vector<standin_resource>* resources;
}
@end
