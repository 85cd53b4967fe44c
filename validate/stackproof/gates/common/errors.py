"""The one error of this package: a file of the judged tree that cannot be read as what it should be."""

from __future__ import annotations

from dataclasses import dataclass

from patchstack.errors import ExitCode, PatchstackError

MALFORMED_RULE = "malformed-input"
"""Rule name of the finding a gate makes of a :class:`MalformedTreeError`; the command line maps it to exit status 2."""


@dataclass
class MalformedTreeError(PatchstackError):
    """A file of the tree under judgement is not what its format says; ``where`` is ``path:line``."""

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.USAGE

    @property
    def place(self) -> tuple[str, int]:
        """Path and 1-based line of the fault; line 0 where no line can be named."""
        path, _, line = self.where.rpartition(":")
        return (path, int(line)) if line.isdigit() else (self.where, 0)
