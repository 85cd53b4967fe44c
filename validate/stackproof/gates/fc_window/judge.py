"""Who judges a pair of schemas: torch where it can, the tree's own torchgen and the rules where it cannot."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import ModuleType

from stackproof.gates.common.schema import Schema
from stackproof.gates.fc_window import rules
from stackproof.gates.fc_window.delta import EntryDelta
from stackproof.gates.fc_window.rules import Judgement

TreeParser = Callable[[frozenset[str]], Mapping[str, Schema]]
"""Reads schema texts with a tree's own torchgen; what it cannot read is missing from the answer."""


@dataclass(frozen=True)
class JudgedEntry:
    """One changed entry with its verdicts.

    Attributes:
        entry: what changed.
        judgement: both verdicts; for an added entry "no existing schema is touched", for a removed one "gone".
        torch_refusal: why torch could not judge it, empty when it did or was not needed.
    """

    entry: EntryDelta
    judgement: Judgement
    torch_refusal: str = ""


class TorchJudge:
    """Torch's schema API; torch is imported for the first pair only, since most ranges change no schema."""

    @functools.cached_property
    def _torch(self) -> ModuleType | None:
        try:
            return importlib.import_module("torch")
        except ImportError:
            return None

    @property
    def version(self) -> str:
        """Version of the torch at hand, empty when there is none."""
        return str(self._torch.__version__).split("+")[0] if self._torch else ""

    def judge(self, old: Schema, new: Schema) -> tuple[Judgement | None, str]:
        """Torch's verdicts, or ``None`` and why there are none."""
        if self._torch is None:
            return None, "torch is not installed"
        parse = self._torch._C.parse_schema
        try:
            before, after = parse(old.qualified_text), parse(new.qualified_text)
            # Torch compares the out arguments that both have; one more or less is not seen, and every old call breaks.
            backward = len(old.outs) == len(new.outs) and bool(after.is_backward_compatible_with(before))
            forward, reason = after.check_forward_compatible_with(before)
        except (RuntimeError, IndexError) as error:  # IndexError: out arguments that are not last
            return None, f"torch {self.version} cannot read it: {str(error).strip().splitlines()[0]}"
        ours = rules.judge(old, new)
        return Judgement(
            backward,
            bool(forward),
            "" if backward else ours.backward_reason or "torch says so, without a reason",
            "" if forward else str(reason).strip() or ours.forward_reason or "torch says so, without a reason",
            judged_by=f"torch {self.version}",
        ), ""


def judge_entries(
    entries: tuple[EntryDelta, ...], torch: TorchJudge, *, base_parser: TreeParser, head_parser: TreeParser
) -> tuple[JudgedEntry, ...]:
    """Judge every changed entry.

    Args:
        entries: of one :class:`~stackproof.gates.fc_window.delta.SchemaDelta`.
        torch: the torch at hand.
        base_parser: the base tree's torchgen, asked only for schemas that torch cannot read.
        head_parser: the head tree's torchgen, likewise.
    """
    judged = [_judge(entry, torch) for entry in entries]
    refused = [one for one in judged if one.torch_refusal]
    if not refused:
        return tuple(judged)
    old = base_parser(frozenset(one.entry.before.schema.text for one in refused if one.entry.before))
    new = head_parser(frozenset(one.entry.after.schema.text for one in refused if one.entry.after))
    return tuple(_with_tree(one, old, new) if one.torch_refusal else one for one in judged)


def _judge(entry: EntryDelta, torch: TorchJudge) -> JudgedEntry:
    if entry.before is None:
        # PyTorch's own check walks the old schemas; none of them is touched by a new one.
        return JudgedEntry(entry, Judgement(True, True, judged_by="no existing schema is touched"))
    if entry.after is None and entry.derived_on_other_side:
        return JudgedEntry(entry, Judgement(True, True, judged_by="torchgen derives it now"))
    if entry.after is None:
        gone = "no operator of this name and overload is left"
        return JudgedEntry(entry, Judgement(False, False, gone, gone, judged_by="the operator is gone"))
    if not entry.is_schema_change:
        return JudgedEntry(entry, _judge_derived(entry))
    judgement, refusal = torch.judge(entry.before.schema, entry.after.schema)
    return JudgedEntry(entry, judgement or rules.judge(entry.before.schema, entry.after.schema), refusal)


def _judge_derived(entry: EntryDelta) -> Judgement:
    """The schema is the same; only derived operators that went away can break anybody."""
    assert entry.before
    gone = ", ".join(name for name in entry.autogen if name in entry.before.autogen)
    reason = f"the derived operators {gone} are gone" if gone else ""
    return Judgement(not gone, not gone, reason, reason, judged_by="the schema is the same")


def _with_tree(one: JudgedEntry, old: Mapping[str, Schema], new: Mapping[str, Schema]) -> JudgedEntry:
    assert one.entry.before
    assert one.entry.after
    before, after = old.get(one.entry.before.schema.text), new.get(one.entry.after.schema.text)
    if before is None or after is None:
        return one
    return replace(one, judgement=replace(rules.judge(before, after), judged_by="the tree's torchgen and rules"))
