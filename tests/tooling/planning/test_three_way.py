"""The third rung: an anchor that drifted, merged from the blob the edit was written against, judged by structure."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edit_bench import blob_id, commit_of, write_series
from patchstack.applying.onto import Onto
from patchstack.cli.report import RunReport, as_json, lines
from patchstack.edits import Outcome, Rung, Status, cxx_edit
from patchstack.edits.regenerate import RegenerateShim
from patchstack.planning import ChangeState, StackPlan, plan_stack
from patchstack.planning.three_way import merge_lines
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.git import Repository
from patchstack.tree.git.process import GitCommandError
from patchstack.tree.text import digest

NATIVE = "aten/src/ATen/native/native_functions.yaml"
HOST = "aten/src/ATen/native/mps/operations/Tint.mm"
LISTS = "torch/testing/lists.py"
YAML = b"- func: tint(Tensor s) -> T\n  dispatch:\n    CPU: tint_cpu\n"
MARKERS = (b"<<<<<<<", b"=======", b">>>>>>>")

BASE = b"""\
#include <ATen/a.h>
#include <ATen/m.h>

namespace at::native {

// What shade does.
static void shade(int depth) {
  start();
  for (int i = 0; i < depth; ++i) {
    darken(i);
  }
  finish();
}

static void light(int depth) {
  start();
  for (int i = 0; i < depth; ++i) {
    brighten(i);
  }
  finish();
}

} // namespace at::native
"""
FRAGMENT = b"static void tint(int depth) {\n  mix(depth);\n}\n"


def after_function(name: str, fragment: str = "new") -> str:
    """The entry of an edit that places a fragment behind a function of ``at::native``."""
    place = f"{{function: {name}, in: 'at::native'}}"
    return f"{{kind: place-fragment, path: {HOST}, fragment: {fragment}, after: {place}}}"


@dataclass(frozen=True)
class Bench:
    """A series of one edit and the base it was written against.

    Attributes:
        folder: a folder of the test's own.
        edit: the manifest entry, without its base.
        path: the file it edits.
        base: that file when the edit was written.
        fragment: the overlay's fragment ``new``.
    """

    folder: Path
    edit: str = after_function("shade")
    path: str = HOST
    base: bytes = BASE
    fragment: bytes = FRAGMENT

    def plan(self, current: bytes, *, knows_base: bool = True) -> tuple[Outcome, StackPlan]:
        """Plan on a tree that has ``current``; the base is in its history unless the clone is said to lack it."""
        mark = b"#" if self.path.endswith(".py") else b"//"
        text = mark + b" fragment: new\n" + self.fragment + mark + b" end fragment\n"
        overlay = {self.path: text} if "fragment: new" in self.edit else {}
        manifest = (
            "format: 1\n"
            f"bases:\n  - {{path: {self.path}, blobs: [{blob_id(self.base)}]}}\n"
            "changes:\n  - id: tint\n    title: Tint\n    message: message.md\n"
            "    upstream: [{dispatch: tint, key: MPS}]\n"
            f"    edits:\n      - {self.edit}\n"
        )
        series = write_series(self.folder / "series", manifest, overlay)
        earlier = [{NATIVE: YAML, self.path: self.base}] if knows_base else []
        number = len(list(self.folder.glob("tree*")))
        repository, commit = commit_of(self.folder / f"tree{number}", {NATIVE: YAML, self.path: current}, *earlier)
        with repository:
            stack = plan_stack(repository, series, commit)
        return stack.changes[0].edits[0].outcome, stack


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("PATCHSTACK_CACHE", str(tmp_path / "cache"))
    return Bench(tmp_path)


def two_fragments(folder: Path, *, behind: str) -> Bench:
    """An edit behind ``shade`` and one behind another function of the same file."""
    fragment = FRAGMENT + b"// end fragment\n// fragment: more\nstatic void hue() {\n}\n"
    edits = f"{after_function('shade')}\n      - {after_function(behind, 'more')}"
    return Bench(folder, edits, fragment=fragment)


def merged(outcome: Outcome) -> bytes:
    """The merged file, which must be one."""
    assert (outcome.status, outcome.rung) == (Status.APPLIES, Rung.THREE_WAY), outcome.conflict
    assert outcome.after is not None
    return outcome.after


def refused(outcome: Outcome) -> str:
    """What the report says of a merge that was tried and not taken."""
    assert outcome.after is None
    assert outcome.conflict is not None
    assert outcome.status in (Status.CONFLICT, Status.DIFFERENT)
    return outcome.conflict.merge


class TestWhatMerges:
    def test_the_function_behind_which_a_fragment_goes_was_renamed(self, bench: Bench) -> None:
        renamed = BASE.replace(b"void shade(", b"void shade_deeply(")
        outcome, stack = bench.plan(renamed)
        after = merged(outcome)
        assert after == renamed.replace(b"static void light", FRAGMENT + b"\nstatic void light")
        assert outcome.base == blob_id(BASE)
        assert stack.changes[0].state is ChangeState.ABSENT
        assert stack.changes[0].becomes_commit

    def test_a_second_function_of_that_name_appeared_elsewhere(self, bench: Bench) -> None:
        overloaded = BASE.replace(b"} // namespace", b"static void shade() {\n}\n\n} // namespace")
        after = merged(bench.plan(overloaded)[0])
        assert after.index(b"int depth) {\n  start") < after.index(b"void tint") < after.index(b"void light")

    def test_the_include_that_names_a_block_was_renamed(self, tmp_path: Path, bench: Bench) -> None:
        edit = f"{{kind: place-fragment, path: {HOST}, fragment: new, into: {{include_block: ATen/a.h}}}}"
        source = BASE.replace(b"<ATen/m.h>\n", b"<ATen/m.h>\n#include <ATen/n.h>\n#include <ATen/z.h>\n")
        drifted = source.replace(b"<ATen/a.h>", b"<ATen/core/a.h>")
        case = Bench(tmp_path, edit, base=source, fragment=b"#include <ATen/p.h>\n")
        after = merged(case.plan(drifted)[0])
        assert b"n.h>\n#include <ATen/p.h>\n#include <ATen/z.h>\n" in after

    def test_the_neighbour_of_a_list_entry_is_gone(self, tmp_path: Path, bench: Bench) -> None:
        source = b'NAMES = [\n    "a",\n    "b",\n    "c",\n    "d",\n    "e",\n]\n'
        edit = f"""{{kind: add-python-entry, path: {LISTS}, in: [{{assign: NAMES}}], entry: '"bb"', after: '"b"'}}"""
        doubled = source.replace(b'    "e",\n', b'    "e",\n    "b",\n')
        after = merged(Bench(tmp_path, edit, LISTS, source, b"pass\n").plan(doubled)[0])
        assert after == doubled.replace(b'"b",\n    "c"', b'"b",\n    "bb",\n    "c"')

    def test_a_class_of_that_name_exists_twice_now(self, tmp_path: Path, bench: Bench) -> None:
        source = b"class TestA:\n    def test_a(self):\n        pass\n\n\nclass TestB:\n    pass\n"
        edit = f"{{kind: place-fragment, path: {LISTS}, fragment: new, end_of: [{{class: TestA}}]}}"
        doubled = source + b"\n\nif False:\n    class TestA:\n        pass\n"
        after = merged(
            Bench(tmp_path, edit, LISTS, source, b"    def test_new(self):\n        pass\n").plan(doubled)[0]
        )
        assert after.index(b"test_a") < after.index(b"test_new") < after.index(b"class TestB")

    def test_a_file_with_crlf_keeps_it_and_merges_from_a_base_without(self, bench: Bench) -> None:
        renamed = BASE.replace(b"void shade(", b"void shade_deeply(").replace(b"\n", b"\r\n")
        after = merged(bench.plan(renamed)[0])
        assert after.count(b"\n") == after.count(b"\r\n")
        assert FRAGMENT.replace(b"\n", b"\r\n") in after

    def test_edits_of_one_file_are_made_on_the_base_as_well(self, bench: Bench, tmp_path: Path) -> None:
        case = two_fragments(tmp_path, behind="tint")
        _, stack = case.plan(BASE.replace(b"void shade(", b"void shade_deeply("))
        first, then = (plan.outcome for plan in stack.changes[0].edits)
        assert (first.rung, then.rung) == (Rung.THREE_WAY, Rung.STRUCTURAL)
        overloaded = BASE.replace(b"} // namespace", b"static void tint() {\n}\n\n} // namespace")
        assert stack.changes[0].becomes_commit
        _, other = case.plan(overloaded)
        assert other.changes[0].conflicts, "a function of the fragment's name is there: that is no drift"

    def test_two_edits_of_one_file_both_merge(self, bench: Bench, tmp_path: Path) -> None:
        case = two_fragments(tmp_path, behind="light")
        drifted = BASE.replace(b"void shade(", b"void shade_deeply(")
        drifted = drifted.replace(b"// What shade", b"static void light() {\n}\n\n// What shade")
        _, stack = case.plan(drifted)
        assert [plan.outcome.rung for plan in stack.changes[0].edits] == [Rung.THREE_WAY] * 2
        after = stack.changes[0].files[HOST]
        order = [after.index(word) for word in (b"shade_deeply", b"void tint", b"brighten", b"void hue", b"} // names")]
        assert order == sorted(order)


REPLACE = "{kind: replace-definition, path: %s, fragment: new, replaces: ['%s'], definition: {function: shade}}"
OLD_SHADE = BASE[BASE.index(b"// What shade") : BASE.index(b"\nstatic void light")]
NEW_SHADE = OLD_SHADE.replace(b"  finish();\n", b"  finish_well();\n")


@pytest.fixture
def replacement(tmp_path: Path, bench: Bench) -> Bench:
    return Bench(tmp_path, REPLACE % (HOST, digest(OLD_SHADE)), fragment=NEW_SHADE)


class TestAReplacedDefinition:
    def test_keeps_what_upstream_changed_elsewhere_in_it(self, replacement: Bench) -> None:
        current = BASE.replace(b"void shade(int depth) {\n  start();", b"void shade(int depth) {\n  start(depth);")
        after = merged(replacement.plan(current)[0])
        assert after == current.replace(
            b"}\n  finish();\n}\n\nstatic void light", b"}\n  finish_well();\n}\n\nstatic void light"
        )

    def test_is_a_conflict_where_both_changed_the_same_line(self, replacement: Bench) -> None:
        current = BASE.replace(b"  finish();\n}\n\nstatic void light", b"  finish(1);\n}\n\nstatic void light")
        outcome, stack = replacement.plan(current)
        assert "1 place changed on both sides" in refused(outcome)
        assert stack.changes[0] in stack.blocked

    def test_needs_no_merge_where_only_blanks_changed(self, replacement: Bench) -> None:
        current = BASE.replace(b"  start();", b"\tstart();  ")
        outcome, _ = replacement.plan(current)
        assert (outcome.status, outcome.rung) == (Status.APPLIES, Rung.STRUCTURAL)


class TestATextThatMergesAndIsWrong:
    HELPER = b"static void finish_well() {\n}\n\n"

    def duplicating(self, tmp_path: Path) -> tuple[Bench, bytes]:
        """An edit that brings a helper, on a tree that has the same helper and an edited function."""
        case = Bench(tmp_path, REPLACE % (HOST, digest(OLD_SHADE)), fragment=self.HELPER + NEW_SHADE)
        current = BASE.replace(b"shade(int depth) {\n  start();", b"shade(int depth) {\n  start(depth);")
        return case, current.replace(b"} // namespace", self.HELPER + b"} // namespace")

    def test_a_definition_that_would_be_there_twice_is_a_conflict(self, tmp_path: Path, bench: Bench) -> None:
        case, current = self.duplicating(tmp_path)
        text = merge_lines(BASE, BASE.replace(OLD_SHADE, self.HELPER + NEW_SHADE), current)
        assert [d.name for d in parse_cxx(text).definitions].count("finish_well") == 2, "the text must merge"
        assert "finish_well would be there twice" in refused(case.plan(current)[0])

    def test_without_the_check_it_would_get_through(
        self, tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        case, current = self.duplicating(tmp_path)
        monkeypatch.setattr(cxx_edit, "structural_problem", lambda *_facts: "")
        assert merged(case.plan(current)[0]).count(b"void finish_well()") == 2

    WRONG_PLACES: Mapping[str, tuple[bytes, bytes, str]] = {
        "another namespace": (
            b"namespace at::native {\n",
            b"namespace at::mps {\n",
            "land in at::mps, not in at::native",
        ),
        "a namespace inside": (
            b"native {\n\n// What shade does.",
            b"native {\nnamespace {\n\n// What shade does.",
            "land in at::native::(anonymous), not in at::native",
        ),
        "a branch of an #ifdef": (
            b"#include <ATen/m.h>\n",
            b"#include <ATen/m.h>\n#ifdef USE_TINT\n",
            "land in at::native (#ifdef USE_TINT, branch 1), not in at::native",
        ),
    }

    @pytest.mark.parametrize(("old", "new", "words"), WRONG_PLACES.values(), ids=WRONG_PLACES.keys())
    def test_a_definition_that_would_land_in_another_scope_is_a_conflict(
        self, bench: Bench, old: bytes, new: bytes, words: str
    ) -> None:
        current = BASE.replace(old, new).replace(b"void shade(", b"void shade_deeply(")
        current = current.replace(b"} // namespace", b"}\n} // namespace") if b"namespace {" in new else current
        current += b"#endif\n" if b"#ifdef" in new else b""
        assert FRAGMENT in merge_lines(
            BASE, BASE.replace(b"\nstatic void light", b"\n" + FRAGMENT + b"\nstatic void light"), current
        )
        assert words in refused(bench.plan(current)[0])

    def test_a_branch_that_is_never_compiled_is_no_place(self, bench: Bench) -> None:
        current = BASE.replace(b"#include <ATen/m.h>\n", b"#include <ATen/m.h>\n#if 0\n") + b"#endif\n"
        assert "more or less than the edit would change" in refused(bench.plan(current)[0])

    def test_members_that_would_land_in_another_class_are_a_conflict(self, tmp_path: Path, bench: Bench) -> None:
        source = (
            b"class TestA:\n    x = 1\n\n    def test_a(self):\n        a()\n        b()\n        c()\n\n    y = 2\n"
        )
        edit = f"{{kind: place-fragment, path: {LISTS}, fragment: new, end_of: [{{class: TestA}}]}}"
        case = Bench(tmp_path, edit, LISTS, source, b"    def test_new(self):\n        pass\n")
        words = refused(case.plan(source.replace(b"class TestA", b"class TestOther"))[0])
        assert "test_new would land in TestOther, not in TestA" in words

    def test_an_entry_of_a_list_under_another_name_is_a_conflict(self, tmp_path: Path, bench: Bench) -> None:
        source = b'NAMES = [\n    "a",\n    "b",\n    "c",\n    "d",\n    "e",\n]\n'
        edit = f"""{{kind: add-python-entry, path: {LISTS}, in: [{{assign: NAMES}}], entry: '"bb"', after: '"c"'}}"""
        case = Bench(tmp_path, edit, LISTS, source, b"pass\n")
        words = refused(case.plan(source.replace(b"NAMES", b"OTHERS"))[0])
        assert "nothing says that it is still in assign NAMES" in words

    def test_a_name_that_upstream_took_for_something_else_is_a_conflict(self, bench: Bench) -> None:
        current = BASE.replace(b"void shade(", b"void shade_deeply(")
        current = current.replace(b"} // namespace", b"struct tint {\n};\n\n} // namespace")
        assert "tint would be there twice" in refused(bench.plan(current)[0])


class TestWithoutABase:
    def test_a_blob_that_is_not_in_the_repository_is_said_and_the_edit_refused_as_before(self, bench: Bench) -> None:
        outcome, stack = bench.plan(BASE.replace(b"void shade(", b"void shade_deeply("), knows_base=False)
        assert outcome.status is Status.CONFLICT
        assert f"from blob {blob_id(BASE)[:12]}, which this repository does not hold" in refused(outcome)
        assert "shallow" in str(outcome.conflict)
        assert stack.changes[0] in stack.blocked

    def test_it_merges_once_the_blob_is_there_although_plans_are_remembered(self, bench: Bench) -> None:
        drifted = BASE.replace(b"void shade(", b"void shade_deeply(")
        refused(bench.plan(drifted, knows_base=False)[0])
        merged(bench.plan(drifted)[0])
        refused(bench.plan(drifted, knows_base=False)[0])

    def test_a_shallow_clone_says_so(self, bench: Bench, tmp_path: Path) -> None:
        drifted = BASE.replace(b"void shade(", b"void shade_deeply(")
        _, stack = bench.plan(drifted)
        source = next(tmp_path.glob("tree*"))
        subprocess.run(
            ["git", "clone", "-q", "--bare", "--depth=1", f"file://{source}", str(tmp_path / "shallow")], check=True
        )
        with Repository.open(tmp_path / "shallow") as repository:
            again = plan_stack(repository, stack.series, repository.commit("main").hash)
        assert "does not hold" in refused(again.changes[0].edits[0].outcome)

    def test_an_id_that_is_no_blob_is_as_good_as_none(self, bench: Bench, tmp_path: Path) -> None:
        drifted = BASE.replace(b"void shade(", b"void shade_deeply(")
        bench.plan(drifted)
        with Repository.open(next(tmp_path.glob("tree*"))) as repository:
            commit = repository.commit("main")
            manifest = tmp_path / "series" / "series.yaml"
            manifest.write_text(manifest.read_text().replace(blob_id(BASE), commit.tree))
            series = write_series(tmp_path / "series", manifest.read_text(), {})
            again = plan_stack(repository, series, commit.hash)
        assert "does not hold" in refused(again.changes[0].edits[0].outcome)

    def test_without_a_base_in_the_manifest_nothing_is_said_of_merging(self, bench: Bench, tmp_path: Path) -> None:
        _, stack = bench.plan(BASE.replace(b"void shade(", b"void shade_deeply("))
        manifest = tmp_path / "series" / "series.yaml"
        text = "\n".join(line for line in manifest.read_text().splitlines() if "blobs" not in line)
        series = write_series(tmp_path / "series", text.replace("bases:\n", ""), {})
        with Repository.open(next(tmp_path.glob("tree*"))) as repository:
            again = plan_stack(repository, series, stack.onto)
        assert refused(again.changes[0].edits[0].outcome) == ""

    def test_the_exact_base_is_its_own_rung(self, bench: Bench) -> None:
        outcome, _ = bench.plan(BASE)
        assert (outcome.rung, outcome.base) == (Rung.EXACT, "")


def test_generated_files_are_never_merged() -> None:
    assert RegenerateShim.merges == ()


def test_a_merge_writes_nothing_to_the_repository(bench: Bench, tmp_path: Path) -> None:
    _, stack = bench.plan(BASE.replace(b"void shade(", b"void shade_deeply("))
    tree = next(tmp_path.glob("tree*"))
    before = {file: file.read_bytes() for file in tree.rglob("*") if file.is_file()}
    with Repository.open(tree) as repository:
        merged(plan_stack(repository, stack.series, stack.onto).changes[0].edits[0].outcome)
    assert {file: file.read_bytes() for file in tree.rglob("*") if file.is_file()} == before


def test_the_report_names_the_rung_and_the_blob(bench: Bench, tmp_path: Path) -> None:
    _, stack = bench.plan(BASE.replace(b"void shade(", b"void shade_deeply("))
    with Repository.open(next(tmp_path.glob("tree*"))) as repository:
        report = RunReport(repository, Onto("main", stack.onto, is_branch=True), "stack/series", stack, dry_run=True)
    (edit,) = as_json(report)["changes"][0]["edits"]
    assert (edit["rung"], edit["base"]) == ("three-way merge", blob_id(BASE))
    assert "0 places match" in edit["note"]
    assert any(f"(three-way merge from blob {blob_id(BASE)[:12]})" in line for line in lines(report))


def test_without_room_for_temporary_files_the_edit_is_refused_and_says_why(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("patchstack.planning.three_way.tempfile.TemporaryDirectory", full)
    monkeypatch.setattr("patchstack.planning.memo.write_entry", lambda *_: None)
    assert "No space left on device" in refused(bench.plan(BASE.replace(b"void shade(", b"void shade_deeply("))[0])


def test_git_says_how_many_conflicts_there_are() -> None:
    with pytest.raises(GitCommandError) as caught:
        merge_lines(b"a\n", b"b\n", b"c\n")
    assert caught.value.status == 1


LINES = BASE.splitlines(keepends=True)
DRIFT = st.lists(
    st.tuples(
        st.integers(0, len(LINES) - 1),
        st.sampled_from(["drop", "twice", "blank", "indent", "// more\n", "} // end\n", "namespace b {\n", "#if X\n"]),
    ),
    max_size=4,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drift=DRIFT)
def test_whatever_drifts_the_fragment_lands_whole_in_its_scope_or_not_at_all(
    drift: list[tuple[int, str]], tmp_path_factory: pytest.TempPathFactory, bench: Bench
) -> None:
    changed = [line.replace(b"void shade(", b"void shade_deeply(") for line in LINES]
    for at, what in drift:
        old = changed[at]
        changed[at] = {"drop": b"", "twice": old * 2, "blank": b"\n" + old, "indent": b"  " + old}.get(
            what, what.encode() + old
        )
    current = b"".join(changed)
    outcome, _ = Bench(tmp_path_factory.mktemp("drift")).plan(current)
    if outcome.after is None:
        assert outcome.status is Status.CONFLICT
        return
    assert not any(mark in outcome.after for mark in MARKERS)
    assert FRAGMENT in outcome.after
    (landed,) = [d for d in parse_cxx(outcome.after).definitions if d.name == "tint"]
    assert landed.scope == "at::native"
    assert len(outcome.after) - len(current) == len(FRAGMENT) + 1
