/* Conversions between float and half that Clang calls by name where the processor has no instruction.
 * Round to nearest, ties to even; NaN stays NaN. */
#include "runtime.h"

static u16 to_half(float f) {
  u32 u = bits_of(f), sign = (u >> 16) & 0x8000, rest = u & 0x7fffffff;
  if (rest > 0x7f800000u)
    return (u16)(sign | 0x7e00);
  if (rest >= 0x47800000u)
    return (u16)(sign | 0x7c00);
  if (rest < 0x33000000u)
    return (u16)sign;
  u32 exponent = rest >> 23, mantissa = (rest & 0x7fffff) | 0x800000, shift = exponent < 113 ? 126 - exponent : 13;
  u32 half = exponent < 113 ? 0 : (exponent - 113) << 10, kept = mantissa >> shift, lost = mantissa & ((1u << shift) - 1);
  u32 middle = 1u << (shift - 1);
  kept += lost > middle || (lost == middle && (kept & 1));
  return (u16)(sign | (half + kept)); /* a carry moves into the exponent, up to infinity */
}

static float from_half(u16 h) {
  u32 sign = (u32)(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 0x3ff;
  if (exponent == 31)
    return float_of(sign | 0x7f800000u | mantissa << 13);
  if (exponent)
    return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
  float f = (float)mantissa * 0x1p-24f;
  return float_of(sign | bits_of(f));
}

#define HIDDEN __attribute__((visibility("hidden")))
static _Float16 as_half(u16 h) {
  _Float16 b;
  memcpy(&b, &h, 2);
  return b;
}
HIDDEN _Float16 metal_truncsfhf2(float f) __asm__("__truncsfhf2");
HIDDEN _Float16 metal_truncsfhf2(float f) { return as_half(to_half(f)); }
HIDDEN _Float16 metal_truncdfhf2(double d) __asm__("__truncdfhf2");
HIDDEN _Float16 metal_truncdfhf2(double d) { return as_half(to_half(to_odd(d))); }
HIDDEN float metal_extendhfsf2(_Float16 h) __asm__("__extendhfsf2");
HIDDEN float metal_extendhfsf2(_Float16 h) {
  u16 u;
  memcpy(&u, &h, 2);
  return from_half(u);
}
