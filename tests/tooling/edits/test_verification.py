"""An edit checks its own result: with a fault put into how it finds its place, it refuses instead of writing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from edit_bench import edit_from, plan_on
from patchstack.edits import Status, python_entry, python_member
from patchstack.edits.cxx_fragment import PlaceCxxFragment
from patchstack.edits.dispatch_key import AddDispatchKey
from patchstack.tree.python import PythonFile
from patchstack.tree.text import Splice

PYTHON = b"""\
NAMES = ["a", "b", "c"]


class TestA:
    def test_a(self):
        pass

    def test_b(self):
        pass
"""
METAL = b"namespace a {\nvoid f() {\n  run();\n}\nvoid g() {}\n}\n"
YAML = (
    b"- func: tint(Tensor s) -> T\n  dispatch:\n    CPU: a\n\n- func: shade(Tensor s) -> T\n  dispatch:\n    CPU: b\n"
)
EDITS = {
    "place in C++": (
        "{kind: place-fragment, path: a.mm, fragment: new, after: {function: f}}",
        METAL,
        b"void added() {}\n",
    ),
    "place in Python": (
        "{kind: place-fragment, path: a.py, fragment: new, end_of: [{class: TestA}]}",
        PYTHON,
        b"    def test_c(self):\n        pass\n",
    ),
    "remove an entry": ("{kind: remove-python-entry, path: a.py, in: [{assign: NAMES}], entry: '\"b\"'}", PYTHON, b""),
    "add an entry": ("{kind: add-python-entry, path: a.py, in: [{assign: NAMES}], entry: '\"d\"'}", PYTHON, b""),
    "remove a member": (
        "{kind: remove-class-member, path: a.py, in: [{class: TestA}], member: test_b}",
        PYTHON,
        b"",
    ),
    "add a key": ("{kind: add-dispatch-key, path: a.yaml, op: tint, key: MPS, function: f}", YAML, b""),
}


@dataclass(frozen=True)
class Fault:
    """A wrong answer given in place of the right one.

    Attributes:
        edit: the edit, by its name in :data:`EDITS`.
        owner: the class or module that the wrong answer is put into.
        name: the function it replaces.
        answer: the wrong answer.
    """

    edit: str
    owner: object
    name: str
    answer: object


FAULTS = {
    "a fragment inside a function": Fault("place in C++", PlaceCxxFragment, "_offset", METAL.index(b"  run")),
    "a fragment outside the namespace": Fault("place in C++", PlaceCxxFragment, "_offset", len(METAL)),
    "a fragment that takes another function away": Fault(
        "place in C++",
        PlaceCxxFragment,
        "_splice",
        Splice(METAL.index(b"void g"), len(METAL) - 2, b"void added() {}\n"),
    ),
    "members outside the class": Fault("place in Python", PythonFile, "class_end", PYTHON.index(b"class TestA")),
    "members inside a method": Fault("place in Python", PythonFile, "class_end", PYTHON.index(b"        pass")),
    "two entries removed": Fault("remove an entry", python_entry, "removal", [Splice(14, 22, b"")]),
    "the wrong entry removed": Fault("remove an entry", python_entry, "removal", [Splice(9, 14, b"")]),
    "an entry removed, and a byte elsewhere": Fault(
        "remove an entry",
        python_entry,
        "removal",
        [Splice(12, 17, b""), Splice(len(PYTHON) - 5, len(PYTHON) - 1, b"...")],
    ),
    "an entry added twice": Fault("add an entry", python_entry, "addition", [Splice(22, 22, b', "d", "d"')]),
    "an entry added to the wrong place": Fault("add an entry", python_entry, "addition", [Splice(9, 9, b'"d", ')]),
    "both members removed": Fault(
        "remove a member",
        python_member,
        "member_removal",
        Splice(PYTHON.index(b"    def"), len(PYTHON), b"    a = 1\n"),
    ),
    "a key in the next entry": Fault(
        "add a key", AddDispatchKey, "_splice", Splice(len(YAML), len(YAML), b"    MPS: f\n")
    ),
    "a key that takes another's place": Fault(
        "add a key", AddDispatchKey, "_splice", Splice(YAML.index(b"CPU: a"), YAML.index(b"CPU: a") + 6, b"MPS: f")
    ),
    "a schema that changes": Fault(
        "add a key",
        AddDispatchKey,
        "_splice",
        Splice(YAML.index(b" -> T"), YAML.index(b"CPU: a") + 7, b" -> U\n  dispatch:\n    CPU: a\n    MPS: f\n"),
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_without_a_fault_the_edit_applies(name: str) -> None:
    entry, source, fragment = EDITS[name]
    assert plan_on(edit_from(entry, {"a.mm" if source is METAL else "a.py": fragment}), source).status is Status.APPLIES


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_noticed_on_the_result(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, source, fragment = EDITS[fault.edit]
    edit = edit_from(entry, {"a.mm" if source is METAL else "a.py": fragment})
    monkeypatch.setattr(fault.owner, fault.name, lambda *_args, **_named: fault.answer)
    outcome = plan_on(edit, source)
    assert outcome.status is Status.CONFLICT, outcome.after
    assert outcome.after is None
