"""Runs one dispatch several ways and compares: another schedule, or another floating-point model.

Neither shows a fault by itself: an atomic sum in float depends on the order a little, and a kernel may differ a
little under fast math. The caller says how much is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from stackproof.engines.metal.library import MetalLibrary
from stackproof.engines.metal.model import Report, ReportKind, RunMode


def order_dependence(
    library: MetalLibrary,
    kernel: str,
    args: Sequence[Any],
    *,
    seeds: Sequence[int] = (1, 2, 3),
    tolerance: float = 0.0,
    **call: Any,
) -> list[Report]:
    """Run with permuted schedules and compare every tensor with the unpermuted result.

    Args:
        library: compiled for any mode.
        kernel: host name.
        args: as for the call; they are not changed.
        seeds: one permuted run each.
        tolerance: largest allowed difference, relative to the largest magnitude in the tensor.
        call: ``threads``, ``group_size`` and so on.
    """
    mode, seed = library.mode, library.seed
    try:
        library.mode = mode & ~RunMode.PERMUTED
        expected = _run(library, kernel, args, call)
        library.mode = mode | RunMode.PERMUTED
        for library.seed in seeds:
            found = _run(library, kernel, args, call)
            if report := _compare(library, kernel, expected, found, tolerance, ReportKind.ORDER_DEPENDENT):
                return [report]
    finally:
        library.mode, library.seed = mode, seed
    return []


def fast_math_sensitivity(
    precise: MetalLibrary, fast: MetalLibrary, kernel: str, args: Sequence[Any], *, tolerance: float = 1e-5, **call: Any
) -> list[Report]:
    """Run the builds without and with fast math and compare every tensor.

    Args:
        precise: the library in any mode but ``FAST_MATH``.
        fast: the same source in ``RunMode.FAST_MATH``.
        kernel: host name.
        args: as for the call; they are not changed.
        tolerance: largest allowed difference, relative to the largest magnitude in the tensor.
        call: ``threads``, ``group_size`` and so on.
    """
    expected, found = _run(precise, kernel, args, call), _run(fast, kernel, args, call)
    report = _compare(precise, kernel, expected, found, tolerance, ReportKind.FAST_MATH_SENSITIVE)
    return [report] if report else []


def _run(library: MetalLibrary, kernel: str, args: Sequence[Any], call: dict[str, Any]) -> list[torch.Tensor]:
    own = _copies(args)
    library.kernel(kernel)(*own, **call)
    return [one for one in own if isinstance(one, torch.Tensor)]


def _copies(args: Sequence[Any]) -> list[Any]:
    """Copies with the same strides and offsets; tensors that share storage go on sharing it."""
    storages: dict[int, torch.UntypedStorage] = {}
    copies = []
    for one in args:
        if isinstance(one, torch.Tensor):
            storage = one.untyped_storage()
            if storage.data_ptr() not in storages:
                storages[storage.data_ptr()] = _duplicate(storage)
            own = storages[storage.data_ptr()]
            one = torch.empty(0, dtype=one.dtype).set_(own, one.storage_offset(), one.size(), one.stride())
        copies.append(one)
    return copies


def _duplicate(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    own = torch.empty(storage.nbytes(), dtype=torch.uint8).untyped_storage()
    own.copy_(storage, non_blocking=False)
    return own


def _compare(
    library: MetalLibrary,
    kernel: str,
    expected: Sequence[torch.Tensor],
    found: Sequence[torch.Tensor],
    tolerance: float,
    kind: ReportKind,
) -> Report | None:
    signature = library.kernel(kernel).signature
    for position, (one, other) in enumerate(zip(expected, found, strict=True)):
        a, b = one.double().flatten(), other.double().flatten()
        same_nan = torch.isnan(a) & torch.isnan(b)
        difference = torch.where((a == b) | same_nan, 0.0, (a - b).abs()).nan_to_num(torch.inf, torch.inf)
        if not difference.numel():
            continue
        allowed = tolerance * float(a.nan_to_num(0.0, 0.0, 0.0).abs().max())
        worst = int(difference.argmax())
        if float(difference[worst]) > allowed:
            message = (
                f"element {worst} of tensor {position} is {float(a[worst]):g} in one run"
                f" and {float(b[worst]):g} in the other"
            )
            return Report(kind, kernel, message, signature.file, signature.line)
    return None
