"""Where a file of a packaged PyTorch belongs in its source tree.

A wheel is the only form in which recent releases can be had in one verified piece without a clone of gigabytes. It
holds the files that matter here (YAML, templates, torchgen, headers, Python) at installed paths; this module puts them
back and leaves out what the build made, because a checkout does not have it either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PREFIXES = (
    # installed prefix, source prefix; the first that matches wins
    ("torch/include/ATen/native/metal/", None),  # the older Metal backend: installed by macOS builds only
    ("torchgen/packaged/ATen/", "aten/src/ATen/"),
    ("torchgen/packaged/autograd/", "tools/autograd/"),
    ("torchgen/", "torchgen/"),
    ("functorch/", "functorch/"),
    ("torch/include/ATen/", "aten/src/ATen/"),
    ("torch/include/c10/", "c10/"),
    ("torch/include/caffe2/", "caffe2/"),
    ("torch/include/torch/", "torch/"),
    ("torch/include/", None),  # other projects' headers
    ("torch/bin/", None),
    ("torch/lib/", None),
    ("torch/share/", None),
    ("torch/test/", None),
    ("torch/", "torch/"),
)

# fmt: off
_TEXT_SUFFIXES = (
    ".py", ".pyi", ".typed", ".h", ".hpp", ".cuh", ".cu", ".cpp", ".in", ".ini", ".ld", ".yaml", ".json", ".jinja",
    ".html", ".js", ".mjs", ".thrift", ".md", ".bzl", ".bazel",
)
# fmt: on

_LICENCE = re.compile(r"torch-[^/]+\.dist-info/(?:licenses/)?(LICENSE|NOTICE)")

# Written during PyTorch's build (by torchgen or CMake); git ignores them in a checkout. The C shim headers are
# generated too, but they are committed, so they stay.
_GENERATED = re.compile(
    r"""
      aten/src/ATen/ops/.*
    | aten/src/ATen/\w*Functions(_inl)?\.h
    | aten/src/ATen/(Operators|MethodOperators|RegistrationDeclarations|VmapGeneratedPlumbing|Config|CUDAConfig)\.h
    | aten/src/ATen/core/(TensorBody|aten_interned_strings|enum_tag)\.h
    | c10/(\w+/impl/|macros/)\w*cmake_macros\.h
    | caffe2/core/macros\.h
    | torch/csrc/(autograd|lazy)/generated/.*
    | torch/testing/_internal/generated/.*
    | torch/version\.py
    | torch/(_VF|return_types|nn/functional|utils/data/datapipes/datapipe)\.pyi
    | torch/_C/(__init__|_nn|_VariableFunctions)\.pyi
    """,
    re.VERBOSE,
)

_GUARD_OPENS = re.compile(rb"#if !defined\(TORCH_STABLE_ONLY\)[^\n]*\n")
_GUARD_CLOSES = re.compile(rb"\n#else\n#error [^\n]*TORCH_STABLE_ONLY[^\n]*\n#endif[^\n]*TORCH_STABLE_ONLY[^\n]*\n\Z")


def source_path(member: str) -> str | None:
    """Where an installed file lives in the source tree, or None when a checkout does not have it.

    Args:
        member: path inside the wheel, or relative to ``site-packages``.
    """
    licence = _LICENCE.fullmatch(member)
    if licence:
        return licence.group(1)
    if not member.endswith(_TEXT_SUFFIXES):
        return None
    for installed, source in _PREFIXES:
        if member.startswith(installed):
            if source is None:
                return None
            path = source + member[len(installed) :]
            return None if _GENERATED.fullmatch(path) else path
    return None


def source_members(members: Iterable[str]) -> dict[str, str]:
    """Which installed file each source path is taken from, sorted by source path.

    A header can be there twice, as package data and under ``include``; the one whose path is the source path wins,
    because packaging does not touch it.
    """
    chosen: dict[str, str] = {}
    for member in members:
        path = source_path(member)
        if path is not None and (path not in chosen or member == path):
            chosen[path] = member
    return dict(sorted(chosen.items()))


def without_stable_guard(data: bytes) -> bytes:
    """A header without the ``TORCH_STABLE_ONLY`` wrapper that packaging puts around it; anything else unchanged.

    Both ends of the wrapper must be there: half a wrapper is not packaging's work.
    """
    opens = _GUARD_OPENS.match(data)
    closes = _GUARD_CLOSES.search(data, max(0, len(data) - 400))
    if opens is None or closes is None:
        return data
    return data[opens.end() : closes.start()]
