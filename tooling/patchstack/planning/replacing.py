"""Replacing what a tree has: what goes must not be missed by what stays.

Only names and declarations are compared. A name that goes and is still used, or comes back as something else (a struct
with other members, a function with other parameters) under code that stays, stops the run; that the rest compiles and
computes the same is for the build and the gates to show.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from patchstack.edits import Spot, Status
from patchstack.edits.create_file import CreateFile
from patchstack.edits.cxx_anchor import DEFINITION_KINDS
from patchstack.edits.cxx_edit import CXX_SUFFIXES, CxxEdit, cxx_pieces
from patchstack.planning.lines import Lineage
from patchstack.planning.model import EditPlan
from patchstack.tree.cxx import CxxFile, parse_cxx
from patchstack.tree.git import Tree
from patchstack.tree.pieces import Piece
from patchstack.tree.text import find_lines, line_number, lines_end

_USABLE = tuple(kind for kind in DEFINITION_KINDS if kind != "registration")


def refuse_dangling(edits: Sequence[EditPlan], after: Tree, lines: Lineage) -> list[EditPlan]:
    """The edits, with a conflict for each that takes away what code that stays still uses.

    Looked at are the files of the change and, for what a header has, the files around that header.

    Args:
        after: the tree with all of the edits made.
        lines: where its lines come from.
    """
    if any(plan.outcome.status in (Status.CONFLICT, Status.DIFFERENT) for plan in edits):
        return list(edits)  # half of the change in place says nothing about the whole
    gone = [piece for plan in edits for piece in plan.outcome.replaced if piece.kind in _USABLE]
    paths = {plan.edit.path for plan in edits if plan.edit.path.endswith(CXX_SUFFIXES)}
    files = {path: parse_cxx(after.read(path) or b"") for path in sorted({*paths, *_users_of_headers(gone, after)})}
    stays = {path: _foreign_code(file, edits, path) for path, file in files.items()}
    near = {path: stays[path] for path in paths}
    now = {piece.name: piece for path in paths for piece in cxx_pieces(files[path], path)}
    checked = []
    for plan in edits:
        missed = [p for p in plan.outcome.replaced if p in gone and not _same_interface(p, now)]
        uses = [use for p in missed for use in _uses(p.name, stays if p.path.endswith(".h") else near)]
        if uses:
            problem, spots = "code that stays uses what would be replaced", lines.spots(dict.fromkeys(uses), "")
            failed = plan.edit.failed(plan.outcome.anchor, problem, uses=spots, status=Status.DIFFERENT)
            outcome = dataclasses.replace(failed, replaced=plan.outcome.replaced)
            plan = dataclasses.replace(plan, outcome=outcome)
        checked.append(plan)
    return checked


def _users_of_headers(gone: Iterable[Piece], after: Tree) -> Iterator[str]:
    """The files around a header (the folder above its own) in which a name of it that goes stands at all."""
    names: dict[str, set[bytes]] = {}
    for piece in gone:
        if piece.path.endswith(".h"):
            names.setdefault("/".join(piece.path.split("/")[:-2]), set()).add(piece.name.encode())
    for folder, wanted in names.items():
        for path in after.walk(folder):
            if path.endswith(CXX_SUFFIXES) and any(name in (after.read(path) or b"") for name in wanted):
                yield path


def _same_interface(gone: Piece, now: Mapping[str, Piece]) -> bool:
    """Whether code that uses the old thing can use the new one: the same type, or a function declared the same."""
    new = now.get(gone.name)
    if new is None or new.kind != gone.kind:
        return False
    old, new_tokens = gone.tokens, new.tokens
    if gone.kind not in ("function", "kernel"):
        return old == new_tokens
    return _declaration(old) == _declaration(new_tokens)


def _declaration(tokens: tuple[str, ...]) -> tuple[str, ...]:
    return tokens[: tokens.index("{")] if "{" in tokens else tokens


def _foreign_code(file: CxxFile, edits: Iterable[EditPlan], path: str) -> bytes:
    """The code of a file, comments and what the edits put there blanked."""
    code = bytearray(file.uncommented)
    for plan in edits:
        if plan.edit.path != path:
            continue
        if isinstance(plan.edit, CreateFile):
            return b""
        text = plan.edit.fragment.text if isinstance(plan.edit, CxxEdit) else b""
        at = find_lines(file.data, text) if text else None
        if at is not None:
            end = lines_end(file.data, at, text)
            code[at:end] = re.sub(rb"[^\r\n]", b" ", bytes(code[at:end]))
    return bytes(code)


def _uses(name: str, code: Mapping[str, bytes]) -> Iterator[Spot]:
    word = re.compile(rb"\b%s\b" % re.escape(name.rpartition("::")[2].encode()))
    for path, text in code.items():
        found = word.search(text)
        if found:
            yield Spot(name, line_number(text, found.start()), path)
