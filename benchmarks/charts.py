"""Charts of the measurements in results/, as SVG in docs/img: `python benchmarks/charts.py` draws them anew."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any
from xml.sax.saxutils import escape

from runs import RESULTS, group_runs, read_lines

IMAGES = Path(__file__).parents[1] / "docs" / "img"
SYSTEMS = {
    "luke_one_way": "luke_ner, one_way",
    "luke_full": "luke_ner, full",
    "spacy_ner": "spaCy's transformer ner",
    "token_classifier": "token classifier",
    "span_marker": "SpanMarker",
    "span_marker_document": "SpanMarker, with context",
    "hf_luke": "Hugging Face LUKE, with context",
    "hf_luke_sentence": "Hugging Face LUKE",
}
OURS = ("luke_one_way", "luke_full", "after")
SETS = {"conll2003": "CoNLL-2003", "wnut17": "WNUT-17", "genia": "GENIA, nested", "gum": "GUM", "litbank": "LitBank"}
SETS["conll04"] = "CoNLL04"
NESTED = {"genia": "GENIA, nested: spaCy's ner, hardly trained there, and the classifier cannot nest"}
STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #222; } .small { font-size: 12px; fill: #555; }
.ours { fill: #4051b5; stroke: #4051b5; } .theirs { fill: #b9bdc9; stroke: #9a9fae; }
.curve.ours, .curve.theirs { fill: none; stroke-width: 2; } .axis { stroke: #bbb; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e6e6; } .small { fill: #b0b0b0; } .axis { stroke: #666; }
  .ours { fill: #8c9eff; stroke: #8c9eff; } .theirs { fill: #5a5f6e; stroke: #80869a; }
}
</style>"""


def scores_by(name: str, *fields: str) -> dict[tuple[Any, ...], list[float]]:
    """F1 of the seeds that a file of results has, by these fields."""
    lines = [x for x in read_lines(RESULTS / name) if x.get("part", "test") == "test"]
    groups = group_runs(lines, key=lambda x: tuple(x[field] for field in fields), order=())
    return {key: [x["f"] for x in group] for key, group in groups}


def text(x: float, y: float, words: str, *, anchor: str = "start", small: bool = False) -> str:
    kind = ' class="small"' if small else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{kind}>{escape(words)}</text>'


def svg(title: str, width: int, height: int, parts: Iterable[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join([f'{head} role="img">', f"<title>{escape(title)}</title>", STYLE, *parts, "</svg>"]) + "\n"


def draw_bars(title: str, groups: Mapping[str, Sequence[tuple[str, str, float]]], *, most: float, log: bool) -> str:
    """groups: title to (system, what stands beside its bar, value)."""
    parts, y = [], 0
    for name, bars in groups.items():
        parts.append(text(10, y + 18, name))
        y += 28
        for system, label, value in bars:
            length = 260 * (math.log(value) / math.log(most) if log else value / most)
            kind = "ours" if system in OURS else "theirs"
            parts.append(text(236, y + 14, label, anchor="end", small=True))
            parts.append(f'<rect class="{kind}" x="244" y="{y}" width="{length:.0f}" height="18" rx="2"/>')
            parts.append(text(250 + length, y + 14, f"{value:,.0f}" if log else f"{value + 1e-9:.1f}", small=True))
            y += 24
        y += 8
    return svg(title, 566, y, parts)


def draw_speed() -> str:
    rows = json.loads((RESULTS / "speed.json").read_text(encoding="utf8"))["inference"]
    found = {x["system"]: x["words_per_second"] for x in rows if x["precision"] == "float32" and x["system"] in SYSTEMS}
    bars = [(x, SYSTEMS[x], found[x]) for x in sorted(found, key=lambda x: -found[x])]
    title = "Words a second, base size, float32, two CPU cores"
    return draw_bars(title, {f"{title} (logarithmic)": bars}, most=1_000, log=True)


def draw_quality() -> str:
    scores = scores_by("quality.jsonl", "dataset", "system")
    groups = {
        NESTED.get(name, SETS[name]): [(x, SYSTEMS[x], mean(scores[name, x])) for x in SYSTEMS if (name, x) in scores]
        for name in ("conll2003", "wnut17", "genia")
    }
    return draw_bars("F1 with MiniLM and 600 to 800 training sentences", groups, most=100, log=False)


def draw_lengths() -> str:
    """A field a data set: F1 by the sentences of a Doc, before and after."""
    scores = scores_by("lengths.jsonl", "set", "system", "size")
    names = sorted({name for name, _, _ in scores})
    sizes = sorted({size for _, _, size in scores})
    parts = [
        '<path class="theirs curve" d="M20 14 H50"/>',
        text(56, 18, "trained on sentences, windows of 512", small=True),
        '<path class="ours curve" d="M300 14 H330"/>',
        text(336, 18, "mixed lengths, max_window = null", small=True),
    ]
    for field, name in enumerate(names):
        left, top = 30 + field % 2 * 350, 34 + field // 2 * 170
        parts.append(text(left, top + 14, SETS[name]))
        values = {system: [mean(scores[name, system, size]) for size in sizes] for system in ("before", "after")}
        every = [x for some in values.values() for x in some]
        low, high = round_to(every, up=False), round_to(every, up=True)
        for system, some in values.items():
            points = [
                f"{left + 30 + 280 * i / (len(sizes) - 1):.0f} {top + 130 - 100 * (x - low) / (high - low):.0f}"
                for i, x in enumerate(some)
            ]
            parts.append(f'<path class="{"ours" if system in OURS else "theirs"} curve" d="M{" L".join(points)}"/>')
        parts.append(f'<path class="axis" fill="none" d="M{left + 30} {top + 25} V{top + 135} H{left + 315}"/>')
        parts += [text(left + 24, top + y, str(x), anchor="end", small=True) for x, y in ((high, 34), (low, 134))]
        for i, size in enumerate(sizes):
            parts.append(
                text(left + 30 + 280 * i / (len(sizes) - 1), top + 150, str(size), anchor="middle", small=True)
            )
    return svg("F1 by the sentences of a Doc", 720, 34 + (len(names) + 1) // 2 * 170, parts)


def round_to(values: Sequence[float], *, up: bool) -> int:
    """The next multiple of five."""
    return 5 * (math.ceil(max(values) / 5) if up else math.floor(min(values) / 5))


CHARTS = {"chart_speed.svg": draw_speed, "chart_quality.svg": draw_quality, "chart_lengths.svg": draw_lengths}

if __name__ == "__main__":
    for name, draw in CHARTS.items():
        (IMAGES / name).write_text(draw(), encoding="utf8")
