"""``proof.py`` beside ``series.yaml``: samples for an op that no OpInfo reaches, or more of them for one that some do.

The file has a function ``samples(dtype)`` that yields functions without arguments. Each calls PyTorch on the CPU, and
whatever calls of the op that makes are recorded as those of OpInfo samples are. Where the CPU has no kernel of the op,
``REFERENCES`` maps its name to a function that computes the right result from the same arguments.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch

from patchstack.errors import PatchstackError, UsageError
from patchstack.series import load_series

NAME = "proof.py"


def proof_file(series: str | None) -> str:
    """The path of the file beside a series; empty where there is none."""
    if series is None:
        return ""
    try:
        place = load_series(series).manifest.parent / NAME
    except PatchstackError:
        return ""  # other gates say so
    return str(place.resolve()) if place.is_file() else ""


@cache
def _loaded(path: str) -> Mapping[str, Any]:
    return runpy.run_path(path) if path else {}


def user_samples(path: str, dtype: torch.dtype) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name and function of each sample in a dtype.

    Raises:
        UsageError: the file has no function of that name.
    """
    if not path:
        return
    samples = _loaded(path).get("samples")
    if not callable(samples):
        raise UsageError("no function 'samples'", where=path, expected="def samples(dtype)", next_command="write one")
    torch.manual_seed(0)
    for number, sample in enumerate(samples(dtype)):
        yield f"{Path(path).name}, sample {number}", sample


def user_reference(path: str, op: str) -> Callable[..., Any] | None:
    """What computes the right result of an op, where the file has it."""
    found: Callable[..., Any] | None = _loaded(path).get("REFERENCES", {}).get(op)
    return found
