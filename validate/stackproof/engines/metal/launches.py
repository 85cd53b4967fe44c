"""What Metal requires of a launch beside the kernel's arguments: its command encoder refuses the rest, or skips it.

Without the validation layer a launch that breaks one of these is dropped silently, and the output keeps what it held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from stackproof.engines.metal.dialect import THREADGROUP_BYTES
from stackproof.engines.metal.model import Signature

MAX_THREADS_PER_GROUP = 1024
_LENGTH_MULTIPLE = 16


def launch_problems(signature: Signature, group: tuple[int, int, int], lengths: Mapping[int, int]) -> Iterator[str]:
    """Why Metal would not run a launch, one sentence each.

    Args:
        signature: of the kernel.
        group: threads of a threadgroup.
        lengths: bytes of each threadgroup argument, by index.
    """
    threads = prod(group)
    limit = signature.max_threads or MAX_THREADS_PER_GROUP
    if not 0 < threads <= limit:
        whose = "the kernel says" if signature.max_threads else "Metal takes"
        yield f"a threadgroup of {threads} threads, {whose} 1 to {limit}"
    for index, length in sorted(lengths.items()):
        if length % _LENGTH_MULTIPLE:
            yield f"{length} bytes for threadgroup argument {index}, Metal wants a multiple of {_LENGTH_MULTIPLE}"
    if (total := sum(lengths.values())) > THREADGROUP_BYTES:
        yield f"{total:,} bytes of threadgroup memory, Metal has {THREADGROUP_BYTES:,}"
