"""A run talks to nobody: no socket is opened by Python, and git starts no transport."""

from __future__ import annotations

import os

from checkouts import Checkout, Lab, Run
from checkouts.lab import run_command

NO_SOCKETS = """
import socket
def refuse(*args, **kwargs):
    raise AssertionError("a socket was opened")
socket.socket.__init__ = refuse
socket.create_connection = refuse
socket.getaddrinfo = refuse
"""


def run_without_sockets(checkout: Checkout) -> Run:
    folder = checkout.lab.root / "no sockets"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(NO_SOCKETS)
    env = {**checkout.lab.env, "PYTHONPATH": f"{folder}{os.pathsep}{checkout.lab.env['PYTHONPATH']}"}
    env["GIT_TRACE2_EVENT"] = str(checkout.lab.root / "git events")
    return run_command(checkout.arguments(), cwd=checkout.path, env=env)


def git_children(checkout: Checkout) -> list[str]:
    """Programs that git itself started."""
    events = (checkout.lab.root / "git events").read_text().splitlines()
    return [event for event in events if '"event":"child_start"' in event or '"event":"exec"' in event]


def test_a_run_opens_no_socket_and_git_starts_no_helper(checkout: Checkout) -> None:
    checkout.git("remote", "add", "origin", "https://invalid.example/pytorch.git")
    checkout.git("update-ref", "refs/remotes/origin/main", "main~1")
    run_without_sockets(checkout).require()
    assert checkout.complete()
    assert git_children(checkout) == []


def test_a_partial_clone_does_not_fetch_behind_the_users_back(lab: Lab) -> None:
    upstream = lab.checkout("upstream")
    upstream.git("config", "uploadpack.allowFilter", "true")
    clone = lab.clone(upstream, "clone", "--filter=blob:none", "--no-checkout")
    run_without_sockets(clone).require(4)
    assert not any("upload-pack" in event for event in git_children(clone))


def test_the_watch_sees_a_socket(checkout: Checkout) -> None:
    """The seeded fault: a planner that phones home."""
    folder = checkout.lab.root / "phones home"
    folder.mkdir()
    fault = "import patchstack.planning.planner as planner\nplanner._select = lambda *args: socket.socket()\n"
    (folder / "sitecustomize.py").write_text(NO_SOCKETS + fault)
    env = {**checkout.lab.env, "PYTHONPATH": f"{folder}{os.pathsep}{checkout.lab.env['PYTHONPATH']}"}
    result = run_command(checkout.arguments(), cwd=checkout.path, env=env)
    result.refused(1, "a socket was opened")
