/* The blocks runtime: copying ^{} from the stack to the heap, with what they captured.
 *
 * Written against the published block ABI. Captured Objective-C objects are not retained: the stand-in device runs a
 * block before the function that wrote it returns. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { IS_FREED = 1 << 24, HAS_HELPERS = 1 << 25, IS_GLOBAL = 1 << 28, COUNT_MASK = 0xfffe, COUNT_ONE = 2 };
enum { FIELD_IS_BLOCK = 7, FIELD_IS_BYREF = 8, FIELD_KIND = 15 };

typedef struct descriptor {
  unsigned long reserved, size;
  void (*copy)(void* to, const void* from);
  void (*dispose)(const void* block);
} descriptor;
typedef struct block {
  void* isa;
  int32_t flags, reserved;
  void (*invoke)(void);
  descriptor* descriptor;
} block;
/* A variable marked __block. */
typedef struct byref {
  void* isa;
  struct byref* forwarding;
  int32_t flags;
  uint32_t size;
  void (*keep)(struct byref* to, struct byref* from);
  void (*destroy)(struct byref* one);
} byref;

void* _NSConcreteStackBlock[32];
void* _NSConcreteGlobalBlock[32];
static void* heap_block[32];

void* _Block_copy(const void* given) {
  block* from = (block*)given;
  if (!from || from->flags & IS_GLOBAL)
    return from;
  if (from->flags & IS_FREED) {
    from->flags += COUNT_ONE;
    return from;
  }
  block* to = malloc(from->descriptor->size);
  memcpy(to, from, from->descriptor->size);
  to->isa = heap_block;
  to->flags = (to->flags & ~COUNT_MASK) | IS_FREED | COUNT_ONE;
  if (to->flags & HAS_HELPERS)
    from->descriptor->copy(to, from);
  return to;
}

void _Block_release(const void* given) {
  block* one = (block*)given;
  if (!one || !(one->flags & IS_FREED) || one->flags & IS_GLOBAL)
    return;
  one->flags -= COUNT_ONE;
  if (one->flags & COUNT_MASK)
    return;
  if (one->flags & HAS_HELPERS)
    one->descriptor->dispose(one);
  free(one);
}

static byref* copy_variable(byref* from) {
  from = from->forwarding;
  if (from->flags & IS_FREED) {
    from->flags += COUNT_ONE;
    return from;
  }
  byref* to = malloc(from->size);
  memcpy(to, from, from->size);
  to->forwarding = to;
  to->flags = (to->flags & ~COUNT_MASK) | IS_FREED | 2 * COUNT_ONE; /* held by the stack and by the block */
  from->forwarding = to;
  if (from->flags & HAS_HELPERS)
    from->keep(to, from);
  return to;
}

static void release_variable(byref* one) {
  one = one->forwarding;
  if (!(one->flags & IS_FREED))
    return;
  one->flags -= COUNT_ONE;
  if (one->flags & COUNT_MASK)
    return;
  if (one->flags & HAS_HELPERS)
    one->destroy(one);
  free(one);
}

void _Block_object_assign(void* to, const void* object, const int kind) {
  const void* kept = object;
  if ((kind & FIELD_KIND) == FIELD_IS_BYREF)
    kept = copy_variable((byref*)object);
  else if ((kind & FIELD_KIND) == FIELD_IS_BLOCK)
    kept = _Block_copy(object);
  *(const void**)to = kept;
}

void _Block_object_dispose(const void* object, const int kind) {
  if ((kind & FIELD_KIND) == FIELD_IS_BYREF)
    release_variable((byref*)object);
  else if ((kind & FIELD_KIND) == FIELD_IS_BLOCK)
    _Block_release(object);
}
