"""The page of what the gates saw: kinds, gates, and every mutant that survived or is put aside."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .judging import CAUGHT, SECONDS, STILLBORN, SURVIVED, UNDECIDED, Outcome
from .kinds import KINDS

_HOW = """\
A mutant is one fault in one place of a kernel or a host function. The stack with it is judged by metal-check, metal-run
and host-run, or host-check and host-run (grid_sampler), or by metal-check or host-check, and op-run (files of the 2.6
tree, as a stack that changes them). The first gate that fails has caught it. What the gates find without a mutant does
not count. Nothing was run on Metal."""
REASONS = Path(__file__).with_name("reasons.json")


@dataclass(frozen=True)
class Reasons:
    """What a person found out about survivors, by key.

    Attributes:
        equivalent: why a mutant does what the original does.
        survived: what would catch the others.
    """

    equivalent: Mapping[str, str]
    survived: Mapping[str, str]

    @classmethod
    def read(cls, place: Path = REASONS) -> Reasons:
        """The file beside this module."""
        return cls(**json.loads(place.read_text()))


def page(outcomes: Sequence[Outcome], reasons: Reasons, how: str) -> str:
    """The Markdown page."""
    compiled = [one for one in outcomes if one.word not in (STILLBORN, UNDECIDED)]
    stillborn, undecided = ([one for one in outcomes if one.word == word] for word in (STILLBORN, UNDECIDED))
    aside = [one for one in compiled if one.word == SURVIVED and one.key in reasons.equivalent]
    counted = [one for one in compiled if one not in aside]
    return "\n".join(
        [
            *_opening(how),
            *_summary(counted, aside, len(stillborn)),
            "",
            *_table("kind", [one.kind for one in compiled], compiled, aside, order=KINDS),
            "",
            *_table("target", [one.target for one in compiled], compiled, aside),
            "",
            *_gates(counted),
            "",
            "## Survivors",
            "",
            *_listed([one for one in counted if one.word == SURVIVED], reasons.survived, "what would catch it"),
            "",
            "## Put aside as equivalent",
            "",
            *_listed(aside, reasons.equivalent, "why"),
            "",
            "## Not decided",
            "",
            f"The gates did not end within {SECONDS} seconds; these are in none of the figures above.",
            "",
            *_listed(undecided, {one.key: one.message for one in undecided}, "what happened"),
            "",
        ]
    )


def _opening(how: str) -> Iterator[str]:
    yield "# What the gates see: mutants"
    yield ""
    yield f"Made by `bench/mutants.py --table`. {how}"
    yield ""
    yield from _HOW.splitlines()
    yield ""


def _summary(counted: Sequence[Outcome], aside: Sequence[Outcome], stillborn: int) -> Iterator[str]:
    caught = [one for one in counted if one.word == CAUGHT]
    named, near = (sum(getattr(one, name) for one in caught) for name in ("in_file", "near"))
    yield (
        f"Of {len(counted) + len(aside)} mutants that compile, {len(aside)} are put aside as equivalent. "
        f"Of the other {len(counted)}, {len(caught)} were caught ({_share(len(caught), len(counted))})."
    )
    yield (
        f"A finding of the gate that caught it is in the mutated file for {named} of {len(caught)} "
        f"({_share(named, len(caught))}), and within 3 lines of the fault for {near} ({_share(near, len(caught))})."
    )
    yield f"{stillborn} others did not compile, which any compiler says; they are not counted."


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def _table(
    title: str, names: Sequence[str], all_: Sequence[Outcome], aside: Sequence[Outcome], order: Sequence[str] = ()
) -> Iterator[str]:
    yield f"| {title} | mutants | caught | survived | equivalent | within 3 lines |"
    yield "|---|---|---|---|---|---|"
    for name in order or sorted(set(names)):
        own = [one for one, its in zip(all_, names, strict=True) if its == name]
        put = sum(one in aside for one in own)
        caught = sum(one.word == CAUGHT for one in own)
        near = sum(one.near for one in own)
        yield f"| {name} | {len(own)} | {caught} | {len(own) - caught - put} | {put} | {near} |"


def _gates(counted: Sequence[Outcome]) -> Iterator[str]:
    yield "| gate | rule of its first finding | mutants |"
    yield "|---|---|---|"
    seen = Counter((one.gate, one.rule) for one in counted if one.word == CAUGHT)
    for (gate, rule), number in sorted(seen.items(), key=lambda one: (one[0][0], -one[1], one[0][1])):
        yield f"| {gate} | {rule} | {number} |"


def _listed(outcomes: Sequence[Outcome], reasons: Mapping[str, str], title: str) -> Iterator[str]:
    yield f"| place | kind | change | {title} |"
    yield "|---|---|---|---|"
    for one in sorted(outcomes, key=lambda one: (one.target, one.path, one.line)):
        change = one.change.replace("|", "\\|").replace("`", "'")
        yield f"| {one.place} | {one.kind} | `{change}` | {reasons.get(one.key, 'not looked into')} |"
