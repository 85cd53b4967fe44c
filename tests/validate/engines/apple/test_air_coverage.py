"""Nothing is defined that no test compares with its definition."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import air_modules

air_modules.require_llvmlite()


def _families(file: str) -> set[str]:
    """What a test module next to this one says it exercises; its tables, from which its tests are made, say so."""
    spec = importlib.util.spec_from_file_location(f"tables_of_{file}", Path(__file__).with_name(f"{file}.py"))
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for their own names
    spec.loader.exec_module(module)
    families: set[str] = module.FAMILIES
    return families


def test_every_family_that_is_defined_is_exercised() -> None:
    from stackproof.engines.apple.simd_definitions import HOST

    exercised = _families("test_air_math") | _families("test_air_integers") | _families("test_air_simd")
    assert len(exercised) >= 60
    assert set(HOST) - exercised == set()
