"""PyTorch's own history, file by file: what is not here, or is another text, is said and never counted."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from patchstack.tree.git import Repository
from shared_inputs import shared_folder
from skips import cannot

BENCH = Path(__file__).resolve().parents[2] / "bench"
FILE = "ops/Tint.mm"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script, as a module."""
    spec = importlib.util.spec_from_file_location("history", BENCH / "history.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["history"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def shared(tmp_path: Path, script: ModuleType) -> Path:
    """Two moments of one file, in words of this project."""
    for moment, text in zip(script.MOMENTS[:2], ("int tint();\n", "int tint();\nint shade();\n"), strict=True):
        file = tmp_path / "shared/trees" / moment / "files" / FILE
        file.parent.mkdir(parents=True)
        file.write_text(text)
    return tmp_path / "shared"


def test_two_moments_become_a_commit_that_changes_the_file_alone(
    script: ModuleType, shared: Path, tmp_path: Path
) -> None:
    texts = script.Texts(tmp_path, tmp_path / "no-cache", shared)
    lines = list(script.choose(texts))
    assert [line.split()[-1] for line in lines] == [FILE]
    (tmp_path / "list.txt").write_text("# A comment.\n" + lines[0] + "\n")
    ((path, commit),) = script.history(tmp_path / "list.txt", texts)
    with Repository.open(path) as repository:
        assert repository.text("diff", "--numstat", f"{commit}^", commit).split() == ["1", "0", FILE]


def test_another_text_and_an_absent_one_are_not_run(
    script: ModuleType, shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = script.Texts(tmp_path, tmp_path / "no-cache", shared)
    (line,) = script.choose(texts)
    (tmp_path / "list.txt").write_text(f"{line}\n2.11 2.13 {'0' * 40} {'1' * 40} torch/a.py\n")
    (shared / "trees" / script.MOMENTS[1] / "files" / FILE).write_text("int other();\n")
    assert list(script.history(tmp_path / "list.txt", texts)) == []
    said = capsys.readouterr().out.splitlines()
    assert [one.partition(":")[0] for one in said] == ["not run", "not run"]
    assert FILE in said[0]


def test_the_pinned_moments_of_pytorch_are_still_the_texts_that_the_list_names(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (shared_folder() / "trees").is_dir():
        pytest.skip(cannot("no trees of upstream's own files"))
    texts = script.Texts(tmp_path, tmp_path / "no-cache", shared_folder())
    wanted = [line for line in script.LIST.read_text().splitlines() if line.startswith(script.MOMENTS)]
    (tmp_path / "list.txt").write_text("\n".join(wanted))
    assert len(list(script.history(tmp_path / "list.txt", texts))) == len(wanted) >= 12
    assert capsys.readouterr().out == ""
