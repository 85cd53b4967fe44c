"""Every entry of PyTorch's own ``native_functions.yaml`` takes a dispatch key as one insertion."""

from __future__ import annotations

import io

import pytest
import yaml
from ruamel.yaml import YAML

from edit_bench import plan_on
from patchstack.edits import Status
from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.tree.git import Repository, Tree
from patchstack.tree.native_functions import NativeFunctions
from references import require_reference

PATH = "aten/src/ATen/native/native_functions.yaml"
KEY = "PrivateUse3"
"""A key that no entry has."""


def native_functions(version: str) -> bytes:
    reference = require_reference(version)
    with Repository.open(reference.path) as repository:
        return Tree.at(repository, reference.commit).read(PATH) or b""


@pytest.fixture(scope="module", params=["2.6", "2.11"])
def data(request: pytest.FixtureRequest) -> bytes:
    return native_functions(request.param)


def blocks(data: bytes) -> list[bytes]:
    """The file cut before each ``- func:``."""
    head, *entries = data.split(b"\n- func:")
    return [head, *(b"- func:" + entry for entry in entries)]


@pytest.mark.needs_reference
def test_every_entry_with_a_dispatch_map_takes_a_key_and_changes_in_nothing_else(data: bytes) -> None:
    """Entry by entry on its own block; one run over the whole file follows below."""
    done = 0
    for block in blocks(data)[1:]:
        (old,) = yaml.load(block, Loader=yaml.CSafeLoader)
        name = old["func"].split("(")[0]
        outcome = plan_on(AddDispatchKey(path=PATH, op=name, key=KEY, function="run_it"), block + b"\n")
        if "dispatch" not in old:
            assert outcome.status is Status.CONFLICT
            continue
        assert outcome.after is not None, outcome
        (new,) = yaml.load(outcome.after, Loader=yaml.CSafeLoader)
        assert list(new["dispatch"])[-1] == KEY
        assert new["dispatch"].pop(KEY) == "run_it"
        assert new == old
        grown = outcome.after.count(b"\n") - block.count(b"\n") - 1
        assert grown == (0 if b"dispatch: {" in block else 1)
        done += 1
    assert done > 1200


def with_keys(data: bytes) -> tuple[bytes, set[str]]:
    """The file with the key in every fortieth entry that has a dispatch map, one edit after the other."""
    added = set()
    for name in list(NativeFunctions(data).lines)[::40]:
        outcome = plan_on(AddDispatchKey(path=PATH, op=name, key=KEY, function="run_it"), data)
        if outcome.after is not None:
            data = outcome.after
            added.add(name)
    return data, added


@pytest.mark.needs_reference
def test_keys_added_all_over_the_file_are_all_that_changes_in_it(data: bytes) -> None:
    after, added = with_keys(data)
    assert len(added) > 20
    old, new = (yaml.load(text, Loader=yaml.CSafeLoader) for text in (data, after))
    for entry in new:
        if entry["func"].split("(")[0] in added:
            assert entry["dispatch"].pop(KEY) == "run_it"
    assert new == old


@pytest.mark.exhaustive
@pytest.mark.needs_reference
def test_a_second_library_reads_the_same_difference() -> None:
    data = native_functions("2.11")
    after, added = with_keys(data)
    old, new = (YAML(typ="safe", pure=False).load(io.BytesIO(text)) for text in (data, after))
    changed = [entry for entry, before in zip(new, old, strict=True) if entry != before]
    assert {entry["func"].split("(")[0] for entry in changed} == added
    assert all(entry["dispatch"].pop(KEY) == "run_it" for entry in changed)
    assert new == old


@pytest.mark.needs_reference
def test_the_index_has_every_entry_once(data: bytes) -> None:
    names = [entry["func"].split("(")[0] for entry in yaml.load(data, Loader=yaml.CSafeLoader)]
    assert list(NativeFunctions(data).lines) == names
