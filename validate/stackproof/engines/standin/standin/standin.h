// What the stand-in device and Python say to each other. Mirrored by stackproof.host.interface.
#pragma once
#include <stdint.h>

enum { STANDIN_SLOTS = 31, STANDIN_NO_DTYPE = 255, STANDIN_RESOURCES = 1024 };
enum standin_kind { STANDIN_UNSET, STANDIN_BUFFER, STANDIN_BYTES, STANDIN_NIL };

// One entry of the argument table of an encoder, at the time of a dispatch.
struct standin_slot {
  uint64_t kind;
  uint64_t address;    // of the first byte that the kernel gets
  uint64_t available;  // bytes from there to the end of the buffer or of the bytes
  uint64_t offset;     // of that first byte in its buffer
  uint64_t buffer;     // address of the whole buffer
  uint64_t shadow;     // one byte per byte of the buffer, as the kernel detectors have it
  uint64_t dtype;      // c10::ScalarType of the tensor that the buffer was made for, or STANDIN_NO_DTYPE
  uint64_t stale;      // bound before the current pipeline state was set
};

// A buffer that kernels reach through an argument buffer.
struct standin_resource {
  uint64_t buffer;
  uint64_t bytes;
  uint64_t shadow;
  uint64_t writable;
};

struct standin_dispatch {
  const char* kernel;
  uint64_t by_groups;  // dispatchThreadgroups: whole threadgroups only
  uint64_t grid[3];    // threads
  uint64_t group[3];
  uint64_t threadgroup_memory[STANDIN_SLOTS];
  struct standin_slot slots[STANDIN_SLOTS];
  uint64_t resource_count;
  struct standin_resource resources[STANDIN_RESOURCES];
};

#ifdef __cplusplus
extern "C" {
#endif
// Runs a kernel; nonzero with a message where the dispatch is refused.
typedef int (*standin_run)(const struct standin_dispatch* dispatch, char* message, uint64_t room);
// Threads that a threadgroup of this kernel may have; 0 where the bundled library has no kernel of that name.
typedef int (*standin_find)(const char* kernel);
// Compiles a shader source; the number of its library, from 1 on, or 0 with a message.
typedef long (*standin_compile)(const char* source, char* message, uint64_t room);
// Something that is wrong but does not stop the call: a rule and a sentence.
typedef void (*standin_note)(const char* rule, const char* message);

// A call of an op: that it began in this thread, and how it ended.
enum standin_event { STANDIN_BEGUN, STANDIN_RETURNED, STANDIN_RAISED, STANDIN_ON_CPU };
typedef void (*standin_call)(const char* op, int event);

void standin_told_of_call(const char* op, int event);
void standin_connect(standin_run run, standin_find find, standin_note note, standin_call call,
                     standin_compile compile);
// What fresh memory is filled with: 0xff is NaN in every float format, 0x3f an ordinary number.
void standin_set_poison(uint8_t byte);
#ifdef __cplusplus
}
#endif
