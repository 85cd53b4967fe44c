"""No command talks to anybody: Python opens no socket, starts nothing but git and itself, and git starts no transport.

Three watches, since none sees everything: an audit hook in every Python process that reads ``sitecustomize`` (it stops
the run, and writes down what is started), git's own trace of what it starts, and, where there is ``strace``, the
kernel's view of the whole process tree.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from checkouts import Checkout, Lab, Run
from checkouts.lab import command_line, run_command
from checkouts.sources import METAL
from skips import apt, cannot, lacks

WATCH = """
import os
import sys

def watch(event, arguments):
    if event.startswith("socket."):
        raise AssertionError("a socket was opened: " + event)
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.spawn"):
        program = arguments[0] or (arguments[1] or [""])[0]
        with open(os.environ["STARTED"], "a") as out:
            out.write(os.fsdecode(program) + "\\n")

sys.addaudithook(watch)
"""
TRANSPORTS = ("fetch", "fetch-pack", "pull", "push", "clone", "ls-remote", "upload-pack", "remote-https", "remote-http")


@dataclass(frozen=True)
class Watched:
    """A run, and what was seen of it.

    Attributes:
        run: how it ended.
        started: programs that Python started.
        git: what git processes were asked for, and what they started themselves.
    """

    run: Run
    started: frozenset[str]
    git: tuple[str, ...]

    def require_alone(self) -> Watched:
        """Assert that nobody was talked to."""
        programs = {Path(program).name for program in self.started}
        assert programs <= {"git", Path(sys.executable).name}, programs
        assert not [verb for verb in self.git if verb in TRANSPORTS], self.git
        return self


Arguments = Callable[[Checkout], list[str]]


def drift(checkout: Checkout) -> list[str]:
    ends = ["--since", "main~1", "--onto", "main"]
    return ["drift", *ends, "--repo", str(checkout.path), "--series", str(checkout.lab.series)]


COMMANDS: dict[str, Arguments] = {
    "apply": lambda checkout: checkout.arguments(),
    "dry run": lambda checkout: checkout.arguments("--dry-run", "--explain"),
    "format-patch": lambda checkout: checkout.arguments("--format-patch", str(checkout.lab.root / "mail")),
    "drift": drift,
    "submit-check": lambda checkout: ["submit-check", "--repo", str(checkout.path)],
}
"""One line for each command; all are run on a checkout with a remote whose ``main`` it is behind."""


@pytest.fixture
def remote(checkout: Checkout) -> Checkout:
    """A checkout with everything that could tempt a command to look at the network."""
    checkout.git("remote", "add", "origin", "https://invalid.example/github.com/pytorch/pytorch.git")
    checkout.git("update-ref", "refs/remotes/origin/main", "main~1")
    checkout.git("config", "branch.main.remote", "origin")
    checkout.git("config", "branch.main.merge", "refs/heads/main")
    return checkout


def watched(checkout: Checkout, arguments: Sequence[str], *, fault: str = "") -> Watched:
    """Run the command under the hook and git's trace; ``fault`` is code that every Python process of it runs."""
    folder = checkout.lab.root / "watch"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WATCH + fault)
    started, events = folder / "started", folder / "git events"
    env = {
        **checkout.lab.env,
        "PYTHONPATH": f"{folder}{os.pathsep}{checkout.lab.env['PYTHONPATH']}",
        "STARTED": str(started),
        "GIT_TRACE2_EVENT": str(events),
    }
    run = run_command(arguments, cwd=checkout.path, env=env)
    programs = started.read_text().splitlines() if started.exists() else []
    return Watched(run, frozenset(programs), tuple(verbs(events)))


def verbs(events: Path) -> list[str]:
    """The first words of everything that git was, or started, without ``git`` and options."""
    found = []
    for line in events.read_text().splitlines() if events.exists() else []:
        event = json.loads(line)
        if event["event"] in ("start", "child_start", "exec"):
            words = [Path(word).name.removeprefix("git-") for word in event.get("argv", [])]
            found += [word for word in words if not word.startswith("-") and word != "git"][:1]
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_run_opens_no_socket_and_starts_no_transport(remote: Checkout, name: str) -> None:
    seen = watched(remote, COMMANDS[name](remote)).require_alone()
    seen.run.require()
    assert "git" in {Path(program).name for program in seen.started}, "the watch sees nothing"
    assert {"rev-parse", "cat-file"} <= set(seen.git), "git's trace is empty"


@pytest.mark.parametrize("name", ["apply", "drift"])
def test_a_run_that_ends_in_conflict_looks_nothing_up_elsewhere(remote: Checkout, name: str) -> None:
    remote.commit("Rename", {METAL: "kernel void lighten() {}\n"})
    watched(remote, COMMANDS[name](remote)).require_alone().run.require(3)


@pytest.mark.parametrize("name", ["apply", "drift"])
def test_a_partial_clone_does_not_fetch_behind_the_users_back(lab: Lab, name: str) -> None:
    upstream = lab.checkout("upstream")
    upstream.git("config", "uploadpack.allowFilter", "true")
    clone = lab.clone(upstream, "clone", "--filter=blob:none", "--no-checkout")
    seen = watched(clone, COMMANDS[name](clone))
    seen.run.require(4)
    assert "upload-pack" not in seen.git  # an older git starts its own `fetch` and is refused the protocol


STRACE = shutil.which("strace")


def traced(checkout: Checkout, arguments: Sequence[str], log: Path, *, env: dict[str, str] | None = None) -> list[str]:
    """The calls by which the process tree of a run asked the kernel for a socket of the internet."""
    assert STRACE is not None
    command = [STRACE, "-f", "-qq", "-o", str(log), "-e", "trace=socket,connect,execve", *command_line(arguments)]
    whole = {**checkout.lab.env, **(env or {})}
    done = subprocess.run(command, cwd=checkout.path, env=whole, capture_output=True, text=True, check=False)
    if "ptrace" in done.stderr:
        pytest.skip(cannot(f"strace may not trace here: {done.stderr.strip()}"))
    calls = log.read_text().splitlines()
    assert any("execve(" in call and '"cat-file"' in call for call in calls), "strace followed no child"
    return [call for call in calls if "AF_INET" in call]


@pytest.mark.skipif(STRACE is None, reason=lacks("no strace here", apt("strace")))
@pytest.mark.parametrize("name", COMMANDS)
def test_the_kernel_is_asked_for_no_internet_socket(remote: Checkout, tmp_path: Path, name: str) -> None:
    assert traced(remote, COMMANDS[name](remote), tmp_path / "calls") == []


# The seeded faults: each watch sees what it is for.

SOCKET = """
import patchstack.tree.git.repository as repository
repository.Repository.open = classmethod(lambda *args: __import__("socket").socket())
"""
CHILD = """
import patchstack.planning.planner as planner
import subprocess
select = planner._select
def phone_home(*args):
    subprocess.run(["true", "https://invalid.example"])
    return select(*args)
planner._select = phone_home
"""
FETCH = CHILD.replace('["true", "https://invalid.example"]', '["git", "fetch", "-q", "origin"], capture_output=True')


@pytest.mark.parametrize("name", COMMANDS)
def test_the_watch_sees_a_socket(remote: Checkout, name: str) -> None:
    watched(remote, COMMANDS[name](remote), fault=SOCKET).run.refused(1, "a socket was opened")


def test_the_watch_sees_another_program(remote: Checkout) -> None:
    seen = watched(remote, COMMANDS["apply"](remote), fault=CHILD)
    with pytest.raises(AssertionError, match="true"):
        seen.require_alone()


def test_the_watch_sees_a_fetch(remote: Checkout) -> None:
    remote.git("remote", "set-url", "origin", str(remote.lab.root / "nowhere"))
    seen = watched(remote, COMMANDS["drift"](remote), fault=FETCH)
    with pytest.raises(AssertionError, match="fetch"):
        seen.require_alone()


@pytest.mark.skipif(STRACE is None, reason=lacks("no strace here", apt("strace")))
def test_strace_sees_a_socket_that_no_hook_forbids(remote: Checkout, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()\n"
    )
    env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{remote.lab.env['PYTHONPATH']}"}
    assert traced(remote, COMMANDS["drift"](remote), tmp_path / "calls", env=env)
