"""The operators whose Apple-compiled kernels are compared with our compilation of the same headers.

Each has the expression that the kernel computes, written here over the functions of ``c10/metal`` and of Metal: what
is compared is what two compilers and two standard libraries make of them. ``x`` and ``y`` are the operands; ``arg`` and
``arg2`` the same with integers in float; ``wide`` and ``wide2`` the same with everything in float.
"""

from __future__ import annotations

from dataclasses import dataclass

FLOATS = ("float", "half", "bfloat")
INTEGERS = ("int", "long", "short", "char", "uchar")
_TO_FLOAT = tuple(("float", type_) for type_ in INTEGERS)
_SAME_FLOATS = tuple((type_, type_) for type_ in FLOATS)
_SAME_INTEGERS = tuple((type_, type_) for type_ in INTEGERS)
_BOOL = (("bool", "bool"),)

Types = tuple[tuple[str, str], ...]
"""Pairs of result and operand type; those without a kernel in the release are left out."""


@dataclass(frozen=True)
class Operator:
    """One operator.

    Attributes:
        name: the kernels are called ``NAME_dense_RESULT_OPERAND``.
        expression: of the result, converted to it by ``static_cast``.
        binary: takes two operands.
        types: see above.
        domain: least and largest operand.
        second: the same of the second operand.
        special: the operands also take zeros, infinities and NaN.
        allowed: units in the last place that are explained, beyond those that any float result may have.
        reason: the explanation.
    """

    name: str
    expression: str
    binary: bool = False
    types: Types = _SAME_FLOATS + _TO_FLOAT
    domain: tuple[float, float] = (-10.0, 10.0)
    second: tuple[float, float] = (-10.0, 10.0)
    special: bool = True
    allowed: float = 0.0
    reason: str = ""


def _metal(names: str, domain: tuple[float, float] = (-10.0, 10.0)) -> tuple[Operator, ...]:
    """Functions of Metal's own library, computed in float."""
    return tuple(Operator(name, f"::metal::precise::{name}(wide)", domain=domain) for name in names.split())


def _c10(names: str, domain: tuple[float, float] = (-10.0, 10.0)) -> tuple[Operator, ...]:
    """Functions of ``c10/metal`` of one operand, which take what they are given."""
    return tuple(Operator(name, f"::c10::metal::{name}(arg)", domain=domain) for name in names.split())


def _polynomials(names: str) -> tuple[Operator, ...]:
    return tuple(
        Operator(
            f"{name}",
            f"::c10::metal::{name}_forward(arg, static_cast<long>(y))",
            binary=True,
            types=(*_SAME_FLOATS, *_TO_FLOAT),
            domain=(-2.0, 2.0),
            second=(0.0, 9.0),
            # A degree that is no number is undefined where it becomes an integer; for a NaN upstream returns a variable
            # that it never set.
            special=False,
        )
        for name in names.split()
    )


def _exact(name: str, expression: str, types: Types, *, second: tuple[float, float] = (-10.0, 10.0)) -> Operator:
    return Operator(name, expression, binary=True, types=types, second=second)


_COMPARED: Types = tuple(("bool", type_) for type_ in (*FLOATS, *INTEGERS))
_ANY: Types = (*_SAME_FLOATS, *_SAME_INTEGERS)

OPERATORS: tuple[Operator, ...] = (
    *_metal("sin cos tan sinh cosh tanh atan exp exp2"),
    *_metal("asin acos", (-1.0, 1.0)),
    *_metal("log log2 log10 sqrt rsqrt", (0.0, 99.0)),
    *_c10("erf erfc erfcx i0e i1e entr spherical_bessel_j0 sinc"),
    *_c10("i0 i1"),
    *_c10("bessel_j0_forward bessel_j1_forward modified_bessel_i0_forward modified_bessel_i1_forward"),
    *_c10(
        "bessel_y0_forward bessel_y1_forward modified_bessel_k0_forward modified_bessel_k1_forward"
        " scaled_modified_bessel_k0_forward scaled_modified_bessel_k1_forward",
        (0.05, 20.0),
    ),
    *_c10("digamma", (0.2, 30.0)),
    Operator("trigamma", "::c10::metal::trigamma(wide)", domain=(0.2, 30.0)),
    Operator(
        "expm1",
        "::metal::fabs(wide) < 1e-5f ? ::c10::metal::expm1f(wide) : ::metal::precise::exp(wide) - 1.0f",
    ),
    Operator("erfinv", "::c10::metal::erfinv(arg)", domain=(-1.0, 1.0)),
    Operator("lgamma", "::c10::metal::log_gamma(arg)", domain=(-9.0, 30.0), allowed=64.0,
             reason="beside its zeros a rounding of the sine of the reflection formula is most of what is left"),
    Operator("log1p", "::c10::metal::log1p(wide)", domain=(-0.9, 50.0)),
    Operator("abs", "::metal::abs(x)", types=_ANY),
    Operator("neg", "-x", types=_ANY),
    Operator("sqr", "x * x", types=_ANY),
    Operator("reciprocal", "1.0f / wide"),
    Operator("round", "::metal::rint(wide)", types=_SAME_FLOATS),
    Operator("sigmoid", "1.0f / (1.0f + ::metal::precise::exp(-wide))"),
    Operator("hardswish", "wide * ::metal::fmin(::metal::fmax(wide + 3.0f, 0.0f), 6.0f) / 6.0f", types=_SAME_FLOATS),
    Operator("bitwise_not", "~x", types=_SAME_INTEGERS),
    _exact("add", "x + y", (*_ANY, *_BOOL)),
    _exact("sub", "x - y", _ANY),
    _exact("mul", "x * y", (*_ANY, *_BOOL)),
    _exact("div_true", "wide / wide2", (*_SAME_FLOATS, *_TO_FLOAT)),
    _exact("div_floor", "::metal::floor(wide / wide2)", _SAME_FLOATS, second=(1.0, 7.0)),
    _exact("div_floor", "::c10::metal::floor_divide(x, y)", _SAME_INTEGERS, second=(1.0, 7.0)),
    _exact("div_trunc", "::metal::trunc(x / y)", _SAME_FLOATS, second=(1.0, 7.0)),
    _exact("div_trunc", "x / y", _SAME_INTEGERS, second=(1.0, 7.0)),
    _exact("fmod", "::c10::metal::fmod(x, y)", (*_SAME_FLOATS[:2], *_SAME_INTEGERS), second=(1.0, 7.0)),
    _exact("fmod", "::metal::fmod(wide, wide2)", _SAME_FLOATS[2:], second=(1.0, 7.0)),
    _exact("remainder", "::c10::metal::remainder(x, y)", (*_SAME_FLOATS, *_SAME_INTEGERS), second=(1.0, 7.0)),
    _exact("maximum", "::c10::metal::max(x, y)", _ANY),
    _exact("minimum", "::c10::metal::min(x, y)", _ANY),
    _exact("fmax", "::metal::fmax(x, y)", _SAME_FLOATS),
    _exact("fmin", "::metal::fmin(x, y)", _SAME_FLOATS),
    _exact("copysign", "::metal::copysign(x, y)", _SAME_FLOATS),
    _exact("nextafter", "::metal::nextafter(x, y)", _SAME_FLOATS[:2]),
    _exact("nextafter", "::metal::nextafter(wide, wide2)", _SAME_FLOATS[2:]),
    _exact("hypot", "::metal::precise::sqrt(wide * wide + wide2 * wide2)", _SAME_FLOATS),
    _exact("atan2", "::metal::precise::atan2(wide, wide2)", (*_SAME_FLOATS, *_TO_FLOAT)),
    _exact("xlogy", "::c10::metal::xlogy(arg, arg2)", (*_SAME_FLOATS, *_TO_FLOAT), second=(0.1, 9.0)),
    _exact("xlog1py", "::c10::metal::xlog1py(arg, arg2)", (*_SAME_FLOATS, *_TO_FLOAT), second=(0.1, 9.0)),
    _exact("logaddexp", "::c10::metal::logaddexp(arg, arg2)", (*_SAME_FLOATS, *_TO_FLOAT)),
    _exact("logaddexp2", "::c10::metal::logaddexp2(arg, arg2)", (*_SAME_FLOATS, *_TO_FLOAT)),
    Operator("zeta", "::c10::metal::zeta(wide, wide2)", binary=True, domain=(1.1, 9.0), second=(0.5, 9.0)),
    Operator("igamma", "::c10::metal::igamma(wide, wide2)", binary=True, domain=(0.2, 9.0), second=(0.1, 12.0)),
    Operator("igammac", "::c10::metal::igammac(wide, wide2)", binary=True, domain=(0.2, 9.0), second=(0.1, 12.0)),
    *_polynomials("chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w"),
    *_polynomials("hermite_polynomial_h hermite_polynomial_he"),
    *_polynomials(
        "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u"
        " shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w"
    ),
    *(_exact(name, f"x {sign} y", _COMPARED) for name, sign in (
        ("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="),
    )),
    *(_exact(f"bitwise_{name}", f"x {sign} y", _SAME_INTEGERS) for name, sign in (
        ("and", "&"), ("or", "|"), ("xor", "^"),
    )),
    *(_exact(f"bitwise_{name}", f"x {sign} y", _SAME_INTEGERS, second=(0.0, 6.0)) for name, sign in (
        ("left_shift", "<<"), ("right_shift", ">>"),
    )),
)  # fmt: skip
"""In the order of the report."""
