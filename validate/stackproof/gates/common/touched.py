"""Which kernels and host functions a stack touches: by their own text, or by that of anything they are made of.

Names are followed through the definitions of the files that the kernel or the function is made of. What is told apart
by name only (overloads, specialisations, a member of another type) counts as one, so that a stack rather touches too
much than too little.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from patchstack.errors import PatchstackError
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import Tree
from patchstack.tree.text import Splice, apply_splices
from stackproof.base_commit.places import CXX_SUFFIXES, outermost, tokens_of
from stackproof.engines.metal.build import Source, preprocess, rewrite
from stackproof.engines.metal.sources import INCLUDE_FOLDERS, collect_sources, write_sources
from stackproof.engines.metal.toolchain import find_toolchain
from stackproof.engines.standin.stack import OPERATIONS, entries_of
from stackproof.model import GateContext

_WORD = re.compile(r"[A-Za-z_]\w*")
_LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
_HOLE = re.compile(r"\\\{[^}]*\\\}")
_DECLARED = re.compile(r"(?:template < [^;{}]* > )?(?:struct|class|union) \w+ ; ?")
_FEWEST_LETTERS = 4  # of a literal that is taken for the beginning of a kernel's name


@dataclass(frozen=True)
class _Texts:
    """The definitions of some files.

    Attributes:
        named: their tokens by the last part of their name, all of one name together.
        loose: by path, the tokens outside of every definition, declaration, include and namespace head.
    """

    named: Mapping[str, tuple[str, ...]]
    loose: Mapping[str, str]

    @cached_property
    def _words(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(word for text in texts for word in _words(text)) for name, texts in self.named.items()}

    def reached(self, roots: Iterable[str]) -> set[str]:
        """The roots, and every word in what they name, and in what that names."""
        words = set(roots)
        waiting = list(words)
        while waiting:
            new = self._words.get(waiting.pop(), frozenset()) - words
            words |= new
            waiting += new
        return words


class Touched:
    """What of the kernels and host functions below a stack it touches.

    Args:
        base: the tree below.
        head: the tree with the stack.
        changed: paths that differ between them.
        cache: where sources are written to, to be preprocessed.
    """

    def __init__(self, base: Tree, head: Tree, changed: Iterable[str], cache: Path) -> None:
        self.base = base
        self.head = head
        self._changed = tuple(path for path in changed if path.endswith(CXX_SUFFIXES))
        self._cache = cache
        self._hooks_touch = True
        self._kept: dict[tuple[str, ...], Any] = {}

    @classmethod
    def by(cls, context: GateContext) -> Touched:
        """By the stack of a context."""
        names = context.repository.text("diff", "--name-only", "--no-renames", context.base, context.head)
        base, head = (Tree.at(context.repository, commit) for commit in (context.base, context.head))
        return cls(base, head, names.splitlines(), context.cache / "before")

    @cached_property
    def but_for_hooks(self) -> Touched:
        """The same, of which statements that were only put into a host function touch nothing.

        A finding then has to be the same to the last number before it is the base's.
        """
        other = copy.copy(self)  # what was read of the trees serves both
        other._hooks_touch = False
        return other

    def kernel(self, source: str, host_name: str) -> bool:
        """Whether the stack touches a kernel, what it is made of, or a host function that launches it.

        Args:
            source: the ``.metal`` file that has it.
            host_name: of the kernel.
        """
        then, now = (one.get(host_name) for one in self._instances(source))
        if then is None or then != now:
            return True
        own: bool = self._once(("kernel", source, now[0]), lambda: _differ(*self._kernels(source), [now[0]]))
        launch = ("launch", source, host_name, *self._rule)
        return own or bool(self._once(launch, lambda: self._launch(source, host_name)))

    def launches(self, op: str) -> bool:
        """Whether the stack touches an op, or any kernel whose host name begins with that of the op."""
        source = {path for path in self._changed if path.endswith(".metal")}
        kernels = [(path, name) for path in source for one in self._instances(path) for name in one]
        return self.op(op) or any(self.kernel(path, name) for path, name in kernels if name.startswith(op))

    def has_kernel(self, source: str, host_name: str) -> bool:
        """Whether a source of either tree has a kernel of this host name."""
        return any(host_name in one for one in self._instances(source))

    def definition(self, words: Iterable[str]) -> bool:
        """Whether the stack touches a definition that has one of some words as its name, in a file that it changes."""
        base, head = (_texts(tree, self._changed) for tree in (self.base, self.head))
        return any(base.named.get(word) != head.named.get(word) for word in words)

    def op(self, op: str) -> bool:
        """Whether the stack touches the MPS function of an op, or anything that it is made of."""
        return bool(self._once(("op", op, *self._rule), lambda: self._op(op)))

    def _op(self, op: str) -> bool:
        then, now = (functions.get(op) for functions in self._functions)
        if then is None or then != now:
            return True
        return self._function(now, self._host(lambda text: any(name.encode() in text for name in now)))

    def _function(self, names: Iterable[str], host: tuple[_Texts, _Texts]) -> bool:
        """Whether any of some functions is touched; one that no file defines is, where the stack's files name it."""
        found = [name for name in names if any(name in side.named for side in host)]
        unknown = [name for name in names if name not in found]
        mentioned = any(name in self._mentioned for name in unknown)
        return mentioned or (bool(found) and _differ(*host, found, hooks_touch=self._hooks_touch))

    def _launch(self, source: str, host_name: str) -> bool:
        """Whether the stack touches a host function that has the kernel's name, or one that calls it."""
        stem = Path(source).stem
        host = self._host(lambda text: f"{stem}_metallib.h".encode() in text, stem)
        names = [{name for name, texts in side.named.items() if _names_kernel(texts, host_name)} for side in host]
        if not names[0] or names[0] != names[1]:
            return True
        if not all(_are_same(host[0].named[one], host[1].named[one], self._hooks_touch) for one in names[1]):
            return True
        return any(
            host[1].reached(functions) & names[1] and self.op(op)
            for op, functions in self._functions[1].items()
            if any(one in host[1].named for one in functions)
        )

    @property
    def _functions(self) -> tuple[dict[str, frozenset[str]], ...]:
        """By op, the names of its MPS functions, of both trees."""
        found: tuple[dict[str, frozenset[str]], ...] = self._once(("functions",), self._read_functions)
        return found

    def _read_functions(self) -> tuple[dict[str, frozenset[str]], ...]:
        sides = []
        for tree in (self.base, self.head):
            found: dict[str, set[str]] = {}
            for entry in entries_of(tree):
                found.setdefault(entry.name, set()).add(entry.function)
            sides.append({op: frozenset(names) for op, names in found.items()})
        return tuple(sides)

    @cached_property
    def _mentioned(self) -> frozenset[str]:
        """Every word of the files that the stack changes."""
        texts = [text for tree in (self.base, self.head) for path in self._changed if (text := tree.read(path))]
        return frozenset(word for text in texts for word in _words(text.decode(errors="replace")))

    def _host(self, wanted: Callable[[bytes], bool], stem: str = "") -> tuple[_Texts, _Texts]:
        """Host files that are wanted for their text or their name, with the host side of what the stack changes.

        A host file that the stack brings is not among these: what it keeps to itself is seen by no other file.
        """
        brought = {path for path in self._changed if path.endswith(".mm") and not self.base.exists(path)}
        changed = [path for path in self._changed if not path.endswith(".metal") and path not in brought]
        sides = []
        for tree in (self.base, self.head):
            files = [path for path in tree.walk(OPERATIONS) if path.endswith(".mm")]
            own = [path for path in files if Path(path).stem == stem or wanted(tree.read(path) or b"")]
            sides.append(_texts(tree, dict.fromkeys([*own, *changed])))
        return sides[0], sides[1]

    def _kernels(self, source: str) -> tuple[_Texts, _Texts]:
        """What a Metal source of both trees is made of."""
        found: tuple[_Texts, _Texts] = self._once(
            ("parts", source),
            lambda: tuple(_texts(tree, _parts(tree, source)) for tree in (self.base, self.head)),
        )
        return found

    def _instances(self, source: str) -> tuple[dict[str, tuple[str, str]], ...]:
        """Of both trees by host name, a kernel's own name and what it is instantiated with."""
        found: tuple[dict[str, tuple[str, str]], ...] = self._once(
            ("instances", source),
            lambda: tuple(_instances(tree, source, self._cache) for tree in (self.base, self.head)),
        )
        return found

    @property
    def _rule(self) -> tuple[str, ...]:
        return () if self._hooks_touch else ("but for hooks",)

    def _once(self, key: tuple[str, ...], make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


def _instances(tree: Tree, source: str, cache: Path) -> dict[str, tuple[str, str]]:
    """By host name, a kernel's own name and what it is instantiated with; empty where the source cannot be read."""
    try:
        root = write_sources(collect_sources(tree, source), cache)
        whole = Source(root / source, tuple(root / folder for folder in INCLUDE_FOLDERS), root=root)
        kernels = rewrite(preprocess(whole, find_toolchain()), entry_points=False).kernels
    except PatchstackError:
        return {}
    return {
        one.host_name: (
            one.declaration.simple_name,
            " ".join([one.declaration.name, *(parameter.declaration for parameter in one.parameters)]),
        )
        for one in kernels
    }


def _differ(base: _Texts, head: _Texts, roots: Iterable[str], *, hooks_touch: bool = True) -> bool:
    """Whether anything that the roots are made of is not the same on both sides; also where they are not found."""
    roots = list(roots)
    if not any(root in head.named for root in roots):
        return True
    words = (head if hooks_touch else base).reached(roots)
    if not all(_are_same(base.named.get(word), head.named.get(word), hooks_touch) for word in words):
        return True
    return any(base.loose.get(path) != text for path, text in head.loose.items() if path in base.loose)


def _are_same(then: tuple[str, ...] | None, now: tuple[str, ...] | None, hooks_touch: bool) -> bool:
    """Whether definitions are the same, but for statements put into them where those touch nothing."""
    if then == now or hooks_touch or then is None or now is None or len(then) != len(now):
        return then == now
    return all(_only_grew(*pair) for pair in zip(then, now, strict=True))


def _only_grew(then: str, now: str) -> bool:
    """Whether ``now`` is ``then`` with whole statements put in."""
    old, new = then.split(" "), now.split(" ")
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    put_in = [new[start:end] for step, _, _, start, end in steps if step == "insert"]
    return all(step in ("equal", "insert") for step, *_ in steps) and all(
        text.count("{") == text.count("}") and {";", "}"} & set(text) for text in put_in
    )


def _parts(tree: Tree, source: str) -> Iterable[str]:
    try:
        return collect_sources(tree, source)
    except PatchstackError:
        return ()


def _texts(tree: Tree, paths: Iterable[str]) -> _Texts:
    named: dict[str, list[str]] = {}
    loose: dict[str, str] = {}
    for path in paths:
        data = tree.read(path)
        if data is not None:
            definitions, loose[path] = _read(data)
            for name, text in definitions:
                named.setdefault(name, []).append(text)
    return _Texts({name: tuple(sorted(texts)) for name, texts in named.items()}, loose)


@lru_cache(maxsize=512)
def _read(data: bytes) -> tuple[tuple[tuple[str, str], ...], str]:
    file = parse_cxx(data)
    found = list(outermost(file))
    named = [
        (name, tokens_of(file.uncommented[one.start : one.end].decode(errors="replace")))
        for one in found
        for name in dict.fromkeys(one.name.split("::"))
    ]
    heads = [(one.start, one.body_start) for one in file.namespaces]
    ends = [(one.body_end, one.end) for one in file.namespaces]
    spans = [(one.start, one.end) for one in (*found, *file.prototypes)]
    spans += [(one.start, one.end) for one in file.includes]
    loose = tokens_of(_without(file.uncommented, [*heads, *ends, *spans]).decode(errors="replace"))
    return tuple(named), _DECLARED.sub("", f"{loose} ").strip()


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))


def _without(text: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    at, merged = 0, list[Splice]()
    for start, end in sorted(spans):
        if end > at:
            merged.append(Splice(max(start, at), end, b""))
            at = end
    return apply_splices(text, merged)


def _names_kernel(texts: Iterable[str], host_name: str) -> bool:
    """Whether a literal in one of the texts can become a kernel's name: by its holes, or with more behind it."""
    return any(_fits(literal, host_name) for text in texts for literal in _LITERAL.findall(text))


@lru_cache(maxsize=4096)
def _fits(literal: str, host_name: str) -> bool:
    literal = literal.replace(" ", "")
    if len(_HOLE.sub("", re.escape(literal))) < _FEWEST_LETTERS:
        return False
    return bool(re.match(_HOLE.sub(r"\\w*", re.escape(literal)) + r"\w*$", host_name))
