"""What Metal's C++ has and Clang's C++ for OpenCL has not, as edits of the preprocessed text.

Differences: classes must be copyable out of ``constant``; vectors are classes, so swizzles become calls;
function pointers as template parameters must be references; ``threadgroup`` variables get their memory from the
executor; and the ``[[host_name]]`` of an instantiation is not something Clang parses. None of the edits adds or
removes a newline, so that lines stay what they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from stackproof.engines.metal.features import (
    coherent_buffers,
    constant_tables,
    function_constants,
    thread_constructors,
    thread_results,
)
from stackproof.engines.metal.tokens import Edit, TokenStream
from stackproof.engines.metal.wording import wording_edits

_SWIZZLE = re.compile(r"[xyzw]{2,4}|[rgba]{1,4}")
_ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
THREADGROUP_BYTES = 32768
# Metal Feature Set Tables: the most that one threadgroup may have, whatever the GPU.
THREADGROUP_LIMIT = (
    f'static_assert({{}} <= {THREADGROUP_BYTES}, "a kernel has at most 32,768 bytes of threadgroup memory");'
)
_STATEMENT_STARTS = (";", "{", "}")


def dialect_edits(tokens: TokenStream, constants: Mapping[int, str] | None = None) -> list[Edit]:
    """All edits that do not depend on kernels.

    Args:
        tokens: of the source.
        constants: values of function constants by index.
    """
    variables = list(_threadgroup_variables(tokens))
    edits = (
        *_copyable_classes(tokens),
        *_swizzles(tokens),
        *_function_parameters(tokens),
        *wording_edits(tokens),
        *_array_parameters(tokens),
        *_literals(tokens),
        *_conditionals(tokens),
        *thread_results(tokens),
        *thread_constructors(tokens),
        *coherent_buffers(tokens),
        *constant_tables(tokens),
        *function_constants(tokens, constants or {}),
    )
    # A declaration is rewritten as a whole; the conditional in its dimension is one of integers and needs nothing.
    return [*(edit for edit in edits if not any(one.start <= edit.start < one.end for one in variables)), *variables]


def class_bodies(
    tokens: TokenStream, keywords: tuple[str, ...] = ("struct", "class")
) -> Iterator[tuple[int, int, int]]:
    """Every class definition: index of its keyword, of its name, and of its opening brace."""
    for index, token in enumerate(tokens):
        if token.text not in keywords or token.kind != "word":
            continue
        if tokens.is_text(index - 1, "enum"):
            continue
        name = index + 1
        while tokens.is_text(name, "[", "alignas", "__attribute__"):
            name = tokens.partner[name if tokens.is_text(name, "[") else name + 1] + 1
        if name >= len(tokens) or tokens[name].kind != "word":
            continue
        at = tokens.skip_angles(name + 1)
        if tokens.is_text(at, "final"):
            at += 1
        if tokens.is_text(at, ":"):
            while at < len(tokens) and not tokens.is_text(at, "{", ";"):
                at = max(tokens.skip_angles(at), at + 1)
        if tokens.is_text(at, "{"):
            yield index, name, at


def _copyable_classes(tokens: TokenStream) -> Iterator[Edit]:
    for keyword, name, brace in class_bodies(tokens):
        title = tokens[name].text
        has_constructor = copies = False
        at = brace + 1
        while at < tokens.partner[brace]:
            if tokens.is_text(at, title) and tokens.is_text(at + 1, "(") and not tokens.is_text(at - 1, "~", ".", "->"):
                has_constructor = True
                inside = [tokens[i].text for i in range(at + 2, tokens.partner[at + 1])]
                copies = copies or (title in inside and "&" in inside)
            copies = copies or (tokens.is_text(at, "operator") and tokens.is_text(at + 1, "="))
            at = tokens.partner[at] + 1 if tokens.is_text(at, "{", "(", "[") else at + 1
        if copies:
            continue
        macro = f"__METAL_HOST_COPIES{'_ONLY' if has_constructor else ''}({title})"
        if tokens.is_text(keyword, "class"):
            macro = f"public: {macro} private:"
        yield Edit(tokens[brace].end, tokens[brace].end, f" {macro} ")


def _declared_fields(tokens: TokenStream) -> set[str]:
    """Members of the source's own classes that are spelled like a swizzle: those are left alone everywhere."""
    fields = set()
    for _, _, brace in class_bodies(tokens, ("struct", "class", "union")):
        at = brace + 1
        while at < tokens.partner[brace]:
            if _SWIZZLE.fullmatch(tokens[at].text) and tokens.is_text(at + 1, ";", ",", "[", "="):
                fields.add(tokens[at].text)
            at = tokens.partner[at] + 1 if tokens.is_text(at, "{", "(", "[") else at + 1
    return fields


def _swizzles(tokens: TokenStream) -> Iterator[Edit]:
    own = _declared_fields(tokens)
    for index, token in enumerate(tokens):
        if token.text not in (".", "->") or index + 1 >= len(tokens):
            continue
        name = tokens[index + 1]
        if name.text in own or not _SWIZZLE.fullmatch(name.text) or tokens.is_text(index + 2, "("):
            continue
        if len(name.text) == 1:
            yield Edit(name.start, name.end, "xyzw"["rgba".index(name.text)])
            continue
        letters = "xyzw" if name.text[0] in "xyzw" else "rgba"
        lanes = ", ".join(str(letters.index(letter)) for letter in name.text)
        method = "__swizzle_into" if tokens.is_text(index + 2, *_ASSIGNMENTS) else "__swizzle"
        yield Edit(name.start, name.end, f"{method}(__metal_host::lanes<{lanes}>{{}})")


def _function_parameters(tokens: TokenStream) -> Iterator[Edit]:
    """``template <R (*F)(A)>`` to ``template <R (&F)(A)>``: Clang cannot match the former's address space."""
    for index, token in enumerate(tokens):
        if token.text != "template" or not tokens.is_text(index + 1, "<"):
            continue
        for at in range(index + 2, tokens.skip_angles(index + 1)):
            if (
                tokens.is_text(at, "(")
                and tokens.is_text(at + 1, "*")
                and tokens.is_text(at + 3, ")")
                and tokens.is_text(at + 4, "(")
            ):
                yield Edit(tokens[at + 1].start, tokens[at + 1].end, "&")


def _literals(tokens: TokenStream) -> Iterator[Edit]:
    """``1.5`` to ``1.5f``: Metal has no double. (Clang's option for that forgets literals inside templates.)"""
    for token in tokens:
        if token.kind != "number":
            continue
        text = token.text.lower()
        hexadecimal = text.startswith("0x")
        is_float = "p" in text if hexadecimal else bool(re.search(r"[.e]", text))
        if not is_float or (text.endswith("f") and not text.endswith("bf")):
            continue
        if text.endswith(("h", "bf")):
            name, number = ("bfloat", token.text[:-2]) if text.endswith("bf") else ("half", token.text[:-1])
            yield Edit(token.start, token.end, f"{name}({number}f)")
        else:
            yield Edit(token.end, token.end, "f")


def _conditionals(tokens: TokenStream) -> Iterator[Edit]:
    """``c ? a : b`` to ``c ? value(a) : value(b)``: Clang finds no common type of a class object and a temporary of it,
    since only the object has an address space."""
    for index, token in enumerate(tokens):
        if token.text != "?":
            continue
        colon = _matching_colon(tokens, index + 1)
        if colon:
            sides = (index + 1, colon), (colon + 1, _operand_end(tokens, colon + 1))
            for (low, high), other in zip(sides, reversed(sides), strict=True):
                yield Edit(tokens[low].start, tokens[low].start, _taken(tokens, (low, high), other))
                yield Edit(tokens[high - 1].end, tokens[high - 1].end, ")")


def _taken(tokens: TokenStream, side: tuple[int, int], other: tuple[int, int]) -> str:
    """What one side of a conditional is handed to: an integer beside a bfloat becomes one."""
    low, high = side
    is_integer = high - low == 1 and re.fullmatch(r"\d+", tokens[low].text)
    words = tokens[other[0] : other[1]]
    is_plain = all(one.kind in ("word", "number") or one.text in "()[]<>::,+-*" for one in words)
    if is_integer and is_plain and not (len(words) == 1 and words[0].kind == "number"):
        return f"__metal_host::beside<decltype(__metal_host::value({tokens.source(*other)}))>::take("
    return "__metal_host::value("


def _matching_colon(tokens: TokenStream, at: int) -> int:
    nested = 0
    while at < len(tokens) and not tokens.is_text(at, ";", ")", "]", "}"):
        if tokens.is_text(at, "?"):
            nested += 1
        elif tokens.is_text(at, ":"):
            if not nested:
                return at
            nested -= 1
        at = tokens.partner[at] + 1 if tokens.is_text(at, "(", "[", "{") else at + 1
    return 0


def _operand_end(tokens: TokenStream, at: int) -> int:
    nested = 0
    while at < len(tokens) and not tokens.is_text(at, ";", ",", ")", "]", "}"):
        if tokens.is_text(at, ">") and tokens.is_text(at + 1, ";", ",", ")", "::", ">", "{"):
            break  # of a list of template arguments
        if tokens.is_text(at, "?"):
            nested += 1
        elif tokens.is_text(at, ":"):
            if not nested:
                break
            nested -= 1
        after = tokens.skip_angles(at) if tokens[at - 1].kind == "word" else at
        if after > at and tokens.is_text(after, "(", "::", "{"):
            at = after
        else:
            at = tokens.partner[at] + 1 if tokens.is_text(at, "(", "[", "{") else at + 1
    return at


def _array_parameters(tokens: TokenStream) -> Iterator[Edit]:
    """``f(T a[4])`` to ``f(thread T a[4])``: Metal's default, which template deduction in Clang needs spelled out."""
    spaces = {"thread", "threadgroup", "device", "constant"}
    for index, token in enumerate(tokens):
        if token.text != "(" or (
            not tokens.is_text(index - 1, ">") and (index == 0 or tokens[index - 1].kind != "word")
        ):
            continue
        for low, high in tokens.split(index + 1, tokens.partner[index]):
            bracket = next(
                (i for i in range(low, high) if tokens.is_text(i, "[") and not tokens.is_text(i + 1, "[")), 0
            )
            if (
                bracket - low < 2
                or tokens[bracket - 1].kind != "word"
                or spaces & {t.text for t in tokens[low:bracket]}
            ):
                continue
            before = bracket - 2
            typed = tokens[before].kind == "word" or tokens.is_text(before, ">")
            if typed and all(
                tokens[i].kind == "word" or tokens[i].text in ("<", ">", "::", ",") for i in range(low, bracket)
            ):
                yield Edit(tokens[low].start, tokens[low].start, "thread ")


def _threadgroup_variables(tokens: TokenStream) -> Iterator[Edit]:
    open_braces: list[int] = []
    in_scope: list[tuple[int, str]] = []  # end of the braces around a variable, and the bytes up to it
    for index, token in enumerate(tokens):
        if token.text in "{}" and token.kind == "operator":
            open_braces = [*open_braces, index] if token.text == "{" else open_braces[:-1]
        if token.text != "threadgroup" or token.kind != "word":
            continue
        start = _specifiers_begin(tokens, index)
        if start > 0 and not tokens.is_text(start - 1, *_STATEMENT_STARTS):
            continue
        begin = _after_attributes(tokens, index + 1)
        end = _declaration_end(tokens, begin)
        if end:
            in_scope = [one for one in in_scope if one[0] > index]
            before = in_scope[-1][1] if in_scope else "0"
            total = f"__metal_bytes_{token.start}"
            text = "".join(_declarations(tokens, begin, end))
            sizes = " + ".join(f"sizeof({one})" for one in _declared_types(tokens, begin, end))
            text += f"enum : ulong {{ {total} = {before} + {sizes} }}; {THREADGROUP_LIMIT.format(total)} "
            in_scope.append((tokens.partner[open_braces[-1]] if open_braces else len(tokens), total))
            yield Edit(tokens[start].start, tokens[end].end, text)


def _specifiers_begin(tokens: TokenStream, index: int) -> int:
    start = index
    while True:
        if tokens.is_text(start - 1, "const", "volatile", "static"):
            start -= 1
        elif tokens.is_text(start - 1, ")") and tokens.is_text(
            tokens.partner[start - 1] - 1, "alignas", "__attribute__"
        ):
            start = tokens.partner[start - 1] - 1
        else:
            return start


def _after_attributes(tokens: TokenStream, index: int) -> int:
    """Where the type begins; alignment does not matter, since the executor's memory is aligned for every type."""
    while tokens.is_text(index, "alignas", "__attribute__") and tokens.is_text(index + 1, "("):
        index = tokens.partner[index + 1] + 1
    return index


def _declaration_end(tokens: TokenStream, begin: int) -> int:
    """The index of the ``;`` of a plain variable declaration; 0 for pointers, references, functions, parameters."""
    at = begin
    while at < len(tokens):
        after = tokens.skip_angles(at)
        if after > at:
            at = after
            continue
        text = tokens[at].text
        if text == ";":
            return at
        if text == "=" and tokens.is_text(at + 1, "{"):
            at = tokens.partner[at + 1] + 1  # Apple's compiler takes a list and does not use it
            continue
        if text in ("*", "&", "=", "(", ")", "{", "}"):
            return 0
        at = tokens.partner[at] + 1 if text == "[" else at + 1
    return 0


def _declarations(tokens: TokenStream, begin: int, end: int) -> Iterator[str]:
    for at, kind, dimensions in _declarators(tokens, begin, end):
        title = tokens[at].text
        target = f"(*){dimensions}" if dimensions else "*"
        declared = f"(&{title}){dimensions}" if dimensions else f"&{title}"
        identifier = tokens[at].start
        yield (
            f"threadgroup {kind} {declared} = *(threadgroup {kind} {target})"
            f"__metal_host_threadgroup({identifier}, sizeof({kind} {dimensions})); "
        )


def _declared_types(tokens: TokenStream, begin: int, end: int) -> list[str]:
    return [f"{kind} {dimensions}" for _, kind, dimensions in _declarators(tokens, begin, end)]


def _declarators(tokens: TokenStream, begin: int, end: int) -> Iterator[tuple[int, str, str]]:
    """For each variable of one declaration: index of its name, the type in front, and the dimensions behind."""
    end = next((i for i in range(begin, end) if tokens.is_text(i, "=")), end)
    first_begin, first_end = tokens.split(begin, end)[0]
    name = next((i for i in range(first_begin, first_end) if tokens.is_text(i, "[")), first_end) - 1
    # A type such as `array<float, 4>` may hold brackets of its own: the name is the last word before the dimensions.
    while tokens.skip_angles(name) > name:
        name += 1
    kind = tokens.source(begin, name)
    for number, (low, high) in enumerate(tokens.split(begin, end)):
        at = name if number == 0 else low
        yield at, kind, tokens.source(at + 1, high)
