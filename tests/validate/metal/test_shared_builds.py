"""Workers that need one library at the same time build it once; the compiler itself is left out here."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stackproof.metal import CompileError, RunMode, build
from stackproof.metal.build import Source, compile_source

KERNEL = "kernel void k(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 3; }\n"


@pytest.fixture
def source(tmp_path: Path) -> Source:
    file = tmp_path / "k.metal"
    file.write_text(KERNEL)
    return Source(file)


def described(folder: Path) -> None:
    (folder / "build.json").write_text(json.dumps({"kernels": [], "sites": []}))


def test_two_that_ask_at_once_get_one_build(tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []
    asked = threading.Barrier(2, timeout=60)
    preprocess = build.preprocess

    def preprocessed_together(*arguments: Any) -> str:
        text = preprocess(*arguments)
        asked.wait()
        return text

    def counted(*arguments: Any) -> None:
        built.append(arguments[4])
        described(arguments[4])

    monkeypatch.setattr(build, "preprocess", preprocessed_together)
    monkeypatch.setattr(build, "_build", counted)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: compile_source(source, RunMode.PLAIN, tmp_path), range(2))
    assert len(built) == 1
    assert first == second


def test_a_build_that_failed_does_not_block_the_next_one(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_arguments: Any) -> None:
        raise CompileError("nonsense")

    monkeypatch.setattr(build, "_build", fails)
    with pytest.raises(CompileError, match="nonsense"):
        compile_source(source, RunMode.PLAIN, tmp_path)
    monkeypatch.setattr(build, "_build", lambda *arguments: described(arguments[4]))
    assert compile_source(source, RunMode.PLAIN, tmp_path).kernels == ()
