"""The benchmark as one file that needs PyTorch only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from stackproof.cli.main import command
from stackproof.gates.bench import aten_script
from stackproof.gates.bench.script import script_text
from stackproof.gates.bench.timing import Clock, Timing
from stackproof.ops.grid_sampler.bench.rows import Row, pr_rows


def test_the_command_prints_the_script() -> None:
    result = CliRunner().invoke(command, ["--print-bench-script"])
    assert result.exit_code == 0
    assert result.output == script_text()


def test_the_script_runs_without_this_project(tmp_path: Path) -> None:
    script = tmp_path / "bench.py"
    script.write_text(script_text())
    assert "stackproof" not in script_text()
    start = [sys.executable, "-I", str(script), "--device", "cpu", "--rows", "quick", "--samples", "1"]
    done = subprocess.run(start, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "| this build, ms (spread) | of copy bandwidth |" in done.stdout
    assert "10/10" in done.stderr


def test_an_earlier_run_is_taken_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(aten_script.ROWS, "quick", lambda: pr_rows()[:1])
    before = tmp_path / "before.json"
    start = ["--device", "cpu", "--rows", "quick", "--samples", "1"]
    assert aten_script.main([*start, "--json", str(before)]) == 0
    assert list(json.loads(before.read_text())["milliseconds"]) == [pr_rows()[0].label]
    assert aten_script.main([*start, "--before", str(before)]) == 0
    said = capsys.readouterr().out
    assert "| before, ms | after, ms (spread) | over before | of copy bandwidth |" in said
    assert "after over before: geometric mean" in said


def test_its_rows_are_those_of_the_pull_request_unless_others_are_asked_for() -> None:
    assert aten_script.ROWS["pr"]() == pr_rows()


def test_the_table_of_the_fast_backward_can_be_asked_for(tmp_path: Path) -> None:
    """The rows that bench/grid_sampler_backward/wide.py measured on another GPU, by the labels of its table."""
    table = Path(__file__).parents[4] / "bench/grid_sampler_backward/results/wide.json"
    measured = {row["row"] for row in json.loads(table.read_text())["rows"]}
    labels = {row.label for row in aten_script.ROWS["wide"]()}
    assert len(labels) > 400
    assert labels == {label.removesuffix(", grad_grid alone") for label in measured}


def test_a_row_without_a_kernel_is_left_out_and_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(row: Row, device: str) -> None:
        raise NotImplementedError("The operator 'aten::x' is not currently implemented for the MPS device. Long story.")

    monkeypatch.setattr(aten_script, "aten_backward", refuse)
    row = pr_rows()[0]
    measured = aten_script.measure_rows(Clock("cpu"), [row], {row.label: Timing(1, 1, 1)}, samples=1)
    assert list(measured[0].times) == ["before"]
    assert "not currently implemented for the MPS device\n" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", '{"milliseconds": {"a": 1}}'], ids=["empty", "a list", "no numbers"])
def test_a_file_that_is_no_earlier_run_is_named_in_one_sentence(text: str, tmp_path: Path) -> None:
    file = tmp_path / "before.json"
    file.write_text(text)
    with pytest.raises(SystemExit, match=r"before\.json: not a file of --json"):
        aten_script.main(["--before", str(file), "--device", "cpu"])


def test_the_operator_that_is_timed_gives_both_gradients() -> None:
    row = pr_rows()[0]
    grads = aten_script.aten_backward(row, "cpu")()
    assert isinstance(grads, tuple)
    assert [grad.shape for grad in grads] == [torch.Size(row.shape), torch.Size((1, 64, 64, 2))]
