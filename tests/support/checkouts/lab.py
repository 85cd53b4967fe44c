"""A home folder, a series and checkouts to run the command in, alone in the world."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import patchstack
from checkouts import sources
from checkouts.snapshot import Snapshot
from checkouts.warm import Start, WarmCommand
from documents import document

BRANCH = "stack/fade"
NAME, EMAIL = "Paint Er", "paint.er@example.com"
_SEED_TIME = 1_700_000_000
SOURCE = Path(patchstack.__file__).resolve().parent.parent


@dataclass(frozen=True)
class Run:
    """One run of the command.

    Attributes:
        status: exit status, negative for a signal.
        out: standard output.
        err: standard error.
    """

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON, which is what its schema says."""
        return document(self.out)

    def require(self, status: int = 0) -> Run:
        """This run, if it ended with ``status``."""
        assert self.status == status, f"status {self.status}\n{self.out}\n{self.err}"
        return self

    def refused(self, status: int, *words: str) -> str:
        """The complaint of a run that ended with ``status`` and one line that has all ``words``."""
        self.require(status)
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, f"one sentence expected:\n{self.err}"
        assert lines[0].startswith("apply-stack: ")
        assert "Traceback" not in self.err
        for word in words:
            assert word in lines[0], f"'{word}' is not in: {lines[0]}"
        return lines[0]


class Lab:
    """The world around the checkouts of one test.

    Attributes:
        root: a folder of the test's own.
        series: folder of the series ``fade``.
        env: environment of every command.
    """

    def __init__(self, root: Path, seed: Path, warm: WarmCommand) -> None:
        self.root = root
        self.warm = warm
        self._seed = seed
        self.home = root / "home"
        self.home.mkdir(parents=True)
        (self.home / ".gitconfig").write_text(f"[user]\n\tname = {NAME}\n\temail = {EMAIL}\n")
        self.series = write_series(root / "fade")
        self.env = environment(self.home)

    def checkout(self, name: str = "checkout") -> Checkout:
        """A clean checkout of ``main``: two commits, no remote."""
        return self.copy(Checkout(self, self._seed, self._seed / ".git"), name)

    def copy(self, original: Checkout, name: str) -> Checkout:
        """The same again at another place."""
        path = self.root / name
        shutil.copytree(original.path, path, symlinks=True)
        checkout = Checkout(self, path, path / ".git")
        checkout.git("status")  # the copied files have new times: refresh the index now, not in a test
        return checkout

    def repository(self, name: str, *options: str) -> Checkout:
        """The same tree in a repository that ``git init`` makes with ``options``."""
        path = self.root / name
        self.git(self.root, "init", "-q", "-b", "main", "--template=", *options, str(path))
        write_tree(path)
        checkout = Checkout(self, path, path / ".git")
        checkout.git("add", "-A")
        checkout.git("commit", "-q", "-m", "The tree")
        return checkout

    def clone(self, source: Checkout, name: str, *options: str) -> Checkout:
        """``git clone`` through the file transport, as from a server."""
        path = self.root / name
        self.git(self.root, "clone", "-q", *options, f"file://{source.path}", str(path))
        bare = "--bare" in options
        return Checkout(self, path, path if bare else path / ".git", has_files=not bare)

    def run(self, *arguments: str) -> Run:
        """Run ``apply-stack`` with exactly these arguments, in the lab's folder."""
        self.start(arguments)
        return self.finish()

    def start(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        umask: int = -1,
    ) -> int:
        """Begin a run; its process id."""
        whole = {**self.env, **(env or {})}
        return self.warm.start(Start(arguments, str(cwd or self.root), whole, str(self.root / "output"), umask))

    def finish(self) -> Run:
        """Wait for the run to end."""
        status = self.warm.wait()
        out, err = ((self.root / f"output.{end}").read_text(errors="surrogateescape") for end in ("out", "err"))
        return Run(status, out, err)

    def git(self, cwd: Path, *arguments: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
        """Run git, which must succeed; its output without the last line feed."""
        done = self.try_git(cwd, *arguments, stdin=stdin, env=env)
        assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout.rstrip("\n")

    def try_git(
        self, cwd: Path, *arguments: str, stdin: str | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run git, whatever it says."""
        return subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            env={**self.env, **(env or {})},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            check=False,
        )


@dataclass(frozen=True)
class Checkout:
    """A repository to apply the series to.

    Attributes:
        lab: the world it is in.
        path: top of the checkout, or the bare repository.
        git_dir: the git directory that its worktrees share.
        has_files: whether there is a working directory.
        branch: short name of the branch that runs write.
        env: environment of the runs here, on top of the lab's.
        may_change: more of the git directory that holds the branch.
    """

    lab: Lab
    path: Path
    git_dir: Path
    has_files: bool = True
    branch: str = BRANCH
    env: Mapping[str, str] = field(default_factory=dict)
    may_change: tuple[str, ...] = ()

    def git(self, *arguments: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
        return self.lab.git(self.path, *arguments, stdin=stdin, env=env)

    def try_git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.lab.try_git(self.path, *arguments)

    def commit(self, message: str, files: Mapping[str, str], *options: str) -> str:
        """Write files, commit them on whatever is checked out; the new commit."""
        for name, text in files.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, *options)
        return self.tip("HEAD")

    def tip(self, ref: str = "") -> str:
        """The commit of a ref (the stack's branch by default); empty where there is none."""
        return self.try_git("rev-parse", "--verify", "-q", ref or f"refs/heads/{self.branch}").stdout.strip()

    def arguments(self, *more: str, onto: str = "main") -> list[str]:
        """The command line of a run, with the lab's series unless another one is given."""
        own = [] if "--series" in more else ["--series", str(self.lab.series)]
        return ["--onto", onto, "--repo", str(self.path), *own, *more]

    def run(
        self,
        *more: str,
        onto: str = "main",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        umask: int = -1,
    ) -> Run:
        """Run ``apply-stack`` here, in another process."""
        self.start(*more, onto=onto, cwd=cwd, env=env, umask=umask)
        return self.lab.finish()

    def start(
        self,
        *more: str,
        onto: str = "main",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        umask: int = -1,
    ) -> int:
        """Begin a run; its process id."""
        whole = {**self.env, **(env or {})}
        return self.lab.start(self.arguments(*more, onto=onto), cwd=cwd, env=whole, umask=umask)

    def titles(self, tip: str = "") -> list[str]:
        """Titles of the commits above ``main``, bottom first."""
        return self.git("log", "--reverse", "--format=%s", f"main..{tip or self.branch}").splitlines()

    def complete(self) -> bool:
        """Whether the branch holds the whole stack, with every object at hand."""
        tip = self.tip()
        if not tip or self.try_git("rev-list", "--objects", "--quiet", tip).returncode:
            return False
        return self.titles(tip)[-len(sources.TITLES) :] == list(sources.TITLES)

    def faults(self) -> str:
        """What ``git fsck`` has to say against the repository; dangling objects are none."""
        done = self.try_git("fsck", "--full", "--strict", "--no-dangling", "--no-progress")
        return done.stdout + done.stderr if done.returncode else ""

    def snapshot(self) -> Snapshot:
        """Everything a successful run may not touch: all but objects, the tool's folder and the one branch."""
        may_change = [f"{folder}refs/heads/{self.branch}" for folder in ("", "logs/")]
        state = Snapshot.of(self.git_dir, leave_out=["objects", "apply-stack", *may_change, *self.may_change])
        return state.joined(Snapshot.of(self.path, leave_out=[".git"])) if self.has_files else state

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Assert that the block leaves alone everything but new objects, the tool's folder and the one branch."""
        before, objects = self.snapshot(), self._objects()
        yield
        before.require_same(self.snapshot())
        objects.require_kept(self._objects())

    @contextmanager
    def nothing_written(self) -> Iterator[None]:
        """Assert that the block leaves every file of the checkout and of its git directory alone."""
        folders = [self.git_dir, *([self.path] if self.has_files else [])]
        before = Snapshot.of(*folders)
        yield
        before.require_same(Snapshot.of(*folders))

    @contextmanager
    def nothing_written_but(self, folder: str) -> Iterator[None]:
        """Likewise, with the exception of one folder of the git directory."""
        files = Snapshot.of(self.path, leave_out=[".git"])
        before = files.joined(Snapshot.of(self.git_dir, leave_out=[folder]))
        yield
        files = Snapshot.of(self.path, leave_out=[".git"])
        before.require_same(files.joined(Snapshot.of(self.git_dir, leave_out=[folder])))

    @contextmanager
    def branch_kept(self) -> Iterator[None]:
        """Assert that a refused run leaves the branch where it was, and everything else alone."""
        before = self.tip()
        with self.untouched():
            yield
        assert self.tip() == before, f"the branch moved from {before} to {self.tip()}"

    def _objects(self) -> Snapshot:
        return Snapshot.of(self.git_dir / "objects", times=False)  # git gives an object that it needs again a new time


def run_command(arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Run:
    """Run ``apply-stack`` as a user's shell would."""
    done = subprocess.run(
        command_line(arguments),
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        timeout=60,
    )
    return Run(done.returncode, done.stdout, done.stderr)


def command_line(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "patchstack.cli", *arguments]


def environment(home: Path) -> dict[str, str]:
    """Nothing of the user's configuration reaches a test, and nothing of a test reaches the user's cache."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "SYSTEMROOT") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "PATCHSTACK_CACHE": str(home / "cache"),
        "PYTHONPATH": str(SOURCE),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }


def write_series(folder: Path, edits: Mapping[str, tuple[str, str]] | None = None) -> Path:
    """Write the series; ``edits`` replaces one text by another in the files it names."""
    texts = {"series.yaml": sources.MANIFEST, **sources.MESSAGES}
    texts.update({f"overlay/{path}": text for path, text in sources.OVERLAY.items()})
    for name, (old, new) in (edits or {}).items():
        assert old in texts[name]
        texts[name] = texts[name].replace(old, new)
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def write_tree(path: Path) -> None:
    """The files of the tree: of every kind that git knows."""
    for name, content in sources.TREE.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (path / "run.sh").write_text("#!/bin/sh\n")
    (path / "run.sh").chmod(0o755)
    (path / "link").symlink_to("README.md")


def write_seed(path: Path) -> Path:
    """The repository that every checkout is a copy of."""
    home = path.parent / "home"
    home.mkdir()
    lab_env = environment(home)
    lab_env.update({f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _WHO.items()})

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=path, env=lab_env, check=True, capture_output=True)

    path.mkdir()
    git("init", "-q", "-b", "main", "--template=")
    write_tree(path)
    git("add", "-A")
    git("commit", "-q", "-m", "The first commit")
    (path / "README.md").write_text("A tree for tests, with a history.\n")
    git("commit", "-q", "-a", "-m", "The second commit")
    return path


_WHO = {"NAME": "Up Stream", "EMAIL": "up@example.com", "DATE": f"{_SEED_TIME} +0000"}
