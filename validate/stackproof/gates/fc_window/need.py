"""Whether a schema change has anything to do with the two-week forward-compatibility window."""

from __future__ import annotations

import enum

from stackproof.gates.fc_window.delta import ArgumentChangeKind, EntryDelta
from stackproof.gates.fc_window.rules import Judgement


class WindowNeed(enum.Enum):
    """What the window means for one changed entry."""

    NOT_APPLICABLE = "does not apply"
    APPLIES = "applies"
    CANNOT_HELP = "cannot help"


_NEW_USE = {
    ArgumentChangeKind.ADDED,
    ArgumentChangeKind.DEFAULT_ADDED,
    ArgumentChangeKind.TYPE,
    ArgumentChangeKind.KWARG_ONLY,
}


def window_need(entry: EntryDelta, judgement: Judgement) -> tuple[WindowNeed, str]:
    """Verdict and reason, in one clause, for one entry.

    The window covers what existing Python code could newly call: a function, an overload, a defaulted argument. It
    cannot cure a change that breaks old callers, and a change that old runtimes accept as it is does not need it.
    """
    if entry.derived_on_other_side:
        return WindowNeed.NOT_APPLICABLE, "both trees have the operator, one of them derived by torchgen"
    if entry.is_removed:
        return WindowNeed.CANNOT_HELP, "the operator is gone; programs that call it break at once, whenever it lands"
    if entry.is_added:
        return WindowNeed.APPLIES, "existing Python code may call it only once runtimes that know it are two weeks old"
    if not entry.is_schema_change:
        if entry.autogen:
            return WindowNeed.APPLIES, f"derived operators change: {', '.join(entry.autogen)}"
        return WindowNeed.NOT_APPLICABLE, "no schema changed"
    if not judgement.backward:
        return WindowNeed.CANNOT_HELP, "old callers break at once, whenever it lands"
    kinds = {change.kind for change in entry.arguments}
    if ArgumentChangeKind.ADDED in kinds:
        names = ", ".join(change.argument for change in entry.arguments if change.kind is ArgumentChangeKind.ADDED)
        return WindowNeed.APPLIES, f"existing Python code may pass {names} only after it"
    if judgement.forward is False and kinds & _NEW_USE:
        return WindowNeed.APPLIES, "calls that rely on the looser schema are refused by runtimes that are older"
    return WindowNeed.NOT_APPLICABLE, "old runtimes accept every call that the new schema allows"
