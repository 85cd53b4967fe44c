"""Runs tests of a tree's ``test/test_mps.py`` in a worker process, on the stand-in device or on a real one.

The tree's own ``torch.testing._internal`` is put before the installed one, so that the OpInfo entries and the lists of
expected failures are those of the stack.
"""

from __future__ import annotations

import importlib
import os
import random
import time
import unittest
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import torch

from stackproof.engines.standin.build import DeviceBuild
from stackproof.engines.standin.trace import Trace
from stackproof.gates.common.standin.worker import device_of
from stackproof.gates.test_mps.loading import TESTING, LoadError, load_test_file, pretend_to_be_a_mac
from stackproof.launches import Launches
from stackproof.model import Finding

TEST_FILE = "test/test_mps.py"
FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"
STATUSES = ("passed", "failed", "skipped", "xfail", "stale")


@dataclass(frozen=True)
class TestOutcome:
    """How one test ended.

    Attributes:
        name: class and method.
        status: ``passed``, ``failed``, ``skipped``, ``xfail`` (failed as expected) or ``stale`` (passed although it is
            listed as failing).
        text: last line of the error, or why it was skipped.
    """

    name: str
    status: str
    text: str = ""


TEST = "test"
"""Detail of a finding: the test in which it was made."""


@dataclass(frozen=True)
class Chunk:
    """A share of the selected tests.

    Attributes:
        number: which share, counted from 0.
        of: how many there are.
        without: names of tests of it that are left out.
    """

    number: int
    of: int
    without: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.number} of {self.of}"


@dataclass(frozen=True)
class ChunkResult:
    """What came of a chunk.

    Attributes:
        outcomes: one for each test.
        findings: what the device noticed, with the test.
        seconds: wall time.
        problem: why the tests could not be loaded; empty where they could.
        counts: launches by kernel, calls by op.
    """

    outcomes: tuple[TestOutcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    problem: str = ""
    counts: Launches = field(default_factory=Launches)


@dataclass(frozen=True)
class MpsTests:
    """The callable that the pool runs.

    Attributes:
        root: folder with the tree's test file and testing package.
        patterns: a test is selected if its name contains one of them.
        build: the stand-in device; ``None`` on a machine with a real one.
    """

    root: Path
    patterns: tuple[str, ...]
    build: DeviceBuild | None

    def __call__(self, chunk: Chunk) -> ChunkResult:
        """Run a share of the tests; whatever goes wrong while loading them is told, not raised."""
        started = time.monotonic()
        torch.set_num_threads(1)
        try:
            tests, notes = _tests(self)
        except LoadError as error:
            return ChunkResult(problem=str(error))
        except Exception as error:  # the device may lack something, too
            return ChunkResult(problem=f"{type(error).__name__}: {error}")
        result, findings = _Recorder(), list[Finding]()
        device = device_of(self.build) if self.build else None
        if device:
            device.log.take()
        trace = Trace()
        for name in (one for one in sorted(tests)[chunk.number :: chunk.of] if one not in chunk.without):
            trace.begin(name)
            if device:
                device.trace = trace
            # Sample inputs of OpInfo and the tests' own random numbers must not depend on what ran before.
            torch.manual_seed(0)
            random.seed(0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tests[name].run(result)
            noticed = device.take_findings() if device else ()
            findings += [replace(one, details={**one.details, TEST: name}) for one in noticed]
        return ChunkResult(
            outcomes=tuple(result.outcomes),
            findings=(*notes, *findings),
            seconds=time.monotonic() - started,
            counts=device.log.take() if device else Launches(),
        )


class _Recorder(unittest.TestResult):
    """Keeps one outcome per test; a failing subtest fails its test."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[TestOutcome] = []
        self._failed_subtests: dict[str, str] = {}

    def _add(self, test: unittest.TestCase, status: str, text: str = "") -> None:
        self.outcomes.append(TestOutcome(_name(test), status, text))

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        failed = self._failed_subtests.pop(_name(test), None)
        self._add(test, "passed" if failed is None else "failed", failed or "")

    def addFailure(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
        self._add(test, "failed", _last_line(err))

    def addError(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
        self._add(test, "failed", _last_line(err))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._add(test, "skipped", reason)

    def addExpectedFailure(self, test: unittest.TestCase, err: object) -> None:  # noqa: N802
        self._add(test, "xfail", _last_line(err))

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._add(test, "stale")

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: object) -> None:  # noqa: N802
        if err is not None:
            self._add(test, "failed", f"{subtest}: {_last_line(err)}")


def _name(test: unittest.TestCase) -> str:
    return ".".join(test.id().split(".")[-2:])


def _last_line(error: object) -> str:
    value = error[1] if isinstance(error, tuple) else error
    lines = [line for line in str(value).splitlines() if line.strip()]
    return f"{type(value).__name__}: {' '.join(lines[:2])[:300]}"


@cache
def _tests(tests: MpsTests) -> tuple[dict[str, unittest.TestCase], list[Finding]]:
    """The selected tests by name, from the tree's test file, and what was noted while it was loaded."""
    if os.environ.get(FALLBACK) == "1":
        raise RuntimeError(f"{FALLBACK}=1 makes the results meaningless: ops would run on the CPU")
    if tests.build is not None:
        device_of(tests.build)
        pretend_to_be_a_mac()
    package = importlib.import_module("torch.testing._internal")
    package.__path__.insert(0, str(tests.root / TESTING))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module, notes = load_test_file(tests.root, TEST_FILE)
    found: dict[str, unittest.TestCase] = {}
    for case in _cases(unittest.defaultTestLoader.loadTestsFromModule(module)):
        if any(pattern in _name(case) for pattern in tests.patterns):
            found[_name(case)] = case
    return found, notes


def _cases(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from _cases(one)
        else:
            yield one
