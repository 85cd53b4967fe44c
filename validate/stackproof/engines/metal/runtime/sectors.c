/* Counts the sectors that a simdgroup touches: what its lanes access together, in pieces of memory of 32 bytes.
 *
 * The executor runs thread after thread, so that which accesses are one instruction of a GPU is told afterwards: those
 * of the threads of a simdgroup from one place in the source, each thread's n-th from there. Lanes that skipped an
 * earlier access of a loop are then one off, which is exact enough where all lanes run the same loop. */
#include "runtime.h"

#define SECTOR_BYTES 32u
#define FIRST_SLOTS (1u << 14)

struct slot {
  u64 key;
  u32 stamp, value;
};

static struct slot* slots;
static u32 capacity, used, stamp = 1;

/* Bits that all depend on all bits of `x`. */
static u64 mixed(u64 x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

static struct slot* slot_of(u64 key) {
  u32 at = (u32)key & (capacity - 1);
  while (slots[at].stamp == stamp && slots[at].key != key)
    at = (at + 1) & (capacity - 1);
  return &slots[at];
}

static void grow(void) {
  struct slot* old = slots;
  u32 count = capacity;
  capacity = capacity ? 2 * capacity : FIRST_SLOTS;
  slots = calloc(capacity, sizeof *slots);
  if (!slots)
    abort();
  for (u32 i = 0; i < count; ++i)
    if (old[i].stamp == stamp)
      *slot_of(old[i].key) = old[i];
  free(old);
}

/* The value that belongs to a key, 0 the first time. */
static u32* value_of(u64 key) {
  if (2 * used >= capacity)
    grow();
  struct slot* found = slot_of(key);
  if (found->stamp != stamp) {
    found->key = key;
    found->stamp = stamp;
    found->value = 0;
    ++used;
  }
  return &found->value;
}

void metal_sectors_group(void) {
  ++stamp;
  used = 0;
}

u32 metal_new_sectors(u32 region, u64 offset, u32 size, u32 kind, u32 site) {
  const struct worker* w = &metal_worker;
  u64 place = (u64)site << 2 | kind;
  u32 again = (*value_of(mixed(place << 16 | w->current | 1ull << 63)))++;
  u64 instruction = mixed(mixed(place << 16 | w->current / LANES) ^ again);
  u32 fresh = 0;
  for (u64 sector = offset / SECTOR_BYTES; sector <= (offset + size - 1) / SECTOR_BYTES; ++sector) {
    u32* seen = value_of(mixed(instruction ^ mixed(sector << 8 | region)));
    fresh += !*seen;
    *seen = 1;
  }
  return fresh;
}
