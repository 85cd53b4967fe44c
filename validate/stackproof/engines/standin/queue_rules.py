"""What may stand inside the block that a host function gives to the stream's queue, and what may not stand outside it.

A check that fails inside the block leaves a half-encoded command behind; an encoder taken outside may have been ended
by another thread before the block runs. Both compile and both usually work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from patchstack.tree.cxx_mask import code_only
from stackproof.model import Finding

_QUEUE = re.compile(r"\bdispatch_sync(?:_with_rethrow)?\s*\(")
_CHECK = re.compile(r"\b(TORCH_CHECK\w*|AT_ERROR|TORCH_INTERNAL_ASSERT\w*)\s*\(")
_ENCODER = re.compile(r"(?:->|\.)\s*commandEncoder\s*\(\s*\)")


def check_queue_rules(path: str, text: str) -> list[Finding]:
    """Checks inside the queue's blocks, and encoders taken outside of them.

    Args:
        path: of the file in the tree.
        text: its content.
    """
    code = code_only(text.encode(errors="replace")).decode(errors="replace")
    blocks = list(_blocks(code))
    return [*_inside(path, code, blocks), *_outside(path, code, blocks)]


def _blocks(code: str) -> Iterator[tuple[int, int]]:
    """Begin and end of the argument list of each call that hands a block to a queue."""
    for match in _QUEUE.finditer(code):
        depth = 0
        for position in range(match.end() - 1, len(code)):
            depth += {"(": 1, ")": -1}.get(code[position], 0)
            if not depth:
                if "^" in code[match.end() : position]:
                    yield match.end(), position
                break


def _line(code: str, position: int) -> int:
    return code.count("\n", 0, position) + 1


def _inside(path: str, code: str, blocks: list[tuple[int, int]]) -> Iterator[Finding]:
    for begin, end in blocks:
        for match in _CHECK.finditer(code, begin, end):
            message = f"{match[1]} inside the queue's block: a check belongs before it"
            yield Finding(message, path, _line(code, match.start()), "check-inside-block")


def _outside(path: str, code: str, blocks: list[tuple[int, int]]) -> Iterator[Finding]:
    for match in _ENCODER.finditer(code):
        if not any(begin <= match.start() < end for begin, end in blocks):
            message = "the stream's encoder is taken outside of the queue's block"
            yield Finding(message, path, _line(code, match.start()), "encoder-outside-block")
