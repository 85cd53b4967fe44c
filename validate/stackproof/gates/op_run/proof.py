"""The proof of any op: its recorded calls on the stand-in device, in every dtype, layout and overload."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from stackproof.engines.standin.device import NAN_POISON, NUMBER_POISON, StandinDevice
from stackproof.engines.standin.missing import LACKING
from stackproof.gates.op_run import layouts, opinfo, otherwise
from stackproof.gates.op_run.compared import (
    NARROWED,
    WIDE,
    Reference,
    all_judged,
    attempted,
    exactly,
    in_dtype,
    on_device,
)
from stackproof.gates.op_run.large import large_cases
from stackproof.gates.op_run.layouts import Way
from stackproof.gates.op_run.overloads import InPlace, Out, in_place_of, out_of
from stackproof.gates.op_run.recorded import Call, base_name, recorded_calls, spread, user_calls
from stackproof.model import Finding
from stackproof.ops.scenarios import HostCase, HostProof, Scenario

VALUES, WATCHED, RESULTS, GRADIENTS = "values", "under the detectors", "out= and in place", "OpInfo"
REFUSALS, LARGE = "error inputs", "large tensors"
DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "complex64": torch.complex64,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
_WATCHED = ("float32", "float16", "int64", "bool")
_LARGE = ("float32", "int64")
_CALLS = {VALUES: (20, 12, 20), WATCHED: (8, 6, 1), RESULTS: (6, 0, 6)}
"""Of each kind, how many calls as recorded, of changed sizes, and without elements."""
_FEW = (4, 2, 0)
_NTH_IN_ALL_LAYOUTS = 3
_MOST_WATCHED = 6000  # elements of all tensors of a call: the detectors are slow
_FLOATS = ("float32", "float16", "bfloat16")
REFUSED = "refused"


@dataclass
class OpProof:
    """Implements :class:`stackproof.ops.scenarios.HostProof` for any op whose calls can be recorded.

    Attributes:
        op: aten name.
        entries: numbers of the OpInfos that reach it.
        user: path of the user's own samples; empty where there are none.
    """

    op: str
    entries: tuple[int, ...] = ()
    user: str = ""

    def scenarios(self) -> Sequence[Scenario]:
        kinds = {VALUES: DTYPES, WATCHED: _WATCHED, RESULTS: DTYPES}
        found = [Scenario(self.op, kind, name) for kind, names in kinds.items() for name in names]
        found += [Scenario(self.op, GRADIENTS, name) for name in _FLOATS]
        found += [Scenario(self.op, kind, "float32") for kind in otherwise.KINDS]
        return [*found, *(Scenario(self.op, LARGE, name) for name in _LARGE), Scenario(self.op, REFUSALS)]

    def out_of_reach(self, kernel: str) -> str:
        return out_of_reach(kernel)

    def run(self, scenario: Scenario, device: StandinDevice) -> Sequence[HostCase]:
        torch.manual_seed(0)
        random.seed(0)
        if scenario.kind == REFUSALS:
            return list(opinfo.refusals(self.op, self.entries, device))
        dtype = DTYPES[scenario.key]
        if scenario.kind == GRADIENTS:
            return list(opinfo.samples(self.op, self.entries, dtype, device))
        if scenario.kind == LARGE:
            return list(large_cases(self.calls(dtype), device))
        if scenario.kind in otherwise.KINDS:
            return list(otherwise.otherwise(scenario.kind, self._chosen(scenario.kind, dtype), device))
        ways = layouts.LAYOUTS[:1] if scenario.kind == RESULTS else layouts.LAYOUTS
        run = _results if scenario.kind == RESULTS else _values
        with device.detectors(on=scenario.kind == WATCHED):
            return _Session(device, scenario, dtype).cases(self._chosen(scenario.kind, dtype), ways, run)

    def calls(self, dtype: torch.dtype) -> Sequence[Call]:
        """What the op is called with in a dtype, on the CPU."""
        calls = [
            *user_calls(self.op, self.user, WIDE.get(dtype, dtype)),
            *recorded_calls(self.op, self.entries, WIDE.get(dtype, dtype)),
        ]
        if not calls and dtype.is_floating_point:
            calls = [*recorded_calls(self.op, self.entries, torch.float32)]
        return [in_dtype(call, dtype) for call in calls]

    def _chosen(self, kind: str, dtype: torch.dtype) -> list[Call]:
        """A few calls that are spread over all."""
        calls = self.calls(dtype)
        if kind == WATCHED:
            calls = [one for one in calls if sum(tensor.numel() for tensor in one.tensors) <= _MOST_WATCHED]
        filled = [one for one in calls if all(tensor.numel() for tensor in one.tensors)]
        plain, resized, empty = _CALLS.get(kind, _FEW)
        return [
            *spread([one for one in filled if not one.resized], plain),
            *spread([one for one in filled if one.resized], resized),
            *spread([one for one in calls if not all(tensor.numel() for tensor in one.tensors)], empty),
        ]


def out_of_reach(kernel: str) -> str:
    """Why no sample can launch a kernel; empty where one has to."""
    return "no sample has complex32, of which the CPU has no right values" if kernel.endswith("half2") else ""


@dataclass(frozen=True)
class Proofs:
    """Makes the proof of an op in a worker; picklable.

    Attributes:
        reached: by op, the numbers of the OpInfos that reach it.
        user: path of the user's own samples.
    """

    reached: Mapping[str, tuple[int, ...]]
    user: str = ""

    def __call__(self, op: str) -> HostProof:
        return OpProof(op, self.reached.get(base_name(op), ()), self.user)


_Run = Callable[["_Session", Call], Iterator[tuple[str, float, list[str]]]]


@dataclass
class _Session:
    """The cases of one scenario."""

    device: StandinDevice
    scenario: Scenario
    dtype: torch.dtype

    def cases(self, calls: Sequence[Call], ways: Sequence[Way], run: _Run) -> list[HostCase]:
        """A case for each call and way; an op that refuses the dtype as a whole has none, and that is told."""
        cases: list[HostCase] = []
        launched, raised = len(self.device.launches), 0
        known = len(self.device.findings)
        for number, call in enumerate(calls):
            for way in ways if number % _NTH_IN_ALL_LAYOUTS == 0 else ways[:1]:
                arguments = way.change((call.args, call.kwargs))
                name = f"{call.source}, {way.name}" if way is not layouts.AS_RECORDED else call.source
                if arguments is None or name in self.scenario.without:
                    continue
                changed = call.with_arguments(*arguments)
                self.device.begin(name)
                self.device.poison_with(NUMBER_POISON if len(cases) % 2 else NAN_POISON)
                for what, error, problems in run(self, changed):
                    cases.append(HostCase(f"{name}{what}", error, tuple(problems)))
                    raised += any(one.startswith(RAISES) for one in problems)
        self.device.begin("")
        self.device.poison_with(NAN_POISON)
        if cases and raised == len(cases) and self._may_refuse(cases):
            del self.device.findings[known:]
            text = f"{self.scenario.op} refuses {self.scenario.key}: {cases[0].problems[0].removeprefix(RAISES)}"
            self.device.findings.append(Finding(text, rule=REFUSED, fails=False))
            return []
        views = any(returned.alias_info for call in calls for returned in call.function._schema.returns)
        if cases and not raised and not views and len(self.device.launches) == launched:
            cases.append(HostCase("launches", None, ("no kernel was launched: the op ran elsewhere",)))
        return cases

    def _may_refuse(self, cases: Sequence[HostCase]) -> bool:
        """Whether not to have a dtype is the op's own choice: it says so in one way, and float32 is not optional."""
        words = {problem.partition(":")[0] for case in cases for problem in case.problems}
        lacks = any(LACKING in problem for case in cases for problem in case.problems)
        return len(words) == 1 and self.scenario.key != "float32" and not lacks


RAISES = "raises "


def _values(session: _Session, call: Call) -> Iterator[tuple[str, float, list[str]]]:
    """The call as it is."""
    reference = referenced(call, session.dtype)
    if reference is None:
        return
    found, why = attempted(moved(call).run)
    if found is None:
        yield "", 0.0, [f"{RAISES}{why}"]
        return
    yield "", *all_judged(found, reference, session.dtype)


def _results(session: _Session, call: Call) -> Iterator[tuple[str, float, list[str]]]:
    """Into results of the caller's, and in place."""
    reference = referenced(call, session.dtype)
    if reference is None:
        return
    shaped = reference.plain or [one.to(session.dtype) if one.dtype in NARROWED else one for one in reference.exact]
    variants: list[Out | InPlace] = [*out_of(call.function), *in_place_of(call.function)]
    for variant in variants:
        if not variant.fits(call, shaped):
            continue
        found, why = attempted(partial(variant.run, moved(call), shaped))
        name = f", {variant.name}"
        if found is None:
            yield name, 0.0, [f"{RAISES}{why}"]
        else:
            yield name, *all_judged(found, reference, session.dtype)


def moved(call: Call) -> Call:
    """The call with its tensors on the device."""
    return call.with_arguments(*on_device((call.args, call.kwargs)))


def referenced(call: Call, dtype: torch.dtype) -> Reference | None:
    """The right results and the CPU's own in that dtype; ``None`` for a call that the CPU refuses."""
    args, kwargs = exactly((call.args, call.kwargs))
    exact, _why = attempted(partial(call.with_arguments(args, kwargs).run, right=True))
    plain, _why = attempted(call.run)
    if exact is None:
        return None if plain is None else Reference(plain, plain)
    single = _in_single(call, dtype) if dtype in WIDE else None
    if plain is None and single is not None:
        plain = [one.to(dtype) if one.dtype in (torch.float32, torch.complex64) else one for one in single]
    return Reference(exact, plain, single)


def _in_single(call: Call, dtype: torch.dtype) -> list[Tensor] | None:
    """What the CPU computes in float32."""
    single = torch.complex64 if dtype.is_complex else torch.float32

    def one(value: Any) -> Any:
        return value.to(single) if isinstance(value, Tensor) and value.dtype is dtype else value

    return attempted(partial(call.mapped(one).run, right=True))[0]
