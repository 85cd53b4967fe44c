"""Other ways to hand tensors over: in other layouts, of other sizes, anywhere in their storage.

A layout is changed in the call of the op itself. A size is changed in the OpInfo sample that leads to the call,
because a public function checks that its inputs go together, and an op behind it may not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

_MANY = 1100
_MOST_ELEMENTS = 8_000


@dataclass(frozen=True)
class Way:
    """One way.

    Attributes:
        name: in words.
        change: the changed arguments; ``None`` where it does not apply.
    """

    name: str
    change: Callable[[Any], Any | None]


def _with_gaps(tensor: Tensor) -> Tensor:
    """Every second element of a larger tensor."""
    if not tensor.dim():
        return tensor
    wide = tensor.new_zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]))
    part = wide[..., ::2]
    part.copy_(tensor)
    return part


def _transposed(tensor: Tensor) -> Tensor:
    """The same with its dimensions stored in the opposite order."""
    order = list(range(tensor.dim()))[::-1]
    return tensor.permute(order).contiguous().permute(order)


def _expanded(tensor: Tensor) -> Tensor:
    """The first row, again and again."""
    return tensor[:1].expand(tensor.shape) if tensor.dim() and tensor.shape[0] > 1 else tensor


def _offset(tensor: Tensor) -> Tensor:
    """The same behind three other elements."""
    room = tensor.new_zeros(tensor.numel() + 3)
    part = room[3:].view(tensor.shape)
    part.copy_(tensor)
    return part


def _each(change: Callable[[Tensor], Tensor], *, floats_only: bool = False) -> Callable[[Any], Any | None]:
    """Change the tensors one by one; nothing where this changes none of them."""

    def changed(arguments: Any) -> Any | None:
        some = False

        def one(value: Any) -> Any:
            nonlocal some
            if not isinstance(value, Tensor) or value.layout is not torch.strided or not value.numel():
                return value
            if floats_only and not (value.is_floating_point() or value.is_complex()):
                return value
            made = change(value)
            some |= made is not value
            return made

        result = tree_map(one, arguments)
        return result if some else None

    return changed


def _sizes(arguments: Any) -> list[int]:
    """The sizes of all dimensions, the most frequent first."""
    tensors = [one for one in tree_leaves(arguments) if isinstance(one, Tensor)]
    counted = Counter(size for tensor in tensors for size in tensor.shape if size > 1)
    return [size for size, _count in counted.most_common()]


def _resized(arguments: Any, size: int, change: Callable[[Tensor, int], Tensor]) -> Any:
    """Every dimension of one size changed; what belongs together mostly has the same size."""

    def one(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.layout is not torch.strided:
            return value
        made = value
        for dim, here in enumerate(value.shape):
            if here == size:
                made = change(made, dim)
        return made.detach().requires_grad_(value.requires_grad)

    return tree_map(one, arguments)


def _cut(to: int) -> Callable[[Any], Any | None]:
    def cut(arguments: Any) -> Any | None:
        sizes = _sizes(arguments)
        return _resized(arguments, sizes[0], lambda tensor, dim: tensor.narrow(dim, 0, to)) if sizes else None

    return cut


def _single(arguments: Any) -> Any | None:
    """Every dimension cut to one element."""
    sizes = _sizes(arguments)
    for size in dict.fromkeys(sizes):
        arguments = _resized(arguments, size, lambda tensor, dim: tensor.narrow(dim, 0, 1))
    return arguments if sizes else None


def _grown(rank: int) -> Callable[[Any], Any | None]:
    """The dimensions of one size repeated until they are longer than any threadgroup."""

    def grown(arguments: Any) -> Any | None:
        sizes = _sizes(arguments)
        if len(sizes) <= rank:
            return None
        times = -(-_MANY // sizes[rank])

        def repeated(tensor: Tensor, dim: int) -> Tensor:
            made = tensor.repeat_interleave(times, dim)
            if made.numel() > _MOST_ELEMENTS:
                raise _TooLargeError
            return made

        try:
            return _resized(arguments, sizes[rank], repeated)
        except _TooLargeError:
            return None

    return grown


class _TooLargeError(Exception):
    """The host would take too long for it."""


AS_RECORDED = Way("as recorded", lambda arguments: arguments)
LAYOUTS = (
    AS_RECORDED,
    Way("non-contiguous", _each(_with_gaps)),
    Way("transposed", _each(_transposed)),
    Way("expanded", _each(_expanded, floats_only=True)),
    Way("offset in its storage", _each(_offset)),
)
SIZES = (
    Way("of no elements", _cut(0)),
    Way("of one element", _single),
    Way("larger than a threadgroup", _grown(0)),
    Way("larger than a threadgroup in another direction", _grown(1)),
)
