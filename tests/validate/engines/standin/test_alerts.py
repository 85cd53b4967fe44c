"""Which ops owe an alert for algorithms that are not deterministic: those that a stack brings, or that had one."""

from __future__ import annotations

from stack_lab import HOST_FILE, StackLab
from stackproof.engines.standin.alerts import quiet_as_below
from stackproof.engines.standin.stack import HostStack

OPS = ("grid_sampler_2d", "grid_sampler_2d_backward", "grid_sampler_3d", "grid_sampler_3d_backward")


def quiet(lab: StackLab, head: str) -> frozenset[str]:
    base, commit = (lab.repository.commit(name).hash for name in (lab.base, head))
    return quiet_as_below(HostStack.between(lab.repository, base, commit))


def test_ops_that_the_stack_brings_owe_the_alert(stack: StackLab) -> None:
    assert not {op for op in quiet(stack, stack.head) if op.endswith("backward")}


def test_ops_that_had_none_below_the_stack_do_not_owe_it(stack_of_after: StackLab) -> None:
    assert quiet(stack_of_after, stack_of_after.head) == set(OPS)


def test_an_alert_that_the_stack_adds_is_proved(stack_of_after: StackLab) -> None:
    text = stack_of_after.text(HOST_FILE)
    name = "grid_sampler_2d_backward_mps"
    head = stack_of_after.changed({HOST_FILE: f'{text}// alertNotDeterministic("{name}")\n'})
    assert quiet(stack_of_after, head) == set(OPS) - {"grid_sampler_2d_backward"}


def test_without_a_tree_below_every_op_owes_it(stack_of_after: StackLab) -> None:
    assert quiet_as_below(HostStack.of(stack_of_after.tree(), [HOST_FILE])) == frozenset()
