"""A contributor's checkout of a small tree, and GitHub behind its ``origin``."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from checkouts import Checkout, Lab, Run
from checkouts.fixtures import checkout, lab, plain_tip, seed, warm
from checkouts.warm import WarmCommand
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


@dataclass(frozen=True)
class Template:
    """A contributor to be copied, as to make one anew takes a second.

    Attributes:
        folder: holds GitHub's repository, the clone and the settings.
        state: ghstack's fake of GitHub, without the folder it is tied to.
    """

    folder: Path
    state: Any


def new_contributor(lab: Lab) -> Contributor:
    """One with a clone that has nothing of the stack yet."""
    (lab.root / WHERE).parent.mkdir(parents=True)
    upstream = lab.clone(lab.checkout("seed"), WHERE, "--bare")
    (lab.home / ".ghstackrc").write_text(SETTINGS)
    return Contributor(lab.clone(upstream, "checkout"), Hub(upstream.path, lab.env))


def copied(template: Template, lab: Lab) -> Contributor:
    """The same contributor at another place."""
    shutil.copytree(template.folder / WHERE, lab.root / WHERE)
    shutil.copytree(template.folder / "checkout", lab.root / "checkout", symlinks=True)
    (lab.home / ".ghstackrc").write_text(SETTINGS)
    path = lab.root / "checkout"
    lab.git(path, "config", "remote.origin.url", f"file://{lab.root / WHERE}")
    lab.git(path, "status")  # the copied files have new times: refresh the index now, not in a test
    return Contributor(Checkout(lab, path, path / ".git"), Hub(lab.root / WHERE, lab.env, template.state))


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory, seed: Path, warm: WarmCommand) -> dict[str, Template]:
    """Contributors at three points: before the first run, before the first submit, after it."""
    lab = Lab(tmp_path_factory.mktemp("templates") / "lab", seed, warm)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in lab.env.items():
            patch.setenv(name, value)
        contributor = new_contributor(lab)
        made = {"new": _template(contributor, lab.root / "new")}
        contributor.apply()
        made["stacked"] = _template(contributor, lab.root / "stacked")
        contributor.submit()
        made["submitted"] = _template(contributor, lab.root / "submitted")
    return made


def _template(contributor: Contributor, folder: Path) -> Template:
    shutil.copytree(contributor.hub.path, folder / WHERE)
    shutil.copytree(contributor.path, folder / "checkout", symlinks=True)
    return Template(folder, contributor.hub.state())


@pytest.fixture
def alone(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the user's configuration reaches ghstack, which runs in this process."""
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def contributor(templates: dict[str, Template], lab: Lab, alone: None) -> Contributor:
    """One with a clone that has nothing of the stack yet."""
    return copied(templates["new"], lab)


@pytest.fixture
def stacked(templates: dict[str, Template], lab: Lab, alone: None) -> Contributor:
    """One on a stack of three that was never submitted."""
    return copied(templates["stacked"], lab)


@pytest.fixture
def submitted(templates: dict[str, Template], lab: Lab, alone: None) -> Contributor:
    """One on a stack of three that is submitted."""
    return copied(templates["submitted"], lab)
