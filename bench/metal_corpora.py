"""How much of public Metal code the front end accepts: files of SPIRV-Cross, MLX and llama.cpp, unchanged.

    python bench/metal_corpora.py [--corpus NAME] [--from FOLDER] [--into FOLDER] [--reasons]

Each corpus is fetched with git at a pinned revision, or taken from ``--from FOLDER/NAME``; nothing of it is kept in
this repository. A file counts as accepted where the compiler and the rules about what Metal refuses have nothing to
say; the rules of a review (dtypes, offsets, divergence) do not count.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from patchstack.cache import cache_dir
from patchstack.errors import PatchstackError
from stackproof.engines.metal.build import Source
from stackproof.engines.metal.rules import REFUSED_BY_METAL, apply_rules
from stackproof.engines.metal.typecheck import check_source


@dataclass(frozen=True)
class Corpus:
    """Metal sources of one public repository.

    Attributes:
        name: short.
        address: of the repository.
        revision: commit that the figures are of.
        folder: where the sources are.
        pattern: their names.
        include: folders searched for includes.
        left_out: names that are not counted, as a pattern.
        version: Metal version to check for.
    """

    name: str
    address: str
    revision: str
    folder: str
    pattern: str
    include: tuple[str, ...] = ()
    left_out: str = r"(?!)"
    version: str = "3.2"

    def files(self, root: Path) -> list[Path]:
        """The files that count, in order."""
        found = sorted((root / self.folder).rglob(self.pattern))
        return [path for path in found if not re.search(self.left_out, path.name) and _is_metal(path)]


CORPORA = (
    Corpus(
        "spirv-cross",
        "https://github.com/KhronosGroup/SPIRV-Cross",
        "6c09849fe88c48eaed08413aa022aaa136a3a057",
        "reference",
        "*.comp",
        left_out=r"invalid",
    ),
    Corpus(
        "mlx",
        "https://github.com/ml-explore/mlx",
        "846d176227a0ac13d2667e58d2bb68b322109ab0",
        "mlx/backend/metal/kernels",
        "*.metal",
        include=(".",),
        version="4.0",
    ),
    Corpus(
        "llama.cpp",
        "https://github.com/ggml-org/llama.cpp",
        "master",
        "ggml/src/ggml-metal",
        "*.metal",
        include=("ggml/src/ggml-metal", "ggml/src"),
        # Parts of other files, which include them after what they need.
        left_out=r"^fa_(vec_)?common\.metal$",
    ),
)


def _is_metal(path: Path) -> bool:
    return path.suffix == ".metal" or "metal_stdlib" in path.read_text(errors="replace")


def refusals(corpus: Corpus, root: Path, path: Path) -> list[str]:
    """Why a file is refused, the first reason first; empty for one that is accepted."""
    include = tuple((root / folder).resolve() for folder in corpus.include)
    try:
        checked = check_source(Source(path.resolve(), include, corpus.version))
    except PatchstackError as error:
        return [re.sub(r"\S*/", "", str(error))]
    broken = [one.message for one in apply_rules(checked) if one.rule in REFUSED_BY_METAL]
    return [*(one.message for one in checked.errors), *broken]


def judge(corpus: Corpus, root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Every file with its refusals."""
    files = corpus.files(root)
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield from zip(files, pool.map(lambda path: refusals(corpus, root, path), files), strict=True)


def fetch(corpus: Corpus, into: Path) -> Path:
    """A checkout of the pinned revision, made on the first call."""
    folder = into / corpus.name
    if not (folder / corpus.folder).exists():
        folder.mkdir(parents=True, exist_ok=True)
        for command in (
            ("init", "-q"),
            ("fetch", "-q", "--depth=1", "--filter=blob:none", corpus.address, corpus.revision),
            ("sparse-checkout", "set", corpus.folder, *(one for one in corpus.include if one != ".")),
            ("checkout", "-q", "FETCH_HEAD"),
        ):
            subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each corpus, and the reasons where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", choices=[one.name for one in CORPORA], help="this one only")
    parser.add_argument("--from", dest="given", type=Path, help="folder with a folder for each corpus, used as it is")
    parser.add_argument("--into", type=Path, default=cache_dir() / "corpora", help="where to fetch them to")
    parser.add_argument("--reasons", action="store_true", help="list each refused file with its first reason")
    options = parser.parse_args(arguments)
    for corpus in CORPORA:
        if options.corpus not in (None, corpus.name):
            continue
        try:
            root = options.given / corpus.name if options.given else fetch(corpus, options.into)
        except subprocess.CalledProcessError as error:
            print(f"{corpus.name}: not run: git cannot fetch {corpus.address} ({error})", file=sys.stderr)
            continue
        judged = list(judge(corpus, root))
        refused = [(path, reasons) for path, reasons in judged if reasons]
        print(f"{corpus.name}: {len(judged) - len(refused)} of {len(judged)} accepted")
        for reason, count in Counter(reasons[0] for _, reasons in refused).most_common():
            print(f"  {count:3} {reason[:140]}")
        if options.reasons:
            for path, reasons in refused:
                print(f"  {path.relative_to(root)}: {reasons[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
