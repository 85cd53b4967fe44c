// Foundation and Metal objects: buffers with guard bands, and an encoder that checks and runs each dispatch at once.
#include "objects.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

extern "C" id class_createInstance(Class of, size_t extra);

namespace standin {
Callbacks& callbacks() {
  static Callbacks connected;
  return connected;
}
void note(const char* rule, const std::string& message) {
  if (callbacks().note) {
    callbacks().note(rule, message.c_str());
  }
}
thread_local int queue_depth = 0;
static std::atomic<uint8_t> poison{0xff};
} // namespace standin

extern "C" {
void standin_told_of_call(const char* op, int event) {
  if (standin::callbacks().call) {
    standin::callbacks().call(op, event);
  }
}
void standin_connect(standin_run run, standin_find find, standin_note note, standin_call call,
                     standin_compile compile) {
  standin::callbacks() = {run, find, note, call, compile};
}
void standin_set_poison(uint8_t byte) {
  standin::poison = byte;
}
}

@implementation NSObject
+ (instancetype)alloc {
  NSObject* made = class_createInstance(self, 0);
  made->references = 1;
  return made;
}
+ (instancetype)new {
  return [[self alloc] init];
}
+ (Class)class {
  return self;
}
- (instancetype)init {
  return self;
}
- (Class)class {
  return isa;
}
- (instancetype)retain {
  ++references;
  return self;
}
- (oneway void)release {
  if (--references == 0) {
    [self dealloc];
  }
}
// There are no pools: what is autoreleased lives until the process ends, which is soon.
- (instancetype)autorelease {
  return self;
}
- (NSUInteger)retainCount {
  return references;
}
- (id)copy {
  return [self retain];
}
- (void)dealloc {
  free(self);
}
@end

@implementation NSAutoreleasePool
- (void)drain {
  [self release];
}
@end

// Strings that are made while running live for ever: few, and short.
@interface StandinString : NSString {
 @public
  char* text;
}
@end
@implementation NSString
+ (instancetype)stringWithUTF8String:(const char*)text {
  StandinString* made = [StandinString new];
  made->text = strdup(text);
  return made;
}
+ (instancetype)stringWithCString:(const char*)text encoding:(NSStringEncoding)encoding {
  return [NSString stringWithUTF8String:text];
}
+ (instancetype)stringWithFormat:(NSString*)format, ... {
  return [NSString stringWithUTF8String:[format UTF8String]];
}
- (const char*)UTF8String {
  return "";
}
- (NSUInteger)length {
  return strlen([self UTF8String]);
}
- (BOOL)isEqualToString:(NSString*)other {
  return !strcmp([self UTF8String], [other UTF8String]);
}
@end
@implementation StandinString
- (const char*)UTF8String {
  return text;
}
@end
// The compiler lays out {isa, characters, length}: there is no room for NSObject's count of references.
@implementation NSConstantString
- (const char*)UTF8String {
  return ((const char**)self)[1];
}
- (instancetype)retain {
  return self;
}
- (oneway void)release {
}
@end

static constexpr size_t kGuard = 4096;
static constexpr size_t kVast = 1ull << 31;
static constexpr uint8_t kGuardByte = 0xa5;
enum { SHADOW_ADDRESSABLE = 1, SHADOW_DEFINED = 2 };

@implementation StandinBuffer
+ (StandinBuffer*)withLength:(NSUInteger)length {
  StandinBuffer* made = [StandinBuffer new];
  const size_t room = (length + 2 * kGuard + 255) / 256 * 256;
  made->vast = length > kVast;
  if (made->vast) {
    void* mapped = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK_WITH(OutOfMemoryError, mapped != MAP_FAILED, "stand-in device: no room for a buffer of ", length, " bytes");
    made->memory = static_cast<uint8_t*>(mapped) + kGuard;
    made->bytes = length;
    made->dtype = STANDIN_NO_DTYPE;
    std::memset(made->memory - kGuard, kGuardByte, kGuard);
    std::memset(made->memory + length, kGuardByte, kGuard);
    return made;
  }
  auto* whole = static_cast<uint8_t*>(std::aligned_alloc(256, room));
  TORCH_CHECK_WITH(OutOfMemoryError, whole, "stand-in device: no memory for a buffer of ", length, " bytes");
  std::memset(whole, kGuardByte, room);
  made->memory = whole + kGuard;
  made->bytes = length;
  made->dtype = STANDIN_NO_DTYPE;
  std::memset(made->memory, standin::poison, length);
  made->shadow = static_cast<uint8_t*>(std::malloc(length + 1));
  std::memset(made->shadow, SHADOW_ADDRESSABLE, length);
  return made;
}
- (NSUInteger)length {
  return bytes;
}
- (void*)contents {
  return memory;
}
- (uint64_t)gpuAddress {
  return reinterpret_cast<uint64_t>(memory);
}
- (id<MTLDevice>)device {
  return nil;
}
- (BOOL)guardsAreIntact {
  for (size_t i = 0; i < kGuard; ++i) {
    if (memory[-1 - static_cast<ptrdiff_t>(i)] != kGuardByte || memory[bytes + i] != kGuardByte) {
      return NO;
    }
  }
  return YES;
}
- (void)markDefined {
  if (vast) {
    return;
  }
  std::memset(shadow, SHADOW_ADDRESSABLE | SHADOW_DEFINED, bytes);
}
- (void)dealloc {
  if (![self guardsAreIntact]) {
    standin::note("out-of-bounds", fmt::format("something wrote outside a buffer of {} bytes", bytes));
  }
  if (vast) {
    munmap(memory - kGuard, (bytes + 2 * kGuard + 255) / 256 * 256);
  } else {
    std::free(memory - kGuard);
    std::free(shadow);
  }
  [super dealloc];
}
@end

// An argument buffer is a table of addresses, one for each [[id(n)]]: structs of device pointers only.
enum { ARGUMENT_IDS = 1024 };
@implementation StandinArgumentEncoder
- (NSUInteger)encodedLength {
  return ARGUMENT_IDS * sizeof(uint64_t);
}
- (void)setArgumentBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset {
  target = (StandinBuffer*)buffer;
  start = offset;
  std::memset(target->memory + offset, 0, target->bytes - offset);
  [target markDefined];
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  TORCH_CHECK(target && index < ARGUMENT_IDS, "stand-in device: no argument buffer for id ", index);
  auto* bound = (StandinBuffer*)buffer;
  const uint64_t address = bound ? reinterpret_cast<uint64_t>(bound->memory) + offset : 0;
  std::memcpy(target->memory + start + index * sizeof address, &address, sizeof address);
  if (bound) {
    [bound markDefined];
  }
}
@end

@implementation StandinFunction
- (NSString*)name {
  return nil;
}
- (id<MTLArgumentEncoder>)newArgumentEncoderWithBufferIndex:(NSUInteger)index {
  return [StandinArgumentEncoder new];
}
@end

@implementation StandinMetalDevice
- (NSString*)name {
  return @"stand-in";
}
- (MTLSize)maxThreadsPerThreadgroup {
  return MTLSizeMake(1024, 1024, 1024);
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return 32768;
}
- (NSUInteger)maxBufferLength {
  return 1ul << 34;
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options {
  return [StandinBuffer withLength:length];
}
- (id<MTLBuffer>)newBufferWithBytes:(const void*)bytes length:(NSUInteger)length options:(MTLResourceOptions)options {
  StandinBuffer* made = [StandinBuffer withLength:length];
  std::memcpy(made->memory, bytes, length);
  [made markDefined];
  return made;
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source options:(MTLCompileOptions*)options error:(NSError**)error {
  return nil;
}
- (id<MTLComputePipelineState>)newComputePipelineStateWithFunction:(id<MTLFunction>)function error:(NSError**)error {
  return nil;
}
@end

@implementation StandinPipelineState
+ (StandinPipelineState*)withKernel:(const std::string&)name {
  StandinPipelineState* made = [StandinPipelineState new];
  made->kernel = new std::string(name);
  return made;
}
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return (NSUInteger)standin::callbacks().find(kernel->c_str());
}
- (NSUInteger)threadExecutionWidth {
  return 32;
}
- (NSUInteger)staticThreadgroupMemoryLength {
  return 0;
}
@end

static void check_inside_queue(const char* what) {
  if (standin::queue_depth == 0) {
    standin::note("encoded-outside-block", fmt::format("{} outside of the stream's queue block", what));
  }
}

static standin::Binding& slot(StandinEncoder* encoder, NSUInteger index) {
  TORCH_CHECK(index < STANDIN_SLOTS, "stand-in device: argument index ", index, " is beyond Metal's 31 slots");
  return encoder->table->at(index);
}

// As a real encoder does, the table keeps its buffers alive.
static void bind(StandinEncoder* encoder, NSUInteger index, standin::Binding binding) {
  auto& bound = slot(encoder, index);
  [binding.buffer retain];
  [bound.buffer release];
  bound = std::move(binding);
}

static standin_slot describe(const standin::Binding& binding, uint64_t states_set) {
  standin_slot told{};
  told.kind = binding.kind;
  told.dtype = STANDIN_NO_DTYPE;
  told.stale = binding.kind != STANDIN_UNSET && binding.set_under_state != states_set;
  if (binding.kind == STANDIN_BUFFER) {
    auto* buffer = (StandinBuffer*)binding.buffer;
    told.address = reinterpret_cast<uint64_t>(buffer->memory) + binding.offset;
    told.available = buffer->bytes - binding.offset;
    told.offset = binding.offset;
    told.buffer = reinterpret_cast<uint64_t>(buffer->memory);
    told.shadow = reinterpret_cast<uint64_t>(buffer->shadow);
    told.dtype = buffer->dtype;
  } else if (binding.kind == STANDIN_BYTES) {
    told.address = told.buffer = reinterpret_cast<uint64_t>(binding.bytes.data());
    told.available = binding.bytes.size();
  }
  return told;
}

@implementation StandinEncoder
- (instancetype)init {
  table = new std::array<standin::Binding, STANDIN_SLOTS>;
  threadgroup_memory = new std::array<uint64_t, STANDIN_SLOTS>{};
  resources = new std::vector<standin_resource>;
  return self;
}
- (void)endEncoding {
}
- (void)pushDebugGroup:(NSString*)name {
}
- (void)popDebugGroup {
}
- (void)insertDebugSignpost:(NSString*)name {
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)given {
  check_inside_queue("a pipeline state was set");
  state = (StandinPipelineState*)given;
  ++states_set;
}
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  check_inside_queue("a buffer was bound");
  TORCH_CHECK(!buffer || offset <= [buffer length], "stand-in device: buffer ", index, " is bound at byte ", offset,
              " of only ", buffer ? [buffer length] : 0);
  bind(self, index, {buffer ? STANDIN_BUFFER : STANDIN_NIL, buffer, offset, {}, states_set});
}
- (void)setBufferOffset:(NSUInteger)offset atIndex:(NSUInteger)index {
  auto& bound = slot(self, index);
  TORCH_CHECK(bound.kind == STANDIN_BUFFER, "stand-in device: an offset was set for slot ", index,
              ", which has no buffer");
  [self setBuffer:bound.buffer offset:offset atIndex:index];
}
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index {
  check_inside_queue("bytes were bound");
  if (!length) {
    standin::note("empty-bytes", fmt::format("no bytes were bound at index {}", index));
  }
  TORCH_CHECK(length <= 4096, "stand-in device: ", length, " bytes at index ", index,
              ", but Metal takes 1 to 4096");
  bind(self, index, {STANDIN_BYTES, nil, 0, standin::Bytes(bytes, length), states_set});
}
- (void)setThreadgroupMemoryLength:(NSUInteger)length atIndex:(NSUInteger)index {
  TORCH_CHECK(index < STANDIN_SLOTS, "stand-in device: threadgroup memory index ", index, " is out of range");
  threadgroup_memory->at(index) = length;
}
// They are those of the next dispatch.
- (void)useResource:(id<MTLResource>)resource usage:(MTLResourceUsage)usage {
  const auto buffer = (StandinBuffer*)resource;
  const auto begin = (uint64_t)buffer->memory;
  for (auto& one : *resources) {
    if (one.buffer == begin) {
      one.writable |= (usage & MTLResourceUsageWrite) != 0;
      return;
    }
  }
  TORCH_CHECK(resources->size() < STANDIN_RESOURCES, "stand-in device: more resources than it has room for");
  resources->push_back({begin, buffer->bytes, (uint64_t)buffer->shadow, (usage & MTLResourceUsageWrite) != 0});
}
- (void)memoryBarrierWithScope:(MTLBarrierScope)scope {
}
- (void)run:(MTLSize)threads group:(MTLSize)group byGroups:(BOOL)byGroups {
  check_inside_queue("a dispatch was encoded");
  TORCH_CHECK(state, "stand-in device: a dispatch without a pipeline state");
  standin_dispatch told{};
  told.kernel = state->kernel->c_str();
  told.by_groups = byGroups;
  const NSUInteger grid[] = {threads.width, threads.height, threads.depth};
  const NSUInteger groups[] = {group.width, group.height, group.depth};
  std::copy(grid, grid + 3, told.grid);
  std::copy(groups, groups + 3, told.group);
  for (unsigned i = 0; i < STANDIN_SLOTS; ++i) {
    told.slots[i] = describe(table->at(i), states_set);
    told.threadgroup_memory[i] = threadgroup_memory->at(i);
  }
  told.resource_count = resources->size();
  std::copy(resources->begin(), resources->end(), told.resources);
  resources->clear();
  char message[2048] = "nothing is connected";
  const int refused = standin::callbacks().run ? standin::callbacks().run(&told, message, sizeof message) : 1;
  TORCH_CHECK(!refused, "stand-in device: ", message);
  for (unsigned i = 0; i < STANDIN_SLOTS; ++i) {
    const auto& bound = table->at(i);
    if (bound.kind == STANDIN_BUFFER && ![(StandinBuffer*)bound.buffer guardsAreIntact]) {
      TORCH_CHECK(false, "stand-in device: ", told.kernel, " wrote outside the buffer at index ", i);
    }
  }
}
- (void)dispatchThreads:(MTLSize)threads threadsPerThreadgroup:(MTLSize)group {
  [self run:threads group:group byGroups:NO];
}
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)group {
  [self run:MTLSizeMake(groups.width * group.width, groups.height * group.height, groups.depth * group.depth)
           group:group
        byGroups:YES];
}
@end
