"""Any op, from its OpInfo: called on the stand-in device and on the CPU with PyTorch's own samples.

It is what is left where nobody wrote a proof of the op: values and gradients of the samples in the float types, under
the detectors. The reference is float64 on the CPU from the same rounded inputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map

from stackproof.host.device import StandinDevice
from stackproof.host.scenarios import HostCase, Scenario
from stackproof.host.tensors import layout_kept_on

_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
_SAMPLES = 100
# Of the dtype, relative to the largest value where that exceeds one: some roundings on the way, no wrong formula.
_EPSILONS = 16.0
_LISTS = ("common_methods_invocations.py", "opinfo/definitions/*.py")


class OpInfoHostProof:
    """Implements :class:`stackproof.host.scenarios.HostProof` for any op that has an OpInfo.

    Attributes:
        op: aten name, an overload's too.
    """

    def __init__(self, op: str) -> None:
        self.op = op

    def scenarios(self) -> Sequence[Scenario]:
        return [Scenario(self.op, "samples", name) for name in _DTYPES]

    def out_of_reach(self, kernel: str) -> str:
        return "no sample of the op's OpInfo is known to launch it"

    def run(self, scenario: Scenario, device: StandinDevice) -> Sequence[HostCase]:
        launched = len(device.launches)
        with device.detectors():
            cases = list(_cases(_entries(self.op), _DTYPES[scenario.key]))
        if cases and len(device.launches) == launched:
            cases.append(HostCase("launches", None, ("no kernel was launched: the op ran elsewhere",)))
        return cases


def has_opinfo(op: str) -> bool:
    """Whether the installed torch has an OpInfo of the op; read as text, since importing all of them takes long."""
    return _base_name(op) in _known_names()


@cache
def _known_names() -> frozenset[str]:
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "testing/_internal"
    texts = [path.read_text(errors="replace") for pattern in _LISTS for path in folder.glob(pattern)]
    pattern = r"(?:Info\(\s*|\b(?:aten_name|aten_backward_name)=)['\"]([\w.]+)['\"]"
    return frozenset(name for text in texts for name in re.findall(pattern, text))


def _base_name(op: str) -> str:
    """Without overload, and without what makes it work in place."""
    return op.partition(".")[0].rstrip("_")


def _entries(op: str) -> list[Any]:
    from torch.testing._internal import common_methods_invocations

    name = _base_name(op)
    entries: list[Any] = common_methods_invocations.op_db
    return [one for one in entries if name in (one.name, one.aten_name, one.aten_backward_name)]


def _cases(entries: Sequence[Any], dtype: torch.dtype) -> Iterator[HostCase]:
    for entry in entries:
        if dtype not in entry.dtypes:
            continue
        torch.manual_seed(0)
        samples = list(entry.sample_inputs("cpu", dtype))
        for number, sample in enumerate(samples[:: len(samples) // _SAMPLES + 1]):
            name = " ".join(filter(None, [entry.name, entry.variant_test_name, f"sample {number}"]))
            arguments = (sample.input, tuple(sample.args), dict(sample.kwargs))
            yield _compared(name, entry.op, arguments, dtype, gradients=entry.supports_autograd)


def _compared(name: str, op: Callable[..., Any], arguments: Any, dtype: torch.dtype, *, gradients: bool) -> HostCase:
    expected = _results(op, _exactly(arguments, dtype), gradients=gradients)
    plain = _results(op, arguments, gradients=gradients)
    actual = _results(op, _moved(arguments), gradients=gradients)
    worst, problems = None, []
    for what in expected:
        error, problem = _judged(what, actual.get(what), expected[what], plain[what], dtype)
        worst = error if worst is None else max(worst, error)
        problems += [problem] if problem else []
    return HostCase(name, worst, tuple(problems))


def _judged(what: str, actual: Tensor | None, exact: Tensor, plain: Tensor, dtype: torch.dtype) -> tuple[float, str]:
    """The error in epsilons, and what is wrong; the CPU's own result in that dtype may be no worse than this one."""
    if actual is None or actual.shape != exact.shape or actual.dtype != plain.dtype:
        found = "nothing" if actual is None else f"{actual.dtype} of {tuple(actual.shape)}"
        return 0.0, f"{what}: {found}, where the CPU has {plain.dtype} of {tuple(plain.shape)}"
    if not exact.is_floating_point():
        return 0.0, "" if torch.equal(actual, plain) else f"{what} differs from the CPU's"
    error, own = (_epsilons(one, exact, dtype) for one in (actual, plain))
    allowed = max(_EPSILONS, 2 * own)
    return error, f"{what}: {error:.3g} epsilons off, {allowed:.3g} allowed" if not error <= allowed else ""


def _epsilons(values: Tensor, exact: Tensor, dtype: torch.dtype) -> float:
    same = (values.double() == exact) | (values.isnan() & exact.isnan())
    difference = (values.double() - exact).abs()[~same]
    if not difference.numel():
        return 0.0
    scale = max(1.0, float(exact[exact.isfinite()].abs().max()) if exact.isfinite().any() else 1.0)
    return float(difference.max()) / scale / torch.finfo(dtype).eps


def _results(op: Callable[..., Any], arguments: Any, *, gradients: bool) -> dict[str, Tensor]:
    """Outputs by number and gradients of the inputs by number, on the CPU."""
    source, args, kwargs = tree_map(_leaf, arguments) if gradients else arguments
    outputs = [one for one in tree_flatten(op(source, *args, **kwargs))[0] if isinstance(one, Tensor)]
    found = {f"output {number}": one.detach().cpu() for number, one in enumerate(outputs)}
    inputs = [one for one in tree_flatten((source, args, kwargs))[0] if isinstance(one, Tensor) and one.requires_grad]
    reached = [one for one in outputs if one.requires_grad]
    if reached and inputs:
        weights = [_weights(one) for one in reached]
        for number, one in enumerate(torch.autograd.grad(reached, inputs, weights, allow_unused=True)):
            if one is not None:
                found[f"gradient {number}"] = one.cpu()
    return found


def _weights(output: Tensor) -> Tensor:
    """What the gradients come from: the same numbers on each device, exact in each dtype."""
    return (
        (torch.arange(output.numel()).remainder(7).sub(3) / 4).reshape(output.shape).to(output.dtype).to(output.device)
    )


def _leaf(value: Any) -> Any:
    return value.detach().requires_grad_() if isinstance(value, Tensor) and value.is_floating_point() else value


def _exactly(arguments: Any, dtype: torch.dtype) -> Any:
    """The same in float64."""

    def exact(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value.double() if value.is_floating_point() else value
        return torch.float64 if value is dtype else value

    return tree_map(exact, arguments)


def _moved(arguments: Any) -> Any:
    """The same on the device, a name of the CPU among the arguments included."""
    move = layout_kept_on("mps")

    def moved(value: Any) -> Any:
        if isinstance(value, Tensor):
            return move(value)
        return "mps" if value == "cpu" or value == torch.device("cpu") else value

    return tree_map(moved, arguments)
