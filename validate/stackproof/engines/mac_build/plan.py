"""The plan of a build: which commands, where, in which environment. Made without running or writing anything.

The build goes into a worktree and a virtual environment of its own, so that the user's checkout, build folder and
Python stay as they are. What the grid sampler's tests never touch (CUDA, distributed, the x86 libraries) is left out,
as PyTorch's own contribution guide suggests.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from patchstack.tree.git import GitCommitHash
from stackproof.engines.mac_build.folder import BuildFolder, BuiltTree
from stackproof.engines.mac_build.machine import Machine

# With it, a missing kernel runs on the CPU and the tests show nothing.
FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"

_LEFT_OUT = (
    "BUILD_TEST",
    "USE_CUDA",
    "USE_DISTRIBUTED",
    "USE_FBGEMM",
    "USE_KINETO",
    "USE_MKLDNN",
    "USE_NNPACK",
    "USE_QNNPACK",
    "USE_XNNPACK",
)
_LANGUAGES = ("C", "CXX", "OBJC", "OBJCXX")

# Asks the built torch itself: a build that silently left MPS out would pass nothing on.
_CHECK = (
    "import torch; assert torch.backends.mps.is_built(), 'built without MPS'; "
    "missing = [op for op in {ops!r} if not torch._C._dispatch_has_kernel_for_dispatch_key('aten::' + op, 'MPS')]; "
    "assert not missing, f'no MPS kernel for {{missing}}'; print(torch.__version__)"
)


@dataclass(frozen=True)
class Command:
    """One command of a plan.

    Attributes:
        name: what it does, for progress and findings.
        arguments: program and arguments.
        folder: where it runs.
        variables: set in its environment, besides the user's own.
        unset: taken out of the environment.
        is_build: its output has ninja's ``[n/m]`` steps.
    """

    name: str
    arguments: tuple[str, ...]
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    is_build: bool = False

    def as_shell(self) -> str:
        """The line to type."""
        words = [*(f"-u {name}" for name in self.unset)]
        words += [f"{name}={shlex.quote(value)}" for name, value in self.variables.items()]
        prefix = f"env {' '.join(words)} " if words else ""
        return f"(cd {shlex.quote(str(self.folder))} && {prefix}{shlex.join(self.arguments)})"


@dataclass(frozen=True)
class BuildRequest:
    """What is to be built.

    Attributes:
        repository: a folder of the repository that holds the commit.
        head: the commit.
        folder: where the build lives.
        jobs: compilations at once.
        ops: the operators that must have an MPS kernel afterwards.
        worktree_exists: an earlier run left the worktree; it is moved to the commit, and what is built in it is kept.
        environment_exists: an earlier run left the virtual environment.
    """

    repository: Path
    head: GitCommitHash
    folder: BuildFolder
    jobs: int
    ops: tuple[str, ...]
    worktree_exists: bool = False
    environment_exists: bool = False


def plan_build(machine: Machine, request: BuildRequest) -> tuple[Command, ...]:
    """The commands in order; each may be repeated after an interruption."""
    folder, python = request.folder, str(request.folder.python)
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install")
    requirements = (*pip, "--quiet", "--requirement", "requirements.txt", "cmake", "ninja")
    commands = [
        _worktree(request),
        Command(
            "submodules",
            ("git", "submodule", "update", "--init", "--recursive", "--jobs", str(request.jobs)),
            folder.worktree,
        ),
        Command("build requirements", requirements, folder.worktree),
        Command(
            "build",
            (*pip, "--no-build-isolation", "--no-deps", "--verbose", "--editable", "."),
            folder.worktree,
            variables=build_variables(machine, request),
            is_build=True,
        ),
        Command("check the build", (python, "-c", _CHECK.format(ops=list(request.ops))), folder.path),
    ]
    if not request.environment_exists:
        environment = Command(
            "virtual environment", (machine.python, "-m", "venv", str(folder.environment)), folder.path
        )
        commands.insert(2, environment)
    return tuple(commands)


def build_variables(machine: Machine, request: BuildRequest) -> dict[str, str]:
    """The environment of the build proper."""
    variables = {"USE_MPS": "1", **dict.fromkeys(_LEFT_OUT, "0")}
    variables |= {"CMAKE_BUILD_TYPE": "Release", "CMAKE_GENERATOR": "Ninja", "MAX_JOBS": str(request.jobs)}
    if machine.compiler_launcher:
        for language in _LANGUAGES:
            variables[f"CMAKE_{language}_COMPILER_LAUNCHER"] = machine.compiler_launcher
    if Path(machine.compiler_launcher).name == "ccache":
        # What was compiled in another checkout of the same source counts.
        variables |= {"CCACHE_BASEDIR": str(request.folder.worktree), "CCACHE_NOHASHDIR": "1"}
    return variables


def plan_tests(tree: BuiltTree, ops: Sequence[str]) -> Command:
    """The tests of ``test_mps.py`` that the ops touch, in a tree that was built."""
    patterns = [argument for name in test_patterns(ops) for argument in ("-k", name)]
    return Command(
        "test-mps",
        (str(tree.python), "test/test_mps.py", "--verbose", *patterns),
        tree.worktree,
        unset=(FALLBACK,),
    )


def test_patterns(ops: Sequence[str]) -> tuple[str, ...]:
    """What to give ``-k`` for a list of ops: the ops themselves and the functions whose gradients they are."""
    return tuple(dict.fromkeys(op.removesuffix("_backward") for op in ops))


def shell_lines(machine: Machine, request: BuildRequest) -> Iterator[str]:
    """The plan for a person, with what has to be known about it."""
    if machine.not_able:
        yield f"# not run here: {machine.not_able}"
    yield f"# log: {request.folder.log}"
    yield f"# git worktree remove {shlex.quote(str(request.folder.worktree))} takes the worktree away again"
    yield f"mkdir -p {shlex.quote(str(request.folder.path))}"
    for command in plan_build(machine, request):
        yield f"# {command.name}"
        yield command.as_shell()
    yield "# then, by the gate test-mps"
    yield plan_tests(BuiltTree(request.folder.worktree, request.folder.python), request.ops).as_shell()


def _worktree(request: BuildRequest) -> Command:
    worktree = str(request.folder.worktree)
    if request.worktree_exists:
        # Files that are the same in both commits keep their times, so ninja leaves them alone.
        return Command("worktree", ("git", "checkout", "--quiet", "--detach", request.head), request.folder.worktree)
    # Forced, since git may still know of a worktree that was deleted with the cache.
    add = ("git", "worktree", "add", "--force", "--quiet", "--detach", worktree, request.head)
    return Command("worktree", add, request.repository)
