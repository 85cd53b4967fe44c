/* Operations of a simdgroup on values of any type: each is one exchange, or two where there is a second operand.
 *
 * Written apart from the Metal headers' versions on purpose: the two are compared with each other. A reduction adds
 * by halves, a scan lane by lane; a lane that takes no part has no value. */
#include "air.h"

static struct value combined(enum number kind, enum combination how, struct value a, struct value b) {
  struct value v = {0, 0};
  char rounded[8];
  int greater = kind == U64 ? (u64)a.i > (u64)b.i : a.i > b.i;
  switch (how) {
    case SUM:
      v.f = a.f + b.f;
      v.i = (i64)((u64)a.i + (u64)b.i);
      break;
    case PRODUCT:
      v.f = a.f * b.f;
      v.i = (i64)((u64)a.i * (u64)b.i);
      break;
    case MAX:
      v.f = __builtin_fmaxf(a.f, b.f);
      v.i = greater ? a.i : b.i;
      break;
    case MIN:
      v.f = __builtin_fminf(a.f, b.f);
      v.i = greater ? b.i : a.i;
      break;
    case AND:
      v.i = a.i & b.i;
      break;
    case OR:
      v.i = a.i | b.i;
      break;
    case XOR:
      v.i = a.i ^ b.i;
      break;
  }
  air_write(kind, rounded, v);
  return air_read(kind, rounded);
}

void air_host_combine(char* at, u32 number, u32 how, u32 site) {
  enum number kind = (enum number)number;
  struct value lanes[LANES];
  u64 active;
  u32 size = air_size(kind);
  const char* table = __metal_host_exchange(at, size, LANES, &active, site);
  for (u32 i = 0; i < LANES; ++i)
    if (active >> i & 1)
      lanes[i] = air_read(kind, table + i * size);
  for (u32 half = LANES / 2; half; half /= 2)
    for (u32 i = 0; i < half; ++i) {
      u64 here = active >> i & 1, there = active >> (i + half) & 1;
      if (there)
        lanes[i] = here ? combined(kind, (enum combination)how, lanes[i], lanes[i + half]) : lanes[i + half];
      active |= there << i;
    }
  air_write(kind, at, lanes[0]);
}

void air_host_scan(char* at, u32 number, u32 how, u32 inclusive, u32 site) {
  enum number kind = (enum number)number;
  u64 active;
  u32 size = air_size(kind), end = __metal_host_lane() + inclusive;
  const char* table = __metal_host_exchange(at, size, LANES, &active, site);
  struct value total = {how == PRODUCT, how == PRODUCT};
  for (u32 i = 0; i < end; ++i)
    if (active >> i & 1)
      total = combined(kind, (enum combination)how, total, air_read(kind, table + i * size));
  air_write(kind, at, total);
}

/* The value of a lane; of one that takes no part, zero and a report. */
static void take(char* at, const char* table, u32 size, u64 active, u32 lane, u32 site) {
  if (lane < LANES && active >> lane & 1) {
    memcpy(at, table + lane * size, size);
    return;
  }
  memset(at, 0, size);
  __metal_host_inactive_lane(lane, site);
}

void air_host_move(char* at, u32 size, u32 how, u32 operand, u32 site) {
  u64 active;
  const char* table = __metal_host_exchange(at, size, LANES, &active, site);
  u32 self = __metal_host_lane();
  u32 from = how == TO_LANE ? operand : how == BY_XOR ? self ^ operand : how == UP ? self - operand : self + operand;
  if ((how == UP || how == DOWN) && from >= LANES)
    return; /* no lane there: Metal leaves the result open, this lane keeps its own */
  take(at, table, size, active, from, site);
}

/* Lanes move in groups of `modulo`; what comes in from outside is the filling value of the lane at the other end. */
void air_host_fill(char* at, const char* fill, u32 size, u32 up, u32 delta, u32 modulo, u32 site) {
  u64 active, filling;
  char values[LANES * EXCHANGE_BYTES];
  const char* table = __metal_host_exchange(at, size, LANES, &active, site);
  memcpy(values, table, LANES * size);
  const char* fills = __metal_host_exchange(fill, size, LANES, &filling, site);
  u32 self = __metal_host_lane(), within = self % modulo, group = self - within;
  if (up && within >= delta)
    take(at, values, size, active, self - delta, site);
  else if (!up && within + delta < modulo)
    take(at, values, size, active, self + delta, site);
  else if (up)
    take(at, fills, size, filling, group + (within + modulo - delta % modulo) % modulo, site);
  else {
    u32 from = group + (within + delta) % modulo;
    memcpy(at, filling >> from & 1 ? fills + from * size : fill, size);
  }
}

u32 air_host_vote(u32 mine, u32 every, u32 site) {
  u64 active, set = 0;
  char vote = (char)(mine & 1);
  const char* table = __metal_host_exchange(&vote, 1, LANES, &active, site);
  for (u32 i = 0; i < LANES; ++i)
    set |= (u64)(active >> i & 1 && table[i]) << i;
  return every ? set == active : set != 0;
}
