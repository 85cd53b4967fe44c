"""Which ops have no alert for algorithms that are not deterministic, neither in the stack nor below it.

A stack that brings an op to MPS has to raise the alert where its sums depend on the order of threads, as the other
devices do. A stack that mends an op which MPS had before without the alert does not owe it: to raise one would stop
programs that ran.
"""

from __future__ import annotations

from stackproof.engines.standin.stack import HostStack


def quiet_as_below(stack: HostStack) -> frozenset[str]:
    """Names of the stack's ops that were there below it, and raise no alert in either tree."""
    if stack.base is None:
        return frozenset()
    below = HostStack.of(stack.base, [file.path for file in stack.files])
    quiet = _quiet(stack) & _quiet(below)
    return frozenset(name.partition(".")[0] for name in quiet)


def _quiet(stack: HostStack) -> set[str]:
    """Overloads whose MPS function is defined there, in files that never name it in an alert."""
    text = "\n".join(file.text for file in stack.files)
    return {one.overload for one in stack.ops if f'alertNotDeterministic("{one.function}")' not in text}
