"""Which OpInfos of the installed torch reach an op, found out once for each torch in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch

from patchstack.cache import write_whole
from stackproof.engines.metal.toolchain import digest
from stackproof.engines.pool.tasks import Died, run_tasks
from stackproof.gates.op_run import recorded


def entries_reaching(ops: Sequence[str], cache: Path) -> dict[str, tuple[int, ...]]:
    """By op, the numbers of the OpInfos that reach it; nothing of an op that none does."""
    code = Path(recorded.__file__).read_bytes()
    place = cache / "op-run" / f"reached-{digest(torch.__version__, code)}.json"
    if not place.exists():
        _task, found = next(iter(run_tasks([0], _found, jobs=1, timeout=300)))
        if isinstance(found, Died):
            return {}
        write_whole(place, json.dumps(found))
    reached = json.loads(place.read_text())
    return {op: tuple(reached[op]) for op in ops if op in reached}


def _found(task: int) -> dict[str, list[int]]:
    torch.set_num_threads(1)
    return recorded.reached_ops()
