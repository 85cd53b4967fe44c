"""The report's plots as SVG text: plain shapes with CSS classes, so that the page's colours and dark mode apply."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from stackproof.model import GateResult
from stackproof.report.error_rows import ErrorRow, outputs

_ROW = 20  # pixels
_LABEL = 240
_PANEL = 200
_EDGE = 16
_TOP = 40
_AXIS = 24
_BAR = 560
_TIME_BAR = 180  # fits a phone
_HEAD = 44
_THIN = 12
_APART = 10

# Of a plot that is a file of its own.
_STYLE = """
svg { background: #ffffff; font: 12px system-ui, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; }
text { fill: #1c2024; } .heading { font-weight: 600; } .tick { fill: #5f6771; font-size: 11px; }
.one { stroke: #5f6771; stroke-dasharray: 4 3; }
.output0 { fill: #0b68cb; } .output1 { fill: #c2410c; } .output2 { fill: #6e56cf; } .output3 { fill: #0f766e; }
"""


@dataclass(frozen=True)
class LogScale:
    """Powers of ten on a stretch of pixels; what is not positive lies on the left edge, what is infinite on the right.

    Attributes:
        first: exponent of the left edge.
        last: exponent of the right edge, more than ``first``.
        width: pixels between them.
    """

    first: int
    last: int
    width: float

    @classmethod
    def over(cls, values: Sequence[float], width: float, *, decades: int = 3) -> LogScale:
        """A scale that holds every finite positive value, 1 itself, and at least so many decades."""
        finite = [value for value in [*values, 1.0] if value > 0 and math.isfinite(value)]
        last = math.ceil(math.log10(max(finite))) or 1
        first = min(math.floor(math.log10(min(finite))), last - decades)
        return cls(max(first, last - 8), last, width)

    def __call__(self, value: float) -> float:
        if math.isnan(value) or value == math.inf:
            return self.width
        if value <= 0:
            return 0.0
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return self.width * min(max(share, 0.0), 1.0)


def error_plot(rows: Sequence[ErrorRow], unit: str) -> str:
    """One line a mode; filled marks are the kernels, hollow ones the CPU's own kernel.

    Each dtype is a plot of its own, so that a narrow screen shows one below the other. All have the same scale.

    Args:
        rows: of one group.
        unit: what the errors are measured in.
    """
    modes = list(dict.fromkeys(row.mode for row in rows))
    dtypes = list(dict.fromkeys(row.dtype for row in rows))
    named = outputs(rows)
    errors = [error for row in rows for error in (*row.errors.values(), *row.cpu_errors.values())]
    scale = LogScale.over(errors, _PANEL)
    size = _LABEL + _PANEL + _EDGE, _TOP + len(modes) * _ROW + _AXIS
    plots = []
    for dtype in dtypes:
        inside = [row for row in rows if row.dtype == dtype]
        panel = f'<g transform="translate({_LABEL} 0)">{_panel(dtype, inside, modes, named, scale)}</g>'
        title = f"largest errors by mode, {dtype}, in {unit}"
        plots.append(_svg(*size, title, _bands(modes, _LABEL + _PANEL) + panel))
    return "".join(plots)


def time_plot(results: Sequence[GateResult]) -> str:
    """Seconds of each gate as bars, on a linear scale."""
    longest = max([result.seconds for result in results], default=0.0) or 1.0
    left = 110
    parts = []
    for number, result in enumerate(results):
        y = number * _ROW
        length = result.seconds / longest * _TIME_BAR
        parts.append(
            f'<text class="label" x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(result.name)}</text>'
            f'<rect class="bar {css(result)}" x="{left}" y="{y + 3}" width="{length:.1f}" height="{_ROW - 6}" rx="2"/>'
            f'<text class="value" x="{left + length + 6:.1f}" y="{y + 14}">{result.seconds:.1f} s</text>'
        )
    return _svg(left + _TIME_BAR + 60, len(results) * _ROW + 4, "seconds of each gate", "".join(parts))


@dataclass(frozen=True)
class Bar:
    """One group of bars of :func:`bar_plot`.

    Attributes:
        label: on the left.
        values: by series, not negative; a series that is missing here has no bar.
    """

    label: str
    values: Mapping[str, float]


def bar_plot(bars: Sequence[Bar], title: str) -> str:
    """Bars from zero on a linear scale with a line at 1, a bar for each series; the series are named at the top."""
    series = list(dict.fromkeys(name for bar in bars for name in bar.values))
    left = 12 + 6.6 * max((len(bar.label) for bar in bars), default=0)
    height = _THIN * len(series) + _APART
    scale = _BAR / (max((value for bar in bars for value in bar.values.values()), default=0.0) or 1.0)
    parts = [f'<text class="heading" x="0" y="14">{escape(title)}</text>', *_series(series, left)]
    for place, bar in enumerate(bars):
        y = _HEAD + place * height
        middle = f'x="{left - 8:.0f}" y="{y + (height - _APART) / 2 + 4:.0f}" text-anchor="end"'
        parts.append(f'<text class="label" {middle}>{escape(bar.label)}</text>')
        parts += [_bar(bar, name, n, scale, (left, y + n * _THIN)) for n, name in enumerate(series)]
    bottom = _HEAD + height * len(bars)
    if scale < _BAR:
        parts.append(
            f'<line class="one" x1="{left + scale:.1f}" x2="{left + scale:.1f}" y1="{_HEAD - 6}" y2="{bottom}"/>'
        )
    return _svg(left + _BAR + 70, bottom + 4, title, "".join(parts))


def _series(names: Sequence[str], left: float) -> Iterator[str]:
    """The key of a bar plot."""
    for number, name in enumerate(names):
        x = left + 130 * number
        yield f'<rect class="filled output{number % 4}" x="{x:.0f}" y="{_HEAD - 22}" width="10" height="10"/>'
        yield f'<text class="tick" x="{x + 15:.0f}" y="{_HEAD - 13}">{escape(name)}</text>'


def _bar(bar: Bar, name: str, number: int, scale: float, corner: tuple[float, float]) -> str:
    if name not in bar.values:
        return ""
    (x, y), value = corner, bar.values[name]
    tip = f"<title>{escape(f'{bar.label}: {name} {value:.3g}')}</title>"
    place = f'x="{x:.0f}" y="{y}" width="{value * scale:.1f}" height="{_THIN - 1}"'
    number_at = f'x="{x + value * scale + 5:.1f}" y="{y + _THIN - 2}"'
    mark = f'<rect class="filled output{number % 4}" {place}>{tip}</rect>'
    return f'{mark}<text class="tick" {number_at}>{value:.2f}</text>'


def standalone(svg: str) -> str:
    """The same plot as a file of its own: with a namespace, and with colours that the page would have given it."""
    opened = svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    start = opened.index(">") + 1
    return f"{opened[:start]}<style>{_STYLE}</style>{opened[start:]}\n"


def css(result: GateResult) -> str:
    """The CSS class of a verdict: ``passed``, ``failed`` or ``not-run``."""
    return result.verdict.value.replace(" ", "-")


def _bands(modes: Sequence[str], width: float) -> str:
    """Mode names, and a faint band behind every second line to lead the eye across the panels."""
    parts = []
    for number, mode in enumerate(modes):
        y = _TOP + number * _ROW
        if number % 2:
            parts.append(f'<rect class="band" x="0" y="{y}" width="{width}" height="{_ROW}"/>')
        parts.append(f'<text class="label" x="{_LABEL - 12}" y="{y + 14}" text-anchor="end">{escape(mode)}</text>')
    return "".join(parts)


def _panel(dtype: str, rows: Sequence[ErrorRow], modes: Sequence[str], outputs: Sequence[str], scale: LogScale) -> str:
    bottom = _TOP + len(modes) * _ROW
    parts = [f'<text class="heading" x="0" y="14">{escape(dtype)}</text>']
    step = 1 if scale.last - scale.first <= 4 else 2
    for exponent in range(scale.first, scale.last + 1):
        x = scale(10.0**exponent)
        kind = "one" if exponent == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 4}" y2="{bottom}"/>')
        if (exponent - scale.last) % step == 0:
            place = f'x="{x:.1f}" y="{bottom + 15}" text-anchor="middle"'
            parts.append(f'<text class="tick" {place}>{_power(exponent)}</text>')
    for row in rows:
        middle = _TOP + modes.index(row.mode) * _ROW + _ROW / 2
        parts += _marks(row, outputs, middle, scale)
    return "".join(parts)


def _marks(row: ErrorRow, outputs: Sequence[str], middle: float, scale: LogScale) -> Iterator[str]:
    """A row's marks, each output a little above or below the middle of the line."""
    for number, output in enumerate(outputs):
        y = middle + (number - (len(outputs) - 1) / 2) * 7
        for who, errors, kind in (("CPU", row.cpu_errors, "hollow"), ("kernel", row.errors, "filled")):
            if output in errors:
                error = errors[output]
                title = f"{row.mode}, {row.dtype}: {who} {output} {error:.3g}"
                bad = " bad" if row.failed and kind == "filled" else ""
                yield _mark(scale(error), y, number, f"mark {kind} output{number % 4}{bad}", title)


def _mark(x: float, y: float, number: int, classes: str, title: str) -> str:
    """Outputs differ in shape too, not in colour alone."""
    tip = f"<title>{escape(title)}</title>"
    if number % 2:
        side = 6
        return (
            f'<rect class="{classes}" x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side}" height="{side}">'
            f"{tip}</rect>"
        )
    return f'<circle class="{classes}" cx="{x:.1f}" cy="{y:.1f}" r="3.4">{tip}</circle>'


def legend(rows: Sequence[ErrorRow]) -> str:
    """What the marks of an error plot mean."""
    named = outputs(rows)
    has_cpu = any(row.cpu_errors for row in rows)
    entries = [(f"mark filled output{number % 4}", number, output) for number, output in enumerate(named)]
    if has_cpu:
        entries += [
            (f"mark hollow output{number % 4}", number, f"{output}, PyTorch's CPU kernel in the same dtype")
            for number, output in enumerate(named)
        ]
    parts = []
    for classes, number, text in entries:
        mark = _svg(12, 12, text, _mark(6, 6, number, classes, text))
        parts.append(f'<span class="key">{mark} {escape(text)}</span>')
    return "".join(parts)


def _power(exponent: int) -> str:
    if exponent in (-1, 0, 1):
        return {-1: "0.1", 0: "1", 1: "10"}[exponent]
    return f'10<tspan dy="-4" font-size="8">{exponent}</tspan>'


def _svg(width: float, height: float, title: str, body: str) -> str:
    return (
        f'<svg role="img" aria-label="{escape(title)}" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">{body}</svg>'
    )
