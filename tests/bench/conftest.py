"""The scripts of ``bench`` and ``bench/grid_sampler_backward`` are run from their folder, and find each other there."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "grid_sampler_backward"))
# Last: a script may be called as a helper of the tests is.
sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
