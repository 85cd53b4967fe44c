"""Which kernels a stack brings: those whose code the base does not have, told from the text and not from the name.

A kernel is the base's where its definition, and every definition that it uses, has the same tokens there. A file that
gains one kernel does not make its hundred others the stack's, and a kernel that keeps its name and gets another body
is the stack's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from patchstack.cache import write_whole
from patchstack.tree.git import Tree
from stackproof.engines.metal.build import Source, preprocess, rewrite
from stackproof.engines.metal.kernels import Kernel
from stackproof.engines.metal.sources import INCLUDE_FOLDERS, collect_sources, write_sources
from stackproof.engines.metal.tokens import TokenStream
from stackproof.engines.metal.toolchain import digest, find_toolchain, headers_digest

_TYPES = ("struct", "class", "union", "enum")


def kernels_brought(base: Tree | None, head: Tree, paths: Sequence[str], cache: Path) -> dict[str, str]:
    """The kernels that the head has in these files and the base has not, each with its file.

    Args:
        base: the tree below the stack; ``None`` where there is none.
        head: the tree with the stack.
        paths: ``.metal`` files of the head.
        cache: folder for what was found out.

    Raises:
        CompileError: a source cannot be preprocessed.
        ToolchainError: there is no compiler.
    """
    found: dict[str, str] = {}
    for path in paths:
        before = kernel_digests(base, path, cache) if base is not None and base.exists(path) else {}
        now = kernel_digests(head, path, cache)
        found |= {name: path for name, text in now.items() if before.get(name) != text}
    return found


def kernel_digests(tree: Tree, path: str, cache: Path) -> Mapping[str, str]:
    """By host name, the digest of everything that each kernel of a source is made of.

    Raises:
        CompileError: the source cannot be preprocessed.
        ToolchainError: there is no compiler.
    """
    root = write_sources(collect_sources(tree, path), cache)
    place = cache / "kernel-digests" / f"{digest(root.name, path, headers_digest())}.json"
    if not place.exists():
        include_dirs = tuple(root / folder for folder in INCLUDE_FOLDERS)
        rewritten = rewrite(preprocess(Source(root / path, include_dirs, root=root), find_toolchain()))
        write_whole(place, json.dumps(_digests(rewritten.tokens, rewritten.kernels)))
    known: dict[str, str] = json.loads(place.read_text())
    return known


def _digests(tokens: TokenStream, kernels: Sequence[Kernel]) -> dict[str, str]:
    definitions: dict[str, list[tuple[int, int]]] = {}
    holder: list[tuple[int, int]] = []
    for begin, end in _items(tokens, 0, len(tokens)):
        holder.append((begin, end))
        for name in _defined(tokens, begin, end):
            definitions.setdefault(name, []).append((begin, end))
    found = {}
    for kernel in kernels:
        own = next(one for one in holder if tokens[one[0]].start <= kernel.declaration.end - 1 < tokens[one[1] - 1].end)
        used = _used(tokens, own, definitions)
        found[kernel.host_name] = digest(*(tokens.source(*item) for item in used))
    return found


def _used(
    tokens: TokenStream, first: tuple[int, int], definitions: Mapping[str, Sequence[tuple[int, int]]]
) -> list[tuple[int, int]]:
    """An item and all that it uses, directly or through others, in the order of the text."""
    seen, waiting = {first}, [first]
    while waiting:
        begin, end = waiting.pop()
        for word in {token.text for token in tokens[begin:end] if token.kind == "word"}:
            fresh = [item for item in definitions.get(word, ()) if item not in seen and not _instantiates(tokens, item)]
            seen.update(fresh)
            waiting += fresh
    return sorted(seen)


def _instantiates(tokens: TokenStream, item: tuple[int, int]) -> bool:
    """Whether this is an explicit instantiation: another kernel of the same template is no part of this one."""
    return tokens.is_text(item[0], "template") and not tokens.is_text(item[0] + 1, "<")


def _items(tokens: TokenStream, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Definitions and declarations in namespaces, as ranges of tokens."""
    at = start = begin
    while at < end:
        if tokens.is_text(at, "{"):
            close = tokens.partner[at]
            if tokens.is_text(start, "namespace", "inline", "extern") and _opens_scope(tokens, start, at):
                yield from _items(tokens, at + 1, close)
                at = start = close + 1
            elif tokens.is_text(close + 1, ";") or not _ends_with_body(tokens, start, at):
                at = close + 1
            else:
                yield start, close + 1
                at = start = close + 1
        elif tokens.is_text(at, ";"):
            yield start, at + 1
            at = start = at + 1
        else:
            at = tokens.partner[at] + 1 if tokens.is_text(at, "(", "[") else at + 1
    if start < end:
        yield start, end


def _opens_scope(tokens: TokenStream, start: int, brace: int) -> bool:
    words = [tokens[at].text for at in range(start, brace)]
    return "namespace" in words or (words[0] == "extern" and len(words) == 2)


def _ends_with_body(tokens: TokenStream, start: int, brace: int) -> bool:
    """Whether a brace at the top of an item is a function's body, and not an initialiser or a type's members."""
    outside = list(_top_level(tokens, start, brace))
    return tokens.is_text(brace - 1, ")", "const", "noexcept") or ("(" in outside and "=" not in outside)


def _top_level(tokens: TokenStream, begin: int, end: int) -> Iterator[str]:
    at = begin
    while at < end:
        yield tokens[at].text
        at = tokens.partner[at] + 1 if tokens.is_text(at, "(", "[", "{") else max(tokens.skip_angles(at), at + 1)


def _defined(tokens: TokenStream, begin: int, end: int) -> set[str]:
    """Names that an item defines: its function or variable, its type, and the members of an enumeration."""
    at = begin
    while tokens.is_text(at, "template"):
        at = max(tokens.skip_angles(at + 1), at + 1)
    head = at
    last, names = "", set()
    while at < end and not tokens.is_text(at, "(", "=", "{", ";", ":"):
        token = tokens[at]
        if token.text == "using" or token.text in _TYPES:
            names.add(_type_name(tokens, at + 1))
        last = token.text if token.kind == "word" else last
        at = tokens.partner[at] + 1 if token.text == "[" else max(tokens.skip_angles(at), at + 1)
    names.add(last)
    if any(tokens.is_text(one, "enum") for one in range(head, at)):
        brace = next((one for one in range(at, end) if tokens.is_text(one, "{")), end)
        names |= {tokens[one].text for one in range(brace, end) if tokens[one].kind == "word"}
    return names - {"", "operator"}


def _type_name(tokens: TokenStream, at: int) -> str:
    """The name after ``struct``, ``enum class`` or ``using``, attributes aside."""
    while tokens.is_text(at, *_TYPES, "namespace", "["):
        at = tokens.partner[at] + 1 if tokens.is_text(at, "[") else at + 1
    return tokens[at].text if at < len(tokens) and tokens[at].kind == "word" else ""
