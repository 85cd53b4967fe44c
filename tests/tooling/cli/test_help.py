"""What the commands say of themselves: help in sections, and the plan where nothing was asked for."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import click
import pytest

from checkouts import Lab
from checkouts.lab import command_line
from patchstack.cli.main import command as apply_stack
from patchstack.cli.sections import CommandWithExamples, SectionedGroup
from references import clone_of
from stackproof.cli.main import command as validate_stack

GROUPS = pytest.mark.parametrize("group", [apply_stack, validate_stack], ids=["apply-stack", "validate-stack"])


@GROUPS
def test_every_option_stands_in_one_section_and_every_section_names_options_that_exist(group: click.Command) -> None:
    assert isinstance(group, SectionedGroup)
    flags = [flag for named in group.sections.values() for flag in named]
    context = click.Context(group, help_option_names=["-h", "--help"])
    known = {flag for parameter in group.get_params(context) for flag in parameter.opts}
    assert len(flags) == len(set(flags))
    assert set(flags) <= known
    text = group.get_help(context)
    shown = [parameter for parameter in group.get_params(context) if not getattr(parameter, "hidden", False)]
    written = re.findall(r"^  ((?:-\w, )?--[\w-]+)\b", text, re.MULTILINE)
    assert sorted(written) == sorted(", ".join(sorted(parameter.opts, key=len)) for parameter in shown)
    assert [title for title in group.sections if f"\n{title}:\n" not in text] == []


@GROUPS
def test_the_help_ends_with_two_commands_that_can_be_typed(group: click.Command) -> None:
    assert isinstance(group, SectionedGroup)
    assert len(group.examples) == 2
    for example in group.examples:
        _name, *words = example.split()
        group.make_context(group.name, words, resilient_parsing=True)


HELP = ["-h", "--help"]  # a command keeps the option that it made for the first context
SUBCOMMANDS = [
    "capture",
    "diff",
    "drift",
    "new",
    "refresh",
    "resolve",
    "submit-check",
    "metal",
    "summary",
    "apple-kernels list",
    "apple-kernels show",
]


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_help_of_a_subcommand_ends_with_two_that_can_be_typed(name: str) -> None:
    first, *rest = name.split()
    groups = {"apply-stack": apply_stack, "validate-stack": validate_stack}
    program = next(name for name, one in groups.items() if first in one.list_commands(click.Context(one)))
    group = groups[program]
    found = group.get_command(click.Context(group), first)
    for word in rest:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert isinstance(found, CommandWithExamples)
    assert len(found.examples) == 2
    for example, what in found.examples.items():
        assert example.startswith(f"{program} {name}")
        words = example.split()[1 + len(name.split()) :]
        found.make_context(name, words, resilient_parsing=True, help_option_names=HELP)
        assert example in " ".join(found.get_help(click.Context(found, info_name=name, help_option_names=HELP)).split())
        assert what


def test_every_subcommand_with_help_of_its_own_has_examples() -> None:
    listed = {name for group in (apply_stack, validate_stack) for name in group.list_commands(click.Context(group))}
    assert listed - {name.split()[0] for name in SUBCOMMANDS} == {"bench", "reference"}  # groups of options, argparse


@pytest.mark.needs_reference
def test_without_arguments_a_checkout_is_told_what_would_happen_and_nothing_is_written(
    lab: Lab, tmp_path: Path
) -> None:
    tree = clone_of("2.11", tmp_path / "tree")
    done = subprocess.run(command_line([]), cwd=tree, env=lab.env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "dry run: 3 commits would go onto stack/grid_sampler; nothing was written" in done.stdout
    assert done.stdout.endswith("next: apply-stack --onto main\nall options: apply-stack --help\n")
    assert list((tree / "refs/heads").rglob("stack/*")) == []


def test_the_shell_completes_a_subcommand() -> None:
    words = {"_APPLY_STACK_COMPLETE": "bash_complete", "COMP_WORDS": "apply-stack dri", "COMP_CWORD": "1"}
    done = subprocess.run(command_line([]), env={**os.environ, **words}, capture_output=True, text=True, check=False)
    assert done.stdout == "plain,drift\n"
