/* 8x8 matrices that a simdgroup holds together: two neighbouring elements of a row in each lane. */
#include "air.h"

struct place {
  u32 row, column;
};

static struct place place_of(u32 lane) {
  u32 quad = lane / 4;
  struct place p = {(quad & 4) + lane / 2 % 4, (quad & 2) * 2 + lane % 2 * 2};
  return p;
}

void air_host_matrix_filled(float* m, float value) {
  m[0] = m[1] = value;
}

void air_host_matrix_diagonal(float* m, float value) {
  struct place p = place_of(__metal_host_lane());
  m[0] = p.row == p.column ? value : 0;
  m[1] = p.row == p.column + 1 ? value : 0;
}

static char* element_at(const char* base, u32 k, i64 row_length, i64 x, i64 y, u32 transposed, u32 size) {
  struct place p = place_of(__metal_host_lane());
  i64 row = transposed ? p.column + k : p.row, column = transposed ? p.row : p.column + k;
  return (char*)base + ((y + row) * row_length + x + column) * size;
}

void air_host_matrix_load(float* m, const char* base, i64 row_length, i64 x, i64 y, u32 transposed, u32 number,
                          u32 watched, u32 site) {
  enum number kind = (enum number)number;
  for (u32 k = 0; k < 2; ++k) {
    const char* at = element_at(base, k, row_length, x, y, transposed, air_size(kind));
    if (watched)
      __metal_host_access(at, air_size(kind), 1, site);
    m[k] = air_read(kind, at).f;
  }
}

void air_host_matrix_store(const float* m, char* base, i64 row_length, i64 x, i64 y, u32 transposed, u32 number,
                           u32 watched, u32 site) {
  enum number kind = (enum number)number;
  for (u32 k = 0; k < 2; ++k) {
    char* at = element_at(base, k, row_length, x, y, transposed, air_size(kind));
    struct value v = {m[k], 0};
    if (watched)
      __metal_host_access(at, air_size(kind), 2, site);
    air_write(kind, at, v);
  }
}

/* All of a matrix, from the two elements of each lane. */
static void gather(float all[8][8], const float* mine, u32 site) {
  u64 active;
  const char* table = __metal_host_exchange((const char*)mine, 2 * sizeof *mine, LANES, &active, site);
  for (u32 lane = 0; lane < LANES; ++lane) {
    struct place p = place_of(lane);
    if (active >> lane & 1)
      memcpy(&all[p.row][p.column], table + lane * 2 * sizeof *mine, 2 * sizeof *mine);
    else {
      memset(&all[p.row][p.column], 0, 2 * sizeof *mine);
      __metal_host_inactive_lane(lane, site);
    }
  }
}

/* `c` becomes a * b + c, each element a chain of fused operations. */
void air_host_matrix_multiply(const float* a, const float* b, float* c, u32 site) {
  float left[8][8], right[8][8];
  gather(left, a, site);
  gather(right, b, site);
  struct place p = place_of(__metal_host_lane());
  for (u32 k = 0; k < 2; ++k)
    for (u32 i = 0; i < 8; ++i)
      c[k] = __builtin_fmaf(left[p.row][i], right[i][p.column + k], c[k]);
}
