"""Planning and applying load no package that only other commands need: each takes a tenth of a second."""

from __future__ import annotations

import subprocess
import sys

import pytest

from checkouts import Checkout

_RUN = """
import sys
from patchstack.cli import main
try:
    main()
finally:
    others = {"git", "jinja2", "lief", "numpy", "ruamel", "torch"}
    print("loaded:", *sorted(others & sys.modules.keys()), file=sys.stderr)
"""


@pytest.mark.parametrize("options", [[], ["--dry-run"]], ids=["apply", "plan"])
def test_a_plain_run_loads_nothing_that_only_other_commands_need(checkout: Checkout, options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *checkout.arguments(*options)],
        cwd=checkout.lab.root,
        env=checkout.lab.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "loaded:"
