"""Blanks at line ends, tabs, carriage returns, and the newline at the end of a file."""

from __future__ import annotations

from collections.abc import Iterator

from stackproof.gates.common.changes import AddedLines
from stackproof.gates.lint.messages import LintMessage, Severity
from stackproof.gates.lint.patterns import LinterPatterns


def check_whitespace(path: str, content: bytes, added: AddedLines, patterns: LinterPatterns) -> Iterator[LintMessage]:
    """Messages about lines that the range wrote; the end of the file counts as written with its last line."""
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if added.touches(number, number):
            yield from _line(path, number, line, patterns)
    last = len(lines) if lines[-1] else len(lines) - 1
    if content and patterns.applies("NEWLINE", path) and added.touches(last, last):
        yield from _end(path, content, last)


def _line(path: str, number: int, line: bytes, patterns: LinterPatterns) -> Iterator[LintMessage]:
    text = line.removesuffix(b"\r")
    if text != line:
        yield _message(path, number, len(line), "NEWLINE", "CRLF", "the line ends in CR LF")
    if patterns.applies("SPACES", path) and text != text.rstrip(b" \t"):
        column = len(text.rstrip(b" \t")) + 1
        yield _message(path, number, column, "SPACES", "trailing spaces", "blanks at the end of the line")
    if patterns.applies("TABS", path) and b"\t" in text:
        yield _message(path, number, text.index(b"\t") + 1, "TABS", "saw some tabs", "a tab; write spaces")


def _end(path: str, content: bytes, last: int) -> Iterator[LintMessage]:
    if not content.endswith(b"\n"):
        yield _message(path, last, None, "NEWLINE", "trailing newline", "there is no newline at the end")
    elif content.endswith((b"\n\n", b"\r\n\r\n")):
        yield _message(path, last, None, "NEWLINE", "trailing newline", "there are empty lines at the end")


def _message(path: str, line: int, column: int | None, code: str, name: str, description: str) -> LintMessage:
    return LintMessage(path, line, column, code, Severity.ERROR, name, description=description)
