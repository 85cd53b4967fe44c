"""Every edit of the grid-sampler series on the tree that it is for, while its file drifts or loses the anchor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import pytest

from patchstack.edits import Edit, Outcome, Status
from patchstack.edits.cxx_anchor import find_hits
from patchstack.edits.cxx_edit import CxxEdit
from patchstack.edits.cxx_fragment import PlaceCxxFragment, parse_cxx
from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.edits.python_entry import AddPythonEntry, RemovePythonEntry
from patchstack.edits.python_fragment import PlacePythonFragment
from patchstack.series import load_series
from patchstack.tree.git import Repository, Tree
from patchstack.tree.native_functions import NativeFunctions
from patchstack.tree.python import container_in, parse_python, same_expression
from references import require_reference

pytestmark = pytest.mark.needs_reference

# An include that the 2.11 tree has already.
_THERE = "empty_include"
_WITHOUT_ANCHOR = ("create-file", "regenerate-c-shim", "remove-unused-definition")


def _sorted_edits() -> list[tuple[str, Edit, bool]]:
    """Each edit with the release that it is tried on, and whether it is: others only bring what anchors name.

    Some have tests of their own: what is created or regenerated has no anchor, what tidies up or is optional may find
    nothing to do here, what an earlier change brings too is there already, and of several places or texts none has to
    be there.
    """
    chosen: list[tuple[str, Edit, bool]] = []
    brought: set[tuple[str, str, str]] = set()
    for change in load_series("grid_sampler").changes:
        release = "2.13" if change.only_where else "2.11"
        for edit in change.edits:
            if isinstance(edit, PlaceCxxFragment):
                place = (release, edit.path, edit.fragment.name)
                if place in brought or edit.fragment.name == _THERE:
                    continue
                brought.add(place)
            optional = isinstance(edit, ReplaceDefinition) and edit.optional
            if not (optional or edit.only_where or edit.kind in _WITHOUT_ANCHOR):
                chosen.append((release, edit, not (isinstance(edit, CxxEdit) and edit.others)))
    return chosen


SORTED = _sorted_edits()
EDITS = [edit for _, edit, is_tried in SORTED if is_tried]
IDS = [f"{number}-{edit.path.rpartition('/')[2]}-{edit.kind}" for number, edit in enumerate(EDITS)]
ANCHORED = [
    edit
    for edit in EDITS
    if not (isinstance(edit, PlaceCxxFragment) and edit.place.kind == "file")
    and not (isinstance(edit, AddPythonEntry) and not edit.after)
]
"""Edits that name something besides the container; the ways to the containers are tried one step at a time."""
every_edit = pytest.mark.parametrize("edit", EDITS, ids=IDS)
every_anchor = pytest.mark.parametrize("edit", ANCHORED, ids=[IDS[EDITS.index(edit)] for edit in ANCHORED])


@lru_cache(maxsize=1)
def trees() -> dict[int, Tree]:
    """For each edit, by its place in the series, the tree it finds: a reference tree with the edits before it."""
    found: dict[int, Tree] = {}
    for release in ("2.11", "2.13"):
        reference = require_reference(release)
        tree = Tree.at(Repository.open(reference.path), reference.commit)
        for wanted, edit, is_tried in SORTED:
            if wanted != release:
                continue
            if is_tried:
                found[EDITS.index(edit)] = tree
            outcome = edit.plan(tree)
            assert outcome.status is Status.APPLIES, outcome
            assert outcome.after is not None
            tree = tree.with_files({edit.path: outcome.after})
    return found


def content(edit: Edit) -> bytes:
    return trees()[EDITS.index(edit)].read(edit.path) or b""


def plan_with(edit: Edit, data: bytes) -> Outcome:
    return edit.plan(trees()[EDITS.index(edit)].with_files({edit.path: data}))


def comment(path: str, count: int) -> bytes:
    mark = b"#" if path.endswith((".py", ".yaml")) else b"//"
    return b"".join(mark + b" line %d\n" % number for number in range(count))


@every_edit
def test_a_hundred_lines_above_do_not_matter(edit: Edit) -> None:
    before, after = plan_with(edit, content(edit)), plan_with(edit, comment(edit.path, 100) + content(edit))
    assert after.status is Status.APPLIES
    assert after.after == comment(edit.path, 100) + (before.after or b"")


@every_edit
def test_other_line_endings_do_not_matter(edit: Edit) -> None:
    before, after = plan_with(edit, content(edit)), plan_with(edit, content(edit).replace(b"\n", b"\r\n"))
    assert after.status is Status.APPLIES
    assert after.after == (before.after or b"").replace(b"\n", b"\r\n")


@every_edit
def test_reformatting_and_renamed_neighbours_do_not_matter(edit: Edit) -> None:
    data = content(edit)
    if edit.path.endswith((".metal", ".mm", ".h")):
        data = re.sub(rb"\) \{$", b")\n{", data, flags=re.M)
        data = re.sub(rb"^  +", lambda blanks: blanks.group() * 2, data, flags=re.M)
        if not isinstance(edit, ReplaceDefinition):  # which may have them inside
            data = re.sub(rb"\b(clip_coordinates|interp_to_string)\b", rb"\1_v2", data)
    elif edit.path.endswith(".py"):
        data = re.sub(rb'"(masked\.select|cdist|aten\.gcd\.default)"', rb'"\1_v2"', data)
        data = data.replace(b", device_type='mps'", b",  device_type = 'mps'").replace(b"'TestCommon'", b'"TestCommon"')
    else:
        data = data.replace(b"hann_window", b"hamming_window").replace(b"    CUDA: ", b"    CUDA:  ")
    assert data != content(edit) or edit.path.endswith("test_mps.py")
    assert plan_with(edit, data).status is Status.APPLIES


REPLACED = [edit for edit in EDITS if isinstance(edit, ReplaceDefinition)]


@pytest.mark.parametrize("edit", REPLACED, ids=[IDS[EDITS.index(edit)] for edit in REPLACED])
def test_comments_in_a_replaced_definition_and_its_line_breaks_do_not_matter_and_are_told(
    edit: ReplaceDefinition,
) -> None:
    data = content(edit)
    (hit,) = find_hits(parse_cxx(data), edit.place)
    text = data[hit.start : hit.end]
    if edit.place.kind != "macro":
        text = text.replace(b";\n", b"; // as measured\n").replace(b") {\n", b")\n{\n").replace(b"(", b"(\n    ", 1)
    edited = data[: hit.start] + b"// Upstream says more.\n" + text + data[hit.end :]
    outcome = plan_with(edit, edited)
    assert outcome.status is Status.APPLIES
    assert outcome.after == plan_with(edit, data).after
    assert "Upstream says more." in outcome.note


AROUND = [edit for edit in EDITS if isinstance(edit, PlaceCxxFragment) and edit.place.relation in ("before", "after")]


@pytest.mark.parametrize("edit", AROUND, ids=[IDS[EDITS.index(edit)] for edit in AROUND])
def test_what_goes_beside_a_definition_is_outside_of_an_if_around_it(edit: PlaceCxxFragment) -> None:
    data = content(edit)
    (hit,) = find_hits(parse_cxx(data), edit.place)
    wrapped = b"#if defined(FAST)\n" + data[hit.start : hit.end] + b"#endif\n"
    outcome = plan_with(edit, data[: hit.start] + wrapped + data[hit.end :])
    after = outcome.after or b""
    assert wrapped in after
    file = parse_cxx(after)
    own = file.data.index(edit.fragment.text)
    assert not any("FAST" in condition for condition in file.conditions_at(own))


@every_edit
def test_a_second_run_has_nothing_left_to_do(edit: Edit) -> None:
    after = plan_with(edit, content(edit)).after
    assert after is not None
    again = plan_with(edit, after)
    assert again.status is Status.SATISFIED
    assert again.after is None


def spans(edit: Edit) -> Iterator[tuple[int, int, bytes]]:
    """Where the anchor stands, and the name in it that makes it the anchor."""
    data = content(edit)
    if isinstance(edit, PlaceCxxFragment | ReplaceDefinition):
        for hit in find_hits(parse_cxx(data), edit.place):
            yield hit.start, hit.end, edit.place.name.rpartition("::")[2].encode()
    elif isinstance(edit, AddDispatchKey):
        for entry in NativeFunctions(data).find(edit.op):
            yield entry.start, entry.end, edit.op.encode()
    elif isinstance(edit, PlacePythonFragment):
        for node in parse_python(data).find(edit.steps):
            yield node.start_byte, data.index(b"\n", node.end_byte) + 1, edit.steps[-1].name.encode()
    elif isinstance(edit, AddPythonEntry | RemovePythonEntry):
        file = parse_python(data)
        (node,) = file.find(edit.steps)
        container = container_in(node, edit.steps[-1])
        assert container is not None
        wanted = edit.entry if isinstance(edit, RemovePythonEntry) else edit.after
        for item in file.entries(container):
            if same_expression(item.key, wanted):
                # of a keyword argument its name, of a call its last keyword
                words = re.match(r"(\w+)=", wanted) or re.findall(r"\w+", wanted)[-2 if "=" in wanted else -1 :]
                yield item.start, item.end, (words[1] if isinstance(words, re.Match) else words[0]).encode()


@every_anchor
def test_a_renamed_anchor_is_named_as_the_nearest(edit: Edit) -> None:
    data = content(edit)
    ((start, end, name),) = spans(edit)
    renamed = re.sub(rb"\b" + re.escape(name) + rb"\b", name + b"_v2", data[start:end], count=1)
    outcome = plan_with(edit, data[:start] + renamed + data[end:])
    assert outcome.after is None
    assert outcome.conflict is not None
    assert outcome.conflict.matches == ()
    assert name.decode() + "_v2" in ", ".join(map(str, outcome.conflict.nearest))


@every_anchor
def test_a_removed_anchor_is_a_conflict(edit: Edit) -> None:
    data = content(edit)
    ((start, end, _),) = spans(edit)
    end += data[end : end + 1] == b","
    outcome = plan_with(edit, data[:start] + data[end:])
    assert outcome.after is None
    assert outcome.conflict is not None
    assert outcome.conflict.matches == ()


@every_anchor
def test_an_anchor_that_stands_twice_is_a_conflict_with_both_lines(edit: Edit) -> None:
    data = content(edit)
    ((start, end, _),) = spans(edit)
    between = b", " if edit.kind.endswith("python-entry") else b"\n"
    outcome = plan_with(edit, data[:end] + between + data[start:end] + data[end:])
    assert outcome.status is Status.CONFLICT
    assert outcome.conflict is not None
    assert len(outcome.conflict.matches) == 2


STEPS = [
    pytest.param(edit, number, id=f"{IDS[EDITS.index(edit)]}-{edit.steps[number].kind}")
    for edit in EDITS
    if isinstance(edit, AddPythonEntry | RemovePythonEntry | PlacePythonFragment)
    for number in range(len(edit.steps))
]


@pytest.mark.parametrize(("edit", "number"), STEPS)
def test_a_renamed_step_on_the_way_is_a_conflict_that_names_the_nearest(
    edit: AddPythonEntry | RemovePythonEntry | PlacePythonFragment, number: int
) -> None:
    data, step = content(edit), edit.steps[number]
    name = step.argument.strip("\"'") if step.kind == "call" else step.name
    for node in reversed(parse_python(data).find(edit.steps[: number + 1])):  # a function may be defined per branch
        # the name stands in front of the value the step leads to, or inside the call or definition it leads to
        at = data.index(name.encode(), node.start_byte) if step.kind in ("call", "class", "function") else -1
        at = data.rindex(name.encode(), 0, node.start_byte) if at < 0 else at
        data = data[: at + len(name)] + b"_v2" + data[at + len(name) :]
    outcome = plan_with(edit, data)
    assert outcome.status is Status.CONFLICT
    assert outcome.conflict is not None
    assert f"{name}_v2" in ", ".join(map(str, outcome.conflict.nearest))


@every_edit
def test_a_report_has_a_line_for_each_edit(edit: Edit) -> None:
    assert "\n" not in edit.describe()
