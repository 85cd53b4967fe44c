"""Reading Python files of a tree that may be older or newer than the Python at hand."""

from __future__ import annotations

import ast
import warnings


def parse_python(content: bytes) -> ast.Module:
    """The syntax tree of a file; warnings about its style (invalid escapes and the like) are nobody's business here.

    Raises:
        SyntaxError: the content is no Python that this Python can read, whatever the reason; ``lineno`` may be missing.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(content)
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error) or type(error).__name__) from None
