"""The gate "build": PyTorch with the stack, built on a Mac. Anywhere else it is not run, and says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from patchstack.errors import PatchstackError
from patchstack.tree.git import Tree
from stackproof.engines.mac_build.execute import CommandResult, only_one, run_commands
from stackproof.engines.mac_build.folder import BuildFolder
from stackproof.engines.mac_build.machine import Machine
from stackproof.engines.mac_build.ninja import failures
from stackproof.engines.mac_build.plan import BuildRequest, Command, plan_build, shell_lines
from stackproof.gates.build.spec import SPEC
from stackproof.gates.common.options import OpsOptions
from stackproof.gates.common.results import judged, not_run
from stackproof.model import Finding, GateContext, GateResult

_WHOLE_TREE = ("setup.py", "CMakeLists.txt", "requirements.txt")


def plan(context: GateContext, options: OpsOptions) -> Sequence[str]:
    """The exact commands, on any system; nothing is run."""
    missing = _missing(context)
    notes = [f"# not run on this tree: {missing}"] if missing else []
    return [*notes, *shell_lines(Machine.here(), _request(context, options))]


def run(context: GateContext, options: OpsOptions) -> GateResult:
    """Build the head commit; the build is left for the gate "test-mps" and for the next run."""
    machine = Machine.here()
    reason = machine.not_able or _missing(context)
    if reason:
        return not_run(SPEC, reason)
    request = _request(context, options)
    folder = request.folder
    folder.path.mkdir(parents=True, exist_ok=True)
    try:
        with only_one(folder.path):
            folder.stamp.unlink(missing_ok=True)
            commands = plan_build(machine, request)
            results = list(run_commands(commands, folder.log, context.progress))
            if not results[-1].status:
                folder.mark_built(context.head)
    except PatchstackError as error:
        return not_run(SPEC, str(error))
    return _result(machine, request, commands, results)


def _request(context: GateContext, options: OpsOptions) -> BuildRequest:
    folder = BuildFolder.of(context.repository, context.cache)
    return BuildRequest(
        context.repository.root,
        context.head,
        folder,
        context.jobs,
        options.named_ops,
        worktree_exists=(folder.worktree / ".git").exists(),
        environment_exists=folder.python.exists(),
    )


def _missing(context: GateContext) -> str:
    """Why the tree cannot be built, empty where it can: reference trees hold only what the gates read."""
    tree = Tree.at(context.repository, context.head)
    missing = [path for path in _WHOLE_TREE if tree.read(path) is None]
    if not missing:
        return ""
    return f"needs a whole PyTorch checkout, this tree has no {', '.join(missing)} (next: --repo PATH)"


def _result(
    machine: Machine,
    request: BuildRequest,
    commands: Sequence[Command],
    results: Sequence[CommandResult],
) -> GateResult:
    return judged(
        SPEC,
        cases=len(commands),
        failed=sum(bool(result.status) for result in results),
        findings=list(_findings(request, results)),
        details={
            "log": str(request.folder.log),
            "worktree": str(request.folder.worktree),
            "compiler_launcher": machine.compiler_launcher or "none",
            "steps": {result.command.name: _step(result) for result in results},
        },
    )


def _step(result: CommandResult) -> dict[str, Any]:
    facts: dict[str, Any] = {"status": result.status, "seconds": round(result.seconds, 1)}
    return facts | ({"ninja_steps": result.output.total} if result.command.is_build else {})


def _findings(request: BuildRequest, results: Sequence[CommandResult]) -> Iterator[Finding]:
    for result in results:
        if result.status:
            yield from failures(result.output, result.command.name, result.status, request.folder.worktree)
