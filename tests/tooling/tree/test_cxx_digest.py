"""A digest names the tokens of a piece of code: layout and comments do not count, everything else does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchstack.tree.cxx_digest import code_digest, code_tokens, comment_digest, comments_of, is_known
from patchstack.tree.text import digest

CODE = b"""// One thread a position.
template <typename T, class Pad = pair<int, vector<int>>>
kernel void shade(
    constant Params& params [[buffer(0)]], uint at [[thread_position_in_grid]]) {
  auto text = "a // b  c"; /* the
     weight */
  float w = 1.5e-3f + at++ - 1'000; // last
  helper<T>(a->b, x >= 2 ? 'c' : R"x( /* raw */ )x");
#if defined(FAST) && \\
    FASTER
  w *= 2;
#endif
}
"""


@settings(max_examples=80, deadline=None)
@given(
    gaps=st.lists(
        st.sampled_from([b" ", b"\n", b"\t", b"\r\n  ", b" /* new */ ", b" // new\n", b"\\\n", b" // \\\n still\n"]),
        min_size=60,
        max_size=60,
    )
)
def test_blanks_and_comments_between_tokens_do_not_count(gaps: list[bytes]) -> None:
    tokens = [token for token in code_tokens(CODE.split(b"#if")[0]) if token != b"\n"]
    written = b"".join(token + gap for token, gap in zip(tokens, [*gaps, *[b" "] * len(tokens)], strict=False))
    assert code_digest(written) == code_digest(CODE.split(b"#if")[0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a->b", b"a.b"),
        (b"at++ - 1", b"at + +-1"),
        (b'"a // b  c"', b'"a // b c"'),
        (b"1.5e-3f", b"1.5e-4f"),
        (b"1.5e-3f", b"1.5 e-3f"),
        (b"/* raw */", b""),
        (b"shade(", b"shades("),
        (b"    FASTER\n  w", b"    FASTER w"),
        (b"x >= 2", b"x > 2"),
    ],
)
def test_every_change_of_a_token_counts(old: bytes, new: bytes) -> None:
    assert old in CODE
    assert code_digest(CODE.replace(old, new)) != code_digest(CODE)


def test_closing_brackets_of_two_templates_may_stand_apart() -> None:
    assert code_digest(CODE.replace(b"int>>>", b"int> > >")) == code_digest(CODE)


def test_the_end_of_a_macro_counts_and_its_continuation_lines_do_not() -> None:
    assert code_digest(b"#define A(x) \\\n  b(x)\nc") == code_digest(b"#define A(x) b(x)\n  c")
    assert code_digest(b"#define A(x) b(x)\nc") != code_digest(b"#define A(x) b(x) c\n")


def test_the_digest_of_a_comment_is_of_its_words() -> None:
    assert comment_digest(b"// One thread\n// a row.\n") == comment_digest(b"  /* One\n   * thread a row. */\n")
    assert comment_digest(b"// One thread\n") != comment_digest(b"// Two threads\n")


def test_comments_are_found_with_their_lines_and_runs_of_lines_are_one() -> None:
    found = comments_of(b'// One\n// thread.\nint a; // why\n\n/* two\n * lines */\nint b = f("// no");\n')
    assert found == [(1, "One thread."), (3, "why"), (5, "two lines")]


def test_a_text_is_known_by_its_tokens_or_by_the_digest_of_all_of_it() -> None:
    reflowed = b"void f( ) { }  // later\n"
    assert is_known(reflowed, [code_digest(b"void f() {}")])
    assert is_known(b"void f() {}", [digest(b"void f() {}")])
    assert not is_known(reflowed, [digest(b"void f() {}")])
