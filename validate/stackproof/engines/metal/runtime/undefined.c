/* What Clang's checks for undefined behaviour call: a report with the place, and the end of the thread where going
 * on would take the process down. */
#include "runtime.h"

struct location {
  const char* file;
  u32 line, column;
};
struct type {
  u16 kind, info;
  char name[];
};

static char* append(char* at, const char* end, const char* text) {
  while (*text && at < end)
    *at++ = *text++;
  *at = 0;
  return at;
}

static void found(const char* what, const struct type* from, const struct type* to, int fatal, u32 site) {
  if (!metal_worker.running)
    return;
  if (metal_options.detectors & (DETECT_UNDEFINED | DETECT_BOUNDS)) {
    struct report r = metal_report_here(REPORT_UNDEFINED, site);
    char *at = r.text, *end = r.text + sizeof r.text - 1;
    at = append(at, end, what);
    if (from) {
      at = append(at, end, " of ");
      at = append(at, end, from->name);
    }
    if (to) {
      at = append(at, end, " to ");
      at = append(at, end, to->name);
    }
    metal_report(r);
  }
  if (fatal)
    metal_kill_thread();
}

struct with_type {
  struct location at;
  const struct type* type;
};
struct with_types {
  struct location at;
  const struct type *from, *to;
};
struct mismatch {
  struct location at;
  const struct type* type;
  u8 alignment, kind;
};

/* The lowest bit of an integer type's description says whether it has a sign. */
#define ARITHMETIC(NAME, TEXT)                                                              \
  void __ubsan_handle_##NAME(struct with_type* d, u64 a, u64 b, u32 site) {                 \
    (void)a, (void)b;                                                                       \
    found(d->type->info & 1 ? "signed " TEXT : "unsigned " TEXT, d->type, 0, 0, site);      \
  }
ARITHMETIC(add_overflow, "overflow in an addition")
ARITHMETIC(sub_overflow, "overflow in a subtraction")
ARITHMETIC(mul_overflow, "overflow in a multiplication")

void __ubsan_handle_negate_overflow(struct with_type* d, u64 a, u32 site) {
  (void)a;
  found(d->type->info & 1 ? "signed overflow in a negation" : "unsigned overflow in a negation", d->type, 0, 0, site);
}
void __ubsan_handle_divrem_overflow(struct with_type* d, u64 a, u64 b, u32 site) {
  (void)a, (void)b;
  found("division by zero, or overflow in a division,", d->type, 0, 1, site);
}
void __ubsan_handle_float_cast_overflow(struct with_types* d, u64 a, u32 site) {
  (void)a;
  found("conversion of a value out of range", d->from, d->to, 0, site);
}
void __ubsan_handle_out_of_bounds(struct with_types* d, u64 index, u32 site) {
  (void)index;
  found("index outside the array", d->from, 0, 1, site);
}
void __ubsan_handle_local_out_of_bounds(u32 site) {
  found("access outside a local variable", 0, 0, 1, site);
}
void __ubsan_handle_load_invalid_value(struct with_type* d, u64 a, u32 site) {
  (void)a;
  found("load of a value that is none", d->type, 0, 0, site);
}
void __ubsan_handle_type_mismatch_v1(struct mismatch* d, u64 pointer, u32 site) {
  if (!pointer)
    found("use of a null pointer", d->type, 0, 1, site);
  else
    found("misaligned use of a pointer", d->type, 0, 0, site);
}
void __ubsan_handle_pointer_overflow(struct location* d, u64 base, u64 result, u32 site) {
  (void)d, (void)base, (void)result;
  found("pointer arithmetic that wraps around, or starts from null", 0, 0, 0, site);
}
void __ubsan_handle_builtin_unreachable(struct location* d, u32 site) {
  (void)d;
  found("a place that was declared unreachable", 0, 0, 1, site);
}
void __ubsan_handle_missing_return(struct location* d, u32 site) {
  (void)d;
  found("a function that ends without returning its value", 0, 0, 1, site);
}
void __ubsan_handle_invalid_builtin(struct location* d, u32 site) {
  (void)d;
  found("a builtin called with zero", 0, 0, 0, site);
}
void __ubsan_handle_vla_bound_not_positive(struct with_type* d, u64 bound, u32 site) {
  (void)bound;
  found("an array of no or negative length", d->type, 0, 0, site);
}

/* For a front end that writes its own checks: does the number fit the integer once its fraction is cut off? */
void __metal_host_conversion(float value, u32 bits, u32 is_signed, u32 site) {
  double limit = is_signed ? 0x1p-1 : 1.0;
  for (u32 i = 0; i < bits; ++i)
    limit *= 2;
  int above = is_signed ? value >= -limit || value > -limit - 1 : value > -1.0;
  if (!(above && value < limit))
    found(is_signed ? "conversion of a value out of range of float to a signed integer"
                    : "conversion of a value out of range of float to an unsigned integer",
          0, 0, 0, site);
}
