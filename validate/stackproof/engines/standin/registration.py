"""Registers a stack's MPS functions with the installed torch, through code that torchgen makes for just those ops.

The stack's tree and the installed torch are usually of different releases. What is executed is the stack's function
under the installed torch's schema: an op whose schema differs between the two is left out and named.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from patchstack.cache import made_folder
from patchstack.errors import TreeError
from patchstack.tree.native_functions import NativeFunctions, parse_native_functions
from stackproof.engines.metal.toolchain import digest
from stackproof.engines.standin.clang import STANDIN
from stackproof.engines.standin.headers import run_torchgen
from stackproof.engines.standin.stack import OpEntry

_COUNTED = STANDIN / "counted.h"
_REGISTERED = re.compile(r'm\.impl\("([\w.]+)",\s*TORCH_FN\(([\w:]+)\)\)')
_KEPT = ("_native.h", "_meta.h", "_mps_dispatch.h")


@dataclass(frozen=True)
class Registration:
    """Generated code that registers ops.

    Attributes:
        folder: with ``ATen/ops/*`` to be searched first, and the sources.
        sources: C++ files to compile.
        ops: the entries that are registered.
        left_out: why an entry is not, one sentence each.
    """

    folder: Path
    sources: tuple[Path, ...]
    ops: tuple[OpEntry, ...]
    left_out: tuple[str, ...]


def prepare_registration(entries: Sequence[OpEntry], cache: Path) -> Registration:
    """Generate the registrations of ``entries`` for the installed torch.

    Raises:
        TreeError: torchgen fails.
    """
    packaged = Path(_torchgen_root()) / "torchgen/packaged/ATen"
    known = parse_native_functions((packaged / "native/native_functions.yaml").read_bytes())
    ops, left_out = [], []
    for entry in entries:
        installed = next((one.schema for one in known.find(entry.overload)), None)
        if installed is None:
            left_out.append(f"{entry.overload}: torch {torch.__version__} has no such op")
        elif installed != entry.schema:
            left_out.append(f"{entry.overload}: torch {torch.__version__} has it as {installed}")
        else:
            ops.append(entry)
    key = digest(torch.__version__, _COUNTED.read_bytes(), *(part for op in ops for part in (op.schema, op.function)))
    folder = made_folder(cache / "registrations" / key, lambda target: _generate(packaged, known, ops, target))
    return Registration(folder, tuple(sorted(folder.glob("RegisterMPS_*.cpp"))), tuple(ops), tuple(left_out))


def _torchgen_root() -> Path:
    import torchgen

    return Path(next(iter(torchgen.__path__))).parent


def _generate(packaged: Path, known: NativeFunctions, ops: Sequence[OpEntry], target: Path) -> None:
    if not ops:
        return
    with tempfile.TemporaryDirectory(prefix="stackproof-registration-") as scratch:
        source, output = Path(scratch) / "source", Path(scratch) / "output"
        shutil.copytree(packaged / "templates", source / "templates")
        (source / "native").mkdir()
        shutil.copy(packaged / "native/tags.yaml", source / "native")
        text = yaml.dump(_only(known, ops), sort_keys=False, width=100_000)
        (source / "native/native_functions.yaml").write_text(text)
        run_torchgen(_torchgen_root(), source, output, ("headers", "sources"))
        (target / "ATen/ops").mkdir(parents=True)
        for header in (output / "ops").iterdir():
            if header.name.endswith(_KEPT):
                shutil.copy(header, target / "ATen/ops")
        for path in output.glob("RegisterMPS_*.cpp"):
            (target / path.name).write_text(_COUNTED.read_text() + _with_counted_calls(path.read_text()))


def _with_counted_calls(text: str) -> str:
    """Generated registrations in which each function tells when it is called.

    Raises:
        TreeError: torchgen does not write registrations as it did in every release so far.
    """
    counted, number = _REGISTERED.subn(r'm.impl("\1", TORCH_FN((::standin::Counted<"\1", &\2>::call)))', text)
    if number != text.count("m.impl("):
        raise TreeError("the installed torchgen writes registrations in a way that is not known here")
    return counted


def _only(known: NativeFunctions, ops: Sequence[OpEntry]) -> list[dict[str, Any]]:
    """The entries of the ops' names, with MPS dispatched to the stack's functions and to nothing else."""
    names = {op.name.rstrip("_") for op in ops}
    names |= {f"{name}_copy" for name in names} | {name.removesuffix("_copy") for name in names}
    functions = {op.overload: op.function for op in ops}
    kept = []
    for overload, text in known.texts():
        if overload.partition(".")[0].rstrip("_") not in names:
            continue
        (entry,) = yaml.safe_load(text)
        dispatch: dict[str, str] = {}
        for keys, function in (entry.get("dispatch") or {}).items():
            others = [key.strip() for key in str(keys).split(",") if not key.strip().endswith("MPS")]
            if others:
                dispatch[", ".join(others)] = function
        if overload in functions:
            dispatch["MPS"] = functions[overload]
        changed = {key: value for key, value in entry.items() if key != "dispatch"}
        kept.append({**changed, "dispatch": dispatch} if dispatch else changed)
    return kept
