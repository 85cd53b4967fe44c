"""Processes with fewer rights than those of the tests, and with file systems of their own."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from skips import cannot

_CANNOT = 99


def obey_modes() -> None:
    """Root may write anywhere; give that right up in a process that is about to become another program."""
    drop_from_bounding_set, dac_override = 24, 1
    if ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0):
        os._exit(_CANNOT)


def run_obeying_modes(
    command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str], stdin: bytes = b""
) -> subprocess.CompletedProcess[str]:
    """Run a program that may write what the modes of files say and no more; skips where root cannot do that."""
    is_root = os.geteuid() == 0
    if is_root and not sys.platform.startswith("linux"):
        pytest.skip(cannot("root may write anywhere; run the tests as another user"))
    done = subprocess.run(
        command, cwd=cwd, env=env, input=stdin, preexec_fn=obey_modes if is_root else None, capture_output=True
    )
    if done.returncode == _CANNOT:
        pytest.skip(cannot("root may write anywhere, and this one cannot give that up"))
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def run_with_mount(
    folder: Path, options: str, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a program that sees a fresh file system at ``folder``, mounted with these options; else skips."""
    mount = f"mount -t tmpfs -o {options} none {shlex.quote(str(folder))}"
    unshare = ["unshare", "--mount", "sh", "-c"]
    if sys.platform != "linux" or subprocess.run([*unshare, mount], capture_output=True, check=False).returncode:
        pytest.skip(cannot("file systems may not be mounted here"))
    return subprocess.run(
        [*unshare, f"{mount} && exec {shlex.join(command)}"],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
