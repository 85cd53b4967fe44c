"""Which op has a proof. The series manifest names ops; nothing else in the project asks for one by name.

What is known about an op is spread over packages that need different things (torch, a compiler, a device), so this is
the one table of all of it, by the name of what makes it, and each package takes its own column.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from stackproof.ops.model import OpProof


@dataclass(frozen=True)
class Makers:
    """What makes the parts of what is known about an op: ``module:callable``, imported on use; empty where unknown.

    Attributes:
        kernels: a :class:`stackproof.ops.model.OpProof`.
        host: a :class:`stackproof.ops.scenarios.HostProof`.
        fast_path: a :class:`stackproof.ops.fast_path.FastPathOp`.
    """

    kernels: str
    host: str = ""
    fast_path: str = ""


_OPS = {
    "grid_sampler_2d": Makers(
        "stackproof.ops.grid_sampler.forward:forward_2d",
        host="stackproof.ops.grid_sampler.scenarios.proof:forward_2d",
        fast_path="stackproof.ops.grid_sampler.fast_path:forward_2d",
    ),
    "grid_sampler_2d_backward": Makers(
        "stackproof.ops.grid_sampler.backward:backward_2d",
        host="stackproof.ops.grid_sampler.scenarios.proof:backward_2d",
        fast_path="stackproof.ops.grid_sampler.fast_path:backward_2d",
    ),
    "grid_sampler_3d": Makers(
        "stackproof.ops.grid_sampler.forward:forward_3d",
        host="stackproof.ops.grid_sampler.scenarios.proof:forward_3d",
        fast_path="stackproof.ops.grid_sampler.fast_path:forward_3d",
    ),
    "grid_sampler_3d_backward": Makers(
        "stackproof.ops.grid_sampler.backward:backward_3d",
        host="stackproof.ops.grid_sampler.scenarios.proof:backward_3d",
        fast_path="stackproof.ops.grid_sampler.fast_path:backward_3d",
    ),
}


def proven_ops() -> tuple[str, ...]:
    """The ops that have a proof, by aten name."""
    return tuple(_OPS)


def makers_of(op: str) -> Makers:
    """What is known about an op; nothing where nobody wrote anything."""
    return _OPS.get(op, Makers(""))


def make(maker: str) -> Any | None:
    """What a ``module:callable`` makes, ``None`` for an empty one."""
    module, _, attribute = maker.partition(":")
    return getattr(import_module(module), attribute)() if module else None


def proof_for(op: str) -> OpProof | None:
    """The proof of an op, or ``None`` where nobody wrote one."""
    proof: OpProof | None = make(makers_of(op).kernels)
    return proof
