"""How reading, translating or running an Apple-compiled kernel can fail."""

from __future__ import annotations

from dataclasses import dataclass

from patchstack.errors import ExitCode, PatchstackError
from stackproof.packages import install_command


@dataclass
class AppleKernelError(PatchstackError):
    """Base of the errors of this package."""


@dataclass
class ContainerError(AppleKernelError):
    """A wheel, a Mach-O library or a metallib is damaged, truncated, or not what it says."""

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.TREE


@dataclass
class NoSuchKernelError(AppleKernelError):
    """The library has no kernel of that name."""

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.USAGE


@dataclass
class MissingPackageError(AppleKernelError):
    """An optional package of the ``apple`` extra is not installed."""

    def __post_init__(self) -> None:
        self.exit_code = ExitCode.USAGE


@dataclass
class TranslationError(AppleKernelError):
    """The intermediate representation has something that the translation does not know."""


@dataclass
class UnmappedIntrinsicError(TranslationError):
    """A kernel calls a function of Apple's compiler that nothing here defines."""


def missing_package(package: str, purpose: str) -> MissingPackageError:
    """The error for an import that failed."""
    return MissingPackageError(
        f"the Python package '{package}' is not installed",
        expected=f"it, {purpose}",
        next_command=install_command(package),
    )
