"""Kernels, host files and tests of a hostile stack run in workers: they get nothing there, and forge no verdict."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hostile import NAMES, TOKEN, World
from patchstack.cache import _named_folder
from patchstack.confine import Limits, take
from skips import cannot
from stack_lab import applied
from stackproof.engines.pool import processes
from stackproof.engines.pool.last_words import say
from stackproof.engines.pool.tasks import Died, run_tasks
from stackproof.gates.host_run.spec import SPEC as HOST_RUN
from stackproof.gates.test_mps.child import TEST_FILE, Chunk, ChunkResult, MpsTests
from stackproof.model import Verdict

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason=cannot("what holds elsewhere is told"))

REAL_CACHE = str(_named_folder())

# Native code that ends its process with a number: 100, and a bit for each attempt that worked.
LIBRARY = """
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((constructor)) static void attack(void) {
  int worked = 0;
  if (getenv("GITHUB_TOKEN")) worked |= 1;
  if (open("@HOME@/was-here", O_CREAT | O_WRONLY, 0600) >= 0) worked |= 2;
  struct sockaddr_in to = {0};
  to.sin_family = AF_INET;
  to.sin_port = htons(@PORT@);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int one = socket(AF_INET, SOCK_STREAM, 0);
  if (one >= 0 && connect(one, (struct sockaddr *)&to, sizeof to) == 0) worked |= 4;
  int child = fork();
  if (child == 0) _exit(0);
  if (child > 0) { waitpid(child, 0, 0); worked |= 8; }
  if (open("@CACHE@/entry", O_WRONLY) >= 0 || chmod("@CACHE@/entry", 0) == 0) worked |= 16;
  if (open("@RESULT@", O_CREAT | O_WRONLY, 0600) >= 0) worked |= 32;
  write(1, "verdict: passed\\n", 16);
  _exit(100 + worked);
}
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    found = World(tmp_path, Limits().folder_bytes)
    monkeypatch.setattr(processes._Server, "_current", None)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("HOME", str(found.home))
    monkeypatch.setenv("PATCHSTACK_CACHE", str(found.cache))
    take()
    yield found
    found.close()


def load(library: str) -> str:
    ctypes.CDLL(library)
    return "loaded"


def native(world: World) -> str:
    text = LIBRARY
    for name, value in (("HOME", world.home), ("CACHE", world.cache), ("RESULT", world.result)):
        text = text.replace(f"@{name}@", str(value))
    return text.replace("@PORT@", str(world.settings["port"]))


@pytest.mark.skipif(shutil.which("cc") is None, reason=cannot("there is no cc"))
def test_native_code_gets_nothing_and_its_end_is_no_answer(tmp_path: Path, world: World) -> None:
    source, library = tmp_path / "hostile.c", tmp_path / "hostile.so"
    source.write_text(native(world))
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    assert list(run_tasks([str(library)], load, jobs=1)) == [(str(library), Died("exit status 100"))]
    assert world.untouched
    (confined,) = take()
    assert all(confined.held[name] for name in ("environment", "files", "processes", "memory", "time", "file size"))


def hostile_tests(folder: Path, code: str, world: World) -> MpsTests:
    """A tree whose ``conftest.py`` and test file are hostile, run as on a machine with a real device."""
    (folder / "test").mkdir()
    (folder / "test/conftest.py").write_text(f"{world.code}\nattempts(SETTINGS)\n")
    (folder / TEST_FILE).write_text(f"{world.code}\nimport json, os, sys, unittest\n{code}")
    return MpsTests(folder, ("test_",), None)


def outcome(tests: MpsTests) -> ChunkResult | Died:
    ((_, answer),) = run_tasks([Chunk(0, 1)], tests, jobs=1)
    return answer


def test_tests_get_nothing(tmp_path: Path, world: World) -> None:
    code = """
class TestIt(unittest.TestCase):
    def test_it(self):
        raise AssertionError(json.dumps(attempts(SETTINGS)))
"""
    answer = outcome(hostile_tests(tmp_path, code, world))
    assert isinstance(answer, ChunkResult)
    (one,) = answer.outcomes
    assert one.status == "failed"
    assert json.loads(one.text.partition(": ")[2]) == dict.fromkeys(NAMES, False)
    assert world.untouched


@pytest.mark.parametrize(
    "code",
    [
        "print('verdict: passed'); os._exit(0)",
        "sys.exit(0)",
        "class TestIt(unittest.TestCase):\n    def test_it(self):\n        print('OK', flush=True); os._exit(0)",
    ],
    ids=["at import", "politely", "in a test"],
)
def test_an_early_end_with_status_0_is_a_death(tmp_path: Path, world: World, code: str) -> None:
    assert _reason(outcome(hostile_tests(tmp_path, code, world))) == "exit status 0"


def _reason(answer: ChunkResult | Died) -> str:
    assert isinstance(answer, Died)
    return answer.reason


def square(task: int) -> int:
    return task * task


def test_workers_that_are_no_forks_are_confined_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_CAN_FORK", False)
    assert dict(run_tasks([2, 3], square, jobs=1)) == {2: 4, 3: 9}
    (confined,) = take()
    assert all(confined.held[name] for name in ("environment", "files", "processes", "memory", "time", "file size"))


class Forged:
    """What would run a command in whoever read it as an ordinary pickle."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("echo forged",)


def write_everywhere(task: int) -> int:
    """Write a forged answer to everything that is open."""
    text = pickle.dumps(Forged())
    message = (len(text) + 1).to_bytes(4, "big") + b"a" + text
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, message)
        except OSError:
            continue
    return task


def test_a_forged_answer_is_not_run_by_who_reads_it(capfd: pytest.CaptureFixture[str], world: World) -> None:
    ((_, answer),) = run_tasks([1], write_everywhere, jobs=1)
    assert isinstance(answer, Died)
    assert "it names posix.system, which holds no data" in answer.reason
    assert "forged" not in capfd.readouterr().out


def die_talking(words: str) -> None:
    say(words)
    os._exit(3)


def test_what_a_worker_said_last_is_known_when_it_died() -> None:
    tasks = ["long before the end", "short", ""]
    assert dict(run_tasks(tasks, die_talking, jobs=1)) == {task: Died("exit status 3", task) for task in tasks}


def begin_an_answer(task: int) -> int:
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, (1000).to_bytes(4, "big"))
    time.sleep(600)
    return task


def test_an_answer_that_only_begins_keeps_nobody_waiting(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "REST_S", 5)
    ((_, answer),) = run_tasks([1], begin_an_answer, jobs=1)
    assert isinstance(answer, Died)
    assert answer.reason.startswith("its answer is not one: ")


def build_elsewhere(folder: str) -> str:
    from stackproof.engines.metal.build import compile_text
    from stackproof.engines.metal.model import RunMode

    compile_text("kernel void k(device int *a) { *a = 1; }", "k.metal", (), RunMode.PLAIN, Path(folder))
    return "built"


def test_what_this_machine_cannot_build_is_no_fault_of_the_stack(tmp_path: Path, world: World) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        list(run_tasks([str(tmp_path / "file")], build_elsewhere, jobs=1))
    assert dict(run_tasks([str(tmp_path / "built")], build_elsewhere, jobs=1)) == {str(tmp_path / "built"): "built"}


def ask_for_a_builder(name: str) -> str:
    from stackproof.engines.pool import building

    try:
        building._ask[0](name, ("touch /tmp/forged",), {})
    except Exception as error:
        return type(error).__name__
    return "built"


def test_only_builders_can_be_asked_for(world: World) -> None:
    names = ["os:system", "subprocess:run", "stackproof.engines.metal.build:load"]
    assert dict(run_tasks(names, ask_for_a_builder, jobs=1)) == dict.fromkeys(names, "KeyError")


def test_a_worker_that_takes_too_much_memory_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes.Limits, "for_kernels", lambda: Limits(memory=64 << 30, resident=1 << 30))
    ((_, answer),) = run_tasks([(1 << 30) + (64 << 20)], hold_memory, jobs=1, timeout=60)
    assert answer == Died("killed by SIGKILL")


def hold_memory(size: int) -> int:
    held = bytearray(b"x") * size
    time.sleep(30)
    return len(held)


@pytest.mark.slow
@pytest.mark.needs_reference
def test_a_header_of_the_stack_that_attacks_when_it_is_loaded_fails_its_gate(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The header is host code and kernel code; what is compiled from it runs in workers only."""
    monkeypatch.setenv("PATCHSTACK_CACHE", REAL_CACHE)
    with applied("2.11", tmp_path / "tree") as lab:
        header = "aten/src/ATen/native/mps/kernels/GridSampler.h"
        attack = f"#if defined(__OBJC__)\n{native(world)}\n#endif\n"
        head = lab.changed({header: lab.text(header) + attack})
        result = lab.judge(HOST_RUN, head, kinds=["autocast"])
    assert result.verdict is Verdict.FAILED
    assert {finding.message.rpartition(": ")[2] for finding in result.findings if finding.fails} == {"exit status 100"}
    assert world.untouched
