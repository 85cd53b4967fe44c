/* What the definitions of air.* functions share. The executor's own header is beside the Metal front end's runtime. */
#ifndef STACKPROOF_APPLE_AIR_H
#define STACKPROOF_APPLE_AIR_H
#include "runtime.h"

/* Orders of stackproof.apple.simd_definitions. */
enum number { F32, F16, BF16, S8, S16, S32, S64, U8, U16, U32, U64 };
enum combination { SUM, PRODUCT, MAX, MIN, AND, OR, XOR };
enum movement { TO_LANE, BY_XOR, UP, DOWN };

/* A number of any of these kinds, unrounded. */
struct value {
  float f;
  i64 i;
};

u32 air_size(enum number kind);
struct value air_read(enum number kind, const char* at);
void air_write(enum number kind, char* at, struct value v);

/* Of the executor. */
const char* __metal_host_exchange(const char* value, u32 size, u32 together, u64* active, u32 site);
u32 __metal_host_lane(void);
void __metal_host_inactive_lane(u32 lane, u32 site);
void __metal_host_access(const void* at, u32 size, u32 kind, u32 site);
#endif
