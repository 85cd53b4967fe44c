"""The gate ``c-shim``: no declaration of a C-shim header changed, and every header is what torchgen makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from patchstack.errors import TreeError
from patchstack.tree.c_shim import HEADER_FOLDER, Declaration, ShimDelta, classify, header_path, parse_declarations
from patchstack.tree.git import Tree
from stackproof.base_commit.findings import as_note, failing, noted
from stackproof.gates.c_shim.callers import base_function, find_callers, inductor_chooses_versions
from stackproof.gates.c_shim.fallback import FALLBACK_PATH, FallbackOperators, VersionForm, read_fallback_operators
from stackproof.gates.c_shim.recipe import REGENERATE, recipe, version_macro
from stackproof.gates.c_shim.spec import SPEC
from stackproof.gates.c_shim.stale import Freshness, StaleHeader, check_freshness, same_inputs
from stackproof.gates.c_shim.traps import find_traps
from stackproof.gates.common.errors import MalformedTreeError
from stackproof.gates.common.functions import FUNCTIONS_PATH, NativeFunctions, read_functions
from stackproof.gates.common.guard import SUMMARY_RULE, guarded
from stackproof.gates.common.options import NoOptions
from stackproof.gates.common.results import judged, not_run
from stackproof.model import Finding, GateContext, GateResult

MOST_CALLERS = 20
KNOWN_DEVICES = ("aten", "cpu", "cuda", "mps", "xpu")
"""Devices that a report names even where a tree has no header for them yet."""


def run(context: GateContext, _options: NoOptions) -> GateResult:
    """Judge the range; a header that cannot be parsed is a finding of rule ``malformed-input``."""
    return guarded(SPEC, lambda: _judge(context))


@dataclass(frozen=True)
class _Judged:
    """Everything the findings are made from."""

    base: Tree
    head: Tree
    deltas: dict[str, ShimDelta]
    operators: FallbackOperators | None
    functions: NativeFunctions | None
    fresh: Freshness
    already_stale: frozenset[StaleHeader]


def _judge(context: GateContext) -> GateResult:
    base, head = Tree.at(context.repository, context.base), Tree.at(context.repository, context.head)
    headers = {device: (_read(base, device), _read(head, device)) for device in _devices(base, head)}
    if not headers:
        return not_run(SPEC, f"neither tree has a header in {HEADER_FOLDER}", ())
    context.progress(1, 2, "asking the tree's torchgen")
    present = [device for device in headers if head.exists(header_path(device))]
    untouched = same_inputs(base, head)
    fresh = Freshness() if untouched else check_freshness(head, present)
    seen = _Judged(
        base,
        head,
        {device: classify(before or (), after or ()) for device, (before, after) in headers.items()},
        read_fallback_operators(head),
        read_functions(head),
        fresh,
        frozenset(check_freshness(base, present).stale) if fresh.stale else frozenset(),
    )
    found = sorted(_findings(seen), key=lambda finding: (finding.path, finding.line))
    if failing(found):
        found = noted(found, _of_base(base, present, seen), head=head, base=base)
    findings = (Finding(summary(seen.deltas), rule=SUMMARY_RULE, fails=False), *found)
    undecided = f"{summary(seen.deltas)}; whether the headers are stale: {fresh.refusal}" if fresh.refusal else ""
    return judged(
        SPEC,
        cases=sum(len(after or ()) for _, after in headers.values()) or 1,
        failed=sum(finding.fails for finding in findings),
        undecided=undecided,
        findings=findings,
        details={
            "summary": summary(seen.deltas),
            "devices": {device: _row(headers[device], delta) for device, delta in seen.deltas.items()},
            "not_applicable": [device for device in KNOWN_DEVICES if not head.exists(header_path(device))],
            "compared_with_torchgen": list(fresh.checked),
            "torchgen_not_asked": "the range touches neither the headers nor their sources" if untouched else "",
            "version_form": seen.operators.form.value if seen.operators else VersionForm.NONE.value,
        },
    )


def summary(deltas: dict[str, ShimDelta]) -> str:
    """``1 declaration added, none changed``, with what else there is."""
    added = sum(len(delta.added) for delta in deltas.values())
    changed = sum(len(delta.changed) for delta in deltas.values())
    names_only = sum(change.names_only for delta in deltas.values() for change in delta.changed)
    parts = [f"{added or 'no'} declaration{'' if added == 1 else 's'} added", f"{changed or 'none'} changed"]
    parts += [f"{names_only} of them in parameter names only"] if names_only else []
    for kind in ("removed", "reordered", "regated"):
        count = sum(len(getattr(delta, kind)) for delta in deltas.values())
        parts += [f"{count} {kind}"] if count else []
    return ", ".join(parts)


def _findings(seen: _Judged) -> Iterator[Finding]:
    since = version_macro(seen.head)
    for device, delta in seen.deltas.items():
        yield from _rule_findings(seen, device, delta, since)
        yield from _information(header_path(device), delta)
    yield from _caller_findings(seen)
    yield from _stale_findings(seen)
    yield from _trap_findings(seen.operators, seen.functions)


def _of_base(base: Tree, devices: Sequence[str], seen: _Judged) -> Iterator[Finding]:
    """What is wrong with the base already."""
    if seen.fresh.refused_by_torchgen and (refusal := check_freshness(base, devices)).refused_by_torchgen:
        yield Finding(refusal.refusal, FALLBACK_PATH, rule="torchgen")
    yield from _trap_findings(read_fallback_operators(base), read_functions(base))


def _trap_findings(operators: FallbackOperators | None, functions: NativeFunctions | None) -> Iterator[Finding]:
    if operators and functions:
        for operator, line, problem in find_traps(operators, functions.by_name):
            yield Finding(problem, FALLBACK_PATH, line, "silent-v1", details={"operator": operator.name})


def _rule_findings(seen: _Judged, device: str, delta: ShimDelta, since: str) -> Iterator[Finding]:
    """Changed and removed declarations: what the rule forbids."""
    path = header_path(device)
    by_suffix = seen.operators.by_suffix(device) if seen.operators else {}
    form = seen.operators.form if seen.operators else VersionForm.NONE
    for change in delta.changed:
        name = change.after.name
        details = {"before": change.before.text, "after": change.after.text}
        if change.names_only:
            message = (
                f"{name}: parameter names of an existing declaration changed; compiled models still call it rightly, "
                "but the rule is that a declaration stays as it is: keep the old names"
            )
            yield Finding(message, path, change.after.line, "renamed-parameters", details=details)
            continue
        operator = by_suffix.get(base_function(name).removeprefix(f"aoti_torch_{device}_"))
        advice = recipe(change, operator, form, since)
        message = f"{name}: an existing declaration changed, which breaks models that are compiled already; {advice}"
        yield Finding(message, path, change.after.line, "changed", details={**details, "recipe": advice})
    for gone in delta.removed:
        message = f"{gone.name}: an existing declaration was removed, which breaks models that are compiled already"
        yield Finding(message, path, 0, "removed", details={"before": gone.text, "line_in_base": gone.line})


def _information(path: str, delta: ShimDelta) -> Iterator[Finding]:
    for declaration in delta.added:
        yield Finding(f"{declaration.name}: added", path, declaration.line, "added", fails=False)
    for declaration in delta.reordered:
        message = f"{declaration.name}: moved, which changes nothing for callers"
        yield Finding(message, path, declaration.line, "reordered", fails=False)
    for pair in delta.regated:
        guard = " and ".join(pair.after.guard) or "nothing"
        message = f"{pair.after.name}: now guarded by {guard}; sources that target an older version no longer see it"
        yield Finding(message, path, pair.after.line, "regated", fails=False)


def _caller_findings(seen: _Judged) -> Iterator[Finding]:
    """After a new version was added, or a declaration changed: who calls the function, and which version."""
    versions: dict[str, str] = {}
    changed: set[str] = set()
    for delta in seen.deltas.values():
        versions |= {base_function(d.name): d.name for d in _oldest_first(delta) if base_function(d.name) != d.name}
        changed |= {change.after.name for change in delta.changed if not change.names_only}
    for count, caller in enumerate(find_callers(seen.head, versions.keys() | changed)):
        if count == MOST_CALLERS:
            yield Finding("there are more callers; only the first are listed", rule="caller", fails=False)
            return
        newest = versions.get(caller.function)
        what = f"calls {caller.function}, though {newest} is there now" if newest else f"calls {caller.function}"
        yield Finding(what, caller.path, caller.line, "caller", fails=False, details={"newest": newest})
    by_inductor = [name for name in versions.values() if not name.startswith("aoti_torch_aten_")]
    if by_inductor and not inductor_chooses_versions(seen.head):
        message = f"nothing in this tree's Inductor picks a version, so it would call v1 and never {by_inductor[0]}"
        yield Finding(message, "torch/_inductor/ir.py", rule="caller")


def _oldest_first(delta: ShimDelta) -> list[Declaration]:
    return sorted(delta.added, key=lambda declaration: (len(declaration.name), declaration.name))


def _stale_findings(seen: _Judged) -> Iterator[Finding]:
    fresh = seen.fresh
    if fresh.refused_by_torchgen:
        place = (FUNCTIONS_PATH, fresh.refused_line) if fresh.refused_line else (FALLBACK_PATH, 0)
        yield Finding(fresh.refusal, *place, rule="torchgen")
    for path in fresh.not_made:
        yield Finding("not compared: the tree's torchgen does not make it", path, rule="not-compared", fails=False)
    for header in fresh.stale:
        if header.text_only:
            what = "text outside of declarations differs"
        else:
            delta = header.delta
            numbers = {"missing": delta.added, "too many": delta.removed, "different": delta.changed}
            numbers |= {"in another place": delta.reordered, "otherwise guarded": delta.regated}
            what = ", ".join(f"{len(found)} {kind}" for kind, found in numbers.items() if found)
        names = [declaration.name for declaration in (*header.delta.added, *header.delta.removed)][:5]
        names += [change.after.name for change in header.delta.changed][:5]
        message = f"not what the tree's torchgen makes ({what}{': ' if names else ''}{', '.join(names)})"
        old = header in seen.already_stale
        stale = Finding(f"{message}; run {REGENERATE}", header.path, rule="stale", details={"command": REGENERATE})
        yield as_note(replace(stale, message=message)) if old else stale


def _devices(*trees: Tree) -> list[str]:
    names = {path.rsplit("/", 1)[-1] for tree in trees for path in tree.walk(HEADER_FOLDER)}
    shims = (name for name in names if name.startswith("c_shim_") and name.endswith(".h"))
    return sorted(name.removeprefix("c_shim_").removesuffix(".h") for name in shims)


def _read(tree: Tree, device: str) -> tuple[Declaration, ...] | None:
    path = header_path(device)
    content = tree.read(path)
    if content is None:
        return None
    try:
        return parse_declarations(content, path=path)
    except TreeError as error:
        raise MalformedTreeError(error.problem, error.where, error.expected, error.found) from None


def _row(sides: Sequence[Sequence[Declaration] | None], delta: ShimDelta) -> dict[str, object]:
    before, after = sides
    return {
        "before": None if before is None else len(before),
        "after": None if after is None else len(after),
        "added": len(delta.added),
        "removed": len(delta.removed),
        "changed": len(delta.changed),
        "changed_in_names_only": sum(change.names_only for change in delta.changed),
        "reordered": len(delta.reordered),
        "regated": len(delta.regated),
        "unchanged": delta.unchanged,
    }
