"""A contributor's checkout of a small tree, and GitHub behind its ``origin``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from checkouts import Checkout, Lab, Run
from checkouts.fixtures import checkout, lab, plain_tip, seed, warm
from ghstack_hub import SETTINGS, WHERE, Hub, Pull

__all__ = ["checkout", "lab", "plain_tip", "seed", "warm"]


@dataclass(frozen=True)
class Contributor:
    """Somebody who lives with a stack: apply-stack, ghstack, and again.

    Attributes:
        checkout: their clone.
        hub: GitHub.
    """

    checkout: Checkout
    hub: Hub

    @property
    def path(self) -> Path:
        return self.checkout.path

    def apply(self, *more: str) -> Any:
        """Regenerate the stack and stay on it; the report."""
        return self.checkout.run("--checkout", "--json", *more).require().json

    def submit(self, **options: Any) -> dict[str, str]:
        """``ghstack submit``: title to what was done, bottom first."""
        return self.hub.submit(self.path, **options)

    def check(self, *more: str) -> Run:
        """``apply-stack submit-check --json``."""
        arguments = ["submit-check", "--repo", str(self.path), "--json", *more]
        self.checkout.lab.start(arguments, env=self.checkout.env)
        return self.checkout.lab.finish()

    def submit_as_predicted(self, **options: Any) -> dict[str, str]:
        """Submit, and assert that ghstack does what submit-check said it would."""
        told = self.check().require().json["commits"]
        predicted = {item["title"]: item["action"] for item in told if item["action"] not in ("Empty", "Landed")}
        places = {item["title"]: item["place"] for item in told if item["action"] == "Created"}
        done = self.submit(**options)
        assert done == predicted
        by_title: dict[str, Pull] = {pr.title: pr for pr in self.hub.pulls() if pr.is_open}
        assert {title: by_title[title].head for title in places} == {t: f"{p}/head" for t, p in places.items()}
        return done

    def upstream_goes_on(self, text: str) -> None:
        """A commit lands on main, there and here."""
        self.checkout.git("switch", "-q", "main")
        self.checkout.git("pull", "-q", "--ff-only", "origin", "main")
        self.checkout.commit("Upstream goes on", {"README.md": text})
        self.checkout.git("push", "-q", "origin", "main")

    def pull_main(self) -> None:
        """Bring the local main up to date."""
        self.checkout.git("switch", "-q", "main")
        self.checkout.git("pull", "-q", "--ff-only", "origin", "main")

    def another_clone(self, name: str = "other") -> Path:
        """A clone of somebody else's, with all of ghstack's branches."""
        return self.checkout.lab.clone(Checkout(self.checkout.lab, self.hub.path, self.hub.path), name).path

    def forget(self, *what: str) -> None:
        """Lose what the clone knows of earlier stacks: ``reflogs``, ``record``."""
        if "reflogs" in what:
            self.checkout.git("reflog", "expire", "--expire=now", "--all")
        if "record" in what:
            (self.checkout.git_dir / "apply-stack" / "made.jsonl").unlink()


@pytest.fixture
def contributor(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Contributor:
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    return new_contributor(lab)


def new_contributor(lab: Lab) -> Contributor:
    """One with a clone that has nothing of the stack yet."""
    (lab.root / WHERE).parent.mkdir(parents=True)
    upstream = lab.clone(lab.checkout("seed"), WHERE, "--bare")
    (lab.home / ".ghstackrc").write_text(SETTINGS)
    return Contributor(lab.clone(upstream, "checkout"), Hub(upstream.path, lab.env))
