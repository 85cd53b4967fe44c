"""A place is a definition and a statement of it: edits elsewhere do not change it, an edit of the statement does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_trees import commit
from patchstack.tree.git import Repository, Tree
from stackproof.base_commit.findings import noted
from stackproof.base_commit.places import Place, place_of, uses
from stackproof.model import Finding

METAL = """\
#include <metal_stdlib>
namespace ours {
template <typename T>
kernel void fill(
    device T* out,
    constant T& value,
    uint i [[thread_position_in_grid]]) {
  out[i] =
      value;  // one value
  out[i + 1] = value;
}
} // namespace ours

#define MAKE(T) \\
  template [[host_name("fill_" #T)]] kernel void fill<T>(device T*, constant T&, uint);

MAKE(float);
"""
PYTHON = """\
class Case:
    @mark
    def test(self, x,
             y):
        if x:
            return f(x,
                     y)
        return 0
"""
YAML = """\
- func: one(Tensor a) -> Tensor
  dispatch:
    MPS: one_mps

- func: two()
  dispatch:
    MPS: two_mps
"""


def tree_of(root: Path, files: dict[str, str]) -> Tree:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    name = commit(root, "tree")
    return Tree.at(Repository.open(root), name)


def in_definition(place: Place) -> tuple[str, str]:
    return place.definition, place.statement


@pytest.mark.parametrize(
    ("line", "definition", "statement"),
    [
        (8, "kernel ours::fill", "out [ i ] = value ;"),
        (9, "kernel ours::fill", "out [ i ] = value ;"),
        (10, "kernel ours::fill", "out [ i + 1 ] = value ;"),
        (17, "registration MAKE", "MAKE ( float ) ;"),
        (1, "", "# include < metal_stdlib > namespace ours {"),
        (0, "", ""),
        (99, "", ""),
    ],
)
def test_a_line_of_a_kernel_is_told_by_its_statement(
    tmp_path: Path, line: int, definition: str, statement: str
) -> None:
    tree = tree_of(tmp_path, {"a.metal": METAL})
    assert in_definition(place_of(tree, "a.metal", line)) == (definition, statement)


def test_a_place_survives_edits_elsewhere_and_other_line_breaks(tmp_path: Path) -> None:
    before = place_of(tree_of(tmp_path, {"a.metal": METAL}), "a.metal", 9)
    moved = METAL.replace("namespace ours {", "namespace ours {\n// words\nstruct Other { int x; };").replace(
        "out[i] =\n      value;  // one value", "out[i] = value;"
    )
    after = tree_of(tmp_path, {"a.metal": moved.replace("value;\n}", "value * 2;\n}")})
    assert place_of(after, "a.metal", 10) == before
    assert place_of(after, "a.metal", 11) != place_of(after, "a.metal", 10)


@pytest.mark.parametrize(
    ("line", "definition", "statement"),
    [
        (2, "Case.test", "@ mark def test ( self , x , y ) :"),
        (4, "Case.test", "@ mark def test ( self , x , y ) :"),
        (5, "Case.test", "if x :"),
        (7, "Case.test", "return f ( x , y )"),
        (8, "Case.test", "return 0"),
        (9, "", ""),
    ],
)
def test_a_line_of_python_is_told_by_its_statement(tmp_path: Path, line: int, definition: str, statement: str) -> None:
    tree = tree_of(tmp_path, {"a.py": PYTHON})
    assert in_definition(place_of(tree, "a.py", line)) == (definition, statement)


def test_a_line_of_yaml_is_told_by_its_entry(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {"a.yaml": YAML})
    assert in_definition(place_of(tree, "a.yaml", 7)) == ("- func : two ( )", "MPS : two_mps")


def test_uses_of_a_word_are_counted_by_place_and_comments_are_none(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {"a.mm": "int f() {\n  // wait\n  wait();\n  wait();\n  waiter();\n  return 0;\n}\n"})
    assert uses(tree, "a.mm", {"wait"}) == {Place("a.mm", "function f", "wait ( ) ;"): 2}


def finding(line: int, message: str = "is off by 3 units") -> Finding:
    return Finding(message, "a.metal", line, "rule")


def test_a_finding_of_the_base_is_a_note_whatever_its_line_and_numbers(tmp_path: Path) -> None:
    base = tree_of(tmp_path, {"a.metal": METAL})
    head = tree_of(tmp_path, {"a.metal": "// words\n" + METAL})
    (note,) = noted([finding(11)], [finding(10, "is off by 4.5 units")], head=head, base=base)
    assert not note.fails
    assert note.message == "is off by 3 units (as before the stack)"
    (kept,) = noted([finding(10)], [finding(10)], head=head, base=base)
    assert kept == finding(10)
    (other,) = noted([finding(11, "races")], [finding(10)], head=head, base=base)
    assert other.fails


def test_one_more_fault_at_the_same_statement_fails_unless_one_fault_is_found_many_times(tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {"a.metal": METAL})
    twice = noted([finding(10), finding(10)], [finding(10)], head=tree, base=tree)
    assert [one.fails for one in twice] == [False, True]
    repeated = noted([finding(10), finding(10)], [finding(10)], head=tree, base=tree, repeated=True)
    assert [one.fails for one in repeated] == [False, False]
    touched = noted([finding(10)], [finding(10)], head=tree, base=tree, touched=lambda one: True)
    assert [one.fails for one in touched] == [True]
