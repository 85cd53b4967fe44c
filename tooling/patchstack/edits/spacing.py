"""Blank lines around a fragment: a property of the edit, not of where the overlay's markers happen to stand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from patchstack.manifest.overlay import Fragment
from patchstack.manifest.section import Section, read_whole
from patchstack.tree.text import Splice, line_ending, line_start, text_start, with_line_ending

_MOST = 9


@dataclass(frozen=True)
class Spacing:
    """How a fragment is kept apart from its neighbours.

    Attributes:
        before: blank lines above it; ``None`` for what is usual at its place.
        after: the same below it.
        exact: the fragment lands as the overlay has it, its own blank lines included, and none is added.
    """

    before: int | None = None
    after: int | None = None
    exact: bool = False

    def of(self, fragment: Fragment) -> Fragment:
        """The fragment as it lands: without blank lines at its ends, unless these are meant."""
        return fragment if self.exact else replace(fragment, text=_trimmed(fragment.text))

    def splice(self, data: bytes, at: int, text: bytes, usual: tuple[int, int]) -> Splice:
        """Put a fragment into a file; blank lines that the file has there already count.

        Args:
            usual: blank lines before and after where the edit does not say.
        """
        ending = line_ending(data)
        text = with_line_ending(text, ending)
        starts_line = at <= text_start(data) or data[:at].endswith(b"\n")
        if not self.exact:
            above = _blanks_above(data, at) if starts_line else 0
            before, after = (usual[n] if own is None else own for n, own in enumerate((self.before, self.after)))
            text = ending * max(before - above, 0) * bool(data[text_start(data) : at].strip()) + text
            text += ending * max(after - _blanks_below(data, at), 0) * bool(data[at:].strip())
        return Splice(at, at, text if starts_line else ending + text)


USUAL = Spacing()


def load_spacing(section: Section, *, has_lines: bool = True) -> Spacing:
    """Read ``spacing: exact`` or ``blank_lines: {before: 1, after: 2}``; without either, what is usual.

    Args:
        has_lines: whether ``blank_lines`` means something for the edit.

    Raises:
        ManifestError: both are there, or one of them is something else.
    """
    inner = section.section("blank_lines", "'blank_lines'") if has_lines else None
    spacing = section.text("spacing", default="usual")
    if spacing not in ("usual", "exact") or (spacing == "exact" and inner):
        expected = "exact, without 'blank_lines'" if inner else "usual or exact"
        line = section.line_of("spacing")
        raise section.error("'spacing' says how a fragment lands", line=line, expected=expected, found=spacing)
    if inner is None:
        return Spacing(exact=spacing == "exact")
    return read_whole(inner, lambda lines: Spacing(_count(lines, "before"), _count(lines, "after")))


def _count(section: Section, key: str) -> int | None:
    if not section.has(key):
        section.text(key, default="")
        return None
    text = section.text(key)
    if not text.isdecimal() or int(text) > _MOST:
        raise section.error(
            f"'{key}' is a number of blank lines", line=section.line_of(key), expected=f"0 to {_MOST}", found=text
        )
    return int(text)


def _trimmed(text: bytes) -> bytes:
    lines = text.splitlines(keepends=True)
    while lines and not lines[0].strip():
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    return b"".join(lines)


def _blanks_above(data: bytes, at: int) -> int:
    count = 0
    while at > text_start(data):
        start = line_start(data, at - 1)
        if data[start:at].strip():
            break
        count, at = count + 1, start
    return count


def _blanks_below(data: bytes, at: int) -> int:
    rest = data[at:]
    return rest[: len(rest) - len(rest.lstrip())].count(b"\n")
