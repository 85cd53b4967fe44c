"""How compiling or calling a Metal source can fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from patchstack.errors import PatchstackError


@dataclass(frozen=True)
class Diagnostic:
    """One line of the compiler.

    Attributes:
        severity: ``error``, ``warning`` or ``note``.
        message: without place and flag.
        file: as the source names it.
        line: 1-based.
        column: 1-based; of the rewritten line, so approximate.
        flag: the warning option that made it, empty for errors.
    """

    severity: str
    message: str
    file: str
    line: int
    column: int = 0
    flag: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.severity}: {self.message}"


@dataclass
class MetalError(PatchstackError):
    """Base of the errors of this package."""


@dataclass
class CompileError(MetalError):
    """The source does not compile.

    Attributes:
        diagnostics: everything the compiler said, in its order.
    """

    diagnostics: Sequence[Diagnostic] = field(default=())


@dataclass
class ToolchainError(MetalError):
    """No compiler that understands C++ for OpenCL was found."""


@dataclass
class CallError(MetalError):
    """A kernel was called with arguments that do not fit its signature."""


@dataclass
class RewriteError(MetalError):
    """The source has a kernel whose entry point cannot be derived."""
