"""What the front end accepts and refuses: each rule on both sides of its border, and the shared cases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from metal_conformance import BORDERS, Border, complete
from patchstack.errors import PatchstackError
from shared_inputs import require_shared, shared_folder
from stackproof.metal.build import Source
from stackproof.metal.rules import MISSING_DTYPE, apply_rules
from stackproof.metal.typecheck import check_source

CASES = shared_folder() / "cases/metal"


def problems(path: Path, version: str) -> list[str]:
    """What metal-check would say about a file."""
    try:
        checked = check_source(Source(path, metal_version=version))
    except PatchstackError as error:
        return [str(error)]
    broken = [one.message for one in apply_rules(checked) if one.rule != MISSING_DTYPE]
    return [*(one.message for one in checked.errors), *broken]


def border(one: Border) -> str:
    return f"{one.feature} ({one.version})"


@pytest.mark.parametrize("one", BORDERS, ids=border)
def test_the_near_side_of_a_border_is_accepted(one: Border, tmp_path: Path) -> None:
    source = tmp_path / "accepted.metal"
    source.write_text(complete(one.accepted))
    assert problems(source, one.version) == []


@pytest.mark.parametrize("one", [one for one in BORDERS if one.refused], ids=border)
def test_the_far_side_of_a_border_is_refused(one: Border, tmp_path: Path) -> None:
    source = tmp_path / "refused.metal"
    source.write_text(complete(one.refused))
    assert problems(source, one.refused_version or one.version)


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("reject/*.metal")) or ["none"])
def test_a_shared_kernel_that_apple_refuses_is_refused(name: str) -> None:
    path = require_shared("cases/metal") / "reject" / name
    assert problems(path, version_of(path))


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("accept/*.metal")) or ["none"])
def test_a_shared_kernel_that_apple_accepts_is_accepted(name: str) -> None:
    path = require_shared("cases/metal") / "accept" / name
    assert problems(path, version_of(path)) == []


def version_of(path: Path) -> str:
    found = re.search(r"^// VERSION (\S+)", path.read_text(), re.MULTILINE)
    return found[1] if found else "3.1"
