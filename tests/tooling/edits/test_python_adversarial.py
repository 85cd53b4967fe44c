"""Python files in which the name stands in more places than one."""

from __future__ import annotations

import ast

import pytest

from edit_bench import applied, edit_from, plan_on
from patchstack.edits import Outcome, Status

REMOVE = "{kind: remove-python-entry, path: a.py, in: [%s], entry: '%s'}"


def removal(source: str, steps: str = "{assign: NAMES}", entry: str = '"x"') -> Outcome:
    return plan_on(edit_from(REMOVE % (steps, entry)), source.encode())


def after(outcome: Outcome) -> str:
    assert outcome.after is not None, outcome
    ast.parse(outcome.after)
    return outcome.after.decode()


ONE_PLACE = {
    "a string that looks like it": (
        "TEXT = 'NAMES = [\"x\"]'\nNAMES = ['x']\n",
        "TEXT = 'NAMES = [\"x\"]'\nNAMES = []\n",
    ),
    "a comment that looks like it": ('# NAMES = ["x"]\nNAMES = ["x"]\n', '# NAMES = ["x"]\nNAMES = []\n'),
    "a comment inside": ('NAMES = [\n    # "x",\n    "x",\n]\n', 'NAMES = [\n    # "x",\n]\n'),
    "a longer entry": ('NAMES = ["xx", "x", "x.x", f"x"]\n', 'NAMES = ["xx", "x.x", f"x"]\n'),
    "the same name in a nested list": ('NAMES = [["x"], "x"]\n', 'NAMES = [["x"]]\n'),
    "the same name as a dict value": ('NAMES = {"a": "x", "x": 1}\n', 'NAMES = {"a": "x"}\n'),
    "the same name in a nested dict": ('NAMES = {"a": {"x": 1}, "x": 1}\n', 'NAMES = {"a": {"x": 1}}\n'),
    "a local variable of that name": (
        'def f():\n    NAMES = ["x"]\nNAMES = ["x"]\n',
        'def f():\n    NAMES = ["x"]\nNAMES = []\n',
    ),
    "an attribute of that name": ('a.NAMES = ["x"]\nNAMES = ["x"]\n', 'a.NAMES = ["x"]\nNAMES = []\n'),
    "a class attribute of that name": (
        'class A:\n    NAMES = ["x"]\nNAMES = ["x"]\n',
        'class A:\n    NAMES = ["x"]\nNAMES = []\n',
    ),
    "an assignment under if": ('if A:\n    NAMES = ["x"]\n', "if A:\n    NAMES = []\n"),
    "an assignment under try": (
        "try:\n    NAMES = ['x']\nexcept E:\n    pass\n",
        "try:\n    NAMES = []\nexcept E:\n    pass\n",
    ),
    "an entry written in two pieces": ('NAMES = ["x" "", "y"]\n', 'NAMES = ["y"]\n'),
    "bytes and other prefixes": ('NAMES = [b"x", r"x"]\n', 'NAMES = [b"x"]\n'),
}


@pytest.mark.parametrize(("source", "expected"), ONE_PLACE.values(), ids=ONE_PLACE.keys())
def test_the_one_entry_is_told_from(source: str, expected: str) -> None:
    assert after(removal(source)) == expected


REFUSED = {
    "two assignments": ('NAMES = ["x"]\nNAMES = ["x"]\n', "2 places"),
    "an assignment in both branches": ('if A:\n    NAMES = ["x"]\nelse:\n    NAMES = ["x"]\n', "2 places"),
    "an entry twice": ("NAMES = [\"x\", 'x']\n", "2 entries"),
    "a duplicate key": ('NAMES = {"x": 1, "x": 2}\n', "2 entries"),
    "a call around the list": ('NAMES = set(["x"])\n', "leads to a call"),
    "a list that is computed": ('NAMES = ["x"] + MORE\n', "leads to a binary operator"),
    "a comprehension": ('NAMES = [x for x in "x"]\n', "leads to a list comprehension"),
    "a broken file": ('NAMES = ["x"\n', "not valid Python"),
    "an addition to the list": ('NAMES += ["x"]\n', "0 places"),
}


@pytest.mark.parametrize(("source", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_a_removal_is_refused_before(source: str, problem: str) -> None:
    outcome = removal(source)
    assert outcome.status is Status.CONFLICT
    assert outcome.conflict is not None
    assert problem in outcome.conflict.problem


def test_the_last_entry_of_a_set_is_not_removed_because_braces_alone_are_a_dict() -> None:
    outcome = removal('NAMES = {"x"}\n')
    assert outcome.conflict is not None
    assert "set would become a dictionary" in outcome.conflict.problem


def test_an_entry_with_another_value_is_not_the_one() -> None:
    entry = REMOVE[:-1] % ("{assign: NAMES}", '"x"') + ", value: None}"
    outcome = plan_on(edit_from(entry), b'NAMES = {"x": [half], "y": None}\n')
    assert outcome.status is Status.SATISFIED
    assert outcome.conflict is not None
    assert str(outcome.conflict.nearest[0]) == '"x": [half] at line 1'
    assert after(plan_on(edit_from(entry), b'NAMES = {"x":None, "y": None}\n')) == 'NAMES = {"y": None}\n'


def test_a_key_that_is_there_with_another_value_is_present_but_different() -> None:
    edit = edit_from("{kind: add-python-entry, path: a.py, in: [{assign: A}], entry: '\"x\"', value: '[half, full]'}")
    assert plan_on(edit, b'A = {"x": [half]}\n').status is Status.DIFFERENT
    assert plan_on(edit, b'A = {"x": [\n  half,\n  full,  # why\n]}\n').status is Status.SATISFIED


@pytest.mark.parametrize(
    ("source", "entry", "problem"),
    [
        ('use("first", a=1)\n', '"late"', "more than the one entry"),
        ("A = {}\n", '"x"', "takes a value"),
        ('A = ["y"]\n', "\"x\"', value: '1", "takes no value"),
    ],
)
def test_an_addition_that_would_not_be_python_is_refused(source: str, entry: str, problem: str) -> None:
    steps = "{call: use, argument: '\"first\"'}" if source.startswith("use") else "{assign: A}"
    edit = edit_from(f"{{kind: add-python-entry, path: a.py, in: [{steps}], entry: '{entry}'}}")
    outcome = plan_on(edit, source.encode())
    assert outcome.status is Status.CONFLICT
    assert outcome.conflict is not None
    assert problem in outcome.conflict.problem


def test_a_keyword_argument_is_an_entry_of_a_call() -> None:
    steps = "{call: use, argument: '\"first\"'}"
    edit = edit_from(f"{{kind: remove-python-entry, path: a.py, in: [{steps}], entry: 'b = 2'}}")
    assert applied(edit, b'use("first", a=1, b=2, c=3)\n') == b'use("first", a=1, c=3)\n'


def test_a_call_is_found_by_its_first_argument_and_not_by_a_later_one_or_a_nested_one() -> None:
    steps = "{assign: DB}, {call: Info, argument: '\"x\"'}, {keyword: skips}"
    source = 'DB = [\n    Info("y", "x", skips=(1, 2)),\n    Info("z", Other("x"), skips=(1, 2)),\n'
    source += '    Info("x", skips=(1, 2)),\n]\n'
    assert after(removal(source, steps, "1")) == source.replace('Info("x", skips=(1, 2))', 'Info("x", skips=(2,))')


CLASSES = {
    "a class inside another": "class Outer:\n    class TestA:\n        limit = 1\n\n\nclass TestA:\n    pass\n",
    "a decorated class": "@slow\nclass TestA(Base):\n    def test_b(self):\n        pass\n",
    "a class of that name in a function": "def f():\n    class TestA:\n        pass\n\n\nclass TestA:\n    pass\n",
    "a class in a string": 'TEXT = """\nclass TestA:\n    pass\n"""\n\n\nclass TestA:\n    pass\n',
    "a docstring only": 'class TestA:\n    """Nothing yet."""\n',
    "comments at its end": "class TestA:\n    def b(self):\n        pass\n        # still b\n    # of the class\n"
    "\n# of the module\nA = 1\n",
    "a class at the end without a line feed": "A = 1\n\n\nclass TestA:\n    pass",
    "a class before others": "class TestA:\n    pass\n\n\nclass TestB:\n    pass\n",
}
FRAGMENT = b"    def test_new(self):\n        pass\n"
PLACE = "{kind: place-fragment, path: a.py, fragment: new, end_of: [{class: TestA}]}"


@pytest.mark.parametrize("source", CLASSES.values(), ids=CLASSES.keys())
def test_a_member_is_put_at_the_end_of_the_one_class(source: str) -> None:
    result = applied(edit_from(PLACE, {"a.py": FRAGMENT}), source.encode()).decode()
    (found,) = (node for node in ast.parse(result).body if isinstance(node, ast.ClassDef) and node.name == "TestA")
    assert isinstance(found.body[-1], ast.FunctionDef)
    assert found.body[-1].name == "test_new"
    assert "# of the module" not in result or result.index("test_new") > result.index("# of the class")
    assert result.index("test_new") < result.find("# of the module") % (len(result) + 1)


NO_PLACE = {
    "a class under if": ("if A:\n    class TestA:\n        pass\n", "not end up as members"),
    "two classes": ("class TestA:\n    pass\n\n\nclass TestA:\n    pass\n", "2 places"),
    "a class in both branches": (
        "if A:\n    class TestA:\n        pass\nelse:\n    class TestA:\n        pass\n",
        "2 places",
    ),
    "a class inside another only": ("class Outer:\n    class TestA:\n        pass\n", "0 places"),
    "a class on one line": ("class TestA: pass\n", ""),
}


@pytest.mark.parametrize(("source", "problem"), NO_PLACE.values(), ids=NO_PLACE.keys())
def test_a_member_is_not_put_anywhere_else_than_in_the_class(source: str, problem: str) -> None:
    outcome = plan_on(edit_from(PLACE, {"a.py": FRAGMENT}), source.encode())
    assert outcome.status is Status.CONFLICT, outcome.after
    assert outcome.conflict is not None
    assert problem in outcome.conflict.problem


def test_a_member_of_the_same_name_is_present_but_different() -> None:
    outcome = plan_on(
        edit_from(PLACE, {"a.py": FRAGMENT}), b"class TestA:\n    def test_new(self):\n        return 1\n"
    )
    assert outcome.status is Status.DIFFERENT


@pytest.mark.parametrize(
    "source",
    [
        'class TestA:\n    pass\n\n\nTEXT = """\n    def test_new(self):\n        pass\n"""\n',
        "class TestA:\n    pass\n\n\nclass TestB:\n    def test_new(self):\n        pass\n",
    ],
    ids=["in a string", "in another class"],
)
def test_the_text_of_the_members_elsewhere_does_not_count_as_there(source: str) -> None:
    assert plan_on(edit_from(PLACE, {"a.py": FRAGMENT}), source.encode()).status is Status.APPLIES


class TestMember:
    SOURCE = (
        "class TestA(Base):\n    limit = 3\n\n    @slow\n    @parametrize('a', [1])\n    def test_b(self):\n"
        "        def test_c():\n            pass\n\n    def test_c(self):\n        pass\n"
        "\n\nclass TestB:\n    def test_b(self):\n        pass\n"
    )
    EDIT = "{kind: remove-class-member, path: a.py, in: [{class: TestA}], member: %s}"

    def removed(self, name: str) -> str:
        return applied(edit_from(self.EDIT % name), self.SOURCE.encode()).decode()

    def test_goes_with_its_decorators_and_one_blank_line(self) -> None:
        result = self.removed("test_b")
        assert result.startswith(
            "class TestA(Base):\n    limit = 3\n\n    def test_c(self):\n        pass\n\n\nclass TestB"
        )

    def test_that_is_last_takes_the_blank_line_above(self) -> None:
        assert "            pass\n\n\nclass TestB" in self.removed("test_c")

    def test_can_be_a_variable(self) -> None:
        assert self.removed("limit").startswith("class TestA(Base):\n    @slow\n")

    def test_that_is_the_only_one_stays(self) -> None:
        edit = edit_from("{kind: remove-class-member, path: a.py, in: [{class: TestB}], member: test_b}")
        assert plan_on(edit, self.SOURCE.encode()).status is Status.CONFLICT
