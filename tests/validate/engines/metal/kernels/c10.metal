// Calls into PyTorch's c10/metal headers, so that their templates are instantiated and run, not only parsed.
#include <c10/metal/expm1f.h>
#include <c10/metal/igamma.h>
#include <c10/metal/indexing.h>
#include <c10/metal/random.h>
#include <c10/metal/special_math.h>
#include <metal_stdlib>
using namespace metal;
using namespace c10::metal;

#define ELEMENTWISE(NAME, EXPRESSION)                                                                        \
  kernel void NAME##_of(device const float* in, device float* out, uint i [[thread_position_in_grid]]) {    \
    float x = in[i];                                                                                         \
    out[i] = EXPRESSION;                                                                                     \
  }
ELEMENTWISE(erf, c10::metal::erf(x))
ELEMENTWISE(erfinv, c10::metal::erfinv(x * 0.1f))
ELEMENTWISE(i0e, c10::metal::i0e(x))
ELEMENTWISE(lgamma, c10::metal::log_gamma(x + 9.5f))
ELEMENTWISE(digamma, c10::metal::digamma(x + 9.5f))
ELEMENTWISE(zeta, c10::metal::zeta(2.5f, x + 9.5f))
ELEMENTWISE(trigamma, c10::metal::polygamma(1, x + 9.5f))
ELEMENTWISE(sinc, c10::metal::sinc(x))
ELEMENTWISE(entr, c10::metal::entr(x))
ELEMENTWISE(bessel_j0, c10::metal::bessel_j0_forward(x))
ELEMENTWISE(erfcx, c10::metal::erfcx(x * 0.2f))
ELEMENTWISE(expm1, c10::metal::expm1f(x))
ELEMENTWISE(gammainc, c10::metal::igamma(2.5f, x + 9.5f))
ELEMENTWISE(hermite, c10::metal::hermite_polynomial_h_forward(x, 4L))

kernel void uniform(device float* out, constant long2& seed, uint i [[thread_position_in_grid]]) {
  out[i] = c10::metal::rand(seed.x, seed.y + long(i));
}

struct twice_functor {
  template <typename T>
  inline T operator()(const T x) {
    return T(x + x);
  }
};
REGISTER_UNARY_OP(twice, float, float);
REGISTER_UNARY_OP(twice, half, half);
REGISTER_UNARY_OP(twice, bfloat, bfloat);
REGISTER_UNARY_OP(twice, long, long);

struct plus_functor {
  template <typename T>
  inline T operator()(const T a, const T b) {
    return T(a + b);
  }
};
REGISTER_BINARY_OP(plus, float, float);
REGISTER_OPMATH_BINARY_OP(plus, half, half);
REGISTER_BINARY_OP(plus, int, int);
