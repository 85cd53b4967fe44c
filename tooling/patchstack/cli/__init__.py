"""The command ``apply-stack`` and its subcommands, a module each."""

from patchstack.cli.apply import Request, run
from patchstack.cli.main import main

__all__ = ["Request", "main", "run"]
