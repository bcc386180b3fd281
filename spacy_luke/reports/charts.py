"""Small charts as SVG: lines, bars with intervals, a matrix. They take their colours from the page, light or dark.

A chart is as wide as 440 units and readable on a phone; its <title> says what it shows to those who do not see it.
"""

import math
import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, _HEIGHT = 440, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 12, 40
_FONTS = "system-ui, DejaVu Sans, Arial, Helvetica, sans-serif"
_SERIES = ("--one", "--two", "--three", "--four")
LIGHT = {  # of pictures that stand by themselves
    "--text": "#1c2430",
    "--soft": "#5a6675",
    "--line": "#d9dee6",
    "--page": "#ffffff",
    "--one": "#2059a8",
    "--two": "#b3541e",
    "--three": "#2c7a4b",
    "--four": "#7a4fa3",
}
Points = Sequence[tuple[float, float]]


class Line(NamedTuple):
    """dots: whether each point is drawn; dashed: a line to compare with."""

    name: str
    points: Points
    dots: bool = False
    dashed: bool = False


class Bar(NamedTuple):
    """A value with its interval, from 0 to 1."""

    label: str
    value: float
    low: float
    high: float


def line_chart(
    title: str, lines: Sequence[Line], *, x: str, y: str, x_range: tuple[float, float] | None = None, y_top: float = 1.0
) -> str:
    """x, y: names of the axes. y goes from 0 to y_top."""
    points = [point for line in lines for point in line.points]
    low, high = x_range or (min(a for a, _ in points), max(a for a, _ in points))
    high = high if high > low else low + 1

    def place(a: float, b: float) -> tuple[float, float]:
        across = _LEFT + (a - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)
        return across, _HEIGHT - _BOTTOM - min(b / y_top, 1) * (_HEIGHT - _TOP - _BOTTOM)

    parts = _grid(low, high, y_top, x, y)
    for i, line in enumerate(lines):
        colour = "var(--soft)" if line.dashed else f"var({_SERIES[i % len(_SERIES)]})"
        places = [place(a, b) for a, b in line.points]
        path = " ".join(f"{'M' if not n else 'L'}{a:.1f} {b:.1f}" for n, (a, b) in enumerate(places))
        dash = ' stroke-dasharray="4 4"' if line.dashed else ""
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        if line.dots:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{colour}"/>' for a, b in places]
    named = [(line.name, i) for i, line in enumerate(lines) if not line.dashed]
    at = _LEFT + 10
    for name, i in named if len(named) > 1 else []:
        parts.append(f'<rect x="{at}" y="{_TOP + 4}" width="10" height="10" fill="var({_SERIES[i % len(_SERIES)]})"/>')
        parts.append(_text(at + 14, _TOP + 13, name))
        at += 26 + 7 * len(name)
    return _svg(title, parts, _HEIGHT)


def bar_chart(title: str, bars: Sequence[Bar], *, others: Sequence[Bar] = (), names: Sequence[str] = ()) -> str:
    """Bars from 0 to 1 with intervals, each under the other. others: of a second pipeline, as many; names: of both."""
    step, label_width = (34 if others else 24), 130
    head = 22 if names else 4
    height = head + step * len(bars) + 26
    across = WIDTH - label_width - 46

    def at(value: float) -> float:
        return label_width + value * across

    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_rule(at(share), head, at(share), height - 22))
        parts.append(_text(at(share), height - 8, f"{100 * share:.0f}", anchor="middle", soft=True))
    for i, name in enumerate(names):
        left = label_width + 150 * i
        parts.append(f'<rect x="{left}" y="4" width="10" height="10" fill="var({_SERIES[i]})"/>')
        parts.append(_text(left + 14, 13, _shorten(name, 19)))
    for i, bar in enumerate(bars):
        top = head + step * i
        parts.append(_text(label_width - 8, top + step / 2 + 2, _shorten(bar.label, 19), anchor="end"))
        rows = [bar, others[i]] if others else [bar]
        for n, one in enumerate(rows):
            middle = top + step / 2 + (13 * n - 6.5 if others else 0) - 1
            colour = f"var({_SERIES[n]})"
            parts.append(
                f'<rect x="{at(0):.1f}" y="{middle - 5:.1f}" width="{max(one.value * across, 0.5):.1f}" height="10" '
                f'fill="{colour}" opacity="0.55"/>'
            )
            parts.append(
                f'<path d="M{at(one.low):.1f} {middle:.1f}H{at(one.high):.1f}M{at(one.low):.1f} {middle - 4:.1f}v8'
                f'M{at(one.high):.1f} {middle - 4:.1f}v8" stroke="var(--text)" fill="none" stroke-width="1.3"/>'
            )
            parts.append(_text(WIDTH - 4, middle + 4, f"{100 * one.value:.1f}", anchor="end"))
    return _svg(title, parts, height)


def matrix_chart(title: str, labels: Sequence[str], counts: Sequence[Sequence[int]], *, rows: str, columns: str) -> str:
    """Counts as squares, darker where there are more of their row; rows, columns: what they are."""
    side = (WIDTH - 150) / max(len(labels), 1)
    side = min(side, 44.0)
    left, top = 110.0, 96.0
    height = top + side * len(labels) + 14
    parts = [_text(8, 14, f"rows: {rows}", soft=True), _text(8, 28, f"columns: {columns}", soft=True)]
    for i, label in enumerate(labels):
        middle = top + side * (i + 0.5)
        parts.append(_text(left - 6, middle + 4, _shorten(label, 16), anchor="end"))
        x = left + side * (i + 0.5) + 4
        parts.append(
            f'<text x="{x:.1f}" y="{top - 6}" transform="rotate(-45 {x:.1f} {top - 6})" font-size="11" '
            f'fill="var(--text)">{escape(_shorten(label, 14))}</text>'
        )
        total = max(sum(counts[i]), 1)
        for j, n in enumerate(counts[i]):
            colour = "var(--one)" if i == j else "var(--two)"
            x, y = left + side * j, top + side * i
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{side - 1:.1f}" height="{side - 1:.1f}" fill="{colour}" '
                f'opacity="{0.06 + 0.6 * n / total:.3f}"/>'
            )
            if n:
                shown = f"{n}" if n < 10_000 else f"{n / 1000:.0f}k"
                size = 10.5 if side >= 26 else 8.5
                parts.append(_text(x + side / 2 - 0.5, y + side / 2 + 3.5, shown, anchor="middle", size=size))
    return _svg(title, parts, height)


def standalone(svg: str, *, colours: dict[str, str] = LIGHT) -> str:
    """A chart for a file of its own: with the namespace, a background, and colours in the place of the page's."""
    text = re.sub(r"var\((--\w+)\)", lambda match: colours[match[1]], svg)
    text = text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return text.replace("</title>", f'</title><rect width="100%" height="100%" fill="{colours["--page"]}"/>', 1)


def _grid(low: float, high: float, y_top: float, x: str, y: str) -> list[str]:
    parts = []
    for value in ticks(0.0, y_top):
        row = _HEIGHT - _BOTTOM - value / y_top * (_HEIGHT - _TOP - _BOTTOM)
        parts.append(_rule(_LEFT, row, WIDTH - _RIGHT, row))
        parts.append(_text(_LEFT - 6, row + 4, _number(value), anchor="end", soft=True))
    for value in ticks(low, high):
        column = _LEFT + (value - low) / (high - low) * (WIDTH - _LEFT - _RIGHT)
        parts.append(_rule(column, _TOP, column, _HEIGHT - _BOTTOM))
        parts.append(_text(column, _HEIGHT - _BOTTOM + 15, _number(value), anchor="middle", soft=True))
    parts.append(_text((_LEFT + WIDTH - _RIGHT) / 2, _HEIGHT - 8, x, anchor="middle"))
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    parts.append(
        f'<text x="12" y="{middle}" transform="rotate(-90 12 {middle})" text-anchor="middle" font-size="12" '
        f'fill="var(--text)">{escape(y)}</text>'
    )
    return parts


def ticks(low: float, high: float) -> list[float]:
    """Three to seven round values from low to high: multiples of 1, 2, 2.5 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10((high - low) / 6))
    step = next(x * power for x in (1, 2, 2.5, 5, 10, 20) if (high - low) / (x * power) <= 6)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 20 else f"{value:.6g}"


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="var(--line)" stroke-width="1"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", soft: bool = False, size: float = 12) -> str:
    colour = "var(--soft)" if soft else "var(--text)"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}" fill="{colour}">'
        f"{escape(text)}</text>"
    )


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _svg(title: str, parts: Sequence[str], height: float) -> str:
    body = "".join(parts)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" font-family="{_FONTS}">'
        f"<title>{escape(title)}</title>{body}</svg>"
    )
