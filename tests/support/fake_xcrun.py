"""A stand-in for Apple's ``xcrun``: what a compiler would say is written into the source, as comments.

``// apple: error TEXT`` and ``// apple: warning TEXT`` are said at their line, ``// apple: without NAME`` leaves a
kernel out of the library. Anything that it does not know ends with status 64, so that a command that was not tried here
fails its test. Calls are written to the file that ``FAKE_XCRUN_LOG`` names, one JSON list a line.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

VERSION = "Apple metal version 32023.99 (stand-in)"


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put it on the path, below a folder; returns the file with its calls."""
    tools, log = folder / "xcode", folder / "xcrun-calls"
    tools.mkdir()
    (tools / "xcrun").write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} "$@"\n')
    (tools / "xcrun").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    monkeypatch.setenv("FAKE_XCRUN_LOG", str(log))
    return log


def calls(log: Path) -> list[list[str]]:
    """The arguments of each call."""
    return [json.loads(line) for line in log.read_text().splitlines()]


def main() -> None:
    """Do what the arguments ask for."""
    with Path(os.environ["FAKE_XCRUN_LOG"]).open("a") as log:
        log.write(json.dumps(sys.argv[1:]) + "\n")
    sdk, name, tool, *rest = sys.argv[1:]
    if (sdk, name) != ("-sdk", "macosx"):
        sys.exit(64)
    if tool == os.environ.get("FAKE_XCRUN_FAILS"):
        sys.exit(f"error: cannot execute tool '{tool}' due to missing Metal Toolchain")
    if (tool, rest) == ("metal", ["--version"]):
        print(f"{VERSION}\nTarget: air64-apple-darwin")
    elif (tool, rest) == ("clang++", ["--version"]):
        print("Apple clang version 17.0.0 (stand-in)")
    elif tool == "metal" and rest[0] == "-c":
        compile_source(Path(rest[1]), rest[2:])
    elif tool == "metallib" and rest[1] == "-o":
        link(Path(rest[0]), Path(rest[2]))
    elif tool == "clang++" and "-fsyntax-only" in rest:
        check_host(Path(rest[-1]))
    else:
        sys.exit(64)


def compile_source(source: Path, arguments: list[str]) -> None:
    """Print what the source says is to be said; write the names of its kernels where it says nothing wrong."""
    assert arguments[-2] == "-o"
    versions = [one for one in arguments if one.startswith("-std=")]
    if versions == ["-std=metal9.9"]:
        sys.exit("error: invalid value 'metal9.9' in '-std=metal9.9'")
    text = source.read_text()
    if said(source, text):
        sys.exit(1)
    names = set(re.findall(r"kernel void (\w+)", text)) - set(re.findall(r"// apple: without (\w+)", text))
    Path(arguments[-1]).write_text(json.dumps(sorted(names)))


def check_host(source: Path) -> None:
    """The same for a host file."""
    if said(source, source.read_text()):
        sys.exit(1)


def said(source: Path, text: str) -> bool:
    """Print the diagnostics of a source; whether one is an error."""
    found = False
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.search(r"// apple: (error|warning) (.*)", line):
            print(f"{source}:{number}:1: {match[1]}: {match[2]}", file=sys.stderr)
            found = found or match[1] == "error"
    return found


def link(air: Path, library: Path) -> None:
    """A container with a function for each name."""
    sys.path.insert(0, str(Path(__file__).parent))
    from metallib_bytes import container

    library.write_bytes(container({name: name.encode() for name in json.loads(air.read_text())}))


if __name__ == "__main__":
    main()
