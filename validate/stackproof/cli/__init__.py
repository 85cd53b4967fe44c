"""The command ``validate-stack`` and its subcommands, a module each."""

from patchstack.python_processes import forget_current_folder

forget_current_folder()  # before anything is imported that a checkout around us may have, too

from stackproof.cli.main import command, main  # noqa: E402
from stackproof.cli.prove import Request, exit_code, run  # noqa: E402

__all__ = ["Request", "command", "exit_code", "main", "run"]
