"""What the build of the stand-in device keeps between runs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from stackproof.host.build import precompiled_prefix
from stackproof.host.clang import STANDIN, find_clang


def test_precompiled_headers_are_made_again_once_a_header_is_newer(tmp_path: Path, compiler: None) -> None:
    clang = find_clang()
    header = tmp_path / "prefix.h"
    shutil.copy(STANDIN / "prefix.h", header)
    first = precompiled_prefix(clang, tmp_path, header)
    made = first.stat().st_mtime_ns
    assert precompiled_prefix(clang, tmp_path, header).stat().st_mtime_ns == made

    # As a second clone at the same place leaves it: the same text, another time.
    os.utime(header, (1, 1))
    again = precompiled_prefix(clang, tmp_path, header)
    assert again == first
    assert again.stat().st_mtime_ns > made
    assert precompiled_prefix(clang, tmp_path, header).stat().st_mtime_ns == again.stat().st_mtime_ns
