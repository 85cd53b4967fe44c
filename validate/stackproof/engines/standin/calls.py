"""Counts what the stand-in device is told: calls of the stack's ops, and for which of them each kernel is launched."""

from __future__ import annotations

import threading
from collections.abc import Collection

from stackproof.engines.standin.interface import CallEvent
from stackproof.launches import Ending, Launches


class CallLog:
    """The calls under way, by thread, and the counts of those that ended.

    Args:
        brought: the kernels that the stack brings.
    """

    def __init__(self, brought: Collection[str]) -> None:
        self._brought = brought
        self._counts = Launches()
        # Autograd calls from a thread of its own. For each call its op, and what it launched.
        self._open: dict[int, list[tuple[str, set[str]]]] = {}

    def told(self, op: str, event: CallEvent) -> None:
        """A call began, or ended."""
        if event is CallEvent.ON_CPU:
            self._counts.calls[op, Ending.CPU] += 1
            return
        calls = self._open.setdefault(threading.get_ident(), [])
        if event is CallEvent.BEGUN:
            calls.append((op, set()))
            return
        _op, launched = calls.pop()
        self._counts.calls[op, self._ending(event, launched)] += 1

    def launched(self, kernel: str) -> None:
        """A kernel was launched, by the innermost call of this thread."""
        calls = self._open.get(threading.get_ident())
        if calls:
            calls[-1][1].add(kernel)
        self._counts.kernels[calls[-1][0] if calls else "", kernel] += 1

    def take(self) -> Launches:
        """The counts since the last call."""
        taken, self._counts = self._counts, Launches()
        return taken

    def _ending(self, event: CallEvent, launched: Collection[str]) -> Ending:
        if event is CallEvent.RAISED:
            return Ending.RAISED
        if not launched:
            return Ending.NO_LAUNCH
        return Ending.KERNELS if any(kernel in self._brought for kernel in launched) else Ending.TREE
