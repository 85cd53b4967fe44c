"""Type-checks every kernel instantiation of a source with its address spaces, by the rules of one Metal version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stackproof.engines.errors import Diagnostic
from stackproof.engines.metal.build import LANGUAGE, Rewritten, Source, preprocess, rewrite
from stackproof.engines.metal.kernels import Kernel, KernelDeclaration
from stackproof.engines.metal.tokens import TokenStream
from stackproof.engines.metal.toolchain import INCLUDE, find_toolchain, parse_diagnostics

# What Apple's compiler rejects and Clang only warns of, by warning option. C++17 came with Metal 4.
_ERRORS_BEFORE_METAL_4 = ("pre-c++17-compat",)
# An assertion without a message, which MLX has in sources that Apple compiles for 3.1.
_EXTENSION = "'static_assert' with no message"
_ERRORS = ("zero-length-array",)
_WARNINGS = (
    "-Wuninitialized",
    "-Wsometimes-uninitialized",
    "-Wconditional-uninitialized",
    "-Wreturn-type",
    "-Wparentheses",
    "-Wshadow",
    "-Wunused-variable",
    "-Wno-unused-const-variable",
)
IMPLICIT_BFLOAT = "implicit-bfloat"
_TO_BFLOAT = re.compile(
    r"conversion from '[^']*(?:float|half)[^']*' to '[^']*bfloat|overload resolution selected deleted operator '='"
)


_LIMIT = re.compile(r"static assertion failed due to requirement '__metal_\w+ <= \d+': \"?([^\"]*)")
_VALUE = re.compile(r"expression evaluates to '(\d+) <= \d+'")


@dataclass(frozen=True)
class CheckedSource:
    """The result of one check.

    Attributes:
        source: what was checked, with its version.
        kernels: all that can be launched.
        declarations: every ``kernel`` of the source, templates included.
        tokens: of the preprocessed text, for static rules.
        errors: what would not compile, at the source's own lines.
        warnings: what compiles but deserves a look.
    """

    source: Source
    kernels: tuple[Kernel, ...]
    declarations: tuple[KernelDeclaration, ...]
    tokens: TokenStream
    errors: tuple[Diagnostic, ...]
    warnings: tuple[Diagnostic, ...]


def check_source(source: Source) -> CheckedSource:
    """Type-check one source.

    Raises:
        CompileError: the preprocessor fails (a missing include); everything later is in ``errors``.
        RewriteError: a kernel parameter is bound to nothing.
        ToolchainError: there is no compiler.
    """
    toolchain = find_toolchain()
    text = preprocess(source, toolchain)
    rewritten = rewrite(text, entry_points=False, constants=source.constants)
    flags = [*LANGUAGE, *source.macros, "-isystem", str(INCLUDE), "-Wno-everything", *_WARNINGS]
    flags += [f"-W{flag}" for flag in _ERRORS]
    if source.version_macro < 400:
        flags += [f"-W{flag}" for flag in _ERRORS_BEFORE_METAL_4]
    done = toolchain.run(
        [*flags, "-ferror-limit=100", "-fno-spell-checking", "-fsyntax-only", "-"], stdin=rewritten.text
    )
    found = [_judged(source, one) for one in _at_source_lines(parse_diagnostics(done.stderr))]
    errors = tuple(_once(one for one in found if one.severity == "error"))
    if done.returncode and not errors:
        errors = (Diagnostic("error", done.stderr.strip()[-300:] or "the compiler failed", str(source.path), 0),)
    warnings = tuple(_once(one for one in found if one.severity == "warning"))
    return _result(source, rewritten, errors, warnings)


def _result(
    source: Source, rewritten: Rewritten, errors: tuple[Diagnostic, ...], warnings: tuple[Diagnostic, ...]
) -> CheckedSource:
    return CheckedSource(source, rewritten.kernels, rewritten.declarations, rewritten.tokens, errors, warnings)


def _at_source_lines(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Errors and warnings; one inside this package's headers moves to the source line that led there."""
    for index, one in enumerate(diagnostics):
        if one.severity == "note":
            continue
        if one.file.startswith(str(INCLUDE)):
            for note in diagnostics[index + 1 :]:
                if note.severity != "note":
                    break
                if not note.file.startswith(str(INCLUDE)) and "here" in note.message:
                    one = replace(one, file=note.file, line=note.line, column=note.column)
                    break
        yield _measured(one, diagnostics[index + 1 : index + 2])


def _measured(one: Diagnostic, after: Sequence[Diagnostic]) -> Diagnostic:
    """An assertion that this package put there speaks of what it is about, and says the number."""
    if not (asserted := _LIMIT.search(one.message)):
        return one
    value = _VALUE.search(after[0].message) if after else None
    return replace(one, message=asserted[1] + (f", found {int(value[1]):,}" if value else ""))


def _judged(source: Source, one: Diagnostic) -> Diagnostic:
    """The severity that Metal gives it."""
    if one.flag in _ERRORS:
        return replace(one, severity="error")
    if one.flag in _ERRORS_BEFORE_METAL_4 and _EXTENSION in one.message:
        return replace(one, message=f"{one.message} (Apple's compiler takes it as an extension)")
    if one.flag in _ERRORS_BEFORE_METAL_4:
        message = f"{one.message} (Metal {source.metal_version} is based on C++14)"
        return replace(one, severity="error", message=message)
    if one.severity == "error" and _TO_BFLOAT.search(one.message):
        return replace(one, flag=IMPLICIT_BFLOAT, message=one.message + " (Metal has no implicit conversion to bfloat)")
    return one


def _once(diagnostics: Iterator[Diagnostic]) -> Iterator[Diagnostic]:
    """Each message once per place: every instantiation repeats it."""
    seen = set()
    for one in diagnostics:
        key = (one.file, one.line, one.flag or one.message)
        if key not in seen:
            seen.add(key)
            yield one
