"""A small checkout of our own words, and commits on it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from patchstack.tree.git import Repository

FILES = {
    "aten/src/ATen/native/native_functions.yaml": """\
- func: tint(Tensor self) -> Tensor
  dispatch:
    CPU: tint_cpu

- func: tint_backward(Tensor grad) -> Tensor
  dispatch:
    CPU: tint_backward_cpu
  autogen: tint_backward.out
""",
    "ops/Tint.mm": """\
#include <ops/Common.h>
#include <ops/Tint.h>

namespace at::native {

// The colour of one pixel.
static float tint_of(float value) {
  float shade = value * 2;
  check(shade);
  return shade;
}

Tensor tint_mps(const Tensor& self) {
  Tensor out = empty(self);
  check(out);
  launch("tint", self, out);
  return out;
}

} // namespace at::native
""",
    "ops/Tint.h": """\
#pragma once

namespace at::native {

class TORCH_API Tint final : public Paint {
 public:
  explicit Tint(float value);
  float value() const;

 private:
  float value_ = 1;
};

void tint_all(const Tint& tint);
void tint_all();

} // namespace at::native
""",
    "test/test_tint.py": """\
class TestTint(TestCase):
    def test_tint(self):
        self.assertEqual(tint(1), 2)


SKIPS = {
    "tint": None,
    "other": [1],
}
""",
    "docs/tint.md": "".join(f"Line {number} of the notes.\n" for number in range(1, 30)),
    "CMakeLists.txt": "set(A 1)\nset(B 2)\nif(A)\n  add(tint)\nendif()\n",
}


class Checkout:
    """A repository whose ``main`` has :data:`FILES`.

    Attributes:
        path: its folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A Contributor")
        self.git("config", "user.email", "a@example.org")
        self.commit("The tree", FILES)

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=self.path, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, message: str, files: Mapping[str, str | bytes], *, amend: bool = False) -> str:
        for name, text in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode() if isinstance(text, str) else text)
        self.git("add", "-A")
        self.git("commit", "-q", *(["--amend"] if amend else []), "-m", message)
        return self.git("rev-parse", "HEAD")

    def replaced(self, path: str, old: str, new: str) -> dict[str, str]:
        """The file with one text in the place of another."""
        text = (self.path / path).read_text()
        assert old in text
        return {path: text.replace(old, new)}

    def files_of(self, commit: str) -> dict[str, str]:
        """Path to blob id."""
        listed = self.git("ls-tree", "-r", commit).split("\n")
        return {line.partition("\t")[2]: line.split()[2] for line in listed}


@pytest.fixture
def place(tmp_path: Path) -> Checkout:
    path = tmp_path / "checkout"
    path.mkdir()
    return Checkout(path)


@pytest.fixture
def opened(place: Checkout) -> Iterator[Repository]:
    with Repository.open(place.path) as repository:
        yield repository


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    """``apply-stack`` in this process: exit code, standard output, standard error."""
    from patchstack.cli import main

    code = 0
    try:
        main([str(word) for word in arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err
