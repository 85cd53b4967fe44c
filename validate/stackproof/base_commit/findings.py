"""Tells a finding that the commit below the stack has too as a note."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from patchstack.tree.git import Tree
from stackproof.base_commit.places import Place, place_of
from stackproof.model import Finding

AS_BEFORE = "as before the stack"
_NUMBER = re.compile(r"(?<!\w)[-+]?\d[\d.]*(?:e[-+]?\d+)?(?!\w)")


def same_words(message: str) -> str:
    """A message without its numbers: values and lines differ from run to run and from commit to commit."""
    return _NUMBER.sub("#", message)


def as_note(finding: Finding) -> Finding:
    """The finding as one that does not fail, because the commit below the stack has it too."""
    return replace(finding, message=f"{finding.message} ({AS_BEFORE})", fails=False)


def noted(
    findings: Iterable[Finding],
    below: Iterable[Finding],
    *,
    head: Tree,
    base: Tree,
    touched: Callable[[Finding], bool] = lambda finding: False,
    repeated: bool = False,
    exact: bool = False,
) -> list[Finding]:
    """The findings, those that are the base's as notes.

    Args:
        findings: of the stack.
        below: what the same gate finds on the base, failing or not.
        head: the stack's tree.
        base: the tree below it.
        touched: whether the stack touches what is behind a finding although its own place is the same.
        repeated: one fault is found many times, as by a gate that executes; otherwise a second one at a place is new.
        exact: the numbers in the messages have to be the same too.
    """
    had = Counter(_key(one, base, exact=exact) for one in below)
    result = []
    for one in findings:
        key = _key(one, head, exact=exact)
        if one.fails and had[key] > 0 and not touched(one):
            had[key] -= not repeated
            result.append(as_note(one))
        else:
            result.append(one)
    return result


def failing(findings: Sequence[Finding]) -> list[Finding]:
    """Those that make a gate fail."""
    return [one for one in findings if one.fails]


def _key(finding: Finding, tree: Tree, *, exact: bool) -> tuple[str, str, Place]:
    words = finding.message if exact else same_words(finding.message)
    return finding.rule, words, place_of(tree, finding.path, finding.line)
