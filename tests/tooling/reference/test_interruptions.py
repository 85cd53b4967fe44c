"""Builds that are killed at every step that leaves a trace, and builds that run at the same time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from patchstack.reference.artefacts import WHEEL_FOLDER
from patchstack.reference.build import build_spec

from .conftest import TinyRelease

# Forks one child per step; the child's audit hook kills it at its n-th event that changes something on disk.
_KILL_EVERYWHERE = """
import dataclasses, json, os, signal, sys
from pathlib import Path
from patchstack.reference.artefacts import Artefact
from patchstack.reference.build import Surroundings, build_spec
from patchstack.reference.registry import SPECS

wheel, digest, root, stand_ins = sys.argv[1:]
spec = dataclasses.replace(
    SPECS["2.11"], name="9.9", version="9.9.0", artefact=Artefact(Path(wheel).name, digest)
)

def fetch(spec, folder, progress):
    (folder / spec.artefact.filename).write_bytes(Path(wheel).read_bytes())

def build(cache):
    return build_spec(spec, Surroundings(cache, Path(stand_ins), fetch))

def child(cache, kill_at):
    seen = 0
    def hook(event, arguments):
        nonlocal seen
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.utime", "subprocess.Popen"):
            seen += 1
            if seen == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    build(cache)

results = []
for kill_at in range(1, 200):
    cache = Path(root) / str(kill_at)
    pid = os.fork()
    if pid == 0:
        try:
            child(cache, kill_at)
        finally:
            os._exit(0)
    killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    tree = build(cache)
    left = sorted(p.name for p in (cache / "reference").iterdir() if p.name.startswith("building"))
    results.append([killed, tree.commit, left])
    if not killed:
        break
print(json.dumps(results))
"""


def test_a_build_killed_at_any_step_is_completed_by_the_next_run(tiny: TinyRelease, tmp_path: Path) -> None:
    tiny.add_stand_in("test/test_tiny.py", b"\n")
    arguments = [str(tiny.wheel), tiny.spec.artefact.sha256, str(tmp_path / "killed"), str(tmp_path / "stand-ins")]
    done = subprocess.run(
        [sys.executable, "-c", _KILL_EVERYWHERE, *arguments], capture_output=True, text=True, check=True
    )
    results = json.loads(done.stdout)
    killed = [entry[0] for entry in results]
    assert len(killed) > 12
    assert killed == [True] * (len(killed) - 1) + [False]
    assert len({entry[1] for entry in results}) == 1
    assert [entry[2] for entry in results] == [[]] * len(results)


_BUILD = """
import dataclasses, sys
from pathlib import Path
from patchstack.reference.artefacts import Artefact
from patchstack.reference.build import Surroundings, build_spec
from patchstack.reference.registry import SPECS

name, digest, cache, stand_ins = sys.argv[1:]
spec = dataclasses.replace(SPECS["2.11"], name="9.9", version="9.9.0", artefact=Artefact(name, digest))
tree = build_spec(spec, Surroundings(Path(cache), Path(stand_ins)), progress=lambda step: print(step, flush=True))
print(tree.commit)
"""


def test_of_builds_at_the_same_time_one_builds_and_the_others_wait(tiny: TinyRelease, tmp_path: Path) -> None:
    arguments = [tiny.wheel.name, tiny.spec.artefact.sha256, str(tmp_path / "shared"), str(tmp_path / "stand-ins")]
    environment = {**os.environ, WHEEL_FOLDER: str(tiny.wheel.parent)}
    processes = [
        subprocess.Popen([sys.executable, "-c", _BUILD, *arguments], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(4)
    ]
    said = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert len({lines[-1] for lines in said}) == 1
    assert sum(any("writing the tree" in line for line in lines) for lines in said) == 1
    assert [p.name for p in (tmp_path / "shared" / "reference").glob("building-*")] == []


def test_a_folder_without_a_stamp_at_the_trees_place_is_replaced(tiny: TinyRelease) -> None:
    tree = build_spec(tiny.spec, tiny.surroundings)
    (tree.path / ".git" / "patchstack-reference.json").unlink()
    (tree.path / "stray").write_text("")
    assert build_spec(tiny.spec, tiny.surroundings) == tree
    assert not (tree.path / "stray").exists()
