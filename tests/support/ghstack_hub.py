"""GitHub and a contributor's checkout, with the real ghstack between them.

ghstack's own code runs in this process against its own fake of GitHub, on top of a bare repository. Where ghstack is
not installed, a test that asks for a hub is skipped and says so.
"""

from __future__ import annotations

import asyncio
import copy
import importlib
import subprocess
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from skips import require_packages

_T = TypeVar("_T")
USER = "me"
WHERE = "github.com/pytorch/pytorch.git"
"""End of the bare repository's path: ghstack reads the owner and the name from the address that it pushes to."""

SETTINGS = f"[ghstack]\ngithub_url = github.com\ngithub_username = {USER}\nremote_name = origin\n"


def url_of(number: int) -> str:
    return f"https://github.com/pytorch/pytorch/pull/{number}"


@dataclass(frozen=True)
class Pull:
    """A pull request as GitHub has it.

    Attributes:
        number: its number; the fake begins with 500.
        title: its title.
        base: the branch it is compared with.
        head: the branch it proposes.
        is_open: whether it is open.
        body: its description.
    """

    number: int
    title: str
    base: str
    head: str
    is_open: bool = True
    body: str = field(default="", compare=False)


def pull(number: int, title: str, *, place: int | None = None, is_open: bool = True) -> Pull:
    """The pull request that ghstack makes of a commit; ``place`` is the N of ``gh/me/N``."""
    branches = f"gh/{USER}/{number - 499 if place is None else place}"
    return Pull(number, title, f"{branches}/base", f"{branches}/head", is_open)


class Hub:
    """GitHub, over a bare repository.

    Attributes:
        path: the bare repository; its ``main`` is upstream's.
        env: environment of git.
        github: ghstack's fake.
    """

    def __init__(self, path: Path, env: Mapping[str, str], state: Any = None) -> None:
        require_packages("ghstack", "graphql")
        github_fake = importlib.import_module("ghstack.github_fake")
        assert str(path).endswith(WHERE)
        self.path = path
        self.env = env
        self.github = github_fake.FakeGitHubEndpoint(_shell(path))
        if state is not None:
            self.github.state = copy.deepcopy(state)
            self.github.state.upstream_sh = _shell(path)

    def state(self) -> Any:
        """What GitHub knows, to be given to a hub over a copy of the repository."""
        state = copy.copy(self.github.state)
        state.upstream_sh = None
        return copy.deepcopy(state)

    def git(self, cwd: Path, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd, env=self.env, input=stdin, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
        return done.stdout.rstrip("\n")

    def pulls(self) -> list[Pull]:
        """Every pull request there is, oldest first."""
        return [
            Pull(pr.number, pr.title, pr.baseRefName, pr.headRefName, not pr.closed, pr.body)
            for pr in self.github.state.pull_requests.values()
        ]

    def submit(
        self, clone: Path, *, update_fields: bool = True, username: str = USER, **options: Any
    ) -> dict[str, str]:
        """``ghstack submit`` in a clone: title to what was done, bottom of the stack first.

        Raises:
            RuntimeError: ghstack refuses.
        """
        import ghstack.submit

        work = ghstack.submit.main(
            msg="An update",
            username=username,
            github=self.github,
            sh=_shell(clone),
            check_invariants=options.pop("check_invariants", True),
            short=True,
            update_fields=update_fields,
            **options,
        )
        metas = self._run(work)
        return {meta.elab_diff.diff.title: meta.what for meta in reversed(metas)}

    def checkout(self, clone: Path, number: int) -> None:
        """``ghstack checkout URL`` in a clone."""
        import ghstack.checkout

        self._run(ghstack.checkout.main(url_of(number), self.github, _shell(clone), "origin"))

    def unlink(self, clone: Path) -> None:
        """``ghstack unlink`` in a clone."""
        import ghstack.unlink

        self._run(
            ghstack.unlink.main(github=self.github, sh=_shell(clone), github_url="github.com", remote_name="origin")
        )

    def land(self, clone: Path, number: int) -> str:
        """What the merge bot does: one commit on main that names the pull request, and the pull request closed."""
        place = next(pr.head.removesuffix("/head") for pr in self.pulls() if pr.number == number)
        self.git(clone, "fetch", "-q", "origin")
        orig = f"origin/{place}/orig"
        title, _, rest = self.git(clone, "log", "-1", "--format=%B", orig).partition("\n")
        body = rest.split("ghstack-source-id: ")[0].strip()
        text = f"{title} (#{number})\n\n{body}\n\nPull Request resolved: {url_of(number)}\nApproved by: A. Reviewer\n"
        self.git(clone, "switch", "-q", "--detach", "origin/main")
        self.git(clone, "cherry-pick", orig)
        self.git(clone, "commit", "-q", "--amend", "-F", "-", stdin=text)
        landed = self.git(clone, "rev-parse", "HEAD")
        self.git(clone, "push", "-q", "origin", "HEAD:main")
        self.close(number)
        return landed

    def close(self, number: int) -> None:
        for pr in self.github.state.pull_requests.values():
            pr.closed = pr.closed or pr.number == number

    def reopen(self, number: int) -> None:
        for pr in self.github.state.pull_requests.values():
            pr.closed = pr.closed and pr.number != number

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        async def run() -> _T:
            repository = self.github.state.repository("pytorch", "pytorch")
            if repository.defaultBranchRef is None:
                repository.defaultBranchRef = await repository._make_ref_async(self.github.state, "main")
            return await work

        return asyncio.run(run())


def _shell(path: Path) -> Any:
    from ghstack.shell import Shell

    return Shell(cwd=str(path), testing=True, quiet=True)
