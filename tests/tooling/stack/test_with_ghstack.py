"""The loop a contributor lives in: apply-stack, ghstack, a newer main or a reviewer's wish, apply-stack, ghstack.

ghstack is the real one, on top of its own fake of GitHub and a bare repository.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from checkouts import Checkout, Lab
from checkouts.lab import write_series
from checkouts.sources import TITLES


class Hub:
    """A checkout with an ``origin``, and GitHub behind that.

    Attributes:
        checkout: the contributor's.
        github: ghstack's fake.
    """

    def __init__(self, lab: Lab) -> None:
        github_fake = pytest.importorskip("ghstack.github_fake", reason="not run: pip install ghstack graphql-core")
        from ghstack.shell import Shell

        upstream = lab.clone(lab.checkout("seed"), "upstream.git", "--bare")
        self.checkout = lab.clone(upstream, "checkout")
        self.github = github_fake.FakeGitHubEndpoint(Shell(cwd=str(upstream.path), testing=True, quiet=True))
        self._shell = Shell(cwd=str(self.checkout.path), testing=True, quiet=True)

    async def _submit(self) -> list[Any]:
        import ghstack.submit

        repository = self.github.state.repository("pytorch", "pytorch")
        if repository.defaultBranchRef is None:
            repository.defaultBranchRef = await repository._make_ref_async(self.github.state, "main")
        return list(
            await ghstack.submit.main(
                msg="An update",
                username="me",
                github=self.github,
                sh=self._shell,
                repo_owner_opt="pytorch",
                repo_name_opt="pytorch",
                direct_opt=False,
                check_invariants=True,
                short=True,
                update_fields=True,
            )
        )

    def submit(self) -> list[str]:
        """What ghstack did with each commit, the upper ones first."""
        return [meta.what for meta in asyncio.run(self._submit())]

    def titles(self) -> list[str]:
        """Titles of the open pull requests, oldest first."""
        return [pull.title for pull in self.github.state.pull_requests.values() if not pull.closed]

    def upstream_goes_on(self, text: str) -> None:
        """A commit lands on main, here and there."""
        self.checkout.git("switch", "-q", "main")
        self.checkout.commit("Upstream goes on", {"README.md": text})
        self.checkout.git("push", "-q", "origin", "main")
        self.checkout.git("switch", "-q", "-")


@pytest.fixture
def hub(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Hub:
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    return Hub(lab)


def stack_it(checkout: Checkout) -> list[str]:
    """Run the command and stay on the stack; its warnings."""
    return list(checkout.run("--checkout", "--json").require().json["warnings"])


def test_the_pull_requests_of_the_first_stack_are_updated_by_the_next_ones(hub: Hub) -> None:
    assert stack_it(hub.checkout) == []
    assert hub.submit() == ["Created"] * 3
    for text in ("newer\n", "newest\n"):
        hub.upstream_goes_on(text)
        assert stack_it(hub.checkout) == []
        assert hub.submit() == ["Updated"] * 3
    assert hub.titles() == list(TITLES)


def test_a_reviewers_wish_updates_the_pull_requests_too(hub: Hub) -> None:
    stack_it(hub.checkout)
    hub.submit()
    write_series(hub.checkout.lab.series, {"overlay/docs/fade.md": ("halves", "takes half of")})
    assert stack_it(hub.checkout) == []
    assert "Updated" in hub.submit()
    assert hub.titles() == list(TITLES)


def test_running_again_after_a_submit_leaves_ghstack_nothing_to_do(hub: Hub) -> None:
    stack_it(hub.checkout)
    hub.submit()
    stack_it(hub.checkout)
    assert hub.submit() == ["Skipped"] * 3
    assert hub.checkout.complete()


def test_without_the_first_stack_at_hand_new_pull_requests_would_be_opened(hub: Hub) -> None:
    """The seeded fault: the trailers are all that ties a stack to its pull requests."""
    stack_it(hub.checkout)
    hub.submit()
    hub.checkout.git("switch", "-q", "main")
    hub.checkout.git("branch", "-q", "-D", hub.checkout.branch)
    stack_it(hub.checkout)
    assert hub.submit() == ["Created"] * 3
