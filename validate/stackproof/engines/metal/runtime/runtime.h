/* Shared by the executor and the detectors. Freestanding: the few libc functions used are declared here, so that the
 * files compile with any Clang without system headers. */
#ifndef STACKPROOF_METAL_RUNTIME_H
#define STACKPROOF_METAL_RUNTIME_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

void* malloc(unsigned long);
void* calloc(unsigned long, unsigned long);
void free(void*);
void* memset(void*, int, unsigned long);
void* memmove(void*, const void*, unsigned long);
void* memcpy(void*, const void*, unsigned long);
void abort(void) __attribute__((noreturn));

#define LANES 32
#define ATTRIBUTES 17
#define EXCHANGE_BYTES 64
#define ARENA_BYTES (1u << 18)
#define ARENA_GAP 256u
#define DECLARATIONS 64
/* Metal Feature Set Tables: the most that one threadgroup may have, whatever the GPU. */
#define THREADGROUP_BYTES 32768u

/* Order of stackproof.metal.rewrite.ATTRIBUTE_SLOTS. */
enum attribute {
  THREAD_POSITION_IN_GRID,
  THREADGROUP_POSITION_IN_GRID,
  THREAD_POSITION_IN_THREADGROUP,
  THREADS_PER_THREADGROUP,
  DISPATCH_THREADS_PER_THREADGROUP,
  THREADGROUPS_PER_GRID,
  THREADS_PER_GRID,
  GRID_ORIGIN,
  THREAD_INDEX_IN_THREADGROUP,
  THREAD_INDEX_IN_SIMDGROUP,
  SIMDGROUP_INDEX_IN_THREADGROUP,
  SIMDGROUPS_PER_THREADGROUP,
  THREADS_PER_SIMDGROUP,
  DISPATCH_SIMDGROUPS_PER_THREADGROUP,
  THREAD_INDEX_IN_QUADGROUP,
  QUADGROUP_INDEX_IN_THREADGROUP,
  QUADGROUPS_PER_THREADGROUP,
};

struct frame {
  u64 arguments, attributes;
};
typedef void (*entry_function)(struct frame);

enum state { FRESH, READY, AT_BARRIER, AT_EXCHANGE, FINISHED };

struct fiber {
  void* stack_pointer;
  char* stack;
  enum state state;
  u32 killed;      /* ended by a detector: others must not wait for it */
  u64 site;        /* where it waits */
  u32 flags;       /* mem_flags of the barrier it waits at */
  u32 passed;      /* simdgroup synchronisations so far */
  u32 size;        /* bytes handed to the exchange */
  u32 together;    /* neighbours of which all are to come to it; 0: whoever comes */
  char value[EXCHANGE_BYTES];
  u32 attributes[ATTRIBUTES][3];
};

struct exchange {
  u64 active;
  char table[2][LANES * EXCHANGE_BYTES];
  u32 side;
};

struct declaration {
  u32 id;
  u64 size, offset;
};

/* What one operating-system thread works with: one threadgroup at a time. */
struct worker {
  struct fiber* fibers;
  u32* order;
  u32 capacity, threads, current;
  void* main_stack_pointer;
  char* stacks;        /* one block; stack i belongs to whoever holds it */
  char** spare;
  u32 spares;
  struct exchange* exchanges;
  char* arena;
  u64 arena_used;
  struct declaration declarations[DECLARATIONS];
  u32 declared;
  u64 group;           /* linear index of the threadgroup */
  u32 epoch[2];        /* barriers passed: for device memory, for threadgroup memory */
  u64 random;
  u32 shape[3];        /* of the last group, whose attributes the fibers still hold */
  u32 running;         /* a fiber is: code called from outside is not watched */
  entry_function entry;
  const u64* arguments;
  u64* own_arguments;  /* arguments with this group's threadgroup pointers */
};

enum report_kind {
  REPORT_BARRIER_DIVERGENCE = 1,
  REPORT_OUT_OF_BOUNDS,
  REPORT_READ_ONLY_WRITE,
  REPORT_RACE,
  REPORT_UNINITIALISED,
  REPORT_UNDEFINED,
  REPORT_INACTIVE_LANE,
  REPORT_LIMIT,
  REPORT_SIMDGROUP_DIVERGENCE,
};

/* Mirrored by stackproof.metal.native.RawReport. */
struct report {
  u32 kind, size;
  u64 site, other_site;
  u64 thread, other_thread, group, other_group; /* linear indices; ~0 where unknown */
  i64 offset;                                   /* bytes from the start of the region */
  u32 region, writes;                           /* region ~0: none; bit 0: this access writes, bit 1: the other */
  u32 atomic, count;                            /* like writes; how often this place was seen */
  char text[160];
};

#define SHADOW_ADDRESSABLE 1
#define SHADOW_DEFINED 2
#define REGION_WRITABLE 1
#define REGION_COUNTED 2

/* Mirrored by stackproof.metal.native.RawRegion. */
struct region {
  u64 begin, end;
  u8* shadow;   /* one byte per byte, or null: everything addressable and defined */
  u32 granule;  /* bytes per race cell */
  u32 flags;
  void* cells;  /* made on demand */
};

/* A place in the high bits of which an access tells its alignment, see stackproof/metal/sites.py. */
enum { ALIGNMENT_SHIFT = 24 };

enum detector { DETECT_BOUNDS = 1, DETECT_RACE = 2, DETECT_UNINITIALISED = 4, DETECT_UNDEFINED = 8, COUNT_TRAFFIC = 16, DETECT_DIVERGENCE = 32 };

struct traffic {
  u64 loads, stores, atomics, loaded_bytes, stored_bytes;
  u64 load_sectors, store_sectors, atomic_sectors; /* see sectors.c */
};

struct options {
  u32 detectors, permute;
  u64 seed;
  struct region* regions;
  u32 region_count, flush_denormals;
  const u64* threadgroup_sizes; /* per argument; 0 where the argument is not threadgroup memory */
  u32 argument_count, stack_bytes;
  u64 most_groups, most_accesses; /* 0: all; otherwise some groups, the last among them, each thread for a while */
  struct traffic traffic;
};

extern struct worker metal_worker;
extern struct options metal_options;

/* Saves the current stack pointer in `save` and goes on where `to` was saved. */
void metal_switch(void** save, void* to);
void* metal_new_stack(char* stack, u32 bytes, void (*start)(void));
void metal_report(struct report r);
struct report metal_report_here(u32 kind, u64 site);
void metal_kill_thread(void) __attribute__((noreturn));
void metal_detectors_begin(void);
void metal_detectors_group(u32 threads);
void metal_detectors_threadgroup(u64 offset, u64 size);
void metal_detectors_end(void);
/* A new threadgroup: nothing that was touched before counts as touched together with what follows. */
void metal_sectors_group(void);
/* How many sectors this access is the first of its simdgroup's instruction to touch. `kind`: 0 load, 1 store, 2 atomic. */
u32 metal_new_sectors(u32 region, u64 offset, u32 size, u32 kind, u32 site);

/* Floats by their bits. */
static inline u32 bits_of(float f) {
  u32 u;
  memcpy(&u, &f, 4);
  return u;
}
static inline float float_of(u32 u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

/* A double goes through a float rounded to odd, so that it is rounded once in effect. */
static inline float to_odd(double d) {
  float f = (float)d;
  u32 u = bits_of(f);
  if ((double)f != d && d == d && !(u & 1))
    u = ((double)f < d) == (d > 0) ? u | 1 : (u - 1) | 1;
  return float_of(u);
}
#endif
