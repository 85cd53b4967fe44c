"""Which ops a gate is asked about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchstack.series import load_series


def named_ops(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The ops in a gate's options: those of ``ops``, or else those of the series.

    Raises:
        PatchstackError: there is no such series, or its manifest is malformed.
    """
    named = options.get("ops")
    return tuple(named) if named else load_series(options.get("series")).ops
