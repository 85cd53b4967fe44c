"""The ``air.*`` functions that the threads of a group take part in together, for the executor on this host.

Values travel as bytes in private memory, so that one function of the runtime (``runtime/simd.c``) serves every type.
All of them get the number of the call's place: lanes that wait at different places do not take part in the same
operation.
"""

from __future__ import annotations

from stackproof.engines.apple.definitions import PORTABLE, Body, Rule, element
from stackproof.engines.apple.ir import Declaration, address_space, store_size

_SITE = ("i32", "%site")
_LANES = 32

# The order of `enum number` in runtime/air.h.
_NUMBERS = {
    "float": 0,
    "half": 1,
    "bfloat": 2,
    ("i8", "s"): 3,
    ("i16", "s"): 4,
    ("i32", "s"): 5,
    ("i64", "s"): 6,
    ("i8", "u"): 7,
    ("i16", "u"): 8,
    ("i32", "u"): 9,
    ("i64", "u"): 10,
}
# The orders of `enum combination` and `enum movement`.
_COMBINATIONS = {"sum": 0, "product": 1, "max": 2, "min": 3, "and": 4, "or": 5, "xor": 6}
_MOVEMENTS = {"shuffle": 0, "broadcast": 0, "shuffle_xor": 1, "shuffle_up": 2, "shuffle_down": 3}
_MATRIX = "simdgroup_matrix_8x8_"


def _number(declared: Declaration, type_: str) -> tuple[str, str]:
    sign = declared.path[2] if len(declared.path) > 3 else ""
    return "i32", str(_NUMBERS[type_] if type_ in _NUMBERS else _NUMBERS[type_, sign])


def _size(type_: str) -> tuple[str, str]:
    size = store_size(type_)
    if size is None:
        raise ValueError(type_)
    return "i32", str(size)


def _barrier(function: str) -> Rule:
    def rule(body: Body, declared: Declaration) -> str:
        if declared.path[2:] != ("barrier",):
            raise ValueError(declared.name)
        return body.call("void", function, ("i32", "%a0"), _SITE)

    return rule


def _width(body: Body, declared: Declaration) -> str:
    return str(_LANES)


def _combine(name: str) -> Rule:
    def rule(body: Body, declared: Declaration) -> str:
        type_ = declared.result
        at = body.slot(type_, "%a0")
        combination = ("i32", str(_COMBINATIONS[name]))
        body.call("void", "air_host_combine", ("ptr", at), _number(declared, type_), combination, _SITE)
        return body.let(f"load {type_}, ptr {at}")

    return rule


def _scan(name: str, *, inclusive: bool) -> Rule:
    def rule(body: Body, declared: Declaration) -> str:
        type_ = declared.result
        at = body.slot(type_, "%a0")
        how = ("i32", str(_COMBINATIONS[name])), ("i32", str(int(inclusive)))
        body.call("void", "air_host_scan", ("ptr", at), _number(declared, type_), *how, _SITE)
        return body.let(f"load {type_}, ptr {at}")

    return rule


def _move(name: str) -> Rule:
    def rule(body: Body, declared: Declaration) -> str:
        type_ = declared.result
        at = body.slot(type_, "%a0")
        lane = body.let("zext i16 %a1 to i32")
        how = ("i32", str(_MOVEMENTS[name]))
        body.call("void", "air_host_move", ("ptr", at), _size(type_), how, ("i32", lane), _SITE)
        return body.let(f"load {type_}, ptr {at}")

    return rule


def _fill(*, up: bool) -> Rule:
    def rule(body: Body, declared: Declaration) -> str:
        type_ = declared.result
        at, fill = body.slot(type_, "%a0"), body.slot(type_, "%a1")
        delta, modulo = (body.let(f"zext i16 {a} to i32") for a in ("%a2", "%a3"))
        how = ("i32", str(int(up))), ("i32", delta), ("i32", modulo)
        body.call("void", "air_host_fill", ("ptr", at), ("ptr", fill), _size(type_), *how, _SITE)
        return body.let(f"load {type_}, ptr {at}")

    return rule


def _vote(*, every: bool) -> Rule:
    def rule(body: Body, declared: Declaration) -> str:
        mine = body.let("zext i1 %a0 to i32")
        result = body.call("i32", "air_host_vote", ("i32", mine), ("i32", str(int(every))), _SITE)
        return body.let(f"trunc i32 {result} to i1")

    return rule


def _take(body: Body, type_: str, value: str, at: str) -> None:
    """Put a lane's two elements of a matrix, as float, to ``at``."""
    for k in range(2):
        one = body.let(f"extractelement {type_} {value}, i32 {k}")
        wide = one if element(type_) == "float" else body.let(f"fpext {element(type_)} {one} to float")
        place = body.let(f"getelementptr float, ptr {at}, i64 {k}")
        body.do(f"store float {wide}, ptr {place}")


def _give(body: Body, type_: str, at: str) -> str:
    """A matrix value of the two floats at ``at``."""
    value = "zeroinitializer"
    for k in range(2):
        place = body.let(f"getelementptr float, ptr {at}, i64 {k}")
        wide = body.let(f"load float, ptr {place}")
        one = wide if element(type_) == "float" else body.let(f"fptrunc float {wide} to {element(type_)}")
        value = body.let(f"insertelement {type_} {value}, {element(type_)} {one}, i32 {k}")
    return value


def _matrix_init(function: str) -> Rule:
    def rule(body: Body, declared: Declaration) -> str:
        at = body.slot("<2 x float>")
        given = declared.arguments[0]
        value = "%a0" if given == "float" else body.let(f"fpext {given} %a0 to float")
        body.call("void", function, ("ptr", at), ("float", value))
        return _give(body, declared.result, at)

    return rule


def _matrix_memory(body: Body, matrix: str, pointer: str, first: int) -> list[tuple[str, str]]:
    """The arguments that loads and stores share: where, row length, origin, transposition, type, space, place."""
    plain = body.let(f"addrspacecast {pointer} %a{first} to ptr")
    x, y = (body.let(f"extractelement <2 x i64> %a{first + 2}, i32 {i}") for i in range(2))
    transposed = body.let(f"zext i1 %a{first + 3} to i32")
    number = ("i32", str(_NUMBERS[element(matrix)]))
    watched = ("i32", str(int(body.watched and address_space(pointer) > 0)))
    return [
        ("ptr", plain), ("i64", f"%a{first + 1}"), ("i64", x), ("i64", y), ("i32", transposed), number, watched, _SITE,
    ]  # fmt: skip


def _matrix_load(body: Body, declared: Declaration) -> str:
    at = body.slot("<2 x float>")
    memory = _matrix_memory(body, declared.result, declared.arguments[0], 0)
    body.call("void", "air_host_matrix_load", ("ptr", at), *memory)
    return _give(body, declared.result, at)


def _matrix_store(body: Body, declared: Declaration) -> str:
    matrix = declared.arguments[0]
    at = body.slot("<2 x float>")
    _take(body, matrix, "%a0", at)
    body.call("void", "air_host_matrix_store", ("ptr", at), *_matrix_memory(body, matrix, declared.arguments[1], 1))
    return ""


def _matrix_multiply(body: Body, declared: Declaration) -> str:
    slots = []
    for i, type_ in enumerate(declared.arguments):
        slots.append(body.slot("<2 x float>"))
        _take(body, type_, f"%a{i}", slots[-1])
    body.call("void", "air_host_matrix_multiply", *(("ptr", at) for at in slots), _SITE)
    return _give(body, declared.result, slots[2])


HOST: dict[str, Rule] = {
    **PORTABLE,
    "wg": _barrier("__metal_host_barrier"),
    "simdgroup": _barrier("__metal_host_simd_barrier"),
    "get_simdgroup_size": _width,
    **{f"simd_{name}": _combine(name) for name in _COMBINATIONS},
    **{f"simd_prefix_inclusive_{name}": _scan(name, inclusive=True) for name in ("sum", "product")},
    **{f"simd_prefix_exclusive_{name}": _scan(name, inclusive=False) for name in ("sum", "product")},
    **{f"simd_{name}": _move(name) for name in _MOVEMENTS},
    "simd_shuffle_and_fill_up": _fill(up=True),
    "simd_shuffle_and_fill_down": _fill(up=False),
    "simd_any": _vote(every=False),
    "simd_all": _vote(every=True),
    f"{_MATRIX}init_filled": _matrix_init("air_host_matrix_filled"),
    f"{_MATRIX}init_diag": _matrix_init("air_host_matrix_diagonal"),
    f"{_MATRIX}load": _matrix_load,
    f"{_MATRIX}store": _matrix_store,
    f"{_MATRIX}multiply_accumulate": _matrix_multiply,
}
"""All rules for the executor on this host, by family."""
