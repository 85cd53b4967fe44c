/* Watches every memory access of an instrumented kernel.
 *
 * The compiler's thread sanitizer calls one function per access; these are our own. An access is looked up among the
 * regions of the dispatch (its tensors and constants, the threadgroup's memory) before it happens, so that a wild one
 * ends the thread instead of the process. A shadow byte per byte says what is addressable and defined; a cell per
 * granule remembers who accessed it last. Two accesses race if they are of different threads, touch the same granule,
 * one of them writes, not both are atomic, and no barrier that covers the memory lies between them. There is no
 * order between threadgroups at all. */
#include "runtime.h"

#define ARENA_REGION 0xfffffffeu
#define ARENA_GRANULE 2u

struct access {
  u32 group, epoch, passed, site;
  u16 thread;
  u8 present, atomic;
};

struct cell {
  struct access write, reads[2];
};

static u8 arena_shadow[ARENA_BYTES];
static struct region arena;
static u32 last_region;

static int inside(u64 at, u64 size, const void* begin, u64 bytes) {
  return at >= (u64)begin && at + size <= (u64)begin + bytes;
}

/* The fibers' stacks and what the executor itself hands to a kernel. */
static int is_private(u64 at, u64 size) {
  struct worker* w = &metal_worker;
  return inside(at, size, w->stacks, (u64)w->capacity * metal_options.stack_bytes) ||
      inside(at, size, w->fibers, w->capacity * sizeof *w->fibers) ||
      inside(at, size, w->own_arguments, (metal_options.argument_count + 1) * sizeof(u64)) ||
      inside(at, size, w->exchanges, (w->capacity + LANES - 1) / LANES * sizeof *w->exchanges);
}

#if defined(__ELF__)
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
/* Program-scope tables in `constant` lie in the library itself. */
static int is_table(u64 at, u64 size) {
  return inside(at, size, __ehdr_start, (u64)(_end - __ehdr_start));
}
#else
static int is_table(u64 at, u64 size) {
  (void)at, (void)size;
  return 0;
}
#endif

static struct region* find(u64 at, u32* number) {
  struct region* all = metal_options.regions;
  u32 n = metal_options.region_count;
  if (last_region < n && at >= all[last_region].begin && at < all[last_region].end) {
    *number = last_region;
    return &all[last_region];
  }
  if (at >= arena.begin && at < arena.end) {
    *number = ARENA_REGION;
    return &arena;
  }
  for (u32 i = 0; i < n; ++i)
    if (at >= all[i].begin && at < all[i].end) {
      last_region = *number = i;
      return &all[i];
    }
  return 0;
}

static void report_outside(u64 at, u64 size, int writes, u64 site) {
  struct report r = metal_report_here(REPORT_OUT_OF_BOUNDS, site);
  u64 best = ~0ull;
  for (u32 i = 0; i < metal_options.region_count; ++i) {
    const struct region* g = &metal_options.regions[i];
    u64 distance = at < g->begin ? g->begin - at : at >= g->end ? at - g->end + 1 : 0;
    if (distance < best) {
      best = distance;
      r.region = i;
      r.offset = (i64)(at - g->begin);
    }
  }
  r.size = (u32)size;
  r.writes = (u32)writes;
  metal_report(r);
}

static int ordered(const struct access* before, const struct access* now, int local) {
  if (before->group != now->group)
    return local; /* the threadgroup memory of another group is other memory */
  return before->thread == now->thread || before->epoch != now->epoch ||
      (before->thread / LANES == now->thread / LANES && before->passed != now->passed);
}

/* Threadgroup memory is told from the start of the variable. */
static i64 shown_offset(u32 number, u64 offset) {
  const struct worker* w = &metal_worker;
  for (u32 i = w->declared; number == ARENA_REGION && i > 0; --i)
    if (offset >= w->declarations[i - 1].offset)
      return (i64)(offset - w->declarations[i - 1].offset);
  return (i64)offset;
}

static void report_race(const struct access* before, const struct access* now, u32 number, u64 offset, u32 size, u32 writes) {
  struct report r = metal_report_here(REPORT_RACE, now->site);
  r.other_site = before->site;
  r.other_thread = before->thread;
  r.other_group = before->group;
  r.region = number;
  r.offset = shown_offset(number, offset);
  r.size = size;
  r.writes = writes;
  r.atomic = (u32)now->atomic | (u32)before->atomic << 1;
  metal_report(r);
}

static void watch_race(struct region* g, u32 number, u64 at, u32 size, int writes, int atomic, u32 site) {
  struct worker* w = &metal_worker;
  int local = number == ARENA_REGION;
  struct access now = {
      (u32)w->group, w->epoch[local], w->fibers[w->current].passed, site, (u16)w->current, 1, (u8)atomic};
  u64 first = (at - g->begin) / g->granule, last = (at + size - 1 - g->begin) / g->granule;
  if (!g->cells)
    g->cells = calloc((g->end - g->begin) / g->granule + 1, sizeof(struct cell));
  for (u64 i = first; i <= last; ++i) {
    struct cell* c = (struct cell*)g->cells + i;
    if (c->write.present && !(atomic && c->write.atomic) && !ordered(&c->write, &now, local))
      report_race(&c->write, &now, number, i * g->granule, size, (u32)writes | 2);
    if (!writes) {
      struct access* slot = &c->reads[0];
      if (slot->present && slot->thread != now.thread && !ordered(slot, &now, local))
        slot = &c->reads[1];
      *slot = now;
      continue;
    }
    for (int k = 0; k < 2; ++k) {
      struct access* r = &c->reads[k];
      if (r->present && !(atomic && r->atomic) && !ordered(r, &now, local))
        report_race(r, &now, number, i * g->granule, size, 1);
      r->present = 0;
    }
    c->write = now;
  }
}

static void count(const struct region* g, u32 number, u64 at, u32 size, int reads, int writes, int atomic, u32 site) {
  struct traffic* t = &metal_options.traffic;
  if (!(g->flags & REGION_COUNTED))
    return;
  /* From a place that the sectors of memory begin at, wherever this run's copy lies. */
  u64 offset = at - (g->begin & ~31ull);
  if (atomic) {
    t->atomics += 1;
    t->atomic_sectors += metal_new_sectors(number, offset, size, 2, site);
  } else {
    t->loads += (u64)reads;
    t->stores += (u64)writes;
    t->load_sectors += reads ? metal_new_sectors(number, offset, size, 0, site) : 0;
    t->store_sectors += writes ? metal_new_sectors(number, offset, size, 1, site) : 0;
  }
  t->loaded_bytes += reads ? size : 0;
  t->stored_bytes += writes ? size : 0;
}

/* A vector is read whole on a GPU: what is not a multiple of its alignment gives other bytes, or a fault. */
static void report_misaligned(u64 alignment, int atomic, u64 site) {
  struct report r = metal_report_here(REPORT_UNDEFINED, site);
  char digits[8], *at = r.text;
  int n = 0;
  const char* what = atomic ? "misaligned use of a pointer to an atomic, which needs a multiple of "
                            : "misaligned use of a pointer, which needs a multiple of ";
  while (*what)
    *at++ = *what++;
  for (; alignment; alignment /= 10)
    digits[n++] = (char)('0' + alignment % 10);
  while (n)
    *at++ = digits[--n];
  for (what = " bytes"; *what;)
    *at++ = *what++;
  *at = 0;
  metal_report(r);
}

static void watch(u64 at, u32 size, int reads, int writes, int atomic, u32 told) {
  u32 detectors = metal_options.detectors, number = 0, site = told & ((1u << ALIGNMENT_SHIFT) - 1);
  u64 alignment = atomic ? size : 1ull << (told >> ALIGNMENT_SHIFT);
  if (!size || !metal_worker.running || is_private(at, size))
    return;
  if (metal_options.most_accesses && --metal_options.most_accesses == 0) {
    metal_options.most_accesses = 1;
    metal_kill_thread();
  }
  struct region* g = find(at, &number);
  if (!g && !writes && is_table(at, size))
    return;
  if (!g || at + size > g->end) {
    /* Never let it happen: where bounds are not looked for, the thread ends silently rather than with the process. */
    if (detectors & DETECT_BOUNDS)
      report_outside(at, size, writes, site);
    metal_kill_thread();
  }
  if (at % alignment && (detectors & (DETECT_BOUNDS | DETECT_UNDEFINED)))
    report_misaligned(alignment, atomic, site);
  u64 offset = at - g->begin;
  int gap = 0, undefined = 0;
  for (u32 i = 0; g->shadow && i < size; ++i) {
    u8* s = &g->shadow[offset + i];
    gap |= !(*s & SHADOW_ADDRESSABLE);
    undefined |= !(*s & SHADOW_DEFINED);
    if (writes)
      *s |= SHADOW_DEFINED;
  }
  struct report r = metal_report_here(0, site);
  r.region = number;
  r.offset = shown_offset(number, offset);
  r.size = size;
  r.writes = (u32)writes;
  if (gap) {
    r.kind = REPORT_OUT_OF_BOUNDS;
    if (detectors & DETECT_BOUNDS)
      metal_report(r);
    if (number == ARENA_REGION)
      metal_kill_thread();
  } else if (undefined && reads && (detectors & DETECT_UNINITIALISED)) {
    r.kind = REPORT_UNINITIALISED;
    metal_report(r);
  }
  if (writes && !(g->flags & REGION_WRITABLE)) {
    r.kind = REPORT_READ_ONLY_WRITE;
    if (detectors & DETECT_BOUNDS)
      metal_report(r);
  }
  if (detectors & COUNT_TRAFFIC)
    count(g, number, at, size, reads, writes, atomic, site);
  if (detectors & DETECT_RACE)
    watch_race(g, number, at, size, writes, atomic, site);
}

void metal_detectors_begin(void) {
  struct worker* w = &metal_worker;
  arena.begin = (u64)w->arena;
  arena.end = arena.begin + ARENA_BYTES;
  arena.shadow = arena_shadow;
  arena.granule = ARENA_GRANULE;
  arena.flags = REGION_WRITABLE;
  last_region = 0;
}

void metal_detectors_group(u32 threads) {
  (void)threads;
  memset(arena_shadow, 0, ARENA_BYTES);
  metal_sectors_group();
}

void metal_detectors_threadgroup(u64 offset, u64 size) {
  memset(arena_shadow + offset, SHADOW_ADDRESSABLE, size);
}

void metal_detectors_end(void) {
  for (u32 i = 0; i < metal_options.region_count; ++i) {
    free(metal_options.regions[i].cells);
    metal_options.regions[i].cells = 0;
  }
  free(arena.cells);
  arena.cells = 0;
}

#define ACCESS(BYTES)                                                                                      \
  void __tsan_read##BYTES(void* at, u32 site) { watch((u64)at, BYTES, 1, 0, 0, site); }                    \
  void __tsan_write##BYTES(void* at, u32 site) { watch((u64)at, BYTES, 0, 1, 0, site); }                   \
  void __tsan_unaligned_read##BYTES(void* at, u32 site) { watch((u64)at, BYTES, 1, 0, 0, site); }          \
  void __tsan_unaligned_write##BYTES(void* at, u32 site) { watch((u64)at, BYTES, 0, 1, 0, site); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_init(void) {}

void* __tsan_memcpy(void* to, const void* from, unsigned long size, u32 site) {
  watch((u64)from, (u32)size, 1, 0, 0, site);
  watch((u64)to, (u32)size, 0, 1, 0, site);
  return memcpy(to, from, size);
}
void* __tsan_memmove(void* to, const void* from, unsigned long size, u32 site) {
  watch((u64)from, (u32)size, 1, 0, 0, site);
  watch((u64)to, (u32)size, 0, 1, 0, site);
  return memmove(to, from, size);
}
void* __tsan_memset(void* to, int value, unsigned long size, u32 site) {
  watch((u64)to, (u32)size, 0, 1, 0, site);
  return memset(to, value, size);
}

void __metal_host_atomic(const volatile char* at, u32 size, u32 kind, u32 site) {
  watch((u64)at, size, kind & 1, (kind >> 1) & 1, 1, site);
}

/* For a front end that writes its own calls. `kind`: 1 read, 2 write. */
void __metal_host_access(const void* at, u32 size, u32 kind, u32 site) {
  watch((u64)at, size, kind & 1, (kind >> 1) & 1, 0, site);
}
