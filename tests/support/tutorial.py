"""Pages of the tutorial, followed as a reader would: files are written, commands typed, and what they print compared.

A fenced block with a title is a file. In a ``console`` block a line that begins with ``$`` is a command, and the lines
below it are what it prints; ``...`` stands for any lines, or for the rest of a line. Hashes, days, fractions and the
folders of the reader are made the same on both sides. ``ghstack`` is ghstack's own code with its fake of GitHub.

``python tests/support/tutorial.py --write`` puts what the commands print now into the pages.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from ghstack_hub import SETTINGS, Hub, url_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "docs/tutorial/first-stack.md", ROOT / "docs/tutorial/your-own-op.md")
HOME = "/home/you"
_FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_VOLATILE = (
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b"), "HASH"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"\b\d+\.\d+\b"), "N"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Step:
    """A file to write, or a command to type.

    Attributes:
        file: path of the file below the reader's home; empty for a command.
        text: the file's text, or the command.
        printed: what the page says that the command prints.
    """

    file: str
    text: str
    printed: str = ""


@dataclass(frozen=True)
class Answer:
    """What became of a command."""

    step: Step
    status: int
    printed: str
    seconds: float

    @property
    def differs(self) -> str:
        """Why the page is not what happened; empty where it is."""
        if self.status:
            return f"$ {self.step.text}\nended with status {self.status}:\n{self.printed}"
        if not same(self.step.printed, self.printed):
            return f"$ {self.step.text}\nthe page has:\n{self.step.printed}\nit printed:\n{self.printed}"
        return ""


def steps(page: str) -> Iterator[Step]:
    """What a page asks for, in its order."""
    for block in _FENCE.finditer(page):
        language, title, body = block.groups()
        if title:
            yield Step(title, body)
        elif language == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                lines = part.split("\n")
                count = next(n for n, line in enumerate(lines) if not line.endswith("\\")) + 1
                yield Step("", "\n".join(lines[:count]), "\n".join(lines[count:]).strip("\n"))


def same(page: str, printed: str) -> bool:
    """Whether a command printed what the page says."""
    return _matches([_plain(line) for line in page.splitlines()], [_plain(line) for line in printed.splitlines()])


def _plain(line: str) -> str:
    for pattern, word in _VOLATILE:
        line = pattern.sub(word, line)
    return line.strip()


def _matches(page: Sequence[str], printed: Sequence[str]) -> bool:
    if not page:
        return not printed
    if page[0] == "...":
        return any(_matches(page[1:], printed[start:]) for start in range(len(printed) + 1))
    if not printed:
        return False
    begin, cut, rest = page[0].partition("...")
    one = printed[0].startswith(begin) and not rest if cut else printed[0] == page[0]
    return one and _matches(page[1:], printed[1:])


class Reader:
    """Somebody who follows pages in a home of their own.

    Attributes:
        home: their home, which is also where they begin.
        hub: GitHub.
    """

    def __init__(self, home: Path, cache: Path) -> None:
        self.home, self._cache, self._folder = home, cache, home
        home.mkdir(parents=True, exist_ok=True)
        name = "[user]\n\tname = A Reader\n\temail = reader@example.org\n[init]\n\tdefaultBranch = main\n"
        (home / ".gitconfig").write_text(name + "[advice]\n\tdetachedHead = false\n")
        self.env = {
            **{name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "PATCHSTACK_CACHE": str(cache),
            "GIT_CONFIG_NOSYSTEM": "1",
            "COLUMNS": "120",
        }
        self._upstream = home / "github.com/pytorch/pytorch.git"
        self._hub: Hub | None = None

    def follow(self, page: str) -> Iterator[Answer]:
        """Do what a page asks for, command by command."""
        for step in steps(page):
            if step.file:
                file = self.home / step.file
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(step.text)
            else:
                yield self.type(step)

    def type(self, step: Step) -> Answer:
        """Type one command."""
        started = time.perf_counter()
        if step.text == "ghstack":
            status, printed = self._ghstack()
        elif step.text.startswith("git remote set-url origin "):
            status, printed = self._meet_github()
        else:
            status, printed = self._shell(step.text)
        printed = printed.replace(str(self._cache), f"{HOME}/.cache/patchstack").replace(str(self.home), HOME)
        return Answer(step, status, printed.strip("\n"), time.perf_counter() - started)

    def _shell(self, command: str) -> tuple[int, str]:
        where = self.home / ".folder"
        script = f"{command}\nstatus=$?; pwd > {where}; exit $status"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self._folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self._folder = Path(where.read_text().strip()) if where.exists() else self._folder
        return done.returncode, done.stdout

    def _meet_github(self) -> tuple[int, str]:
        """Let ``origin`` be a fake of GitHub with the clone's ``main``."""
        self._upstream.parent.mkdir(parents=True)
        self._git("clone", "-q", "--bare", "--single-branch", "--branch", "main", ".", str(self._upstream))
        self._git("remote", "set-url", "origin", f"file://{self._upstream}")
        self._git("fetch", "-q", "--prune", "origin")
        (self.home / ".ghstackrc").write_text(SETTINGS)
        self._hub = Hub(self._upstream, self.env)
        return 0, ""

    def _ghstack(self) -> tuple[int, str]:
        """Type ``ghstack``: what became of each commit, oldest pull request first."""
        assert self._hub, "origin is not GitHub yet"
        with mock.patch.dict(os.environ, self.env, clear=True), contextlib.redirect_stdout(io.StringIO()):
            done = self._hub.submit(self._folder)
        return 0, "".join(f"{done[one.title]:<8} {url_of(one.number)}  {one.title}\n" for one in self._hub.pulls())

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self._folder, env=self.env, check=True)


def rewritten(page: str, answers: Sequence[Answer]) -> str:
    """The page with what its commands print now."""
    done, rest = "", page
    for answer in answers:
        old, new = (
            f"$ {answer.step.text}\n{text}".rstrip("\n") + "\n" for text in (answer.step.printed, answer.printed)
        )
        before, found, rest = rest.partition(old)
        assert found, answer.step.text
        done += before + (new if answer.differs else old)
    return done + rest


def main() -> int:
    """Follow the pages, and say what differs from them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--write", action="store_true", help="put what the commands print into the pages")
    parser.add_argument("--cache", type=Path, help="cache folder (default: an empty one)")
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        for page in PAGES:
            reader = Reader(Path(folder) / page.stem, options.cache or Path(folder) / "cache")
            answers = []
            for answer in reader.follow(page.read_text()):
                answers.append(answer)
                print(f"{answer.seconds:6.1f} s  {answer.step.text}", flush=True)
                if answer.differs and not options.write:
                    print(answer.differs)
                if answer.status:
                    print(answer.printed)
                bad += bool(answer.differs)
            if options.write:
                page.write_text(rewritten(page.read_text(), answers))
        print(f"{time.perf_counter() - started:6.1f} s in all; {bad} commands differ from the pages")
    return 0 if options.write else min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
