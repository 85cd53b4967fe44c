"""Does every Apple-compiled kernel of a wheel translate, compile and link? Prints the count.

    python bench/apple_kernels.py [--release 2.13] [--section metal_basic] [--watched] [--jobs 2]

A batch that was compiled by the same translation before is taken from the cache; nothing else is kept. Loading the
library resolves every symbol, so that a function that nothing defines is a failure here and not at the call.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from patchstack.cache import cache_dir, read_entry, write_entry
from patchstack.errors import PatchstackError
from patchstack.reference.progress import on_standard_error
from stackproof.engines.apple.build import AirSource, link_kernels, translation_digest
from stackproof.engines.apple.release import release_library
from stackproof.engines.metal.native import load_libm
from stackproof.engines.metal.toolchain import digest
from stackproof.engines.pool.tasks import Died, run_tasks

_BATCH = 128


@dataclass(frozen=True)
class Batch:
    """Some kernels of a library."""

    release: str
    section: str
    watched: bool
    names: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What came of a batch: kernels that compile and link, sentences about the others, and calls by intrinsic."""

    linked: int
    failures: tuple[str, ...]
    intrinsics: dict[str, int]


def work(batch: Batch) -> Outcome:
    """Compile and link a batch; where that fails, each of its kernels alone."""
    library = release_library(batch.release, batch.section, offline=True)
    key = digest(translation_digest(), str(batch.watched), *(library.entry(name).sha256 for name in batch.names))
    place = Path("apple") / "survey" / f"{key}.json"
    if (known := read_entry(place)) is not None:
        return Outcome(known[0], tuple(known[1]), known[2])
    sources = [AirSource.of(library, name) for name in batch.names]
    counts = Counter(name for one in sources for name in one.kernel().intrinsics)
    linked, failures = len(sources), []
    if _failure(sources, batch.watched):
        reasons = [(one.name, _failure([one], batch.watched)) for one in sources]
        failures = [f"{name}: {reason}" for name, reason in reasons if reason]
        linked -= len(failures)
    outcome = Outcome(linked, tuple(failures), dict(counts))
    write_entry(place, [linked, failures, outcome.intrinsics])
    return outcome


def _failure(sources: list[AirSource], watched: bool) -> str:
    load_libm()
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "library.so"
        try:
            link_kernels(sources, output, cache_dir(), watched=watched)
            ctypes.CDLL(str(output))
        except (PatchstackError, OSError) as error:
            return str(error)
    return ""


def main() -> None:
    """Print the count, the families of intrinsics, and every failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", default="2.13")
    parser.add_argument("--section", default="metal_basic")
    parser.add_argument("--watched", action="store_true", help="compile for the detectors")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    started = time.monotonic()
    names = [
        one.name for one in release_library(arguments.release, arguments.section, progress=on_standard_error).entries
    ]
    batches = [
        Batch(arguments.release, arguments.section, arguments.watched, tuple(names[at : at + _BATCH]))
        for at in range(0, len(names), _BATCH)
    ]
    linked, failures, intrinsics = 0, [], Counter[str]()
    for done, (batch, outcome) in enumerate(run_tasks(batches, work, jobs=arguments.jobs, timeout=600), 1):
        if isinstance(outcome, Died):
            failures.append(f"{batch.names[0]} and {len(batch.names) - 1} more: {outcome.reason}")
        else:
            linked += outcome.linked
            failures += outcome.failures
            intrinsics.update(outcome.intrinsics)
        if sys.stderr.isatty():
            print(f"\r{done}/{len(batches)} batches", end="", file=sys.stderr, flush=True)
    families = {name.split(".")[1] for name in intrinsics}
    print(f"{linked} of {len(names)} kernels compile and link ({time.monotonic() - started:.0f} s)")
    print(f"{len(intrinsics)} air functions of {len(families)} families")
    print("\n".join(failures))


if __name__ == "__main__":
    main()
