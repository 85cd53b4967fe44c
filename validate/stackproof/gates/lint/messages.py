"""Lint results in the shape that PyTorch's ``lintrunner`` adapters print, one JSON object per line."""

from __future__ import annotations

import enum
import json
from dataclasses import asdict, dataclass

from stackproof.model import Finding


class Severity(str, enum.Enum):
    """The severities that ``lintrunner`` knows."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"
    DISABLED = "disabled"


@dataclass(frozen=True)
class LintMessage:
    """One message; the fields and their order are those of the adapters.

    Attributes:
        path: file in the tree.
        line: 1-based, ``None`` for the whole file.
        char: 1-based column, ``None`` when unknown.
        code: name of the linter, in capitals.
        severity: advice never fails the gate.
        name: short name of the rule.
        original: the whole file as it is, for a linter that can rewrite it.
        replacement: the whole file as the linter would have it.
        description: one sentence.
    """

    path: str
    line: int | None
    char: int | None
    code: str
    severity: Severity
    name: str
    original: str | None = None
    replacement: str | None = None
    description: str | None = None

    def as_json(self) -> str:
        """The line that an adapter would print."""
        return json.dumps(asdict(self))

    def as_finding(self) -> Finding:
        """The same for the report; without the texts, which would fill it."""
        return Finding(
            message=self.description or self.name,
            path=self.path,
            line=self.line or 0,
            rule=f"{self.code}/{self.name}",
            fails=self.severity in (Severity.ERROR, Severity.WARNING),
            details={"char": self.char} if self.char else {},
        )
