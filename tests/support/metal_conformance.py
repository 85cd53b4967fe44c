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

LIBRARY = (
    Border(
        "vectors of integers: `abs`, `min`, `max`, `clamp`",
        "6.4; SPIRV-Cross",
        body("int3 v = clamp(min(int3(i), max(abs(int3(-2)), int3(1))), int3(0), int3(5)); o[i] = v.x;"),
        body("uint3 v = abs(int3(-2)); o[i] = v.x;"),
    ),
    Border(
        "`numeric_limits` and `is_integral` of vectors",
        "SPIRV-Cross",
        body("o[i] = numeric_limits<float4>::max().w + (is_integral<int4>::value ? 1 : 2);"),
    ),
    Border(
        "`sign` of integers is the source's to define",
        "6.5; SPIRV-Cross",
        "template <typename T, typename E = typename enable_if<is_integral<T>::value>::type> T sign(T x)"
        " { return select(T(1), T(-1), x < T(0)); }\n" + body("o[i] = sign(int4(i)).x;"),
    ),
    Border("`refract`", "6.8", body("o[i] = refract(float2(1, 2), float2(0, 1), 0.5f).x;")),
    Border(
        "packing of 16 bits",
        "6.14",
        body("o[i] = unpack_snorm2x16_to_float(pack_float_to_snorm2x16(float2(0.5f, -1))).y;"),
        body("o[i] = unpack_snorm2x16_to_float(float2(1)).y;"),
    ),
    Border(
        "quadgroups vote",
        "6.9.3",
        body("quad_vote v = quad_ballot(i > 1); o[i] = v.any() + quad_all(i > 0) + quad_any(i > 2) + quad_is_first();"),
        body("simd_vote v = quad_ballot(i > 1); o[i] = v.any();"),
    ),
    Border(
        "quadgroups rotate",
        "6.9.3",
        body("o[i] = quad_shuffle_rotate_down(o[i], 1) + quad_shuffle_rotate_up(o[i], ushort(2));"),
    ),
    Border(
        "products of simdgroup matrices",
        "6.7.3; MLX winograd",
        body("simdgroup_float8x8 a(2.0f), b(3.0f); simdgroup_float8x8 c = a * b; o[i] = c.thread_elements()[0];"),
        body("simdgroup_float8x8 a(2.0f); simdgroup_half8x8 b(3.0h); simdgroup_float8x8 c = a * b;"),
    ),
    Border(
        "lists for functions: `initializer_list`",
        "SPIRV-Cross",
        "struct S { float a[2]; thread S& operator=(initializer_list<float> c) thread"
        " { thread float* p = c.begin(); a[0] = p[0]; a[1] = p[1]; return *this; } };\n"
        + body("S s; s = {1.0f, 2.0f}; o[i] = s.a[1];"),
    ),
    Border(
        "`void_t` is no name of Metal's",
        "MLX steel",
        "namespace metal { template <typename... T> struct make_void { typedef void type; };"
        " template <typename... T> using void_t = typename make_void<T...>::type; }\n" + body("o[i] = 1;"),
    ),
    Border(
        "`remove_addrspace`",
        "MLX steel",
        body("constexpr int n = 3; using T = remove_addrspace_t<decltype(n)>; T m = 4; o[i] = m;"),
    ),
    Border(
        "matrix products on cooperative tensors",
        "Metal Performance Primitives; MLX nax",
        "#include <metal_stdlib>\n#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n"
        "using namespace metal;\n"
        + body(
            "constexpr auto d = mpp::tensor_ops::matmul2d_descriptor(16, 32, 16);"
            " mpp::tensor_ops::matmul2d<d, execution_simdgroup> op;"
            " auto a = op.get_left_input_cooperative_tensor<half, half, float>(); a[0] = 1; o[i] = a[0];"
        ),
        "#include <metal_stdlib>\n#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>\n"
        "using namespace metal;\n" + body("constexpr auto d = mpp::tensor_ops::matmul2d_descriptor(16, 32, 16);"),
        version="4.0",
        refused_version="3.2",
        runs=False,
    ),
)

WORDING = (
    Border(
        "empty lists for constants",
        "2.2; SPIRV-Cross",
        "constant int3 zero = {};\n" + body("o[i] = zero.y;"),
        "constant int3 zero;\n" + body("o[i] = zero.y;"),
    ),
    Border(
        "lists with fewer elements than the vector",
        "2.2; MLX random",
        body("uint4 v = {i, 2u, i ^ 3u}; o[i] = v.w;"),
        body("uint4 v = {i, 2u, 3u, 4u, 5u}; o[i] = v.w;"),
    ),
    Border(
        "sizes of vectors of any integer type",
        "SPIRV-Cross",
        "template <uint N> vec<int, N> twice(vec<int, N> v) { return v + v; }\n" + body("o[i] = twice(int3(2)).x;"),
        "template <uint N> vec<int, N> twice(vec<int, N> v) { return v + v; }\n" + body("o[i] = twice(float3(2)).x;"),
    ),
    Border(
        "members of classes, repeated outside",
        "C++14; MLX conv",
        "struct W { static constexpr constant float a[2] = {1, 2}; };\nconstant constexpr const float W::a[2];\n"
        + body("o[i] = W::a[1];"),
    ),
    Border(
        "lists for threadgroup variables",
        "4.4; MLX layer_norm",
        body("threadgroup float t[32] = {0}; t[i] = o[i]; o[i] = t[i];"),
    ),
    Border(
        "pointers passed by reference",
        "4; MLX quantized",
        "void step(device float*& p) { p += 1; }\n" + body("device float* p = o; step(p); *p = 1;"),
        "void step(float*& p) { p += 1; }\n" + body("device float* p = o; step(p); *p = 1;"),
    ),
    Border(
        "constant references to temporaries",
        "4; MLX steel",
        "float f(thread const short& n, const thread int& m) { return n + m; }\n" + body("o[i] = f(i + 1, 2);"),
        "float f(thread short& n) { return n; }\n" + body("o[i] = f(i + 1);"),
    ),
    Border(
        "`constant T&` of what is `const constant`",
        "4.2; MLX quantized",
        "float f(constant int& n) { return n; }\n"
        f"kernel void k(device float* o, const constant int& n [[buffer(1)]], {_ID}) {{ o[i] = f(n); }}\n",
        "float f(constant int& n) { n = 2; return n; }\n"
        f"kernel void k(device float* o, const constant int& n [[buffer(1)]], {_ID}) {{ o[i] = f(n); }}\n",
    ),
    Border(
        "named types of functions as template parameters",
        "5.1.10; MLX fft",
        "template <typename T> using F = void (*)(thread T*);\n"
        "template <typename T, F<T> f> void call(thread T* x) { f(x); }\n"
        "void one(thread float* x) { *x = 1; }\n" + body("float x; call<float, one>(&x); o[i] = x;"),
    ),
    Border(
        "conditionals at the end of template arguments",
        "C++14, 14.2; MLX quantized",
        "template <bool B, int N> struct P { enum { n = N }; };\n"
        "template <bool T> struct Q { using type = P<T, T ? 1 : 2>; };\n" + body("o[i] = Q<true>::type::n;"),
    ),
    Border(
        "pointers and what is converted to a number",
        "C++14, 5.7; MLX steel",
        "template <typename T, T v> struct C { constexpr operator T() const thread { return v; } };\n"
        + body("device float* p = o; C<int, 1> one; p += one; *p = 1;"),
        "struct C { };\n" + body("device float* p = o; C one; p += one; *p = 1;"),
    ),
    Border(
        "conversions of temporaries",
        "C++14, 12.3.2; MLX steel",
        "struct C { bool b; constexpr operator bool() const thread { return b; } };\nC c() { return C{true}; }\n"
        + body("if (c() && c()) o[i] = 1;"),
    ),
    Border(
        "members of unions that are spelled like a swizzle",
        "2.2.1; MLX reduce",
        "union U { bool4 b; uint i; };\n" + body("U u; u.b = {true, true, false, true}; o[i] = u.i;"),
    ),
    Border(
        "bfloat of what is converted to a number",
        "2.1; MLX steel",
        "struct M { char x; constexpr operator bool() { return true; } };\n"
        + body("M m{1}; bfloat b = bfloat(m); b = m; o[i] = b;"),
        body("bfloat b; b = 1.5f; o[i] = b;"),
    ),
    Border(
        "bfloat constants of constants",
        "2.1; MLX arg_reduce",
        "template <typename T> struct L { static constexpr constant T most = T(3); };\n"
        "template <typename T> struct A { static constexpr constant T init = L<T>::most; };\n"
        + body("o[i] = float(A<bfloat>::init);"),
    ),
)

_SIZES = "struct P { int h; long w; int sizes[3]; };\n"


def indexes(text: str, before: str = "") -> str:
    """A kernel to which the host hands sizes and strides."""
    more = "constant P& p, constant int* st, uint3 i [[thread_position_in_grid]]"
    return f"{_SIZES}{before}kernel void k(device float* o, {more}) {{ {text} }}\n"


VERSIONS = (
    Border(
        "`coherent` buffers",
        "4.8; Metal 3.2",
        f"kernel void k(device float* o, coherent device float* p, {_ID}) {{ o[i] = p[i]; }}\n",
        f"kernel void k(device float* o, coherent device float* p, {_ID}) {{ o[i] = p[i]; }}\n",
        version="3.2",
        refused_version="3.1",
    ),
    Border("bfloat", "2.1; Metal 3.1", body("o[i] = bfloat(1);"), body("o[i] = bfloat(1);"), refused_version="3.0"),
)

OFFSETS = (
    Border(
        "a field of 32 bits in an index", "pytorch 144413", indexes("o[i.y * p.w] = 1;"), indexes("o[i.y * p.h] = 1;")
    ),
    Border(
        "an array of 32-bit strides",
        "pytorch 144413",
        indexes("o[long(i.y) * st[1]] = 1;"),
        indexes("o[i.y * st[1]] = 1;"),
    ),
    Border(
        "through a variable of another name",
        "arithmetic",
        indexes("int inp_sH = p.h; long batch_offset = long(i.z) * inp_sH; o[batch_offset + i.x] = 1;"),
        indexes("int inp_sH = p.h; int batch_offset = i.z * inp_sH; o[batch_offset + i.x] = 1;"),
    ),
    Border(
        "a product that is widened too late",
        "arithmetic",
        indexes("long at = (long)i.z * p.h; o[at] = 1;"),
        indexes("long at = i.z * p.h; o[at] = 1;"),
    ),
    Border(
        "through a helper function",
        "arithmetic",
        indexes("f(o, i.y, p.h);", "void f(device float* o, long row, int width) { o[row * width] = 1; }\n"),
        indexes("f(o, i.y, p.h);", "void f(device float* o, int row, int width) { o[row * width] = 1; }\n"),
    ),
    Border(
        "in the sum with a pointer",
        "arithmetic",
        indexes("device float* q = o; q += size_t(i.x) * p.sizes[2]; *q = 1;"),
        indexes("device float* q = o; q += i.x * p.sizes[2]; *q = 1;"),
    ),
    Border(
        "what is no index, or is said to be meant",
        "arithmetic",
        indexes("int n = p.h * p.sizes[0]; o[i.x] = n;\no[i.y * p.h] = 1; // NOLINT(narrow-offset)\n"),
    ),
)

BORDERS = (*VERSIONS, *OFFSETS, *ACCEPTED, *WORDING, *LIBRARY, *LIMITS, *SPACES, *STORAGE, *SIGNATURES)
