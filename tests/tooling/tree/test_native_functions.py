"""``native_functions.yaml``: the same entry whether one is asked for or all of them."""

from __future__ import annotations

import pytest

from patchstack.tree.native_functions import NativeFunctions, read_all
from patchstack.tree.yaml_nodes import YamlSyntaxError

FILE = """# some words
- func: tint(Tensor self) -> Tensor
  variants: method
  dispatch:
    CPU, MPS: tint
    CUDA: tint_cuda  # ü

- func: tint.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  tags: [core, pointwise]
""".encode()


def test_one_entry_and_all_of_them_say_the_same() -> None:
    one, other = read_all(FILE)
    found = [entry for name in ("tint", "tint.out") for entry in NativeFunctions(FILE).find(name)]
    assert [entry.schema for entry in found] == [one.schema, other.schema]
    assert [entry.line for entry in found] == [one.line, other.line] == [2, 8]
    assert one.dispatch == {"CPU": "tint", "MPS": "tint", "CUDA": "tint_cuda"}
    assert {key: line.function for line in found[0].dispatch for key in line.keys} == one.dispatch
    assert [FILE[line.start : line.end] for line in found[0].dispatch] == [b"CPU, MPS: tint", b"CUDA: tint_cuda"]
    assert (list(one.rest), list(other.rest), other.dispatch) == (["variants"], ["tags"], {})


@pytest.mark.parametrize("keys", ["CPU, CPU", "MPS, CPU"])
def test_a_dispatch_key_that_stands_twice_is_found_at_its_line_by_both(keys: str) -> None:
    data = FILE.replace(b"CUDA", keys.encode())
    for read in (lambda: list(read_all(data)), lambda: NativeFunctions(data).find("tint")):
        with pytest.raises(YamlSyntaxError, match="stands twice") as caught:
            read()
        assert caught.value.line == 6


def test_the_texts_of_entries_are_there_although_one_cannot_be_read() -> None:
    texts = dict(NativeFunctions(FILE.replace(b"variants: method", b"variants: [")).texts())
    assert list(texts) == ["tint", "tint.out"]
    assert texts["tint.out"].endswith("[core, pointwise]\n")
