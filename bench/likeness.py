"""How alike named pieces of code are: edited by review, against written independently for the same purpose.

    python bench/likeness.py [--older 2.6] [--newer 2.13]

The thresholds of ``patchstack.planning.parts`` (a change that landed with a reviewer's edits, a renamed helper) rest on
these figures. *Edited*: functions and types of one header in two releases, under one name, that are not the same any
more: what months of review and maintenance leave of a text. *Independent*: functions of one name in ``native/cpu`` and
``native/cuda`` of the older release: two authors, one purpose. Small pieces are left out: a wrapper of five lines is
alike everywhere. Reported are the share of pieces above each threshold and the likeness of all of them taken as one
change, weighed by length as ``likeness`` does.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from patchstack.edits.cxx_edit import cxx_pieces
from patchstack.planning.parts import LANDED, RENAMED, Part, likeness
from patchstack.reference import build_reference
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import Repository, Tree
from patchstack.tree.pieces import Piece, similarity

KINDS = ("function", "struct", "class")
SMALL = 60  # tokens
NATIVE = "aten/src/ATen/native"


def pieces(tree: Tree, folder: str, suffixes: tuple[str, ...]) -> Iterator[Piece]:
    """Functions and types of some size in the files below a folder."""
    for path in tree.walk(folder):
        if path.endswith(suffixes):
            for piece in cxx_pieces(parse_cxx(tree.read(path) or b""), path):
                if piece.kind in KINDS and len(piece.tokens) > SMALL:
                    yield piece


def edited(older: Tree, newer: Tree) -> Iterator[Part]:
    """Pieces of headers that both releases have under one name, and not with one text."""
    then = {(p.path, p.kind, p.name): p for p in pieces(older, NATIVE, (".h",))}
    for now in pieces(newer, NATIVE, (".h",)):
        before = then.get((now.path, now.kind, now.name))
        if before is not None and before.tokens != now.tokens:
            yield Part(now, before, similarity(now, before))


def independent(tree: Tree) -> Iterator[Part]:
    """Pieces of one name for the CPU and for CUDA."""
    cpu = {p.name: p for p in pieces(tree, f"{NATIVE}/cpu", (".cpp", ".h"))}
    for piece in pieces(tree, f"{NATIVE}/cuda", (".cu", ".cuh")):
        if piece.name in cpu:
            yield Part(piece, cpu[piece.name], similarity(piece, cpu[piece.name]))


def row(name: str, parts: Iterable[Part]) -> str:
    """One line of the table."""
    found = list(parts)
    values = sorted(part.similarity for part in found)
    shares = [sum(value >= limit for value in values) / max(len(values), 1) for limit in (LANDED, RENAMED)]
    median = values[len(values) // 2] if values else 0.0
    return f"| {name} | {len(values)} | {median:.2f} | {likeness(found):.2f} | {shares[0]:.0%} | {shares[1]:.0%} |"


def main() -> None:
    """Parse the command line, measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--older", default="2.6", help="reference tree with the sources of both backends")
    parser.add_argument("--newer", default="2.13", help="reference tree with the headers of today")
    options = parser.parse_args()
    older, newer = (
        Tree.at(Repository.open(build_reference(name).path), "main") for name in (options.older, options.newer)
    )
    print(f"| pieces | number | median | as one change | at least {LANDED} | at least {RENAMED} |")
    print("|---|---|---|---|---|---|")
    print(row(f"edited, {options.older} to {options.newer}", edited(older, newer)))
    print(row(f"independent, {options.older}", independent(older)))


if __name__ == "__main__":
    main()
