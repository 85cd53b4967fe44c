"""``python -m patchstack.reference 2.11``: build a reference tree and print where it is."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from patchstack.errors import PatchstackError
from patchstack.reference import SPECS, build_reference
from patchstack.reference.progress import on_standard_error


def main(arguments: Sequence[str] | None = None) -> int:
    """Print path and commit of each tree asked for, notes on standard error; the status of the last failure, or 0."""
    parser = argparse.ArgumentParser(prog="python -m patchstack.reference", description=__doc__)
    parser.add_argument("name", nargs="+", choices=tuple(SPECS), help="which release")
    parser.add_argument("--offline", action="store_true", help="fail rather than use the network")
    parser.add_argument("--cache", type=Path, help="cache folder (default: PATCHSTACK_CACHE or the user's cache)")
    options = parser.parse_args(arguments)
    status = 0
    for name in options.name:
        try:
            tree = build_reference(name, cache=options.cache, progress=on_standard_error, offline=options.offline)
        except PatchstackError as error:
            print(f"error: {error}", file=sys.stderr)
            status = int(error.exit_code)
            continue
        for note in tree.notes:
            on_standard_error(f"note: {note}")
        print(f"{tree.path} {tree.commit}")
    return status


if __name__ == "__main__":
    sys.exit(main())
