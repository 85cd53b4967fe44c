"""One host file: whether it compiles, and fits what its kernels and the macOS release have."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from patchstack.cache import write_whole
from patchstack.errors import PatchstackError
from patchstack.tree.git import Tree
from stackproof.engines.errors import Diagnostic
from stackproof.engines.metal.build import LANGUAGE as METAL_LANGUAGE
from stackproof.engines.metal.build import Source, preprocess, rewrite
from stackproof.engines.metal.model import ParameterKind
from stackproof.engines.metal.sources import INCLUDE_FOLDERS, collect_sources, write_sources
from stackproof.engines.metal.toolchain import INCLUDE as METAL_INCLUDE
from stackproof.engines.metal.toolchain import digest, find_toolchain
from stackproof.engines.object_files import Symbols, macho_symbols
from stackproof.engines.standin.apple_clang import AppleClang
from stackproof.engines.standin.clang import LANGUAGE, STRICT, Compiled, HostClang
from stackproof.engines.standin.headers import IncludeFolders, write_files
from stackproof.engines.standin.layouts import DUMP_FLAGS, compare_layouts, parse_layouts
from stackproof.engines.standin.precompiled import beginning_with, precompile
from stackproof.engines.standin.queue_rules import check_queue_rules
from stackproof.engines.standin.stack import HostFile
from stackproof.engines.standin.symbols import missing_symbols, readable
from stackproof.model import Finding

CHECKS = "host-check"
"""Folder of the cache: what was compiled is used by every gate that asks."""
_CODE = ("-O0", "-g0")


_VERSION = re.compile(r"^(\d+)\.(\d+)")


# What a tree laid out from a release's packages has in place of version.txt.
_VERSION_HEADER = "torch/headeronly/version.h"


_VERSION_STRING = re.compile(r"^#define TORCH_VERSION \\\n  \"(\d+)\.(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class FileVerdict:
    """What is known about one host file.

    Attributes:
        path: in the tree.
        cases: checks that were made.
        findings: what they found.
        skipped: checks that could not be made, one sentence each.
    """

    path: str
    cases: int
    findings: tuple[Finding, ...]
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class AppleObject:
    """What came of compiling a host file for Apple's target.

    Attributes:
        succeeded: there is an object.
        diagnostics: of the compiler.
        layouts: clang's dump of the structs in the global namespace.
        wanted: names that the object wants from elsewhere.
        defined: names that it defines for others.
        tail: end of the compiler's output, for a failure without diagnostics.
    """

    succeeded: bool
    diagnostics: tuple[Diagnostic, ...]
    layouts: str
    wanted: tuple[str, ...]
    defined: tuple[str, ...]
    tail: str


@dataclass
class FileChecker:
    """Checks host files of one tree.

    Attributes:
        tree: whose files and headers.
        clang: the compiler.
        headers: the include folders.
        cache: where results are kept.
        exports: what the macOS release exports; ``None`` where that is not known, with ``no_exports`` saying why.
        no_exports: see above.
        kernels: whether shared structs are compared.
        apple: Apple's own clang, whose errors count where it is there.
    """

    tree: Tree
    clang: HostClang
    headers: IncludeFolders
    cache: Path
    exports: frozenset[str] | None = None
    no_exports: str = "no macOS release was given to look the symbols up in"
    kernels: bool = True
    apple: AppleClang | None = None

    def check(self, file: HostFile) -> FileVerdict:
        """All checks of one file."""
        made = self.compiled(file)
        rules = check_queue_rules(file.path, file.text)
        if self.apple:
            errors = self.apple.errors(self._written(file), self.headers.flags_with_sdk, file.path)
            if errors or not made.succeeded:
                return _by_apple(file, made, errors, rules)
        if not made.succeeded:
            if file.builds_graphs:
                reason = f"{file.path} builds MPSGraphs, which the stub headers do not describe"
                return FileVerdict(file.path, 0, tuple(_as_information(rules)), (reason,))
            return FileVerdict(file.path, 1, (*_diagnosed(file, made), *rules))
        findings, cases, skipped = list(rules), 2, []
        if self.exports is None:
            skipped.append(f"{file.path}: {self.no_exports}")
        else:
            findings += _unexported(file, made.wanted, self.exports)
            cases += 1
        if self.kernels:
            shared = [self._layouts(path, made.layouts) for path in file.kernel_sources if self.tree.exists(path)]
            findings += [Finding(text, path=file.path, rule="struct-layout") for texts in shared for text in texts]
            cases += len(shared)
        return FileVerdict(file.path, cases, tuple(findings), tuple(skipped))

    def compiled(self, file: HostFile) -> AppleObject:
        """Compile for Apple's target, or find the outcome in the cache."""
        key = digest(self.clang.version, self.headers.key, file.path, file.text, *LANGUAGE, *STRICT, *DUMP_FLAGS, "2")
        place = self.cache / "checks" / f"{key}.json"
        if not place.exists():
            source = self._written(file)
            prefix = self._prefix(file)
            begin = beginning_with(prefix) if prefix else ()
            with tempfile.TemporaryDirectory(prefix="stackproof-object-") as scratch:
                output = Path(scratch) / "object.o"
                flags = [*self.headers.flags, *STRICT, *DUMP_FLAGS, *_CODE, *begin]
                done = self.clang.for_apple([*flags, "-c", str(source), "-o", str(output)])
                made = macho_symbols(output) if done.succeeded else Symbols(frozenset(), frozenset())
            content = _dump(done, file.path) | {"wanted": sorted(made.wanted), "defined": sorted(made.defined)}
            write_whole(place, json.dumps(content))
        return _load(json.loads(place.read_text()))

    def _written(self, file: HostFile) -> Path:
        return write_files({file.path: file.text.encode()}, self.cache) / file.path

    def _prefix(self, file: HostFile) -> Path | None:
        """The precompiled headers that the file begins with, if it begins like most."""
        text = common_beginning(file.text)
        if not text:
            return None
        flags = (*self.headers.flags_of_most, *_CODE)
        key = digest(self.clang.version, text, *LANGUAGE, *flags, self.headers.key_of_most)
        source = write_files({"prefix.h": text.encode()}, self.cache) / "prefix.h"
        output = self.cache / "precompiled" / f"{key}.pch"
        failed = precompile(self.clang.header_for_apple, self.clang.for_apple, flags, source, output)
        return None if failed else output

    def _layouts(self, path: str, host_dump: str) -> list[str]:
        root = write_sources(collect_sources(self.tree, path), self.cache)
        source = Source(root / path, tuple(root / folder for folder in INCLUDE_FOLDERS), root=root)
        toolchain = find_toolchain()
        try:
            rewritten = rewrite(preprocess(source, toolchain))
        except PatchstackError:
            return []  # that the kernels do not compile is for metal-check to say
        flags = [*METAL_LANGUAGE, *source.macros, *toolchain.target_flags, "-isystem", str(METAL_INCLUDE)]
        done = toolchain.run([*flags, "-Wno-everything", *DUMP_FLAGS, "-fsyntax-only", "-"], stdin=rewritten.text)
        taken = {
            name
            for kernel in rewritten.kernels
            for parameter in kernel.parameters
            if parameter.kind is ParameterKind.CONSTANT
            for name in re.findall(r"\w+", parameter.declaration)
        }
        return compare_layouts(parse_layouts(host_dump), parse_layouts(done.stdout), taken)


def common_beginning(text: str) -> str:
    """What can be compiled once for all host files that begin alike: their macros, and the header of all of them.

    Empty where the file does not include that header itself before anything else than other headers.
    """
    defined: list[str] = []
    for line in text.splitlines():
        if re.match(r"\s*#\s*include\s*<ATen/native/mps/OperationUtils\.h>", line):
            return "".join(f"{one}\n" for one in [*defined, line.strip()])
        if re.match(r"\s*#\s*define\b.*[^\\]$", line):
            defined.append(line.strip())
        elif not re.match(r"\s*(#\s*(include|pragma)\b|//|$)", line):
            return ""
    return ""


def _dump(done: Compiled, path: str) -> dict[str, Any]:
    """JSON of a compilation, with the file called as in the tree."""
    diagnostics = [
        [one.severity, one.message, path if one.file.endswith(f"/{path}") else one.file, one.line, one.column, one.flag]
        for one in done.diagnostics
    ]
    return {
        "succeeded": done.succeeded, "diagnostics": diagnostics, "layouts": _only_shared(done.text), "tail": done.tail,
    }  # fmt: skip


def _load(content: Mapping[str, Any]) -> AppleObject:
    diagnostics = tuple(Diagnostic(*one) for one in content["diagnostics"])
    wanted, defined = tuple(content["wanted"]), tuple(content["defined"])
    return AppleObject(content["succeeded"], diagnostics, content["layouts"], wanted, defined, content["tail"])


def _only_shared(dump: str) -> str:
    """Layouts without those of namespaces: structs that kernels share are in the global one."""
    mark = "*** Dumping AST Record Layout"
    blocks = dump.split(mark)[1:]
    return "".join(mark + block for block in blocks if re.match(r"\s*0 \| (struct|class) [\w<>, ]+\n", block))


def _unexported(file: HostFile, wanted: Sequence[str], exports: frozenset[str]) -> list[Finding]:
    return [
        Finding(f"the macOS release does not export {readable(name)} ({name})", file.path, rule="missing-symbol")
        for name in missing_symbols(wanted, exports)
    ]


def _by_apple(file: HostFile, made: AppleObject, errors: Sequence[Diagnostic], rules: Sequence[Finding]) -> FileVerdict:
    """The verdict of Apple's compiler where one of the two refuses a file; what only the other says is a note."""
    findings = [replace(one, details={"compiler": "apple"}) for one in _named(file, errors)]
    ours = [] if made.succeeded or file.builds_graphs else _diagnosed(file, made)
    notes = [replace(one, message=f"{one.message} (this project's headers, beside Apple's compiler)") for one in ours]
    skipped = (
        () if errors else (f"{file.path}: only Apple's compiler took it, so symbols and structs were not compared",)
    )
    return FileVerdict(file.path, 1, (*findings, *_as_information(notes), *rules), skipped)


def _diagnosed(file: HostFile, made: AppleObject) -> list[Finding]:
    errors = [one for one in made.diagnostics if one.severity == "error"]
    if not errors:
        return [Finding(f"the compiler failed: {made.tail}", file.path, rule="syntax")]
    return _named(file, errors)


def _named(file: HostFile, errors: Sequence[Diagnostic]) -> list[Finding]:
    """Errors as findings at lines of the file; one in a header is about the file."""
    return [
        Finding(one.message, file.path, one.line, "syntax")
        if one.file == file.path
        else Finding(f"{one.message} (in {Path(one.file).name})", file.path, rule="syntax")
        for one in errors
    ]


def _as_information(findings: Sequence[Finding]) -> list[Finding]:
    return [Finding(one.message, one.path, one.line, one.rule, fails=False) for one in findings]


def release_of(tree: Tree) -> str:
    """The tree's release, as ``2.13``; empty where it does not say."""
    text = (tree.read("version.txt") or b"").decode(errors="replace")
    header = (tree.read(_VERSION_HEADER) or b"").decode(errors="replace")
    found = _VERSION.match(text) or _VERSION_STRING.search(header)
    return ".".join(found.groups()) if found else ""
