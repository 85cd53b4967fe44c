"""Several series as one: the changes of each on top of those of the one before."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from patchstack.errors import UsageError
from patchstack.series.model import Series


def stacked(several: Sequence[Series]) -> Series:
    """The series in order, the first one at the bottom; every change keeps its id and the series that it is of.

    Raises:
        UsageError: two of them have a change of the same id or title, or are the same series.
    """
    first, *others = several
    if not others:
        return first
    names = [series.name for series in several]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"two series are called '{twice[0]}'", where="--series", expected="folders of other names")
    owners, titles = dict[str, str](), dict[str, str]()
    for series in several:
        for change in series.changes:
            for what, key, known in (("id", change.id, owners), ("title", change.title, titles)):
                if key in known:
                    raise UsageError(
                        f"series '{series.name}' and series '{known[key]}' have a change of the same {what} '{key}'",
                        where=f"{series.manifest}:{change.line}",
                    )
                known[key] = series.name
    changes = tuple(change for series in several for change in series.changes)
    return dataclasses.replace(first, name="+".join(names), changes=changes, owners=owners)
