/* Runs a kernel over a grid: one threadgroup after the other, the threads of a group as fibers.
 *
 * A thread starts on a spare stack and keeps it only if it has to wait, so that kernels without barriers cost one
 * stack switch per thread. Waiting happens in two places: threadgroup barriers, and exchanges within a simdgroup,
 * of which every simd_ function is made. */
#include "runtime.h"

struct worker metal_worker;
struct options metal_options;

static u64 next_random(u64* state) {
  u64 z = (*state += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

static void shuffle(u32* order, u32 n) {
  for (u32 i = n; i > 1; --i) {
    u32 j = (u32)(next_random(&metal_worker.random) % i), t = order[i - 1];
    order[i - 1] = order[j];
    order[j] = t;
  }
}

static void fiber_main(void) {
  struct worker* w = &metal_worker;
  struct fiber* self = &w->fibers[w->current];
  struct frame f = {(u64)w->own_arguments, (u64)self->attributes};
  w->entry(f);
  self = &w->fibers[w->current];
  self->state = FINISHED;
  metal_switch(&self->stack_pointer, w->main_stack_pointer);
  abort();
}

static void wait_as(enum state state) {
  struct worker* w = &metal_worker;
  struct fiber* self = &w->fibers[w->current];
  self->state = state;
  metal_switch(&self->stack_pointer, w->main_stack_pointer);
}

void metal_kill_thread(void) {
  metal_worker.fibers[metal_worker.current].killed = 1;
  wait_as(FINISHED);
  abort();
}

/* In instrumented builds the caller passes the number of the place; otherwise the return address tells places apart. */
#ifdef INSTRUMENTED
#define SITE_PARAMETER , u32 site_number
#define ONLY_SITE u32 site_number
#define SITE ((u64)site_number)
#else
#define SITE_PARAMETER
#define ONLY_SITE void
#define SITE ((u64)__builtin_return_address(0))
#endif

void __metal_host_barrier(u32 flags SITE_PARAMETER) {
  struct fiber* self = &metal_worker.fibers[metal_worker.current];
  self->site = SITE;
  self->flags = flags;
  wait_as(AT_BARRIER);
}

const char* __metal_host_exchange(const char* value, u32 size, u32 together, u64* active SITE_PARAMETER) {
  struct worker* w = &metal_worker;
  struct fiber* self = &w->fibers[w->current];
  struct exchange* x = &w->exchanges[w->current / LANES];
  self->site = SITE;
  self->size = size;
  self->together = together;
  memcpy(self->value, value, size);
  wait_as(AT_EXCHANGE);
  *active = x->active;
  return x->table[x->side];
}

void __metal_host_simd_barrier(u32 flags SITE_PARAMETER) {
  struct fiber* self = &metal_worker.fibers[metal_worker.current];
  (void)flags;
  self->site = SITE;
  self->size = 0;
  self->together = LANES;
  wait_as(AT_EXCHANGE);
  ++self->passed;
}

u32 __metal_host_lane(void) {
  return metal_worker.current % LANES;
}

void __metal_host_inactive_lane(u32 lane SITE_PARAMETER) {
  if (!(metal_options.detectors & DETECT_UNINITIALISED))
    return;
  struct report r = metal_report_here(REPORT_INACTIVE_LANE, SITE);
  r.other_thread = lane;
  metal_report(r);
}

u64 __metal_host_threadgroup(u32 id, u64 size) {
  struct worker* w = &metal_worker;
  u64 total = size;
  for (u32 i = 0; i < w->declared; ++i) {
    if (w->declarations[i].id == id && w->declarations[i].size == size)
      return (u64)w->arena + w->declarations[i].offset;
    total += w->declarations[i].size;
  }
  u64 offset = w->arena_used;
  if (w->declared == DECLARATIONS || total > THREADGROUP_BYTES || offset + size + ARENA_GAP > ARENA_BYTES) {
    struct report r = metal_report_here(REPORT_LIMIT, 0);
    metal_report(r);
    metal_kill_thread();
  }
  w->declarations[w->declared++] = (struct declaration){id, size, offset};
  w->arena_used = (offset + size + ARENA_GAP + 255) & ~255ull;
  memset(w->arena + offset, 0xff, size); /* nothing may rely on what it holds: a NaN in every format */
  if (metal_options.detectors)
    metal_detectors_threadgroup(offset, size);
  return (u64)w->arena + offset;
}

static void report_divergence(struct worker* w, u32 kind, struct fiber* here, struct fiber* there) {
  struct report r = metal_report_here(kind, here->site);
  r.thread = (u64)(here - w->fibers);
  r.other_thread = (u64)(there - w->fibers);
  r.other_group = w->group;
  r.other_site = there->state == AT_BARRIER || there->state == AT_EXCHANGE ? there->site : 0;
  metal_report(r);
}

/* A lane that has not finished stays away from an operation that others of its simdgroup, or quadgroup, have come to. */
static void watch_divergence(struct worker* w, u32 begin, u32 end, u64 site) {
  for (u32 i = begin; i < end; ++i) {
    struct fiber* here = &w->fibers[i];
    if (here->state != AT_EXCHANGE || here->site != site || !here->together)
      continue;
    u32 first = i - (i - begin) % here->together, last = first + here->together < end ? first + here->together : end;
    for (u32 k = first; k < last; ++k) {
      struct fiber* there = &w->fibers[k];
      if (there->state == FINISHED || (there->state == AT_EXCHANGE && there->site == site))
        continue;
      report_divergence(w, REPORT_SIMDGROUP_DIVERGENCE, here, there);
      return;
    }
  }
}

/* Lets the lanes of simdgroup `g` that wait at `site` go on, as the active lanes of that operation. */
static void complete_exchange(struct worker* w, u32 g, u64 site) {
  struct exchange* x = &w->exchanges[g];
  u32 begin = g * LANES, end = begin + LANES < w->threads ? begin + LANES : w->threads;
  if (metal_options.detectors & DETECT_DIVERGENCE)
    watch_divergence(w, begin, end, site);
  x->side ^= 1;
  x->active = 0;
  for (u32 i = begin; i < end; ++i) {
    struct fiber* f = &w->fibers[i];
    if (f->state != AT_EXCHANGE || f->site != site)
      continue;
    x->active |= 1ull << (i - begin);
    memcpy(x->table[x->side] + (i - begin) * f->size, f->value, f->size);
    f->state = READY;
  }
}

static int advance_simdgroup(struct worker* w, u32 g, int whole_only) {
  u32 begin = g * LANES, end = begin + LANES < w->threads ? begin + LANES : w->threads;
  u64 first = ~0ull;
  int waiting = 0, elsewhere = 0;
  for (u32 i = begin; i < end; ++i) {
    struct fiber* f = &w->fibers[i];
    if (f->state == AT_EXCHANGE) {
      waiting = 1;
      if (f->site < first)
        first = f->site;
    } else if (f->state != FINISHED)
      elsewhere = 1;
  }
  if (!waiting || (whole_only && elsewhere))
    return 0;
  complete_exchange(w, g, first);
  return 1;
}

static void pass_barrier(struct worker* w) {
  struct fiber *first = 0, *other = 0;
  u32 flags = ~0u;
  for (u32 i = 0; i < w->threads; ++i) {
    struct fiber* f = &w->fibers[i];
    if (f->state == AT_BARRIER) {
      first = first ? first : f;
      flags &= f->flags;
      if (f->site != first->site && !other)
        other = f;
    }
  }
  for (u32 i = 0; i < w->threads && !other; ++i)
    if (w->fibers[i].state == FINISHED && !w->fibers[i].killed)
      other = &w->fibers[i];
  if (other)
    report_divergence(w, REPORT_BARRIER_DIVERGENCE, first, other);
  w->epoch[0] += flags & 1;
  w->epoch[1] += (flags >> 1) & 1;
  for (u32 i = 0; i < w->threads; ++i)
    if (w->fibers[i].state == AT_BARRIER)
      w->fibers[i].state = READY;
}

static void run_ready(struct worker* w, u32* left) {
  if (metal_options.permute)
    shuffle(w->order, w->threads);
  for (u32 k = 0; k < w->threads; ++k) {
    struct fiber* f = &w->fibers[w->order[k]];
    if (f->state == FRESH) {
      f->stack = w->spare[--w->spares];
      f->stack_pointer = metal_new_stack(f->stack, metal_options.stack_bytes, fiber_main);
    } else if (f->state != READY)
      continue;
    w->current = w->order[k];
    w->running = 1;
    metal_switch(&w->main_stack_pointer, f->stack_pointer);
    w->running = 0;
    if (f->state == FINISHED) {
      w->spare[w->spares++] = f->stack;
      --*left;
    }
  }
}

static void run_group(struct worker* w) {
  u32 left = w->threads, simdgroups = (w->threads + LANES - 1) / LANES;
  for (;;) {
    run_ready(w, &left);
    if (!left)
      return;
    int moved = 0;
    for (u32 g = 0; g < simdgroups; ++g)
      moved |= advance_simdgroup(w, g, 1);
    if (moved)
      continue;
    u32 at_barrier = 0;
    for (u32 i = 0; i < w->threads; ++i)
      at_barrier += w->fibers[i].state == AT_BARRIER;
    if (at_barrier == left) {
      pass_barrier(w);
      continue;
    }
    /* A simdgroup has diverged: those that wait for it go on without the others. */
    for (u32 g = 0; g < simdgroups; ++g)
      advance_simdgroup(w, g, 0);
  }
}

static void reserve(struct worker* w, u32 threads) {
  if (!w->arena)
    w->arena = malloc(ARENA_BYTES);
  if (threads <= w->capacity)
    return;
  free(w->fibers), free(w->order), free(w->stacks), free(w->spare), free(w->exchanges);
  w->capacity = threads;
  w->fibers = calloc(threads, sizeof *w->fibers);
  w->order = calloc(threads, sizeof *w->order);
  w->stacks = malloc((u64)threads * metal_options.stack_bytes);
  w->spare = calloc(threads, sizeof *w->spare);
  w->exchanges = calloc((threads + LANES - 1) / LANES, sizeof *w->exchanges);
  w->spares = threads;
  for (u32 i = 0; i < threads; ++i)
    w->spare[i] = w->stacks + (u64)i * metal_options.stack_bytes;
}

static void set3(u32* to, u32 x, u32 y, u32 z) {
  to[0] = x, to[1] = y, to[2] = z;
}

static void set1(u32* to, u32 x) {
  to[0] = x, to[1] = 0, to[2] = 0;
}

/* What does not change from group to group of one shape. */
static void set_shape(struct fiber* f, const u32* grid, const u32* size, const u32* shape, const u32* groups, const u32* t,
                      u32 index, u32 threads, u32 dispatched) {
  set3(f->attributes[THREAD_POSITION_IN_THREADGROUP], t[0], t[1], t[2]);
  set3(f->attributes[THREADS_PER_THREADGROUP], shape[0], shape[1], shape[2]);
  set3(f->attributes[DISPATCH_THREADS_PER_THREADGROUP], size[0], size[1], size[2]);
  set3(f->attributes[THREADGROUPS_PER_GRID], groups[0], groups[1], groups[2]);
  set3(f->attributes[THREADS_PER_GRID], grid[0], grid[1], grid[2]);
  set3(f->attributes[GRID_ORIGIN], 0, 0, 0);
  set1(f->attributes[THREAD_INDEX_IN_THREADGROUP], index);
  set1(f->attributes[THREAD_INDEX_IN_SIMDGROUP], index % LANES);
  set1(f->attributes[SIMDGROUP_INDEX_IN_THREADGROUP], index / LANES);
  set1(f->attributes[SIMDGROUPS_PER_THREADGROUP], (threads + LANES - 1) / LANES);
  set1(f->attributes[THREADS_PER_SIMDGROUP], LANES);
  set1(f->attributes[DISPATCH_SIMDGROUPS_PER_THREADGROUP], (dispatched + LANES - 1) / LANES);
  set1(f->attributes[THREAD_INDEX_IN_QUADGROUP], index % 4);
  set1(f->attributes[QUADGROUP_INDEX_IN_THREADGROUP], index / 4);
  set1(f->attributes[QUADGROUPS_PER_THREADGROUP], (threads + 3) / 4);
}

static void run_one_group(struct worker* w, const u32* grid, const u32* size, const u32* groups, u64 number) {
  u32 at[3] = {(u32)(number % groups[0]), (u32)(number / groups[0] % groups[1]), (u32)(number / groups[0] / groups[1])};
  u32 shape[3], n = 0;
  for (int d = 0; d < 3; ++d) {
    u32 rest = grid[d] - at[d] * size[d];
    shape[d] = rest < size[d] ? rest : size[d];
  }
  u32 threads = shape[0] * shape[1] * shape[2], dispatched = size[0] * size[1] * size[2];
  w->group = number;
  w->threads = threads;
  w->declared = 0;
  w->arena_used = ARENA_GAP;
  w->epoch[0] = w->epoch[1] = 0;
  w->current = 0;
  if (metal_options.detectors)
    metal_detectors_group(threads);
  int same = w->shape[0] == shape[0] && w->shape[1] == shape[1] && w->shape[2] == shape[2];
  for (int d = 0; d < 3; ++d)
    w->shape[d] = shape[d];
  for (u32 z = 0; z < shape[2]; ++z)
    for (u32 y = 0; y < shape[1]; ++y)
      for (u32 x = 0; x < shape[0]; ++x, ++n) {
        struct fiber* f = &w->fibers[n];
        u32 t[3] = {x, y, z};
        w->order[n] = n;
        f->state = FRESH;
        f->killed = f->passed = 0;
        if (!same)
          set_shape(f, grid, size, shape, groups, t, n, threads, dispatched);
        set3(f->attributes[THREAD_POSITION_IN_GRID], at[0] * size[0] + x, at[1] * size[1] + y, at[2] * size[2] + z);
        set3(f->attributes[THREADGROUP_POSITION_IN_GRID], at[0], at[1], at[2]);
      }
  for (u32 i = 0; i < metal_options.argument_count; ++i)
    w->own_arguments[i] = metal_options.threadgroup_sizes[i]
        ? __metal_host_threadgroup(0x40000000u + i, metal_options.threadgroup_sizes[i])
        : w->arguments[i];
  run_group(w);
}

/* Single-precision results below the normal range become zero, as Metal has it. */
static u64 set_flush(u64 wanted, int restore) {
#if defined(__x86_64__)
  u32 before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(restore ? (u32)wanted : wanted ? before | 0x8040u : before & ~0x8040u);
  return before;
#else
  u64 before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  u64 now = restore ? wanted : wanted ? before | (1ull << 24) : before & ~(1ull << 24);
  __asm__ volatile("msr fpcr, %0" ::"r"(now));
  return before;
#endif
}

/* `grid` and `size` are threads per grid and per threadgroup, all at least 1. */
void metal_run(entry_function entry, const u64* arguments, const u32* grid, const u32* size, struct options* options) {
  struct worker* w = &metal_worker;
  metal_options = *options;
  reserve(w, size[0] * size[1] * size[2]);
  w->entry = entry;
  w->arguments = arguments;
  w->own_arguments = malloc((options->argument_count + 1) * sizeof(u64));
  w->random = options->seed;
  w->shape[0] = 0; /* of no group: the first one sets everything */
  u32 groups[3];
  for (int d = 0; d < 3; ++d)
    groups[d] = (u32)(((u64)grid[d] + size[d] - 1) / size[d]);
  u64 count = (u64)groups[0] * groups[1] * groups[2];
  if (options->detectors)
    metal_detectors_begin();
  u64 before = set_flush(options->flush_denormals, 0);
  /* A permuted run visits the groups in steps that are coprime to their number. */
  u64 step = 1, start = 0;
  if (options->permute && count > 2) {
    start = next_random(&w->random) % count;
    step = count - 1;
    for (u64 tries = 0; tries < 64; ++tries) {
      u64 a = next_random(&w->random) % count, b = count, candidate = a;
      while (a) {
        u64 r = b % a;
        b = a;
        a = r;
      }
      if (b == 1) {
        step = candidate;
        break;
      }
    }
  } else if (options->permute && count == 2)
    start = next_random(&w->random) & 1;
  u64 runs = count;
  if (options->most_groups && options->most_groups < count) {
    runs = options->most_groups;
    run_one_group(w, grid, size, groups, count - 1);
  }
  for (u64 i = 0, at = start; i < runs; ++i) {
    run_one_group(w, grid, size, groups, at);
    at = at >= count - step ? at - (count - step) : at + step;
  }
  set_flush(before, 1);
  if (options->detectors)
    metal_detectors_end();
  free(w->own_arguments);
  options->traffic = metal_options.traffic;
}
