"""The command ``apply-stack`` and its subcommands, a module each."""

from patchstack.python_processes import forget_current_folder

forget_current_folder()  # before anything is imported that a checkout around us may have, too

from patchstack.cli.apply import run  # noqa: E402
from patchstack.cli.main import main  # noqa: E402
from patchstack.cli.request import Request  # noqa: E402

__all__ = ["Request", "main", "run"]
