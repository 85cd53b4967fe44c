"""The pages of docs/reference/generated, made from the command line and the classes.

``python tests/support/reference_pages.py`` writes them; a test compares them with what this makes.
"""

from __future__ import annotations

import ast
import enum
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import yaml

from patchstack.cli.main import command as apply_stack
from patchstack.edits import Edit
from patchstack.edits.load import KINDS
from patchstack.errors import ExitCode
from patchstack.planning.model import ChangeState
from stackproof.cli import prove
from stackproof.cli.gate_options import options_of
from stackproof.cli.main import command as validate_stack
from stackproof.gates.table import GATES

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/reference/generated"
_MADE = "<!-- Made by tests/support/reference_pages.py: do not edit. -->\n"
_WIDTH = 100
_SERIES = (
    ROOT / "patches/grid_sampler/series.yaml",
    *sorted((ROOT / "tests/series").glob("*/series.yaml")),
)
# Of the kinds that none of these series has.
_WRITTEN = {
    "apply-diff": {"kind": "apply-diff", "path": "docs/source/notes/mps.rst", "diff": "notes.diff"},
    "replace-statements": {
        "kind": "replace-statements",
        "path": "aten/src/ATen/native/mps/operations/MyOp.mm",
        "fragment": "launch",
        "definition": {"function": "my_op_mps", "in": "at::native"},
        "statements": 2,
        "replaces": ["tokens:0123456789abcdef"],
    },
    "remove-class-member": {
        "kind": "remove-class-member",
        "path": "test/test_mps.py",
        "in": [{"class": "TestMPS"}],
        "member": "test_my_op_is_missing",
    },
}
_EXIT_CODES = {
    ExitCode.OK: "applied, or nothing left to apply",
    ExitCode.INTERNAL: "internal error; a report file has the details",
    ExitCode.USAGE: "the command line or a manifest is wrong",
    ExitCode.CONFLICT: "conflict: an edit has no place, or the branch cannot be moved; nothing was written",
    ExitCode.TREE: "not a usable tree or repository",
    ExitCode.NOT_CHECKED: "`--check` could not find out whether the commits compile; nothing was moved",
}
_VERDICTS = {
    prove.EXIT_PASSED: "every gate that ran passed",
    prove.EXIT_FAILED: "a gate failed",
    prove.EXIT_USAGE: "the command line, or a file of the tree, is wrong",
    prove.EXIT_NOT_SHOWN: "a required gate was not run, or no gate launched some kernel of the stack (*unproved*)",
    prove.EXIT_INTERRUPTED: "interrupted; the reports are partial",
}


def pages() -> dict[str, str]:
    """File name to text."""
    return {"commands.md": commands_page(), "edits.md": edits_page(), "tables.md": tables_page()}


def commands_page() -> str:
    """The help of every command."""
    parts = [_MADE, "# Commands\n"]
    for name, root in (("apply-stack", apply_stack), ("validate-stack", validate_stack)):
        for path, command in _commands(name, root, None):
            context = click.Context(
                command,
                info_name=path,
                terminal_width=_WIDTH,
                max_content_width=_WIDTH,
                help_option_names=["-h", "--help"],
            )
            parts.append(f"## {path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")
    return "\n".join(parts)


def _commands(path: str, command: click.Command, parent: click.Context | None) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, parent, info_name=path)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child and not child.hidden:
                yield from _commands(f"{path} {name}", child, context)


def edits_page() -> str:
    """Every kind of edit, and an example."""
    parts = [_MADE, "# Kinds of edits\n", "What each kind does, and the keys it takes: [manifest](../manifest.md).\n"]
    parts += ["| kind | in words |", "|---|---|"]
    examples = {kind: _example(kind) for kind in KINDS}
    parts += [f"| [`{kind}`](#{kind}) | {_words(kind)} |" for kind in KINDS]
    for kind, example in examples.items():
        text = yaml.safe_dump([example], sort_keys=False, width=_WIDTH).rstrip()
        parts.append(f"\n## {kind}\n\n```yaml\n{text}\n```")
    return "\n".join(parts) + "\n"


def _words(kind: str) -> str:
    """What the classes of a kind say of themselves; one that takes it over from another class is a part of that one."""
    classes = [one for one in _subclasses(Edit) if vars(one).get("kind") == kind]
    assert classes, kind
    texts = [(inspect.getdoc(one) or "").split("\n\n")[0].replace("\n", " ") for one in classes]
    return " ".join(dict.fromkeys(texts)).replace("``", "`")


def _subclasses(parent: type[Edit]) -> Iterator[type[Edit]]:
    for one in parent.__subclasses__():
        yield one
        yield from _subclasses(one)


def _example(kind: str) -> object:
    for file in _SERIES:
        edits = [edit for change in yaml.safe_load(file.read_text())["changes"] for edit in change["edits"]]
        found = [edit for edit in edits if edit["kind"] == kind and "only_where" not in edit and "base" not in edit]
        if found:
            return min(found, key=lambda edit: len(str(edit)))
    return _WRITTEN[kind]


def tables_page() -> str:
    """States, gates and exit codes."""
    parts = [_MADE, "# States, gates, exit codes\n", "## States of a change\n", "| state | meaning |", "|---|---|"]
    parts += [f"| *{state.value}* | {text} |" for state, text in _documented(ChangeState)]
    parts += ["\n## Gates\n", "| gate | judges | runs | needs | options |", "|---|---|---|---|---|"]
    for spec in GATES:
        flags = ", ".join(f"`{one.flag}`" for one in options_of(GATES) if spec.name in one.gates)
        parts.append(f"| {spec.name} | {spec.summary} | {spec.runs} | {', '.join(spec.needs)} | {flags} |")
    parts += ["\n## Exit codes of apply-stack\n", "| code | meaning |", "|---|---|"]
    parts += [f"| {int(code)} | {_EXIT_CODES[code]} |" for code in ExitCode]
    parts += ["\n## Exit codes of validate-stack\n", "| code | meaning |", "|---|---|"]
    parts += [f"| {code} | {text} |" for code, text in sorted(_VERDICTS.items())]
    return "\n".join(parts) + "\n"


def _documented(kind: type[enum.Enum]) -> Iterator[tuple[enum.Enum, str]]:
    """The members of an enumeration, with the string that stands below each."""
    (body,) = (node.body for node in ast.parse(textwrap.dedent(inspect.getsource(kind))).body)  # type: ignore[attr-defined]
    texts = {
        member.targets[0].id: " ".join(text.value.value.split())
        for member, text in itertools.pairwise(body)
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr)
    }
    for member in kind:
        yield member, texts[member.name]


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
