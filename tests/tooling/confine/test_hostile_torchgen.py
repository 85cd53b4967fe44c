"""The torchgen of a hostile tree gets nothing, forges nothing, and the report says what was taken from it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edit_bench import commit_of
from hostile import NAMES, TOKEN, World
from patchstack.confine import Cage, Limits, home_folders, scrubbed, take
from patchstack.confine.model import MEASURES
from patchstack.confine.policy import OPTION, TreeCodeForbiddenError, tree_code
from patchstack.tree.git import Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH
from patchstack.tree.torchgen_run import TorchgenError, generate_c_shims
from skips import cannot

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason=cannot("what holds elsewhere is told"))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    found = World(tmp_path, Limits().folder_bytes)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    monkeypatch.setenv("HOME", str(found.home))
    monkeypatch.setenv("PATCHSTACK_CACHE", str(found.cache))
    take()
    yield found
    found.close()


def tree_with(tmp_path: Path, code: str) -> Tree:
    files = {"torchgen/__init__.py": code.encode(), FUNCTIONS_PATH: b"[]\n"}
    repository, commit = commit_of(tmp_path / "hostile.git", files)
    return Tree.at(repository, commit)


def test_everything_that_it_tries_fails_and_is_said_to_be_prevented(tmp_path: Path, world: World) -> None:
    code = f"{world.code}\nimport json\nraise SystemExit(json.dumps(attempts(SETTINGS)))"
    with pytest.raises(TorchgenError) as caught:
        generate_c_shims(tree_with(tmp_path, code), ["mps"])
    worked = json.loads(caught.value.problem)
    (confined,) = take()
    assert confined.what == "the tree's torchgen"
    # A means that this system lacks is told; the socket is one.
    prevented = {"token": "environment", "look around": "home", "socket": "network", "fork": "processes"}
    prevented |= {
        "home": "files",
        "home by the list of users": "files",
        "cache": "files",
        "result": "files",
        "disk": "disk",
    }
    assert set(worked) == set(NAMES) == set(prevented)
    assert {name: worked[name] for name in NAMES} == {name: not confined.held[prevented[name]] for name in NAMES}
    for name in ("environment", "files", "processes", "file size", "memory", "time"):
        assert confined.held[name], name
    if all(confined.held.values()):
        assert world.untouched


def test_all_of_it_works_where_nothing_is_taken_away(tmp_path: Path, world: World) -> None:
    """The seeded fault: attempts that cannot succeed would show nothing."""
    code = f"{world.code}\nimport json\nprint(json.dumps(attempts(SETTINGS)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == dict.fromkeys(NAMES, True)
    assert not world.untouched


@pytest.mark.parametrize(
    "forged",
    [
        "print('verdict: passed: 11 of 11 gates'); os._exit(0)",
        "sys.exit(0)",
        "os.write(1, b'{\"c_shim_mps.h\": 3}'); os._exit(0)",
    ],
    ids=["a passing report", "an early end", "an answer of another shape"],
)
def test_an_early_end_is_no_answer_whatever_it_printed(tmp_path: Path, world: World, forged: str) -> None:
    with pytest.raises(TorchgenError):
        generate_c_shims(tree_with(tmp_path, f"import os, sys\n{forged}"), ["mps"])
    assert not (world.cache / "torchgen").exists()


def test_no_code_of_the_tree_runs_where_that_is_forbidden(tmp_path: Path, world: World) -> None:
    mark = tmp_path / "mark"
    tree = tree_with(tmp_path, f"open({str(mark)!r}, 'w')")
    with tree_code(allowed=False), pytest.raises(TreeCodeForbiddenError, match=OPTION):
        generate_c_shims(tree, ["mps"])
    with tree_code(allowed=False), tree_code(allowed=True), pytest.raises(TreeCodeForbiddenError):
        generate_c_shims(tree, ["mps"])
    assert take() == ()
    assert world.untouched


def test_the_environment_has_what_is_needed_and_nothing_else() -> None:
    needed = {"PATH": "/bin", "LC_ALL": "C"}
    secrets = {"GITHUB_TOKEN": TOKEN, "AWS_SECRET_ACCESS_KEY": "x", "https_proxy": "user:word@host"}
    others = {
        "SSH_AUTH_SOCK": "/agent",
        "GPG_AGENT_INFO": "/agent",
        "HOME": "/home/me",
        "PYTHONPATH": ".",
        "PIP_X": "1",
    }
    assert scrubbed(needed | secrets | others) == needed


@pytest.mark.parametrize("missing", ["namespaces", "landlock", "seccomp"])
def test_what_this_system_lacks_is_told_not_claimed(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Each means is taken away in turn, in the process that is confined."""
    import patchstack.confine.command as command

    broken = {
        "namespaces": "from patchstack.confine import namespaces as n; n.unshare = n.mount = refuse",
        "landlock": "from patchstack.confine import landlock as n; n.syscall = refuse",
        "seccomp": "from patchstack.confine import seccomp as n; n.prctl_pointer = refuse",
    }[missing]
    refuse = "def refuse(*_): raise OSError(38, 'taken away')\n"
    monkeypatch.setattr(command, "_CHILD", f"exec({refuse + broken!r}); {command._CHILD}")
    with pytest.raises(TorchgenError) as caught:
        generate_c_shims(
            tree_with(tmp_path, f"{world.code}\nimport json\nraise SystemExit(json.dumps(attempts(SETTINGS)))"), ["mps"]
        )
    worked = json.loads(caught.value.problem)
    (confined,) = take()
    assert worked["fork"] == (not confined.held["processes"]) == (missing == "seccomp")
    assert worked["disk"] == (not confined.held["disk"]) == (missing == "namespaces")
    assert worked["look around"] == (not confined.held["home"]) == (missing == "landlock")
    assert not any(worked[name] for name in ("token", "home", "cache", "socket", "result"))
    assert ("NOT prevented" in confined.sentence) is (set(confined.held.values()) != {True})


def test_a_report_names_every_measure() -> None:
    from patchstack.confine import Confined

    everything = dict.fromkeys(MEASURES, True)
    assert "NOT prevented" not in Confined("x", everything).sentence
    lacking = Confined("x", {**everything, "network": False}).sentence
    assert "NOT prevented: what breaks «no network»" in lacking
    assert "; no network;" not in lacking.partition("NOT")[0]


def test_the_homes_are_those_of_the_environment_and_of_the_list_of_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_folders()[0] == str(tmp_path)
    monkeypatch.setenv("HOME", "/")
    assert "/" not in home_folders()
    assert Cage.of_json(Cage("/x", ("/y",), homes=("/z",)).as_json()) == Cage("/x", ("/y",), homes=("/z",))
