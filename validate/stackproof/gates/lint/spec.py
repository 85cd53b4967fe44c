"""What is known of the gate "lint" before it is imported."""

from __future__ import annotations

from stackproof.gates.spec import Spec

SPEC = Spec(
    __name__,
    "lint",
    "what lands is formatted as the tree's own linters want it",
    limits=(
        "only lines that the range wrote are judged",
        "flake8, mypy, clang-tidy and the import sorter of the tree are not run",
    ),
)
