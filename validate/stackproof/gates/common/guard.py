"""How the gates of this family end when the tree or the repository cannot be read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from patchstack.errors import PatchstackError
from stackproof.gates.common.errors import MALFORMED_RULE, MalformedTreeError
from stackproof.model import Finding, GateResult, Verdict

SUMMARY_RULE = "summary"
"""Rule of the first finding of a gate: what the range is, in one line, for a report that shows findings only."""


def guarded(name: str, judge: Callable[[], GateResult]) -> GateResult:
    """Run a gate's body and time it.

    A file that is not what its format says becomes one failing finding of rule ``malformed-input``; a repository that
    cannot be read becomes "not run".
    """
    started = time.perf_counter()
    try:
        result = judge()
    except MalformedTreeError as error:
        path, line = error.place
        message = error.problem + (f"; found {error.found}" if error.found else "")
        finding = Finding(message, path, line, MALFORMED_RULE, details=error.as_json())
        result = GateResult(name, Verdict.FAILED, cases=1, failed=1, reason=str(error), findings=(finding,))
    except PatchstackError as error:
        result = GateResult(name, Verdict.NOT_RUN, reason=str(error))
    return replace(result, seconds=time.perf_counter() - started)
