// One kernel per family of library functions; the tests compute the same in Python.
#include <metal_stdlib>
using namespace metal;

kernel void float_functions(device const float* in, device float* out, uint i [[thread_position_in_grid]]) {
  float x = in[i];
  device float* row = out + i * 16;
  float whole;
  float cosine;
  int exponent;
  row[0] = rint(x);
  row[1] = fract(x);
  row[2] = saturate(x);
  row[3] = sign(x);
  row[4] = rsqrt(fabs(x) + 1.0f);
  row[5] = sinpi(x);
  row[6] = mix(x, 2.0f, 0.25f);
  row[7] = smoothstep(-1.0f, 1.0f, x);
  row[8] = modf(x, whole) + 10.0f * whole;
  row[9] = sincos(x, cosine) + 10.0f * cosine;
  row[10] = frexp(x, exponent) + 10.0f * float(exponent);
  row[11] = ldexp(x, 3);
  row[12] = step(0.5f, x);
  row[13] = clamp(x, -1.0f, 1.5f);
  row[14] = precise::exp(x) - fast::exp(x);
  row[15] = median3(x, 0.0f, 1.0f);
}

kernel void integer_functions(device const int* in, device int* out, uint i [[thread_position_in_grid]]) {
  int x = in[i];
  device int* row = out + i * 14;
  row[0] = int(abs(x));
  row[1] = clz(x);
  row[2] = ctz(x);
  row[3] = popcount(x);
  row[4] = int(reverse_bits(uint(x)));
  row[5] = int(rotate(uint(x), 5u));
  row[6] = addsat(x, 2147483000);
  row[7] = subsat(x, 2147483000);
  row[8] = mulhi(x, 1 << 20);
  row[9] = hadd(x, 7);
  row[10] = int(absdiff(x, -9));
  row[11] = int(extract_bits(uint(x), 3u, 6u));
  row[12] = int(insert_bits(uint(x), 5u, 4u, 3u));
  row[13] = clamp(x, -3, 3);
}

kernel void classification(device const float* in, device int* out, uint i [[thread_position_in_grid]]) {
  float x = in[i];
  half h = half(x);
  out[i] = int(isnan(x)) | int(isinf(x)) << 1 | int(isfinite(x)) << 2 | int(isnormal(x)) << 3 | int(signbit(x)) << 4 |
      int(isnan(h)) << 5 | int(isinf(h)) << 6;
}

kernel void vector_functions(device const float4* in, device float* out, uint i [[thread_position_in_grid]]) {
  float4 v = in[i];
  float4 w = v.wzyx;
  device float* row = out + i * 12;
  row[0] = dot(v, w);
  row[1] = length(v.xyz);
  row[2] = max(v, 0.0f).y;
  row[3] = float(any(v > w)) + 2.0f * float(all(v == v));
  row[4] = select(v, w, v < w).x;
  row[5] = clamp(v, float4(-1.0f), float4(1.0f)).z;
  row[6] = cross(v.xyz, w.xyz).x;
  row[7] = normalize(v).w;
  row[8] = float(int4(v).x + int(uchar2(3, 4).y));
  row[9] = as_type<float>(as_type<uint>(v.x) ^ 0x80000000u);
  float2x2 m = float2x2(float2(1.0f, 2.0f), float2(3.0f, 4.0f));
  row[10] = (m * v.xy).x + (v.xy * m).y;
  v.xy += 1.0f;
  v.zw = w.xx;
  row[11] = v.x + 2.0f * v.y + 3.0f * v.z + 4.0f * v.w;
}

kernel void limits(device float* out) {
  out[0] = numeric_limits<float>::max();
  out[1] = float(numeric_limits<half>::max());
  out[2] = float(numeric_limits<bfloat>::epsilon());
  out[3] = float(numeric_limits<int>::lowest());
  out[4] = numeric_limits<float>::infinity();
  out[5] = is_same_v<decltype(half(1) * 2.0f), float> && is_floating_point_v<bfloat> && !is_integral_v<float> ? 1.0f : 0.0f;
  out[6] = 0.1;
  out[7] = float(1.5h) + float(bfloat(256.0f) + bfloat(1.0f));
}

// Every program-scope table, conditional and array parameter that the dialect has to care for.
constant float table[4] = {1.0f, 2.0f, 4.0f, 8.0f};
struct Pair {
  float2 v;
  int n;
};
template <typename T>
T total(T values[3], T start) {
  return start + values[0] + values[1] + values[2];
}
template <typename T, T (*F)(T, T)>
T applied(T a, T b) {
  return F(a, b);
}
static float product(float a, float b) {
  return a * b;
}
kernel void dialect(device float* out, constant Pair* pairs, device Pair& kept, uint i [[thread_position_in_grid]]) {
  Pair own = pairs[i];
  float2 chosen = i == 0 ? own.v : float2(7.0f);
  float values[3] = {1.0f, 2.0f, 3.0f};
  float local = i > 0 ? chosen.x : -chosen.y;
  out[i] = total(values, table[i]) + applied<float, product>(chosen.x, 10.0f) + local;
  if (i == 1)
    kept = pairs[0];
}
