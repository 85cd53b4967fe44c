"""Findings about the window: which uses of new operators a stack may not bring yet, and from when on it may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from patchstack.tree.git import GitCommitHash, Repository, Tree
from stackproof.gates.common.changes import AddedLines
from stackproof.gates.common.functions import NativeFunctions
from stackproof.gates.fc_window.advice import StackAdvice
from stackproof.gates.fc_window.clock import WINDOW, Landing, LandingState
from stackproof.gates.fc_window.features import new_features
from stackproof.gates.fc_window.frontend import Scan, frontend_changes, frontend_files, scan
from stackproof.gates.fc_window.landing import History
from stackproof.gates.fc_window.newcode import NewCode
from stackproof.gates.fc_window.probe import make_probes
from stackproof.gates.fc_window.uses import Use, UseKind
from stackproof.model import Finding

UNKNOWN_RULE = "window-unknown"
"""Rule of the findings that keep the gate from passing without making it fail."""


@dataclass(frozen=True)
class WindowReport:
    """What the frontend uses that is not two weeks old.

    Attributes:
        history: of the branch the stack goes to.
        scan: the uses, and how much was looked at.
        added: the lines that the range wrote.
        new_code: code of the range that existing code does not lead to.
        advice: who must wait, for what the range itself adds.
    """

    history: History
    scan: Scan
    added: Mapping[str, AddedLines]
    new_code: NewCode
    advice: StackAdvice

    def findings(self) -> Iterator[Finding]:
        """One per use, in order of path and line; uses of unknown age together, one finding per file."""
        older_names = {use.feature.key for use in self.scan.uses if not self._is_added(use)}
        undated: dict[str, list[Finding]] = {}
        for use in self.scan.uses:
            landing = self.history.landing(use.feature.key)
            if not landing.is_open(self.history.now):
                finding = self._finding(use, landing, older_names)
                if finding is not None and finding.rule == UNKNOWN_RULE:
                    undated.setdefault(use.path, []).append(finding)
                elif finding is not None:
                    yield finding
        yield from map(_together, undated.values())
        for path, reason in sorted(self.scan.unparsed.items()):
            changed = path in self.added
            message = f"not searched for new operators: {reason}"
            yield Finding(message, path, rule=UNKNOWN_RULE if changed else "unparsed", fails=False)

    def _is_added(self, use: Use) -> bool:
        added = self.added.get(use.path)
        return added is not None and added.touches(use.line, use.last_line)

    def _finding(self, use: Use, landing: Landing, older_names: set[str]) -> Finding | None:
        """What to say about one use of something that is not open yet; nothing for old code and an unknown age."""
        what = f"{use.written} uses the {use.feature}"
        if not self._is_added(use):
            if landing.state is LandingState.BEFORE_HISTORY:
                return None
            return self._make(use, landing, f"{what}; it was there before this range", "window-existing", fails=False)
        if use.kind is UseKind.REGISTRATION:
            message = f"{what} in a decomposition or registration, which is not written into saved programs"
            return self._make(use, landing, message, "window-registration", fails=False)
        if self.new_code.holds(use):
            message = f"{what} in new code that no existing code leads to"
            return self._make(use, landing, message, "window-new-code", fails=False)
        if landing.state is LandingState.BEFORE_HISTORY:
            message = f"{what}; when that landed is unknown: {landing.note}"
            return self._make(use, landing, message, UNKNOWN_RULE, fails=False)
        if landing.state is LandingState.NOT_LANDED and use.feature.key in older_names:
            message = f"{what}; existing code calls this name already, so it was there before the schema"
            return self._make(use, landing, message, "window-existing", fails=False)
        return self._make(use, landing, f"{what}, {self._when(use, landing)}", "window", fails=True)

    def _when(self, use: Use, landing: Landing) -> str:
        if landing.state is LandingState.NOT_LANDED:
            again = f" ({landing.note})" if landing.note else ""
            return f"which has not landed yet{again}: {self.advice.for_use(use)}"
        assert landing.at is not None
        note = f" ({landing.note})" if landing.note else ""
        landed = f"which landed on {landing.at:%Y-%m-%d %H:%M} UTC{note}"
        return f"{landed}; existing code may use it from {landing.first_day} on"

    def _make(self, use: Use, landing: Landing, message: str, rule: str, *, fails: bool) -> Finding:
        details = {
            "operator": use.feature.base,
            "new": str(use.feature),
            "kind": use.kind.value,
            "written": use.written,
            "landing": landing.state.value,
            "landed": landing.at.isoformat() if landing.at else None,
            "landed_by": landing.commit,
            "usable_from": landing.open_from.isoformat() if landing.open_from else None,
            "first_day": landing.first_day.isoformat() if landing.first_day else None,
        }
        return Finding(message, use.path, use.line, rule, fails=fails, details=details)


def _together(findings: list[Finding]) -> Finding:
    """The first of a file's undated uses, with how many more there are: a shallow clone dates none of them."""
    first, *more = findings
    operators = sorted({str(finding.details["operator"]) for finding in more})
    said = f" ({len(more)} more in this file: {', '.join(operators[:5])}, ...)" if more else ""
    return replace(first, message=first.message + said)


def window_report(
    repository: Repository, base: GitCommitHash, head: GitCommitHash, functions: NativeFunctions, history: History
) -> WindowReport:
    """Search the frontend of ``head``.

    The whole frontend is searched for what is known to be new. Where the age of most operators is unknown (a shallow
    clone), only the files that the range touched are: what was there before is nobody's fault then.

    Args:
        functions: of the head tree.
        history: of the branch the stack goes to.
    """
    added = frontend_changes(repository, base, head)
    before, after = Tree.at(repository, base), Tree.at(repository, head)
    settled = history.settled
    probes = make_probes(new_features(functions.by_name, settled), functions.by_name, settled)
    found = scan(after, frontend_files(after) if settled else sorted(added), probes)
    new_code = NewCode(before, after, sorted(added))
    return WindowReport(history, found, added, new_code, StackAdvice(repository, base, head))


WINDOW_RULE = (
    "a schema counts as landed at the committer time (UTC) of the first-parent commit that brought it to the branch; "
    f"existing Python code may use it {WINDOW.days} times 24 hours after that, that very second included"
)
