"""What a textual merge did, judged on the parsed result.

Git merges lines. A merge without conflicts can still define a name twice, or put a definition into the namespace, class
or ``#if`` that upstream closed and opened around it. So what the edit does to the structure of its base, it must do to
the structure of the tree, and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from patchstack.tree.cxx import CxxFile
from patchstack.tree.python import PythonFile


@dataclass(frozen=True, order=True)
class Fact:
    """One named thing of a file.

    Attributes:
        kind: such as ``function``, ``namespace``, ``include``, ``class``.
        name: its name.
        scope: the namespaces, classes and functions around it, joined by ``::`` or ``.``; empty at the top.
        conditions: the preprocessor branches around it, outermost first.
    """

    kind: str
    name: str
    scope: str = ""
    conditions: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """Its surroundings in words."""
        inside = self.scope or "the top level"
        return f"{inside} ({' / '.join(self.conditions)})" if self.conditions else inside


def cxx_facts(file: CxxFile) -> Counter[Fact]:
    """Namespaces, definitions and include lines of a C++ file."""
    facts = [Fact("namespace", n.name, n.scope, file.conditions_at(n.start)) for n in file.namespaces]
    facts += [Fact(d.kind, d.name, d.scope, file.conditions_at(d.start)) for d in file.definitions]
    facts += [Fact("include", i.path, "", file.conditions_at(i.start)) for i in file.includes]
    return Counter(facts)


def python_facts(file: PythonFile) -> Counter[Fact]:
    """Classes, functions and bound names of a Python file, those inside classes and functions included."""
    return Counter(_python_facts(file))


def _python_facts(file: PythonFile) -> Iterator[Fact]:
    todo = [(file.root, "", True)]
    while todo:
        node, scope, has_names = todo.pop()
        for name, kind, inner in file.scopes(node):
            if kind != "assign":
                todo.append((inner, f"{scope}.{name}" if scope else name, kind == "class"))
            if kind != "assign" or has_names:  # the variables of a function are its own affair
                yield Fact(kind, name, scope)


def structural_problem(
    base: Counter[Fact], edited: Counter[Fact], current: Counter[Fact], merged: Counter[Fact]
) -> str:
    """What a merge did to the structure beside what the edit does to its base; empty where it did just that."""
    wanted, unwanted = edited - base, base - edited
    gained, lost = merged - current, current - merged
    for fact in sorted(wanted):
        twins = [other for other in sorted(gained) if (other.kind, other.name) == (fact.kind, fact.name)]
        if fact not in gained and twins:
            return f"the text would merge, and {fact.name} would land in {twins[0].where}, not in {fact.where}"
    if (gained, lost) != (wanted, unwanted):
        odd = (gained - wanted) + (wanted - gained) + (lost - unwanted) + (unwanted - lost)
        names = ", ".join(sorted({fact.name for fact in odd}))
        return f"the text would merge, and more or less than the edit would change: {names}"
    for fact in sorted(wanted):
        already = sum(count for other, count in current.items() if other.name == fact.name and _clash(other, fact))
        before = sum(count for other, count in base.items() if other.name == fact.name and _clash(other, fact))
        if fact.kind != "registration" and already > before:
            return f"the text would merge, and {fact.name} would be there twice: upstream has its own now"
    return ""


def _clash(other: Fact, fact: Fact) -> bool:
    """Whether one name for both could mean the same thing: an include line, or anything that is defined."""
    return (other.kind == "include") == (fact.kind == "include") and other.kind != "namespace"
