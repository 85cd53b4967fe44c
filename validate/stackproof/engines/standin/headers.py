"""The include folders that a host file of a tree is compiled with: the tree's own headers, and what its torchgen makes.

Everything is laid out in folders named by content, so that only the first run on a tree pays for it.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from patchstack.cache import made_folder
from patchstack.errors import TreeError
from patchstack.tree.git import Tree
from patchstack.tree.native_functions import FUNCTIONS_PATH, TAGS_PATH
from patchstack.tree.torchgen_run import OUTPUT, TorchgenError, lay_out, torchgen_files
from stackproof.engines.metal.toolchain import digest
from stackproof.engines.standin.clang import STUBS, stubs_digest
from stackproof.engines.standin.stack import KERNELS, OPERATIONS, HostFile

_FOLDERS = ("aten/src/ATen", "c10", "torch/headeronly", "torch/csrc")
_MPS_FOLDERS = ("aten/src/ATen/native/mps", "aten/src/ATen/mps", "c10/metal")
# Members that a header may or may not declare; an overload of a free function that no header declares does no harm.
_SWITCHES = {
    "STANDIN_HAS_FUNCTION": ("aten/src/ATen/native/mps/MetalShaderLibrary.h", b"hasFunction(const"),
    "STANDIN_STREAM_HAS_DEVICE": ("aten/src/ATen/mps/MPSStream.h", b"MTLDevice_t device() const;"),
}
_NATIVE = re.compile(r"#\s*include\s*<ATen/native/(\w+\.h)>")
_WORD = re.compile(r"[A-Za-z_]\w*")
_ENDINGS = (".h", ".hpp", ".inc", ".inl")
_GENERATOR = ("torchgen", FUNCTIONS_PATH, TAGS_PATH, "aten/src/ATen/templates")
# Headers that PyTorch's CMake configures: a source tree has none of them, and only macros that say "not set" matter.
_CONFIGURED = {
    "c10/macros/cmake_macros.h": "#pragma once\n#define C10_BUILD_SHARED_LIBS\n",
    "torch/headeronly/macros/cmake_macros.h": "#pragma once\n#define C10_BUILD_SHARED_LIBS\n",
    "caffe2/core/macros.h": "#pragma once\n",
    "ATen/Config.h": "#pragma once\n"
    + "".join(
        f"#define AT_{name} 0\n"
        for name in (
            "MKL_ENABLED()",
            "MKLDNN_ENABLED()",
            "MKL_SEQUENTIAL()",
            "POCKETFFT_ENABLED()",
            "NNPACK_ENABLED()",
            "BUILD_WITH_BLAS()",
            "BUILD_WITH_LAPACK()",
            "PARALLEL_OPENMP",
            "PARALLEL_NATIVE",
            "BLAS_F2C()",
            "BLAS_USE_CBLAS_DOT()",
            "KLEIDIAI_ENABLED()",
            "USE_EIGEN_SPARSE()",
        )
    ),
}


@dataclass(frozen=True)
class IncludeFolders:
    """Where a host file's includes are found, in this order after the stub system headers.

    Attributes:
        generated: what the tree's torchgen made.
        tree: the tree's own headers, as in the tree, but for the next.
        kernels: the headers of kernels and of host functions, as in the tree. A stack changes these, and most stacks
            no others.
        rest: configured headers and fmt, which no source tree has.
    """

    generated: Path
    tree: Path
    kernels: Path
    rest: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """Compiler flags."""
        return (f"-I{self.kernels / 'aten/src'}", *self.flags_of_most)

    @property
    def flags_with_sdk(self) -> tuple[str, ...]:
        """Compiler flags where the system's own headers are there: without the stubs."""
        return tuple(one for one in self.flags if one not in ("-isystem", str(STUBS)))

    @property
    def flags_of_most(self) -> tuple[str, ...]:
        """Compiler flags of files that use none of the headers of kernels and host functions."""
        own = (self.generated, self.tree / "aten/src", self.tree)
        return ("-isystem", str(STUBS), *(f"-I{one}" for one in own), "-idirafter", str(self.rest))

    @property
    def key(self) -> str:
        """Names the content, wherever it lies."""
        return f"{self.key_of_most} {self.kernels.name}"

    @property
    def key_of_most(self) -> str:
        """The same without the headers of kernels and host functions."""
        configured = digest(torch.__version__, *(item for pair in _CONFIGURED.items() for item in pair))
        return f"{stubs_digest()} {self.generated.name} {self.tree.name} {configured}"


@dataclass(frozen=True)
class MpsHeaders:
    """The headers about MPS of a tree, to be searched before those of the installed torch.

    They are the tree's at any release of torch: the host files were written against them, and libtorch for Linux has
    nothing of what they declare. The device implements it, as they declare it.

    Attributes:
        most: as in the tree, but for the next.
        own: those that a stack brings with its host files: of kernels and of ``operations``.
        switches: macros for what differs between releases in a way that C++ cannot ask for.
    """

    most: Path
    own: Path
    switches: tuple[str, ...]

    @property
    def folders_of_most(self) -> tuple[Path, ...]:
        """Include folders of what every host file begins with."""
        return (self.most / "aten/src", self.most)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Include folders of a host file."""
        return (self.own / "aten/src", *self.folders_of_most)

    @property
    def key_of_most(self) -> str:
        """Names the content but for ``own``, wherever it lies."""
        return f"{self.most.name} {' '.join(self.switches)}"

    @property
    def key(self) -> str:
        """Names the content, wherever it lies."""
        return f"{self.own.name} {self.key_of_most}"


def mps_headers(tree: Tree, cache: Path, files: Sequence[HostFile] = ()) -> MpsHeaders:
    """Lay out the headers about MPS of a tree.

    Args:
        tree: whose headers.
        cache: folder to lay them out in.
        files: host files; what they share with other backends comes from the tree where the installed torch lacks it.
    """
    paths = [path for folder in _MPS_FOLDERS for path in _headers(tree, folder)]
    own = [path for path in paths if path.startswith((f"{KERNELS}/", f"{OPERATIONS}/"))]
    most = [path for path in paths if path not in own]
    switches = tuple(f"-D{macro}" for macro, (path, text) in _SWITCHES.items() if text in (tree.read(path) or b""))
    own += sorted({path for file in files for path in _shared(tree, file)})
    return MpsHeaders(_own(tree, most, cache), _own(tree, own, cache), switches)


def _shared(tree: Tree, file: HostFile) -> Iterator[str]:
    """Headers of ``ATen/native`` from which a host file uses a name that the installed torch's version lacks."""
    used = set(_WORD.findall(file.text))
    for name in _NATIVE.findall(file.text):
        path = f"aten/src/ATen/native/{name}"
        text = (tree.read(path) or b"").decode(errors="replace")
        installed = Path(torch.__file__).parent / "include/ATen/native" / name
        there = installed.read_text(encoding="utf-8", errors="replace") if installed.is_file() else ""
        if there and used & set(_WORD.findall(text)) - set(_WORD.findall(there)):
            yield path


def prepare_headers(tree: Tree, cache: Path) -> IncludeFolders:
    """Lay out the headers of a tree and generate those that its build would.

    Args:
        tree: any PyTorch source tree.
        cache: folder to lay them out in.

    Raises:
        TreeError: the tree's torchgen fails.
    """
    paths = [*_beside(tree, "torch"), *(path for folder in _FOLDERS for path in _headers(tree, folder))]
    shared = [path for path in paths if path.startswith((f"{KERNELS}/", f"{OPERATIONS}/"))]
    own = [path for path in paths if path not in shared]
    return IncludeFolders(_generated(tree, cache), _own(tree, own, cache), _own(tree, shared, cache), _rest(cache))


def _own(tree: Tree, paths: Sequence[str], cache: Path) -> Path:
    key = digest(*(item for path in paths for item in (path, tree.blob_hash(path) or "")))
    return made_folder(cache / "headers" / key, lambda folder: lay_out(tree, folder, paths))


def _beside(tree: Tree, folder: str) -> list[str]:
    """Headers right in the folder, not below."""
    entry = tree.entry(folder)
    names = tree.directory(entry.hash) if entry is not None else {}
    return [f"{folder}/{name}" for name in names if name.endswith(_ENDINGS)]


def _headers(tree: Tree, folder: str) -> Iterator[str]:
    entry = tree.entry(folder)
    if entry is None:
        return
    yield from (path for path in tree.walk(folder) if path.endswith(_ENDINGS))


def _generated(tree: Tree, cache: Path) -> Path:
    parts = [f"{path} {entry.hash}" for path in _GENERATOR if (entry := tree.entry(path))]
    key = digest(*parts, *(f"{path} {text!r}" for path, text in sorted(tree.replaced.items()) if path in _GENERATOR))

    def make(folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="stackproof-torchgen-") as scratch:
            lay_out(tree, Path(scratch), _GENERATOR)
            run_torchgen(Path(scratch), Path(scratch) / "aten/src/ATen", folder / "ATen", ("headers",))

    return made_folder(cache / "generated" / key, make)


def run_torchgen(root: Path, source: Path, output: Path, kinds: tuple[str, ...]) -> None:
    """Run the torchgen below ``root`` in a process of its own.

    Args:
        root: folder that holds the package ``torchgen``.
        source: folder with ``native/`` and ``templates/``.
        output: where ``ops/`` and the registrations end up.
        kinds: ``headers``, ``sources``.

    Raises:
        TreeError: it fails; the message is its last line.
    """
    arguments = [
        *("--source-path", str(source), "--install_dir", OUTPUT, "--per-operator-headers", "--mps"),
        *("--generate", *kinds, "--backend-whitelist", "MPS", "CPU"),
    ]
    try:
        made = torchgen_files(root, arguments, readable=[source])
    except TorchgenError as error:
        raise TreeError("the tree's torchgen failed", where=FUNCTIONS_PATH, found=error.problem) from None
    for path, text in made.items():
        write(output / path, text)


def _rest(cache: Path) -> Path:
    fmt = Path(torch.__file__).parent / "include" / "fmt"
    key = digest(str(fmt), torch.__version__, *(item for pair in _CONFIGURED.items() for item in pair))

    def make(folder: Path) -> None:
        for path, text in _CONFIGURED.items():
            write(folder / path, text)
        # A checkout has fmt as a submodule, which git objects do not hold: torch's own copy stands for it.
        (folder / "fmt").symlink_to(fmt, target_is_directory=True)

    return made_folder(cache / "configured" / key, make)


def write(path: Path, text: str | bytes) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def write_files(files: Mapping[str, bytes], cache: Path) -> Path:
    """A folder of ``cache`` named by the content of ``files``, with those files in it."""
    key = digest(*(item for path, text in sorted(files.items()) for item in (path, text)))

    def make(folder: Path) -> None:
        for path, text in files.items():
            write(folder / path, text)

    return made_folder(cache / "sources" / key, make)
