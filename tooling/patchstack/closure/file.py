"""What a C++, Metal or Objective-C++ file defines, and the code of its definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from patchstack.closure.scan import UNBOUNDED, Code, read_code
from patchstack.closure.tokens import Tokens, split_at_commas, texts_of
from patchstack.edits.cxx_edit import outermost
from patchstack.tree.cxx import CxxFile, Definition
from patchstack.tree.cxx_conditionals import Branch, Conditional, find_conditionals, find_directives, never_compiled

_DEFINE = re.compile(r"\s*#\s*define\s+(\w+)(\(([^)]*)\))?")
_BLANKS = re.compile(r"[^\n]")
_OBJC_BLOCK = re.compile(r"@(?:interface|implementation|protocol)\b.*?@end\b", re.DOTALL)


@dataclass(frozen=True)
class Named:
    """Something that a file defines or declares.

    Attributes:
        name: its name, without its scope.
        kind: as in :class:`Definition`; ``declaration`` for a prototype, ``enumerator``, ``name`` for anything else.
        scope: the namespace and types around it.
        at: offset from which on it is known.
        arity: the least and the largest number of arguments; ``None`` for what is not called, or not looked at.
    """

    name: str
    kind: str
    scope: str
    at: int
    arity: tuple[int, int] | None = None


@dataclass(frozen=True)
class Entity:
    """Code of a file with its place.

    Attributes:
        name: the definition's; empty between definitions.
        scope: the namespaces around it.
        start: offset of its text in the file.
        code: what it has.
        parameters: of a macro.
        kind: of the definition; empty between definitions.
        end: offset behind it.
    """

    name: str
    scope: str
    start: int
    code: Code
    parameters: tuple[str, ...] = ()
    kind: str = ""
    end: int = 0


class ScannedFile:
    """The names of a file.

    Attributes:
        cxx: the file as the anchors see it.
        is_metal: whether it is read as Metal.
        defines: all that it defines at namespace scope or in a type, by name.
        entities: its code, macros left out.
        macros: the bodies of its macros by name; of several versions the last.
        pasted: parts of names that its macros put together.
        signatures: of its functions by name, the types of their parameters without ``const`` and ``&``.
    """

    def __init__(self, cxx: CxxFile, *, is_metal: bool) -> None:
        self.cxx = cxx
        self.is_metal = is_metal
        self._conditionals, self._text = _live(cxx)
        if not is_metal:
            self._text = _OBJC_BLOCK.sub(lambda match: _BLANKS.sub(" ", match.group()), self._text)
        self.defines: dict[str, list[Named]] = {}
        self.entities: list[Entity] = []
        self.macros: dict[str, Entity] = {}
        self.signatures: dict[str, set[tuple[str, ...]]] = {}
        bodies = outermost(d for d in cxx.definitions if d.kind not in ("macro", "registration"))
        for definition in bodies:
            self._read(definition)
        for definition in (d for d in cxx.definitions if d.kind == "macro"):
            self._read_macro(definition)
        self._read_rest(bodies)
        self.pasted = frozenset(name for entity in self._all() for name in entity.code.pasted)

    def _all(self) -> Iterator[Entity]:
        yield from self.entities
        yield from self.macros.values()

    def names(self) -> set[str]:
        """Every name that the file defines or declares anywhere, members and parameters included."""
        found = set(self.defines) | set(self.macros)
        for entity in self.entities:
            found.update(entity.code.declared, entity.code.enumerators)
        for definition in self.cxx.definitions:
            found.add(definition.name.rpartition("::")[2])
        return found

    def line(self, offset: int) -> int:
        return self.cxx.line(offset)

    def branches(self, offset: int) -> tuple[tuple[Conditional, Branch], ...]:
        """The branches of preprocessor conditionals around an offset; one that guards the file is none."""
        return tuple(
            (conditional, branch)
            for conditional in self._conditionals
            for branch in conditional.branches
            if branch.start <= offset < branch.end
        )

    def _add(self, named: Named) -> None:
        self.defines.setdefault(named.name, []).append(named)

    def _code(self, start: int, end: int) -> Code:
        return read_code(self._text[start:end], is_metal=self.is_metal)

    def _read(self, definition: Definition) -> None:
        code = self._code(definition.start, definition.end)
        name = definition.name.rpartition("::")[2]
        arity = None
        if definition.kind in ("function", "kernel"):
            text = self._text[definition.start : definition.end]
            arity = _arity(text, name)
            self.signatures.setdefault(name, set()).add(_signature(text, name))
        self._add(Named(name, definition.kind, definition.scope, definition.start, arity))
        self._add_enumerators(code, definition.scope, definition.start)
        if definition.kind in ("alias", "variable"):
            for other, at in code.declared.items():
                self._add(Named(other, "name", definition.scope, definition.start + at))
        self.entities.append(
            Entity(name, definition.scope, definition.start, code, kind=definition.kind, end=definition.end)
        )

    def _read_macro(self, definition: Definition) -> None:
        text = self.cxx.uncommented[definition.start : definition.end].decode("latin-1").replace("\\\n", " \n")
        match = _DEFINE.match(text)
        if match is None:
            return
        listed = [part.strip().removesuffix("...") for part in (match.group(3) or "").split(",")]
        parameters = (*filter(None, listed), *(["__VA_ARGS__"] if "..." in match.group() else []))
        arity = None
        if match.group(2) is not None:
            count = len([name for name in (match.group(3) or "").split(",") if name.strip()])
            arity = (count, count) if "..." not in match.group() else (max(count - 1, 0), UNBOUNDED)
        self._add(Named(definition.name, "macro", "", definition.start, arity))
        head = match.end()
        code = read_code(_BLANKS.sub(" ", text[:head]) + text[head:], is_metal=self.is_metal)
        self.macros[definition.name] = Entity(
            definition.name, definition.scope, definition.start, code, parameters, "macro", definition.end
        )

    def _read_rest(self, bodies: list[Definition]) -> None:
        """What stands between definitions: declarations, calls of macros, explicit instantiations."""
        for definition in self.cxx.prototypes:
            arity = _arity(self._text[definition.start : definition.end], definition.name)
            self._add(Named(definition.name, "declaration", definition.scope, definition.start, arity))
        at = 0
        for start, end in [*((d.start, d.end) for d in bodies), (len(self._text), len(self._text))]:
            self._read_between(at, start)
            at = max(at, end)

    def _read_between(self, start: int, end: int) -> None:
        for match in re.finditer(r"[^;{}]*[;{}]|[^;{}]+\Z", self._text[start:end]):
            text = match.group()
            if not text.strip(" \r\n;{}"):
                continue
            begin = start + match.start()
            code = read_code(text, is_metal=self.is_metal)
            scope = self.cxx.scope_at(begin + len(text) - len(text.lstrip()) + 1)
            for name, at in code.declared.items():
                self._add(Named(name, "name", scope, begin + at))
            self._add_enumerators(code, scope, begin)
            if not re.match(r"\s*(?:inline\s+)?namespace\b", text):
                self.entities.append(Entity("", scope, begin, code, end=begin + len(text)))

    def _add_enumerators(self, code: Code, scope: str, at: int) -> None:
        for name in code.enumerators:
            self._add(Named(name, "enumerator", scope, at))


def _live(cxx: CxxFile) -> tuple[list[Conditional], str]:
    """The conditionals of a file that do not guard it as a whole, and its text without directives and dead branches."""
    text = cxx.uncommented
    directives = find_directives(text)
    conditionals, _ = find_conditionals(directives)
    out = bytearray(text)
    blanked = [(d.start, d.end) for d in directives]
    blanked += [(b.start, b.end) for c in conditionals for b in never_compiled(c)]
    for start, end in blanked:
        out[start:end] = re.sub(rb"[^\r\n]", b" ", bytes(out[start:end]))
    guards = [c for c in conditionals if len(c.branches) == 1 and _is_guard(text, c)]
    return [c for c in conditionals if c not in guards], out.decode("latin-1")


def _is_guard(text: bytes, conditional: Conditional) -> bool:
    opening = text.rfind(b"#", 0, conditional.branches[0].start)
    return not text[:opening].strip() and not text[conditional.end :].strip()


def _parameters(text: str, name: str) -> tuple[list[list[str]], bool] | None:
    """The parameters of a declaration as tokens, and whether it is a template."""
    return _parameters_of_head(text.partition("{")[0], name)


@lru_cache(maxsize=4096)  # commits of a stack share most of theirs
def _parameters_of_head(head: str, name: str) -> tuple[list[list[str]], bool] | None:
    if name not in head:
        return None
    tokens = Tokens(head)
    for index, word in enumerate(tokens.texts):
        if word == name and tokens.at(index + 1) == "(" and index + 1 in tokens.closing:
            parts = split_at_commas(tokens, index + 1, tokens.closing[index + 1], angles=True)
            return [list(texts_of(tokens, part)) for part in parts], "template" in tokens.texts[:index]
    return None


def _arity(text: str, name: str) -> tuple[int, int] | None:
    """The numbers of arguments that a function of a declaration takes."""
    found = _parameters(text, name)
    if found is None:
        return None
    parameters = found[0]
    if parameters == [["void"]]:
        return 0, 0
    if any("..." in parameter for parameter in parameters):
        return 0, UNBOUNDED
    return sum("=" not in parameter for parameter in parameters), len(parameters)


def _signature(text: str, name: str) -> tuple[str, ...]:
    """What a caller has to fit: the types of the parameters, and whether there are template arguments."""
    found = _parameters(text, name)
    if found is None:
        return ()
    types = []
    for parameter in found[0]:
        words = parameter[: parameter.index("=")] if "=" in parameter else parameter
        kept = [word for word in words if word not in ("const", "&")]
        types.append(" ".join(kept[:-1] if len(kept) > 1 else kept))
    return ("template" if found[1] else "", *types)
