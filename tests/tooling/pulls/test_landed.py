"""What has landed is found in the messages of upstream's commits, whatever else is looked for."""

from __future__ import annotations

import pytest

from checkouts import Checkout
from patchstack.pulls.landed import find_landings
from patchstack.tree.git import Repository

URL = "https://github.com/pytorch/pytorch/pull/7"


@pytest.mark.parametrize("bad", ["https://github.com/a\0b/pull/8", "https://github.com/a/pull/8\nx", "no address"])
def test_an_address_that_no_commit_can_have_does_not_hide_the_others(checkout: Checkout, bad: str) -> None:
    commit = checkout.commit(f"Landed\n\nPull Request resolved: {URL}", {"README.md": "newer\n"})
    with Repository.open(checkout.path) as repository:
        onto = repository.commit("main").hash
        landed = find_landings(repository, {URL, bad}, onto, [])
        assert find_landings(repository, {bad}, onto, []) == {}
    assert {url: landing.commit for url, landing in landed.items()} == {URL: commit.strip()}
