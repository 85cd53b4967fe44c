"""What was counted of each row, and what is wrong with it: more traffic than the base commit, or than the record.

The record is kept in the repository for the series' own kernels, for the rows of the quick table, launch by launch, so
that a load or an atomic more than yesterday is found before anybody has a GPU at hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path

from stackproof.base_commit.findings import as_note
from stackproof.gates.bench.count import Counted
from stackproof.gates.bench.traffic import SECTOR_BYTES, Traffic
from stackproof.model import Finding
from stackproof.ops.grid_sampler.bench.rows import Row, necessary_bytes
from stackproof.ops.grid_sampler.bench.stand_ins import elements, stand_in

RECORD = Path(__file__).with_name("recorded.json")
_TO_RECORD = "validate-stack bench record FOLDER/bench.json, of --bench-out FOLDER"
_NAMES = tuple(field.name for field in fields(Traffic))
_JUDGED = ("atomics", "loads", "stores", "bytes", "atomic_sectors", "sectors")
_SAID_OF_OTHERS = ("atomics", "sectors")
# What is never a good trade where the work is divided as before: more loads may well be, if they are of fewer sectors.
_WORSE = ("atomics", "bytes", "atomic_sectors", "sectors")

# By scheme, row and launch: the numbers of a Traffic.
Record = Mapping[str, Mapping[str, Mapping[str, Sequence[int]]]]


@dataclass(frozen=True)
class RowCount:
    """One row of the table.

    Attributes:
        row: what it stands for.
        head: of the commit that is judged.
        base: of the commit below, ``None`` where it has no kernels for the op.
    """

    row: Row
    head: Counted
    base: Counted | None = None

    @property
    def ran(self) -> Row:
        """What was run in its place."""
        return stand_in(self.row)

    def per_element(self, traffic: Traffic, name: str) -> float:
        """A figure of the stand-in for one channel of one position."""
        return float(getattr(traffic, name)) / elements(self.ran)

    def moved(self, traffic: Traffic) -> float:
        """Bytes of the stand-in's sectors, times how much larger the row is."""
        return SECTOR_BYTES * traffic.sectors * elements(self.row) / elements(self.ran)

    def over_necessary(self, traffic: Traffic) -> float:
        """How many times the bytes that must move were moved."""
        return SECTOR_BYTES * traffic.sectors / necessary_bytes(self.ran)


@lru_cache(maxsize=1)
def recorded() -> Record:
    """The record that travels with this module."""
    record: Record = json.loads(RECORD.read_text(encoding="utf-8"))
    return record


def findings(counts: Iterable[RowCount], record: Record) -> Iterator[Finding]:
    """What is worse than the base commit or than the record, and what is better than the record."""
    for count in counts:
        if count.base is not None:
            yield from _since_base(count, count.base)
        known = record.get(count.head.scheme, {}).get(count.row.label)
        if known is not None:
            for one in _since_record(count, [Traffic(*numbers) for numbers in known.values()]):
                yield as_note(one) if one.fails and _is_theirs(count) else one


def _since_base(count: RowCount, base: Counted) -> Iterator[Finding]:
    """Another division of the work may trade anything for speed but atomics, and sectors are worth a word."""
    same = base.scheme == count.head.scheme
    for name, before, after in _grown(base.total, count.head.total):
        if not same and name not in _SAID_OF_OTHERS:
            continue
        how = "" if same else f" ({count.head.scheme}, was {base.scheme})"
        message = f"{count.row.label}: {_per_element(count, name, before, after)} than the base commit's kernels{how}"
        yield Finding(message, rule="more-traffic", fails=name in _WORSE if same else name == "atomics")


def _is_theirs(count: RowCount) -> bool:
    """Whether the base commit's kernels are of the same kind and take no less."""
    same = count.base is not None and count.base.scheme == count.head.scheme
    return same and count.base is not None and not list(_grown(count.base.total, count.head.total))


def _since_record(count: RowCount, known: Sequence[Traffic]) -> Iterator[Finding]:
    before, after = sum(known, Traffic()), count.head.total
    grown = list(_grown(before, after))
    for name, old, new in grown:
        message = f"{count.row.label}: {_per_element(count, name, old, new)} than is recorded for these kernels"
        yield Finding(message, rule="more-traffic")
    if not grown and after != before:
        message = f"{count.row.label}: less traffic than is recorded; to keep it: {_TO_RECORD}"
        yield Finding(message, rule="less-traffic", fails=False)


def _grown(before: Traffic, after: Traffic) -> Iterator[tuple[str, int, int]]:
    for name in _JUDGED:
        old, new = getattr(before, name), getattr(after, name)
        if new > old:
            yield name, old, new


def _per_element(count: RowCount, name: str, before: int, after: int) -> str:
    ran = elements(count.ran)
    return f"{after - before} more {name} ({after / ran:.4g} per element, was {before / ran:.4g})"


def as_record(counts: Iterable[RowCount]) -> Record:
    """What a record of these rows would hold."""
    record: dict[str, dict[str, dict[str, list[int]]]] = {}
    for count in counts:
        if count.head.steps:
            record.setdefault(count.head.scheme, {})[count.row.label] = _launches(count.head)
    return record


def _launches(counted: Counted) -> dict[str, list[int]]:
    """By name, in order; a name that comes twice gets a number."""
    found: dict[str, list[int]] = {}
    for step in counted.steps:
        name, again = step.name, 1
        while name in found:
            again += 1
            name = f"{step.name} {again}"
        found[name] = [getattr(step.traffic, one) for one in _NAMES]
    return found


def step_records(counts: Iterable[RowCount]) -> list[dict[str, str | int]]:
    """Every launch of every row, flat, for the JSON report."""
    return [
        {"row": count.row.label, "commit": side, "scheme": counted.scheme, "launch": step.name, **asdict(step.traffic)}
        for count in counts
        for side, counted in (("base", count.base), ("head", count.head))
        if counted is not None
        for step in counted.steps
    ]


def row_records(counts: Iterable[RowCount]) -> list[dict[str, str | float | None]]:
    """One flat record a row, per element and scaled, for the JSON report."""
    return [_row_record(count) for count in counts]


def _row_record(count: RowCount) -> dict[str, str | float | None]:
    row = count.row
    record: dict[str, str | float | None] = {
        "group": row.group,
        "row": row.label,
        "ran": f"{count.ran.shape} -> {count.ran.output}",
        "must_move_bytes": necessary_bytes(row),
    }
    for side, counted in (("base", count.base), ("head", count.head)):
        for name in _JUDGED:
            value = None if counted is None else count.per_element(counted.total, name)
            record[f"{side}_{name}_per_element"] = value
        record[f"{side}_moved_bytes"] = None if counted is None else count.moved(counted.total)
    return record
