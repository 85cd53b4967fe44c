"""Report files: each whole or not there, and their folders checked before hours of work go into them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from patchstack.cache import write_whole
from patchstack.errors import UsageError
from stackproof.report import json as json_report
from stackproof.report.bench_files import bench_files
from stackproof.report.html import render as render_html
from stackproof.report.junit import render as render_junit
from stackproof.report.model import RunReport

STANDARD_OUTPUT = "-"


@dataclass(frozen=True)
class ReportFiles:
    """Where the report goes, besides the terminal; ``None`` for what was not asked for.

    Attributes:
        json: a file, or ``-`` for standard output in place of the table.
        junit: a file.
        html: a file.
        bench: a folder for the tables and plots of the gate "bench".
    """

    json: str | None = None
    junit: str | None = None
    html: str | None = None
    bench: str | None = None

    @property
    def json_on_output(self) -> bool:
        return self.json == STANDARD_OUTPUT

    def require_writable(self) -> None:
        """Look before the run whether the files can be written after it.

        Raises:
            UsageError: a folder that does not exist or cannot be written to, or a folder in place of a file.
        """
        for option, file, _ in self._wanted():
            folder = file.parent
            if not os.path.isdir(folder):  # which a name that is too long is not, where Path raises
                raise UsageError("no such folder", where=f"{option} {file}", next_command=f"mkdir -p {folder}")
            if os.path.isdir(file) or not os.access(folder, os.W_OK):
                raise UsageError("cannot be written", where=f"{option} {file}", expected="a file in a writable folder")
        self._require_bench_folder()

    def write(self, report: RunReport) -> None:
        """Write every file that was asked for, partial reports included.

        Raises:
            UsageError: a file cannot be written after all.
        """
        for option, file, render in self._wanted():
            try:
                _write(file, render(report))
            except OSError as error:
                raise UsageError("cannot be written", where=f"{option} {file}", found=str(error)) from None
        self._write_bench(report)

    def _require_bench_folder(self) -> None:
        if self.bench is None:
            return
        folder = Path(self.bench)
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise UsageError("not a folder", where=f"--bench-out {folder}", expected="a folder for the tables")
        if not os.path.isdir(folder):
            raise UsageError("no such folder", where=f"--bench-out {folder}", next_command=f"mkdir -p {folder}")
        if not os.access(folder, os.W_OK):
            raise UsageError("cannot be written", where=f"--bench-out {folder}", expected="a writable folder")

    def _write_bench(self, report: RunReport) -> None:
        if self.bench is None:
            return
        for name, text in bench_files(report):
            try:
                _write(Path(self.bench) / name, text)
            except OSError as error:
                raise UsageError("cannot be written", where=f"--bench-out {self.bench}", found=str(error)) from None

    def _wanted(self) -> list[tuple[str, Path, Callable[[RunReport], str]]]:
        kinds = (
            ("--json", None if self.json_on_output else self.json, json_report.render),
            ("--junit", self.junit, render_junit),
            ("--html", self.html, render_html),
        )
        return [(option, Path(file), render) for option, file, render in kinds if file]


def _write(file: Path, text: str) -> None:
    """Replace a file by a complete one; a device or pipe (``/dev/stderr``) is written to as it is."""
    if file.exists() and not file.is_file():
        file.write_text(text, encoding="utf-8")
    else:
        write_whole(file, text)
