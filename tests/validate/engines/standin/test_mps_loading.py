"""A real test file expects a Mac and its own release: what it asks is answered, what it lacks skips tests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stackproof.gates.test_mps.child import TEST_FILE
from stackproof.gates.test_mps.loading import LISTS, TESTING

# Runs in a process of its own: it changes torch.
SCRIPT = """
import importlib, json, sys, unittest
from pathlib import Path
from stackproof.gates.test_mps.loading import LoadError, load_test_file, pretend_to_be_a_mac

root = Path(sys.argv[1])
pretend_to_be_a_mac()
importlib.import_module("torch.testing._internal").__path__.insert(0, str(root / "torch/testing/_internal"))
try:
    module, notes = load_test_file(root, "test/test_mps.py")
except LoadError as error:
    print(json.dumps({"error": str(error)}))
    sys.exit()
result = unittest.TestResult()
suite = unittest.defaultTestLoader.loadTestsFromModule(module)
if sys.argv[2] == "run":
    suite.run(result)
print(json.dumps({
    "notes": [[one.path, one.line, one.message] for one in notes],
    "fails": [one.fails for one in notes],
    "skipped": {test.id().split(".")[-1]: reason for test, reason in result.skipped},
    "wrong": [text for _test, text in [*result.errors, *result.failures]],
    "tests": suite.countTestCases(),
}))
"""


def loaded(root: Path, files: Mapping[str, str], what: str = "run") -> dict[str, Any]:
    """What came of loading, and running, these files as the top of a tree."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    command = [sys.executable, "-c", SCRIPT, str(root), what]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


ASKS = """
import subprocess, unittest
import torch
memory = int(subprocess.check_output(["sysctl", "-n", "hw.memsize"]))
shell = subprocess.run("sysctl -n hw.memsize", shell=True, capture_output=True, text=True).stdout
class TestIt(unittest.TestCase):
    def test_memory(self):
        self.assertEqual(memory, 16 << 30)
        self.assertEqual(int(shell), memory)
    def test_other_commands_run(self):
        self.assertEqual(subprocess.check_output(["printf", "a b"]), b"a b")
"""

LACKS = """
import unittest
import torch
from torch.export import surely_no_such_name
from torch.no_such_package.quantizer import Quantizer
import torch.no_such_package.other as other
from torch.testing._internal.helper import VALUE
known = torch.no_such_function
class TestIt(unittest.TestCase):
    def test_a_name(self):
        surely_no_such_name(1)
    def test_a_module(self):
        Quantizer()
    def test_an_attribute(self):
        known()
    def test_neither(self):
        self.assertEqual(VALUE, 3)
"""


def test_what_the_file_asks_of_macos_is_answered(tmp_path: Path) -> None:
    answer = loaded(tmp_path, {TEST_FILE: ASKS})
    assert answer["wrong"] == []
    assert answer["tests"] == 2
    assert answer["notes"] == []


def test_a_name_that_the_installed_torch_lacks_skips_the_tests_that_use_it_and_is_noted_with_its_line(
    tmp_path: Path,
) -> None:
    answer = loaded(tmp_path, {TEST_FILE: LACKS, f"{TESTING}/helper.py": "VALUE = 3\n"})
    assert answer["wrong"] == []
    assert sorted(answer["skipped"]) == ["test_a_module", "test_a_name", "test_an_attribute"]
    assert answer["skipped"]["test_a_name"].endswith("has no torch.export.surely_no_such_name")
    path, line, message = answer["notes"][0]
    assert (path, line) == (TEST_FILE, 4)
    assert message.endswith("which is imported here: tests that use it are skipped")
    assert not any(answer["fails"])


def test_a_helper_that_fails_with_the_installed_torch_is_replaced_by_that_torchs_own(tmp_path: Path) -> None:
    files = {
        TEST_FILE: "from torch.testing._internal.common_quantized import supported_qengines\n",
        f"{TESTING}/common_quantized.py": "[].remove('none')\n",
    }
    answer = loaded(tmp_path, files)
    (path, line, message), *more = answer["notes"]
    assert (path, line, more) == (f"{TESTING}/common_quantized.py", 1, [])
    assert "that torch's own is used instead" in message


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({TEST_FILE: "x = 1\nassert x == 2\n"}, f"{TEST_FILE}:2: AssertionError: "),
        ({TEST_FILE: "def f(:\n"}, f"{TEST_FILE}:1: SyntaxError: "),
        ({TEST_FILE: "import torch\nimport surely_no_such_package\n"}, f"{TEST_FILE}:2: ModuleNotFoundError: "),
        (
            {TEST_FILE: "import torch.testing._internal.common_mps\n", LISTS[1]: "1 / 0\n"},
            f"{LISTS[1]}:1: ZeroDivision",
        ),
    ],
)
def test_what_cannot_be_loaded_is_told_with_its_line(tmp_path: Path, files: Mapping[str, str], expected: str) -> None:
    assert loaded(tmp_path, files)["error"].startswith(expected)
