"""Time what is read of a remote's pull requests, in a clone with refs of as many as PyTorch's has.

    python bench/remote_refs.py [--pulls 20000] [--repeat 3] [--json FILE]

The repository is made for it in a temporary folder: ``orig``, ``head`` and ``base`` of every pull request, packed, of
200 users. Reported: seconds to list one user's, and to find one of another user by its address.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from patchstack.pulls.remote import read_remote
from patchstack.tree.git import Repository

USERS = 200
URL = "https://github.com/pytorch/pytorch/pull"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def make(folder: Path, pulls: int) -> None:
    """Fill ``folder`` with a repository that has that many pull requests."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    commands: list[str] = []
    for number in range(1, pulls + 1):
        prose = "A line of prose about the change.\n" * 20
        text = f"[MPS] {number}\n\n{prose}\nghstack-source-id: {EMPTY_TREE}\nPull-Request: {URL}/{number}\n"
        place = f"refs/remotes/origin/gh/user{number % USERS}/{number}"
        commands.append(f"commit {place}/orig\nmark :{number}\ncommitter A <a@b.example> 1700000000 +0000")
        commands.append(f"data {len(text)}\n{text}")
        commands += [f"reset {place}/{kind}\nfrom :{number}\n" for kind in ("head", "base")]
    data = "\n".join(commands).encode()
    subprocess.run(["git", "fast-import", "--quiet"], input=data, cwd=folder, check=True)
    subprocess.run(["git", "pack-refs", "--all"], cwd=folder, check=True)


def median_s(work: Callable[[], object], repeat: int) -> float:
    samples = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        samples.append(time.perf_counter() - started)
    return statistics.median(samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pulls", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "clone"
        make(folder, options.pulls)
        with Repository.open(folder) as repository:
            figures = {
                "pulls": options.pulls,
                "one_user_s": median_s(lambda: read_remote(repository, "origin", username="user7"), options.repeat),
                "by_address_s": median_s(
                    lambda: read_remote(repository, "origin", username="user7", urls=[f"{URL}/9"]), options.repeat
                ),
            }
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
