"""What the build needs to know about the machine, as plain data, so that plans can be made for any machine."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass

_LAUNCHERS = ("sccache", "ccache")


@dataclass(frozen=True)
class Machine:
    """A machine that may or may not be able to build PyTorch with MPS.

    Attributes:
        system: as ``platform.system()`` says it; ``Darwin`` is macOS.
        architecture: ``arm64`` or ``x86_64``.
        developer_folder: the selected Xcode, empty where there is none.
        metal: path of Apple's Metal compiler, empty where there is none.
        compiler_launcher: path of sccache or ccache, empty where there is neither.
        python: interpreter that the build's virtual environment is made from.
    """

    system: str
    architecture: str
    developer_folder: str = ""
    metal: str = ""
    compiler_launcher: str = ""
    python: str = "python3"

    @property
    def not_able(self) -> str:
        """Why this machine cannot build, with what to do about it; empty where it can."""
        if self.system != "Darwin":
            return f"needs macOS and Xcode, this is {self.system}"
        if not self.developer_folder:
            return "needs macOS and Xcode: xcode-select --install, then select an Xcode with xcode-select --switch"
        if not self.metal:
            return "needs Apple's Metal compiler: xcodebuild -downloadComponent MetalToolchain"
        return ""

    @classmethod
    def here(cls) -> Machine:
        """This machine."""
        system = platform.system()
        mac = system == "Darwin"
        return cls(
            system,
            platform.machine(),
            developer_folder=_says("xcode-select", "--print-path") if mac else "",
            metal=_says("xcrun", "--sdk", "macosx", "--find", "metal") if mac else "",
            compiler_launcher=next((path for name in _LAUNCHERS if (path := shutil.which(name))), ""),
            python=sys.executable or "python3",
        )


def _says(*command: str) -> str:
    """The first line that a command prints, empty where it fails or does not exist."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""
