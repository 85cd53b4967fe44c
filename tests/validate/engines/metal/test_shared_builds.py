"""Workers and clones that need one library build it once; the compiler itself is left out here."""

from __future__ import annotations

import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stackproof.engines.metal import CompileError, RunMode, build
from stackproof.engines.metal.build import Source, compile_source

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
        built.append(arguments[5])
        described(arguments[5])

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
    monkeypatch.setattr(build, "_build", lambda *arguments: described(arguments[5]))
    assert compile_source(source, RunMode.PLAIN, tmp_path).kernels == ()


def test_a_clone_elsewhere_finds_the_build_and_names_its_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(_text: str, source: Source, *arguments: Any) -> None:
        places = source.places
        sites = [[places.shared(f"{folder}/x.h"), 3] for folder in places.folders[:2]]
        (arguments[3] / "build.json").write_text(json.dumps({"kernels": [], "sites": sites}))

    monkeypatch.setattr(build, "_build", named)
    builds = []
    for clone in (tmp_path / "one", tmp_path / "another place"):
        for folder in ("include", "kernels"):
            (clone / folder).mkdir(parents=True)
        (clone / "include/x.h").write_text("constant int N = 1;\n")
        (clone / "kernels/k.metal").write_text(f'#include "x.h"\n{KERNEL}')
        builds.append(compile_source(Source(clone / "kernels/k.metal", (clone / "include",)), RunMode.PLAIN, tmp_path))
        assert builds[-1].sites == ((f"{clone}/include/x.h", 3), (f"{clone}/kernels/x.h", 3))
    assert builds[0].path == builds[1].path


def test_another_text_at_the_same_place_is_another_build(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "_build", lambda *arguments: described(arguments[5]))
    first = compile_source(source, RunMode.PLAIN, tmp_path)
    source.path.write_text(KERNEL.replace("3", "4"))
    assert compile_source(source, RunMode.PLAIN, tmp_path).path != first.path


def test_other_headers_are_another_build(tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_build", lambda *arguments: described(arguments[5]))
    first = compile_source(source, RunMode.PLAIN, tmp_path)
    headers = tmp_path / "headers"
    shutil.copytree(build.INCLUDE, headers)
    (headers / "metal_common").write_text("#pragma once\n")
    monkeypatch.setattr(build, "INCLUDE", headers)
    assert compile_source(source, RunMode.PLAIN, tmp_path).path != first.path
