"""An op through PyTorch's public interface: OpInfo samples with their gradients, and what has to be refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from stackproof.engines.standin.device import StandinDevice
from stackproof.gates.op_run.compared import Reference, all_judged, attempted, exactly, on_device
from stackproof.gates.op_run.recorded import base_name, entries_of
from stackproof.ops.scenarios import HostCase

_ENTRIES, _SAMPLES = 4, 12


def samples(op: str, numbers: Sequence[int], dtype: torch.dtype, device: StandinDevice) -> Iterator[HostCase]:
    """Outputs and gradients of samples of the OpInfos that reach an op, where the CPU has the dtype."""
    for entry in [one for one in entries_of(op, numbers) if dtype in one.dtypes][:_ENTRIES]:
        torch.manual_seed(0)
        found = list(entry.sample_inputs("cpu", dtype))
        for number, sample in enumerate(found[:: max(1, -(-len(found) // _SAMPLES))]):
            name = " ".join(filter(None, [entry.name, entry.variant_test_name, f"sample {number}"]))
            arguments = (sample.input, tuple(sample.args), dict(sample.kwargs))
            if all(one.layout is torch.strided for one in tree_leaves(arguments) if isinstance(one, Tensor)):
                device.begin(name)
                yield from _compared(name, entry.op, arguments, dtype, gradients=entry.supports_autograd)


def _compared(
    name: str, op: Callable[..., Any], arguments: Any, dtype: torch.dtype, *, gradients: bool
) -> Iterator[HostCase]:
    exact, plain, actual = (
        attempted(partial(_results, op, given, gradients=gradients))
        for given in (exactly(arguments), arguments, on_device(arguments))
    )
    if exact[0] is None or plain[0] is None:
        return  # the CPU refuses it, or has it in one dtype alone
    if actual[0] is None:
        yield HostCase(name, None, (f"raises {actual[1]}",))
        return
    reference = Reference(exact[0], plain[0], plain[0] if dtype is torch.float32 else None)
    worst, problems = all_judged(actual[0], reference, dtype)
    yield HostCase(name, worst, tuple(problems))


def _results(op: Callable[..., Any], arguments: Any, *, gradients: bool) -> Sequence[Tensor]:
    """Outputs and then gradients of the inputs, on the CPU."""
    source, args, kwargs = tree_map(_leaf, arguments) if gradients else arguments
    outputs = [one for one in tree_leaves(op(source, *args, **kwargs)) if isinstance(one, Tensor)]
    found = [one.detach().cpu() for one in outputs]
    inputs = [one for one in tree_leaves((source, args, kwargs)) if isinstance(one, Tensor) and one.requires_grad]
    reached = [one for one in outputs if one.requires_grad]
    if reached and inputs:
        weights = [_weights(one) for one in reached]
        made = torch.autograd.grad(reached, inputs, weights, allow_unused=True)
        found += [one.cpu() for one in made if one is not None]
    return found


def _weights(output: Tensor) -> Tensor:
    """What the gradients come from: the same numbers on each device, exact in each dtype."""
    numbers = torch.arange(output.numel()).remainder(7).sub(3) / 4
    return numbers.reshape(output.shape).to(output.dtype).to(output.device)


def _leaf(value: Any) -> Any:
    return value.detach().requires_grad_() if isinstance(value, Tensor) and value.is_floating_point() else value


def refusals(op: str, numbers: Sequence[int], device: StandinDevice) -> Iterator[HostCase]:
    """What the op's own OpInfo says has to raise; here, it has to raise anything but take the process down."""
    name = base_name(op)
    for entry in entries_of(op, numbers):
        if entry.error_inputs_func is None or name not in (entry.name, entry.aten_name):
            continue
        for number, error in enumerate(entry.error_inputs("cpu")):
            sample = error.sample_input
            label = f"{entry.name}, error input {number}"
            device.begin(label)
            given = on_device((sample.input, tuple(sample.args), dict(sample.kwargs)))
            _found, why = attempted(partial(_called, entry.op, *given))
            problems = () if why else (f"raises nothing, where the CPU raises {error.error_type.__name__}",)
            yield HostCase(label, None, problems)


def _called(op: Callable[..., Any], source: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    return tree_leaves(op(source, *args, **kwargs))
