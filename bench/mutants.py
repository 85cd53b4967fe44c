"""How many faults the gates see: mutants of kernels and host functions, each judged as a stack that touches its file.

    python bench/mutants.py [--sample N] [--seed S] [--jobs J] [--part K/N] [--kind KIND]... [--target NAME]...
                            [--again WORD] [--out FOLDER] [--table FILE] [--note TEXT]

The targets are the series ``grid_sampler`` on the 2.11 reference tree, and eight host files of the 2.6 tree with their
kernels. Of each kind, and within a kind of each file, equally many mutants are drawn, until there are ``--sample`` that
compile. The gates run one after the other, and the first that fails ends it. What a text came to is kept in ``--out``
and not judged again, unless its word is the one of ``--again``: ``survived`` after a gate was mended, ``not decided``
where the gates did not end in time, which decides nothing. ``--part 1/2``
judges every second mutant, beside another process that has ``--part 2/2``. ``--table`` writes a page about everything
that is in ``--out``.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import zip_longest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from mutation.judging import STILLBORN, UNDECIDED, Judge, Mutant, Outcome, mutants_of, read_outcome
from mutation.kinds import KINDS
from mutation.table import Reasons, page
from mutation.targets import TARGETS


def drawn(mutants: Iterable[Mutant], seed: int) -> list[Mutant]:
    """All of them, in an order whose beginnings have equally many of each kind, and of each file within a kind."""
    groups: dict[str, dict[str, list[Mutant]]] = {}
    for one in mutants:
        groups.setdefault(one.site.kind, {}).setdefault(one.path, []).append(one)
    chance = random.Random(seed)
    lines = []
    for kind in sorted(groups):
        files = [groups[kind][path] for path in sorted(groups[kind])]
        for file in files:
            chance.shuffle(file)
        chance.shuffle(files)
        lines.append(_in_turn(files))
    return _in_turn(lines)


def _in_turn(lists: Iterable[list[Mutant]]) -> list[Mutant]:
    return [one for row in zip_longest(*lists) for one in row if one is not None]


def sampled(order: Sequence[Mutant], number: int, judge: Judge, again: str) -> None:
    """Judge mutants until there are so many that compile, of no kind more than a sixth."""
    counts: Counter[str] = Counter()
    for mutant in order:
        if counts.total() >= number:
            return
        if counts[mutant.site.kind] >= max(1, number // 6):
            continue
        place = judge.place(mutant)
        old = read_outcome(place) if place.exists() else None
        outcome = old if old is not None and old.word != again else judge.judged(mutant)
        counts[outcome.kind] += outcome.word not in (STILLBORN, UNDECIDED)
        if outcome is not old:
            print(f"{counts.total()} {_told(outcome)}", file=sys.stderr, flush=True)


def _told(one: Outcome) -> str:
    near = "here" if one.near else "in the file" if one.in_file else ""
    return (
        f"{one.place} {one.kind}: {one.change}: {one.word} {one.gate} {one.rule} {near} ({one.seconds:.0f} s) {one.key}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge a sample, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--target", action="append", choices=[one.name for one in TARGETS])
    parser.add_argument("--again", default="")
    parser.add_argument("--out", type=Path, default=Path("build/mutants"))
    parser.add_argument("--table", type=Path)
    parser.add_argument("--note", default="", help="how it was run, for the page")
    given = parser.parse_args(arguments)
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    targets = [one for one in TARGETS if not given.target or one.name in given.target]
    part, parts = map(int, given.part.split("/"))
    if given.sample:
        mutants = (one for target in targets for one in mutants_of(target, out))
        order = drawn((one for one in mutants if not given.kind or one.site.kind in given.kind), given.seed)
        sampled(order[part - 1 :: parts], -(-given.sample // parts), Judge(out, given.jobs), given.again)
    if given.table:
        outcomes = [read_outcome(place) for place in sorted(out.glob("*.json")) if not place.name.startswith("usual-")]
        how = f"Written on {date.today()}, seed {given.seed}. {given.note}".rstrip()
        given.table.write_text(page(outcomes, Reasons.read(), how))


if __name__ == "__main__":
    main()
