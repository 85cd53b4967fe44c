"""A series for several kinds of trees: which changes are left out, what they share, what they know of each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from edit_bench import commit_of, write_series
from patchstack.edits import Status
from patchstack.edits.cxx_replace import ReplaceDefinition
from patchstack.errors import TreeError, UsageError
from patchstack.planning import ChangePlan, ChangeState, StackPlan, plan_stack
from patchstack.planning.shared import SharedEdits
from patchstack.series import Applicability, Series, UpstreamMarker, in_words
from patchstack.tree.text import digest

NATIVE = "aten/src/ATen/native/native_functions.yaml"
HOST = "aten/src/ATen/native/mps/operations/Tint.mm"

MANIFEST = f"""\
format: 1
changes:
  - id: tint
    title: "[MPS] Add tint"
    message: message.md
    upstream: [{{dispatch: tint, key: MPS}}]
    edits:
      - {{kind: add-dispatch-key, path: {NATIVE}, op: tint, key: MPS, function: tint_mps}}
      - {{kind: place-fragment, path: {HOST}, fragment: tint_mps, after: {{function: shade_mps}}}}
      - {{kind: place-fragment, path: {HOST}, fragment: mix, after: {{function: shade_mps}}}}
  - id: mend
    title: "[MPS] Mend tint"
    message: message.md
    overlay: mended
    needs: [tint]
    requires: [{{path: {HOST}, defines: stride, reason: what is mended}}]
    only_where: [{{defines: walk, path: {HOST}, reason: only upstream's tint is wrong}}]
    upstream: [{{defines: mended, path: {HOST}}}]
    edits:
      - {{kind: place-fragment, path: {HOST}, fragment: mix, before: {{function: walk}}}}
      - {{kind: place-fragment, path: {HOST}, fragment: mended, after: {{function: walk}}}}
      - kind: replace-definition
        path: {HOST}
        fragment: tint_mps
        definition: {{function: tint_mps, in: global}}
        replaces: ["sha256:0000000000000000", "UPSTREAM"]
  - id: fast
    title: "[MPS] Make tint fast"
    message: message.md
    overlay: fast
    needs: [tint, mend]
    upstream: [{{defines: fast_mix, path: {HOST}}}, {{defines: ready, path: {HOST}}}]
    edits:
      - {{kind: place-fragment, path: {HOST}, fragment: mix, after: {{function: shade_mps}}}}
      - {{kind: place-fragment, path: {HOST}, fragment: fast_mix, after: {{function: mix}}}}
      - kind: replace-definition
        path: {HOST}
        fragment: tint_mps
        definition: {{function: tint_mps, in: global}}
"""
MIX = "int mix(int a) {\n  return a / 2;\n}\n"
THEIRS = "void tint_mps() {\n  walk();\n}\n"
OVERLAY = {
    HOST: f"// fragment: mix\n{MIX}// end fragment\n// fragment: tint_mps\nvoid tint_mps() {{\n  mix(1);\n}}\n"
    "// end fragment\n",
    f"mended/{HOST}": "// fragment: mended\nint mended(int a) {\n  return mix(a);\n}\n// end fragment\n"
    "// fragment: tint_mps\nvoid tint_mps() {\n  mended(2);\n}\n// end fragment\n",
    f"fast/{HOST}": "// fragment: fast_mix\nint fast_mix(int a) {\n  return mix(a) >> 1;\n}\n// end fragment\n"
    "// fragment: tint_mps\n// Sets up.\nstatic void ready() {\n}\n\n// Two at once.\nvoid tint_mps() {\n  ready();\n"
    "  fast_mix(2);\n}\n// end fragment\n",
}
BEFORE: Mapping[str, bytes] = {
    NATIVE: b"- func: tint(Tensor s) -> T\n  dispatch:\n    CPU: tint_cpu\n",
    HOST: b"void shade_mps() {\n}\n",
}
AFTER: Mapping[str, bytes] = {
    NATIVE: BEFORE[NATIVE] + b"    MPS: tint_mps\n",
    HOST: BEFORE[HOST] + f"\nvoid walk() {{\n}}\n\nvoid stride() {{\n}}\n\n{THEIRS}".encode(),
}
"""Upstream has a tint of its own."""

Plan = Callable[..., StackPlan]


@pytest.fixture
def series(tmp_path: Path) -> Series:
    manifest = MANIFEST.replace("UPSTREAM", digest(THEIRS.encode()))
    return write_series(tmp_path / "paint", manifest, {path: text.encode() for path, text in OVERLAY.items()})


@pytest.fixture
def plan(series: Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))

    def make(files: Mapping[str, bytes], *, of: Series = series, **options: Any) -> StackPlan:
        repository, commit = commit_of(tmp_path / f"tree{len(list(tmp_path.glob('tree*')))}", files)
        with repository:
            return plan_stack(repository, of, commit, **options)

    return make


def states(plan: StackPlan) -> list[str]:
    return [change.state.value for change in plan.changes]


def tree_of(plan: StackPlan, upto: int = -1) -> dict[str, bytes]:
    """The files with the planned changes in place."""
    return {path: plan.changes[upto].tree.read(path) or b"" for path in (NATIVE, HOST)}


def change(plan: StackPlan, name: str) -> ChangePlan:
    return next(change for change in plan.changes if change.change.id == name)


def with_condition(series: Series, name: str, *conditions: Applicability) -> Series:
    """The series with other conditions for one change."""
    changes = (replace(c, only_where=conditions) if c.id == name else c for c in series.changes)
    return replace(series, changes=tuple(changes))


class TestAConditionThatATreeDoesNotMeet:
    def test_leaves_the_change_out_and_the_others_become_commits(self, plan: Plan) -> None:
        made = plan(BEFORE)
        assert states(made) == ["absent", "not applicable", "absent"]
        assert [c.change.id for c in made.commits] == ["tint", "fast"]
        assert (made.blocked, list(made.conflicts())) == ((), [])
        left_out = change(made, "mend")
        assert in_words(left_out.unmet) == "Tint.mm defines walk (only upstream's tint is wrong)"
        assert (left_out.edits, dict(left_out.files), left_out.tree) == ((), {}, change(made, "tint").tree)

    def test_is_judged_on_the_tree_below_the_series(self, plan: Plan, series: Series) -> None:
        """The first change brings what the second one's condition names; the tree is of before all the same."""
        brought = Applicability(UpstreamMarker("dispatch", NATIVE, "tint", "MPS"), "trees with a tint")
        made = plan(BEFORE, of=with_condition(series, "mend", brought))
        assert b"MPS: tint_mps" in tree_of(made, upto=0)[NATIVE]
        assert states(made)[1] == "not applicable"

    def test_and_one_that_never_holds_would_lose_the_change_on_every_tree(self, plan: Plan, series: Series) -> None:
        """The seeded fault: the next test tells it from the right condition."""
        never = Applicability(UpstreamMarker("defines", HOST, "nothing_of_that_name"), "never")
        made = plan(AFTER, of=with_condition(series, "mend", never))
        assert states(made) != states(plan(AFTER))
        assert "mend" not in [c.change.id for c in made.commits]

    def test_and_one_that_always_holds_would_stop_a_tree_of_before(self, plan: Plan, series: Series) -> None:
        """The other seeded fault."""
        always = Applicability(UpstreamMarker("defines", HOST, "shade_mps"), "always")
        with pytest.raises(TreeError, match=r"stride in .*what is mended"):
            plan(BEFORE, of=with_condition(series, "mend", always))

    def test_that_names_a_file_the_tree_lacks_is_not_met(self, plan: Plan, series: Series) -> None:
        elsewhere = Applicability(UpstreamMarker("declares", "no/such.h", "f"), "trees with a header")
        assert states(plan(AFTER, of=with_condition(series, "mend", elsewhere)))[1] == "not applicable"

    def test_counts_even_where_another_one_holds(self, plan: Plan, series: Series) -> None:
        holds = Applicability(UpstreamMarker("defines", HOST, "shade_mps"), "one")
        fails = Applicability(UpstreamMarker("defines", HOST, "nothing"), "other")
        made = plan(AFTER, of=with_condition(series, "mend", holds, fails))
        assert change(made, "mend").unmet == (fails,)

    @pytest.mark.parametrize("option", ["only", "replace"])
    def test_refuses_to_be_asked_for_the_change_by_name(self, plan: Plan, option: str) -> None:
        words = r"--only mend.*'mend' is not applicable: it is for trees in which Tint.mm defines walk \(only"
        with pytest.raises(UsageError, match=words.replace("only", option, 1)):
            plan(BEFORE, **{option: ["mend"]})
        assert "not applicable" not in states(plan(AFTER, only=["mend"]))

    def test_does_not_hold_up_what_needs_the_change(self, plan: Plan) -> None:
        assert states(plan(tree_of(plan(BEFORE), upto=0), only=["fast"])) == ["absent"]
        with pytest.raises(UsageError, match="'fast' builds on 'tint', which --only leaves out"):
            plan(BEFORE, only=["fast"])
        with pytest.raises(UsageError, match="'fast' builds on 'mend', which --only leaves out"):
            plan(AFTER, only=["fast"])

    def test_does_not_hide_what_else_is_needed(self, plan: Plan) -> None:
        tree = {**BEFORE, HOST: BEFORE[HOST] + b"\nvoid walk() {\n}\n"}
        with pytest.raises(UsageError, match=r"builds on 'tint' and 'mend', .*--only tint --only mend --only fast"):
            plan(tree, only=["fast"])

    def test_gives_its_reason_once(self) -> None:
        conditions = [Applicability(UpstreamMarker("dispatch", NATIVE, op, "MPS"), "trees of after") for op in "ab"]
        conditions.append(Applicability(UpstreamMarker("defines", HOST, "c"), "the third"))
        words = "a has an entry for MPS and b has an entry for MPS (trees of after) and Tint.mm defines c (the third)"
        assert in_words(conditions) == words

    def test_leaves_requirements_of_the_change_unasked(self, plan: Plan, series: Series) -> None:
        assert [need.defines for c in series.changes for need in c.requires] == ["stride"]
        assert b"stride" not in BEFORE[HOST]
        plan(BEFORE)
        with pytest.raises(TreeError, match="lacks stride"):
            plan({**AFTER, HOST: AFTER[HOST].replace(b"stride", b"run")})

    def test_reads_nothing_from_a_memory_of_another_tree(self, plan: Plan) -> None:
        assert states(plan(BEFORE)) == states(plan(BEFORE)) != states(plan(AFTER))


def test_a_tree_of_the_other_kind_gets_the_change_on_upstreams_text(plan: Plan) -> None:
    made = plan(AFTER)
    assert states(made) == ["present upstream", "absent", "absent"]
    assert [c.change.id for c in made.commits] == ["mend", "fast"]
    assert b"void tint_mps() {\n  mended(2);\n}\n" in tree_of(made, upto=1)[HOST]
    assert tree_of(made)[HOST].count(MIX.encode()) == 1


@pytest.mark.parametrize("tree", [BEFORE, AFTER], ids=["before", "after"])
def test_a_tree_that_has_all_of_it_has_nothing_left_to_get(plan: Plan, tree: Mapping[str, bytes]) -> None:
    made = plan(tree_of(plan(tree)))
    assert (made.commits, made.blocked) == ((), ())
    assert states(made)[-1] == "identical"


class TestTextThatAnEarlierChangeWrote:
    def test_is_replaced_without_a_digest(self, plan: Plan, series: Series) -> None:
        fast = series.changes[-1].edits[-1]
        assert isinstance(fast, ReplaceDefinition)
        assert (fast.replaces, len(fast.written)) == ((), 2)  # tint's and mend's
        for tree in (BEFORE, AFTER):
            assert b"// Two at once.\nvoid tint_mps() {\n  ready();\n" in tree_of(plan(tree))[HOST]

    def test_and_nothing_else_is(self, plan: Plan) -> None:
        tree = tree_of(plan(BEFORE), upto=0)
        edited = {**tree, HOST: tree[HOST].replace(b"mix(1);", b"mix(1);  mix(2);")}
        made = plan(edited)
        assert change(made, "fast").state is ChangeState.DIFFERENT
        (conflict,) = change(made, "fast").conflicts
        assert "tint_mps is not a version the series knows" in conflict.problem
        assert b"fast_mix(2)" in tree_of(plan(edited, replace=["fast"]))[HOST]

    def test_would_be_refused_if_it_were_not_known(self, plan: Plan, series: Series) -> None:
        """The seeded fault: the same series without what was worked out on load."""
        *others, last = series.changes
        edits = tuple(replace(e, written=()) if isinstance(e, ReplaceDefinition) else e for e in last.edits)
        forgetful = replace(series, changes=(*others, replace(last, edits=edits)))
        assert states(plan(BEFORE, of=forgetful))[-1] == "present but different"

    def test_is_that_of_the_layer_the_earlier_change_has(self, series: Series) -> None:
        mend, fast = (next(e for e in c.edits if isinstance(e, ReplaceDefinition)) for c in series.changes[1:])
        assert set(mend.written) < set(fast.written)

    def test_with_a_helper_in_front_is_known_again_once_it_is_there(self, plan: Plan) -> None:
        again = change(plan(tree_of(plan(BEFORE))), "fast")
        assert [e.outcome.status for e in again.edits] == [Status.SATISFIED] * 3


class TestAHelperThatSeveralChangesBring:
    def test_is_brought_once_and_makes_nobody_partial(self, plan: Plan) -> None:
        made = plan(BEFORE)
        mix = change(made, "fast").edits[0]
        assert (mix.outcome.status, mix.outcome.neutral) == (Status.SATISFIED, True)
        assert mix.outcome.note == "tint has it too"
        assert HOST in change(made, "fast").files

    def test_that_upstream_has_makes_nobody_partial(self, plan: Plan) -> None:
        made = plan({**BEFORE, HOST: BEFORE[HOST] + f"\n{MIX}".encode()})
        assert states(made) == ["absent", "not applicable", "absent"]

    def test_in_other_words_is_a_conflict(self, plan: Plan) -> None:
        made = plan({**BEFORE, HOST: BEFORE[HOST] + b"\nint mix(int a) {\n  return 0;\n}\n"})
        assert change(made, "tint").state is ChangeState.DIFFERENT

    def test_leaves_a_change_partial_of_which_something_else_is_there(self, plan: Plan) -> None:
        whole = tree_of(plan(BEFORE))[HOST]
        start = whole.index(b"int fast_mix")
        part = whole[start : whole.index(b"}\n", start) + 2]
        made = plan({**BEFORE, HOST: BEFORE[HOST] + b"\n" + MIX.encode() + b"\n" + part})
        assert change(made, "fast").state is ChangeState.PARTIAL

    def test_would_make_the_second_partial_if_it_were_telling(
        self, plan: Plan, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The seeded fault."""
        monkeypatch.setattr(SharedEdits, "judged", lambda self, change, edit, outcome: outcome)
        assert states(plan(BEFORE))[-1] == "partial"

    def test_counts_for_no_likeness(self, plan: Plan) -> None:
        own = BEFORE[HOST] + f"\n{MIX}\nint fast_mix() {{\n}}\n".encode()
        parts = change(plan({**BEFORE, HOST: own}), "fast").parts
        assert [part.piece.name for part in parts if part.piece.name == "mix"] == []


class TestTwoPlacesForOneText:
    """A struct that takes the place of one kind of tree's own, and stands beside what the other kind has."""

    OLD = b"struct Old {\n  int a;\n};\n"
    MANIFEST = f"""\
format: 1
changes:
  - id: pair
    title: Pair
    message: message.md
    upstream: [{{defines: pair, path: {HOST}}}, {{defines: Pair, path: {HOST}}}]
    edits:
      - {{kind: replace-definition, path: {HOST}, fragment: Pair, definition: {{struct: Old}},
         replaces: ["{digest(OLD)}"], optional: true}}
      - {{kind: place-fragment, path: {HOST}, fragment: Pair, after: {{function: shade_mps}}}}
      - {{kind: place-fragment, path: {HOST}, fragment: pair, end_of: {{file: end}}}}
"""
    NEW = b"struct Pair {\n  int a, b;\n};\n"
    OVERLAY: ClassVar[Mapping[str, bytes]] = {
        HOST: b"// fragment: Pair\n" + NEW + b"// end fragment\n// fragment: pair\nint pair;\n// end fragment\n"
    }

    @pytest.fixture
    def pair(self, tmp_path: Path) -> Series:
        return write_series(tmp_path / "pair", self.MANIFEST, self.OVERLAY)

    def planned(self, plan: Plan, pair: Series, own: bytes) -> tuple[ChangePlan, bytes]:
        made = plan({**BEFORE, HOST: BEFORE[HOST] + b"\n" + own}, of=pair)
        return made.changes[0], tree_of(made)[HOST]

    def test_the_text_lands_once_where_the_old_one_is_known(self, plan: Plan, pair: Series) -> None:
        made, text = self.planned(plan, pair, self.OLD)
        assert (made.state, text.count(self.NEW), text.count(b"Old")) == (ChangeState.ABSENT, 1, 0)
        assert made.edits[1].outcome.note == "an edit before it brought it"

    @pytest.mark.parametrize(
        ("own", "note"),
        [(b"int other;\n", "no such definition"), (b"struct Old {\n  long a;\n};\n", "left: Old is not a version")],
        ids=["there is none", "it is another one"],
    )
    def test_it_stands_beside_what_the_tree_has_where_that_is_not_known(
        self, plan: Plan, pair: Series, own: bytes, note: str
    ) -> None:
        made, text = self.planned(plan, pair, own)
        assert (made.state, text.count(self.NEW), own in text) == (ChangeState.ABSENT, 1, True)
        assert made.edits[0].outcome.note.startswith(note)
        assert made.edits[0].outcome.neutral

    @pytest.mark.parametrize("own", [OLD, b"int other;\n"])
    def test_a_tree_that_has_it_has_nothing_left_to_get(self, plan: Plan, pair: Series, own: bytes) -> None:
        _, text = self.planned(plan, pair, own)
        again = plan({**BEFORE, HOST: text}, of=pair).changes[0]
        assert (again.state, dict(again.files)) == (ChangeState.IDENTICAL, {})

    def test_a_definition_that_is_there_twice_is_a_conflict_all_the_same(self, plan: Plan, pair: Series) -> None:
        made, _ = self.planned(plan, pair, b"namespace a {\n" + self.OLD + b"}\nnamespace b {\n" + self.OLD + b"}\n")
        assert "2 definitions match" in made.conflicts[0].problem

    def test_without_the_word_the_tree_of_the_other_kind_would_stop_the_run(self, tmp_path: Path, plan: Plan) -> None:
        """The seeded fault."""
        strict = write_series(tmp_path / "strict", self.MANIFEST.replace(", optional: true", ""), self.OVERLAY)
        made, _ = self.planned(plan, strict, b"int other;\n")
        assert "0 definitions match" in made.conflicts[0].problem


def test_an_entry_that_two_changes_take_out_is_no_conflict_for_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
    removal = "{kind: remove-python-entry, path: lists.py, in: [{assign: FAILING}], entry: '\"tint\"'}"
    manifest = f"""\
format: 1
changes:
  - {{id: one, title: One, message: message.md, upstream: [{{defines: one, path: one.h}}],
     edits: [{{kind: create-file, path: one.h}}, {removal}]}}
  - {{id: two, title: Two, message: message.md, upstream: [{{defines: two, path: two.h}}],
     edits: [{{kind: create-file, path: two.h}}, {removal}]}}
"""
    series = write_series(tmp_path / "s", manifest, {"one.h": b"int one;\n", "two.h": b"int two;\n"})
    tree = {NATIVE: b"- func: f() -> T\n", "lists.py": b'FAILING = ["shade", "tint"]\n'}
    repository, commit = commit_of(tmp_path / "tree", tree)
    with repository:
        both = plan_stack(repository, series, commit)
        assert states(both) == ["absent", "absent"]
        assert [c.change.id for c in both.commits] == ["one", "two"]
        alone = plan_stack(repository, series, commit, only=["two"])
        assert "lists.py" in alone.changes[0].files
    repository, commit = commit_of(tmp_path / "renamed", {**tree, "lists.py": b'FAILING = ["shade", "tint_"]\n'})
    with repository:
        assert states(plan_stack(repository, series, commit)) == ["partial", "partial"]
