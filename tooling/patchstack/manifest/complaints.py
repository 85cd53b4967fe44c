"""Everything that is wrong with a series at once: parts that do not depend on one another are read one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from patchstack.errors import ManifestError, ManifestErrors

P = ParamSpec("P")
T = TypeVar("T")


class Complaints:
    """Collects the errors of parts; :meth:`check` raises them together.

    Attributes:
        errors: those so far, in the order they were met.
    """

    def __init__(self) -> None:
        self.errors: list[ManifestError] = []

    def part(self, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """``read(...)``, or where that complains nothing that is of use: ask :meth:`check` before using it."""
        try:
            return read(*args, **kwargs)
        except ManifestError as error:
            self.errors += error.each()
            return cast(T, None)

    def check(self) -> None:
        """Complain if there is something to complain about.

        Raises:
            ManifestError: the one error, or :class:`ManifestErrors` with all of them, by file and line.
        """
        errors = list({str(error): error for error in self.errors}.values())
        if len(errors) == 1:
            raise errors[0]
        if errors:
            files = list(dict.fromkeys(_place(error)[0] for error in errors))
            errors.sort(key=lambda error: (files.index(_place(error)[0]), _place(error)[1]))
            raise ManifestErrors(errors[0].problem, errors[0].where, errors=tuple(errors))


def _place(error: ManifestError) -> tuple[str, int]:
    file, _, line = error.where.rpartition(":")
    return (file, int(line)) if line.isdecimal() else (error.where, 0)
