"""Kernels that a host function asks for by name, against those that the shader files register."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

_ANY = "\0"  # stands for text that is not known before the kernel is asked for
_HOST_NAME = re.compile(r"host_name\s*\(((?:[^()]|\([^()]*\))*)\)")
_PART = re.compile(r'"((?:[^"\\]|\\.)*)"|#?\s*\w+')
_ASKS = re.compile(
    r"(?:getPipelineStateForFunc|getPipelineState|getMTLFunction|getKernelFunction)\s*\(\s*(?:fmt::format\s*\(\s*)?"
    r'"((?:[^"\\]|\\.)*)"\s*([,)])'
    r'|\b\w*[kK]ernel\w*\s*=\s*fmt::format\s*\(\s*"((?:[^"\\]|\\.)*)"'
)
_FIELD = re.compile(r"\{[^{}]*\}")


def registered(text: str) -> frozenset[str]:
    """The names under which a shader file registers kernels; what a macro puts in is a gap."""
    return frozenset(_registered(text))


@lru_cache(maxsize=64)
def _registered(text: str) -> tuple[str, ...]:
    found = []
    for match in _HOST_NAME.finditer(text):
        parts = [m.group(1) if m.group(1) is not None else _ANY for m in _PART.finditer(match.group(1))]
        found.append("".join(parts))
    return tuple(found)


def asked_for(text: str) -> Iterator[tuple[str, int]]:
    """The names of the kernels that host code asks for, and where; what it puts in is a gap."""
    for match in _ASKS.finditer(text):
        name = match.group(1) if match.group(1) is not None else match.group(3)
        yield _FIELD.sub(_ANY, name), match.start()


def is_registered(name: str, known: Iterable[str]) -> bool:
    """Whether a name with gaps can be one of the registered ones."""
    return any(_meets(name, other) for other in known)


def in_words(name: str) -> str:
    """A name with its gaps, for messages."""
    return name.replace(_ANY, "{}")


def _meets(left: str, right: str) -> bool:
    """Whether two texts with gaps can be the same text: the ends of each are compared up to the first gap."""
    if _ANY not in left and _ANY not in right:
        return left == right
    if _ANY not in left:
        return re.fullmatch(".*".join(map(re.escape, right.split(_ANY))), left) is not None
    if _ANY not in right:
        return _meets(right, left)
    heads, tails = (
        (left.partition(_ANY)[0], right.partition(_ANY)[0]),
        (left.rpartition(_ANY)[2], right.rpartition(_ANY)[2]),
    )
    head, tail = min(map(len, heads)), min(map(len, tails))
    same_tail = not tail or tails[0][-tail:] == tails[1][-tail:]
    return heads[0][:head] == heads[1][:head] and same_tail
