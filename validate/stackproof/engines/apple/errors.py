"""How reading, translating or running an Apple-compiled kernel can fail."""

from __future__ import annotations

from dataclasses import dataclass

from patchstack.errors import ExitCode, PatchstackError


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
class TranslationError(AppleKernelError):
    """The intermediate representation has something that the translation does not know."""


@dataclass
class UnmappedIntrinsicError(TranslationError):
    """A kernel calls a function of Apple's compiler that nothing here defines."""
