"""Real deltas: from 2.6 to 2.11 to 2.13, with counts and a sample of entries that were checked by hand."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from compat_trees import releases
from patchstack.tree.git import Tree
from skips import lacks, pip
from stackproof.gates.common.functions import FUNCTIONS_PATH, read_functions
from stackproof.gates.fc_window.delta import SchemaDelta, compare
from stackproof.gates.fc_window.judge import JudgedEntry, TorchJudge, judge_entries
from stackproof.gates.fc_window.need import WindowNeed, window_need
from stackproof.gates.fc_window.torchgen_model import TreeTorchgen

pytestmark = pytest.mark.needs_reference

NO, LATER, NEVER = WindowNeed.NOT_APPLICABLE, WindowNeed.APPLIES, WindowNeed.CANNOT_HELP

# Each line was read in both releases by hand: operator, what changed, backward, forward, window.
FIRST = (
    ("aten::bincount", "minlength: type (int -> SymInt)", True, True, NO),
    ("aten::kthvalue", "k: type (int -> SymInt)", True, True, NO),
    ("aten::kthvalue.values", "k: type (int -> SymInt)", True, True, NO),
    ("aten::kthvalue.dimname", "k: type (int -> SymInt)", True, True, NO),
    ("aten::tril_", "diagonal: type (int -> SymInt)", True, True, NO),
    ("aten::triu.out", "diagonal: type (int -> SymInt)", True, True, NO),
    ("aten::nonzero_static", "size: type (int -> SymInt)", True, True, NO),
    ("aten::multinomial", "num_samples: type (int -> SymInt)", True, True, NO),
    ("aten::stft", "align_to_window: added", True, True, LATER),
    ("aten::stft.center", "align_to_window: added", True, True, LATER),
    ("aten::_validate_sparse_coo_tensor_args", "check_pinning: added", True, True, LATER),
    ("aten::_validate_sparse_bsc_tensor_args", "check_pinning: added", True, True, LATER),
    ("aten::fbgemm_linear_fp16_weight_fp32_activation", "bias: type (Tensor -> Tensor?)", True, False, LATER),
    ("aten::_cslt_sparse_mm", "split_k_one_kernel: removed", False, False, NEVER),
    ("aten::_scaled_dot_product_flash_attention", "returns: returns", False, True, NEVER),
    ("aten::_flash_attention_forward", "returns: returns", False, True, NEVER),
    ("aten::_flash_attention_backward", "rng_state: renamed (philox_seed -> rng_state)", False, False, NEVER),
    ("aten::hash_tensor", "added", True, True, LATER),
    ("aten::_grouped_mm", "added", True, True, LATER),
    ("aten::cudnn_batch_norm.out", "added", True, True, NO),
)
SECOND = (
    (
        "aten::_scaled_dot_product_attention_math_for_mps",
        "enable_gqa: added (bool enable_gqa=False)",
        True,
        True,
        LATER,
    ),
    ("aten::_flash_attention_forward", "num_splits: added (int? num_splits=None)", True, True, LATER),
    ("aten::align_as", "removed", False, False, NEVER),
    ("aten::is_contiguous.memory_format", "added", True, True, LATER),
)
COUNTS = {  # added, removed, changed schemas, dispatch-only, tag-only, not judged by torch
    ("2.6", "2.11"): (41, 0, 28, 418, 91, 2),
    ("2.11", "2.13"): (18, 108, 2, 97, 9, 0),
}


@functools.cache
def judged(old: str, new: str, cache: Path) -> tuple[SchemaDelta, dict[str, JudgedEntry]]:
    repository, commits = releases()
    trees = Tree.at(repository, commits[old]), Tree.at(repository, commits[new])
    before, after = map(read_functions, trees)
    assert before is not None
    assert after is not None
    delta = compare(before, after)
    parsers = [TreeTorchgen(tree, cache) for tree in trees]
    entries = judge_entries(delta.entries, TorchJudge(), base_parser=parsers[0], head_parser=parsers[1])
    return delta, {one.entry.name: one for one in entries}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("torchgen")


@pytest.mark.parametrize(("old", "new"), COUNTS)
def test_the_counts_of_a_release_delta(old: str, new: str, cache: Path) -> None:
    if not TorchJudge().version.startswith("2.13"):
        pytest.skip(lacks("the last count is that of torch 2.13", pip("torch==2.13.0")))
    delta, entries = judged(old, new, cache)
    refused = [one for one in entries.values() if one.torch_refusal]
    found = (delta.added, delta.removed, delta.changed, delta.dispatch_only, delta.tag_only, refused)
    assert tuple(map(len, found)) == COUNTS[old, new]
    assert all(one.judgement.judged_by == "the tree's torchgen and rules" for one in refused)


@pytest.mark.parametrize(
    ("releases_", "name", "change", "backward", "forward", "need"),
    [(("2.6", "2.11"), *row) for row in FIRST] + [(("2.11", "2.13"), *row) for row in SECOND],
)
def test_an_entry_that_was_checked_by_hand(
    releases_: tuple[str, str], name: str, change: str, backward: bool, forward: bool, need: WindowNeed, cache: Path
) -> None:
    one = judged(*releases_, cache)[1][name]
    described = [str(part) for part in one.entry.arguments] or ["added" if one.entry.is_added else "removed"]
    assert any(part.startswith(change) for part in described), described
    assert (one.judgement.backward, one.judgement.forward) == (backward, forward)
    assert window_need(one.entry, one.judgement)[0] is need


def test_every_entry_of_every_release_is_read_as_its_own_torchgen_reads_it(cache: Path) -> None:
    """Our parser and the tree's: same names, types, defaults and returns, on thousands of schemas."""
    repository, commits = releases()
    for commit in commits.values():
        tree = Tree.at(repository, commit)
        functions = read_functions(tree)
        assert functions is not None
        ours = {entry.schema.text: entry.schema for entry in functions.by_name.values()}
        theirs = TreeTorchgen(tree, cache)(frozenset(ours))
        assert theirs.keys() == ours.keys(), FUNCTIONS_PATH
        for text, schema in theirs.items():
            mine = ours[text]
            assert [(a.name, a.type, a.default) for a in schema.arguments] == [
                (a.name, a.type, a.default) for a in mine.arguments
            ]
            assert [a.is_out for a in schema.arguments] == [a.is_out for a in mine.arguments], text
            assert [a.type for a in schema.returns] == [a.type for a in mine.returns], text
