"""Findings about the schemas themselves: what breaks whom, and which breaks the tree's own list allows."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stackproof.gates.common.functions import FUNCTIONS_PATH, TAGS_PATH
from stackproof.gates.fc_window.allowlist import CHECKER_PATH, AllowEntry, AllowList
from stackproof.gates.fc_window.delta import EntryDelta, SchemaDelta
from stackproof.gates.fc_window.judge import JudgedEntry
from stackproof.gates.fc_window.need import window_need
from stackproof.model import Finding

DISPATCH_ONLY = (
    "dispatch-only change: no schema changed, the FC window does not apply, the bot will comment all the same"
)


@dataclass(frozen=True)
class SchemaReport:
    """Everything to say about one delta, allow-list included.

    Attributes:
        delta: what changed.
        judged: the same entries with verdicts.
        allow_list: the head tree's list; ``None`` where it has none.
        today: the day (UTC) that expiry dates are compared with.
    """

    delta: SchemaDelta
    judged: Sequence[JudgedEntry]
    allow_list: AllowList | None
    today: datetime.date

    @property
    def summary(self) -> str:
        """One line for the head of a report."""
        if not self.delta.entries:
            return "native_functions.yaml declares the same operators: no schema changed"
        if self.delta.entries and all(entry.is_dispatch_only for entry in self.delta.entries):
            return DISPATCH_ONLY
        counts = self.counts
        return ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in counts if counts[name])

    @property
    def counts(self) -> dict[str, int]:
        """How many entries changed in which way, and how the verdicts fell."""
        verdicts = Counter(
            (one.judgement.backward, one.judgement.forward) for one in self.judged if one.entry.is_schema_change
        )
        return {
            "added": len(self.delta.added),
            "removed": len(self.delta.removed),
            "changed_schemas": len(self.delta.changed),
            "dispatch_only": len(self.delta.dispatch_only),
            "tag_only": len(self.delta.tag_only),
            "changed_and_not_BC": sum(count for (backward, _), count in verdicts.items() if not backward),
            "changed_and_not_FC": sum(count for (_, forward), count in verdicts.items() if not forward),
            "not_judged_by_torch": sum(bool(one.torch_refusal) for one in self.judged),
        }

    def rows(self) -> list[dict[str, object]]:
        """One table row per changed entry, JSON-serialisable."""
        return [self._row(one) for one in self.judged]

    def findings(self) -> Iterator[Finding]:
        """In file order; dispatch-only and tag-only entries as information."""
        for one in self.judged:
            yield self._finding(one)
            if one.torch_refusal:
                message = f"{one.entry.name} is not judged by torch ({one.torch_refusal})"
                message += f"; judged by {one.judgement.judged_by} instead"
                yield Finding(message, FUNCTIONS_PATH, one.entry.line, "not-judged", fails=False)
        for verb, tags in (("declared", self.delta.tags_added), ("no longer declared", self.delta.tags_removed)):
            for tag in tags:
                yield Finding(f"the tag {tag} is {verb}", TAGS_PATH, rule="tags", fails=False)
        for line in self.allow_list.unreadable if self.allow_list else ():
            message = "this entry of the allow-list is not a plain literal and was not used"
            yield Finding(message, CHECKER_PATH, line, "allow-list", fails=False)

    def allow_list_details(self) -> dict[str, object]:
        """Which entries of the tree's list cover this delta, which expire within 30 days, which never do."""
        if self.allow_list is None:
            return {"found": False}
        covering = [
            _entry_row(allowed) | {"operator": one.entry.name, "counts": not one.entry.is_core}
            for one in self.judged
            if (allowed := self._allowing(one.entry)) is not None
        ]
        entries = self.allow_list.entries
        return {
            "found": True,
            "entries": len(entries),
            "covers": covering,
            "expires_within_30_days": [_entry_row(entry) for entry in entries if entry.expires_soon(self.today)],
            "never_expires": [entry.pattern for entry in entries if entry.never_expires],
            "expired": [_entry_row(entry) for entry in entries if entry.expired(self.today)],
        }

    def _allowing(self, entry: EntryDelta) -> AllowEntry | None:
        touched = entry.is_removed or entry.is_schema_change
        if self.allow_list is None or entry.before is None or not touched:
            return None
        return self.allow_list.covering(entry.before.schema, self.today)

    def _row(self, one: JudgedEntry) -> dict[str, object]:
        need, why = window_need(one.entry, one.judgement)
        entry = one.entry
        return {
            "operator": entry.name,
            "line": entry.line,
            "change": _kind(entry),
            "arguments": [str(change) for change in entry.arguments],
            "dispatch": list(entry.dispatch),
            "tags": list(entry.tags),
            "other": [*entry.other, *(f"autogen {name}" for name in entry.autogen)],
            "core": entry.is_core,
            "BC": one.judgement.backward,
            "BC_reason": one.judgement.backward_reason,
            "FC": one.judgement.forward,
            "FC_reason": one.judgement.forward_reason,
            "judged_by": one.judgement.judged_by,
            "window": need.value,
            "window_reason": why,
        }

    def _finding(self, one: JudgedEntry) -> Finding:
        entry, judgement = one.entry, one.judgement
        details = self._row(one)
        if entry.is_dispatch_only:
            message = f"{entry.name}: dispatch-only change ({', '.join(entry.dispatch)})"
            return Finding(message, FUNCTIONS_PATH, entry.line, "dispatch-only", fails=False, details=details)
        if entry.is_tag_only:
            message = f"{entry.name}: tag-only change ({', '.join(entry.tags)})"
            return Finding(message, FUNCTIONS_PATH, entry.line, "tag-only", fails=False, details=details)
        if judgement.backward is False:
            return self._broken(one, "BC", judgement.backward_reason, details)
        if judgement.forward is False:
            return self._broken(one, "FC", judgement.forward_reason, details)
        need, why = window_need(entry, judgement)
        message = f"{entry.name}: {_described(entry)}; the FC window {need.value}: {why}"
        return Finding(message, FUNCTIONS_PATH, entry.line, "schema", fails=False, details=details)

    def _broken(self, one: JudgedEntry, direction: str, reason: str, details: dict[str, object]) -> Finding:
        """A finding about a break; it fails unless PyTorch lets it pass: listed breaks, and FC breaks outside core."""
        entry = one.entry
        allowed = self._allowing(entry)
        message = f"{entry.name}: {_described(entry)}; not {direction}: {reason}"
        fails = entry.is_core or (direction == "BC" and allowed is None)
        if entry.is_core:
            message += "; a core ATen operator, for which no exception holds"
        elif allowed is not None:
            message += f"; allowed until {allowed.until} by line {allowed.line} of {CHECKER_PATH}"
            message += " (expires within 30 days)" if allowed.expires_soon(self.today) else ""
        elif direction == "FC":
            need, why = window_need(entry, one.judgement)
            message += f"; PyTorch only warns about this; the FC window {need.value}: {why}"
        elif self.allow_list is not None and entry.before is not None:
            expired = self.allow_list.expired_for(entry.before.schema, self.today)
            message += f"; the exception on line {expired.line} expired on {expired.until}" if expired else ""
        return Finding(message, FUNCTIONS_PATH, entry.line, direction.lower(), fails=fails, details=details)


def _kind(entry: EntryDelta) -> str:
    if entry.is_added:
        if entry.derived_on_other_side:
            return "written out, derived by torchgen before"
        return f"renamed from {entry.renamed_from}" if entry.renamed_from else "added"
    if entry.is_removed:
        return "removed"
    if entry.is_schema_change:
        return "schema"
    return "dispatch-only" if entry.is_dispatch_only else "tag-only" if entry.is_tag_only else "other"


def _described(entry: EntryDelta) -> str:
    if entry.is_schema_change:
        return "; ".join(map(str, entry.arguments)) or "schema rewritten with the same meaning"
    if entry.is_added or entry.is_removed:
        return _kind(entry)
    changed = [*entry.other, *(f"autogen {name}" for name in entry.autogen), *entry.dispatch, *entry.tags]
    return f"{', '.join(changed)} changed"


def _entry_row(entry: AllowEntry) -> dict[str, object]:
    return {
        "pattern": entry.pattern,
        "until": entry.until.isoformat(),
        "line": entry.line,
        "never_expires": entry.never_expires,
    }
