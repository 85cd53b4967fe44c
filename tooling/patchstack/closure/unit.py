"""One file of a tree with what it includes: which of the names that it uses are to be found, and which are not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from patchstack.closure.file import Entity, Named
from patchstack.closure.headers import Headers
from patchstack.closure.known import SYSTEM_NAMESPACES, is_known
from patchstack.closure.scan import UNBOUNDED, Use
from patchstack.tree.cxx import Include
from patchstack.tree.cxx_conditionals import Branch, Conditional

_TYPES = ("struct", "class", "union", "enum")
_CALLABLE = ("function", "kernel", "declaration", "macro")


@dataclass(frozen=True)
class Missing:
    """A name that is used and not to be found, or found as something that does not fit.

    Attributes:
        path: the file of the use.
        name: the name as used.
        part: the part of it that is not found.
        at: offset of the use.
        line: its line.
        user: the definition that uses it; empty between definitions.
        problem: what is wrong, in words that follow the name.
        is_certain: whether it is an error whatever the name is; else it may come from where nothing is known of.
        conditional: whether the use is inside an ``#if``, so that not every file that includes it may see it.
    """

    path: str
    name: str
    part: str
    at: int
    line: int
    user: str
    problem: str
    is_certain: bool = True
    conditional: bool = False

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from others, wherever it stands; a name may be hidden from one user and not from another."""
        problem = _LINE.sub("line", self.problem)
        return (self.path, self.name, self.user if problem != self.problem else "", problem)


class Unit:
    """A file, read as the compiler does."""

    def __init__(self, headers: Headers, path: str, *, is_metal: bool | None = None) -> None:
        self.headers = headers
        self.path = path
        self.is_metal = path.endswith(".metal") if is_metal is None else is_metal
        self.file = headers.scanned(path, is_metal=self.is_metal)
        self.includes = self.file.cxx.includes
        self._types = {e.name: e for e in self.file.entities if e.kind in _TYPES}
        self._spaces = {part for space in self.file.cxx.namespaces for part in space.name.split("::")}
        self._opened = [
            (f"{name}", entity.start + at, entity.scope)
            for entity in self.file.entities
            if not entity.kind
            for name, at in entity.code.opens
        ]
        self._imported = {
            name.rpartition("::")[2]: entity.start + at
            for entity in self.file.entities
            for name, at in entity.code.imports
        }
        self._made = {  # what a macro may define: its arguments
            use.names[0]
            for entity in self.file.entities
            if not entity.kind
            for use in entity.code.uses
            if use.argument_of and use.argument_of[0].isupper()
        }
        self._nothing_known = any(headers.is_unknown(include.path, path) for include in self.includes)
        self._found: dict[tuple[str, tuple[int, ...]], bool] = {}

    def missing(self) -> Iterator[Missing]:
        """Every use that cannot be resolved, each name once for a definition."""
        for include in self.includes:
            if self.headers.is_lacking(include.path, self.path):
                what = f"#include <{include.path}>"
                yield self._missing(what, include.path, include.start, "", "not in this tree")
        expanded: set[str] = set()
        for entity in self.file.entities:
            by_macro = set(self._declared_by_macros(entity))
            seen: set[str | tuple[str, str]] = set()
            for use in entity.code.uses:
                at = entity.start + use.at
                if use.names[0] in self.file.macros and use.names[0] not in expanded:
                    yield from self._expanded(use.names[0], entity, at, expanded)
                if use.names[0] not in by_macro and (use.name not in seen or use.counts):
                    problem = self._problem(use, entity, at)
                    if problem and (use.name, problem[1]) not in seen:
                        seen.add((use.name, problem[1]))
                        yield self._missing(use.name, problem[0], at, entity.name, problem[1])
                    seen.add(use.name)

    def provides(self, name: str, before: int) -> bool:
        """Whether the file has a name before an offset; for what a header is given by the files that include it."""
        defined = any(d.at < before for d in self.file.defines.get(name, ()))
        return defined or is_known(name, is_metal=self.is_metal) or self._included(name, before)

    def _missing(self, name: str, part: str, at: int, user: str, problem: str) -> Missing:
        certain = not self._nothing_known or problem != NOWHERE
        inside = bool(self.file.branches(at))
        return Missing(self.path, name, part, at, self.file.line(at), user, problem, certain, inside)

    def _expanded(self, macro: str, caller: Entity, at: int, expanded: set[str]) -> Iterator[Missing]:
        """What the body of a macro uses, where the macro is called first."""
        expanded.add(macro)
        body = self.file.macros[macro]
        by_macro = set(self._declared_by_macros(body))
        for use in body.code.uses:
            if use.names[0] in {*body.parameters, *by_macro} or use.names[0] in caller.code.declared:
                continue
            if use.names[0] in self.file.macros and use.names[0] not in expanded:
                yield from self._expanded(use.names[0], caller, at, expanded)
            problem = self._problem(use, body, at)
            if problem:
                yield self._missing(use.name, problem[0], body.start + use.at, macro, problem[1])

    def _problem(self, use: Use, entity: Entity, at: int) -> tuple[str, str] | None:
        """The part of a name that is not found, and what is wrong with it; ``None`` where all is well."""
        if self._is_word(use):
            return None
        if len(use.names) == 1 and not use.is_rooted:
            reason = self._simple(use, entity, at)
            return (use.names[0], reason) if reason else self._misfit(use, at)
        return self._qualified(use, entity, at) or self._misfit(use, at)

    def _is_word(self, use: Use) -> bool:
        """Whether it is the argument of a macro that makes no more of it than a string or a part of a name."""
        if use.argument_of is None:
            return False
        if use.argument_of[0] not in self.file.macros:
            return use.argument_of[0].isupper() and not self._included(use.argument_of[0], use.at + (1 << 40))
        macro = self.file.macros[use.argument_of[0]]
        number = use.argument_of[1]
        return number >= len(macro.parameters) or macro.parameters[number] not in macro.code.plain

    def _declared_by_macros(self, entity: Entity) -> Iterator[str]:
        """Arguments of macros that declare what they are given."""
        for use in entity.code.uses:
            macro = self.file.macros.get(use.argument_of[0]) if use.argument_of else None
            number = use.argument_of[1] if use.argument_of else 0
            if macro and number < len(macro.parameters) and macro.parameters[number] in macro.code.declared:
                yield use.names[0]

    def _simple(self, use: Use, entity: Entity, at: int) -> str:
        name = use.names[0]
        if is_known(name, is_metal=self.is_metal) or self._is_made(name) or self._imported.get(name, at) < at:
            return ""
        near = ""
        opened = [space for space, opens, _ in self._opened if opens < at]
        opened += [space for space, _ in entity.code.opens]
        for named in self.file.defines.get(name, ()):
            reason = self._hidden(named, at)
            if not reason and self._in_scope(named, entity.scope, opened, is_call=bool(use.counts)):
                return ""
            near = near or reason or f"defined only in {named.scope or 'the global namespace'}"
        if name in self._spaces and not near:
            return ""
        if self._inherited(name, entity) or self._included(name, at):
            return ""
        return near or NOWHERE

    def _qualified(self, use: Use, entity: Entity, at: int) -> tuple[str, str] | None:
        first, last, owner = use.names[0], use.names[-1], use.names[-2] if len(use.names) > 1 else ""
        if first in SYSTEM_NAMESPACES or (self.is_metal and first in ("metal", "precise", "fast")):
            return None
        if not owner:
            reason = self._simple(use, entity, at)
            return (first, reason) if reason else None
        if first not in self._spaces and is_known(first, is_metal=self.is_metal) and first != "c10":
            return None
        if first not in self._spaces:
            reason = self._simple(Use((first,), use.at), entity, at)
            if reason:
                return first, reason
        if owner in self._types:
            return self._member(self._types[owner], last)
        near = ""
        for named in self.file.defines.get(last, ()):
            reason = self._hidden(named, at)
            is_space = owner in self._spaces and named.kind not in ("enumerator", "macro")
            inside = not is_space or named.scope.endswith(owner)
            if inside and not reason:
                return None
            near = near or (reason if inside else "")
        if self._included(last, at) or self._is_made(last) or is_known(last, is_metal=self.is_metal):
            return None
        alias = any(d.kind not in _CALLABLE for d in self.file.defines.get(owner, ()))
        return None if alias and owner not in self._spaces else (last, near or NOWHERE)

    def _member(self, owner: Entity, name: str) -> tuple[str, str] | None:
        code = owner.code
        if name in code.declared or name in code.enumerators or name in self.file.pasted:
            return None
        if owner.kind != "enum" and code.uses:  # a base, or a member by a macro
            return None
        return name, f"no member of {owner.name}"

    def _is_made(self, name: str) -> bool:
        """Whether a macro may have defined it."""
        if name in self._made:
            return True
        return any(len(p) > 2 and (name.startswith(p) or name.endswith(p)) for p in self.file.pasted)

    def _inherited(self, name: str, entity: Entity) -> bool:
        """Whether it may be a member of a type that a type or its members name, as of a base."""
        named = {use.names[0] for use in entity.code.uses} & self._types.keys()
        return any(name in self._types[other].code.declared for other in named if entity.kind in ("struct", "class"))

    def _hidden(self, named: Named, at: int) -> str:
        """Why something of the file cannot be seen at an offset; empty where it can, as far as place goes."""
        if named.at > at and not (named.kind == "enumerator" and self.file.line(named.at) == self.file.line(at)):
            return f"defined only below, at line {self.file.line(named.at)}"
        around = {self._branch(c, b) for c, b in self.file.branches(at)}
        for conditional, branch in self.file.branches(named.at):
            if self._branch(conditional, branch) in around:
                continue
            others = [b for b in conditional.branches if b is not branch]
            if not others or not all(self._has_in(named.name, b.start, b.end) for b in others):
                line = self.file.line(conditional.branches[0].start - 1)
                return f"defined only inside the #if of line {line}"
        return ""

    def _branch(self, conditional: Conditional, branch: Branch) -> tuple[str, int]:
        first = conditional.branches[0].start
        text = self.file.cxx.uncommented
        opening = text[text.rfind(b"#", 0, first) : first].decode(errors="replace")
        return (" ".join(opening.split()), conditional.branches.index(branch))

    def _has_in(self, name: str, start: int, end: int) -> bool:
        """Whether a branch brings a name: it defines it, or includes a header that does."""
        if any(start <= d.at < end for d in self.file.defines.get(name, ())):
            return True
        included = [i for i in self.includes if start <= i.start < end]
        if any(self._is_all_operators(i) for i in included):
            return True
        return any(self.headers.bring(i.path, self.path, name) for i in included)

    def _in_scope(self, named: Named, scope: str, opened: Sequence[str], *, is_call: bool) -> bool:
        space = named.scope.replace("::(anonymous)", "").replace("(anonymous)", "")
        here = scope.replace("::(anonymous)", "").replace("(anonymous)", "")
        if not space or space == here or here.startswith(f"{space}::") or named.kind in ("enumerator", "macro"):
            return True
        if any(space == other or space.endswith(f"::{other}") for other in opened):
            return True
        # a call finds functions of the namespaces that its arguments' types are of
        return is_call and any(e.scope == named.scope for e in self._types.values())

    def _included(self, name: str, before: int) -> bool:
        """Whether an include line before an offset brings a name, in every configuration."""
        lines = [i for i in self.includes if i.start < before]
        around = {branch for _, branch in self.file.branches(before)}
        key = (name, tuple(i.start for i in lines) + tuple(b.start for b in around))
        if key not in self._found:
            self._found[key] = self._look(name, lines, around)
        return self._found[key]

    def _look(self, name: str, lines: Sequence[Include], around: set[Branch]) -> bool:
        """Nearest headers first: most names are in one of the few that a file includes for them."""
        left = list(lines)
        for depth in range(_STEPS):
            for include in list(left):
                if self._brings(include, name, depth):
                    if not self._missed(include, name, around):
                        return True
                    left.remove(include)
                elif not self._reaches(include, depth):
                    left.remove(include)
            if not left:
                break
        return False

    def _missed(self, include: Include, name: str, around: set[Branch]) -> bool:
        """Whether the header is included in a branch, and another branch would lack the name."""
        return any(
            not self._has_in(name, other.start, other.end)
            for conditional, branch in self.file.branches(include.start)
            if branch not in around
            for other in conditional.branches
            if other is not branch
        )

    def _brings(self, include: Include, name: str, depth: int) -> bool:
        if self._is_all_operators(include):
            return True
        place = self.headers.place(include.path, self.path)
        return bool(place) and any(self.headers.has_name(path, name) for path in self.headers.level(place, depth))

    def _reaches(self, include: Include, depth: int) -> bool:
        place = self.headers.place(include.path, self.path)
        return bool(place) and bool(self.headers.level(place, depth))

    def _is_all_operators(self, include: Include) -> bool:
        """Whether it stands for all operators where there are no headers of their own."""
        return include.path == "ATen/Functions.h" and bool(self.file.branches(include.start))

    def _misfit(self, use: Use, at: int) -> tuple[str, str] | None:
        """Whether a function or macro of these files takes another number of arguments."""
        name = use.names[-1]
        if (
            not use.counts
            or is_known(name, is_metal=self.is_metal)
            or (len(use.names) > 1 and use.names[-2] not in self._spaces)
        ):
            return None
        known = [*self.file.defines.get(name, ()), *self._from_headers(name)]
        if not known or any(d.arity is None or d.kind not in _CALLABLE for d in known):
            return None
        if any(least <= count <= most for d in known for count in use.counts for least, most in [d.arity or (0, 0)]):
            return None
        if use.counts[-1] >= UNBOUNDED or self._included_elsewhere(name):
            return None
        wanted = " or ".join(sorted({_number(*d.arity).partition(" argument")[0] for d in known if d.arity}))
        return name, f"called with {_number(use.counts[0], use.counts[0])}, takes {wanted}"

    def _changed_headers(self) -> Iterator[str]:
        for include in self.includes:
            place = self.headers.place(include.path, self.path)
            if place in self.headers.tree.replaced:
                yield place

    def _from_headers(self, name: str) -> Iterator[Named]:
        for place in self._changed_headers():
            yield from self.headers.scanned(place, is_metal=self.is_metal).defines.get(name, ())

    def _included_elsewhere(self, name: str) -> bool:
        """Whether an overload may come from a header that was not looked into."""
        changed = set(self._changed_headers())
        return any(
            self.headers.bring(include.path, self.path, name)
            for include in self.includes
            if self.headers.place(include.path, self.path) not in changed
        )


_STEPS = 40
_LINE = re.compile(r"line \d+")
NOWHERE = "defined nowhere that this file sees"


def _number(least: int, most: int) -> str:
    if most >= UNBOUNDED:
        return f"at least {least} arguments"
    count = str(most) if least == most else f"{least} to {most}"
    return f"{count} argument{'s' if count != '1' else ''}"
