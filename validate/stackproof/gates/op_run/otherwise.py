"""A few calls of an op in other circumstances: threads in another order, fast math, ``vmap``, ``autocast``.

Threads that run in another order may change the last bits where an op adds with atomics. PyTorch has an alert for that,
under ``torch.use_deterministic_algorithms``; an op that gives other bits and has no alert fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from stackproof.engines.standin.device import StandinDevice
from stackproof.gates.op_run.compared import EPSILONS, Reference, all_judged, attempted, exactly, on_device
from stackproof.gates.op_run.recorded import Call
from stackproof.model import Finding
from stackproof.ops.scenarios import HostCase

PERMUTED, FAST_MATH, VMAP, AUTOCAST = "permuted threads", "fast math", "vmap", "autocast"
FAST_MATH_RULE = "fast-math-sensitive"
_FAST_EPSILONS = 64.0
_OTHER_BITS = "other bits in another order of threads, and no alert under torch.use_deterministic_algorithms"
_CASTS = (torch.float16, torch.bfloat16)


def otherwise(kind: str, calls: Sequence[Call], device: StandinDevice) -> Iterator[HostCase]:
    """The cases of one of these kinds.

    Args:
        kind: which.
        calls: a few, in float32 and on the CPU.
    """
    run = _KINDS[kind]
    for call in calls:
        device.begin(call.source)
        yield from run(call, device)


def _permuted(call: Call, device: StandinDevice) -> Iterator[HostCase]:
    moved = _moved(call)
    plain, why = attempted(moved.run)
    if plain is None:
        return  # the values tell
    with device.permuted():
        other, why = attempted(moved.run)
    problem = "" if other is not None else f"raises {why}"
    if other is not None and not _alike(plain, other) and not _alerts(moved):
        problem = _OTHER_BITS
    yield HostCase(call.source, None, (problem,) if problem else ())


def _alike(these: Sequence[Tensor], those: Sequence[Tensor]) -> bool:
    pairs = [(a.cpu(), b.cpu()) for a, b in zip(these, those, strict=True)]
    return all(bool(((a == b) | ((a != a) & (b != b))).all()) for a, b in pairs)


def _alerts(call: Call) -> bool:
    """Whether the op says by itself that it is not deterministic."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        return "determin" in attempted(call.run)[1]
    finally:
        torch.use_deterministic_algorithms(before)


def _fast(call: Call, device: StandinDevice) -> Iterator[HostCase]:
    reference = _exact(call)
    if reference is None:
        return
    with device.fast_math():
        found, why = attempted(_moved(call).run)
    if found is None:
        yield HostCase(call.source, None, (f"raises {why}",))
        return
    error, problems = all_judged(found, reference, torch.float32)
    if problems and error > _FAST_EPSILONS:
        text = f"{call.source}: {error:.3g} epsilons off with fast math, which PyTorch's build does not use"
        device.findings.append(Finding(text, rule=FAST_MATH_RULE, fails=False))
    yield HostCase(call.source, error)


def _vmapped(call: Call, _device: StandinDevice) -> Iterator[HostCase]:
    """A batch of two in one call equals a call each."""
    if call.reference is not None or not any(isinstance(one, Tensor) for one in call.args):
        return
    batch = tuple(
        torch.stack([one, one.flip(0) if one.dim() else one]) if isinstance(one, Tensor) else one for one in call.args
    )
    dims = tuple(0 if isinstance(one, Tensor) else None for one in call.args)

    def mapped(given: Sequence[object]) -> list[Tensor]:
        found = torch.vmap(lambda *args: call.function(*args, **call.kwargs), in_dims=dims)(*given)
        return [one for one in (found if isinstance(found, (tuple, list)) else [found]) if isinstance(one, Tensor)]

    exact, _why = attempted(partial(mapped, exactly(batch)))
    plain, _why = attempted(partial(mapped, batch))
    if exact is None or plain is None:
        return  # nor does the CPU have it
    found, why = attempted(partial(mapped, on_device(batch)))
    if found is None:
        yield HostCase(call.source, None, (f"raises {why}",))
        return
    yield HostCase(call.source, *_as_case(all_judged(found, Reference(exact, plain, plain), torch.float32)))


def _autocast(call: Call, _device: StandinDevice) -> Iterator[HostCase]:
    """What runs without autocast runs with it, and is as exact as the type that it casts to allows."""
    reference, moved = _exact(call), _moved(call)
    if reference is None or attempted(moved.run)[0] is None:
        return
    for dtype in _CASTS:
        with torch.autocast("mps", dtype=dtype):
            found, why = attempted(moved.run)
        name = f"{call.source}, {str(dtype).removeprefix('torch.')}"
        if found is None:
            yield HostCase(name, None, (f"raises {why}",))
            continue
        # A sum of many rounded numbers is off by more than one of them.
        allowed = EPSILONS * 4 * torch.finfo(dtype).eps
        wrong = [
            number
            for number, (one, exact) in enumerate(zip(found, reference.exact, strict=True))
            if exact.is_floating_point()
            and not torch.allclose(one.cpu().double(), exact, rtol=allowed, atol=allowed, equal_nan=True)
        ]
        yield HostCase(name, None, tuple(f"output {one} is wrong under autocast" for one in wrong))


def _as_case(judged: tuple[float, list[str]]) -> tuple[float, tuple[str, ...]]:
    return judged[0], tuple(judged[1])


def _moved(call: Call) -> Call:
    args, kwargs = on_device((call.args, call.kwargs))
    return call.with_arguments(args, kwargs)


def _exact(call: Call) -> Reference | None:
    args, kwargs = exactly((call.args, call.kwargs))
    exact, _why = attempted(partial(call.with_arguments(args, kwargs).run, right=True))
    plain, _why = attempted(call.run)
    return None if exact is None or plain is None else Reference(exact, plain, plain)


_KINDS: Mapping[str, Callable[[Call, StandinDevice], Iterator[HostCase]]] = {
    PERMUTED: _permuted,
    FAST_MATH: _fast,
    VMAP: _vmapped,
    AUTOCAST: _autocast,
}
KINDS = tuple(_KINDS)
