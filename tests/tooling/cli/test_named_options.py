"""An option that the documentation, a help text or a message names exists, in the command that it is named for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from patchstack.cli.main import command as apply_stack
from stackproof.cli.main import command as validate_stack

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTATION = "\n".join(
    page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
)
FOLDERS = {"tooling": apply_stack, "validate": validate_stack}
OPTION = re.compile(r"(?<![\w-])(?<!var\()--[a-z][a-z0-9-]*[a-z0-9](?![\w:-])")  # not the variables of CSS
PROGRAM = re.compile(r"\b(?:apply-stack|validate-stack|git|ghstack|gh|pip|python|apt-get|xcode-select)\b")
ARGUMENT = re.compile(r"--[a-z-]+=\S")

ELSEWHERE = {
    "--history": "bench/captures.py, named in the sentence before",
    "--table": "bench/mutants.py, which wrote the page",
    "--filter": "git clone, whose option the clone was made with",
    "--constraint": "pip, named in the line above",
    "--keep-non-patch": "git am, named in the cell of the table",
}
"""Options that a sentence names away from the program they are for."""


def options_of(command: click.Command) -> Iterator[str]:
    """The options of a command and of its subcommands."""
    yield from ("--help", "--version")
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    context = click.Context(command)
    names = command.list_commands(context) if isinstance(command, click.Group) else []
    for inner in filter(None, (command.get_command(context, name) for name in names)):  # type: ignore[attr-defined]
        yield from options_of(inner)


COMMANDS = {"apply-stack": {*options_of(apply_stack)}, "validate-stack": {*options_of(validate_stack)}}


def unknown_in(text: str, default: set[str], own: set[str]) -> list[str]:
    """The options that a text names and that there are not.

    Args:
        default: the options that may be named without a program.
        own: those of the program that the text is in.
    """
    found = []
    for line in text.splitlines():
        for option in OPTION.finditer(line):
            programs = PROGRAM.findall(line[: option.start()])
            known = COMMANDS.get(programs[-1], {option[0]}) if programs else default
            if option[0] not in {*known, *default, *own, *ELSEWHERE}:
                found.append(option[0])
    return found


def literal(node: ast.expr) -> str | None:
    """The text of a string in a source, with a letter for what is computed in it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.FormattedValue):  # Repository.typed is "git -C FOLDER"
        return "git" if ast.unparse(node.value).endswith("typed") else "X"
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(part) or "X" for part in node.values)
    return None


def sentences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The strings of a source that have blanks, and are not one argument of another program."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        text = literal(node) if isinstance(node, ast.expr) and id(node) not in inner else None
        if text is not None and " " in text.strip() and not ARGUMENT.match(text):
            yield node.lineno, text


def argparse_options(tree: ast.Module) -> set[str]:
    """What a script that has a command line of its own takes."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    added = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument")
    return {name for call in added for argument in call.args if (name := literal(argument)) is not None}


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_option_that_a_message_or_a_help_text_names_exists(folder: str) -> None:
    default = {*options_of(FOLDERS[folder])} | (COMMANDS["apply-stack"] if folder == "validate" else set())
    missing = []
    for file in sorted((ROOT / folder).rglob("*.py")):
        tree = ast.parse(file.read_bytes())
        own = argparse_options(tree)
        for line, text in sentences(tree):
            missing += [f"{file.relative_to(ROOT)}:{line} {option}" for option in unknown_in(text, default, own)]
    assert not missing


def test_an_option_that_the_documentation_names_exists() -> None:
    both = COMMANDS["apply-stack"] | COMMANDS["validate-stack"]
    assert unknown_in(DOCUMENTATION, both, set()) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("say --no-such-option", ["--no-such-option"]),
        ("git fetch --no-such-option, or --only", []),
        ("run apply-stack --since X", []),
        ("run validate-stack --since X", []),
        ("run validate-stack --no-such-option", ["--no-such-option"]),
    ],
)
def test_a_missing_option_is_seen(text: str, missing: list[str]) -> None:
    assert unknown_in(text, COMMANDS["apply-stack"], set()) == missing


def test_the_documentation_lists_every_option_of_apply_stack() -> None:
    named = {option for option in COMMANDS["apply-stack"] if option.startswith("--")} - {"--help", "--version"}
    assert sorted(option for option in named if option not in DOCUMENTATION) == []
