"""What was launched is counted by op and kernel, and calls by how they ended; what was not looked at is a finding."""

from __future__ import annotations

import threading
from collections import Counter

from stackproof.engines.standin.calls import CallLog
from stackproof.engines.standin.interface import CallEvent
from stackproof.launches import DETAIL, Ending, Launches, fell_back, launch_lines, looked_at, never_launched
from stackproof.model import GateResult, Verdict

BEGUN, RETURNED, RAISED, ON_CPU = CallEvent.BEGUN, CallEvent.RETURNED, CallEvent.RAISED, CallEvent.ON_CPU


def called(log: CallLog, op: str, *kernels: str, ending: CallEvent = RETURNED) -> None:
    log.told(op, BEGUN)
    for kernel in kernels:
        log.launched(kernel)
    log.told(op, ending)


def test_calls_are_counted_by_whose_kernels_they_launched() -> None:
    log = CallLog({"ours_float", "ours_half"})
    called(log, "tint", "ours_float", "theirs")
    called(log, "tint", "theirs")
    called(log, "tint")
    called(log, "tint", "ours_half", ending=RAISED)
    log.told("shade", ON_CPU)
    counts = log.take()
    assert counts.calls == {
        ("tint", Ending.KERNELS): 1,
        ("tint", Ending.TREE): 1,
        ("tint", Ending.NO_LAUNCH): 1,
        ("tint", Ending.RAISED): 1,
        ("shade", Ending.CPU): 1,
    }
    assert counts.by_kernel() == {"ours_float": 1, "theirs": 2, "ours_half": 1}
    assert log.take() == Launches()


def test_a_launch_belongs_to_the_innermost_call_of_its_own_thread() -> None:
    log = CallLog({"ours"})
    log.told("outer", BEGUN)
    called(log, "inner", "ours")
    other = threading.Thread(target=called, args=(log, "backward", "ours"))
    other.start()
    other.join()
    log.launched("ours")
    log.told("outer", RETURNED)
    log.launched("ours")
    counts = log.take().kernels
    assert counts == {("inner", "ours"): 1, ("backward", "ours"): 1, ("outer", "ours"): 1, ("", "ours"): 1}


def test_what_processes_counted_is_added_up() -> None:
    one = Launches(Counter({("tint", "a"): 2}), Counter({("tint", Ending.CPU): 1}))
    one.add(Launches(Counter({("tint", "a"): 1, ("", "b"): 1}), Counter({("tint", Ending.CPU): 2})))
    assert one == Launches(Counter({("tint", "a"): 3, ("", "b"): 1}), Counter({("tint", Ending.CPU): 3}))


def test_a_call_of_an_op_of_the_stack_on_the_cpu_fails_with_the_number_of_calls() -> None:
    counts = Launches(calls=Counter({("tint.out", Ending.CPU): 8, ("zeros", Ending.CPU): 5}))
    (finding,) = fell_back(counts, ["tint"], [])
    assert (finding.rule, finding.fails) == ("cpu-fallback", True)
    assert finding.message.startswith("tint.out: 8 calls ended in the CPU fallback: no function of the stack")
    assert fell_back(counts, ["tin"], []) == []


def test_an_op_that_the_installed_torch_has_otherwise_is_no_fault_of_the_stack() -> None:
    (finding,) = fell_back(Launches(calls=Counter({("tint", Ending.CPU): 8})), ["tint"], ["tint"])
    assert not finding.fails
    assert "another schema" in finding.message


def test_kernels_that_were_never_launched_are_named_by_file_and_those_out_of_reach_fail_nothing() -> None:
    counts = Launches(Counter({("tint", "tint_float"): 1}))
    brought = dict.fromkeys(["tint_float", "tint_half", "tint_float_int64"], "kernels/Tint.metal")

    def out_of_reach(kernel: str) -> str:
        return "too large" if kernel.endswith("_int64") else ""

    half, wide = never_launched(counts, brought, fails=True, gate="host-run", out_of_reach=out_of_reach)
    if half.details["kernels"] != ["tint_half"]:
        half, wide = wide, half
    assert (half.path, half.fails, half.details["kernels"]) == ("kernels/Tint.metal", True, ["tint_half"])
    assert half.message == "host-run never launched 1 of the kernels that the stack brings: tint_half"
    assert (wide.fails, wide.details["kernels"]) == (False, ["tint_float_int64"])
    assert "too large" in wide.message


def test_the_details_have_the_stacks_kernels_and_the_trees_own_apart() -> None:
    kernels = Counter({("tint", "tint_float"): 4, ("tint", "copy"): 2, ("", "tint_float"): 1})
    calls = Counter({("tint", Ending.KERNELS): 4, ("tint", Ending.RAISED): 1, ("zeros", Ending.CPU): 9})
    seen = looked_at(Launches(kernels, calls), ["tint_float", "tint_half"], ["tint"])
    assert seen == {
        "counted": True,
        "brought": 2,
        "launched": {"tint_float": 5},
        "never_launched": ["tint_half"],
        "launches": 5,
        "launches_of_the_trees_kernels": 2,
        "calls": {"tint": {"by the stack's kernels": 4, "raised": 1}},
        "by_op": {"no op": {"tint_float": 1}, "tint": {"copy": 2, "tint_float": 4}},
    }
    result = GateResult("host-run", Verdict.PASSED, cases=1, details={DETAIL: seen})
    assert launch_lines(result) == [
        "launched 1 of 2 kernels of the stack, 5 times; 2 launches of the tree's own kernels",
        "calls: tint: 4 by the stack's kernels, 1 raised",
    ]
