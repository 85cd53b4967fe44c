"""One line of a GitHub workflow's log that GitHub shows as an annotation."""

from __future__ import annotations


def annotation(level: str, title: str, message: str, *, path: str = "", line: int = 0) -> str:
    """A workflow command such as ``::error title=..,file=..,line=..::message``.

    Args:
        level: ``error``, ``warning`` or ``notice``.
        path: file it belongs to; empty for none.
        line: 1-based line of that file, 0 for none.
    """
    properties = [f"title={_property(title)}"]
    if path:
        properties.append(f"file={_property(path)}")
    if path and line:
        properties.append(f"line={line}")
    return f"::{level} {','.join(properties)}::{_data(message)}"


def _data(text: str) -> str:
    """Escaping of a command's message."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escaping of a command's property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
