"""What each ``air.*`` function does, as LLVM IR that any target of LLVM can compile.

Apple's compiler leaves its library functions as calls to ``air.NAME.TYPES``. Each family has one rule here that writes
the body of a member from its types. What Metal's specification leaves open is defined as the rest of this project has
it: conversions from float to integer saturate and turn NaN into zero; half and bfloat compute in float and round once;
the ``fast_`` functions are the precise ones. Families that threads take part in together depend on the target: see
:mod:`stackproof.engines.apple.simd_definitions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stackproof.engines.apple.errors import TranslationError, UnmappedIntrinsicError
from stackproof.engines.apple.ir import Declaration, address_space, store_size

_SUFFIX = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_READ, _WRITE, _BOTH = 1, 2, 3


@dataclass
class Body:
    """The body of a definition in the making.

    Attributes:
        watched: accesses and conversions have to be told to the detectors.
        lines: of the body.
        declarations: functions that it calls, as ``declare`` lines.
    """

    watched: bool
    lines: list[str] = field(default_factory=list)
    declarations: set[str] = field(default_factory=set)
    _count: int = 0

    def let(self, expression: str) -> str:
        """A new value; returns its name."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {expression}")
        return name

    def do(self, instruction: str) -> None:
        """An instruction without a value."""
        self.lines.append(f"  {instruction}")

    def call(self, result: str, name: str, *arguments: tuple[str, str]) -> str:
        """Call a function, declaring it; returns the value's name, empty for ``void``."""
        types = ", ".join(type_ for type_, _value in arguments)
        self.declarations.add(f"declare {result} @{name}({types})")
        text = f"call {result} @{name}({', '.join(' '.join(one) for one in arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.let(text)

    def intrinsic(self, name: str, type_: str, *values: str) -> str:
        """A call of ``llvm.NAME`` all of whose operands have the type of its result."""
        return self.call(type_, f"llvm.{name}.{suffix(type_)}", *((type_, value) for value in values))

    def slot(self, type_: str, value: str | None = None) -> str:
        """Private memory for a value of this type."""
        at = self.let(f"alloca {type_}, align 16")
        if value is not None:
            self.do(f"store {type_} {value}, ptr {at}")
        return at

    def watch_atomic(self, pointer: str, type_: str, kind: int) -> None:
        """Tell the detectors of an atomic access: 1 reads, 2 writes, 3 both."""
        if self.watched:
            plain = self.let(f"addrspacecast {pointer} %a0 to ptr")
            size = ("i32", str(store_size(type_)))
            self.call("void", "__metal_host_atomic", ("ptr", plain), size, ("i32", str(kind)), ("i32", "%site"))


Rule = Callable[[Body, Declaration], str]
"""Writes the body of a family's member, whose arguments are ``%a0``, ``%a1`` ... and ``%site``; returns its value."""


@dataclass(frozen=True)
class Definition:
    """A function of the module instead of an ``air.*`` declaration.

    Attributes:
        text: its IR.
        declarations: ``declare`` lines that it needs.
    """

    text: str
    declarations: frozenset[str]


def define(declared: Declaration, rules: Mapping[str, Rule], where: str, *, watched: bool) -> Definition:
    """The definition of an ``air.*`` function, which takes one more argument: the number of the call's place.

    Args:
        declared: as the module has it.
        rules: by family.
        where: the kernel, for an error.
        watched: see :class:`Body`.

    Raises:
        UnmappedIntrinsicError: no rule, or not for these types.
    """
    body = Body(watched)
    rule = rules.get(declared.family)
    try:
        value = rule(body, declared) if rule else None
    except (KeyError, IndexError, ValueError, TranslationError):
        value = None
    if value is None:
        signature = f"{declared.result} {declared.name}({', '.join(declared.arguments)})"
        raise UnmappedIntrinsicError(
            "a function of Apple's compiler that nothing here defines", where=where, found=signature
        )
    parameters = [f"{type_} %a{i}" for i, type_ in enumerate(declared.arguments)]
    head = (
        f"define internal {declared.result} @{declared.name}({', '.join([*parameters, 'i32 %site'])}) alwaysinline {{"
    )
    tail = "  ret void" if declared.result == "void" else f"  ret {declared.result} {value}"
    return Definition("\n".join([head, *body.lines, tail, "}"]), frozenset(body.declarations))


def suffix(type_: str) -> str:
    """How LLVM's intrinsics call a type: ``v2f32`` for ``<2 x float>``."""
    if vector := _VECTOR.fullmatch(type_):
        return f"v{vector[1]}{_SUFFIX.get(vector[2], vector[2])}"
    return _SUFFIX.get(type_, type_)


def element(type_: str) -> str:
    """The element type of a vector, a scalar type itself."""
    vector = _VECTOR.fullmatch(type_)
    return vector[2] if vector else type_


def with_element(type_: str, new: str) -> str:
    """The same vector or scalar of another element type."""
    vector = _VECTOR.fullmatch(type_)
    return f"<{vector[1]} x {new}>" if vector else new


def splat(type_: str, value: str) -> str:
    """A constant of this type with ``value`` in every lane."""
    vector = _VECTOR.fullmatch(type_)
    return f"splat ({vector[2]} {value})" if vector else value


def _to(body: Body, value: str, type_: str, wanted: str) -> str:
    """A floating-point value in a wider element type."""
    target = with_element(type_, wanted)
    return value if type_ == target else body.let(f"fpext {type_} {value} to {target}")


def _from(body: Body, value: str, computed: str, result: str) -> str:
    return value if computed == result else body.let(f"fptrunc {computed} {value} to {result}")


def _in_float(compute: Callable[[Body, str, list[str]], str], wide: str = "float") -> Rule:
    """A rule that computes in float, or wider, and rounds once to the function's own type."""

    def rule(body: Body, declared: Declaration) -> str:
        values = [_to(body, f"%a{i}", type_, wide) for i, type_ in enumerate(declared.arguments)]
        working = with_element(declared.result, wide)
        return _from(body, compute(body, working, values), working, declared.result)

    return rule


def _llvm(name: str, wide: str = "float") -> Rule:
    return _in_float(lambda body, type_, values: body.intrinsic(name, type_, *values), wide)


def _fma(body: Body, declared: Declaration) -> str:
    # A fused operation on half or bfloat in float would round twice; in double the first rounding does no harm.
    wide = "float" if element(declared.result) == "float" else "double"
    return _llvm("fma", wide)(body, declared)


def _clamp(body: Body, declared: Declaration) -> str:
    if declared.path[2] in ("s", "u"):
        sign, type_ = declared.path[2], declared.result
        return body.intrinsic(f"{sign}min", type_, body.intrinsic(f"{sign}max", type_, "%a0", "%a1"), "%a2")
    return _in_float(lambda b, t, v: b.intrinsic("minnum", t, b.intrinsic("maxnum", t, v[0], v[1]), v[2]))(
        body, declared
    )


def _extremum(name: str) -> Rule:
    """``max`` and ``min`` of integers; of floating-point numbers they are called ``fmax`` and ``fmin``."""
    return lambda body, declared: body.intrinsic(
        {"s": "s", "u": "u"}[declared.path[2]] + name, declared.result, "%a0", "%a1"
    )


def _absolute(body: Body, declared: Declaration) -> str:
    type_ = declared.result
    return body.call(type_, f"llvm.abs.{suffix(type_)}", (type_, "%a0"), ("i1", "false"))


def _rsqrt(body: Body, type_: str, values: list[str]) -> str:
    return body.let(f"fdiv {type_} {splat(type_, '1.0')}, {body.intrinsic('sqrt', type_, *values)}")


# The largest number below one: a fraction is never rounded up to a whole.
_BELOW_ONE = {"float": "0x3FEFFFFFE0000000", "half": "0xH3BFF", "bfloat": "0xR3F7F"}


def _fract(body: Body, declared: Declaration) -> str:
    type_ = declared.result
    below = body.let(f"fsub {type_} %a0, {body.intrinsic('floor', type_, '%a0')}")
    return body.intrinsic("minnum", type_, below, splat(type_, _BELOW_ONE[element(type_)]))


def _sinpi(body: Body, type_: str, values: list[str]) -> str:
    """Half a turn either side of the nearest whole number, in double: whole numbers give exact zeros."""
    whole = body.intrinsic("rint", type_, *values)
    rest = body.let(f"fsub {type_} {values[0]}, {whole}")
    sine = body.intrinsic("sin", type_, body.let(f"fmul {type_} {rest}, {splat(type_, '0x400921FB54442D18')}"))
    halved = body.let(f"fmul {type_} {whole}, {splat(type_, '0.5')}")
    even = body.let(f"fcmp oeq {type_} {halved}, {body.intrinsic('floor', type_, halved)}")
    condition = with_element(type_, "i1")
    return body.let(f"select {condition} {even}, {type_} {sine}, {type_} {body.let(f'fneg {type_} {sine}')}")


def _remainder(body: Body, type_: str, values: list[str]) -> str:
    return body.let(f"frem {type_} {values[0]}, {values[1]}")


def _ldexp(body: Body, declared: Declaration) -> str:
    type_ = declared.result
    working = with_element(type_, "float")
    exponent = declared.arguments[1]
    value = _to(body, "%a0", type_, "float")
    name = f"llvm.ldexp.{suffix(working)}.{suffix(exponent)}"
    return _from(body, body.call(working, name, (working, value), (exponent, "%a1")), working, type_)


def _sincos(body: Body, declared: Declaration) -> str:
    type_ = declared.result
    working = with_element(type_, "float")
    value = _to(body, "%a0", type_, "float")
    cosine = _from(body, body.intrinsic("cos", working, value), working, type_)
    body.do(f"store {type_} {cosine}, ptr %a1")
    return _from(body, body.intrinsic("sin", working, value), working, type_)


def _nextafter(body: Body, declared: Declaration) -> str:
    type_ = declared.result
    bits = {"float": "i32", "half": "i16", "bfloat": "i16"}[type_]
    mantissa = {"float": 23, "half": 10, "bfloat": 7}[type_]
    wide = [body.let(f"zext i16 {body.let(f'bitcast {type_} {a} to i16')} to i32") if bits == "i16"
            else body.let(f"bitcast {type_} {a} to i32") for a in ("%a0", "%a1")]  # fmt: skip
    arguments = [("i32", value) for value in (*wide, str(store_size(bits)), str(mantissa))]
    result = body.call("i32", "air_host_nextafter", *arguments)
    narrow = body.let(f"trunc i32 {result} to i16") if bits == "i16" else result
    return body.let(f"bitcast {bits} {narrow} to {type_}")


def _lanes(body: Body, vector: str, value: str) -> list[str]:
    """The elements of a vector, one by one."""
    found = _VECTOR.fullmatch(vector)
    assert found is not None  # the rules are for vectors only
    return [body.let(f"extractelement {vector} {value}, i32 {i}") for i in range(int(found[1]))]


def _dot(body: Body, declared: Declaration) -> str:
    vector, type_ = declared.arguments[0], declared.result
    lanes = list(zip(_lanes(body, vector, "%a0"), _lanes(body, vector, "%a1"), strict=True))
    total = body.let(f"fmul {type_} {lanes[0][0]}, {lanes[0][1]}")
    for x, y in lanes[1:]:
        total = body.intrinsic("fmuladd", type_, x, y, total)
    return total


def _vote(operation: str) -> Rule:
    def rule(body: Body, declared: Declaration) -> str:
        # Not llvm.vector.reduce: for PTX that becomes arithmetic on a 16-bit mask.
        lanes = _lanes(body, declared.arguments[0], "%a0")
        total = lanes[0]
        for lane in lanes[1:]:
            total = body.let(f"{operation} i1 {total}, {lane}")
        return total

    return rule


def _convert(body: Body, declared: Declaration) -> str:
    _air, _family, to_kind, _to_type, from_kind, _from_type = declared.path
    result, given = declared.result, declared.arguments[0]
    for kind, type_ in ((to_kind, result), (from_kind, given)):
        if kind not in ("f", "s", "u") or (kind == "f") != (element(type_) in _SUFFIX):
            raise TranslationError("a conversion of this kind")
    if from_kind == "f" and to_kind == "f":
        return _convert_float(body, given, result)
    if from_kind == "f":
        return _convert_to_integer(body, given, result, to_kind)
    if to_kind == "f":
        return body.let(f"{'sitofp' if from_kind == 's' else 'uitofp'} {given} %a0 to {result}")
    bits, from_bits = (int(element(type_)[1:]) for type_ in (result, given))
    if bits == from_bits:
        return "%a0"
    widen = "sext" if from_kind == "s" else "zext"
    return body.let(f"{'trunc' if bits < from_bits else widen} {given} %a0 to {result}")


def _convert_float(body: Body, given: str, result: str) -> str:
    if given == result:
        return "%a0"
    middle = with_element(given, "float")
    return _from(body, _to(body, "%a0", given, "float"), middle, result)


def _convert_to_integer(body: Body, given: str, result: str, kind: str) -> str:
    value, type_ = _to(body, "%a0", given, "float"), with_element(given, "float")
    if element(result) == "i1":
        return body.let(f"fcmp une {type_} {value}, {splat(type_, '0.0')}")
    if body.watched and type_ == "float":
        signed = ("i32", str(int(kind == "s")))
        body.call("void", "__metal_host_conversion", ("float", value), ("i32", result[1:]), signed, ("i32", "%site"))
    name = f"llvm.fpto{kind}i.sat.{suffix(result)}.{suffix(type_)}"
    return body.call(result, name, (type_, value))


_MODIFIES = {
    "add": "add",
    "sub": "sub",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "xchg": "xchg",
    "max": "max",
    "min": "min",
}


def _atomic(body: Body, declared: Declaration) -> str:
    """Relaxed whatever order is asked for: a target that has threads at once must not rely on this."""
    operation, pointer = declared.path[3], declared.arguments[0]
    if address_space(pointer) not in (1, 3):
        raise TranslationError("an atomic in this address space")
    if operation == "load":
        type_ = declared.result
        body.watch_atomic(pointer, type_, _READ)
        return body.let(f"load atomic volatile {type_}, {pointer} %a0 monotonic, align {store_size(type_)}")
    type_ = declared.arguments[2] if operation == "cmpxchg" else declared.arguments[1]
    if operation == "store":
        body.watch_atomic(pointer, type_, _WRITE)
        body.do(f"store atomic volatile {type_} %a1, {pointer} %a0 monotonic, align {store_size(type_)}")
        return ""
    body.watch_atomic(pointer, type_, _BOTH)
    return _exchange(body, pointer, type_) if operation == "cmpxchg" else _modify(body, declared, pointer, type_)


def _modify(body: Body, declared: Declaration, pointer: str, type_: str) -> str:
    name = _MODIFIES[declared.path[3]]
    if type_ == "float":
        name = name if name == "xchg" else f"f{name}"
    elif name in ("max", "min"):
        name = {"s": "", "u": "u"}[declared.path[4]] + name
    return body.let(f"atomicrmw volatile {name} {pointer} %a0, {type_} %a1 monotonic, align {store_size(type_)}")


def _exchange(body: Body, pointer: str, type_: str) -> str:
    """Compare and exchange; the result is the old value, which also replaces the expected one."""
    bits = f"i{8 * (store_size(type_) or 0)}"
    wanted = "%a2" if type_ == bits else body.let(f"bitcast {type_} %a2 to {bits}")
    expected = body.let(f"load {bits}, ptr %a1")
    both = body.let(f"cmpxchg volatile {pointer} %a0, {bits} {expected}, {bits} {wanted} monotonic monotonic")
    old = body.let(f"extractvalue {{ {bits}, i1 }} {both}, 0")
    body.do(f"store {bits} {old}, ptr %a1")
    return old if type_ == bits else body.let(f"bitcast {bits} {old} to {type_}")


_SAME_NAME = (
    "acos", "asin", "atan", "ceil", "cos", "cosh", "exp", "exp10", "exp2", "fabs", "floor", "log", "log10", "log2",
    "rint", "round", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "atan2", "copysign", "pow",
)  # fmt: skip
_MATH: dict[str, Rule] = {name: _llvm(name) for name in _SAME_NAME} | {
    "fmax": _llvm("maxnum"),
    "fmin": _llvm("minnum"),
    "powr": _llvm("pow"),
    "fmod": _in_float(_remainder),
    "rsqrt": _in_float(_rsqrt),
    "sinpi": _in_float(_sinpi, "double"),
    "sincos": _sincos,
}
PORTABLE: dict[str, Rule] = {
    **_MATH,
    **{f"fast_{name}": rule for name, rule in _MATH.items()},
    "abs": _absolute,
    "all": _vote("and"),
    "any": _vote("or"),
    "atomic": _atomic,
    "clamp": _clamp,
    "fast_clamp": _clamp,
    "convert": _convert,
    "dot": _dot,
    "fma": _fma,
    "fract": _fract,
    "ldexp": _ldexp,
    "max": _extremum("max"),
    "min": _extremum("min"),
    "nextafter": _nextafter,
}
"""Rules that hold for every target, by family."""
