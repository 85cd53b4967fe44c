"""The command ``validate-stack`` and its subcommands, a module each."""

from stackproof.cli.main import command, main
from stackproof.cli.prove import Request, exit_code, run

__all__ = ["Request", "command", "exit_code", "main", "run"]
