"""Every way in which a dispatch can fail to fit its kernel is told, and a fitting one is silent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stackproof.engines.metal.model import ElementType, Parameter, ParameterKind, Signature
from stackproof.engines.standin.dispatch import check_dispatch
from stackproof.engines.standin.interface import NO_DTYPE, SLOTS, Dispatch, Slot, SlotKind

FLOAT32, FLOAT16 = 6, 5
FLOAT = ElementType(4, 4, "f", 1, 4, 4)
PARAMS = ElementType(104, 4, "", 1, 104, 104)
UNSET = Slot(SlotKind.UNSET, 0, 0, 0, 0, 0, NO_DTYPE, stale=False)
OUTPUT = Slot(SlotKind.BUFFER, 0x1000, 256, 0, 0x1000, 0, FLOAT32, stale=False)
INPUT = replace(OUTPUT, address=0x2000, buffer=0x2000)
BYTES = Slot(SlotKind.BYTES, 0x3000, 104, 0, 0x3000, 0, NO_DTYPE, stale=False)
SIGNATURE = Signature(
    "kernel",
    "kernels/A.metal",
    1,
    (
        Parameter(0, "output", "device float* output", ParameterKind.DEVICE, 0, element=FLOAT),
        Parameter(1, "input", "constant float* input", ParameterKind.CONSTANT, 1, read_only=True, element=FLOAT),
        Parameter(2, "params", "constant P& params", ParameterKind.CONSTANT, 2, "", True, True, PARAMS),
        Parameter(3, "tid", "uint tid", ParameterKind.ATTRIBUTE, attribute="thread_position_in_grid"),
    ),
)


def dispatched(
    *slots: Slot, grid: tuple[int, int, int] = (64, 1, 1), group: tuple[int, int, int] = (64, 1, 1)
) -> Dispatch:
    table = (*slots, *[UNSET] * (SLOTS - len(slots)))
    return Dispatch("kernel", grid, group, by_groups=False, slots=table, threadgroup_memory=(0,) * SLOTS)


def rules(dispatch: Dispatch, signature: Signature = SIGNATURE) -> list[tuple[str, bool]]:
    return [(problem.rule, problem.refused) for problem in check_dispatch(signature, dispatch)]


def test_a_fitting_dispatch_has_no_problem() -> None:
    assert rules(dispatched(OUTPUT, INPUT, BYTES)) == []


@pytest.mark.parametrize(
    ("slots", "expected"),
    [
        ((OUTPUT, INPUT), ("argument-missing", True)),
        ((OUTPUT, INPUT, replace(BYTES, available=96)), ("argument-size", True)),
        ((OUTPUT, INPUT, replace(BYTES, available=112)), ("argument-size", False)),
        ((OUTPUT, replace(BYTES, available=6), BYTES), ("argument-size", False)),
        ((OUTPUT, replace(INPUT, offset=2), BYTES), ("argument-alignment", False)),
        ((OUTPUT, replace(INPUT, dtype=FLOAT16), BYTES), ("argument-type", False)),
        ((replace(BYTES, available=4), INPUT, BYTES), ("argument-type", False)),
        ((OUTPUT, replace(INPUT, stale=True), BYTES), ("stale-binding", False)),
        ((OUTPUT, INPUT, BYTES, INPUT), ("argument-surplus", False)),
        ((OUTPUT, INPUT, replace(BYTES, kind=SlotKind.NIL)), ("argument-missing", True)),
    ],
)
def test_an_argument_that_does_not_fit_is_told(slots: tuple[Slot, ...], expected: tuple[str, bool]) -> None:
    assert rules(dispatched(*slots)) == [expected]


@pytest.mark.parametrize(
    ("grid", "group", "rule"),
    [
        ((0, 1, 1), (1, 1, 1), "empty-grid"),
        ((4096, 1, 1), (1025, 1, 1), "threadgroup-size"),
        ((64, 1, 1), (0, 1, 1), "threadgroup-size"),
        ((2**32, 1, 1), (1024, 1, 1), "grid-size"),
    ],
)
def test_an_extent_that_metal_refuses_is_refused(
    grid: tuple[int, int, int], group: tuple[int, int, int], rule: str
) -> None:
    assert rules(dispatched(OUTPUT, INPUT, BYTES, grid=grid, group=group)) == [(rule, True)]


def test_a_buffer_that_only_fills_a_slot_may_be_of_another_type() -> None:
    half = replace(INPUT, dtype=FLOAT16)
    halves = replace(SIGNATURE.parameters[1], element=ElementType(2, 2, "f", 1, 2, 2))
    signature = replace(SIGNATURE, parameters=(SIGNATURE.parameters[0], halves, *SIGNATURE.parameters[2:]))
    assert rules(dispatched(half, half, BYTES), signature) == []


def test_a_stale_binding_that_the_kernel_does_not_take_is_no_problem() -> None:
    assert rules(dispatched(OUTPUT, INPUT, BYTES, replace(INPUT, stale=True))) == []


def test_threadgroup_memory_without_a_length_is_refused() -> None:
    local = Parameter(4, "shared", "threadgroup float* shared", ParameterKind.THREADGROUP, 0, element=FLOAT)
    signature = replace(SIGNATURE, parameters=(*SIGNATURE.parameters, local))
    assert rules(dispatched(OUTPUT, INPUT, BYTES), signature) == [("argument-missing", True)]
