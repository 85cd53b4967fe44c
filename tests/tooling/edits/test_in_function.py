"""Places inside a function: its start and end, and beside a statement that declares, calls, assigns or returns."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edit_bench import applied, edit_from, plan_on
from patchstack.edits import Edit, Status
from patchstack.errors import ManifestError
from patchstack.tree.cxx import parse_cxx
from patchstack.tree.cxx_statements import statements_of

HOST = b"""\
#include <ATen/Tensor.h>

namespace at::native {

static void shade_all(const Tensor& input, Mode mode = {}) {
  switch (mode) {
    case Mode::Warm:
      check_warm(input);
      break;
    default: // cold
      check_cold(input);
  }
}

std::tuple<Tensor, Tensor> shade_backward_mps(const Tensor& grad, const Tensor& input) {
  TORCH_CHECK(input.dim() == 4, "grad_input; {", input.dim());
  // What comes out.
  auto grad_input = at::zeros_like(input);
  auto [rows, columns] = sizes_of(input), last = 1;
  if (grad_input.numel() == 0)
    return {grad_input, grad};
  else
    count(rows);
#if defined(FAST)
  prepare(input);
#endif
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      auto run = [&](auto tag) {
        using T = decltype(tag);
        [encoder setBytes:&rows length:sizeof(T) atIndex:0];
      };
      for (int64_t at = 0; at < 2; at++) {
        run(int32_t{});
      }
    }
  });
  grad_input.field[0] += 1; launch(grad_input);
  return std::make_tuple(std::move(grad_input), grad);
}

} // namespace at::native
"""
KERNEL = b"""\
template <typename T>
kernel void shade(device T* out [[buffer(0)]], constant Params& p, uint at [[thread_position_in_grid]]) {
  device T* row = out + at;
  threadgroup float sums[32];
  const float scale(p.scale), bias = half(1) < 2 ? 1 : 2;
  row[0] = T(scale);
}
"""
ADDED = b"  hook(input);\n"
IN = 'in_function: {function: shade_backward_mps, in: "at::native"}'


def placed(place: str, text: bytes = ADDED, path: str = "a.mm") -> Edit:
    return edit_from(f"{{kind: place-fragment, path: {path}, fragment: new, {place}}}", {path: text})


LANDS = {
    "before a declaration, its comment included": (
        f"before: {{statement: {{declares: grad_input}}, {IN}}}",
        "  // What comes out.\n",
        True,
    ),
    "after a structured binding": (
        f"after: {{statement: {{declares: columns}}, {IN}}}",
        "  auto [rows, columns] = sizes_of(input), last = 1;\n",
        False,
    ),
    "before a check": (f"before: {{statement: {{calls: TORCH_CHECK}}, {IN}}}", "  TORCH_CHECK(", True),
    "before the last return": (f"before: {{statement: {{returns: any}}, {IN}}}", "  return std::make_tuple", True),
    "before a return of a name": (f"before: {{statement: {{returns: grad}}, {IN}}}", "  return std::make_tuple", True),
    "before the block of a call": (
        f"before: {{statement: {{calls: dispatch_sync_with_rethrow}}, {IN}}}",
        "  dispatch_sync_with_rethrow",
        True,
    ),
    "before a statement in a block in a call": (
        f"before: {{statement: {{declares: encoder}}, {IN}}}",
        "      id<MTLComputeCommandEncoder> encoder",
        True,
    ),
    "before a message": (f"before: {{statement: {{calls: setBytes}}, {IN}}}", "        [encoder setBytes", True),
    "outside of the #if": (f"before: {{statement: {{calls: prepare}}, {IN}}}", "#if defined(FAST)\n", True),
    "inside it where that is said": (
        f"before: {{statement: {{calls: prepare}}, {IN}, inside_if: true}}",
        "  prepare(input);\n",
        True,
    ),
    "before an if with its else": (f"before: {{statement: {{calls: count}}, {IN}}}", "  if (grad_input.numel()", True),
    "in a case": (
        "before: {statement: {calls: check_cold}, in_function: {function: shade_all}}",
        "      check_cold(input);\n",
        True,
    ),
    "at the start of a function": (
        "start_of: {function: shade_backward_mps}",
        "  TORCH_CHECK(",
        True,
    ),
    "at the end of a function with a default argument": (
        "end_of: {function: shade_all}",
        "}\n\nstd::tuple",
        True,
    ),
}


@pytest.mark.parametrize(("place", "beside", "before"), LANDS.values(), ids=LANDS.keys())
def test_a_statement_lands(place: str, beside: str, before: bool) -> None:
    at = HOST.index(beside.encode()) + (0 if before else len(beside))
    assert applied(placed(place), HOST).decode() == (HOST[:at] + ADDED + HOST[at:]).decode()


def test_a_kernel_has_statements_too() -> None:
    place = "after: {statement: {declares: row}, in_function: {kernel: shade, in: global}}"
    after = applied(placed(place, path="a.metal"), KERNEL)
    assert after == KERNEL.replace(b"out + at;\n", b"out + at;\n" + ADDED)
    for verb, line in (
        ("declares: sums", b"sums[32];\n"),
        ("declares: bias", b"1 : 2;\n"),
        ("assigns: row", b"(scale);\n"),
    ):
        place = f"after: {{statement: {{{verb}}}, in_function: {{kernel: shade}}}}"
        assert applied(placed(place, path="a.metal"), KERNEL) == KERNEL.replace(line, line + ADDED)


REFUSED = {
    "a name that nothing declares": (
        f"before: {{statement: {{declares: grad_inputs}}, {IN}}}",
        "0 places match 'before the statement that declares grad_inputs in function shade_backward_mps in at::native'",
    ),
    "a name in a comment or a string": (f"before: {{statement: {{calls: comes}}, {IN}}}", "0 places match"),
    "a function that is not there": (
        "before: {statement: {declares: rows}, in_function: {function: shade}}",
        "0 places match",
    ),
    "a statement that stands twice": (
        "before: {statement: {calls: input}, in_function: {function: shade_all}}",
        "0 places match",
    ),
    "a statement that shares its line": (
        f"before: {{statement: {{calls: launch}}, {IN}}}",
        "other code stands on the line where the fragment would go",
    ),
    "a call that two statements make": (
        f"before: {{statement: {{calls: sizeof}}, {IN}, matches: 2}}",
        "1 places match",
    ),
}


@pytest.mark.parametrize(("place", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_a_place_that_is_not_one_is_a_conflict(place: str, problem: str) -> None:
    outcome = plan_on(placed(place), HOST)
    assert outcome.status is Status.CONFLICT
    assert outcome.conflict is not None
    assert outcome.conflict.problem.startswith(problem)


def test_a_conflict_names_what_is_nearest() -> None:
    outcome = plan_on(placed(f"before: {{statement: {{declares: grad_inputs}}, {IN}}}"), HOST)
    assert outcome.conflict is not None
    assert str(outcome.conflict.nearest[0]) == "grad_input at line 18"


def test_one_of_several_is_picked_and_their_number_is_checked() -> None:
    source = HOST.replace(b"  count(rows);", b"  count(rows);\n  note(rows);\n  note(columns);")
    place = f"after: {{statement: {{calls: note}}, {IN}, matches: 2, pick: last}}"
    assert applied(placed(place), source) == source.replace(b"note(columns);\n", b"note(columns);\n" + ADDED)
    assert plan_on(placed(place), HOST).status is Status.CONFLICT


def test_what_is_there_is_not_put_there_again_and_a_comment_of_it_is_nothing() -> None:
    edit = placed(f"before: {{statement: {{declares: grad_input}}, {IN}}}")
    assert plan_on(edit, applied(edit, HOST)).status is Status.SATISFIED
    elsewhere = HOST.replace(b"  switch", ADDED + b"  switch")
    assert plan_on(edit, elsewhere).status is Status.APPLIES
    assert plan_on(edit, HOST.replace(b"  // What", b"  /*\n" + ADDED + b"  */\n  // What")).status is Status.APPLIES


def test_a_variable_that_the_function_has_already_is_different() -> None:
    edit = placed(f"before: {{statement: {{returns: grad}}, {IN}}}", b"  auto rows = 1;\n")
    outcome = plan_on(edit, HOST)
    assert outcome.status is Status.DIFFERENT
    assert outcome.conflict is not None
    assert "already declares rows" in outcome.conflict.problem


def test_a_variable_of_another_block_is_none_to_clash_with() -> None:
    place = f"before: {{statement: {{returns: grad}}, {IN}}}"
    for text in (b"  auto encoder = 1;\n", b"  {\n    auto rows = 1;\n  }\n"):
        assert plan_on(placed(place, text), HOST).status is Status.APPLIES


def test_a_text_in_a_comment_and_then_in_code_is_there() -> None:
    edit = placed(f"before: {{statement: {{declares: grad_input}}, {IN}}}")
    source = applied(edit, HOST.replace(b"  TORCH", b"  /*\n" + ADDED + b"  */\n  TORCH"))
    assert plan_on(edit, source).status is Status.SATISFIED


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (f"before: {{statement: {{declares: a}}, {IN}}}", b"  if (x) {\n"),
        (f"before: {{statement: {{declares: a}}, {IN}}}", b"  )(\n"),
        ("before: {statement: {declares: a}}", ADDED),
        (f"end_of: {{statement: {{declares: a}}, {IN}}}", ADDED),
        (f"before: {{statement: {{names: a}}, {IN}}}", ADDED),
        (f"before: {{statement: {{declares: a, calls: b}}, {IN}}}", ADDED),
        ("before: {statement: {declares: a}, in_function: {struct: f}}", ADDED),
    ],
)
def test_a_place_or_a_text_that_is_none_is_refused_on_load(place: str, text: bytes) -> None:
    with pytest.raises(ManifestError):
        placed(place, text)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_fragment_leaves_every_other_statement_where_it_is(data: st.DataObject) -> None:
    """In any layout: comments and line breaks between the tokens of the function move nothing."""
    file = parse_cxx(HOST)
    function = next(d for d in file.definitions if d.name == "shade_backward_mps")
    names = ["grad_input", "rows", "encoder", "stream", "run"]
    name = data.draw(st.sampled_from(names))
    noise = data.draw(st.sampled_from([b"", b"  // note (", b" /* } */"]))
    source = HOST.replace(b";\n", b";" + noise + b"\n").replace(
        b" = ", data.draw(st.sampled_from([b" = ", b" =\n    "]))
    )
    after = parse_cxx(applied(placed(f"before: {{statement: {{declares: {name}}}, {IN}}}"), source))
    there = next(d for d in after.definitions if d.name == "shade_backward_mps")
    texts = [one.words for one in statements_of(after, there)]
    before = [one.words for one in statements_of(file, function)]
    at = next(n for n, one in enumerate(statements_of(file, function)) if name in one.declares)
    assert texts == [*before[:at], b"hook(input);", *before[at:]]
