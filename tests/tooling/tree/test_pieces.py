"""The tokens that make two pieces of code alike: those of the code, and none of its comments."""

from __future__ import annotations

from patchstack.tree.pieces import Piece


def tokens(path: str, text: str) -> tuple[str, ...]:
    return Piece(path, "function", "f", text.encode()).tokens


def test_two_slashes_in_a_string_begin_no_comment() -> None:
    assert tokens("a.mm", 'f("https://a", b); // c\n') == ("f", "(", '"https://a"', ",", "b", ")", ";")


def test_comments_of_python_and_of_yaml_are_none() -> None:
    assert tokens("a.py", "f(b)  # c\n") == ("f", "(", "b", ")")
    assert tokens("a.yaml", "CPU: f  # c\n") == ("CPU", ":", "f")
