"""Whether what the device computes is right: against float64 on the CPU, from the same rounded inputs.

An error is counted in epsilons of the dtype, relative to the value where that exceeds one. Allowed are a few roundings,
or four times the CPU's own largest error in that dtype where that is more. Where the CPU has no kernel for the dtype,
its result in float32 is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from stackproof.engines.standin.tensors import layout_kept_on
from stackproof.gates.op_run.recorded import Call

EPSILONS = 16.0
"""Of the dtype: some roundings on the way, no wrong formula."""
OWN = 4.0
"""How much worse than the CPU's own result, which adds up in another order."""
_ILL = 1e-3
"""Numbers of which the CPU loses so much in float32 are not compared: any rounding on the way changes them."""
WIDE = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}
NARROWED = (torch.float64, torch.complex128)


def in_dtype(call: Call, dtype: torch.dtype) -> Call:
    """The call with its widest floats in a dtype, and that dtype where it is named."""

    def one(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.to(dtype) if value.dtype in NARROWED and dtype in WIDE else value
        return dtype if value in NARROWED and isinstance(value, torch.dtype) else value

    return call.mapped(one)


def exactly(arguments: Any) -> Any:
    """Arguments with every float in its widest dtype; the values are the rounded ones."""

    def one(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.to(WIDE[value.dtype]) if value.dtype in WIDE else value
        return WIDE.get(value, value) if isinstance(value, torch.dtype) else value

    return tree_map(one, arguments)


def on_device(arguments: Any) -> Any:
    """The same on the device, layouts kept, a name of the CPU among the arguments included."""
    move = layout_kept_on("mps")

    def one(value: Any) -> Any:
        if isinstance(value, Tensor):
            return move(value)
        return "mps" if value == "cpu" or value == torch.device("cpu") else value

    return tree_map(one, arguments)


@dataclass(frozen=True)
class Reference:
    """What is right.

    Attributes:
        exact: the results in float64.
        plain: the CPU's own in the dtype, ``None`` where it has none.
        single: the CPU's own in float32, from the same inputs.
    """

    exact: Sequence[Tensor]
    plain: Sequence[Tensor] | None = None
    single: Sequence[Tensor] | None = None

    def __post_init__(self) -> None:
        for other in (self.plain, self.single):
            assert other is None or len(other) == len(self.exact)


def all_judged(actual: Sequence[Tensor], reference: Reference, dtype: torch.dtype) -> tuple[float, list[str]]:
    """The largest error in epsilons of several results, and what is wrong with which."""
    worst, problems = 0.0, []
    for number, exact in enumerate(reference.exact):
        found = actual[number].detach().cpu() if number < len(actual) else None
        plain, single = (one[number] if one is not None else None for one in (reference.plain, reference.single))
        error, problem = judged(found, exact, plain, single, dtype)
        worst = max(worst, error)
        problems += [f"output {number}: {problem}" if len(reference.exact) > 1 else problem] if problem else []
    return worst, problems


def judged(
    actual: Tensor | None, exact: Tensor, plain: Tensor | None, single: Tensor | None, dtype: torch.dtype
) -> tuple[float, str]:
    """The error of one result in epsilons, and what is wrong."""
    wanted = plain.dtype if plain is not None else (dtype if exact.dtype in NARROWED else exact.dtype)
    if actual is None or actual.shape != exact.shape or actual.dtype != wanted:
        found = "nothing" if actual is None else f"{actual.dtype} of {tuple(actual.shape)}"
        return 0.0, f"{found}, where the CPU has {wanted} of {tuple(exact.shape)}"
    if exact.dtype not in NARROWED and (exact.is_floating_point() or exact.is_complex()):
        # Of integers the CPU computes it in float32, too: nothing more exact is known.
        exact = exact.to(torch.complex128 if exact.is_complex() else torch.float64)
    if exact.dtype not in NARROWED:
        differs = not torch.equal(actual, plain if plain is not None else exact.to(wanted))
        return 0.0, "differs from the CPU's" if differs else ""
    errors = _epsilons(actual, exact, wanted)
    own = _epsilons(plain, exact, wanted) if plain is not None else torch.zeros(())
    if single is not None and single.is_floating_point() | single.is_complex():
        well = _epsilons(single, exact, single.dtype) <= _ILL / torch.finfo(single.dtype).eps
        errors, own = errors[well], own[well] if own.dim() else own
    error = float(errors.max()) if errors.numel() else 0.0
    allowed = max(EPSILONS, OWN * (float(own.max()) if own.numel() else 0.0))
    return error, f"{error:.3g} epsilons off, {allowed:.3g} allowed" if not error <= allowed else ""


def _epsilons(values: Tensor, exact: Tensor, dtype: torch.dtype) -> Tensor:
    """The error of each number."""
    values, exact = (torch.view_as_real(one.resolve_conj()) if one.is_complex() else one for one in (values, exact))
    # What does not fit the dtype is infinite in it.
    exact = exact.to(values.dtype).double().where(exact.abs() > torch.finfo(values.dtype).max, exact)
    same = (values.double() == exact) | (values.isnan() & exact.isnan())
    relative = (values.double() - exact).abs() / exact.abs().clamp(min=1.0) / torch.finfo(dtype).eps
    return relative.masked_fill(same, 0.0).reshape(-1)


def attempted(run: Callable[[], Iterable[Tensor]]) -> tuple[list[Tensor] | None, str]:
    """Results, or ``None`` and why there are none."""
    try:
        return list(run()), ""
    except Exception as error:  # whatever an op raises is told
        return None, f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
