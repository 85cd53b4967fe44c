"""Names in places that are not code, and code in places that are hard to read."""

from __future__ import annotations

import pytest

from patchstack.tree.cxx import CxxFile, without_arguments

NOT_CODE = {
    "a line comment": "// void target() {}\n",
    "a continued line comment": "// text \\\nvoid target() {}\nint end;\n",
    "a block comment": "/* void target() {} */\n",
    "a block comment that is never closed": "int a;\n/* void target() {}\n",
    "a string": 'const char* text = "void target() {}";\n',
    "a continued string": 'const char* text = "\\\nvoid target() {}";\n',
    "an Objective-C string": 'NSString* text = @"void target() {}";\n',
    "a raw string": 'const char* text = R"METAL(\nvoid target() {}\n)METAL";\n',
    "a prefixed raw string": 'const char* text = u8R"(\nvoid target() {}\n)";\n',
    "a raw string with a quote": 'const char* text = R"(" void target() {} )";\n',
    "a character": "char quote = '\"'; // void target() {}\"\n",
    "a prefixed character": "char quote = u8'\"'; // void target() {}\"\n",
    "an #if 0": "#if 0\nvoid target() {}\n#endif\n",
    "a nested #if 0": "#if 0\n#if 1\nvoid target() {}\n#endif\n#endif\n",
    "an #else of #if 1": "#if 1\nint a;\n#else\nvoid target() {}\n#endif\n",
    "an #elif false": "#if defined(A)\nint a;\n#elif 0\nvoid target() {}\n#endif\n",
    "a macro's replacement": "#define MAKE \\\n  void target() {}\n",
    "a function's body": "void other() {\n  auto f = [] { struct target {}; };\n  target();\n}\n",
    "a declaration": "void target();\nstruct target;\nextern int target(int);\n",
    "a call at namespace scope": "static int a = target();\n",
    "an Objective-C class": "@implementation Paint\n- (void)target {\n}\n@end\n",
    "a longer name": "void retarget() {}\nvoid target_all() {}\n",
}
CODE = {
    "plain": "void target() {}\n",
    "after digit separators": "int a = 1'000'000; int b = 0x'ff;\nvoid target() {}\n",
    "after a character that is a hexadecimal digit": (
        "int a() { switch (b) { case'a': return '{'; } }\nvoid target() {}\n"
    ),
    "after an apostrophe in a comment": "// don't\nvoid target() {}\n// can't\n",
    "after an apostrophe in #error": "#ifdef A\n#error don't\n#endif\nvoid target() {}\n",
    "in an #ifdef": "#ifdef __APPLE__\nvoid target() {}\n#endif\n",
    "in an #else": "#if 0\nint a;\n#else\nvoid target() {}\n#endif\n",
    "behind unbalanced branches": "#ifdef A\nnamespace a {\n#else\nnamespace b {\n#endif\n}\nvoid target() {}\n",
    "with two heads": "#ifdef A\nvoid target(int a)\n#else\nvoid target(long a)\n#endif\n{\n  if (a) {}\n}\n",
    "with an attribute above": "[[maybe_unused]]\nstatic void target() {}\n",
    "with a macro in front": "C10_HOST_DEVICE inline void target() {}\n",
    "a template": "template <typename T, int N = (2 > 1)>\nvoid target(T a) {}\n",
    "a specialisation": "template <>\nvoid target<float>(float a) {}\n",
    "with a block argument": "void target(void (^done)(int)) { done(1); }\n",
    "with message sends": 'void target() {\n  [[a b] c:@{@"k" : @[ @1 ]}];\n}\n',
    "with a trailing return type": "auto target(int a) -> decltype(a) { return a; }\n",
    "with a brace in a character": "void other() { char c = '}'; }\nvoid target() {}\n",
    "with carriage returns": "void other() {\r\n}\r\nvoid target() {\r\n}\r\n",
    "with a byte order mark": "\ufeffvoid target() {}\n",
    "without a final line feed": "void target() {}",
    "implemented through a macro": "TORCH_IMPL_FUNC(target)(const Tensor& a) {\n  run(a);\n}\n",
    "in extern C": 'extern "C" {\nvoid target() {}\n}\n',
}


def functions(source: str) -> list[str]:
    kinds = ("function", "kernel", "struct")
    return [d.name for d in CxxFile(source.encode()).definitions if d.kind in kinds]


@pytest.mark.parametrize("source", NOT_CODE.values(), ids=NOT_CODE.keys())
def test_a_name_is_not_found_in(source: str) -> None:
    assert "target" not in functions(source + "void last() {}\n")


@pytest.mark.parametrize(
    "source", [s for s in NOT_CODE.values() if "never" not in s and "/* void target() {}\n" not in s]
)
def test_what_follows_such_text_is_still_found(source: str) -> None:
    assert functions(source + "void last() {}\n")[-1] == "last"


@pytest.mark.parametrize("source", CODE.values(), ids=CODE.keys())
def test_a_definition_is_found_once(source: str) -> None:
    assert functions(source).count("target") == 1


def test_latin_1_bytes_in_comments_and_strings_do_not_shift_anything() -> None:
    data = 'const char* a = "é";  // ü\nvoid target() {} // ß\n'.encode("latin-1")
    (found,) = (d for d in CxxFile(data).definitions if d.name == "target")
    assert data[found.start : found.end] == b"void target() {} // \xdf\n"


@pytest.mark.parametrize(
    ("source", "scopes"),
    [
        ("namespace a {\nvoid f() {}\n}\nnamespace b {\nvoid f() {}\n}\n", ["a", "b"]),
        ("namespace a::b {\nvoid f() {}\n}\n", ["a::b"]),
        ("namespace a {\nnamespace {\nvoid f() {}\n}\n}\n", ["a::(anonymous)"]),
        ("namespace a {\nvoid f() {}\n}\nnamespace a {\nvoid f(int) {}\n}\n", ["a", "a"]),
        ("inline namespace a {\nvoid f() {}\n}\n", ["a"]),
        ("struct S {\n  void f() {}\n  struct T {\n    void f() {}\n  };\n};\n", ["S", "S::T"]),
        ("namespace a { namespace b { void f() {} } }\n", ["a::b"]),
    ],
)
def test_a_function_has_the_scope_it_stands_in(source: str, scopes: list[str]) -> None:
    assert [d.scope for d in CxxFile(source.encode()).definitions if d.name == "f"] == scopes


def test_overloads_and_specialisations_are_separate_definitions() -> None:
    source = "template <class T>\nT f(T a) {}\ntemplate <>\nint f<int>(int a) {}\nfloat f(float a) {}\n"
    assert functions(source) == ["f", "f", "f"]


def test_a_member_defined_outside_its_template_class_keeps_its_name() -> None:
    assert functions("template <class T>\nvoid Box<T, 2>::open(T a) {}\n") == ["Box::open"]


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("f", "f"),
        ("f<int>", "f"),
        ("A<B<C>, 3>::f", "A::f"),
        ("operator<", "operator<"),
        ("A<int>::operator<<", "A::operator<<"),
        ("operator()", "operator()"),
        ("operators<int>", "operators"),
        ("my_operator<int>", "my_operator"),
    ],
)
def test_template_arguments_are_not_part_of_a_name(written: str, plain: str) -> None:
    assert without_arguments(written) == plain


@pytest.mark.parametrize(
    "head", ["kernel void", "[[kernel]] void", "template <class T>\nkernel void", "[[kernel]]\nvoid"]
)
def test_a_kernel_is_told_from_a_function(head: str) -> None:
    file = CxxFile(f"{head} run(device float* out [[buffer(0)]]) {{\n}}\n\nvoid plain(float a) {{}}\n".encode())
    assert [(d.kind, d.name) for d in file.definitions] == [("kernel", "run"), ("function", "plain")]
    assert file.definitions[0].start == 0


def test_a_comment_belongs_to_the_definition_below_it_and_a_macro_call_does_not() -> None:
    source = b"int a;\n\n// One.\n/* Two. */\nvoid f() {}\n\nREGISTER_IT(f);\nvoid g() {}\n\n"
    source += b"int b; /* three\nfour */\nvoid h() {}\n"
    file = CxxFile(source)
    above = {d.name: source[file.comment_start(d) : d.start] for d in file.definitions if d.kind == "function"}
    assert above == {"f": b"// One.\n/* Two. */\n", "g": b"", "h": b""}


def test_includes_are_grouped_into_blocks_of_adjacent_lines() -> None:
    source = '#include <a.h>\n#include "b.h"\n\n#include <c.h>\n#if 0\n#include <d.h>\n#endif\n// #include <e.h>\n'
    assert [(i.path, i.block) for i in CxxFile(source.encode()).includes] == [("a.h", 0), ("b.h", 0), ("c.h", 1)]


VARIABLES = {
    "a constant": ("constexpr int a = 3;\n", ["a"]),
    "a Metal constant": ("constant constexpr float LIMIT = 1e20f;\n", ["LIMIT"]),
    "a reference": ("static auto& lib = mps::Library::get();\n", ["lib"]),
    "a pointer": ('static const char* name = "x";\n', ["name"]),
    "an array": ("constant int sizes[] = {1, 2};\n", ["sizes"]),
    "a member defined outside": ("template <typename T>\nint Foo<T>::count = 0;\n", ["Foo::count"]),
    "two of one line": ("int a = 1, b = 2;\n", ["a", "b"]),
    "a declaration of what is elsewhere": ("extern int a;\nint f(int);\n", []),
    "one inside a function": ("void f() {\n  int a = 1;\n}\n", []),
}


@pytest.mark.parametrize(("source", "names"), VARIABLES.values(), ids=VARIABLES.keys())
def test_a_variable_with_its_value_is_a_definition(source: str, names: list[str]) -> None:
    assert [d.name for d in CxxFile(source.encode()).definitions if d.kind == "variable"] == names


@pytest.mark.parametrize("space", ["thread", "device", "constant", "threadgroup"])
def test_a_method_of_an_address_space_is_read(space: str) -> None:
    file = CxxFile(f"struct A {{\n  int at(int x) const {space} {{\n    return x;\n  }}\n}};\n".encode())
    assert not file.broken
    assert [d.qualified for d in file.definitions] == ["A", "A::at"]


def test_the_preprocessor_branches_around_a_place_are_known_outermost_first() -> None:
    file = CxxFile(b"#ifdef A\n#if defined(B) && \\\n  C\nint x;\n#else\nint y;\n#endif\n#endif\nint z;\n")
    assert file.conditions_at(file.data.index(b"int x")) == ("#ifdef A, branch 1", "#if defined(B) && C, branch 1")
    assert file.conditions_at(file.data.index(b"int y"))[1].endswith("branch 2")
    assert file.conditions_at(file.data.index(b"int z")) == ()


@pytest.mark.parametrize(
    ("source", "pair"),
    [
        ("namespace a {\nvoid f() {\n}\n}\n", True),
        ("namespace a {\nvoid f() {\n}\n", False),
        ("}\nnamespace a {\n", False),
        ('const char* a = "}";\n', True),
        ("#if A\n", False),
    ],
)
def test_whether_braces_pair_is_known(source: str, pair: bool) -> None:
    assert CxxFile(source.encode()).braces_pair is pair
