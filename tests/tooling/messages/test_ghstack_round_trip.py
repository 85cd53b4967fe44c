"""The real ghstack submits our messages, against its own fake of GitHub and a bare repository."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ghstack.submit
import pytest
from ghstack.github_fake import FakeGitHubEndpoint
from ghstack.shell import Shell

from patchstack.git import Repository
from patchstack.messages import CoAuthor, GhstackTrailers, Message, OldMessage, carry, check_series, extract

from .conftest import Sandbox

TITLES = {"first": "[MPS] Add first", "second": "[MPS] Add second"}
ADA = CoAuthor("Ada", "ada@example.com")


@dataclass(frozen=True)
class Workshop:
    """A contributor's clone, the repository it pushes to, and the fake GitHub on top of that.

    Attributes:
        clone: where the stack is made; its ``origin`` is a bare repository.
        hub: ghstack's fake of GitHub.
    """

    clone: Sandbox
    hub: FakeGitHubEndpoint

    @classmethod
    async def open(cls, folder: Path) -> Workshop:
        folder.mkdir(exist_ok=True)
        here = Sandbox(folder)
        here.git("init", "-q", "--bare", "-b", "main", "upstream.git")
        here.git("clone", "-q", "upstream.git", "clone")
        clone = Sandbox(folder / "clone")
        clone.git("checkout", "-q", "-B", "main")
        base = clone.text_commit("base\n", "Base\n")
        clone.git("reset", "-q", "--hard", base)
        clone.git("push", "-q", "origin", "main")
        hub = FakeGitHubEndpoint(Shell(cwd=str(folder / "upstream.git"), testing=True, quiet=True))
        repository = hub.state.repository("pytorch", "pytorch")
        repository.defaultBranchRef = await repository._make_ref_async(hub.state, "main")
        return cls(clone, hub)

    def build(self, revision: int, carried: Mapping[str, GhstackTrailers]) -> None:
        """Put a stack of two commits on ``origin/main``, as the tool would."""
        messages = [
            Message(title, f"Body of revision {revision}.\n", (ADA,), carried.get(change, GhstackTrailers()))
            for change, title in TITLES.items()
        ]
        assert check_series(messages) == ()
        parent, files = self.clone.line("rev-parse", "origin/main"), {"file.txt": ("100644", b"base\n")}
        for message, change in zip(messages, TITLES, strict=True):
            files[change] = ("100644", f"{change} {revision}\n".encode())
            parent = self.clone.commit(self.clone.tree(files), message.render(), parent)
        self.clone.git("checkout", "-q", "-B", "stack")
        self.clone.git("reset", "-q", "--hard", parent)

    async def submit(self) -> list[Any]:
        return await ghstack.submit.main(
            msg="An update",
            username="me",
            github=self.hub,
            sh=Shell(cwd=str(self.clone.path), testing=True, quiet=True),
            repo_owner_opt="pytorch",
            repo_name_opt="pytorch",
            direct_opt=False,
            check_invariants=True,
            short=True,
            update_fields=True,
        )

    def stack(self) -> list[OldMessage]:
        """The stack as ghstack left it, oldest first."""
        with Repository.open(self.clone.path) as repository:
            hashes = repository.text("rev-list", "--reverse", "origin/main..stack").split()
            return [OldMessage(repository.commit(hash_).message, commit=hash_) for hash_ in hashes]

    def open_pull_requests(self) -> list[Any]:
        return [pull for pull in self.hub.state.pull_requests.values() if not pull.closed]


async def _twice(folder: Path, *, with_trailers: bool) -> tuple[Workshop, list[str]]:
    """Submit, regenerate and submit again; what ghstack says it did the second time."""
    shop = await Workshop.open(folder)
    shop.build(1, {})
    await shop.submit()
    carried = carry(shop.stack(), TITLES).by_change
    assert set(carried) == set(TITLES)
    shop.build(2, carried if with_trailers else {})
    return shop, [meta.what for meta in await shop.submit()]


async def _once(folder: Path) -> Workshop:
    shop = await Workshop.open(folder)
    shop.build(1, {})
    await shop.submit()
    return shop


def test_a_first_submit_makes_one_pull_request_for_each_message(tmp_path: Path) -> None:
    shop = asyncio.run(_once(tmp_path / "once"))
    pulls = shop.open_pull_requests()
    assert [pull.title for pull in pulls] == list(TITLES.values())
    for pull in pulls:
        assert "Body of revision 1." in pull.body
        assert ADA.trailer() in pull.body
        assert "ghstack-source-id" not in pull.body
    rendered = [
        Message(title, "Body of revision 1.", (ADA,), extract(old.text)).render()
        for title, old in zip(TITLES.values(), shop.stack(), strict=True)
    ]
    assert [old.text.rstrip("\n") + "\n" for old in shop.stack()] == rendered


def test_a_regenerated_stack_with_its_trailers_updates_the_same_pull_requests(tmp_path: Path) -> None:
    shop, what = asyncio.run(_twice(tmp_path / "carried", with_trailers=True))
    assert what == ["Updated", "Updated"]
    assert [pull.title for pull in shop.open_pull_requests()] == list(TITLES.values())
    assert all("Body of revision 2." in pull.body for pull in shop.open_pull_requests())


def test_without_its_trailers_a_regenerated_stack_opens_new_pull_requests(tmp_path: Path) -> None:
    shop, what = asyncio.run(_twice(tmp_path / "bare", with_trailers=False))
    assert what == ["Created", "Created"]
    assert len(shop.open_pull_requests()) == 4


def test_a_wrong_source_id_is_refused_by_ghstack(tmp_path: Path) -> None:
    async def stale() -> None:
        shop = await _once(tmp_path / "stale")
        carried = carry(shop.stack(), TITLES).by_change
        wrong = {
            change: GhstackTrailers(("ghstack-source-id: " + "d" * 40, trailers.lines[-1]))
            for change, trailers in carried.items()
        }
        shop.build(2, wrong)
        await shop.submit()

    with pytest.raises(RuntimeError, match="Cowardly refusing"):
        asyncio.run(stale())
