"""The tree's torchgen is somebody else's program: whatever it does, the run ends soon and says one sentence."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from edit_bench import commit_of
from patchstack.confine.command import Done, run_confined
from patchstack.errors import TreeError
from patchstack.tree import torchgen_run
from patchstack.tree.c_shim import header_path
from patchstack.tree.git import Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH
from patchstack.tree.torchgen_run import TorchgenError, generate_c_shims
from skips import cannot

HEADER = header_path("mps")
GEN = """
import types
def parse_native_yaml(*_):
    return types.SimpleNamespace(native_functions=[], backend_indices={})
def get_grouped_native_functions(functions):
    return []
"""
SHIM = """
def gen_aoti_c_shim_files(aoti_fm, aoti_backends, native_functions, backend_indices, structured_native_functions,
                          extra_cuda_headers, extend_aoti_c_shim, update_aoti_c_shim):
    aoti_fm.write("c_shim_mps.h", lambda: "made\\n")
"""
MODEL = """
class NativeFunctionsGroup: pass
class DispatchKey:
    @staticmethod
    def parse(name): return name
"""


def tree_with(folder: Path, init: str) -> Tree:
    """A tree whose torchgen is a few lines; ``init`` is run when it is imported."""
    files = {
        "torchgen/__init__.py": init,
        "torchgen/gen.py": GEN,
        "torchgen/gen_aoti_c_shim.py": SHIM,
        "torchgen/model.py": MODEL,
        FUNCTIONS_PATH: "",
    }
    repository, commit = commit_of(folder / "tree.git", {path: text.encode() for path, text in files.items()})
    return Tree.at(repository, commit)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    "init",
    [
        "",
        "print('hello')",
        "import os; os.write(1, b'\\xff\\xfe')",
        "import sys; sys.stderr.buffer.write(b'\\xff')",
        "open('new file', 'w').close()",
        "import os; os.mkdir('closed', 0)",
    ],
)
def test_noise_and_files_of_its_own_do_not_matter(tmp_path: Path, init: str) -> None:
    assert generate_c_shims(tree_with(tmp_path, init), ["mps"]) == {HEADER: b"made\n"}


@pytest.mark.parametrize(
    ("init", "problem"),
    [
        ("import os; os._exit(0)", "its answer is not a set of headers"),
        ("raise ValueError('boom')", "ValueError: boom"),
        ("raise ValueError('x' * 1000000)", "ValueError: xxx"),
        ("def (", "SyntaxError"),
        ("import sys; sys.stderr.buffer.write(b'\\xff!\\n'); sys.exit(3)", "!"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "exit status -11"),
        ("input()", "EOFError"),
    ],
)
def test_a_torchgen_that_fails_is_one_short_sentence(tmp_path: Path, init: str, problem: str) -> None:
    with pytest.raises(TorchgenError) as caught:
        generate_c_shims(tree_with(tmp_path, init), ["mps"])
    assert problem in caught.value.problem
    assert len(caught.value.problem) < 400
    assert "\n" not in caught.value.problem


def test_a_refused_entry_is_torchgens_own_sentence_and_its_line(tmp_path: Path) -> None:
    told = f"unknown dispatch key MSP\\n  in /some/where/{FUNCTIONS_PATH}:2938:\\n    tint(Tensor self) -> Tensor"
    with pytest.raises(TorchgenError) as caught:
        generate_c_shims(tree_with(tmp_path, f"raise AssertionError('{told}')"), ["mps"])
    assert (caught.value.problem, caught.value.line) == ("AssertionError: unknown dispatch key MSP", 2938)
    assert str(caught.value).endswith(f"AssertionError: unknown dispatch key MSP ({FUNCTIONS_PATH}:2938)")


@pytest.mark.parametrize("answer", ["null", "[1]", '{"c_shim_mps.h": 3}', '{"c_shim_mps.h": "\\ud800"}', "[" * 100_000])
def test_an_answer_that_is_no_set_of_headers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    child = tmp_path / "child.py"
    child.write_text(f"print({answer!r})")
    monkeypatch.setattr(torchgen_run, "_CHILD", child)
    with pytest.raises(TorchgenError, match="its answer is not a set of headers"):
        generate_c_shims(tree_with(tmp_path, ""), ["mps"])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason=cannot("processes are refused on Linux"))
def test_it_starts_no_other_process(tmp_path: Path) -> None:
    with pytest.raises(TorchgenError, match="Resource temporarily unavailable"):
        generate_c_shims(tree_with(tmp_path, "import os; os.fork()"), ["mps"])


def test_what_it_leaves_open_keeps_nobody_waiting(tmp_path: Path) -> None:
    init = "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    assert generate_c_shims(tree_with(tmp_path, init), ["mps"]) == {HEADER: b"made\n"}


def test_one_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchgen_run, "TIMEOUT_S", 1)
    with pytest.raises(TorchgenError, match="no answer within 1 s"):
        generate_c_shims(tree_with(tmp_path, "import time; time.sleep(60)"), ["mps"])


@pytest.mark.parametrize("name", ["n" * 300, "d/" * 1500 + "file"], ids=["long", "deep"])
def test_a_name_that_no_file_can_have_is_an_error_that_says_where(tmp_path: Path, name: str) -> None:
    repository, commit = commit_of(tmp_path / "long.git", {f"torchgen/{name}.py": b""})
    with pytest.raises(TreeError, match="cannot be laid out in the folder for temporary files"):
        generate_c_shims(Tree.at(repository, commit), ["mps"])


@pytest.mark.parametrize("content", ["[]", "null", '"c_shim_mps.h"', '{"c_shim_mps.h": 3}', "{"])
def test_a_damaged_entry_of_the_cache_is_made_again(tmp_path: Path, cache: Path, content: str) -> None:
    tree = tree_with(tmp_path, "")
    generate_c_shims(tree, ["mps"])
    (entry,) = (cache / "torchgen").iterdir()
    entry.write_text(content)
    assert generate_c_shims(tree, ["mps"]) == {HEADER: b"made\n"}


def test_several_headers_of_one_tree_take_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tree_with(tmp_path, "")
    both = tree.with_files(
        {"torchgen/gen_aoti_c_shim.py": SHIM.encode() + b'    aoti_fm.write("c_shim_cpu.h", lambda: "cpu")\n'}
    )
    runs: list[Path] = []

    def counted(what: str, program: Path, *args: Any, **kwargs: Any) -> Done:
        runs.append(program)
        return run_confined(what, program, *args, **kwargs)

    monkeypatch.setattr(torchgen_run, "run_confined", counted)
    made = generate_c_shims(both, ["mps", "cpu"])
    assert made == {HEADER: b"made\n", header_path("cpu"): b"cpu"}
    assert generate_c_shims(both, ["cpu"]) == {header_path("cpu"): b"cpu"}
    assert generate_c_shims(both, ["mps"]) == {HEADER: b"made\n"}
    assert len(runs) == 1
