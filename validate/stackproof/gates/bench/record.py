"""Takes counts over into the record that travels with the project: after a change of the kernels that is meant.

    validate-stack bench --reference 2.11 --bench-out FOLDER
    validate-stack bench record FOLDER/bench.json

Only the rows of the quick table are kept, and only of the series' own kernels: upstream's are not ours to keep small.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from patchstack.errors import UsageError
from stackproof.gates.bench.counts import RECORD, Record, recorded
from stackproof.ops.grid_sampler.bench.passes import SCHEMES
from stackproof.ops.grid_sampler.bench.rows import quick_rows


def merged(known: Record, new: Record) -> Record:
    """``known`` with every row of ``new`` that is kept; other rows of the same kernels stay."""
    ours = [scheme.name for scheme in SCHEMES if scheme.ours]
    rows = [row.label for row in quick_rows()]
    both = {name: {**known.get(name, {}), **new.get(name, {})} for name in ours if name in known or name in new}
    return {name: {row: counts[row] for row in rows if row in counts} for name, counts in both.items()}


def text(record: Record) -> str:
    """The file: a launch a line, so that a change of one is a change of one line."""
    return "\n".join(_lines(record)) + "\n"


def _lines(record: Record) -> Iterator[str]:
    yield "{"
    for number, (scheme, rows) in enumerate(record.items(), 1):
        yield f" {json.dumps(scheme)}: {{"
        for place, (row, launches) in enumerate(rows.items(), 1):
            yield f"  {json.dumps(row)}: {{"
            inside = [f"   {json.dumps(name)}: {json.dumps(list(counts))}" for name, counts in launches.items()]
            yield ",\n".join(inside)
            yield "  }" + "," * (place < len(rows))
        yield " }" + "," * (number < len(record))
    yield "}"


def take_over(files: Sequence[Path]) -> None:
    """Bring the record up to date.

    Raises:
        UsageError: one of the files is none of ``--bench-out``; the record is as it was then.
    """
    record = recorded()
    for file in files:
        try:
            record = merged(record, json.loads(file.read_text(encoding="utf-8"))["record"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                "not a file that has counts",
                where=str(file),
                expected="bench.json of --bench-out",
                found=str(error),
                next_command="validate-stack bench --device host --bench-out FOLDER",
            ) from None
    RECORD.write_text(text(record), encoding="utf-8")
