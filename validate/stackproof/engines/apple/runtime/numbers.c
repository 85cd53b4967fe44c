/* Numbers in memory, and the roundings that LLVM calls by name. */
#include "air.h"

u32 air_size(enum number kind) {
  static const u32 sizes[] = {4, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8};
  return sizes[kind];
}

/* To nearest, ties to even; a NaN stays one. */
static u16 to_bfloat(float f) {
  u32 u = bits_of(f);
  return (u & 0x7fffffffu) > 0x7f800000u ? (u16)(u >> 16 | 0x40) : (u16)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

static __bf16 as_bfloat(u16 bits) {
  __bf16 b;
  memcpy(&b, &bits, 2);
  return b;
}

#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN __bf16 air_truncsfbf2(float f) __asm__("__truncsfbf2");
HIDDEN __bf16 air_truncsfbf2(float f) {
  return as_bfloat(to_bfloat(f));
}
HIDDEN __bf16 air_truncdfbf2(double d) __asm__("__truncdfbf2");
HIDDEN __bf16 air_truncdfbf2(double d) {
  return as_bfloat(to_bfloat(to_odd(d)));
}

#define INTEGERS(CASE) CASE(S8, signed char) CASE(S16, short) CASE(S32, int) CASE(S64, i64) \
  CASE(U8, u8) CASE(U16, u16) CASE(U32, u32) CASE(U64, u64)

struct value air_read(enum number kind, const char* at) {
  struct value v = {0, 0};
  _Float16 h;
  u16 b;
  switch (kind) {
#define READ(KIND, TYPE) \
  case KIND: {           \
    TYPE t;              \
    memcpy(&t, at, sizeof t); \
    v.i = (i64)t;        \
    break;               \
  }
    INTEGERS(READ)
    case F32:
      memcpy(&v.f, at, 4);
      break;
    case F16:
      memcpy(&h, at, 2);
      v.f = (float)h;
      break;
    case BF16:
      memcpy(&b, at, 2);
      v.f = float_of((u32)b << 16);
      break;
  }
  return v;
}

void air_write(enum number kind, char* at, struct value v) {
  _Float16 h = (_Float16)v.f;
  u16 b = to_bfloat(v.f);
  switch (kind) {
    case F32:
      memcpy(at, &v.f, 4);
      break;
    case F16:
      memcpy(at, &h, 2);
      break;
    case BF16:
      memcpy(at, &b, 2);
      break;
    default:
      memcpy(at, &v.i, air_size(kind)); /* the low bytes, on the little-endian machines this runs on */
  }
}

/* The neighbour of `from` towards `to`, both as bits of a format of `size` bytes with `mantissa` bits of fraction. */
u32 air_host_nextafter(u32 from, u32 to, u32 size, u32 mantissa) {
  u32 sign = 1u << (8 * size - 1), infinite = (sign - 1) >> mantissa << mantissa;
  u32 a = from & (sign - 1), b = to & (sign - 1);
  if (a > infinite || b > infinite)
    return infinite | 1u << (mantissa - 1);
  if (from == to || (a | b) == 0)
    return to;
  if (a == 0)
    return (to & sign) | 1;
  int away = (from & sign) == (to & sign) && b > a;
  return away ? from + 1 : from - 1;
}
