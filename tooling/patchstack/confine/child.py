"""The first code of a confined process: it gives everything up, then becomes the program."""

from __future__ import annotations

import json
import os
import runpy
import sys

from patchstack.confine.enter import enter, prepare
from patchstack.confine.model import Cage
from patchstack.confine.probe import probe


def main() -> None:
    """Run the program that the first argument describes; the arguments after it are the program's."""
    settings = json.loads(sys.argv.pop(1))
    cage = Cage.of_json(settings["cage"])
    prepare()
    held = probe(cage, enter(cage))
    with os.fdopen(settings["held"], "w") as answer:  # closed before any code of the tree runs
        json.dump(held, answer)
    runpy.run_path(settings["program"], run_name="__main__")
