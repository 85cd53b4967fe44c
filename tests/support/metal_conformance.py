"""What the front end accepts and refuses, as pairs of kernels on both sides of each rule's border.

The tests check both sides; ``bench/metal_table.py`` makes ``docs/reference/metal.md`` of the same list. Sections are
those of the Metal Shading Language specification, version 3.2, unless a row says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

_PREFACE = "#include <metal_stdlib>\nusing namespace metal;\n"
_ID = "uint i [[thread_position_in_grid]]"


@dataclass(frozen=True)
class Border:
    """One rule.

    Attributes:
        feature: what it is about.
        source: where the rule comes from.
        accepted: source text on the side that compiles.
        refused: source text on the other side; empty where a feature has no such side.
        version: Metal version that both sides are checked for.
        refused_version: another version for the refused side.
        runs: whether the accepted side can also be executed on a host.
    """

    feature: str
    source: str
    accepted: str
    refused: str = ""
    version: str = "3.1"
    refused_version: str = ""
    runs: bool = True


def complete(text: str) -> str:
    """The source text as a file: with the library, unless it includes what it wants by itself."""
    return text if text.startswith("#include") else _PREFACE + text


def body(text: str, before: str = "") -> str:
    """A kernel with this body."""
    return f"{before}\nkernel void k(device float* o, {_ID}) {{ {text} }}\n"


def takes(text: str) -> str:
    """A kernel with these parameters beside a buffer."""
    return f"kernel void k(device float* o, {text}) {{ o[0] = 1; }}\n"


_TILE = (
    f"template <typename T> kernel void k(device T* o, {_ID}) {{ threadgroup T t[16384]; t[i] = T(1); o[i] = t[i]; }}\n"
)

LIMITS = (
    Border(
        "threadgroup memory, one variable",
        "4.4; Metal Feature Set Tables: 32 KB",
        body("threadgroup float t[8192]; t[i] = 1; o[i] = t[i];"),
        body("threadgroup float t[8193]; t[i] = 1; o[i] = t[i];"),
    ),
    Border(
        "threadgroup memory, several variables",
        "4.4; Metal Feature Set Tables: 32 KB",
        body("threadgroup half a[8192]; threadgroup half b[8191], c; a[i] = 1; b[i] = a[i]; c = 1; o[i] = b[i] + c;"),
        body("threadgroup half a[8192]; threadgroup half b[8192], c; a[i] = 1; b[i] = a[i]; c = 1; o[i] = b[i] + c;"),
    ),
    Border(
        "threadgroup memory, of a template",
        "4.4; Metal Feature Set Tables: 32 KB",
        _TILE + 'template [[host_name("k")]] kernel void k<half>(device half*, uint);\n',
        _TILE + 'template [[host_name("k")]] kernel void k<float>(device float*, uint);\n',
    ),
    Border(
        "threadgroup memory, blocks that exclude each other",
        "4.4",
        body(
            "if (i) { threadgroup float t[5000]; t[i] = 1; o[i] = t[i]; }"
            " else { threadgroup float u[5000]; u[i] = 1; o[i] = u[i]; }"
        ),
        body("threadgroup float t[5000]; t[i] = 1; { threadgroup float u[5000]; u[i] = t[i]; o[i] = u[i]; }"),
    ),
    Border(
        "buffers",
        "5.2.1: 0 to 30",
        takes(f"device float* b [[buffer(30)]], {_ID}"),
        takes(f"device float* b [[buffer(31)]], {_ID}"),
    ),
    Border(
        "threadgroup arguments",
        "5.2.1: 0 to 30",
        takes(f"threadgroup float* b [[threadgroup(30)]], {_ID}"),
        takes(f"threadgroup float* b [[threadgroup(31)]], {_ID}"),
    ),
    Border(
        "one argument at each index",
        "5.2.1",
        takes(f"device float* a [[buffer(1)]], threadgroup float* b [[threadgroup(1)]], {_ID}"),
        takes(f"device float* a [[buffer(1)]], constant float* b [[buffer(1)]], {_ID}"),
    ),
    Border(
        "arrays of no elements",
        "1.5.4 (C++14, 11.3.4)",
        "template <int N> float f() { float t[N]; t[0] = 1; return t[0]; }\n" + body("o[i] = f<1>();"),
        "template <int N> float f() { float t[N]; return N; }\n" + body("o[i] = f<0>();"),
    ),
)

SPACES = (
    Border(
        "local pointers",
        "4",
        body("float x = 1; thread float* p = &x; o[i] = *p;"),
        body("float x = 1; float* p = &x; o[i] = *p;"),
    ),
    Border("expressions that look like declarations", "4", body("bool a = i & 1; a && metal::isnan(o[i]); o[i] = a;")),
    Border("local references", "4", body("device float& r = o[i]; r = 1;"), body("float& r = o[i]; r = 1;")),
    Border(
        "`auto` takes the space of its value",
        "4",
        body("device auto& r = o[i]; auto p = o + 1; auto& q = o[i]; r = *p + q;"),
    ),
    Border(
        "every level of a pointer",
        "4",
        body("device float* p = o; device float* thread* q = &p; o[i] = **q;"),
        body("device float* p = o; device float** q = &p; o[i] = **q;"),
    ),
    Border("casts in C style", "4", body("o[i] = *(device const int*)o;"), body("o[i] = *(const int*)o;")),
    Border(
        "`reinterpret_cast`",
        "4",
        body("o[i] = *reinterpret_cast<device int*>(o);"),
        body("o[i] = *reinterpret_cast<int*>(o);"),
    ),
    Border(
        "`static_cast`",
        "4",
        body("device void* v = o; o[i] = *static_cast<device float*>(v);"),
        body("device void* v = o; o[i] = *static_cast<float*>(v);"),
    ),
    Border(
        "results of functions",
        "4",
        "static device float* f(device float* p) { return p + 1; }\n" + body("o[i] = *f(o);"),
        "static float* f(device float* p) { return p + 1; }\n" + body("o[i] = *f(o);"),
    ),
    Border(
        "results of member functions",
        "4",
        "struct S { device float* p; device float& at(int j) { return p[j]; } };\n" + body("S s{o}; s.at(i) = 1;"),
        "struct S { device float* p; float& at(int j) { return p[j]; } };\n" + body("S s{o}; s.at(i) = 1;"),
    ),
    Border(
        "members of structs",
        "4",
        "struct S { device float* p; };\n" + body("S s; s.p = o; o[i] = *s.p;"),
        "struct S { float* p; };\n" + body("S s; s.p = o; o[i] = *s.p;"),
    ),
    Border(
        "members of templates that nothing instantiates",
        "4",
        "template <typename T> struct S { device T* p; };\n" + body("o[i] = 1;"),
        "template <typename T> struct S { T* p; };\n" + body("o[i] = 1;"),
    ),
    Border(
        "parameters of functions",
        "4",
        "static float f(const device float* p) { return *p; }\n" + body("o[i] = f(o);"),
        "static float f(const float* p) { return *p; }\n" + body("o[i] = f(o);"),
    ),
    Border(
        "references to arrays as parameters",
        "4",
        "static float f(thread float (&a)[4]) { return a[1]; }\n" + body("float a[4] = {}; o[i] = f(a);"),
        "static float f(float (&a)[4]) { return a[1]; }\n" + body("float a[4] = {}; o[i] = f(a);"),
    ),
    Border(
        "names of pointer types",
        "4",
        "using P = device float*;\ntypedef constant int* Q;\n" + body("P p = o; *p = i;"),
        "using P = float*;\n" + body("P p = o; *p = i;"),
    ),
    Border(
        "names of types with a space",
        "4",
        "using F = device float;\n" + body("F* p = o; *p = i;"),
        "using F = float;\n" + body("F* p = o; *p = i;"),
    ),
)

STORAGE = (
    Border(
        "variables at program scope",
        "4.2",
        "constant float c = 2;\n" + body("o[i] = c;"),
        "const float c = 2;\n" + body("o[i] = c;"),
    ),
    Border(
        "`constexpr` at program scope",
        "4.2",
        "constexpr constant float c[2] = {1, 2};\n" + body("o[i] = c[i];"),
        "constexpr float c[2] = {1, 2};\n" + body("o[i] = c[i];"),
    ),
    Border(
        "variables in a namespace",
        "4.2",
        "namespace n { static constant int c = 3; }\n" + body("o[i] = n::c;"),
        "namespace n { static int c = 3; }\n" + body("o[i] = n::c;"),
    ),
    Border(
        "variables after a class",
        "4.2",
        "struct P { int a; };\nconstant P p = {3};\n" + body("o[i] = p.a;"),
        "struct P { int a; } p = {3};\n" + body("o[i] = p.a;"),
    ),
    Border(
        "`constexpr` in a function",
        "4.3",
        body("constexpr int n = 3; o[i] = n;"),
        body("static constexpr int n = 3; o[i] = n;"),
    ),
    Border(
        "statics of a function",
        "4.2",
        body("static constant int n = 3; o[i] = n;"),
        body("static int n = 3; o[i] = n++;"),
    ),
    Border(
        "threadgroup variables belong to kernels",
        "4.4",
        "static float f(threadgroup float* t, uint i) { return t[i]; }\n"
        + body("threadgroup float t[32]; t[i] = i; o[i] = f(t, i);"),
        "static float f(uint i) { threadgroup float t[32]; t[i] = i; return t[i]; }\n" + body("o[i] = f(i);"),
    ),
)

SIGNATURES = (
    Border(
        "a position is unsigned",
        "5.2.3.6, table 5.8",
        takes("ushort3 i [[thread_position_in_grid]]"),
        takes("short3 i [[thread_position_in_grid]]"),
    ),
    Border(
        "a position under another name of its type",
        "5.2.3.6, table 5.8",
        "using index_t = uint32_t;\n" + takes("index_t i [[thread_position_in_grid]]"),
        "using index_t = int32_t;\n" + takes("index_t i [[thread_position_in_grid]]"),
    ),
    Border(
        "a position has up to three components",
        "5.2.3.6, table 5.8",
        takes("vec<uint, 3> i [[threadgroup_position_in_grid]]"),
        takes("uint4 i [[threadgroup_position_in_grid]]"),
    ),
    Border(
        "an index is a scalar",
        "5.2.3.6, table 5.8",
        takes("ushort i [[thread_index_in_simdgroup]]"),
        takes("uint2 i [[thread_index_in_simdgroup]]"),
    ),
    Border(
        "one dimension for all positions",
        "5.2.3.6",
        takes("uint2 i [[thread_position_in_grid]], ushort2 j [[thread_position_in_threadgroup]]"),
        takes("uint2 i [[thread_position_in_grid]], ushort3 j [[thread_position_in_threadgroup]]"),
    ),
    Border(
        "one type for the position and the size of the grid",
        "5.2.3.6",
        takes("uint2 i [[thread_position_in_grid]], uint2 j [[threads_per_grid]]"),
        takes("uint2 i [[thread_position_in_grid]], ushort2 j [[threads_per_grid]]"),
    ),
    Border(
        "the index in a threadgroup beside the position there",
        "5.2.3.6",
        takes("ushort2 i [[thread_position_in_threadgroup]], ushort j [[thread_index_in_threadgroup]]"),
        takes("uint2 i [[thread_position_in_threadgroup]], ushort j [[thread_index_in_threadgroup]]"),
    ),
    Border(
        "attributes that exclude each other",
        "5.2.3.6",
        takes("uint i [[thread_position_in_grid]], uint j [[thread_index_in_simdgroup]]"),
        takes("uint i [[thread_position_in_grid, thread_index_in_simdgroup]]"),
    ),
    Border(
        "the result of a kernel",
        "5.1.2",
        "void kernel k(device float* o) { o[0] = 1; }\n",
        "kernel int k(device float* o) { o[0] = 1; return 1; }\n",
    ),
    Border(
        "calls of kernels",
        "5.1.2",
        "static void a(device float* o, uint i) { o[i] = 1; }\n" + body("a(o, i);"),
        "kernel void a(device float* o, uint i [[thread_position_in_grid]]) { o[i] = 1; }\n" + body("a(o, i);"),
    ),
    Border(
        "calls of kernel templates",
        "5.1.2",
        "template <typename T> void a(device T* o, uint i) { o[i] = 1; }\n" + body("a<float>(o, i);"),
        "template <typename T> kernel void a(device T* o, uint i [[thread_position_in_grid]]) { o[i] = 1; }\n"
        + body("if (i) a<float>(o, i);"),
    ),
)

_TABLE = "constant float c [[function_constant(3)]];\n"

ACCEPTED = (
    Border(
        "function constants",
        "5.8; llama.cpp FC_*, MLX steel",
        _TABLE + body("o[i] = is_function_constant_defined(c) ? c : 4;"),
        _TABLE + body("c = 4; o[i] = c;"),
    ),
    Border(
        "function constants of other constants",
        "5.8",
        _TABLE + "constant float d = is_function_constant_defined(c) ? c * 2 : 1;\n" + body("o[i] = d;"),
    ),
    Border(
        "arithmetic of packed vectors",
        "2.2.3",
        takes("device packed_float3* p").replace("o[0] = 1;", "p[0] = p[1] * 2 + p[2] - float3(1); p[0] /= p[1];"),
        takes("device packed_float3* p").replace("o[0] = 1;", "p[0] = p[1] * packed_float2(1);"),
    ),
    Border(
        "comparison of packed vectors",
        "2.2.3",
        takes("device packed_int3* p").replace("o[0] = 1;", "o[0] = all(p[0] == p[1]) ? 1 : 2;"),
    ),
    Border(
        "conversion of packed vectors",
        "2.2.3",
        takes("device packed_int3* p").replace("o[0] = 1;", "p[0] = packed_int3(packed_float3(1)); p[1] = int3(p[0]);"),
        takes("device packed_int3* p").replace("o[0] = 1;", "p[0] = packed_float3(1);"),
    ),
    Border(
        "functions of matrices",
        "6.7",
        body("float3x3 m = float3x3(2.0); o[i] = determinant(transpose(m) * 2 - m);"),
        body("float2x3 m = float2x3(2.0); o[i] = determinant(m);"),
    ),
    Border(
        "alignment of threadgroup variables",
        "4.4; tinygrad 10971",
        body("threadgroup __attribute__((aligned(16))) float t[32]; t[i] = i; o[i] = t[i];"),
    ),
    Border(
        "member functions that return `thread T&`, before Metal 4.1",
        "4.1.1; mlx 3963",
        "struct S { float v[2]; thread float& at(int j) { return v[j]; } };\n"
        + body("S s; s.at(1) = 2; o[i] = s.at(1);"),
        "struct S { float v[2]; thread float& at(int j) { return v[j]; } };\n"
        + body("S s; s.at(1) = 2; o[i] = s.at(1);"),
        version="4.0",
        refused_version="4.1",
    ),
    Border(
        "`thread T&` of what is elsewhere",
        "4",
        "struct S { device float* p; device float& at(int j) { return p[j]; } };\n" + body("S s{o}; s.at(i) = 2;"),
        "struct S { device float* p; thread float& at(int j) { return p[j]; } };\n" + body("S s{o}; s.at(i) = 2;"),
    ),
    Border(
        "constructors in `thread`",
        "4.1.1; MLX complex_t",
        "struct S { float v; S(float x) thread : v(x) {} };\n" + body("o[i] = S(2).v;"),
        "struct S { float v; S(float x) device : v(x) {} };\n" + body("o[i] = S(2).v;"),
    ),
    Border(
        "uniform values",
        "2.14; MLX gemv",
        body("uniform<int> n = make_uniform(3); o[i] = n + 1;"),
        body("uniform<int> n = make_uniform(o); o[i] = n + 1;"),
    ),
    Border(
        "pointers to `constexpr` tables",
        "4.2; llama.cpp quantize.h",
        "constexpr constant static float t[2] = {1, 2};\nstatic float f(constant float* p) { return p[1]; }\n"
        + body("o[i] = f(t);"),
        "constexpr constant static float t[2] = {1, 2};\nstatic float f(device float* p) { return p[1]; }\n"
        + body("o[i] = f(t);"),
    ),
    Border(
        "logging",
        "6.19",
        "#include <metal_stdlib>\n#include <metal_logging>\nusing namespace metal;\n"
        + body('os_log_default.log("at %u", i); o[i] = 1;'),
        "#include <metal_stdlib>\n#include <metal_logging>\nusing namespace metal;\n"
        + body('os_log_default.log("at %u", i); o[i] = 1;'),
        version="3.2",
        refused_version="3.1",
    ),
    Border(
        "textures: what may be asked of them follows from their access",
        "2.8, 6.12",
        takes("texture2d<float, access::write> t, uint2 i [[thread_position_in_grid]]").replace(
            "o[0] = 1;", "t.write(float4(1), i);"
        ),
        takes("texture2d<float, access::read> t, uint2 i [[thread_position_in_grid]]").replace(
            "o[0] = 1;", "t.write(float4(1), i);"
        ),
        runs=False,
    ),
    Border(
        "textures: atomic functions",
        "6.12",
        takes("texture2d<uint, access::read_write> t").replace("o[0] = 1;", "t.atomic_fetch_add(uint2(0), 1);"),
        takes("texture2d<uint, access::read_write> t").replace("o[0] = 1;", "t.atomic_fetch_add(uint2(0), 1);"),
        refused_version="3.0",
        runs=False,
    ),
    Border(
        "samplers at program scope",
        "2.10",
        "constexpr sampler s(filter::linear, address::repeat);\n"
        + takes("texture2d<float> t").replace("o[0] = 1;", "o[0] = t.sample(s, float2(0)).x;"),
        "constexpr sampler s(2.0);\n"
        + takes("texture2d<float> t").replace("o[0] = 1;", "o[0] = t.sample(s, float2(0)).x;"),
        runs=False,
    ),
    Border(
        "tables of visible functions",
        "2.15",
        takes("visible_function_table<float(float)> t [[buffer(1)]]").replace("o[0] = 1;", "o[0] = t[1](2.0f);"),
        takes("visible_function_table<float(float)> t [[buffer(1)]]").replace("o[0] = 1;", "o[0] = t[1](o, 2.0f);"),
        runs=False,
    ),
    Border(
        "instantiations through the name of a type",
        "5.1.10; llama.cpp",
        "template <typename T> kernel void k(device T* o, uint i [[thread_position_in_grid]]) { o[i] = i; }\n"
        'typedef decltype(k<float>) k_t;\ntemplate [[host_name("k")]] kernel k_t k<float>;\n',
    ),
    Border(
        "`[[kernel]]` beside another attribute",
        "5.1.3; MLX sort",
        "[[kernel, max_total_threads_per_threadgroup(64)]] void k(device float* o, uint i [[thread_position_in_grid]])"
        " { o[i] = 1; }\n",
    ),
    Border(
        "names shared with code for the processor",
        "1.1; SPIRV-Cross",
        "#include <metal_stdlib>\n#include <simd/simd.h>\n"
        + body("simd::float2 v(1); vector_float3 w(2); o[i] = v.x + w.y;"),
    ),
)

BORDERS = (*ACCEPTED, *LIMITS, *SPACES, *STORAGE, *SIGNATURES)
