"""What the gates say of a mutant."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from patchstack.tree.git import Repository, Tree
from stackproof.gates.table import GATES
from stackproof.model import Finding, GateContext, GateResult

from .kinds import Site, sites
from .targets import Commits, Stage, Target, added_lines, commit_with

CAUGHT, SURVIVED, STILLBORN, UNDECIDED = "caught", "survived", "does not compile", "not decided"
_COMPILER = ("compile", "syntax")
"""Rules of what any compiler refuses too."""
SECONDS = 400
"""For all gates of one mutant. On a busy machine it says nothing of the mutant that they take longer."""
_USUAL_SECONDS = 1800
_NEAR = 3
"""Lines from the mutated one that still count as naming it."""


@dataclass(frozen=True)
class Mutant:
    """One fault in one file, of which ``data`` is the text without it."""

    target: Target
    path: str
    site: Site
    data: bytes

    @property
    def line(self) -> int:
        """Where the fault begins."""
        return self.site.line_in(self.data)

    @property
    def key(self) -> str:
        """What tells its text from all others."""
        content = self.site.made_in(self.data)
        return sha256(b"\0".join([self.target.name.encode(), self.path.encode(), content])).hexdigest()[:20]

    @property
    def unjudged(self) -> Outcome:
        """It, before anything is known."""
        texts = (self.data[self.site.start : self.site.end], self.site.text)
        before, after = (" ".join(text.decode(errors="replace").split()) for text in texts)
        return Outcome(self.key, self.site.kind, self.target.name, self.path, self.line, before, after)


@dataclass(frozen=True)
class Outcome:
    """What the gates said of a mutant.

    Attributes:
        key: of the mutant.
        kind: of the fault.
        target: whose file it is in.
        path: of the file.
        line: in the file.
        before: the text that went.
        after: what took its place.
        word: :data:`CAUGHT`, :data:`SURVIVED`, :data:`STILLBORN` or, where time ran out, :data:`UNDECIDED`.
        gate: that failed.
        rule: of the first of its findings.
        message: of that.
        in_file: whether one of its findings is in the mutated file.
        near: whether one is there at most three lines away.
        seconds: that all gates took.
    """

    key: str
    kind: str
    target: str
    path: str
    line: int
    before: str
    after: str
    word: str = ""
    gate: str = ""
    rule: str = ""
    message: str = ""
    in_file: bool = False
    near: bool = False
    seconds: float = 0.0

    @property
    def place(self) -> str:
        """File and line."""
        return f"{Path(self.path).name}:{self.line}"

    @property
    def change(self) -> str:
        """The difference, in one line."""
        return f"{_short(self.before)} -> {_short(self.after)}"


def _short(text: str) -> str:
    return text if len(text) < 50 else f"{text[:22]} ... {text[-22:]}"


def read_outcome(place: Path) -> Outcome:
    """An outcome that was kept."""
    return Outcome(**json.loads(place.read_text()))


def _keep(place: Path, outcome: Outcome) -> None:
    place.write_text(json.dumps(asdict(outcome), indent=1))


def mutants_of(target: Target, out: Path) -> Iterator[Mutant]:
    """Every mutant of what a target's stack brings."""
    base, head = target.stack(out)
    with Repository.open(target.folder(out)) as repository:
        for path in target.files:
            data = Tree.at(repository, head).read(path) or b""
            lines = added_lines(target.folder(out), base, head, path)
            for site in sites(data):
                if base == head or site.line_in(data) in lines:
                    yield Mutant(target, path, site, data)


class Judge:
    """The gates, what they find of each target without a mutant, and a folder where their answers are kept."""

    def __init__(self, out: Path, jobs: int) -> None:
        self._out, self._jobs = out, jobs

    def place(self, mutant: Mutant) -> Path:
        """Where its outcome is kept."""
        return self._out / f"{mutant.key}.json"

    def judged(self, mutant: Mutant) -> Outcome:
        """Run the gates in a process of their own, which ends in time with all of its own."""
        self._find_usual(mutant.target)
        place, started = self.place(mutant), time.monotonic()
        place.unlink(missing_ok=True)
        if not _done_in_time(lambda: _keep(place, self._run(mutant)), SECONDS):
            text = f"the gates did not end within {SECONDS} seconds"
            _keep(place, replace(mutant.unjudged, word=UNDECIDED, message=text))
        if not place.exists():
            raise SystemExit(f"the gates ended without an answer for {mutant.unjudged.place}, {mutant.unjudged.change}")
        outcome = replace(read_outcome(place), seconds=round(time.monotonic() - started, 1))
        _keep(place, outcome)
        return outcome

    def _find_usual(self, target: Target) -> None:
        """Keep what the gates find of a target as it is; a process that has run gates must not be forked."""
        place = self._out / f"usual-{target.name}.json"

        def find() -> None:
            results = self._results(target, target.whole(self._out), target.stages())
            found = {_about(one) for result in results for one in result.findings if one.fails}
            place.write_text(json.dumps(sorted(found), indent=1))

        if not place.exists() and not (_done_in_time(find, _USUAL_SECONDS) and place.exists()):
            raise SystemExit(f"the gates ended without an answer for {target.name} without a mutant")

    def _usual(self, target: Target) -> set[tuple[str, str]]:
        """What the gates find of a target as it is, by rule and message; figures in messages do not count."""
        place = self._out / f"usual-{target.name}.json"
        return {(rule, _without_figures(text)) for rule, text in json.loads(place.read_text())}

    def _run(self, mutant: Mutant) -> Outcome:
        target, usual = mutant.target, self._usual(mutant.target)
        base, head = target.stack(self._out)
        files = {mutant.path: mutant.site.made_in(mutant.data)}
        commit = commit_with(target.folder(self._out), head, base, files)
        for result in self._results(target, (base, commit), target.stages(mutant.path)):
            found = [one for one in result.findings if one.fails and _about(one) not in usual]
            if found:
                return _caught(mutant, result.name, found)
        return replace(mutant.unjudged, word=SURVIVED)

    def _results(self, target: Target, commits: Commits, stages: Sequence[Stage]) -> Iterator[GateResult]:
        specs = {spec.name: spec for spec in GATES}
        with Repository.open(target.folder(self._out)) as repository:
            context = GateContext(repository, *commits, self._out / "cache", jobs=self._jobs)
            for name, options in stages:
                yield specs[name].judge(context, specs[name].options_of(options))


def _done_in_time(work: Callable[[], None], seconds: float) -> bool:
    """Whether work ends in time in a process of its own, which is ended otherwise, with all that it started.

    It does not tidy up behind itself: its temporary files are in a folder that goes.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-", ignore_cleanup_errors=True) as scratch:
        child = os.fork()
        if not child:
            _work_and_end(work, scratch)
        with contextlib.suppress(OSError):  # the process may have done it, or be gone
            os.setpgid(child, child)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if os.waitpid(child, os.WNOHANG)[0]:
                return True
            time.sleep(0.05)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return False


def _work_and_end(work: Callable[[], None], scratch: str) -> NoReturn:
    """Do the work in a process that was forked for it; what goes wrong is printed."""
    try:
        os.setpgid(0, 0)
        os.environ["TMPDIR"] = tempfile.tempdir = scratch
        work()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(0)


def _about(finding: Finding) -> tuple[str, str]:
    return finding.rule, _without_figures(finding.message)


def _without_figures(message: str) -> str:
    """A message without figures and without how many others there are, which a mutant may change in an old one."""
    return re.sub(r"\d[\d.,e+-]*|\binf\b|\bnan\b", "#", re.sub(r" \(\S+ more like it\)\Z", "", message))


def _caught(mutant: Mutant, gate: str, found: Sequence[Finding]) -> Outcome:
    first = min(found, key=lambda one: (one.rule in _COMPILER, one.rule == "not-run"))
    here = [one.line for one in found if one.path == mutant.path]
    last = mutant.line + mutant.data.count(b"\n", mutant.site.start, mutant.site.end)
    return replace(
        mutant.unjudged,
        word=STILLBORN if first.rule in _COMPILER else CAUGHT,
        gate=gate,
        rule=first.rule,
        message=first.message[:300],
        in_file=bool(here),
        near=any(mutant.line - _NEAR <= line <= last + _NEAR for line in here if line),
    )
