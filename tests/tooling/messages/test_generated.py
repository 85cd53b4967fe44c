"""The generated parts say what was done and run, word for word the same each time, and pass every rule."""

from __future__ import annotations

from dataclasses import replace

from patchstack.messages import CoAuthor, Message, check_message, refused
from patchstack.messages.generated import FileChange, Generated, with_generated
from patchstack.messages.results import GateLine, TestRun

LONG = "torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h"
RUN = TestRun(
    "validate-stack --each-commit",
    "Linux x86_64",
    "b" * 40,
    "a" * 40,
    (
        GateLine("metal-run", "passed", 640, 0, "2.5e-06 (of the largest value)"),
        GateLine("lint", "failed", 12, 1),
        GateLine("build", "not run"),
        GateLine("test-mps", "not run"),
    ),
)
FULL = Generated(
    (FileChange("a.metal", 409, 0), FileChange(LONG, 1, 2, ("declares aoti_torch_mps_fade",))),
    ("python test/test_mps.py -v -k fade",),
    RUN,
    "| shape | ms |\n|---|---|\n| (1, 2) | 0.5 |\n",
    ("ada",),
)
TEXT = """\
Prose.

What changed:

- a.metal (+409)
- torch/csrc/inductor/aoti_torch/generated/c_shim_mps.h (+1 -2):
  declares aoti_torch_mps_fade

Test plan:

```
python test/test_mps.py -v -k fade
```

Run on the tree of this commit (aaaaaaaaaaaa) on Linux x86_64:

```
validate-stack --each-commit
```

- metal-run: passed, 640 cases, worst error 2.5e-06 (of the largest
  value)
- lint: failed, 1 of 12 cases
- not run: build, test-mps

Host stand-ins only: nothing of this ran on an Apple GPU.

Benchmark results:

| shape | ms |
|---|---|
| (1, 2) | 0.5 |

cc @ada
"""


def test_every_part_stands_below_the_prose_in_a_fixed_order() -> None:
    assert with_generated("\nProse.\n\n", FULL) == TEXT


def test_without_results_it_is_said_what_was_not_run() -> None:
    text = with_generated("Prose.\n", replace(FULL, run=None, benchmark="", cc=()))
    assert text.endswith("```\n\nNothing was run on this version of the commit.\n")


def test_a_run_on_a_mac_is_not_called_a_stand_in() -> None:
    assert "stand-ins" not in with_generated("Prose.\n", replace(FULL, run=replace(RUN, system="macOS arm64")))


def test_every_generated_part_passes_all_rules() -> None:
    message = Message("[MPS] Add fade", with_generated("Prose.\n", FULL), (CoAuthor("Ada", "ada@example.com"),))
    assert [finding.rule for finding in check_message(message)] == ["mention-cc"]  # a warning: the account is notified


def test_a_table_with_a_hazard_in_it_is_refused() -> None:
    """The seeded fault: what a person hands in is checked as the prose is."""
    bad = with_generated("Prose.\n", replace(FULL, benchmark="---\n| a |\n"))
    assert [finding.rule for finding in refused(check_message(Message("[MPS] Add fade", bad)))] == ["mail-cut"]
