"""Print the table of advice: each situation of ``tests/support/advice.py``, and how the advice ends when typed.

    PYTHONPATH=tests/support python bench/advice_table.py > table.md

The situations are small checkouts in a temporary folder; nothing is fetched from anywhere else.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from advice import CONFLICTS, HELPLESS, REFUSALS, SUBMITS, Prepare, Tried, stop, try_all, words
from checkouts import Checkout, Lab
from checkouts.lab import SOURCE, write_seed
from checkouts.warm import WarmCommand


def main() -> None:
    """Try every situation and print a row for each advice."""
    with tempfile.TemporaryDirectory(prefix="advice-") as name:
        root, warm = Path(name), WarmCommand(SOURCE)
        seed = write_seed(root / "tree")
        numbers = itertools.count()

        def make() -> Checkout:
            return Lab(root / f"world{next(numbers)}", seed, warm).checkout()

        print("| situation | exit | advised | typed | exit | result |\n|---|---|---|---|---|---|")
        try:
            for prepare in (*CONFLICTS, *REFUSALS, *SUBMITS):
                for row in rows(make, prepare):
                    print(row.replace(f"{root}/", "").replace(str(root), "."), flush=True)
        finally:
            warm.close()


def rows(make: Callable[[], Checkout], prepare: Prepare) -> Iterator[str]:
    """The rows of one situation."""
    tried = list(try_all(make, prepare))
    for one in tried:
        cells = [words(prepare), str(one.first.status), f"`{one.advice}`", *typed(one)]
        yield f"| {' | '.join(cells)} |"
    if not tried:
        checkout = make()
        first = stop(checkout, prepare(checkout))
        said = "the report says that nothing helps" if HELPLESS in first.out else "nothing is advised"
        yield f"| {words(prepare)} | {first.status} | {said} | | | |"


def typed(one: Tried) -> list[str]:
    """What was typed, how it ended, and its last line."""
    if one.run is None:
        return ["not typed: for a person, or needs a network", "", ""]
    last = [line for line in (one.run.out + one.run.err).splitlines() if line.strip()][-1:]
    return [f"`{'; '.join(one.typed)}`", str(one.run.status), "".join(last).strip()[:100].replace("|", "/")]


if __name__ == "__main__":
    main()
