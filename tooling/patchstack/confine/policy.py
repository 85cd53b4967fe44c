"""Whether code of a tree may be run at all: whoever reads a stranger's pull request may want none of it to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from patchstack.errors import PatchstackError

OPTION = "--no-tree-code"

_forbidden: list[bool] = [False]


class TreeCodeForbiddenError(PatchstackError):
    """Something needs code of the tree to be run, and that was forbidden."""


@contextlib.contextmanager
def tree_code(*, allowed: bool) -> Iterator[None]:
    """While active, code of a tree is run, or is not; what was forbidden outside stays forbidden."""
    before = _forbidden[0]
    _forbidden[0] = before or not allowed
    try:
        yield
    finally:
        _forbidden[0] = before


def require_allowed(what: str) -> None:
    """Go on only where code of a tree may be run.

    Raises:
        TreeCodeForbiddenError: it may not.
    """
    if _forbidden[0]:
        raise TreeCodeForbiddenError(f"{what} would have to be run, and {OPTION} forbids it")
