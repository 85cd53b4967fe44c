"""The names that look most like one that was not found."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_ALIKE = 0.55
"""The least similarity of a name that is worth telling."""


def closest(wanted: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The names that look most like ``wanted``, best first."""
    # As difflib.get_close_matches, to which every letter is "junk" in a text of over 200 characters.
    matcher = difflib.SequenceMatcher(b=wanted, autojunk=False)
    scored = []
    for name in dict.fromkeys(known):
        matcher.set_seq1(name)
        if min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= _ALIKE and matcher.ratio() >= _ALIKE:
            scored.append((matcher.ratio(), name))
    return [name for _, name in sorted(scored, reverse=True)[:count]]
