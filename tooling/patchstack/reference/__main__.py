"""``python -m patchstack.reference 2.11``: build reference trees and print where they are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from patchstack.errors import PatchstackError
from patchstack.reference import SPECS, build_reference, reference_wheel
from patchstack.reference.build import COMMAND, WHEEL_OPTION
from patchstack.reference.found import LATEST
from patchstack.reference.progress import on_standard_error


def main(arguments: Sequence[str] | None = None, program: str = COMMAND) -> int:
    """Print path and commit of each tree asked for, then the path of each wheel; the status of the last failure, or 0.

    Notes go to standard error.
    """
    parser = argparse.ArgumentParser(prog=program, description="Build reference trees and print where they are.")
    known = f"{', '.join(SPECS)}, another version, or {LATEST}"
    parser.add_argument("name", nargs="*", help=f"which release: {known}")
    parser.add_argument(
        WHEEL_OPTION,
        action="append",
        default=[],
        dest="wheels",
        metavar="NAME",
        help="keep the macOS wheel of this release too, with the kernels that Apple's compiler made",
    )
    parser.add_argument("--offline", action="store_true", help="fail rather than use the network")
    parser.add_argument("--cache", type=Path, help="cache folder (default: PATCHSTACK_CACHE or the user's cache)")
    options = parser.parse_args(arguments)
    if not options.name and not options.wheels:
        parser.error(f"name a release: {known}")
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
    for name in options.wheels:
        try:
            wheel = reference_wheel(name, cache=options.cache, progress=on_standard_error, offline=options.offline)
        except PatchstackError as error:
            print(f"error: {error}", file=sys.stderr)
            status = int(error.exit_code)
            continue
        print(wheel)
    return status


if __name__ == "__main__":
    sys.exit(main())
