"""The environment of code that is not ours: what it needs, by name, and nothing else.

A list of what is dangerous would always lack something, so this is a list of what is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_ALLOWED = frozenset(
    {
        *("PATH", "LANG", "LANGUAGE", "TZ", "TERM", "SOURCE_DATE_EPOCH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTORCH_ENABLE_MPS_FALLBACK", "ATEN_CPU_CAPABILITY"),
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "KMP_AFFINITY"),
    }
)
_ALLOWED_BEGINNINGS = ("LC_", "STACKPROOF_", "PATCHSTACK_")


def scrubbed(environment: Mapping[str, str] | None = None, *, also: tuple[str, ...] = ()) -> dict[str, str]:
    """The part of an environment that code of a tree gets.

    Args:
        environment: this process's by default.
        also: beginnings of further names.
    """
    given = os.environ if environment is None else environment
    return {name: value for name, value in given.items() if is_allowed(name) or name.startswith(also)}


def is_allowed(name: str) -> bool:
    """Whether code of a tree may have this variable."""
    return name in _ALLOWED or name.startswith(_ALLOWED_BEGINNINGS)
