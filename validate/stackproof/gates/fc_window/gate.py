"""The gate ``fc-window``: schemas between two commits, their compatibility, and the two-week window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchstack.errors import UsageError
from patchstack.tree.git import GitCommitHash, Tree
from stackproof.gates.common.errors import MalformedTreeError
from stackproof.gates.common.functions import FUNCTIONS_PATH, NativeFunctions, read_functions
from stackproof.gates.common.guard import SUMMARY_RULE, guarded
from stackproof.gates.common.results import judged, not_run
from stackproof.gates.fc_window.allowlist import read_allow_list
from stackproof.gates.fc_window.clock import moment
from stackproof.gates.fc_window.delta import SchemaDelta, compare
from stackproof.gates.fc_window.judge import JudgedEntry, TorchJudge, judge_entries
from stackproof.gates.fc_window.landing import History, read_history
from stackproof.gates.fc_window.schema_report import SchemaReport
from stackproof.gates.fc_window.spec import SPEC, Options
from stackproof.gates.fc_window.torchgen_model import TreeTorchgen
from stackproof.gates.fc_window.window_report import UNKNOWN_RULE, WINDOW_RULE, WindowReport, window_report
from stackproof.model import Finding, GateContext, GateResult


def run(context: GateContext, options: Options) -> GateResult:
    """Judge the range; a malformed tree is a finding of rule ``malformed-input``."""
    return guarded(SPEC, lambda: _judge(context, options))


def _judge(context: GateContext, options: Options) -> GateResult:
    now = moment(options.today)
    onto = _onto(context, options.onto)
    base, head = Tree.at(context.repository, context.base), Tree.at(context.repository, context.head)
    before, after = _functions(base, "base"), _functions(head, "head")
    if before is None or after is None:
        side = context.base if before is None else context.head
        return not_run(SPEC, f"{side[:12]} has no {FUNCTIONS_PATH}: not a PyTorch tree", ())
    context.progress(1, 3, "comparing schemas")
    delta = compare(before, after)
    schemas = SchemaReport(delta, _judged(delta, base, head, context), read_allow_list(head), now.date())
    context.progress(2, 3, "searching the frontend")
    history = read_history(context.repository, onto, now)
    window = window_report(context.repository, context.base, context.head, after, history)
    refused = _refused_keys(before, after, TreeTorchgen(head, context.cache))
    return _result(schemas, window, onto, tuple(refused))


def _refused_keys(before: NativeFunctions, after: NativeFunctions, torchgen: TreeTorchgen) -> Iterator[Finding]:
    """What the head's own torchgen says of dispatch keys that no entry of the base has."""
    known = {key for function in before.by_name.values() for key in function.dispatch}
    fresh = {key: function for function in after.by_name.values() for key in function.dispatch if key not in known}
    for key, sentence in torchgen.refused_keys(frozenset(fresh)).items():
        message = f"{fresh[key].schema.name}: the tree's torchgen refuses the entry: {sentence}"
        yield Finding(message, FUNCTIONS_PATH, fresh[key].line, "torchgen")


def _result(schemas: SchemaReport, window: WindowReport, onto: GitCommitHash, refused: Sequence[Finding]) -> GateResult:
    summary = Finding(schemas.summary, rule=SUMMARY_RULE, fails=False)
    found = sorted(
        (*refused, *schemas.findings(), *window.findings()), key=lambda finding: (finding.path, finding.line)
    )
    findings = (summary, *found)
    unknown = [finding for finding in findings if finding.rule == UNKNOWN_RULE]
    return judged(
        SPEC,
        cases=schemas.delta.compared,
        failed=sum(finding.fails for finding in findings),
        undecided=_unknown_reason(unknown, window.history) if unknown else "",
        findings=findings,
        details={
            "summary": schemas.summary,
            "counts": schemas.counts,
            "entries": schemas.rows(),
            "allow_list": schemas.allow_list_details(),
            "window": _window_details(window, onto),
        },
    )


def _window_details(window: WindowReport, onto: GitCommitHash) -> dict[str, object]:
    history = window.history
    return {
        "rule": WINDOW_RULE,
        "judged_at": history.now.isoformat(),
        "onto": onto,
        "versions_read": len(history.versions),
        "history_ends": history.end_note or "far enough back",
        "files_searched": window.scan.files,
        "uses": len(window.scan.uses),
    }


def _unknown_reason(unknown: Sequence[Finding], history: History) -> str:
    first = unknown[0]
    place = f"{first.path}:{first.line}" if first.line else first.path
    note = history.end_note or "a changed file could not be read"
    files = "1 file" if len(unknown) == 1 else f"{len(unknown)} files"
    return f"uses in {files} could not be dated, the first at {place}: {note}"


def _judged(delta: SchemaDelta, base: Tree, head: Tree, context: GateContext) -> tuple[JudgedEntry, ...]:
    return judge_entries(
        delta.entries,
        TorchJudge(),
        base_parser=TreeTorchgen(base, context.cache),
        head_parser=TreeTorchgen(head, context.cache),
    )


def _functions(tree: Tree, side: str) -> NativeFunctions | None:
    try:
        return read_functions(tree)
    except MalformedTreeError as error:
        error.problem = f"in the {side} tree, {error.problem}"
        raise


def _onto(context: GateContext, named: str) -> GitCommitHash:
    if not named:
        return context.base
    found = context.repository.resolve_commit(named)
    if found is None:
        raise UsageError("no such commit", where=named, next_command="validate-stack --onto BRANCH")
    return found
