"""Which uses of a name are found, in small files of a tree in memory."""

from __future__ import annotations

import pytest

from edit_bench import tree_of
from patchstack.closure import Contents, newly_missing
from patchstack.closure.headers import Headers

HOST = "aten/src/ATen/native/mps/operations/Tint.mm"
METAL = "aten/src/ATen/native/mps/kernels/Tint.metal"
HEADER = "aten/src/ATen/native/mps/kernels/Tint.h"
NATIVE = "aten/src/ATen/native/native_functions.yaml"
TREE = {
    "aten/src/ATen/ATen.h": b"namespace at { class Tensor {}; }\n",
    "c10/macros/Macros.h": b"#define C10_API\n",
    NATIVE: b"- func: zeros(int n) -> Tensor\n- func: tint(Tensor s) -> Tensor\n  dispatch:\n    MPS: tint_mps\n",
    HEADER: b"#pragma once\nstruct TintParams { int size; };\n",
}


def missing(files: dict[str, str], before: dict[str, str] | None = None) -> list[str]:
    """What a change that leaves ``files`` would miss, as ``user: name, problem``."""
    below = tree_of({**TREE, **{path: text.encode() for path, text in (before or {}).items()}})
    after = below.with_files({path: text.encode() for path, text in files.items()})
    return [f"{m.user}: {m.name}, {m.problem}" for m in newly_missing(below, after, files, list(files), Contents())]


NOWHERE = "defined nowhere that this file sees"


class TestANameIsFound:
    @pytest.mark.parametrize(
        "text",
        [
            "int twice(int a) { return a + a; }",
            "template <typename T, int N> T add(T a) { T sum[N]; for (auto& s : sum) { a += s; } return a; }",
            "struct Pair { int first() const { return second; } int second = 0; };",
            "int last(const int* p, unsigned n) { const auto* q = p; int a = 1, b[2] = {n, a}; return q[b[0]]; }",
            "enum class Mode { A, B }; bool is_b(Mode m) { return m == Mode::B; }",
            "auto [a, b] = std::make_pair(1, 2); int c = a + b;",
            "int f(int n) { auto g = [k = n](int m) { return k + m; }; goto end; end: return g(n); }",
            "namespace a::b { struct S {}; int take(S); } int g() { return take(a::b::S{}); }",
            "namespace a { int f(); } using namespace a; int g() { return f(); }",
            "namespace a { int f(); } using a::f; int g() { return f(); }",
            "#define DECLARE(name) int name(int)\nDECLARE(made);\nint g() { return made(1); }",
            "#define STRUCT(x) struct Tint##x { int size; }\nSTRUCT(Small);\nint g(TintSmall t) { return t.size; }",
            "#ifdef A\nint f() { return 1; }\n#else\nint f() { return 2; }\n#endif\nint g() { return f(); }",
            "#ifdef A\nint f() { return 1; }\n#endif\n#ifdef A\nint g() { return f(); }\n#endif",
            "int f(int a, int b = 2); int g() { return f(1) + f(1, 2); }",
            "template <typename... T> int f(T... t); int g() { return f(1, 2, 3); }",
            "int f(int a); int g(bool a, bool b) { return f(std::max<int, int>(a, b)); }",
        ],
    )
    def test_where_the_file_declares_it(self, text: str) -> None:
        assert missing({HOST: text}) == []

    def test_in_messages_and_blocks_of_objective_c(self) -> None:
        text = """
        void run(id<MTLBuffer> buffer, int count) {
          dispatch_sync(queue(), ^() {
            @autoreleasepool {
              [[buffer device] setBuffer:buffer offset:count atIndex:0];
              NSArray* all = @[ buffer ];
              [all count];
            }
          });
        }
        """
        assert missing({HOST: "int queue();\n" + text}) == []

    def test_in_metal_with_its_attributes_and_address_spaces(self) -> None:
        text = """
        #include <metal_stdlib>
        using namespace metal;
        template <typename T>
        kernel void tint(device T* out [[buffer(0)]], constant float4& colour, uint id [[thread_position_in_grid]]) {
          threadgroup float sums[32];
          thread const T& first = out[id];
          sums[0] = simd_sum(fabs(float(first)));
          threadgroup_barrier(mem_flags::mem_threadgroup);
          out[id] = as_type<T>(::metal::clamp(sums[0], colour.x, 1.0f));
        }
        #define REGISTER(T) template [[host_name("tint_" #T)]] kernel void tint<T>(device T*, constant float4&, uint)
        REGISTER(float);
        """
        assert missing({METAL: text}) == []

    def test_in_a_header_and_what_that_includes(self) -> None:
        files = {HEADER: "#include <c10/deep.h>\n", "c10/deep.h": "#include <c10/deeper.h>", "c10/deeper.h": "int f();"}
        host = "#include <ATen/native/mps/kernels/Tint.h>\nint g() { return f(); }"
        assert missing({HOST: host}, files) == []

    def test_in_a_header_that_only_a_build_makes(self) -> None:
        headers = ("ATen/ops/zeros.h", "ATen/ops/tint_native.h", "ATen/native/mps/Tint_metallib.h")
        host = "".join(f"#include <{header}>\n" for header in headers)
        assert missing({HOST: host + "int g() { return at::zeros(1) + tint_mps(2) + lib; }"}) == []

    def test_in_both_branches_of_an_include_block(self) -> None:
        host = (
            "#ifndef AT_PER_OPERATOR_HEADERS\n#include <ATen/Functions.h>\n#else\n#include <ATen/ops/zeros.h>\n#endif\n"
        )
        assert missing({HOST: host + "int g() { return at::zeros(1); }"}) == []

    def test_in_what_stands_before_the_include_line_of_a_header(self) -> None:
        host = "struct Size {};\n#include <ATen/native/mps/kernels/Tint.h>\n"
        assert missing({HEADER: "struct TintParams { Size size; };", HOST: host}) == []


class TestANameIsMissed:
    def test_that_is_defined_nowhere(self) -> None:
        assert missing({HOST: "int g() { return shade(1); }"}) == [f"g: shade, {NOWHERE}"]

    def test_that_only_a_comment_of_a_header_has(self) -> None:
        host = "#include <ATen/native/mps/kernels/Tint.h>\nint g() { return shade(1); }"
        assert missing({HOST: host}, {HEADER: "// shade\n"}) == [f"g: shade, {NOWHERE}"]

    def test_that_is_a_type_a_template_argument_or_a_macro(self) -> None:
        text = "int g(Missing a) { return Box<Other>::size + SHADE(a); }\ntemplate <typename T> struct Box {};"
        names = {line.split(",")[0] for line in missing({HOST: text})}
        assert names == {"g: Missing", "g: Box::size", "g: Other", "g: SHADE"}

    def test_that_is_no_enumerator(self) -> None:
        assert missing({HOST: "enum class Mode { A };\nMode g() { return Mode::B; }"}) == [
            "g: Mode::B, no member of Mode"
        ]

    def test_that_is_defined_below(self) -> None:
        text = "int g() { return f(); }\nint f() { return 1; }\n"
        assert missing({HOST: text}) == ["g: f, defined only below, at line 2"]

    def test_that_is_inside_an_if(self) -> None:
        text = "#ifdef WIDE\nint f() { return 1; }\n#endif\nint g() { return f(); }\n"
        assert missing({HOST: text}) == ["g: f, defined only inside the #if of line 1"]

    def test_that_is_in_another_namespace(self) -> None:
        text = "namespace mps {\nint f() { return 1; }\n}\nint g() { return f(); }\n"
        assert missing({HOST: text}) == ["g: f, defined only in mps"]

    def test_that_is_qualified_with_a_namespace_which_lacks_it(self) -> None:
        text = "int f();\nnamespace mps {\nint h();\n}\nint g() { return mps::f(); }\n"
        assert missing({HOST: text}) == [f"g: mps::f, {NOWHERE}"]

    def test_that_an_operator_header_would_bring_which_is_not_included(self) -> None:
        assert missing({HOST: "#include <ATen/ops/tint.h>\nint g() { return at::zeros(1); }"}) == [
            f"g: at::zeros, {NOWHERE}"
        ]

    def test_that_only_one_configuration_includes(self) -> None:
        host = (
            "#ifndef AT_PER_OPERATOR_HEADERS\n#include <ATen/Functions.h>\n#else\n#include <ATen/ops/tint.h>\n#endif\n"
        )
        assert missing({HOST: host + "int g() { return at::zeros(1); }"}) == [f"g: at::zeros, {NOWHERE}"]

    def test_of_a_header_that_one_of_its_includers_does_not_give(self) -> None:
        files = {
            HEADER: "struct TintParams { Mode mode; };",
            HOST: "enum class Mode { A };\n#include <ATen/native/mps/kernels/Tint.h>\n",
            METAL: "#include <ATen/native/mps/kernels/Tint.h>\n",
        }
        assert missing(files) == [f"TintParams: Mode, {NOWHERE}"]

    def test_in_the_body_of_a_macro_that_is_called(self) -> None:
        text = "#define RUN(x) shade(x)\nint g() { return RUN(1); }\n"
        assert missing({HOST: text}) == [f"RUN: shade, {NOWHERE}"]

    def test_and_the_instantiation_of_a_kernel_that_went(self) -> None:
        text = 'template [[host_name("tint_float")]] kernel void tint<float>(device float*);\n'
        assert missing({METAL: text}) == [f": tint, {NOWHERE}"]

    def test_and_an_include_line_that_leads_nowhere(self) -> None:
        assert missing({HOST: "#include <ATen/native/Tints.h>\n"}) == [
            ": #include <ATen/native/Tints.h>, not in this tree"
        ]
        assert missing({HOST: "#include <ATen/ops/tints.h>\n"}) == [": #include <ATen/ops/tints.h>, not in this tree"]


class TestACallIsMissed:
    def test_with_another_number_of_arguments(self) -> None:
        text = "int f(int a, int b) { return a + b; }\nint g() { return f(1); }\n"
        assert missing({HOST: text}) == ["g: f, called with 1 argument, takes 2"]

    def test_of_a_macro_with_another_number_of_arguments(self) -> None:
        text = "#define ADD(a, b) a + b\nint g() { return ADD(1, 2, 3); }\n"
        assert missing({HOST: text}) == ["g: ADD, called with 3 arguments, takes 2"]

    def test_unless_an_overload_takes_them(self) -> None:
        assert missing({HOST: "int f(int a, int b);\nint f(int a);\nint g() { return f(1); }\n"}) == []


class TestACallerThatStays:
    BEFORE = "int f(int a) { return a; }\nint g() { return f(1); }\n"

    def test_is_missed_where_a_parameter_has_another_type_now(self) -> None:
        after = self.BEFORE.replace("f(int a)", "f(Mode a)").replace("int f", "enum Mode {};\nint f", 1)
        problem = "called as before, though its parameters are others now"
        assert missing({HOST: after}, {HOST: self.BEFORE}) == [f"g: f, {problem}"]

    def test_is_not_where_a_parameter_is_taken_by_reference_or_named_otherwise_now(self) -> None:
        assert (
            missing(
                {HOST: self.BEFORE.replace("f(int a) { return a", "f(const int& b) { return b")}, {HOST: self.BEFORE}
            )
            == []
        )

    def test_is_not_where_it_changed_too(self) -> None:
        after = self.BEFORE.replace("f(int a)", "f(long a)").replace("f(1)", "f(1L)")
        assert missing({HOST: after}, {HOST: self.BEFORE}) == []


class TestAKernelIsMissed:
    @pytest.mark.parametrize(
        ("asked", "problem"),
        [
            ('"tint_wide_float"', []),
            ('fmt::format("tint_{}_{}", 1, 2)', []),
            ('fmt::format("{}_wide_{}", 1, 2)', []),
            ('"shade_float"', ["run: kernel shade_float, registered by no shader file"]),
            ('fmt::format("shade_{}", 1)', ["run: kernel shade_{}, registered by no shader file"]),
        ],
    )
    def test_that_no_shader_file_registers(self, asked: str, problem: list[str]) -> None:
        metal = '#define R(T) template [[host_name("tint_wide_" #T)]] kernel void tint<T>(device T*)\n'
        host = f"int lib;\nvoid run() {{ auto pso = lib.getPipelineStateForFunc({asked}); }}"
        assert missing({HOST: host, METAL: metal}) == problem


class TestWhatATreeLackedBefore:
    def test_is_not_the_changes(self) -> None:
        before = "int g() { return shade(1); }"
        assert missing({HOST: before + "\nint h() { return 2; }"}, {HOST: before}) == []

    def test_makes_names_of_nowhere_uncertain_in_that_file_and_leaves_the_others(self) -> None:
        before = "int g() { return shade(1); }\n"
        after = before + "int h() { return other() + below(); }\nint below() { return 1; }\n"
        tree = tree_of({**TREE, HOST: before.encode()})
        found = newly_missing(tree, tree.with_files({HOST: after.encode()}), [HOST], [HOST], Contents())
        assert [(m.name, m.is_certain) for m in found] == [("other", False), ("below", True)]

    def test_a_header_that_nothing_is_known_of_makes_them_uncertain_too(self) -> None:
        tree = tree_of(TREE)
        after = tree.with_files({HOST: b"#include <vendor/paint.h>\nint g() { return shade(1); }"})
        assert [m.is_certain for m in newly_missing(tree, after, [HOST], [HOST], Contents())] == [False]

    def test_a_header_that_was_not_fetched_makes_them_uncertain_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tree = tree_of(TREE)
        after = tree.with_files({HOST: b"#include <c10/far.h>\nint g() { return shade(1); }", "c10/far.h": b""})
        read = Headers._read

        def fetched(headers: Headers, path: str) -> bytes:
            if path == "c10/far.h":
                headers.lacks_objects = True
            return read(headers, path)

        monkeypatch.setattr(Headers, "_read", fetched)
        assert [m.is_certain for m in newly_missing(tree, after, [HOST], [HOST], Contents())] == [False]


class TestAnIfOfTheTreesOwn:
    BEFORE = "#if A\nint f() { return 1; }\n#endif\nint g() { return f(); }\n"

    def test_hides_nothing_more_where_lines_are_put_above_it(self) -> None:
        assert missing({HOST: f"int first() {{ return 0; }}\n\n{self.BEFORE}"}, {HOST: self.BEFORE}) == []

    def test_hides_the_name_from_a_new_user(self) -> None:
        found = missing({HOST: f"{self.BEFORE}int h() {{ return f(); }}\n"}, {HOST: self.BEFORE})
        assert found == ["h: f, defined only inside the #if of line 1"]
