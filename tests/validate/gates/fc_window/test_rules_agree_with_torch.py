"""The rules restate torch's checker: on thousands of random edits they must never disagree with it."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from compat_trees import releases
from patchstack.tree.git import Tree
from skips import lacks, pip
from stackproof.gates.common.functions import read_functions
from stackproof.gates.common.schema import Schema, parse_schema
from stackproof.gates.fc_window import rules
from stackproof.gates.fc_window.delta import compare
from stackproof.gates.fc_window.judge import TorchJudge
from stackproof.gates.fc_window.rules import Judgement

EDITS = 4000
TYPES = (
    "int", "float", "bool", "Tensor", "Tensor?", "int?", "int[]", "int[2]", "SymInt", "SymInt[]", "Scalar", "Scalar?",
    "str", "ScalarType?", "Tensor[]", "Tensor?[]", "bool?", "float[]?", "Layout", "Device?", "SymInt[]?", "int[]?",
)  # fmt: skip
DEFAULTS = {"int": "3", "float": "1.5", "bool": "False", "int[]": "[]", "int[2]": "1", "SymInt": "7", "Scalar": "1"}
SEEDS = (
    "mix(Tensor self, Tensor other, int n, float x=0.5, *, bool flag=False) -> Tensor",
    "mix.out(Tensor self, int[2] size, Scalar alpha=1, *, int? k=None, Tensor(a!) out) -> Tensor(a!)",
    "mix_(Tensor(a!) self, SymInt[] dims=[], str? mode=None) -> Tensor(a!)",
    "halves(Tensor self, SymInt at, ScalarType? dtype=None) -> (Tensor left, Tensor right)",
)


def edited(text: str, pick: random.Random) -> str:
    """The schema after one or two random edits; not always one that parses."""
    head, rest = text.split("(", 1)
    listed, returns = rest.rsplit(") -> ", 1)
    arguments = listed.split(", ")
    for _ in range(pick.choice((1, 1, 2))):
        at = pick.randrange(len(arguments))
        type_, _, name = arguments[at].split("=")[0].rpartition(" ")
        kind = pick.randrange(9)
        if kind == 0:
            new = pick.choice(TYPES)
            default = DEFAULTS.get(new, "None" if "?" in new else "")
            with_default = default and pick.random() < 0.7
            arguments.insert(at, f"{new} extra" + (f"={default}" if with_default else ""))
        elif kind == 1 and len(arguments) > 1:
            del arguments[at]
        elif kind == 2 and type_:
            arguments[at] = arguments[at].replace(f" {name}", f" {name}x", 1)
        elif kind == 3:
            other = pick.randrange(len(arguments))
            arguments[at], arguments[other] = arguments[other], arguments[at]
        elif kind == 4 and type_:
            arguments[at] = f"{type_} {name}"
        elif kind == 5 and type_ and DEFAULTS.get(type_):
            arguments[at] = f"{type_} {name}={DEFAULTS[type_]}"
        elif kind == 6 and type_:
            arguments[at] = arguments[at].replace(type_, pick.choice(TYPES), 1)
        elif kind == 7:
            arguments = (
                [a for a in arguments if a != "*"] if "*" in arguments else [*arguments[:at], "*", *arguments[at:]]
            )
        elif kind == 8:
            returns = pick.choice(("Tensor", "(Tensor, Tensor)", "int", "Tensor[]", "(Tensor left, Tensor rite)"))
    return f"{head}({', '.join(arguments)}) -> {returns}"


def pair(old: str, new: str) -> tuple[Schema, Schema] | None:
    """Both schemas, or ``None`` where the edit is no schema that torchgen would take."""
    try:
        before, after = parse_schema(old), parse_schema(new)
    except ValueError:
        return None
    outs = [argument.is_out for argument in after.arguments]
    return (before, after) if outs == sorted(outs) else None


def verdicts(judgement: Judgement) -> tuple[bool | None, bool | None]:
    return judgement.backward, judgement.forward


def test_the_rules_and_torch_agree_on_random_edits() -> None:
    torch = TorchJudge()
    if not torch.version:
        pytest.skip(lacks("torch is not installed", pip("torch")))
    pick = random.Random(20300101)
    seen: Counter[tuple[bool | None, bool | None]] = Counter()
    for _ in range(EDITS):
        old = pick.choice(SEEDS)
        schemas = pair(old, edited(old, pick))
        judged = torch.judge(*schemas)[0] if schemas else None
        if schemas is None or judged is None:
            continue
        ours = rules.judge(*schemas)
        assert verdicts(ours) == verdicts(judged), f"{schemas[0].text}\n{schemas[1].text}\n{ours}\n{judged}"
        seen[verdicts(ours)] += 1
    assert sum(seen.values()) > EDITS / 2
    assert all(seen[(backward, forward)] > 20 for backward in (True, False) for forward in (True, False)), seen


@pytest.mark.needs_reference
def test_the_rules_and_torch_agree_on_every_changed_entry_between_releases() -> None:
    repository, commits = releases()
    read = {name: read_functions(Tree.at(repository, commit)) for name, commit in commits.items()}
    torch = TorchJudge()
    judged_pairs = 0
    for old, new in (("2.6", "2.11"), ("2.11", "2.13"), ("2.6", "2.13"), ("2.13", "2.6")):
        before, after = read[old], read[new]
        assert before is not None
        assert after is not None
        for entry in compare(before, after).changed:
            assert entry.before is not None
            assert entry.after is not None
            judged, refusal = torch.judge(entry.before.schema, entry.after.schema)
            if judged is None:
                assert "dimname" in entry.name, refusal
                continue
            judged_pairs += 1
            assert verdicts(rules.judge(entry.before.schema, entry.after.schema)) == verdicts(judged), entry.name
    assert judged_pairs > 60
