"""Names that no file of the tree has to define: of the languages, of their libraries, of Apple's frameworks."""

from __future__ import annotations

import re

_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int
    long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template
    this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
    while xor xor_eq final override defined _Pragma typeof restrict
"""
KEYWORDS = frozenset(_KEYWORDS.split())
"""Of C++, with the words that are names elsewhere and never of a thing that a file would define."""

_SPECIFIERS = """
    const constexpr static inline extern volatile mutable virtual explicit friend register thread_local noexcept
    final override constant device thread threadgroup kernel vertex fragment object_data ray_data
    threadgroup_imageblock coherent __block __strong __weak __unsafe_unretained __restrict restrict
"""
SPECIFIERS = frozenset(_SPECIFIERS.split())
"""What stands around a type and is none."""

_NOT_TYPES = """
    return case goto new delete throw else do sizeof alignof co_return co_await co_yield and or not in operator
    typedef public private protected if while switch for template and_eq xor bitand bitor compl default
"""
NOT_TYPES = frozenset(_NOT_TYPES.split())
"""Words behind which a name is used, not declared."""

_METAL = """
    half bfloat uchar ushort uint ulong ptrdiff_t size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t
    uint64_t uintptr_t intptr_t device constant thread threadgroup kernel vertex fragment threadgroup_imageblock
    coherent metal c10 vec matrix packed array sampler atomic atomic_bool atomic_int atomic_uint atomic_float
    atomic_ulong memory_order memory_order_relaxed memory_order_seq_cst mem_flags thread_scope access address filter
    coord atomic_thread_fence atomic_load_explicit atomic_store_explicit atomic_exchange_explicit
    atomic_compare_exchange_weak_explicit atomic_fetch_add_explicit atomic_fetch_sub_explicit
    atomic_fetch_and_explicit atomic_fetch_or_explicit atomic_fetch_xor_explicit atomic_fetch_max_explicit
    atomic_fetch_min_explicit threadgroup_barrier simdgroup_barrier as_type select mix step smoothstep sign saturate
    clamp abs absdiff addsat clz ctz extract_bits insert_bits hadd madhi madsat max max3 median3 min min3 mulhi
    mul24 mad24 popcount reverse_bits rhadd rotate subsat acos acosh asin asinh atan atan2 atanh ceil copysign cos
    cosh cospi divide exp exp10 exp2 fabs fdim floor fma fmax fmax3 fmedian3 fmin fmin3 fmod fract frexp ilogb
    isfinite isinf isnan isnormal isordered isunordered ldexp log log10 log2 modf nan nextafter not_equal pow powr
    precise fast rint round rsqrt signbit sin sincos sinh sinpi sqrt tan tanh tanpi trunc all any cross distance
    distance_squared dot faceforward length length_squared normalize reflect refract determinant transpose
    pack_float_to_unorm4x8 pack_half_to_unorm4x8 unpack_unorm4x8_to_float unpack_unorm4x8_to_half simd_all simd_any
    simd_active_threads_mask simd_ballot simd_vote simd_broadcast simd_broadcast_first simd_is_first
    simd_is_helper_thread simd_max simd_min simd_product simd_sum simd_and simd_or simd_xor
    simd_prefix_exclusive_sum simd_prefix_exclusive_product simd_prefix_inclusive_sum simd_prefix_inclusive_product
    simd_shuffle simd_shuffle_down simd_shuffle_up simd_shuffle_xor simd_shuffle_rotate_down simd_shuffle_rotate_up
    simd_shuffle_and_fill_down simd_shuffle_and_fill_up quad_broadcast quad_shuffle quad_shuffle_xor quad_sum
    quad_max quad_min simdgroup_matrix simdgroup_load simdgroup_store simdgroup_multiply
    simdgroup_multiply_accumulate make_filled_simdgroup_matrix simdgroup_float8x8 simdgroup_half8x8
    simdgroup_bfloat8x8 simdgroup_async_copy numeric_limits enable_if enable_if_t conditional conditional_t is_same
    is_same_v is_integral is_integral_v is_floating_point is_floating_point_v is_arithmetic is_signed is_signed_v
    is_unsigned is_unsigned_v is_scalar is_vector is_convertible is_convertible_v is_const is_void is_pointer
    is_enum is_enum_v is_class integral_constant true_type false_type remove_cv remove_cv_t remove_const
    remove_const_t remove_reference remove_reference_t remove_volatile_t make_signed make_signed_t make_unsigned
    make_unsigned_t make_scalar make_scalar_t vec_traits make_vec add_const_t decay decay_t common_type_t
    underlying_type_t void_t declval invoke_result_t disjunction conjunction negation move forward swap tuple
    make_tuple get tie texture1d texture2d texture3d texture_buffer texture2d_array depth2d texturecube
    bool_constant index_sequence make_index_sequence uniform
"""

_C = """
    size_t ptrdiff_t ssize_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t
    uint ulong ushort uchar intmax_t uintmax_t max_align_t FILE errno va_list NULL EOF nullptr_t memcpy memset
    memmove memcmp strlen strcmp strncmp strcpy strcat strchr strstr strtol strtoll strtod malloc calloc realloc
    free abort exit getenv printf fprintf sprintf snprintf puts fopen fclose fread fwrite stdout stderr stdin assert
    abs labs llabs fabs fabsf floor floorf ceil ceilf round roundf lround trunc truncf rint rintf nearbyint lrint
    sqrt sqrtf cbrt exp expf exp2 expm1 log logf log2 log10 log1p pow powf sin cos tan asin acos atan atan2 sinh
    cosh tanh asinh acosh atanh erf erfc lgamma tgamma fmod fmodf fma fmaf fmin fmax fminf fmaxf copysign signbit
    isnan isinf isfinite ldexp frexp modf hypot clock time qsort rand srand swap move forward get tie begin end min
    max
"""

_ALGORITHMS = """
    accumulate adjacent_find all_of any_of copy copy_if copy_n count count_if equal fill fill_n find find_if find_if_not
    for_each generate inner_product iota iter_swap lower_bound make_pair make_shared make_tuple make_unique max_element
    min_element minmax_element none_of nth_element partial_sort partial_sum reduce remove_if replace reverse rotate sort
    stable_sort transform unique upper_bound back_inserter advance distance next prev static_pointer_cast
"""
"""Of the standard library: a call finds them by the types of its arguments."""

_OBJECTIVE_C = """
    id self super nil Nil YES NO SEL IMP BOOL Class instancetype autoreleasepool selector protocol bridge strong
    weak nonatomic readonly readwrite copy assign kIOMainPortDefault
    API_AVAILABLE API_UNAVAILABLE macos macosx ios TRUE FALSE PAGE_SIZE getsectiondata
"""
_APPLE = re.compile(
    r"(?:MTL|MPS|NS|CF|CG|OS|IO|MP|AG)[A-Z]\w+|(?:dispatch|objc|os|mach|simd|sysctl|_dyld|qos|xpc)\w*|k(?:CF|IO|CG)\w+"
)
_SCALAR_TYPE = re.compile(
    r"k(?:U?Int(?:[1-7]|8|16|32|64)?|Byte|Char|Short|Long|Half|Float|Double|BFloat16|Bool|Complex(?:Half|Float|Double)"
    r"|Q(?:U?Int(?:8|32)|UInt[24]x[24])|Float[48]_e\w+|Bits\w+)"
)
"""What c10/core/ScalarType.h makes by a macro."""
_LIMITS = re.compile(
    r"(?:SCHAR|CHAR|SHRT|INT|LONG|LLONG|UCHAR|USHRT|UINT|ULONG|ULLONG|SIZE|PTRDIFF|FLT|DBL|HALF|BFLT|U?INT(?:_FAST|_LEAST)?\d+)_"
    r"(?:MAX|MIN|EPSILON|DIG|MANT_DIG|INFINITY|WIDTH|BIT)|M_\w+|NAN|INFINITY|HUGE_VALF?|MAXFLOAT|CHAR_BIT|PRI[diuxX]\d+"
)
_VECTOR = re.compile(
    r"(?:packed_)?(?:bool|char|uchar|short|ushort|int|uint|long|ulong|half|bfloat|float)(?:[234](?:x[234])?|8x8)?"
)
_ATOMIC = re.compile(r"atomic_\w+|memory_order\w*|simd_\w+|simdgroup_\w+|quad_\w+|raytracing|intersection_\w+")

_METAL_NAMES = frozenset(_METAL.split())
_C_NAMES = frozenset((_C + _ALGORITHMS + _OBJECTIVE_C).split())
SYSTEM_NAMESPACES = frozenset({"std", "fmt", "simd", "llvm", "pybind11", "py", "nlohmann", "chrono", "literals"})
"""Namespaces of libraries that are no part of a tree."""


def is_known(name: str, *, is_metal: bool) -> bool:
    """Whether a name belongs to a language or to what comes with it.

    Args:
        is_metal: whether the file is compiled as Metal, or else as C++ or Objective-C++.
    """
    if name in KEYWORDS or name.startswith("__") or _LIMITS.fullmatch(name):
        return True
    if is_metal:
        return name in _METAL_NAMES or bool(_VECTOR.fullmatch(name) or _ATOMIC.fullmatch(name))
    return name in _C_NAMES or bool(_APPLE.match(name) or _SCALAR_TYPE.fullmatch(name))


def is_system_include(path: str) -> bool:
    """Whether an include line names a header of the language or of a framework: what it brings is in the tables."""
    if path.startswith("metal_") or ("/" not in path and not path.endswith(".h")):
        return True
    return path in _C_HEADERS or bool(_FRAMEWORK.match(path))


_C_HEADER_NAMES = "assert math stdint stdlib string stdio limits float stddef errno time ctype inttypes"
_C_HEADERS = frozenset(f"{name}.h" for name in _C_HEADER_NAMES.split())
_FRAMEWORK = re.compile(
    r"(?:Foundation|Metal|MetalPerformanceShaders|MetalPerformanceShadersGraph|CoreFoundation|Accelerate|dispatch|os|objc|fmt)/"
)
