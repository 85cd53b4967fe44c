"""A release small enough to build in a tenth of a second, with every kind of file the layout knows."""

from __future__ import annotations

import datetime
import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from patchstack.reference.artefacts import DEBIAN_FOLDER, WHEEL_FOLDER
from patchstack.reference.build import Surroundings
from patchstack.reference.model import Artefact, Progress, ReferenceSpec, WheelOrigin

OPENS = b"#if !defined(TORCH_STABLE_ONLY) && !defined(TORCH_TARGET_VERSION)\n"
CLOSES = (
    b'\n#else\n#error "not with TORCH_STABLE_ONLY"\n'
    b"#endif  // !defined(TORCH_STABLE_ONLY) && !defined(TORCH_TARGET_VERSION)\n"
)
HEADER = b"#pragma once\nstruct Tiny {};\n"

MEMBERS: Mapping[str, bytes] = {
    "torch/include/ATen/Tiny.h": OPENS + HEADER + CLOSES,
    "torch/include/ATen/ops/tiny.h": b"// made by the build\n",
    "torch/include/torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h": HEADER,
    "torch/include/fmt/other_project.h": b"\n",
    "torch/lib/libtorch_cpu.dylib": b"\xcf\xfa\xed\xfe" * 1000,
    "torch/windows.py": b"line = 1\r\nother = 2\r\n",
    "torch/without_final_newline.py": b"x = 1",
    "torch/na\u00efve name.py": b"\xff\xfe not UTF-8\n",
    "torch/version.py": b"__version__ = '9.9.0'\n",
    "torchgen/model.py": b"MODEL = 1\n",
    "torchgen/packaged/ATen/native/native_functions.yaml": b"- func: tiny(Tensor self) -> Tensor\n",
    "torchgen/packaged/autograd/derivatives.yaml": b"- name: tiny\n",
    "torch-9.9.0.dist-info/licenses/LICENSE": b"licence of the tiny release\n",
    "torch-9.9.0.dist-info/RECORD": b"",
}

EXPECTED: Mapping[str, bytes] = {
    "LICENSE": b"licence of the tiny release\n",
    "aten/src/ATen/Tiny.h": HEADER,
    "aten/src/ATen/native/native_functions.yaml": b"- func: tiny(Tensor self) -> Tensor\n",
    "tools/autograd/derivatives.yaml": b"- name: tiny\n",
    "torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h": HEADER,
    "torch/na\u00efve name.py": b"\xff\xfe not UTF-8\n",
    "torch/windows.py": b"line = 1\r\nother = 2\r\n",
    "torch/without_final_newline.py": b"x = 1",
    "torchgen/model.py": b"MODEL = 1\n",
}


@dataclass
class TinyRelease:
    """A synthetic wheel on a server of its own: ``fetch`` plays the download and counts how often it was asked.

    Attributes:
        wheel: the file, outside the cache.
        spec: specification with the wheel's true digest.
        surroundings: an empty cache, an empty folder of stand-ins, and the counting ``fetch``.
        fetched: how often the file was downloaded.
    """

    wheel: Path
    spec: ReferenceSpec
    surroundings: Surroundings = field(init=False)
    fetched: int = 0

    def fetch(self, spec: ReferenceSpec, folder: Path, progress: Progress) -> None:
        self.fetched += 1
        progress("downloading")
        (folder / spec.artefact.filename).write_bytes(self.wheel.read_bytes())

    @property
    def cache(self) -> Path:
        return self.surroundings.cache

    def add_stand_in(self, path: str, data: bytes) -> None:
        place = self.surroundings.stand_ins / self.spec.name / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TinyRelease:
    for name in (WHEEL_FOLDER, DEBIAN_FOLDER):
        monkeypatch.delenv(name, raising=False)
    wheel = tmp_path / "server" / "torch-9.9.0-cp311-cp311-macosx_14_0_arm64.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, data in MEMBERS.items():
            archive.writestr(zipfile.ZipInfo(member), data)
    spec = ReferenceSpec(
        name="9.9",
        version="9.9.0",
        released=datetime.date(2030, 1, 2),
        artefact=Artefact(wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()),
        origin=WheelOrigin(platform="macosx_14_0_arm64", python="3.11"),
        notes=("Tiny.",),
    )
    release = TinyRelease(wheel, spec)
    release.surroundings = Surroundings(tmp_path / "cache", tmp_path / "stand-ins", release.fetch)
    return release
