"""``validate-stack apple-kernels``: what a macOS wheel holds, and what Apple's compiler says about a kernel."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from patchstack.cli.sections import CommandWithExamples
from patchstack.errors import PatchstackError, UsageError
from patchstack.reference.progress import for_this_terminal
from stackproof.engines.apple.container import KernelEntry, Metallib
from stackproof.engines.apple.ir import disassemble, read_module
from stackproof.engines.apple.metadata import read_kernel
from stackproof.engines.apple.release import DEFAULT_RELEASE, DEFAULT_SECTION, open_file, release_library
from stackproof.engines.apple.show import kernel_as_json, kernel_lines

_Command = Callable[..., None]


@click.group("apple-kernels")
def apple_kernels() -> None:
    """The Metal kernels of a macOS wheel of PyTorch, as Apple's compiler left them.

    They are read on this machine, out of a wheel that pip downloads once; nothing of them is part of this project.
    """


def _library_options(command: _Command) -> _Command:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--file", type=click.Path(path_type=Path), help="A wheel, a macOS library or a metallib instead."),
        click.option(
            "--section",
            default=DEFAULT_SECTION,
            show_default=True,
            metavar="NAME",
            help="metal_basic is compiled for macOS 14, metal_40 for macOS 26.",
        ),
        click.option(
            "--release", default=DEFAULT_RELEASE, show_default=True, metavar="2.11|2.13", help="A release of PyTorch."
        ),
    ):
        command = option(command)
    return command


@apple_kernels.command(
    "list",
    cls=CommandWithExamples,
    examples={
        "validate-stack apple-kernels list --name ^grid_sampler": "kernels of a name",
        "validate-stack apple-kernels list --calls atomic.*add": "kernels that add atomically",
    },
)
@_library_options
@click.option("--name", "patterns", multiple=True, metavar="REGEX", help="Only names that match; may be repeated.")
@click.option("--calls", metavar="REGEX", help="Only kernels that call an air function of that name.")
def list_(
    release: str, section: str, file: Path | None, as_json: bool, patterns: Sequence[str], calls: str | None
) -> None:
    """List kernels: name, bytes of bitcode, start of its SHA-256."""
    with _errors_as_json(as_json):
        wanted = [_pattern(text) for text in patterns]
        library = _library(release, section, file)
        found = [entry for entry in library.entries if all(one.search(entry.name) for one in wanted)]
        if calls is not None:
            pattern = _pattern(calls)
            found = [entry for entry in found if _calls(library, entry, pattern)]
        if as_json:
            kernels = [_entry_as_json(entry) for entry in found]
            _print_json({"library": library.where, "of": len(library.entries), "kernels": kernels})
            return
        for entry in found:
            click.echo(f"{entry.name}  {entry.extent.size}  {entry.sha256[:12]}")
        click.echo(f"{len(found)} of {len(library.entries)} functions of {library.where}")


@apple_kernels.command(
    "show",
    cls=CommandWithExamples,
    examples={
        "validate-stack apple-kernels show sin_dense_half_half": "its parameters, and what it calls",
        "validate-stack apple-kernels show sin_dense_half_half --ir": "its disassembly",
    },
)
@_library_options
@click.option("--ir", is_flag=True, help="Print the disassembly, whose lines reports refer to.")
@click.argument("name")
def show(release: str, section: str, file: Path | None, as_json: bool, name: str, ir: bool) -> None:
    """Show a kernel: parameters, buffers, layouts of structs, the air functions that it calls."""
    with _errors_as_json(as_json):
        library = _library(release, section, file)
        entry = library.entry(name)
        text = disassemble(library.bitcode(entry), name)
        kernel = read_kernel(read_module(text, name))
        if as_json:
            _print_json(_entry_as_json(entry) | kernel_as_json(kernel) | ({"ir": text} if ir else {}))
            return
        if ir:
            click.echo(text, nl=False)
            return
        for line in kernel_lines(kernel):
            click.echo(line)


@contextlib.contextmanager
def _errors_as_json(wanted: bool) -> Iterator[None]:
    """With ``--json`` standard output is JSON whatever happens; the sentence still goes to standard error."""
    try:
        yield
    except PatchstackError as error:
        if wanted:
            _print_json({"error": error.as_json()})
        raise


def _print_json(value: dict[str, Any]) -> None:
    json.dump(value, sys.stdout, indent=2)
    click.echo()


def _library(release: str, section: str, file: Path | None) -> Metallib:
    progress = for_this_terminal()
    return open_file(file, section) if file else release_library(release, section, progress=progress)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError("not a regular expression", where=text, found=str(error)) from None


def _calls(library: Metallib, entry: KernelEntry, pattern: re.Pattern[str]) -> bool:
    module = read_module(disassemble(library.bitcode(entry), entry.name), entry.name)
    return any(one.name.startswith("air.") and pattern.search(one.name) for one in module.declarations)


def _entry_as_json(entry: KernelEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "bytes": entry.extent.size,
        "sha256": entry.sha256,
        "air_version": list(entry.air_version),
        "language_version": list(entry.language_version),
    }
