"""The tree's own list of allowed compatibility breaks, read without importing it.

``check_forward_backward_compatibility.py`` imports the built torch at its top, so the list is taken from its syntax
tree. An entry is a pattern over the printed old schema, a date until which it holds, and sometimes a second pattern.
"""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from patchstack.tree.git import Tree
from stackproof.gates.common.errors import MalformedTreeError
from stackproof.gates.common.functions import read_limited
from stackproof.gates.common.python_source import parse_python
from stackproof.gates.common.schema import Schema

CHECKER_PATH = "test/forward_backward_compatibility/check_forward_backward_compatibility.py"
LIST_NAME = "ALLOW_LIST"
SOON = datetime.timedelta(days=30)
NEVER_YEAR = 2090
"""Dates from this year on are the list's way of saying "never expires"."""


@dataclass(frozen=True)
class AllowEntry:
    """One entry of the list.

    Attributes:
        pattern: regular expression searched for in the printed old schema.
        until: last day on which the entry holds.
        arguments: second regular expression over the same text, empty when there is none.
        line: 1-based line in the checker.
    """

    pattern: str
    until: datetime.date
    arguments: str
    line: int

    def expired(self, today: datetime.date) -> bool:
        return self.until < today

    def expires_soon(self, today: datetime.date) -> bool:
        """Whether it still holds, but not for more than 30 days."""
        return today <= self.until <= today + SOON

    @property
    def never_expires(self) -> bool:
        return self.until.year >= NEVER_YEAR

    def matches(self, schema: Schema) -> bool:
        """Whether the name pattern is found in the printed schema, whatever the second pattern says."""
        return re.search(self.pattern, schema.qualified_text) is not None

    def allows(self, schema: Schema) -> bool:
        """Whether both patterns are found."""
        return self.matches(schema) and re.search(self.arguments, schema.qualified_text) is not None


@dataclass(frozen=True)
class AllowList:
    """The whole list.

    Attributes:
        entries: in order.
        unreadable: lines of entries that are not plain literals, and so could not be judged.
    """

    entries: Sequence[AllowEntry] = ()
    unreadable: Sequence[int] = field(default=())

    def covering(self, schema: Schema, today: datetime.date) -> AllowEntry | None:
        """The entry that lets a change of this old schema pass on that day.

        As in the checker, the first unexpired entry whose name pattern matches decides, even when its second pattern
        then says no.
        """
        first = next((e for e in self.entries if not e.expired(today) and e.matches(schema)), None)
        return first if first is not None and first.allows(schema) else None

    def expired_for(self, schema: Schema, today: datetime.date) -> AllowEntry | None:
        """An entry that would have covered the schema, had it not expired."""
        return next((e for e in self.entries if e.expired(today) and e.allows(schema)), None)


def read_allow_list(tree: Tree) -> AllowList | None:
    """The list of a tree; ``None`` where it has no checker, or the checker has no list.

    Raises:
        MalformedTreeError: the checker is not Python, or a pattern is not a regular expression.
    """
    content = read_limited(tree, CHECKER_PATH)
    if content is None:
        return None
    try:
        module = parse_python(content)
    except SyntaxError as error:
        raise MalformedTreeError(f"not Python: {error.msg}", where=f"{CHECKER_PATH}:{error.lineno or 0}") from None
    value = next(_list_values(module), None)
    if value is None:
        return None
    entries, unreadable = [], []
    for element in value.elts:
        entry = _entry(element)
        if entry is None:
            unreadable.append(element.lineno)
        else:
            entries.append(entry)
    return AllowList(tuple(entries), tuple(unreadable))


def _list_values(module: ast.Module) -> Iterator[ast.List]:
    for statement in module.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        named = any(isinstance(target, ast.Name) and target.id == LIST_NAME for target in targets)
        if named and isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(statement.value, ast.List):
            yield statement.value


def _entry(element: ast.expr) -> AllowEntry | None:
    """An entry as literals: a pattern, a ``datetime.date(y, m, d)`` call, and maybe a second pattern."""
    if not isinstance(element, (ast.Tuple, ast.List)) or len(element.elts) not in (2, 3):
        return None
    pattern, date, *more = element.elts
    until = _date(date)
    texts = [part.value for part in (pattern, *more) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    if until is None or len(texts) != len(element.elts) - 1:
        return None
    for text in texts:
        try:
            re.compile(text)
        except re.error as error:
            where = f"{CHECKER_PATH}:{element.lineno}"
            raise MalformedTreeError(f"not a regular expression: {error}", where=where, found=repr(text)) from None
    return AllowEntry(texts[0], until, texts[1] if len(texts) > 1 else "", element.lineno)


def _date(node: ast.expr) -> datetime.date | None:
    if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("date") or node.keywords:
        return None
    numbers = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, int)]
    try:
        return datetime.date(*numbers) if len(numbers) == len(node.args) == 3 else None
    except ValueError:
        return None
