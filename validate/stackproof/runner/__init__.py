"""Running gates: in a process of their own, one after the other, with an end that leaves nothing behind."""

from stackproof.runner.gate_process import GateProcess
from stackproof.runner.messages import Job
from stackproof.runner.sequence import Range, Stage, run_stages

__all__ = ["GateProcess", "Job", "Range", "Stage", "run_stages"]
