"""Hooks, signing, conversions and an environment that point elsewhere: none of it changes what a run makes."""

from __future__ import annotations

import dataclasses
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from checkouts import Checkout
from checkouts.lab import EMAIL, NAME

Setting = Callable[[Checkout], Checkout]
SETTINGS: dict[str, Setting] = {}
HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-rewrite")


def setting(make: Setting) -> Setting:
    """Register a setting under its name."""
    SETTINGS[make.__name__.replace("_", " ")] = make
    return make


def write_hook(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def configured(checkout: Checkout, *settings: str) -> Checkout:
    """Set ``key=value`` in the repository's own configuration."""
    for text in settings:
        key, _, value = text.partition("=")
        checkout.git("config", key, value)
    return checkout


@setting
def hooks_that_fail(checkout: Checkout) -> Checkout:
    for name in HOOKS:
        write_hook(checkout.git_dir / "hooks", name, "echo no >&2; exit 1")
    return checkout


@setting
def hooks_that_fail_from_another_folder(checkout: Checkout) -> Checkout:
    for name in HOOKS:
        write_hook(checkout.lab.root / "hooks", name, "exit 1")
    return configured(checkout, f"core.hooksPath={checkout.lab.root / 'hooks'}")


@setting
def a_hook_that_watches_refs_and_agrees(checkout: Checkout) -> Checkout:
    write_hook(checkout.git_dir / "hooks", "reference-transaction", "cat > /dev/null; exit 0")
    return checkout


@setting
def line_endings_converted(checkout: Checkout) -> Checkout:
    return configured(checkout, "core.autocrlf=true", "core.safecrlf=true", "core.eol=crlf")


@setting
def filters_and_attributes(checkout: Checkout) -> Checkout:
    (checkout.git_dir / "info").mkdir(exist_ok=True)
    (checkout.git_dir / "info" / "attributes").write_text("* text filter=shout ident working-tree-encoding=UTF-16\n")
    return configured(checkout, "filter.shout.clean=tr a-z A-Z", "filter.shout.required=true")


@setting
def rerere(checkout: Checkout) -> Checkout:
    return configured(checkout, "rerere.enabled=true", "rerere.autoupdate=true")


@setting
def messages_in_latin1(checkout: Checkout) -> Checkout:
    return configured(checkout, "i18n.commitEncoding=ISO-8859-1", "i18n.logOutputEncoding=ISO-8859-1")


@setting
def only_a_configured_identity(checkout: Checkout) -> Checkout:
    return configured(checkout, "user.useConfigOnly=true")


@setting
def no_reflogs(checkout: Checkout) -> Checkout:
    return configured(checkout, "core.logAllRefUpdates=false")


@setting
def a_bare_flag_on_a_checkout(checkout: Checkout) -> Checkout:
    return configured(checkout, "core.bare=true")


@setting
def colours_and_pagers_everywhere(checkout: Checkout) -> Checkout:
    configured(checkout, "color.ui=always", "column.ui=always", "log.showSignature=true")
    return configured(checkout, "core.pager=false", "pager.config=true")


@setting
def a_commit_template_and_cleanup(checkout: Checkout) -> Checkout:
    return configured(checkout, "commit.template=/nowhere", "commit.cleanup=scissors", "commit.verbose=true")


@setting
def aliases_of_plumbing(checkout: Checkout) -> Checkout:
    return configured(checkout, "alias.commit-tree=!false", "alias.update-ref=!false", "alias.rev-parse=!false")


@setting
def settings_of_one_worktree(checkout: Checkout) -> Checkout:
    configured(checkout, "extensions.worktreeConfig=true")
    checkout.git("config", "--worktree", "core.autocrlf", "true")
    return checkout


@setting
def an_unreadable_date_in_the_environment(checkout: Checkout) -> Checkout:
    return dataclasses.replace(checkout, env={"GIT_AUTHOR_DATE": "yesteryear", "GIT_COMMITTER_DATE": "soon"})


@setting
def an_environment_that_points_elsewhere(checkout: Checkout) -> Checkout:
    other = checkout.lab.checkout("other")
    names = ("GIT_DIR", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
    env = {name: str(other.git_dir) for name in names}
    env |= {"GIT_WORK_TREE": str(other.path), "GIT_INDEX_FILE": str(other.git_dir / "index"), "GIT_NAMESPACE": "x"}
    return dataclasses.replace(checkout, env={**env, "GIT_PREFIX": "aten/"})


@setting
def traces_on_standard_error(checkout: Checkout) -> Checkout:
    env = dict.fromkeys(("GIT_TRACE", "GIT_TRACE_SETUP", "GIT_TRACE_PACK_ACCESS", "GIT_TRACE2_PERF"), "1")
    return dataclasses.replace(checkout, env=env)


@setting
def another_language(checkout: Checkout) -> Checkout:
    return dataclasses.replace(checkout, env={"LANG": "de_DE.UTF-8", "LC_ALL": "C", "LANGUAGE": "de"})


@pytest.mark.parametrize("name", SETTINGS)
def test_the_same_commits_come_out_and_nothing_else_is_touched(checkout: Checkout, plain_tip: str, name: str) -> None:
    changed = SETTINGS[name](checkout)
    with changed.untouched():
        changed.run().require()
    assert changed.tip() == plain_tip


def test_a_hook_that_forbids_the_move_is_obeyed_and_named(checkout: Checkout) -> None:
    """Hooks over commits do not run because no commit command does; one that guards refs is a rule, not a mishap."""
    write_hook(checkout.git_dir / "hooks", "reference-transaction", 'echo "not on my watch" >&2; exit 1')
    with checkout.branch_kept():
        checkout.run().refused(3, "reference-transaction hook", "nothing was changed")


def test_replaced_objects_of_the_user_do_not_get_into_the_stack(checkout: Checkout, plain_tip: str) -> None:
    checkout.git("replace", "main", "main~1")
    with checkout.untouched():
        checkout.run().require()
    assert checkout.tip() == plain_tip


def fake_gpg(checkout: Checkout, script: str) -> Checkout:
    program = checkout.lab.root / "gpg"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return configured(checkout, "commit.gpgsign=true", f"gpg.program={program}", "user.signingkey=KEY")


SIGNS = """cat > /dev/null
echo "[GNUPG:] SIG_CREATED " >&2
echo "-----BEGIN PGP SIGNATURE-----"; date +%N; echo "-----END PGP SIGNATURE-----" """


def test_commits_are_signed_where_the_user_wants_them_signed(checkout: Checkout) -> None:
    fake_gpg(checkout, SIGNS)
    with checkout.untouched():
        checkout.run().require()
    for commit in checkout.git("rev-list", f"main..{checkout.branch}").split():
        assert "\ngpgsig -----BEGIN PGP SIGNATURE-----" in checkout.git("cat-file", "commit", commit)
    assert checkout.complete()


def test_a_signed_stack_is_not_signed_again_when_it_would_be_the_same(checkout: Checkout) -> None:
    fake_gpg(checkout, SIGNS)
    checkout.run().require()
    tip = checkout.tip()
    assert "already at" in checkout.run().require().out
    assert checkout.tip() == tip
    checkout.git("config", "user.name", "Another Name")
    checkout.run().require()
    assert checkout.tip() != tip


def test_an_unsigned_stack_is_signed_once_the_user_wants_that(checkout: Checkout) -> None:
    checkout.run().require()
    fake_gpg(checkout, SIGNS)
    checkout.run().require()
    assert "gpgsig" in checkout.git("cat-file", "commit", checkout.branch)


@pytest.mark.parametrize("script", ["exit 1", "cat > /dev/null", None], ids=["fails", "signs nothing", "missing"])
def test_a_signature_that_cannot_be_made_stops_the_run_aloud(checkout: Checkout, script: str | None) -> None:
    fake_gpg(checkout, script or "")
    if script is None:
        checkout.git("config", "gpg.program", "/nowhere/gpg")
    with checkout.branch_kept():
        checkout.run().refused(4, "commit.gpgsign is true", "cannot be signed", "git config commit.gpgsign false")


def test_a_name_and_an_address_from_the_environment_are_enough(checkout: Checkout) -> None:
    (checkout.lab.home / ".gitconfig").unlink()
    who = {f"GIT_{role}_{what}": f"{role}@{what}" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    checkout.run(env=who).require()
    assert checkout.git("log", "-1", "--format=%an %ae %cn %ce", checkout.branch) == (
        "AUTHOR@NAME AUTHOR@EMAIL COMMITTER@NAME COMMITTER@EMAIL"
    )


@pytest.mark.parametrize("lacking", ["name", "email", "both"])
def test_without_an_identity_the_run_stops_and_takes_nothing_from_the_machine(checkout: Checkout, lacking: str) -> None:
    left = {"name": f"\temail = {EMAIL}\n", "email": f"\tname = {NAME}\n", "both": ""}[lacking]
    (checkout.lab.home / ".gitconfig").write_text(f"[user]\n{left}")
    with checkout.branch_kept():
        result = checkout.run(env={"EMAIL": "leak@example.com"})
    said = result.refused(4, "user.name and user.email", "git config --global")
    assert os.uname().nodename not in said


def test_a_name_that_is_not_ascii_survives(checkout: Checkout) -> None:
    checkout.git("config", "user.name", "J\u00fcrgen \u00d8rsted \u4e2d")
    checkout.run().require()
    assert checkout.git("log", "-1", "--format=%an", checkout.branch) == "J\u00fcrgen \u00d8rsted \u4e2d"
