"""What a grid sampler gives, and its gradients, from their definition, in float64 and for any number of dimensions.

PyTorch's own float64 CPU kernel is the judge wherever it is defined. It is not defined for non-finite and huge
coordinates (it reads outside its tensors), and it cannot say how large the terms were that a value was summed from.
This module can do both: the sampler is separable, so each axis is a short list of taps (index, weight and the weight's
slope), and a sample and its gradients are sums over the products of such lists.

The rule for coordinates that are not finite, once un-normalised to pixels in float32, is the overlay's: with zeros and
reflection padding the sample is outside and contributes nothing; with border padding +inf is the last pixel, -inf and
NaN are the first one, and the gradient of the coordinate is zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from stackproof.ops.grid_sampler.modes import Interpolation, Mode, Padding
from stackproof.ops.grid_sampler.tensors import SamplerTensors

# Cubic convolution with the free parameter that torch's forward has, -0.75: |x| <= 1, and 1 < |x| < 2.
_CUBIC_NEAR = (1.25, -2.25, 0.0, 1.0)
_CUBIC_FAR = (-0.75, 3.75, -6.0, 3.0)

# Beyond this many pixels a float32 coordinate no longer resolves single pixels, so a reflection can end on any of them.
RESOLVED_PIXELS = 2.0**22

# float64 coordinates are cut here before they become integers; still far outside every axis.
_LARGEST_PIXEL = 2.0**50


@dataclass(frozen=True)
class _Weights:
    """Weights of an axis' taps, all (N, *O, T) float64.

    Attributes:
        weight: weight of each tap; zero outside.
        slope: derivative of ``weight`` with respect to the pixel coordinate.
        curvature: derivative of ``slope``.
        weight_terms: sum of the absolute values of the terms that ``weight`` is computed from.
        slope_terms: the same for ``slope``.
    """

    weight: Tensor
    slope: Tensor
    curvature: Tensor
    weight_terms: Tensor
    slope_terms: Tensor


@dataclass(frozen=True)
class AxisTaps(_Weights):
    """What one axis contributes to every sample; all tensors float64 unless said otherwise.

    Attributes:
        pixel: (N, *O) coordinate in pixels before padding.
        index: (N, *O, T) int64 pixel of each tap, inside the axis where ``weight`` counts.
        scale: (N, *O) derivative of the pixel coordinate after padding with respect to the grid value.
        finite: (N, *O) bool: the pixel coordinate is finite in float32.
    """

    pixel: Tensor
    index: Tensor
    scale: Tensor
    finite: Tensor


@dataclass(frozen=True)
class Samples:
    """Expected output, and how large an error of float32 arithmetic in it is.

    Attributes:
        output: (N, C, *O) float64.
        output_terms: the same shape: what an error of one epsilon in every coordinate and every product moves.
    """

    output: Tensor
    output_terms: Tensor


@dataclass(frozen=True)
class Gradients:
    """Expected gradients, and how large an error of float32 arithmetic in them is.

    Attributes:
        grad_input: (N, C, *S) float64.
        grad_grid: (N, *O, dimensions) float64, last axis x, y and so on.
        grad_input_terms: (N, C, *S): what an error of one epsilon in every coordinate and every product moves.
        grad_grid_terms: the same for ``grad_grid``.
    """

    grad_input: Tensor
    grad_grid: Tensor
    grad_input_terms: Tensor
    grad_grid_terms: Tensor


def to_pixels(coordinate: Tensor, size: int, align_corners: bool) -> tuple[Tensor, float]:
    """Pixel coordinates of normalised ones, and the factor between the two."""
    factor = (size - 1) / 2 if align_corners else size / 2
    return coordinate * factor + (size - 1) / 2, factor


def _clip(pixel: Tensor, size: int) -> tuple[Tensor, Tensor]:
    # Borders count as outside for the gradient; written so that NaN lands on pixel 0.
    inside = (pixel > 0) & (pixel < size - 1)
    clipped = torch.where(pixel > 0, pixel.clamp(max=size - 1), torch.zeros_like(pixel))
    return clipped, inside.double()


def _reflect(pixel: Tensor, size: int, align_corners: bool) -> tuple[Tensor, Tensor]:
    low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
    if span == 0:
        return torch.zeros_like(pixel), torch.zeros_like(pixel)
    sign = torch.where(pixel < low, -1.0, 1.0).double()
    distance = (pixel - low).abs()
    extra = torch.fmod(distance, span)
    odd = torch.fmod(torch.floor(distance / span), 2) != 0
    reflected = torch.where(odd, span - extra, extra) + low
    clipped, inside = _clip(reflected, size)
    return clipped, torch.where(odd, -sign, sign) * inside


def _pad(pixel: Tensor, size: int, mode: Mode) -> tuple[Tensor, Tensor]:
    if mode.padding is Padding.BORDER:
        return _clip(pixel, size)
    if mode.padding is Padding.REFLECTION:
        return _reflect(pixel, size, mode.align_corners)
    return pixel, torch.ones_like(pixel)


def _polynomial(coefficients: tuple[float, ...], x: Tensor) -> Tensor:
    """Value at ``x`` (not negative) of the polynomial whose highest coefficient comes first."""
    value = torch.zeros_like(x)
    for coefficient in coefficients:
        value = value * x + coefficient
    return value


def _derivative(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    degree = len(coefficients) - 1
    return tuple(coefficient * (degree - at) for at, coefficient in enumerate(coefficients[:-1]))


def _cubic_taps(t: Tensor) -> _Weights:
    """Weights of the pixels at -1, 0, 1, 2 for a fraction ``t`` between pixels 0 and 1."""
    columns = []
    for position in (-1, 0, 1, 2):
        x, sign = (t - position).abs(), (1.0 if position <= 0 else -1.0)
        weight = _CUBIC_NEAR if position in (0, 1) else _CUBIC_FAR
        slope = _derivative(weight)
        columns.append(
            (
                _polynomial(weight, x),
                sign * _polynomial(slope, x),
                _polynomial(_derivative(slope), x),
                _polynomial(tuple(map(abs, weight)), x),
                _polynomial(tuple(map(abs, slope)), x),
            )
        )
    return _Weights(*(torch.stack(column, -1) for column in zip(*columns, strict=True)))


def _linear_taps(t: Tensor) -> _Weights:
    """Weights of the pixels at 0 and 1."""
    weight = torch.stack([1 - t, t], -1)
    slope = torch.stack([-torch.ones_like(t), torch.ones_like(t)], -1)
    return _Weights(weight, slope, torch.zeros_like(weight), weight, slope.abs())


def _single_tap(t: Tensor) -> _Weights:
    one, zero = torch.ones_like(t).unsqueeze(-1), torch.zeros_like(t).unsqueeze(-1)
    return _Weights(one, zero, zero, one, zero)


_WEIGHTS = {
    Interpolation.BILINEAR: _linear_taps,
    Interpolation.NEAREST: _single_tap,
    Interpolation.BICUBIC: _cubic_taps,
}
_OFFSETS = {
    Interpolation.BILINEAR: torch.tensor([0.0, 1.0], dtype=torch.float64),
    Interpolation.NEAREST: torch.tensor([0.0], dtype=torch.float64),
    Interpolation.BICUBIC: torch.tensor([-1.0, 0.0, 1.0, 2.0], dtype=torch.float64),
}


def axis_taps(coordinate: Tensor, size: int, mode: Mode) -> AxisTaps:
    """The taps of one axis.

    Args:
        coordinate: (N, *O) float64 grid values of this axis.
        size: pixels of the axis, at least 1.
        mode: how to sample.
    """
    pixel, factor = to_pixels(coordinate, size, mode.align_corners)
    finite = pixel.float().isfinite()
    # Where the coordinate is not finite every tap lands on one pixel, and the coordinate has no gradient.
    settled = torch.where(finite, pixel, _clip(pixel, size)[0])
    if mode.interpolation is Interpolation.BICUBIC:
        at, clip = settled, torch.ones_like(settled)  # the taps are padded, not the coordinate
    else:
        at, clip = _pad(settled, size, mode)
    at = at.clamp(-_LARGEST_PIXEL, _LARGEST_PIXEL)
    base = at.round() if mode.interpolation is Interpolation.NEAREST else at.floor()
    weights = _WEIGHTS[mode.interpolation](at - base)
    taps = base.unsqueeze(-1) + _OFFSETS[mode.interpolation]
    if mode.interpolation is Interpolation.BICUBIC:
        taps, _ = _pad(taps, size, mode)

    inside = (taps >= 0) & (taps <= size - 1)
    if mode.padding is not Padding.BORDER:
        inside &= finite.unsqueeze(-1)
    scale = torch.where(finite, clip * factor, torch.zeros_like(clip))
    index = torch.where(inside, taps, torch.zeros_like(taps)).long()
    kept = {part.name: getattr(weights, part.name) * inside for part in fields(weights)}
    return AxisTaps(**kept, pixel=pixel, index=index, scale=scale, finite=finite)


def samples(tensors: SamplerTensors, mode: Mode) -> Samples:
    """The output, from inputs of any dtype; ``grad_output`` is not looked at."""
    taps = _Taps.of(tensors, mode)
    values = _gather(tensors.input.double(), taps.flat)
    output = _weighted(values, taps.products("weight"))
    return Samples(output, _weighted(values.abs(), taps.moved()))


def gradients(tensors: SamplerTensors, mode: Mode) -> Gradients:
    """Both gradients, from inputs of any dtype; every spatial axis of the input has at least one pixel."""
    go, shape = tensors.grad_output.double(), tensors.input.shape
    taps = _Taps.of(tensors, mode)
    grad_input = _scatter(go, taps.products("weight"), taps.flat, shape)
    grad_input_terms = _scatter(go.abs(), taps.moved(), taps.flat, shape)

    values = _gather(tensors.input.double(), taps.flat)
    sums, terms = [], []
    for axis, taps_of_axis in enumerate(taps.axes):
        slope = taps.products("weight", {axis: "slope"})
        sums.append(taps_of_axis.scale * _contract(go, values, slope))
        terms.append(taps_of_axis.scale.abs() * _contract(go.abs(), values.abs(), taps.moved(axis)))
    # The last axis has the first coordinate.
    grad_grid, grad_grid_terms = torch.stack(sums[::-1], -1), torch.stack(terms[::-1], -1)
    return Gradients(grad_input, grad_grid, grad_input_terms, grad_grid_terms)


@dataclass(frozen=True)
class _Taps:
    """The taps of all axes of a call.

    Attributes:
        axes: in the order of the input's axes.
        shifts: by axis, (N, *O, 1): how many epsilons of a pixel the float32 coordinate is off, to first order.
        flat: (N, *O, T ** axes) int64: offset of each tap in a contiguous channel; the last axis varies fastest.
    """

    axes: tuple[AxisTaps, ...]
    shifts: tuple[Tensor, ...]
    flat: Tensor

    @classmethod
    def of(cls, tensors: SamplerTensors, mode: Mode) -> _Taps:
        sizes, coordinates = tensors.input.shape[2:], tensors.grid.double().flip(-1)
        axes = tuple(axis_taps(coordinates[..., axis], size, mode) for axis, size in enumerate(sizes))
        shifts = tuple(_uncertainty(taps, size, mode.padding) for taps, size in zip(axes, sizes, strict=True))
        flat = torch.zeros_like(axes[0].index[..., :1])
        for taps, size in zip(axes, sizes, strict=True):
            flat = (flat.unsqueeze(-1) * size + taps.index.unsqueeze(-2)).flatten(-2)
        return cls(axes, shifts, flat)

    def products(self, part: str, others: dict[int, str] | None = None) -> Tensor:
        """(N, *O, T ** axes) products of the axes' taps: of attribute ``part``, or of another one for some axes."""
        product = torch.ones_like(self.axes[0].weight[..., :1])
        for axis, taps in enumerate(self.axes):
            factor: Tensor = getattr(taps, (others or {}).get(axis, part))
            product = (product.unsqueeze(-1) * factor.unsqueeze(-2)).flatten(-2)
        return product

    def moved(self, sloped: int | None = None) -> Tensor:
        """What an error of one epsilon everywhere moves: in the weights, or in their slopes along axis ``sloped``.

        Rounding moves the products by their terms, and a coordinate's error moves them along the derivative.
        """
        parts = {} if sloped is None else {sloped: "slope"}
        total = self.products("weight_terms", dict.fromkeys(parts, "slope_terms"))
        for axis, shift in enumerate(self.shifts):
            derivative = "curvature" if axis == sloped else "slope"
            total = total + shift * self.products("weight", {**parts, axis: derivative}).abs()
        return total


def _uncertainty(taps: AxisTaps, size: int, padding: Padding) -> Tensor:
    pixel = torch.where(taps.finite, taps.pixel.abs(), torch.zeros_like(taps.pixel))
    if padding is not Padding.REFLECTION:
        pixel = pixel.clamp(max=size + 4.0)  # further out nothing depends on where exactly
    return (pixel + size).unsqueeze(-1)


def _scatter(go: Tensor, weight: Tensor, flat: Tensor, shape: Sequence[int]) -> Tensor:
    batch, channels, *sizes = shape
    terms = (go.unsqueeze(-1) * weight.unsqueeze(1)).flatten(2)
    index = flat.flatten(1).unsqueeze(1).expand_as(terms)
    empty = torch.zeros(batch, channels, math.prod(sizes), dtype=torch.float64)
    return empty.scatter_add_(2, index, terms).view(*shape)


def _gather(values: Tensor, flat: Tensor) -> Tensor:
    """(N, C, *O, taps) input values under the taps."""
    batch, channels = values.shape[:2]
    index = flat.flatten(1).unsqueeze(1).expand(batch, channels, -1)
    return values.flatten(2).gather(2, index).view(batch, channels, *flat.shape[1:])


def _weighted(values: Tensor, weight: Tensor) -> Tensor:
    """Sum over taps: (N, C, *O)."""
    return torch.einsum("nc...t,n...t->nc...", values, weight)


def _contract(go: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    """Sum over channels and taps: (N, *O)."""
    return torch.einsum("nc...,nc...t,n...t->n...", go, values, weight)
