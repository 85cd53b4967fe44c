"""The gate "build": PyTorch with the stack, built on a Mac. Anywhere else it is not run, and says so."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from patchstack.errors import PatchstackError
from patchstack.series import load_series
from patchstack.tree.git import Tree
from stackproof.engines.mac_build.execute import CommandResult, only_one, run_commands
from stackproof.engines.mac_build.folder import BuildFolder
from stackproof.engines.mac_build.machine import Machine
from stackproof.engines.mac_build.ninja import failures
from stackproof.engines.mac_build.plan import BuildRequest, Command, plan_build, shell_lines
from stackproof.model import Finding, GateContext, GateResult, Verdict

LIMITS = (
    "Built for this Mac without CUDA, distributed, oneDNN, FBGEMM, XNNPACK, Kineto and the C++ tests; CI builds more.",
)
_WHOLE_TREE = ("setup.py", "CMakeLists.txt", "requirements.txt")


class BuildGate:
    """Implements :class:`stackproof.model.Gate`.

    Options: ``series`` (whose ops must have an MPS kernel afterwards), ``ops`` (ops instead of those of a series).

    Args:
        machine: the machine to build on; this one by default.
    """

    name = "build"
    summary = "an incremental PyTorch build of the stack (macOS)"

    def __init__(self, machine: Machine | None = None) -> None:
        self._given = machine

    def plan(self, context: GateContext) -> Sequence[str]:
        """The exact commands, on any system; nothing is run."""
        machine = self._given or Machine.here()
        missing = _missing(context)
        notes = [f"# not run on this tree: {missing}"] if missing else []
        return [*notes, *shell_lines(machine, _request(context))]

    def run(self, context: GateContext) -> GateResult:
        """Build the head commit; the build is left for the gate "test-mps" and for the next run."""
        machine = self._given or Machine.here()
        reason = machine.not_able or _missing(context)
        if reason:
            return GateResult(self.name, Verdict.NOT_RUN, reason=reason)
        started = time.monotonic()
        request = _request(context)
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
            return GateResult(self.name, Verdict.NOT_RUN, reason=str(error))
        return _result(machine, request, commands, results, time.monotonic() - started)


def _request(context: GateContext) -> BuildRequest:
    folder = BuildFolder.of(context.repository, context.cache)
    return BuildRequest(
        context.repository.root,
        context.head,
        folder,
        context.jobs,
        _ops(context.options),
        worktree_exists=(folder.worktree / ".git").exists(),
        environment_exists=folder.python.exists(),
    )


def _ops(options: Mapping[str, Any]) -> tuple[str, ...]:
    named = options.get("ops")
    return tuple(named) if named else load_series(options.get("series")).ops


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
    seconds: float,
) -> GateResult:
    failed = sum(bool(result.status) for result in results)
    return GateResult(
        BuildGate.name,
        Verdict.FAILED if failed else Verdict.PASSED,
        cases=len(commands),
        failed=failed,
        seconds=seconds,
        findings=list(_findings(request, results)),
        details={
            "log": str(request.folder.log),
            "worktree": str(request.folder.worktree),
            "compiler_launcher": machine.compiler_launcher or "none",
            "steps": {result.command.name: _step(result) for result in results},
        },
        limits=LIMITS,
    )


def _step(result: CommandResult) -> dict[str, Any]:
    facts: dict[str, Any] = {"status": result.status, "seconds": round(result.seconds, 1)}
    return facts | ({"ninja_steps": result.output.total} if result.command.is_build else {})


def _findings(request: BuildRequest, results: Sequence[CommandResult]) -> Iterator[Finding]:
    for result in results:
        if result.status:
            yield from failures(result.output, result.command.name, result.status, request.folder.worktree)
