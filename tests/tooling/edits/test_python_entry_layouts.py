"""Adding to and removing from Python containers of every kind and layout, judged by ``ast`` and by LibCST."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import libcst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edit_bench import applied, edit_from, plan_on
from patchstack.edits import Status

KINDS = {"list": ("[", "]"), "tuple": ("(", ")"), "set": ("{", "}"), "dict": ("{", "}"), "call": ("(", ")")}
NAMES = ["alpha", "beta", "gamma", "delta"]


@dataclass(frozen=True)
class Written:
    """A container as written, and what is in it.

    Attributes:
        kind: one of :data:`KINDS`.
        names: the entries in order, each written ``"name"``, of a dict with a list as value.
        source: the whole file.
    """

    kind: str
    names: tuple[str, ...]
    source: str

    @property
    def steps(self) -> str:
        return "[{call: use, argument: '\"first\"'}]" if self.kind == "call" else "[{assign: NAMES}]"

    def edit_text(self, kind: str, name: str) -> str:
        value = f", value: '[\"{name}\", 1]'" if self.kind == "dict" else ""
        return f"{{kind: {kind}, path: a.py, in: {self.steps}, entry: '\"{name}\"'{value}}}"


def literal(kind: str, name: str) -> str:
    return f'"{name}": ["{name}", 1]' if kind == "dict" else f'"{name}"'


@st.composite
def written(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(KINDS)) -> Written:
    """A container with its entries on one line, on a line each, or in between, with comments where they may stand."""
    kind = draw(st.sampled_from(kinds))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=0 if kind != "set" else 1, max_size=4, unique=True))
    if kind == "call":
        names = ["first", *names]
    opening, closing = KINDS[kind]
    breaks = draw(st.lists(st.booleans(), min_size=len(names) + 1, max_size=len(names) + 1))
    text = ""
    for number, name in enumerate(names):
        text += "\n    " if breaks[number] else (" " if number else draw(st.sampled_from(["", " "])))
        if breaks[number] and draw(st.booleans()):
            text += f"# above {name}\n    "
        last = number == len(names) - 1
        comma = not last or (kind == "tuple" and len(names) == 1) or draw(st.booleans())
        text += literal(kind, name) + ("," if comma else "")
        if breaks[number + 1] and draw(st.booleans()):
            text += f"  # about {name}, this"
    text += "\n" if breaks[-1] else ""
    target = "use" if kind == "call" else "NAMES = "
    head = "# first line\nOTHER = ['alpha', 'beta']\n\n"
    source = f"{head}{target}{opening}{text}{closing}  # behind\n\n\ndef last():\n    return 'alpha'\n"
    ast.parse(source)
    return Written(kind, tuple(names), source)


def entries(source: str, kind: str) -> list[str]:
    """The entries as ``ast`` sees them, and proof that the container is still of its kind."""
    statement = ast.parse(source).body[1]
    assert isinstance(statement, ast.Expr | ast.Assign)
    node = statement.value
    if kind == "dict":
        assert isinstance(node, ast.Dict)
        return [ast.unparse(key or value) for key, value in zip(node.keys, node.values, strict=True)]
    if kind == "call":
        assert isinstance(node, ast.Call)
        return [ast.unparse(element) for element in node.args]
    assert isinstance(node, ast.List | ast.Tuple | ast.Set)
    assert type(node).__name__.lower() == kind
    return [ast.unparse(element) for element in node.elts]


def comments(source: str) -> list[str]:
    found: list[str] = []

    class Collect(libcst.CSTVisitor):
        def visit_Comment(self, node: libcst.Comment) -> None:  # noqa: N802
            found.append(node.value)

    libcst.parse_module(source).visit(Collect())
    return found


def rest(source: str) -> tuple[str, str]:
    """The file without the container's statement."""
    module = libcst.parse_module(source)
    return (
        "".join(module.code_for_node(line) for line in (*module.header, module.body[0])),
        "".join(module.code_for_node(line) for line in module.body[2:]),
    )


@settings(max_examples=120, deadline=None)
@given(before=written())
def test_an_added_entry_comes_last_and_nothing_else_changes(before: Written) -> None:
    edit = edit_from(before.edit_text("add-python-entry", "omega"))
    after = applied(edit, before.source.encode()).decode()
    assert entries(after, before.kind) == [*entries(before.source, before.kind), "'omega'"]
    assert comments(after) == comments(before.source)
    assert rest(after) == rest(before.source)
    assert len(after) - len(before.source) <= len(literal(before.kind, "omega")) + 8
    assert plan_on(edit, after.encode()).status is Status.SATISFIED


@settings(max_examples=120, deadline=None)
@given(before=written(), data=st.data())
def test_an_entry_added_behind_another_comes_right_behind_it(before: Written, data: st.DataObject) -> None:
    if not before.names:
        return
    at = data.draw(st.integers(0, len(before.names) - 1))
    text = before.edit_text("add-python-entry", "omega")[:-1] + f", after: '\"{before.names[at]}\"'}}"
    after = applied(edit_from(text), before.source.encode()).decode()
    old = entries(before.source, before.kind)
    assert entries(after, before.kind) == [*old[: at + 1], "'omega'", *old[at + 1 :]]
    assert comments(after) == comments(before.source)
    assert rest(after) == rest(before.source)


@settings(max_examples=150, deadline=None)
@given(before=written(), data=st.data(), with_comment=st.booleans())
def test_a_removed_entry_is_gone_and_nothing_else_changes(
    before: Written, data: st.DataObject, with_comment: bool
) -> None:
    names = [name for name in before.names if name != "first"]
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    text = before.edit_text("remove-python-entry", name)
    outcome = plan_on(edit_from(text[:-1] + f", with_comment: {str(with_comment).lower()}}}"), before.source.encode())
    if before.kind == "set" and len(names) == 1:
        assert outcome.status is Status.CONFLICT, "{} is a dict"
        return
    assert outcome.after is not None, outcome
    after = outcome.after.decode()
    assert entries(after, before.kind) == [e for e in entries(before.source, before.kind) if e != f"'{name}'"]
    assert rest(after) == rest(before.source)
    own = {f"# above {name}", f"# about {name}, this"}
    lost = [comment for comment in comments(before.source) if comment not in comments(after)]
    assert set(lost) <= own
    assert with_comment or f"# above {name}" not in lost
    assert all(
        f"# {word} {other}" in after or f"# {word} {other}" not in before.source
        for other in before.names
        if other != name
        for word in ("above", "about")
    )


def test_a_lost_comment_would_be_noticed() -> None:
    before = "NAMES = [\n    'a',  # about a\n]\n"
    assert comments(before) != comments(before.replace("  # about a", ""))


LAYOUTS = {
    "one line": ('A = ["a", "b"]', '"c"', 'A = ["a", "b", "c"]'),
    "one line with a comma": ('A = ["a", "b",]', '"c"', 'A = ["a", "b", "c",]'),
    "a line each": ('A = [\n    "a",\n    "b",\n]', '"c"', 'A = [\n    "a",\n    "b",\n    "c",\n]'),
    "a line each, no last comma": ('A = [\n    "a",\n    "b"\n]', '"c"', 'A = [\n    "a",\n    "b",\n    "c",\n]'),
    "aligned": ('A = ["a",\n     "b"]', '"c"', 'A = ["a",\n     "b",\n     "c"]'),
    "two a line": ('A = [\n    "a", "b",\n    "c", "d",\n]', '"e"', 'A = [\n    "a", "b",\n    "c", "d",\n    "e",\n]'),
    "a comment behind the last": ('A = [\n    "a",  # x, y\n]', '"c"', 'A = [\n    "a",  # x, y\n    "c",\n]'),
    "a comment below the last": ('A = [\n    "a",\n    # "b",\n]', '"c"', 'A = [\n    "a",\n    "c",\n    # "b",\n]'),
    "tabs": ('A = [\n\t"a",\n]', '"c"', 'A = [\n\t"a",\n\t"c",\n]'),
    "an empty list": ("A = []", '"c"', 'A = ["c"]'),
    "an empty tuple": ("A = ()", '"c"', 'A = ("c",)'),
    "an empty list with a comment": ("A = [\n    # none\n]", '"c"', 'A = [\n    # none\n    "c",\n]'),
    "a tuple of one": ('A = ("a",)', '"c"', 'A = ("a", "c")'),
    "a set": ("A = {1}", "2", "A = {1, 2}"),
    "a splat": ("A = [*B]", '"c"', 'A = [*B, "c"]'),
    "deep": ("if B:\n    A = [\n        1,\n    ]", "2", "if B:\n    A = [\n        1,\n        2,\n    ]"),
    "annotated": ("A: list[int] = [1]", "2", "A: list[int] = [1, 2]"),
}


@pytest.mark.parametrize(("before", "entry", "after"), LAYOUTS.values(), ids=LAYOUTS.keys())
def test_an_entry_is_laid_out_as_its_neighbours_are(before: str, entry: str, after: str) -> None:
    edit = edit_from(f"{{kind: add-python-entry, path: a.py, in: [{{assign: A}}], entry: '{entry}'}}")
    assert applied(edit, before.encode() + b"\n") == after.encode() + b"\n"


REMOVED = {
    "the only one": ('A = ["a"]', "A = []"),
    "the first of a line": ('A = ["a", "b"]', 'A = ["b"]'),
    "the last of a line": ('A = ["b", "a"]', 'A = ["b"]'),
    "the last with a comma": ('A = ["b", "a",]', 'A = ["b",]'),
    "the middle": ('A = ["b", "a", "c"]', 'A = ["b", "c"]'),
    "the last of one of several lines": ('A = [\n    "b", "a",\n    "c",\n]', 'A = [\n    "b",\n    "c",\n]'),
    "one before a comment": ('A = [\n    "b",\n    "a",  # why\n    # next\n]', 'A = [\n    "b",\n    # next\n]'),
    "one behind a comment about another": ('A = ["b",  # b\n     "a"]', 'A = ["b",  # b\n     ]'),
    "of a tuple of two": ('A = ("a", "b")', 'A = ("b",)'),
    "of the other end of a tuple of two": ('A = ("b", "a")', 'A = ("b",)'),
    "of a tuple of two lines": ('A = (\n    "b",\n    "a"\n)', 'A = (\n    "b",\n)'),
    "of a tuple of one": ('A = ("a",)', "A = ()"),
    "an entry of several lines": ('A = [\n    "b",\n    (\n        "a"\n    ),\n]', 'A = [\n    "b",\n]'),
}


@pytest.mark.parametrize(("before", "after"), REMOVED.values(), ids=REMOVED.keys())
def test_an_entry_leaves_no_gap(before: str, after: str) -> None:
    edit = edit_from("{kind: remove-python-entry, path: a.py, in: [{assign: A}], entry: '\"a\"'}")
    assert applied(edit, before.encode() + b"\n") == after.encode() + b"\n"
