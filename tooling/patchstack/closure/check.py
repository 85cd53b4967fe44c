"""Which names the files of a change use and do not find, in the tree that the change leaves.

A name that was not found before the change, in the same place, is not the change's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from patchstack.closure.headers import Contents, Headers
from patchstack.closure.kernels import asked_for, in_words, is_registered, registered
from patchstack.closure.unit import NOWHERE, Missing, Unit
from patchstack.edits.cxx_edit import CXX_SUFFIXES
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import Tree

_KERNELS = "aten/src/ATen/native/mps/kernels"


def newly_missing(
    below: Tree, after: Tree, paths: Iterable[str], sources: Sequence[str], contents: Contents
) -> list[Missing]:
    """The uses that cannot be resolved after a change, and could before it or were not there.

    Args:
        below: the tree before the change.
        after: the tree with it.
        paths: the files that it touches.
        sources: files that may include a header of them.
        contents: files that were read for other changes of the stack.
    """
    touched = [path for path in paths if path.endswith(CXX_SUFFIXES)]
    headers = Headers(after, contents)
    found = list(_missing(headers, touched, sources))
    callers = [m for path in touched for m in _old_callers(Headers(below, contents), headers, path)]
    said = {(missing.path, missing.name, missing.user) for missing in found}
    callers = [missing for missing in callers if (missing.path, missing.name, missing.user) not in said]
    if not found:
        return callers
    before = list(_missing(Headers(below, contents), touched, sources))
    known = {missing.key for missing in before}
    open_files = {
        missing.path for missing in before
    }  # what they use is not all in the tree, which may be a part of one
    return [
        dataclasses.replace(missing, is_certain=False)
        if missing.problem == NOWHERE and (headers.lacks_objects or missing.path in open_files)
        else missing
        for missing in found
        if missing.key not in known
    ] + callers


def _missing(headers: Headers, touched: Sequence[str], sources: Sequence[str]) -> Iterator[Missing]:
    paths = [path for path in touched if headers.tree.exists(path)]
    compiled = [path for path in paths if not path.endswith(".h")]
    changed = [path for path in paths if path.endswith(".h")]
    if changed:
        compiled += [path for path in sources if path not in compiled and _includes_one(headers, path, changed)]
    units = [Unit(headers, path) for path in compiled]
    for path in changed:
        yield from _of_header(headers, path, units)
    for unit in units:
        yield from unit.missing()
        if unit.path.endswith(".mm"):
            yield from _kernels(headers.tree, unit)


def _old_callers(below: Headers, after: Headers, path: str) -> Iterator[Missing]:
    """Calls that stay as they were, of functions whose parameters a change gave other types."""
    if not (below.tree.exists(path) and after.tree.exists(path)):
        return
    is_metal = path.endswith(".metal")
    old, new = below.scanned(path, is_metal=is_metal), after.scanned(path, is_metal=is_metal)
    changed = {
        name
        for name, signatures in new.signatures.items()
        if name in old.signatures and not signatures & old.signatures[name]
    }
    before = {entity.code for entity in old.entities if entity.name not in changed} if changed else set()
    for entity in new.entities:
        if entity.name in changed or entity.code not in before:
            continue
        for use in entity.code.uses:
            if use.names[-1] in changed:
                at = entity.start + use.at
                problem = "called as before, though its parameters are others now"
                yield Missing(path, use.name, use.names[-1], at, new.line(at), entity.name, problem)


def _includes_one(headers: Headers, path: str, wanted: Sequence[str]) -> bool:
    data = headers.tree.read(path) if headers.tree.exists(path) and not path.endswith(".h") else None
    return data is not None and any(headers.place(i.path, path) in wanted for i in parse_cxx(data).includes)


def _of_header(headers: Headers, path: str, includers: Iterable[Unit]) -> Iterator[Missing]:
    """What a header uses and neither has nor is given by the files that include it."""
    for missing in Unit(headers, path, is_metal=False).missing():
        given = [
            unit.provides(missing.part, include.start)
            for unit in includers
            for include in unit.includes
            if headers.place(include.path, unit.path) == path
        ]
        if not given or not (any(given) if missing.conditional else all(given)):
            yield missing


def _kernels(tree: Tree, unit: Unit) -> Iterator[Missing]:
    """Kernels that a host file asks for and no shader file registers."""
    asked = list(asked_for(unit.file.cxx.uncommented.decode("latin-1")))
    if not asked:
        return
    stem = unit.path.rpartition("/")[2].rpartition(".")[0]
    own = f"{_KERNELS}/{stem}.metal"
    for shaders in ([own], [p for p in tree.walk(_KERNELS) if p.endswith((".metal", ".h"))], tree.walk("c10/metal")):
        known = {name for path in shaders if tree.exists(path) for name in registered(_code(tree, path))}
        asked = [(name, at) for name, at in asked if not is_registered(name, known)]
        if not asked:
            return
    if tree.exists(own):
        for name, at in asked:
            user = next((d.name for d in unit.file.cxx.definitions if d.start <= at < d.end), "")
            what = f"kernel {in_words(name)}"
            yield Missing(unit.path, what, what, at, unit.file.line(at), user, "registered by no shader file")


def _code(tree: Tree, path: str) -> str:
    return parse_cxx(tree.read(path) or b"").uncommented.decode("latin-1")
