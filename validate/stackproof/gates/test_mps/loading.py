"""Loads a real ``test/test_mps.py`` on Linux, with the installed torch: the file expects a Mac and its own release.

What it asks macOS when it is imported is answered here. A name that it, or the tree's testing package, imports from
torch and the installed torch does not have is stood in for by an object that skips the test which uses it.
"""

from __future__ import annotations

import importlib.util
import io
import platform
import re
import subprocess
import sys
import traceback
import types
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from stackproof.model import Finding

TESTING = "torch/testing/_internal"
# Where the tests of all ops look up what an op can do, and what is known to fail.
LISTS = tuple(f"{TESTING}/{name}.py" for name in ("common_methods_invocations", "common_mps"))
_MEMORY = 16 << 30
_SYSCTL = {"hw.memsize": str(_MEMORY), "machdep.cpu.brand_string": "Apple stand-in"}
_FROM = re.compile(r"cannot import name '(\w+)' from '(torch[\w.]*)'")
_MOST = 100


class LoadError(Exception):
    """The test file cannot be loaded; says where."""


class _Lacking:
    """Stands for a name that the installed torch does not have."""

    def __init__(self, name: str) -> None:
        self.__name__ = name.rpartition(".")[2]
        self._name = name

    def __call__(self, *_arguments: Any, **_named: Any) -> Any:
        raise unittest.SkipTest(f"torch {torch.__version__} has no {self._name}")


def load_test_file(root: Path, path: str) -> tuple[types.ModuleType, list[Finding]]:
    """The module, and a note for each name that the installed torch does not have.

    Args:
        root: folder that stands for the top of the tree.
        path: of the test file, relative to ``root``.

    Raises:
        LoadError: with the line at which it stopped.
    """
    sys.path.insert(0, str((root / path).parent))
    notes: list[Finding] = []
    while True:
        try:
            return _imported(root / path, Path(path).stem), notes
        except Exception as error:  # an import of the tree's files may fail in any way
            file, line = _place(error, root)
            what = f"{type(error).__name__}: {error}"
            message = (_stand_in_for(error) or _installed_instead(file, what)) if len(notes) < _MOST else ""
            if not message:
                raise LoadError(f"{file}:{line}: {what}") from error
            notes.append(Finding(message, file, line, "test-loading", fails=False))


def _imported(path: Path, name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _stand_in_for(error: Exception) -> str:
    """Give torch the name that it lacks; says so, or nothing where the error is another one."""
    found = _FROM.search(str(error)) if isinstance(error, ImportError) else None
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("torch."):
        return _module_in_for(error.name or "")
    if found:
        owner, name = sys.modules.get(found[2]), found[1]
    elif isinstance(error, AttributeError) and isinstance(error.obj, types.ModuleType):
        owner, name = error.obj, error.name
    else:
        return ""
    if owner is None or not name or owner.__name__.partition(".")[0] != "torch" or hasattr(owner, name):
        return ""
    setattr(owner, name, _Lacking(f"{owner.__name__}.{name}"))
    return _lacking(f"{owner.__name__}.{name}")


def _lacking(name: str) -> str:
    return f"torch {torch.__version__} has no {name}, which is imported here: tests that use it are skipped"


class _LackingModule(types.ModuleType):
    """Stands for a module that the installed torch does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []  # packages have one

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Lacking(f"{self.__name__}.{name}")


def _module_in_for(name: str) -> str:
    parent, _, last = name.rpartition(".")
    if name in sys.modules or parent not in sys.modules:
        return ""
    sys.modules[name] = module = _LackingModule(name)
    setattr(sys.modules[parent], last, module)
    return _lacking(name)


def _installed_instead(file: str, error: str) -> str:
    """Take a helper of the testing package from the installed torch; says so, or nothing where that cannot be done.

    The lists of ops and of expected failures are the tree's or nobody's.
    """
    name = file.removesuffix(".py").replace("/", ".")
    installed = Path(torch.__file__).parents[1] / file
    if not file.startswith(f"{TESTING}/") or file in LISTS or name in sys.modules or not installed.exists():
        return ""
    _imported(installed, name)
    return f"it cannot be imported with torch {torch.__version__} ({error}): that torch's own is used instead"


def _place(error: Exception, root: Path) -> tuple[str, int]:
    """The innermost line of the tree's files that the error came by."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if Path(one.filename).is_relative_to(root)]
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_relative_to(root):
        return str(Path(error.filename).relative_to(root)), error.lineno or 0
    return (str(Path(frames[-1].filename).relative_to(root)), frames[-1].lineno or 0) if frames else (str(root), 0)


def pretend_to_be_a_mac() -> None:
    """Answer what the testing package and the test file ask before they let MPS tests run."""
    # Lists of expected failures depend on the version of macOS; the newest has the fewest.
    replaced: list[tuple[object, str, Callable[..., object]]] = [
        (torch.backends.mps, "is_available", lambda: True),
        (torch.backends.mps, "is_built", lambda: True),
        (torch.backends.mps, "is_macos_or_newer", lambda major, minor: True),
        (platform, "mac_ver", lambda *_arguments, **_named: ("26.0", ("", "", ""), "arm64")),
        (torch.mps, "synchronize", lambda: None),
        (torch.mps, "empty_cache", lambda: None),
        (torch.mps, "manual_seed", lambda seed: None),
        (subprocess, "Popen", _WithSysctl),
    ]
    for owner, name, value in replaced:
        if not isinstance(value, type):
            value.__dict__["__wrapped__"] = getattr(owner, name)  # torch looks for it: some of these are cached
        setattr(owner, name, value)


class _WithSysctl(subprocess.Popen):  # type: ignore[type-arg]
    """A process; ``sysctl -n NAME`` of macOS is answered here, without one: a confined process starts no other."""

    _communication_started = False

    def __init__(self, args: Any, *rest: Any, **named: Any) -> None:
        words = args.split() if isinstance(args, str) else list(args)
        if len(words) == 3 and words[:2] == ["sysctl", "-n"]:
            answer = _SYSCTL.get(words[2], "0") + "\n"
            is_text = any(named.get(option) for option in ("text", "universal_newlines", "encoding", "errors"))
            self.args, self.pid, self.returncode = args, 0, 0
            self.stdin = self.stderr = None
            self.stdout = io.StringIO(answer) if is_text else io.BytesIO(answer.encode())
        else:
            super().__init__(args, *rest, **named)
