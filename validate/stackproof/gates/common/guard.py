"""How the gates of this family end when the tree or the repository cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from patchstack.errors import PatchstackError
from stackproof.gates.common.errors import MALFORMED_RULE, MalformedTreeError
from stackproof.gates.common.results import failed_early, not_run
from stackproof.gates.spec import Spec
from stackproof.model import Finding, GateResult

SUMMARY_RULE = "summary"
"""Rule of the first finding of a gate: what the range is, in one line, for a report that shows findings only."""


def guarded(spec: Spec, judge: Callable[[], GateResult]) -> GateResult:
    """Run a gate's body.

    A file that is not what its format says becomes one failing finding of rule ``malformed-input``; a repository that
    cannot be read becomes "not run".
    """
    try:
        return judge()
    except MalformedTreeError as error:
        path, line = error.place
        message = error.problem + (f"; found {error.found}" if error.found else "")
        finding = Finding(message, path, line, MALFORMED_RULE, details=error.as_json())
        return replace(failed_early(spec, finding), reason=str(error))
    except PatchstackError as error:
        return not_run(spec, str(error))
