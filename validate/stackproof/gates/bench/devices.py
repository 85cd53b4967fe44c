"""Which device a benchmark can use here."""

from __future__ import annotations

import os

import torch

from stackproof.gates.bench.spec import CUDA, HOST, MPS

_FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"


def available() -> str:
    """What the machine has: a GPU that PyTorch can use, or the host."""
    return CUDA if torch.cuda.is_available() else MPS if torch.backends.mps.is_available() else HOST


def why_not(device: str) -> str:
    """Why nothing can be measured on a device here, and what to do; empty where it can be."""
    if device == CUDA and not torch.cuda.is_available():
        return "needs an NVIDIA GPU and a torch with CUDA (without one: validate-stack bench --device host)"
    if device == MPS and not torch.backends.mps.is_available():
        return (
            "needs a Mac with an Apple GPU (without one: --device host; for somebody who has one: "
            "validate-stack bench --print-bench-script)"
        )
    if device == MPS and os.environ.get(_FALLBACK, "0") != "0":
        return f"{_FALLBACK} is set, times would be the CPU's (next: unset {_FALLBACK})"
    return ""
