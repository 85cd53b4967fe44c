"""``validate-stack metal``: any Metal file is checked, and its kernels run from a script under the detectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackproof.cli.main import main

KERNEL = """#include <metal_stdlib>
using namespace metal;
kernel void total(device float* out, device const float* in, uint i [[thread_position_in_grid]]) {
  out[0] += in[i];
}
"""
SCRIPT = "import torch\nkernels.total(torch.zeros(1), torch.ones({count}), threads={threads})\n"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["metal", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().out


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    path = tmp_path / "k.metal"
    path.write_text(KERNEL)
    return str(path)


def test_a_file_without_a_fault_has_no_findings(capsys: pytest.CaptureFixture[str], kernel: str) -> None:
    assert run(capsys, kernel) == (0, "1 files, 0 findings\n")


def test_an_error_of_the_language_is_found(capsys: pytest.CaptureFixture[str], kernel: str) -> None:
    Path(kernel).write_text(KERNEL.replace("out[0] += in[i]", "double x = in[i]; out[0] = x"))
    code, output = run(capsys, kernel)
    assert code == 1
    assert f"{kernel}:4:" in output


@pytest.mark.parametrize(("count", "threads", "rule"), [(8, 8, "race"), (4, 5, "out-of-bounds")])
def test_a_script_that_calls_a_kernel_finds_a_race_or_an_access_outside(
    capsys: pytest.CaptureFixture[str], kernel: str, tmp_path: Path, count: int, threads: int, rule: str
) -> None:
    script = tmp_path / "s.py"
    script.write_text(SCRIPT.format(count=count, threads=threads))
    code, output = run(capsys, kernel, "--run", str(script))
    assert code == 1
    assert f"{kernel}:4: {rule}: total: " in output


def test_an_error_of_the_script_is_a_finding_and_no_traceback(
    capsys: pytest.CaptureFixture[str], kernel: str, tmp_path: Path
) -> None:
    script = tmp_path / "s.py"
    script.write_text("kernels.sum()\n")
    code, output = run(capsys, kernel, "--run", str(script))
    assert (code, output) == (1, f"{script}:0: script: AttributeError: no file has a kernel sum\n1 files, 1 findings\n")
