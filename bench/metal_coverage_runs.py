"""PyTorch 2.6's own MPS kernels, run on this host beside the CPU operators of the installed torch.

One function per ``.metal`` file plays the part of the Objective-C++ host function: it packs the arguments as the file's
kernels expect them and yields how far the result is from the operator's. The kernels themselves come from the tree.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from stackproof.engines.metal.library import MetalLibrary


@dataclass(frozen=True)
class Compared:
    """One kernel against one operator.

    Attributes:
        kernel: host name.
        op: the operator it was compared with.
        difference: largest difference over the largest magnitude of the expected values (at least 1), in epsilons of
            the result's dtype; for integers the difference itself.
    """

    kernel: str
    op: str
    difference: float


Run = Callable[[MetalLibrary], Iterator[Compared]]
_BINARY = 64


def _compared(kernel: str, op: str, found: torch.Tensor, expected: torch.Tensor) -> Compared:
    a, b = found.double().flatten(), expected.double().flatten()
    same = (a == b) | (a.isnan() & b.isnan())
    difference = torch.where(same, 0.0, (a - b).abs()).nan_to_num(torch.inf, torch.inf)
    if not found.dtype.is_floating_point:
        return Compared(kernel, op, float(difference.max()))
    scale = float(b.abs().nan_to_num(0.0, 0.0, 0.0).max().clamp(min=1)) * torch.finfo(found.dtype).eps
    return Compared(kernel, op, float(difference.max()) / scale)


def _offsets(*tensors: torch.Tensor) -> list[tuple[int, ...]]:
    """Byte offsets of every element of equally shaped tensors, as the binary kernels of 2.6 take them."""
    sizes = [t.element_size() for t in tensors]
    return [tuple(i * size for size in sizes) for i in range(tensors[0].numel())]


def unfold_backward(library: MetalLibrary) -> Iterator[Compared]:
    for dtype, name in ((torch.float32, "float"), (torch.float16, "half"), (torch.bfloat16, "bfloat")):
        x = torch.randn(3, 12, 4, dtype=torch.float64, requires_grad=True)
        y = x.unfold(1, 5, 2)
        grad = torch.randn(y.shape).to(dtype)
        torch.autograd.backward(y, grad.double())
        out = torch.empty(3, 12, 4, dtype=dtype)
        kernel = f"unfold_backward_{name}"
        library.kernel(kernel)(
            grad, out, list(grad.stride()), list(out.shape), list(out.stride()), [1, 5, 2, 3], threads=out.numel()
        )
        assert x.grad is not None
        yield _compared(kernel, "unfold_backward", out, x.grad.to(dtype))


def binary(library: MetalLibrary) -> Iterator[Compared]:
    real = {"float": torch.float32, "half": torch.float16, "bfloat": torch.bfloat16}
    ops = {"fmax": torch.fmax, "fmin": torch.fmin, "copysign": torch.copysign}
    for op, function in ops.items():
        for name, dtype in real.items():
            a, b = torch.randn(_BINARY).to(dtype), torch.randn(_BINARY).to(dtype)
            a[3], b[5] = torch.nan, torch.nan
            out = torch.empty_like(a)
            library.kernel(f"{op}_{name}")(a, b, out, _offsets(out, a, b), threads=_BINARY)
            yield _compared(f"{op}_{name}", op, out, function(a, b))
    a, b = torch.randn(_BINARY), torch.randn(_BINARY)
    a[3], a[4] = 0.0, b[4]
    out = torch.empty_like(a)
    library.kernel("nextafter_kernel_float")(a, b, out, _offsets(out, a, b), threads=_BINARY)
    yield _compared("nextafter_kernel_float", "nextafter", out, torch.nextafter(a, b))
    yield from _complex_binary(library, a, b)
    for name, whole in (("int", torch.int32), ("long", torch.int64), ("char", torch.int8)):
        i, j = torch.randint(-9, 9, (_BINARY,), dtype=whole), torch.randint(-9, 9, (_BINARY,), dtype=whole)
        library.kernel(f"copysign_{name}")(i, j, out, _offsets(out, i, j), threads=_BINARY)
        yield _compared(f"copysign_{name}", "copysign", out, torch.copysign(i, j))


def _complex_binary(library: MetalLibrary, a: torch.Tensor, b: torch.Tensor) -> Iterator[Compared]:
    out = torch.empty(_BINARY, dtype=torch.complex64)
    pairs = torch.view_as_real(out)
    library.kernel("polar_float")(a, b, pairs, _offsets(out, a, b), threads=_BINARY)
    yield _compared("polar_float", "polar", pairs, torch.view_as_real(torch.polar(a, b)))
    library.kernel("complex_kernel_float")(a, b, pairs, _offsets(out, a, b), threads=_BINARY)
    yield _compared("complex_kernel_float", "complex", pairs, torch.view_as_real(torch.complex(a, b)))
    x, y = torch.randn(_BINARY, dtype=torch.complex64), torch.randn(_BINARY, dtype=torch.complex64)
    library.kernel("complex_mul_float")(
        torch.view_as_real(x), torch.view_as_real(y), pairs, _offsets(out, x, y), threads=_BINARY
    )
    yield _compared("complex_mul_float", "mul", pairs, torch.view_as_real(x * y))


def cross(library: MetalLibrary) -> Iterator[Compared]:
    for name, dtype in (
        ("float", torch.float32),
        ("half", torch.float16),
        ("bfloat", torch.bfloat16),
        ("int", torch.int32),
    ):
        a, b = (torch.randint(-5, 6, (20, 3)).to(dtype) for _ in range(2))
        out = torch.empty_like(a)
        rows = [(3 * i * a.element_size(),) * 3 for i in range(20)]
        library.kernel(f"cross_{name}")(a, b, out, rows, 1, 1, 1, threads=20)
        yield _compared(f"cross_{name}", "linalg.cross", out, torch.linalg.cross(a.double(), b.double()))


def triangular(library: MetalLibrary) -> Iterator[Compared]:
    for name, dtype in (("int", torch.int32), ("long", torch.int64)):
        rows, columns, offset = 40, 30, 2
        expected = torch.tril_indices(rows, columns, offset)
        first = min(columns, 1 + offset)
        trapezoid_rows = min(rows, columns - first + 1)
        trapezoid = (2 * first + trapezoid_rows - 1) * trapezoid_rows // 2
        out = torch.empty(expected.shape, dtype=dtype)
        library.kernel(f"tril_indices_{name}")(
            out, 0, first, columns, trapezoid, expected.shape[1], threads=expected.shape[1]
        )
        yield _compared(f"tril_indices_{name}", "tril_indices", out, expected)


def histogram(library: MetalLibrary) -> Iterator[Compared]:
    data, weight = torch.rand(200, 2), torch.rand(200)
    bins, low, high = [5, 7], [0.0, 0.0], [1.0, 1.0]
    edges = torch.cat([torch.linspace(0, 1, n + 1) for n in bins])
    offsets = torch.empty(400, dtype=torch.int32)
    library.kernel("kernel_index_offset")(list(data.stride()), offsets, list(data.shape), 2, threads=400)
    yield _compared("kernel_index_offset", "stride arithmetic", offsets, torch.arange(400))
    local = torch.zeros(200, *bins)
    library.kernel("histogramdd_float")(
        data,
        weight,
        local,
        offsets,
        2,
        edges,
        [n + 1 for n in bins],
        low,
        high,
        list(local.stride()),
        1,
        1,
        threads=200,
    )
    expected = torch.histogramdd(data, bins, range=[0.0, 1.0, 0.0, 1.0], weight=weight).hist
    yield _compared("histogramdd_float", "histogramdd", local.sum(0), expected)


def upsample(library: MetalLibrary) -> Iterator[Compared]:
    for name, dtype in (("float", torch.float32), ("half", torch.float16), ("bfloat", torch.bfloat16)):
        x = torch.randn(2, 3, 7, 6).to(dtype)
        wide = x.double().requires_grad_()
        expected = torch.nn.functional.interpolate(wide, size=(9, 11), mode="bicubic", align_corners=True)
        out = torch.empty(2, 3, 9, 11, dtype=dtype)
        geometry = (
            list(x.stride())[::-1],
            list(out.stride())[::-1],
            list(x.shape)[::-1],
            list(out.shape)[::-1],
            [(6 - 1) / (11 - 1), (7 - 1) / (9 - 1)],
            True,
        )
        library.kernel(f"upsample_bicubic2d_{name}")(x, out, *geometry, threads=99)
        yield _compared(f"upsample_bicubic2d_{name}", "interpolate bicubic", out, expected.detach())
        grad = torch.randn(out.shape).to(dtype)
        torch.autograd.backward(expected, grad.double())
        into = torch.zeros_like(x)
        library.kernel(f"upsample_bicubic2d_backward_{name}")(into, grad, *geometry, threads=99)
        assert wide.grad is not None
        yield _compared(f"upsample_bicubic2d_backward_{name}", "interpolate bicubic backward", into, wide.grad)


def special(library: MetalLibrary) -> Iterator[Compared]:
    x = torch.linspace(-12, 12, 301)
    for op in ("i0", "i1"):
        function = getattr(torch.special, op)
        for name, dtype in (("float", torch.float32), ("half", torch.float16), ("bfloat", torch.bfloat16)):
            given = x.to(dtype) if dtype is torch.float32 else (x / 4).to(dtype)
            out = torch.empty_like(given)
            library.kernel(f"{op}_{name}_{name}")(given, out, threads=301)
            yield _compared(f"{op}_{name}_{name}", f"special.{op}", out, function(given.double()))


def im2col(library: MetalLibrary) -> Iterator[Compared]:
    for name, dtype in (("float", torch.float32), ("half", torch.float16), ("bfloat", torch.bfloat16)):
        x = torch.randn(2, 3, 10, 9).to(dtype)
        expected = torch.nn.functional.unfold(x.float(), (3, 2), dilation=2, padding=(2, 1), stride=(2, 1))
        out = torch.empty(expected.shape, dtype=dtype)
        width = (9 + 2 * 1 - 2 * (2 - 1) - 1) // 1 + 1
        library.kernel(f"im2col_{name}")(
            x,
            out,
            [2, 3, 2, 2],
            [1, 2, 1, 2],
            list(x.stride())[::-1],
            [out.stride(2), out.stride(1), out.stride(0), width],
            list(x.shape)[::-1],
            threads=(out.shape[2], 3, 2),
            group_size=(64, 1, 1),
        )
        yield _compared(f"im2col_{name}", "unfold", out, expected)


def repeat(library: MetalLibrary) -> Iterator[Compared]:
    for name, dtype in (("int32_t", torch.int32), ("int64_t", torch.int64)):
        counts = torch.randint(0, 5, (30,), dtype=dtype)
        sums = counts.cumsum(0)
        out = torch.empty(int(sums[-1]), dtype=dtype)
        library.kernel(f"repeat_interleave_{name}")(counts, sums, out, threads=30)
        yield _compared(f"repeat_interleave_{name}", "repeat_interleave", out, torch.repeat_interleave(counts))


def bucketization(library: MetalLibrary) -> Iterator[Compared]:
    for name, dtype in (
        ("float", torch.float32),
        ("half", torch.float16),
        ("int", torch.int32),
        ("bfloat", torch.bfloat16),
    ):
        edges = (torch.randn(4, 20) * 10).to(dtype)
        order = edges.argsort(1)
        ordered = edges.gather(1, order)
        values = (torch.randn(4, 50) * 10).to(dtype)
        for right in (False, True):
            out = torch.empty(4, 50, dtype=torch.int32)
            expected = torch.searchsorted(ordered, values, right=right)
            sizes = (50, 20, values.numel(), int(right), 0)
            library.kernel(f"searchsorted_{name}_int")(values, ordered, out, *sizes, threads=64, group_size=64)
            yield _compared(f"searchsorted_{name}_int", "searchsorted", out, expected)
            library.kernel(f"searchsorted_{name}_int_sorter")(
                values, edges, out, *sizes, order, threads=64, group_size=64
            )
            yield _compared(f"searchsorted_{name}_int_sorter", "searchsorted sorter", out, expected)


def matmul(library: MetalLibrary) -> Iterator[Compared]:
    for name, dtype in (("float", torch.float32), ("half", torch.float16), ("bfloat", torch.bfloat16)):
        a, b = torch.randn(9, 17).to(dtype), torch.randn(17, 5).to(dtype)
        out = torch.empty(9, 5, dtype=dtype)
        strides = [list(t.stride()) for t in (a, b, out)]
        library.kernel(f"naive_matmul_{name}")(a, b, out, strides, [9, 17, 5], threads=45)
        yield _compared(f"naive_matmul_{name}", "matmul", out, a.double() @ b.double())


def renorm(library: MetalLibrary) -> Iterator[Compared]:
    x = torch.randn(8, 30)
    norm = x.norm(dim=1)
    factor = torch.empty(8)
    library.kernel("renorm_float")(norm, factor, 4.0, threads=8)
    yield _compared("renorm_float", "renorm", x * factor[:, None], torch.renorm(x, 2, 0, 4.0))


def indexing(library: MetalLibrary) -> Iterator[Compared]:
    x = torch.randn(6, 7)
    rows, columns = torch.tensor([0, -1, 3, 2]), torch.tensor([1, 6, -2, 0])
    tables = torch.tensor([rows.data_ptr(), columns.data_ptr()])
    geometry = (list(x.shape), [s * 4 for s in x.stride()])
    out = torch.empty(4)
    offsets = [(4 * i, 0, 8 * i) for i in range(4)]
    library.kernel("index_select_32bit_idx32")(
        tables, *geometry, offsets, x, out, 2, threads=4, resources=(rows, columns)
    )
    yield _compared("index_select_32bit_idx32", "index", out, x[rows, columns])
    values, target = torch.randn(4), x.clone()
    offsets = [(0, 4 * i, 8 * i) for i in range(4)]
    for kernel, accumulate in (("index_put_32bit_idx32", False), ("index_put_accumulate_32bit_float_idx32", True)):
        expected = target.index_put((rows, columns), values, accumulate=accumulate)
        library.kernel(kernel)(tables, *geometry, offsets, values, target, 2, threads=4, resources=(rows, columns))
        yield _compared(kernel, "index_put", target, expected)


def _pointers(*lists: Sequence[torch.Tensor]) -> torch.Tensor:
    """Rows of 32 addresses, one row per list, as the argument structs of the fused optimizers hold them."""
    return torch.tensor([[t.data_ptr() for t in tensors] + [0] * (32 - len(tensors)) for tensors in lists])


def fused_optimizers(library: MetalLibrary) -> Iterator[Compared]:
    sizes = (700, 90)
    metadata = struct.pack("=96I", *sizes, *[0] * 30, 0, 1, *[0] * 30, *[0] * 32)
    launch: dict[str, Any] = {"threads": 2 * 256, "group_size": 256}
    parameters, grads = [torch.randn(n) for n in sizes], [torch.randn(n) for n in sizes]
    ours = [p.clone() for p in parameters]
    library.kernel("fused_sgd_float")(
        _pointers(ours, grads), metadata, 0.1, 0.05, False, **launch, resources=(*ours, *grads)
    )
    expected = _stepped(torch.optim.SGD, parameters, grads, lr=0.05, weight_decay=0.1)
    yield _compared("fused_sgd_float", "optim.SGD", torch.cat(ours), torch.cat(expected))
    for kernel, optimizer in (("fused_adam", torch.optim.Adam), ("fused_adamw", torch.optim.AdamW)):
        ours, means, squares = [p.clone() for p in parameters], *([torch.zeros(n) for n in sizes] for _ in range(2))
        steps = [torch.tensor([1.0]) for _ in sizes]
        library.kernel(f"{kernel}_float_float")(
            _pointers(ours, grads, means, squares, steps),
            metadata,
            0.01,
            0.9,
            0.999,
            0.1,
            1e-8,
            False,
            **launch,
            resources=(*ours, *grads, *means, *squares, *steps),
        )
        expected = _stepped(optimizer, parameters, grads, lr=0.01, weight_decay=0.1)
        name = f"optim.{optimizer.__name__}"
        yield _compared(f"{kernel}_float_float", name, torch.cat(ours), torch.cat(expected))


def _stepped(
    optimizer: Callable[..., torch.optim.Optimizer],
    parameters: Sequence[torch.Tensor],
    grads: Sequence[torch.Tensor],
    **options: float,
) -> list[torch.Tensor]:
    own = [p.clone().requires_grad_() for p in parameters]
    for parameter, grad in zip(own, grads, strict=True):
        parameter.grad = grad.clone()
    optimizer(own, **options).step()
    return [p.detach() for p in own]


def quantized(library: MetalLibrary) -> Iterator[Compared]:
    m, k, n = 3, 64, 16
    weight = torch.randint(-128, 128, (n, k), dtype=torch.int8)
    for name, dtype in (("float", torch.float32), ("half", torch.float16), ("bfloat", torch.bfloat16)):
        a, scales = torch.randn(m, k).to(dtype), (torch.rand(n) / 100).to(dtype)
        expected = (a.double() @ weight.double().T) * scales.double()
        out = torch.empty(m, n, dtype=dtype)
        library.kernel(f"int8pack_mv_{name}")(
            a,
            weight,
            scales,
            out,
            [m, k, n],
            threads=((n + 7) // 8 * 64, m),
            group_size=(64, 1),
            threadgroup_memory={0: 32},
        )
        yield _compared(f"int8pack_mv_{name}", "_weight_int8pack_mm", out, expected)
    yield from _int4(library)


def _int4(library: MetalLibrary) -> Iterator[Compared]:
    m, k, n, group = 2, 128, 32, 32
    codes = torch.randint(0, 16, (n, k))
    packed = (codes[:, 0::2] << 4 | codes[:, 1::2]).to(torch.uint8)
    swapped = torch.empty_like(packed)
    library.kernel("weight_to_int4pack")(
        packed.view(torch.int32), swapped, [n, k // 8], threads=(n, k // 8), group_size=(32, 1)
    )
    yield _compared("weight_to_int4pack", "nibble order", swapped, (codes[:, 1::2] << 4 | codes[:, 0::2]))
    for name, dtype in (("float", torch.float32), ("half", torch.float16), ("bfloat", torch.bfloat16)):
        a = torch.randn(m, k).to(dtype)
        table = (torch.rand(k // group, n, 2) / 10).to(dtype)
        scale, zero = (table[..., i].double().repeat_interleave(group, 0).T for i in range(2))
        expected = a.double() @ ((codes - 8) * scale + zero).T
        out = torch.empty(m, n, dtype=dtype)
        library.kernel(f"int4pack_mm_{group}_{name}")(
            a, swapped, table, out, [m, k, n], threads=(n // 4 * 32, 1, m), group_size=(64, 1, 1)
        )
        yield _compared(f"int4pack_mm_{group}_{name}", "_weight_int4pack_mm", out, expected)


RUNS: dict[str, Run] = {
    "BinaryKernel": binary,
    "Bucketization": bucketization,
    "CrossKernel": cross,
    "FusedOptimizerOps": fused_optimizers,
    "HistogramKernel": histogram,
    "Im2Col": im2col,
    "Indexing": indexing,
    "LinearAlgebra": matmul,
    "Quantized": quantized,
    "RenormKernel": renorm,
    "Repeat": repeat,
    "SpecialOps": special,
    "TriangularOps": triangular,
    "UnfoldBackward": unfold_backward,
    "UpSample": upsample,
}
