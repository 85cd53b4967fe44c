"""The target tree's own ``torchgen``, run in a confined process on files laid out from git objects.

Generated files are never merged: they are what the generator of that very tree makes of its inputs. The headers alone
take well under a second; a tree whose torchgen cannot do that is served through its command line. Results are cached by
the content of everything that went in.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchstack.cache import read_entry, write_entry
from patchstack.confine.command import Done, run_confined
from patchstack.errors import TreeError
from patchstack.tree.c_shim import HEADER_FOLDER
from patchstack.tree.git import Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH, TAGS_PATH

_TS_FUNCTIONS = "aten/src/ATen/native/ts_native_functions.yaml"
_TEMPLATES = "aten/src/ATen/templates"
_INPUTS = (FUNCTIONS_PATH, TAGS_PATH)
_CHILD = Path(__file__).with_name("torchgen_child.py")
_FILES = Path(__file__).with_name("torchgen_files.py")
OUTPUT = "out"
WHAT = "the tree's torchgen"
_USE_COMMAND_LINE = 65
TIMEOUT_S = 300
_SHOWN = 300
_NAMED_LINE = re.compile(r"^\s+in \S*native_functions\.yaml:(\d+):$", re.MULTILINE)


@dataclass
class TorchgenError(Exception):
    """The tree's torchgen refused its inputs.

    Attributes:
        problem: its own sentence: the last line that it printed at the margin.
        output: everything it printed on standard error.
    """

    problem: str
    output: str

    def __str__(self) -> str:
        where = f" ({FUNCTIONS_PATH}:{self.line})" if self.line else ""
        return f"the tree's torchgen failed: {self.problem}{where}"

    @property
    def line(self) -> int:
        """The line of native_functions.yaml that it names; 0 where it names none."""
        found = _NAMED_LINE.findall(self.output)
        return int(found[-1]) if found else 0


def generate_c_shims(tree: Tree, backends: Sequence[str], *, use_cache: bool = True) -> dict[str, bytes]:
    """The C-shim headers that the tree's own torchgen makes of the tree.

    Args:
        tree: the tree, with any edits laid over it.
        backends: devices in lower case (``mps``, ``cpu``, ...), or ``aten``. One run makes all
            that the cache lacks, since most of its time goes into reading its inputs.

    Returns:
        Path in the tree to content, for the headers of ``backends``.

    Raises:
        TorchgenError: torchgen refuses the tree.
        TreeCodeForbiddenError: code of the tree is not to be run, and no earlier run left its result.
        TreeError: an object of the tree is missing, or the files for torchgen cannot be written.
    """
    names = [f"c_shim_{backend.lower()}.h" for backend in backends]
    known = {name: _known(tree, name) if use_cache else None for name in names}
    wanted = [name for name in names if known[name] is None]
    if wanted:
        made = _made(tree, wanted)
        for name in wanted:
            headers = {name: made[name]} if name in made else {}
            write_entry(_place(tree, name), headers)
            known[name] = headers
    return {f"{HEADER_FOLDER}/{name}": text.encode() for one in names for name, text in (known[one] or {}).items()}


def _known(tree: Tree, name: str) -> dict[str, str] | None:
    return _as_headers(read_entry(_place(tree, name)))


def _place(tree: Tree, name: str) -> Path:
    return Path("torchgen", f"{_key(tree, [name])}.json")


def _made(tree: Tree, wanted: Sequence[str]) -> dict[str, str]:
    """The headers that one run of torchgen makes."""
    backends = [name.removeprefix("c_shim_").removesuffix(".h") for name in wanted]
    try:
        with tempfile.TemporaryDirectory(prefix="patchstack-torchgen-", ignore_cleanup_errors=True) as scratch:
            return _run(tree, Path(scratch), backends, wanted)
    except (OSError, RecursionError) as error:  # the latter for folders a thousand deep
        problem = "the tree's torchgen cannot be laid out in the folder for temporary files"
        raise TreeError(problem, found=str(error), next_command="TMPDIR=FOLDER, or free disk space") from None


def lay_out(tree: Tree, folder: Path, paths: Sequence[str]) -> None:
    """Write files of the tree below ``folder``, byte for byte; a path that is a folder brings all files below it."""
    for path in paths:
        for file in [path] if tree.entry(path) is None or path in tree.replaced else list(_files(tree, path)):
            content = tree.read(file)
            if content is not None:
                target = folder / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


def _files(tree: Tree, path: str) -> Iterator[str]:
    entry = tree.entry(path)
    if entry is not None and entry.is_directory:
        yield from tree.walk(path)
    else:
        yield path


def _key(tree: Tree, wanted: Sequence[str]) -> str:
    """A digest of everything the headers depend on: torchgen, the two YAML files, this module and its child."""
    digest = hashlib.sha256(_CHILD.read_bytes())
    torchgen = tree.entry("torchgen")
    digest.update(f"{sys.version_info[:2]} {wanted} {torchgen.hash if torchgen else ''}".encode())
    for path in sorted({*_INPUTS, *(p for p in tree.replaced if p.startswith("torchgen/"))}):
        content = tree.read(path) or b""
        digest.update(f"\n{path} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _run(tree: Tree, scratch: Path, backends: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    lay_out(tree, scratch, ["torchgen", *_INPUTS])
    done = _confined(_CHILD, scratch, backends)
    if done.status == _USE_COMMAND_LINE:
        return _run_command_line(tree, scratch, wanted)
    return _texts(done, "a set of headers")


def _run_command_line(tree: Tree, scratch: Path, wanted: Sequence[str]) -> dict[str, str]:
    """What ``python -m torchgen.gen --update-aoti-c-shim`` writes."""
    lay_out(tree, scratch, [_TEMPLATES, _TS_FUNCTIONS])
    made = torchgen_files(
        scratch,
        [
            *("--source-path", str(scratch / "aten/src/ATen"), "--update-aoti-c-shim", "--generate", "sources"),
            *("--install-dir", OUTPUT, "--aoti-install-dir", f"{OUTPUT}/aoti"),
        ],
    )
    return {name: made[f"aoti/{name}"] for name in wanted if f"aoti/{name}" in made}


def torchgen_files(root: Path, arguments: Sequence[str], *, readable: Sequence[Path] = ()) -> dict[str, str]:
    """The files that the command line of a torchgen makes in the folder ``OUTPUT``, by path below it.

    Args:
        root: folder that holds the package ``torchgen``.
        arguments: of ``python -m torchgen.gen``.
        readable: folders that it reads beside ``root``.

    Raises:
        TorchgenError: it fails, or its files are not what can be written below a folder.
    """
    done = _confined(_FILES, root, [OUTPUT, *arguments], readable)
    made = _texts(done, "a set of files")
    for path in made:
        if os.path.isabs(path) or ".." in Path(path).parts:
            raise TorchgenError(f"it names a file outside its folder: {path[:_SHOWN]}", done.stderr)
    return made


def _confined(program: Path, root: Path, arguments: Sequence[str], readable: Sequence[Path] = ()) -> Done:
    everything = [str(root), *arguments]
    return run_confined(WHAT, program, everything, readable=[root, *readable], timeout=TIMEOUT_S)


def _texts(done: Done, what: str) -> dict[str, str]:
    """The answer of a program that ended well: an early end has none, whatever its status says."""
    if done.status is None:
        raise TorchgenError(f"no answer within {TIMEOUT_S} s", done.stderr)
    if done.status:
        raise _error(done)
    texts = _as_headers(_parsed(done.stdout))
    if texts is None:
        raise TorchgenError(f"its answer is not {what}", done.stderr)
    return texts


def _error(done: Done) -> TorchgenError:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    # An indented line goes on with the one above: torchgen adds the place and the schema to its sentence like that.
    told = [line for line in lines if not line[0].isspace()] or lines
    return TorchgenError(told[-1].strip()[:_SHOWN] if told else f"exit status {done.status}", done.stderr)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _as_headers(value: Any) -> dict[str, str] | None:
    """``value``, if it is a mapping of names to texts that can be written."""
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        return None
    try:
        "".join(value.values()).encode()
    except UnicodeEncodeError:
        return None
    return value
