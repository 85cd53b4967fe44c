"""A dispatch key is one more line in one entry, whatever shape the entry has."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from ruamel.yaml import YAML

from edit_bench import edit_from, inserted_at, plan_on
from patchstack.edits import Outcome, Status

HEAD = "# See README\n- func: before(Tensor self) -> Tensor\n  dispatch:\n    CPU: before_cpu\n\n"
TAIL = "\n- func: after(Tensor self) -> Tensor\n  dispatch:\n    MPS: after_mps\n"


def planned(entry: str, key: str = "MPS", function: str = "tint_mps") -> Outcome:
    edit = edit_from(f"{{kind: add-dispatch-key, path: a.yaml, op: tint, key: {key}, function: {function}}}")
    return plan_on(edit, (HEAD + entry + TAIL).encode())


TINT = "- func: tint(Tensor self) -> Tensor\n"
SHAPES = {
    "a block map": (
        TINT + "  dispatch:\n    CPU: tint_cpu\n    CUDA: tint_cuda\n",
        "    MPS: tint_mps\n",
    ),
    "a blank line behind the map": (
        TINT + "  dispatch:\n    CPU: tint_cpu\n\n",
        "    MPS: tint_mps\n",
    ),
    "a key behind the map": (
        TINT + "  dispatch:\n    CPU: tint_cpu\n  autogen: tint.out\n",
        "    MPS: tint_mps\n",
    ),
    "a comment behind the last key": (
        TINT + "  dispatch:\n    CPU: tint_cpu  # MPS: later\n",
        "    MPS: tint_mps\n",
    ),
    "a comment line inside the map": (
        TINT + "  dispatch:\n    CPU: tint_cpu\n    # MPS: tint_mps\n",
        "    MPS: tint_mps\n",
    ),
    "keys with commas": (
        TINT + "  dispatch:\n    CPU, CUDA, SparseMPS: tint\n",
        "    MPS: tint_mps\n",
    ),
    "another indentation": (TINT + "  dispatch:\n     CPU: tint_cpu\n", "     MPS: tint_mps\n"),
    "a flow map": (TINT + "  dispatch: {CPU: tint_cpu}\n", ", MPS: tint_mps"),
    "a flow map with blanks": (TINT + "  dispatch: { CPU: tint_cpu }\n", ", MPS: tint_mps"),
    "a flow map with a last comma": (TINT + "  dispatch: {CPU: tint_cpu, }\n", ", MPS: tint_mps"),
    "an empty map": (TINT + "  dispatch: {}\n", "MPS: tint_mps"),
    "the map before the variants": (
        TINT + "  dispatch:\n    CPU: tint_cpu\n  variants: method\n  tags: [core]\n",
        "    MPS: tint_mps\n",
    ),
    "text that is not ASCII before it": (
        TINT + "  # süß, 漢字\n  dispatch: {CPU: tint_cpu}\n",
        ", MPS: tint_mps",
    ),
    "an overload of the same name": (
        "- func: tint.out(Tensor self) -> Tensor\n  dispatch:\n    MPS: tint_out\n\n"
        + TINT
        + "  dispatch:\n    CPU: tint_cpu\n",
        "    MPS: tint_mps\n",
    ),
    "an entry of that name in a comment": (
        f"# {TINT}#   dispatch:\n{TINT}  dispatch:\n    CPU: tint_cpu\n",
        "    MPS: tint_mps\n",
    ),
}


@pytest.mark.parametrize(("entry", "added"), SHAPES.values(), ids=SHAPES.keys())
def test_a_key_is_added_to(entry: str, added: str) -> None:
    outcome = planned(entry)
    before = (HEAD + entry + TAIL).encode()
    assert outcome.after is not None, outcome
    assert inserted_at(before, outcome.after)[1].decode().strip() == added.strip()
    assert only_difference(before, outcome.after) == ("tint", "MPS", "tint_mps")


BOMB = "".join(f"  a{n}: &a{n} [{f'*a{n - 1}, *a{n - 1}, *a{n - 1}' if n else 'x'}]\n" for n in range(24))
"""A few lines whose text, with its aliases written out, has 3 ** 23 letters."""

REFUSED = {
    "no dispatch map": (TINT + "  variants: method\n", "composite"),
    "kernels of another entry": (
        TINT + "  structured_delegate: tint.out\n",
        "its kernels are those of tint.out",
    ),
    "a dispatch that is no map": (TINT + "  dispatch: CPU\n", "expected a mapping"),
    "a key that is a list": (TINT + "  ? [a]\n  : b\n  dispatch:\n    CPU: a\n", "expected plain text"),
    "a dispatch key that is a list": (TINT + "  dispatch:\n    ? [CPU]\n    : a\n", "expected plain text"),
    "a function that is a mapping": (TINT + "  dispatch:\n    CPU: {a: b}\n", "expected plain text"),
    "a function that doubles and doubles": (TINT + BOMB + "  dispatch:\n    CPU: *a23\n", "expected plain text"),
    "a delegate that doubles and doubles": (TINT + BOMB + "  structured_delegate: *a23\n", "expected plain text"),
    "two entries": (
        TINT + "  dispatch:\n    CPU: a\n\n" + TINT + "  dispatch:\n    CPU: a\n",
        "2 entries",
    ),
    "no entry": ("- func: tinte(Tensor self) -> Tensor\n", "0 entries"),
    "a tab": (TINT + "  dispatch:\n\t  CPU: a\n", "cannot be read: not YAML"),
    "an unclosed quote": ('- func: tint(Tensor self) -> Tensor\n  dispatch:\n    CPU: "a\n', "not YAML"),
    "a key twice": (TINT + "  dispatch:\n    CPU: a\n    CPU: b\n", "'CPU' stands twice"),
    "two maps": (
        TINT + "  dispatch:\n    CPU: a\n  dispatch:\n    CUDA: b\n",
        "'dispatch' stands twice",
    ),
}


@pytest.mark.parametrize(("entry", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_an_entry_is_refused_that_has(entry: str, problem: str) -> None:
    outcome = planned(entry)
    assert outcome.status is Status.CONFLICT
    assert outcome.conflict is not None
    assert problem in outcome.conflict.problem
    assert outcome.conflict.matches == () or all(line > 5 for line in outcome.conflict.matches)


def test_bytes_that_are_not_utf_8_in_the_entry_are_a_conflict_with_their_line() -> None:
    edit = edit_from("{kind: add-dispatch-key, path: a.yaml, op: tint, key: MPS, function: f}")
    outcome = plan_on(edit, b"# \xe9\n- func: tint(Tensor s) -> T\n  # \xe9\n  dispatch:\n    CPU: a\n")
    assert outcome.conflict is not None
    assert outcome.conflict.matches == (3,)
    assert "not UTF-8" in outcome.conflict.problem


def test_the_nearest_entry_is_named_with_its_line() -> None:
    conflict = planned("- func: tinte(Tensor self) -> Tensor\n").conflict
    assert conflict is not None
    assert tuple(map(str, conflict.nearest)) == ("tinte at line 6",)


@pytest.mark.parametrize("keys", ["MPS", "CPU, MPS", "MPS, CUDA"])
def test_a_key_that_is_there_is_satisfied_or_different(keys: str) -> None:
    entry = TINT + f"  dispatch:\n    {keys}: tint_mps\n"
    assert planned(entry).status is Status.SATISFIED
    assert planned(entry, function="other").status is Status.DIFFERENT


def test_a_function_that_is_no_plain_name_would_change_more_than_the_key() -> None:
    outcome = planned(TINT + "  dispatch:\n    CPU: a\n", function="'f # g'")
    assert outcome.status is Status.CONFLICT


def only_difference(before: bytes, after: bytes) -> tuple[str, str, str]:
    """The one dispatch key that ``after`` has more, judged by two YAML libraries on the whole file."""
    found = set()
    second = YAML(typ="safe", pure=True)
    loads: tuple[Callable[[bytes], Any], ...] = (yaml.safe_load, lambda data: second.load(io.BytesIO(data)))
    for load in loads:
        old, new = load(before), load(after)
        assert len(old) == len(new)
        changed = [(o, n) for o, n in zip(old, new, strict=True) if o != n]
        assert len(changed) == 1
        entry_before, entry_after = changed[0]
        (key,) = set(entry_after["dispatch"]) - set(entry_before["dispatch"])
        function = entry_after["dispatch"].pop(key)
        assert entry_after == entry_before
        assert list(entry_after["dispatch"]) == list(entry_before["dispatch"])
        found.add((entry_after["func"].split("(")[0], key, function))
    (one,) = found
    return one


def test_the_judge_notices_a_second_change() -> None:
    before = (HEAD + SHAPES["a block map"][0] + TAIL).encode()
    after = before.replace(b"    CUDA: tint_cuda\n", b"    CUDA: other\n    MPS: tint_mps\n")
    with pytest.raises(AssertionError):
        only_difference(before, after)
