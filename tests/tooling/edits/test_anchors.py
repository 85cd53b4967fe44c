"""Every anchor of every edit kind: what moves it, doubles it, renames it or takes it away, and what must not matter."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from edit_bench import edit_from, plan_on
from patchstack.edits import Edit, Outcome, Rung, Status

METAL = b"""\
#include <metal_stdlib>
#include <tint/levels.h>

using namespace metal;

// Alpha keeps what lies below.
struct TintParams {
  float strength;
  uint size;
};

class TintTable {
 public:
  int rows;
};

union TintBits {
  uint whole;
  float real;
};

enum class TintMode { warm, cold };

using tint_t = float;

#define TINT_LIMIT 8

namespace paint {
namespace tint {

// Scales one value.
static inline float scale_tint(float value, float by) {
  return value * by;
}

} // namespace tint
} // namespace paint

// One thread per value.
kernel void tint_forward(device float* out [[buffer(0)]], uint at [[thread_position_in_grid]]) {
  out[at] = paint::tint::scale_tint(out[at], 2.0f);
}

REGISTER_TINT(tint_forward, float);
"""
FRAGMENT = b"""\
// Undoes it.
static inline float undo_tint(float value, float by) {
  return value / by;
}
"""
PYTHON = b"""\
import paint

KNOWN = ["warm", "moss"]
PAIRS = {"warm": 1, "cold": {"warm": 2}}
PLACES = (
    "wall",
    "door",
)
COLOURS = {
    "red",
    "green",
}


def modifier(ops):
    FAILING = {
        "tint": None,
        "shade": [paint.half],
    }
    return FAILING


database = [
    PaintInfo("tint", dtypes=paint.all, skips=(
        Skip("slow", device="mps"),
        Skip("flaky"),
    )),
    PaintInfo("shade", skips=()),
]

register("tint", "shade")


class TestPaint(Base):
    limit = 3

    def test_tint(self):
        self.check("tint")

    def test_shade(self):
        self.check("shade")


class TestOther(Base):
    def test_tint(self):
        pass
"""
YAML = b"""\
# - func: tint(in a comment) -> Tensor
- func: shade(Tensor self) -> Tensor
  variants: function

- func: tint(Tensor self, float by=1) -> Tensor
  variants: function, method
  dispatch:
    CPU: tint_cpu
    CUDA: tint_cuda

- func: tint.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: tint_out
"""
DIGEST = "sha256:0f1e2d3c4b5a6978"


@dataclass(frozen=True)
class Case:
    """One edit and the text its anchor is found by.

    Attributes:
        entry: the manifest entry.
        source: the file.
        anchor: the stretch of the file that the anchor is; doubled or removed as a whole.
        name: the name in it that is renamed, and that a conflict must bring up again.
        fragment: what is placed.
        between: what stands between the anchor and its double.
    """

    entry: str
    source: bytes
    anchor: bytes
    name: str
    fragment: bytes = FRAGMENT
    between: bytes = b"\n"

    @property
    def edit(self) -> Edit:
        path = self.entry.split("path: ")[1].split(",")[0].strip()
        return edit_from(self.entry, {path: self.fragment} if "fragment:" in self.entry else None)

    @property
    def new_name(self) -> str:
        return self.name + ("_V2" if self.name.isupper() else "_v2")

    def renamed(self) -> bytes:
        renamed = self.anchor.replace(self.name.encode(), self.new_name.encode(), 1)
        return self.source.replace(self.anchor, renamed)

    def removed(self) -> bytes:
        return self.source.replace(self.anchor, b"")

    def doubled(self) -> bytes:
        return self.source.replace(self.anchor, self.anchor + self.between + self.anchor)


def metal(place: str, anchor: bytes, name: str, fragment: bytes = FRAGMENT) -> Case:
    entry = f"{{kind: place-fragment, path: kernels/Tint.metal, fragment: new, {place}}}"
    return Case(entry, METAL, anchor, name, fragment)


def cut(source: bytes, start: bytes, end: bytes) -> bytes:
    """From the first ``start`` to the ``end`` that follows it, both included."""
    at = source.index(start)
    return source[at : source.index(end, at) + len(end)]


STRUCT = cut(METAL, b"struct TintParams", b"};\n")
TABLE = cut(METAL, b"class TintTable", b"};\n")
UNION = cut(METAL, b"union TintBits", b"};\n")
ENUM = cut(METAL, b"enum class", b"};\n")
FUNCTION = cut(METAL, b"static inline", b"}\n")
KERNEL = cut(METAL, b"kernel void", b"\n}\n")
SPACES = cut(METAL, b"namespace paint {", b"} // namespace paint\n")
INCLUDE = b"#include <tint/levels.h>\n"
MEMBER = b"  int padding;\n"

CASES = {
    "after a function": metal("after: {function: scale_tint, in: 'paint::tint'}", FUNCTION, "scale_tint"),
    "before a function": metal("before: {function: scale_tint}", FUNCTION, "scale_tint"),
    "after a qualified function": metal("after: {function: 'paint::tint::scale_tint'}", FUNCTION, "scale_tint"),
    "after a kernel": metal("after: {kernel: tint_forward}", KERNEL, "tint_forward"),
    "before a kernel": metal("before: {kernel: tint_forward, in: global}", KERNEL, "tint_forward"),
    "after a struct": metal("after: {struct: TintParams}", STRUCT, "TintParams"),
    "at the end of a struct": metal("end_of: {struct: TintParams}", STRUCT, "TintParams", MEMBER),
    "at the start of a struct": metal("start_of: {struct: TintParams}", STRUCT, "TintParams", MEMBER),
    "after a class": metal("after: {class: TintTable}", TABLE, "TintTable"),
    "at the end of a class": metal("end_of: {class: TintTable}", TABLE, "TintTable", MEMBER),
    "after a union": metal("after: {union: TintBits}", UNION, "TintBits"),
    "after an enum": metal("after: {enum: TintMode}", ENUM, "TintMode"),
    "after an alias": metal("after: {alias: tint_t}", b"using tint_t = float;\n", "tint_t"),
    "after a macro": metal("after: {macro: TINT_LIMIT}", b"#define TINT_LIMIT 8\n", "TINT_LIMIT"),
    "after a registration": metal(
        "after: {registration: REGISTER_TINT}", b"REGISTER_TINT(tint_forward, float);\n", "REGISTER_TINT"
    ),
    "last in a namespace": metal("end_of: {namespace: 'paint::tint'}", SPACES, "tint"),
    "first in a namespace": metal("start_of: {namespace: 'paint::tint'}", SPACES, "tint"),
    "after a namespace": metal("after: {namespace: paint}", SPACES, "paint"),
    "after an include": metal("after: {include: tint/levels.h}", INCLUDE, "levels"),
    "after an include block": metal("after: {include_block: tint/levels.h}", INCLUDE, "levels"),
    "into an include block": metal(
        "into: {include_block: tint/levels.h}", INCLUDE, "levels", b"#include <tint/gamma.h>\n"
    ),
    "replace a function": Case(
        f"{{kind: replace-definition, path: kernels/Tint.metal, fragment: new, replaces: ['{DIGEST}'], "
        "definition: {function: scale_tint}}",
        METAL,
        FUNCTION,
        "scale_tint",
        b"// Scales one value.\nstatic inline float scale_tint(float value, float by) {\n  return by * value;\n}\n",
    ),
    "add a dispatch key": Case(
        "{kind: add-dispatch-key, path: native_functions.yaml, op: tint, key: MPS, function: tint_mps}",
        YAML,
        cut(YAML, b"- func: tint(Tensor", b"tint_cuda\n"),
        "tint",
    ),
    "members at the end of a Python class": Case(
        "{kind: place-fragment, path: test/test_paint.py, fragment: new, end_of: [{class: TestPaint}]}",
        PYTHON,
        cut(PYTHON, b"class TestPaint", b'self.check("shade")\n'),
        "TestPaint",
        b"    def test_undo(self):\n        self.check('undo')\n",
    ),
    "an entry behind another": Case(
        "{kind: add-python-entry, path: test/test_paint.py, in: [{assign: KNOWN}], "
        "after: '\"moss\"', entry: '\"lime\"'}",
        PYTHON,
        b', "moss"',
        "moss",
        between=b"",
    ),
}


def removal(steps: str, entry: str, anchor: bytes, name: str) -> Case:
    text = f"{{kind: remove-python-entry, path: test/test_paint.py, in: [{steps}], entry: {entry}}}"
    return Case(text, PYTHON, anchor, name, between=b"" if b"," in anchor else b", ")


SKIPS = "{assign: database}, {call: PaintInfo, argument: '\"tint\"'}, {keyword: skips}"
REMOVALS = {
    "from a list": removal("{assign: KNOWN}", "'\"moss\"'", b', "moss"', "moss"),
    "from a tuple": removal("{assign: PLACES}", "'\"door\"'", b'    "door",\n', "door"),
    "from a set": removal("{assign: COLOURS}", "'\"green\"'", b'    "green",\n', "green"),
    "from a dict in a function": removal(
        "{function: modifier}, {assign: FAILING}", "'\"tint\"'", b'        "tint": None,\n', "tint"
    ),
    "from a nested dict": removal("{assign: PAIRS}, {key: '\"cold\"'}", "'\"warm\"'", b'"warm": 2', "warm"),
    "from a keyword argument": removal(
        SKIPS, """ 'Skip("slow", device="mps")' """, b'        Skip("slow", device="mps"),\n', "slow"
    ),
    "from a call's arguments": removal("{call: register, argument: '\"tint\"'}", "'\"shade\"'", b', "shade"', "shade"),
    "from a class": Case(
        "{kind: remove-class-member, path: test/test_paint.py, in: [{class: TestPaint}], member: test_shade}",
        PYTHON,
        b"\n" + cut(PYTHON, b"    def test_shade", b'self.check("shade")\n'),
        "test_shade",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
class TestAnchor:
    def test_is_found_once_as_the_file_stands(self, case: Case) -> None:
        assert_applies(_known(case), case.source)

    def test_that_is_renamed_is_a_conflict_that_names_the_nearest(self, case: Case) -> None:
        assert_conflict(plan_on(_known(case), case.renamed()), matches=0, nearest=case.new_name)

    def test_that_is_removed_is_a_conflict_with_no_match(self, case: Case) -> None:
        assert_conflict(plan_on(_known(case), case.removed()), matches=0)

    def test_that_stands_twice_is_a_conflict_with_both_lines(self, case: Case) -> None:
        assert_conflict(plan_on(_known(case), case.doubled()), matches=2, nearest=case.name)

    def test_is_found_a_hundred_lines_further_down(self, case: Case) -> None:
        comment = b"//" if case.source is METAL else b"#"
        drifted = b"".join(comment + b" line %d\n" % number for number in range(100)) + case.source
        before, after = plan_on(_known(case), case.source), assert_applies(_known(case), drifted)
        assert [line + 100 for line in before.matches] == list(after.matches)

    def test_is_found_beside_renamed_neighbours_and_with_other_line_endings(self, case: Case) -> None:
        drifted = case.source.replace(b"(tint_forward, float", b"(other_kernel, half")
        drifted = drifted.replace(b"TestOther", b"TestElse").replace(b"tint.out", b"tint.into")
        drifted = drifted.replace(b"using namespace", b"using   namespace").replace(b"warm", b"hot")
        assert drifted != case.source
        assert_applies(_known(case), drifted.replace(b"\n", b"\r\n"))


@pytest.mark.parametrize("case", REMOVALS.values(), ids=REMOVALS.keys())
class TestRemoval:
    def test_takes_out_the_entry_and_nothing_else(self, case: Case) -> None:
        assert assert_applies(case.edit, case.source).after == case.removed()

    @pytest.mark.parametrize("change", ["renamed", "removed"])
    def test_of_what_is_not_there_carries_a_conflict_that_names_the_nearest(self, case: Case, change: str) -> None:
        outcome = plan_on(case.edit, case.renamed() if change == "renamed" else case.removed())
        assert outcome.status is Status.SATISFIED
        assert outcome.after is None
        assert outcome.conflict is not None
        assert outcome.conflict.matches == ()
        assert change == "removed" or case.new_name in ", ".join(map(str, outcome.conflict.nearest))

    def test_of_what_stands_twice_is_a_conflict_with_both_lines(self, case: Case) -> None:
        assert_conflict(plan_on(case.edit, case.doubled()), matches=2, nearest=case.name)

    def test_finds_the_entry_in_another_layout_and_with_other_quotes(self, case: Case) -> None:
        drifted = case.source.replace(b'"', b"'").replace(b", device=", b",\n             device = ")
        assert_applies(case.edit, b"# moved\n" * 100 + drifted)


def _known(case: Case) -> Edit:
    """The case's edit; a replacement is told the digest of the text that stands there."""
    edit = case.edit
    if DIGEST not in case.entry:
        return edit
    conflict = plan_on(edit, case.source).conflict
    assert conflict is not None
    digest = conflict.problem.partition("digest is ")[2].rstrip(")")
    return edit_from(case.entry.replace(DIGEST, digest), {edit.path: case.fragment})


def assert_applies(edit: Edit, source: bytes) -> Outcome:
    outcome = plan_on(edit, source)
    assert outcome.status is Status.APPLIES, outcome
    assert outcome.rung is Rung.STRUCTURAL
    assert outcome.after not in (None, source)
    return outcome


def assert_conflict(outcome: Outcome, *, matches: int, nearest: str = "") -> None:
    assert outcome.status is Status.CONFLICT, outcome
    assert outcome.after is None
    assert outcome.conflict is not None
    assert len(outcome.conflict.matches) == matches, outcome.conflict
    assert nearest in ", ".join(map(str, outcome.conflict.nearest)), outcome.conflict
