"""Gates that do what a test wants. In a module of their own: gates are imported by the process that runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from patchstack.confine.command import run_confined
from stackproof.engines.pool.tasks import run_tasks
from stackproof.gates.common.options import KindsOptions
from stackproof.gates.metal_run import spec as metal_run
from stackproof.gates.spec import Spec
from stackproof.gates.test_mps import spec as test_mps
from stackproof.model import Finding, Gate, GateContext, GateResult, Verdict

PIDS = "FAKE_GATE_PIDS"  # names the file that the spawning gate writes its children's numbers to

_SLEEP = "import time; time.sleep(600)"
_DEAF = "import signal; [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)]"
_STUBBORN = f"{_DEAF}; {_SLEEP}"


@dataclass(frozen=True)
class Options(metal_run.Options, KindsOptions, test_mps.Options):
    """What gates may be asked for, to tell what came of it."""


@dataclass(frozen=True)
class Fake(Spec):
    """A gate of one of the classes below, found as real ones are.

    Attributes:
        kind: name of the class.
    """

    kind: str = ""

    def load(self) -> Gate:
        gate: Gate = globals()[self.kind](self.name)
        return gate


class _Fake:
    def __init__(self, name: str) -> None:
        self.name = name


class Passing(_Fake):
    """Passes, and tells what it was asked."""

    def run(self, context: GateContext, options: Any) -> GateResult:
        context.progress(1, 2, "half way")
        asked = {"base": context.base, "head": context.head, "options": asdict(options)}
        return GateResult(self.name, Verdict.PASSED, cases=3, worst_error=0.5, details=asked, limits=["the moon"])


class Failing(_Fake):
    def run(self, context: GateContext, options: Any) -> GateResult:
        finding = Finding("bad", "a/b.metal", 7, "race")
        return GateResult(self.name, Verdict.FAILED, cases=3, failed=1, findings=[finding])


class NotRun(_Fake):
    def run(self, context: GateContext, options: Any) -> GateResult:
        return GateResult(self.name, Verdict.NOT_RUN, reason="needs macOS")


class FailingOnHead(_Fake):
    """Fails on a commit whose tree has a file ``bad``."""

    def run(self, context: GateContext, options: Any) -> GateResult:
        bad = context.repository.read_object(f"{context.head}:bad") is not None
        return GateResult(self.name, Verdict.FAILED if bad else Verdict.PASSED, cases=1, failed=int(bad))


class Raising(_Fake):
    def run(self, context: GateContext, options: Any) -> GateResult:
        print("what a gate prints is not for the terminal")
        raise RuntimeError("something\nunforeseen")


class Unsendable(_Fake):
    def run(self, context: GateContext, options: Any) -> GateResult:
        return GateResult(self.name, Verdict.PASSED, cases=1, details={"function": lambda: None})


class Crashing(_Fake):
    def run(self, context: GateContext, options: Any) -> GateResult:
        print("last words", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError("still here")


class Spawning(_Fake):
    """Starts children of every kind, and never ends by itself."""

    def run(self, context: GateContext, options: Any) -> GateResult:
        children = [
            subprocess.Popen([sys.executable, "-c", _SLEEP]),
            subprocess.Popen([sys.executable, "-c", _STUBBORN]),
            subprocess.Popen([sys.executable, "-c", _STUBBORN], start_new_session=True),
        ]
        pids = [os.getpid(), *(child.pid for child in children)]
        file = Path(os.environ[PIDS])
        file.with_suffix(".new").write_text(" ".join(map(str, pids)))
        file.with_suffix(".new").rename(file)
        time.sleep(600)
        raise AssertionError("nobody stopped this gate")


def _origin(package: str) -> str:
    return str(import_module(package).__file__)


class Pooled(_Fake):
    """Tells where worker processes import packages from."""

    def run(self, context: GateContext, options: Any) -> GateResult:
        found = dict(run_tasks(["torch", "torchgen"], _origin, jobs=1))
        return GateResult(self.name, Verdict.PASSED, cases=2, details=found)


class ConfinedCode(_Fake):
    """Runs a program as if it were the tree's."""

    def run(self, context: GateContext, options: Any) -> GateResult:
        done = run_confined("code of a test", Path(__file__).with_name("nothing.py"), [], readable=[], timeout=60)
        return GateResult(self.name, Verdict.PASSED, cases=1, details={"status": done.status})


class Unloadable:
    """Work that cannot be loaded where it is to be done."""

    def __reduce__(self) -> tuple[object, ...]:
        return _refuse, ()

    def __call__(self, task: int) -> int:
        return task


def _refuse() -> Unloadable:
    raise RuntimeError("no such work")


class Unstartable(_Fake):
    def run(self, context: GateContext, options: Any) -> GateResult:
        answers = list(run_tasks([1], Unloadable(), jobs=1))
        return GateResult(self.name, Verdict.FAILED, cases=1, failed=len(answers))


def needs_a_package(name: str) -> object:
    """What importing a gate without its packages does."""
    raise ModuleNotFoundError("No module named 'nonsense'", name="nonsense.inner")


def entry(kind: str, name: str) -> Fake:
    """The spec of a gate of one of the classes above."""
    return Fake(__name__, name, "fake", Options, kind=kind)


THREE = (entry("Passing", "one"), entry("Failing", "two"), entry("NotRun", "three"))
PASSING = entry("Passing", "passing")
ON_HEAD = entry("FailingOnHead", "on-head")
RAISING = entry("Raising", "raising")
UNSENDABLE = entry("Unsendable", "unsendable")
CRASHING = entry("Crashing", "crashing")
SPAWNING = entry("Spawning", "spawning")
CONFINED = entry("ConfinedCode", "confined")
POOLED = entry("Pooled", "pooled")
UNSTARTABLE = entry("Unstartable", "unstartable")
UNDECLARED = entry("needs_a_package", "undeclared")
MISSING = replace(UNDECLARED, name="missing", needs=("json", "nonsense"))
EVERY = (*THREE, PASSING, ON_HEAD, RAISING, UNSENDABLE, CRASHING, SPAWNING, UNDECLARED, MISSING)
