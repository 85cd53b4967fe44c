"""Errors name the page of the documentation that explains them, and the page exists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import patchstack.cli.main
import stackproof.cli.main
from checkouts import Lab
from patchstack.errors import ManifestError, PatchstackError, UsageError

ROOT = Path(__file__).resolve().parents[3]
LOADED = (patchstack.cli.main, stackproof.cli.main)


def kinds(of: type[PatchstackError] = PatchstackError) -> Iterator[type[PatchstackError]]:
    yield of
    for one in of.__subclasses__():
        yield from kinds(one)


@pytest.mark.parametrize("kind", list(dict.fromkeys(kinds())), ids=lambda kind: kind.__name__)
def test_the_page_of_every_kind_of_error_exists(kind: type[PatchstackError]) -> None:
    assert (ROOT / kind.page).is_file()


def test_a_command_prints_the_page_before_what_to_type_next() -> None:
    error = ManifestError("no title", "a.yaml:3", expected="one", next_command="vi a.yaml")
    assert error.told() == "a.yaml:3: no title; expected one; see docs/reference/manifest.md (next: vi a.yaml)"
    assert str(error) == "a.yaml:3: no title; expected one (next: vi a.yaml)"


def test_a_wrong_command_line_leads_to_the_page_of_commands(lab: Lab) -> None:
    assert UsageError.page == "docs/reference/generated/commands.md"
    lab.run("--upward").refused(2, "; see docs/reference/generated/commands.md (next: apply-stack --help)")
