"""32-bit products that become offsets into tensors, followed by types and assignments and not by names.

What the host hands in, a size or a stride in the constant address space, may be as large as a tensor. A product with
one that is computed in 32 bits wraps around past 2^31 elements. It is found where it feeds an index: inside the
brackets of a pointer, in the sum with one, or through a variable that does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stackproof.engines.metal.tokens import Token, TokenStream
from stackproof.engines.metal.varying import Function, functions_of

_NARROW = re.compile(r"(?:packed_)?(?:u?int|int32_t|uint32_t|unsigned|u?short|u?int16_t)[234]?")
_WIDE = re.compile(r"(?:packed_)?(?:u?long|u?int64_t|size_t|ptrdiff_t)[234]?")
_SPACES = frozenset({"device", "constant", "threadgroup"})
_STOPS = frozenset(
    {",", ";", "=", "?", ":", "&&", "||", "<", ">", "<=", ">=", "==", "!=", "+=", "-=", "(", "[", "{", "return"}
)


@dataclass(frozen=True)
class NarrowProduct:
    """One product.

    Attributes:
        token: its ``*``.
        factor: what the host handed in, in words.
        declared: where that is declared, a field or a parameter, if that is known.
    """

    token: Token
    factor: str
    declared: Token | None


@dataclass
class _Names:
    """What is known of the names in one function.

    Attributes:
        kinds: ``narrow``, ``wide`` or another, by name.
        given: narrow names that hold what the host handed in.
        pointers: names of pointers into tensors.
        constants: names of what is in the constant address space.
        declared: where parameters are declared, by name.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)
    pointers: set[str] = field(default_factory=set)
    constants: set[str] = field(default_factory=set)
    declared: dict[str, Token] = field(default_factory=dict)


def narrow_products(tokens: TokenStream) -> Iterator[NarrowProduct]:
    """Each such product of a source."""
    fields, places = _fields(tokens)
    known = [(function, _names(tokens, function)) for function in functions_of(tokens)]
    while _spread(tokens, fields, known):
        pass
    for function, names in known:
        feeding = _feeding(tokens, function, names)
        for at in range(function.begin + 1, function.end):
            if not tokens.is_text(at, "*"):
                continue
            left, right = _left_operand(tokens, at, function.begin), _right_operand(tokens, at)
            if left is None or right is None:
                continue
            kinds = [_kind(tokens, names, fields, _first_factor(tokens, left[0]), at)]
            kinds.append(_kind(tokens, names, fields, *right))
            given = next((one for one in (left, right) if _is_given(tokens, names, *one)), None)
            if given and kinds == ["narrow", "narrow"] and _at_sink(tokens, names, at, function, feeding):
                words = [tokens[i].text for i in range(*given) if tokens[i].kind == "word"]
                declared = places.get(next((one for one in reversed(words) if one in places), ""))
                declared = declared or names.declared.get(words[0])
                yield NarrowProduct(tokens[at], "".join(tokens[i].text for i in range(*given)), declared)


def _fields(tokens: TokenStream) -> tuple[dict[str, str], dict[str, Token]]:
    """Kinds of the members of all classes, and where they are declared; a name with two kinds is of none."""
    found: dict[str, str] = {}
    places: dict[str, Token] = {}
    for index, token in enumerate(tokens):
        if token.text not in ("struct", "class"):
            continue
        brace = next((at for at in range(index, min(index + 12, len(tokens))) if tokens.is_text(at, "{", ";", "(")), 0)
        if not tokens.is_text(brace, "{"):
            continue
        begin = brace + 1
        for at in range(brace + 1, tokens.partner[brace]):
            if tokens.is_text(at, ";", "}", ":"):
                begin = at + 1
            elif tokens[at].kind == "word" and tokens.is_text(at + 1, ";", "[", ",", "="):
                kind = _declared_kind([tokens[i].text for i in range(begin, at)])
                found[tokens[at].text] = kind if found.get(tokens[at].text, kind) == kind else "other"
                places.setdefault(tokens[at].text, tokens[at])
    return found, places


def _declared_kind(words: list[str]) -> str:
    if any(_WIDE.fullmatch(word) for word in words) or words.count("long"):
        return "wide"
    return "narrow" if any(_NARROW.fullmatch(word) for word in words) else "other"


def _names(tokens: TokenStream, function: Function) -> _Names:
    names = _Names()
    closed = function.begin - (2 if tokens.is_text(function.begin - 1, "const") else 1)
    opened = tokens.partner[closed]
    for low, high in tokens.split(opened + 1, tokens.partner[opened]):
        words = [tokens[at].text for at in range(low, high)]
        attribute = next(
            (at for at in range(low, high) if tokens.is_text(at, "[") and tokens.is_text(at + 1, "[")), high
        )
        place = next((at for at in range(attribute - 1, low, -1) if tokens[at].kind == "word"), low)
        name = tokens[place].text
        names.declared[name] = tokens[place]
        names.kinds[name] = _declared_kind(words[:-1])
        if "constant" in words:
            names.constants.add(name)
        if "*" in words and set(words) & {"device", "constant"}:
            names.pointers.add(name)
    for at in range(function.begin + 1, function.end):
        if tokens[at].kind == "word" and tokens.is_text(at + 1, "=", ";", ",", "{") and tokens[at - 1].kind == "word":
            begin = at - 1
            while tokens[begin - 1].kind == "word" or tokens.is_text(begin - 1, "*", "&", "::"):
                begin -= 1
            words = [tokens[i].text for i in range(begin, at)]
            if words[0] in ("return", "else", "case"):
                continue
            if "auto" not in words:
                names.kinds[tokens[at].text] = _declared_kind(words)
            if "constexpr" in words:
                names.kinds[tokens[at].text] = "other"
        elif (
            tokens[at].kind == "word"
            and tokens.is_text(at - 1, "*")
            and tokens.is_text(at + 1, "=", ";")
            and any(tokens.is_text(i, "device", "constant") for i in range(max(at - 5, function.begin), at))
        ):
            names.pointers.add(tokens[at].text)
    return names


def _left_operand(tokens: TokenStream, at: int, first: int) -> tuple[int, int] | None:
    begin = at
    while begin - 1 > first:
        before = begin - 1
        if tokens.is_text(before, ")", "]"):
            begin = tokens.partner[before]
        elif tokens[before].kind in ("word", "number") and not tokens.is_text(before, "return"):
            begin = before
        else:
            break
        if not (tokens.is_text(begin, "(", "[") or tokens.is_text(begin - 1, ".", "->", "::")):
            break
        if tokens.is_text(begin - 1, ".", "->", "::"):
            begin -= 1
        elif tokens.is_text(begin, "(") and tokens[begin - 1].kind != "word":
            break
    return (begin, at) if begin < at else None


def _first_factor(tokens: TokenStream, begin: int) -> int:
    """Where a product begins whose last factor begins at ``begin``, with a cast in front of it."""
    while True:
        if tokens.is_text(begin - 1, ")") and _is_cast(tokens, tokens.partner[begin - 1]):
            begin = tokens.partner[begin - 1]
        elif tokens.is_text(begin - 1, "*") and (left := _left_operand(tokens, begin - 1, 0)):
            begin = left[0]
        else:
            return begin


def _is_cast(tokens: TokenStream, at: int) -> bool:
    inside = range(at + 1, tokens.partner[at])
    return tokens[at - 1].kind != "word" and all(tokens[i].kind == "word" for i in inside)


def _right_operand(tokens: TokenStream, at: int) -> tuple[int, int] | None:
    end = at + 1
    if not (end < len(tokens) and (tokens[end].kind in ("word", "number") or tokens.is_text(end, "("))):
        return None
    if tokens.is_text(end, "(") and _is_cast(tokens, end):
        end = tokens.partner[end] + 1
    end = tokens.partner[end] + 1 if tokens.is_text(end, "(") else end + 1
    while tokens.is_text(end, ".", "->", "::", "[", "("):
        end = tokens.partner[end] + 1 if tokens.is_text(end, "[", "(") else end + 2
    return (at + 1, end)


def _kind(tokens: TokenStream, names: _Names, fields: dict[str, str], begin: int, end: int) -> str:
    """Of an operand: wide if any part is, narrow if all parts that are known are."""
    kinds = set()
    for at in range(begin, end):
        text = tokens[at].text
        if tokens[at].kind != "word":
            continue
        if _WIDE.fullmatch(text):
            return "wide"
        if tokens.is_text(at - 1, ".", "->"):
            if len(text) > 1 or text not in "xyzw":
                kinds.add(fields.get(text, "other"))
        elif text in names.kinds:
            # What selects the field or the element says nothing of its type.
            if not (tokens.is_text(at + 1, ".", "->") and not _is_swizzle(tokens, at + 2)):
                kinds.add(names.kinds[text])
        elif not _NARROW.fullmatch(text):
            kinds.add("other")
    return "wide" if "wide" in kinds else "narrow" if kinds == {"narrow"} else "other"


def _is_swizzle(tokens: TokenStream, at: int) -> bool:
    return bool(re.fullmatch("[xyzw]+", tokens[at].text))


def _is_given(tokens: TokenStream, names: _Names, begin: int, end: int) -> bool:
    """Whether an operand is one number that the host handed in."""
    if any(tokens.is_text(at, "+", "-", "/", "%", "*") for at in range(begin, end)):
        return False
    base = next((tokens[at].text for at in range(begin, end) if tokens[at].kind == "word"), "")
    return base in names.constants or base in names.given


def _feeding(tokens: TokenStream, function: Function, names: _Names) -> set[str]:
    """Variables whose value becomes an index."""
    feeding: set[str] = set()
    changed = True
    while changed:
        changed = False
        for at in range(function.begin + 1, function.end):
            text = tokens[at].text
            if tokens[at].kind != "word" or tokens.is_text(at - 1, ".", "->"):
                continue
            if (
                names.kinds.get(text) in ("narrow", "wide")
                and text not in feeding
                and _at_sink(tokens, names, at, function, feeding)
            ):
                feeding.add(text)
                changed = True
    return feeding


def _spread(tokens: TokenStream, fields: dict[str, str], known: list[tuple[Function, _Names]]) -> bool:
    """Follow what the host handed in, through variables and calls; whether anything came of it."""
    by_name: dict[str, list[tuple[Function, _Names]]] = {}
    for one in known:
        by_name.setdefault(one[0].name, []).append(one)
    before = sum(len(names.given) for _, names in known)
    for function, names in known:
        for at in range(function.begin + 1, function.end):
            text = tokens[at].text
            if tokens[at].kind != "word" or tokens.is_text(at - 1, ".", "->"):
                continue
            if names.kinds.get(text) == "narrow" and tokens.is_text(at + 1, "="):
                if tokens[at + 2].text in names.constants | names.given and _ends_operand(tokens, at + 2):
                    names.given.add(text)
            elif text in by_name:
                opened = tokens.skip_angles(at + 1)
                if not tokens.is_text(opened, "("):
                    continue
                arguments = tokens.split(opened + 1, tokens.partner[opened])
                given = [_is_given(tokens, names, *argument) for argument in arguments]
                for called, theirs in by_name[text]:
                    pairs = zip(called.parameters, given, strict=False)
                    theirs.given |= {
                        name for name, is_given in pairs if is_given and theirs.kinds.get(name) == "narrow"
                    }
    return sum(len(names.given) for _, names in known) > before


def _ends_operand(tokens: TokenStream, at: int) -> bool:
    end = at + 1
    while tokens.is_text(end, ".", "->", "["):
        end = tokens.partner[end] + 1 if tokens.is_text(end, "[") else end + 2
    return tokens.is_text(end, ";", ",")


def _at_sink(tokens: TokenStream, names: _Names, at: int, function: Function, feeding: set[str]) -> bool:
    """Whether what stands at ``at`` is part of an index: see the module."""
    begin = at
    while begin > function.begin:
        before = begin - 1
        text = tokens[before].text
        if text in (")", "]"):
            begin = tokens.partner[before]
            continue
        if text == "[":
            return tokens[before - 1].text in names.pointers
        if text == "(" and tokens[before - 1].kind != "word":
            begin = before
            continue
        if text in ("=", "+=", "-="):
            name = tokens[before - 1].text
            if name in names.pointers:
                return True
            return name in feeding
        if text in _STOPS or text in ("}", ";"):
            return False
        if text == "+" and tokens[before - 1].text in names.pointers:
            return True
        begin = before
    return False
