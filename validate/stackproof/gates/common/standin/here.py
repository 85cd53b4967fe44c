"""Whether the stand-in device can be used on this machine, and whether it could be loaded."""

from __future__ import annotations

import sys

import torch

from stackproof.engines.standin.missing import LACKING
from stackproof.gates.common.standin.worker import NOT_LOADED, Ran


def not_loaded(answer: Ran) -> str:
    """What the device lacks, empty where it could be loaded."""
    for finding in answer.findings:
        if finding.rule == NOT_LOADED:
            return finding.message.rpartition("undefined symbol: ")[2]
        if LACKING in finding.message:
            return finding.message.partition(LACKING)[2]
    problems = [problem for case in answer.cases for problem in case.problems if LACKING in problem]
    return problems[0].partition(LACKING)[2] if problems else ""


def why_not_here() -> str:
    """Why nothing can be executed on this system; empty where it can."""
    if not sys.platform.startswith("linux"):
        return "the stand-in device is for Linux; on a Mac, test-mps runs on the real one"
    if torch.backends.mps.is_built():
        return "this torch has a real MPS backend"
    return ""
