"""The calls of an op that PyTorch's own OpInfo samples make on the CPU, directly or somewhere in a backward pass.

An op need not have an OpInfo of its own: ``_cdist_backward`` is called by the gradients of ``cdist``. So all OpInfos
are asked once which ops they reach; the samples of those that reach the op are then recorded call by call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from stackproof.gates.op_run.layouts import SIZES
from stackproof.gates.op_run.user import user_reference, user_samples

_ENTRIES = 6
_MOST_CALLS = 400
_RESIZED = 6
_WIDE = (torch.float64, torch.float32, torch.complex128, torch.int64, torch.bool)


@dataclass(frozen=True)
class Call:
    """One call of an op.

    Attributes:
        function: the overload that computes a new result.
        args: its arguments, tensors on the CPU.
        kwargs: its keyword arguments.
        source: where it comes from, in words.
        resized: it comes from a sample whose sizes were changed.
        reference: computes the right result where the op on the CPU does not.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    source: str
    resized: bool = False
    reference: Callable[..., Any] | None = None

    def mapped(self, change: Any) -> Call:
        """The call with every leaf of its arguments changed."""
        return self.with_arguments(*tree_map(change, (self.args, self.kwargs)))

    def with_arguments(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> Call:
        """The call with other arguments."""
        return replace(self, args=tuple(args), kwargs=dict(kwargs))

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors among its arguments."""
        return [one for one in tree_leaves((self.args, self.kwargs)) if isinstance(one, Tensor)]

    def run(self, *, right: bool = False) -> list[Tensor]:
        """Its results, in order; the right ones by its reference, where there is one."""
        function = self.reference if right and self.reference is not None else self.function
        found = function(*self.args, **self.kwargs)
        return [one for one in tree_leaves(found) if isinstance(one, Tensor)]


def base_name(op: str) -> str:
    """Without overload, and without what makes it work in place."""
    return op.partition(".")[0].rstrip("_")


@dataclass
class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps the calls of one op that are made while it is active, or only the names of all ops."""

    op: str = ""
    source: str = ""
    resized: bool = False
    names: set[str] = field(default_factory=set)
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = base_name(func._schema.name.split("::")[1])
        self.names.add(name)
        if name == self.op and (function := functional(func)) is not None:
            outs = {one.name for one in func._schema.arguments if one.is_out}
            kept = {key: value for key, value in (kwargs or {}).items() if key not in outs}
            self.calls.append(Call(function, tuple(args), kept, self.source, self.resized).mapped(_copied))
        return func(*args, **(kwargs or {}))


def _copied(value: Any) -> Any:
    """A tensor with a storage of its own and the same layout."""
    if not isinstance(value, Tensor) or value.layout is not torch.strided:
        return value
    value = value.detach().resolve_conj().resolve_neg()
    whole = value.new_empty(0).set_(value.untyped_storage()).clone()
    return whole.as_strided(value.shape, value.stride(), value.storage_offset())


def overloads(name: str) -> list[Any]:
    """All overloads of an aten op, by its name."""
    packet = getattr(torch.ops.aten, name, None)
    return [getattr(packet, one) for one in packet.overloads()] if packet is not None else []


def inputs_of(function: Any) -> list[tuple[str, str]]:
    """Names and types of the arguments that are not results."""
    return [(one.name, str(one.type)) for one in function._schema.arguments if not one.is_out]


def functional(function: Any) -> Any | None:
    """The overload with the same inputs that changes none of them; ``None`` where there is none."""
    for one in overloads(base_name(function._schema.name.split("::")[1])):
        if inputs_of(one) == inputs_of(function) and not one._schema.is_mutable:
            return one
    return None


def reached_ops() -> dict[str, list[int]]:
    """By op, the numbers of the OpInfos whose first sample reaches it."""
    reached: dict[str, list[int]] = {}
    for number, entry in enumerate(_all_entries()):
        dtype = next((one for one in _WIDE if one in entry.dtypes), None)
        if dtype is None:
            continue
        recorder = _Recorder()
        for sample in _samples(entry, dtype, 1):
            _run(entry, _arguments(sample), recorder)
        for name in recorder.names:
            reached.setdefault(name, []).append(number)
    return reached


def _all_entries() -> list[Any]:
    from torch.testing._internal import common_methods_invocations

    entries: list[Any] = common_methods_invocations.op_db
    return entries


def entries_of(op: str, numbers: Sequence[int]) -> list[Any]:
    """The OpInfos with these numbers, those of the op's own name first."""
    name = base_name(op)
    found = [_all_entries()[number] for number in numbers]
    return sorted(found, key=lambda entry: name not in (entry.name, entry.aten_name))


def _samples(entry: Any, dtype: torch.dtype, most: int | None = None) -> list[Any]:
    differentiable = entry.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    try:
        return list(islice(entry.sample_inputs("cpu", dtype, requires_grad=differentiable), most))
    except Exception:  # PyTorch's own generators have their gaps
        return []


def _arguments(sample: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    return sample.input, tuple(sample.args), dict(sample.kwargs)


def _run(entry: Any, arguments: Any, recorder: _Recorder) -> None:
    """Forward and backward of a sample; what the CPU refuses is no sample."""
    try:
        with warnings.catch_warnings(), recorder:
            warnings.simplefilter("ignore")
            source, args, kwargs = arguments
            found = entry(source, *args, **kwargs)
            outputs = [one for one in tree_leaves(found) if isinstance(one, Tensor) and one.requires_grad]
            inputs = [one for one in tree_leaves(arguments) if isinstance(one, Tensor) and one.requires_grad]
            if outputs and inputs:
                torch.autograd.grad(outputs, inputs, [torch.randn_like(one) for one in outputs], allow_unused=True)
    except Exception:
        return


@cache
def recorded_calls(op: str, numbers: tuple[int, ...], dtype: torch.dtype) -> tuple[Call, ...]:
    """The calls of an op that OpInfo samples of a dtype make.

    Args:
        op: aten name, an overload's too.
        numbers: of the OpInfos that reach it.
        dtype: of the samples; the widest of its kind.
    """
    calls: list[Call] = []
    torch.manual_seed(0)
    for entry in [one for one in entries_of(op, numbers) if dtype in one.dtypes][:_ENTRIES]:
        if len(calls) >= _MOST_CALLS:
            break
        label = " ".join(filter(None, [entry.name, entry.variant_test_name]))
        samples = list(_some(_samples(entry, dtype), 100))
        asked = [(f"{label}, sample {number}", _arguments(one), False) for number, one in enumerate(samples)]
        for number, one in list(enumerate(samples))[:: max(1, len(samples) // _RESIZED)]:
            for way in SIZES:
                if (changed := way.change(_arguments(one))) is not None:
                    asked.append((f"{label}, sample {number}, {way.name}", changed, True))
        for source, arguments, resized in asked:
            recorder = _Recorder(base_name(op), source, resized)
            _run(entry, arguments, recorder)
            calls += [call for call in recorder.calls if _is_of(call, dtype)]
    return tuple(calls[:_MOST_CALLS])


@cache
def user_calls(op: str, path: str, dtype: torch.dtype) -> tuple[Call, ...]:
    """The calls of an op that the samples of a user's file make."""
    calls: list[Call] = []
    for source, sample in user_samples(path, dtype):
        recorder = _Recorder(base_name(op), source)
        with (
            warnings.catch_warnings(),
            recorder,
            suppress(Exception),
        ):  # an op that the CPU lacks is recorded all the same
            warnings.simplefilter("ignore")
            sample()
        reference = user_reference(path, base_name(op))
        calls += [replace(call, reference=reference) for call in recorder.calls if _is_of(call, dtype)]
    return tuple(calls)


def _is_of(call: Call, dtype: torch.dtype) -> bool:
    """Whether the dtype of the samples is one of the call's; other ops make numbers of their own on the way."""
    return not call.tensors or any(one.dtype is dtype and one.layout is torch.strided for one in call.tensors)


def _some(samples: Sequence[Any], count: int) -> Iterator[Any]:
    """A few that are spread over all, the first among them."""
    if count:
        yield from samples[:: max(1, -(-len(samples) // count))]


def spread(calls: Sequence[Call], count: int) -> list[Call]:
    """A few calls, no two alike in shapes and numbers as long as there are others, spread over all of them."""
    different: dict[Any, Call] = {}
    for call in calls:
        shapes = tuple((tuple(one.shape), one.stride()) for one in call.tensors if one.layout is torch.strided)
        others = tuple(str(one) for one in tree_leaves((call.args, call.kwargs)) if not isinstance(one, Tensor))
        different.setdefault((call.function, shapes, others), call)
    return list(_some(list(different.values()), count))
