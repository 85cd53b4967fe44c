"""Small repositories that hold the kernels of an op and the headers that they include."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from overlay_kernels import FILES, KERNELS, OVERLAY, TORCH_HEADERS


def commit(root: Path, message: str) -> str:
    """Commit everything below ``root``; returns the commit's id."""
    identity = ["-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "--allow-empty", "-m", message]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    found = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return found.stdout.strip()


def commit_kernels(root: Path, texts: Mapping[str, str], message: str = "tree") -> str:
    """Write kernel files by name, with the headers that they include, and commit; returns the commit's id."""
    for name, text in texts.items():
        (root / KERNELS).mkdir(parents=True, exist_ok=True)
        (root / KERNELS / name).write_text(text)
    shutil.copytree(TORCH_HEADERS / "c10/metal", root / "c10/metal", dirs_exist_ok=True)
    return commit(root, message)


def replaced(texts: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """The files with one text replaced, in the file that has it."""
    assert old in "".join(texts.values()), f"the seeded fault no longer fits the overlay: {old!r}"
    return {name: text.replace(old, new) for name, text in texts.items()}


def overlay_texts() -> dict[str, str]:
    """The kernel files of the overlay, by name."""
    return {name: (OVERLAY / KERNELS / name).read_text() for name in FILES}
