"""Starting Python without the current folder on its path.

The current folder is often a checkout of PyTorch, which holds ``torch/``, ``torchgen/`` and ``functorch/``: a process
that looks for modules there imports the tree instead of what is installed. Python looks there with ``-c`` and ``-m``,
and where ``PYTHONPATH`` has an empty part or a dot. ``-P`` forbids the first only, and Python 3.10 does not have it;
so every process is started with ``-I``, which forbids both, and is told the path.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

SAFE_FOLDER = os.sep
"""Where processes start that need no folder of their own: nobody keeps Python packages there."""

# Where this package is imported from; in a clone of this project, the folder above has the tests.
_OWN = Path(__file__).resolve().parents[1:3]


def forget_current_folder() -> None:
    """Take the current folder off the path of this process, unless this package itself is found there."""
    sys.path[:] = import_path()


def import_path() -> list[str]:
    """The path of this process without the current folder, whatever it is called in it."""
    try:
        here = Path.cwd().resolve()
    except FileNotFoundError:  # the current folder is gone, and its modules with it
        return [entry for entry in sys.path if os.path.isabs(entry)]
    if here in _OWN:
        return [os.path.abspath(entry) for entry in sys.path]
    return [os.path.abspath(entry) for entry in sys.path if Path(entry).resolve() != here]


def code_command(code: str, *arguments: str) -> list[str]:
    """The command that runs ``code`` in a new Python, with the import path of this process."""
    return [sys.executable, "-I", "-c", f"import sys; sys.path[:] = {import_path()!r}; {code}", *arguments]


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that does what ``python -m module`` does."""
    return code_command(f"import runpy; runpy.run_module({module!r}, None, '__main__', True)", *arguments)
