"""A report as one HTML file: nothing comes from the network, nothing runs, and what users wrote is escaped."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from .charts import Bar, Line, bar_chart, line_chart, matrix_chart
from .findings import ItemGroup, ShownExample
from .report import ComponentReport, Report
from .statistics import Difference, LabelScore, Measure

_MOST_BARS = 16
_MOST_LOSSES = 4
_ABOUT = {"entities": "mentions", "types": "mentions", "relations": "pairs", "links": "mentions"}
_ABOUT |= {"questions": "answers", "queries": "answers"}
_LENGTHS = {"relations": "words between the two", "questions": "words of an answer", "queries": "words of an answer"}
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --text: #1c2430; --soft: #5a6675; --line: #d9dee6; --page: #fff; --card: #f6f8fa;
  --one: #2059a8; --two: #b3541e; --three: #2c7a4b; --four: #7a4fa3; --wrong: #b3261e; --mark: #ffe27a; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --text: #e4e8ee; --soft: #a0abba; --line: #38424f; --page: #14181d; --card: #1b2128; --one: #7fb0f5;
    --two: #f0a06a; --three: #7fcf9c; --four: #c6a5f0; --wrong: #f2a09a; --mark: #6b5a12; }}
}}
* {{ box-sizing: border-box; }}
body {{ font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; color: var(--text);
  background: var(--page); max-width: 68rem; margin: 2rem auto; padding: 0 1.2rem; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.5rem; margin: 0; }}
h2 {{ font-size: 1.25rem; margin: 2.4rem 0 .6rem; border-bottom: 2px solid var(--line); padding-bottom: .3rem; }}
h3 {{ font-size: 1rem; margin: 1.4rem 0 .4rem; }}
p {{ margin: .4rem 0; }}
.soft, caption {{ color: var(--soft); }}
.note {{ border-inline-start: .25rem solid var(--two); padding-inline-start: .7rem; }}
nav a {{ color: var(--one); margin-inline-end: 1rem; }}
.charts {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem; }}
figure {{ margin: 0; padding: .7rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--card); }}
figcaption {{ font-weight: 600; margin-bottom: .4rem; }}
figcaption small {{ display: block; font-weight: 400; color: var(--soft); }}
svg {{ display: block; width: 100%; height: auto; max-width: 34rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .92em; width: 100%; }}
caption {{ text-align: start; font-size: .92em; padding-bottom: .3rem; }}
th, td {{ text-align: end; padding: .25rem .5rem; border-bottom: 1px solid var(--line); vertical-align: top;
  font-variant-numeric: tabular-nums; overflow-wrap: normal; }}
th:first-child, td:first-child, td.text {{ text-align: start; }}
td.text {{ min-width: 13rem; overflow-wrap: anywhere; }}
td:not(.text) {{ white-space: nowrap; }}
.wide, .charts {{ margin: 1rem 0; }}
mark {{ background: var(--mark); color: inherit; border-radius: .2em; padding: .05em .2em; }}
.wrong {{ color: var(--wrong); }}
@media (max-width: 40rem) {{ body {{ margin: 1rem auto; padding: 0 .7rem; }} table {{ font-size: .82em; }}
  th, td {{ padding: .25rem .3rem; }} }}
@media print {{ body {{ max-width: none; margin: 0; }} figure {{ break-inside: avoid; }} }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
{content}
</main>
</body>
</html>
"""

Picture = tuple[str, str, str]  # name of a file, caption, SVG


def draw_page(report: Report) -> str:
    """The whole report."""
    title = " and ".join(report.names)
    report = report._replace(names=_short(report.names))
    return _PAGE.format(title=escape(title), content="\n".join(_content(report)))


def _short(names: Sequence[str]) -> list[str]:
    """The ends of paths, as much of them as tells them apart."""
    parts = [name.rstrip("/").split("/") for name in names]
    size = 1
    while len({tuple(x[-size:]) for x in parts}) < len(set(names)) and size < max(map(len, parts)):
        size += 1
    return ["/".join(x[-size:]) for x in parts]


def pictures_of(report: Report) -> Iterator[Picture]:
    """All charts of a report, each with a name for a file of its own."""
    for component in report.components:
        for name, caption, svg in _charts(component, _short(report.names)):
            yield f"{component.name}_{name}", caption, svg
    yield from _training(report)


def _content(report: Report) -> Iterator[str]:
    speed = ", ".join(f"{speed:,.0f}" for speed in report.speeds)
    yield (
        f'<p class="soft">{escape(report.data)}: {report.documents:,} documents, {report.words:,} words; {speed} words '
        "a second. Intervals hold 95 of 100 draws of the documents (bootstrap).</p>"
    )
    yield from (f'<p class="note">{escape(note)}</p>' for note in report.notes)
    links = "".join(f'<a href="#{escape(one.name)}">{escape(one.name)}</a>' for one in report.components)
    yield f'<nav aria-label="Components">{links}{"<a href=#training>training</a>" if report.training else ""}</nav>'
    for component in report.components:
        yield f'<section id="{escape(component.name)}"><h2>{escape(component.name)}: {escape(component.what)}</h2>'
        yield from _component(component, report)
        yield "</section>"
    if pictures := list(_training(report)):
        yield f'<section id="training"><h2>Training</h2>{_figures(pictures)}</section>'


def _component(one: ComponentReport, report: Report) -> Iterator[str]:
    header, rows = one.table
    if not one.labels:
        yield _table("Scores in percent", header, rows)
        return
    answers = one.what in ("questions", "queries")
    if answers:
        yield _table("Scores in percent, as the official script counts", header, rows)
    if one.differences:
        yield _verdict(one.differences[0][1], report.names)
        yield _table("F1 of both, in percent", _compared(report.names), map(_difference_row, one.differences))
    rows = list(map(_label_row, one.labels))
    caption = "Exact answers, in percent; F1 with its interval" if answers else "In percent; F1 with its interval"
    yield _table(caption, ("", "P", "R", "F1", "from", "to", "gold", "found"), rows)
    yield _figures(list(_charts(one, report.names)))
    for groups, title in (
        (one.lengths, _LENGTHS.get(one.what, "words of a mention")),
        (one.frequencies, f"times that the gold has these {_ABOUT.get(one.what, 'mentions')}"),
    ):
        if groups:
            yield _table(f"By {title}", (title, "gold", "found", "P", "R"), map(_group_row, groups))
    if one.examples:
        yield _examples(one.examples)


def _charts(one: ComponentReport, names: Sequence[str]) -> Iterator[Picture]:
    labels = [row for row in one.labels if row.label or len(one.labels) == 1][:_MOST_BARS]
    if labels:
        wanted = {row.label: row for row in labels}
        pairs = [(label, x) for label, x in one.differences if label in wanted]
        bars = [_bar(row.label, row.f) for row in labels]
        seconds = [_bar(label, x.second) for label, x in pairs] if len(pairs) == len(labels) else []
        if seconds:
            bars = [_bar(label, x.first) for label, x in pairs]
        caption = "F1 of each label, with its interval"
        yield "labels", caption, bar_chart(caption, bars, others=seconds, names=names if seconds else ())
    if one.confusion is not None and len(one.confusion.labels) > 1:
        shown = [label or "nothing" for label in one.confusion.labels]
        caption = "What is called what"
        yield "confusion", caption, matrix_chart(caption, shown, one.confusion.counts, rows="gold", columns="found")
    if len(one.curve) > 1:
        caption = "Precision and recall by the least score that is shown"
        lines = [
            Line("precision", [(p.threshold, p.precision) for p in one.curve]),
            Line("recall", [(p.threshold, p.recall) for p in one.curve]),
            Line("F1", [(p.threshold, _f1(p.precision, p.recall)) for p in one.curve]),
        ]
        yield "threshold", caption, line_chart(caption, lines, x="least score", y="share")
    if one.bins:
        error = "" if one.calibration_error is None else f"; expected calibration error {one.calibration_error:.3f}"
        caption = f"How many are right, by their score{error}"
        lines = [
            Line("right", [(b.score, b.right) for b in one.bins], dots=True),
            Line("as good as its word", [(0, 0), (1, 1)], dashed=True),
        ]
        yield "calibration", caption, line_chart(caption, lines, x="score", y="right", x_range=(0, 1))


def _training(report: Report) -> Iterator[Picture]:
    curves = report.training
    if curves is None:
        return
    scores = [Line(name, points) for name, points in list(curves.scores.items())[:3]]
    caption = "Scores on the dev data while training"
    yield "training_scores", caption, line_chart(caption, [Line("score", curves.score), *scores], x="step", y="score")
    losses = [Line(name, points) for name, points in curves.losses.items() if any(y for _, y in points)][:_MOST_LOSSES]
    if losses:
        caption = "Losses, a step"
        top = max(y for line in losses for _, y in line.points) or 1.0
        yield "training_losses", caption, line_chart(caption, losses, x="step", y="loss", y_top=top)


def _figures(pictures: Sequence[Picture]) -> str:
    shown = (f"<figure><figcaption>{escape(caption)}</figcaption>{svg}</figure>" for _, caption, svg in pictures)
    return f'<div class="charts">{"".join(shown)}</div>'


def _verdict(total: Difference, names: Sequence[str]) -> str:
    points = 100 * total.difference.value
    said = "significant" if total.is_significant else "not significant: chance alone would do as much"
    better = "better" if points > 0 else "worse" if points < 0 else "as good"
    interval = f"{100 * total.difference.low:+.2f} to {100 * total.difference.high:+.2f}"
    return (
        f"<p><b>{escape(names[1])}</b> is {better}, by {abs(points):.2f} points of F1 ({interval}), p = {total.p:.3f}: "
        f"<b>{said}</b>.</p>"
    )


def _compared(names: Sequence[str]) -> tuple[str, ...]:
    return ("", names[0], names[1], "difference", "from", "to", "p", "")


def _difference_row(row: tuple[str, Difference]) -> list[str]:
    label, x = row
    shown = (x.difference.value, x.difference.low, x.difference.high)
    verdict = "significant" if x.is_significant else ""
    values = [f"{100 * x.first.value:.2f}", f"{100 * x.second.value:.2f}", *(f"{100 * v:+.2f}" for v in shown)]
    return [label or "all", *values, f"{x.p:.3f}", verdict]


def _label_row(row: LabelScore) -> list[str]:
    values = (row.precision, row.recall, *row.f)
    return [row.label or "all", *(f"{100 * x:.2f}" for x in values), f"{row.gold:,}", f"{row.found:,}"]


def _group_row(row: ItemGroup) -> list[str]:
    values = ("" if x is None else f"{100 * x:.2f}" for x in (row.precision, row.recall))
    return [row.name, f"{row.gold:,}", f"{row.found:,}", *values]


def _bar(label: str, measure: Measure) -> Bar:
    return Bar(label or "all", *measure)


def _examples(examples: Sequence[ShownExample]) -> str:
    rows = []
    for one in examples:
        asked = f"<b>{escape(one.asked)}</b><br>" if one.asked else ""
        text = asked + "".join(
            f"<mark>{escape(part)}</mark>" if is_item else escape(part) for part, is_item in one.parts
        )
        score = "" if one.score is None else f"{one.score:.3f}"
        said = f'<td class="wrong">{escape(one.said) or "nothing"}</td><td>{escape(one.truth) or "nothing"}</td>'
        rows.append(f'<tr><td class="text">{text}</td>{said}<td>{score}</td></tr>')
    head = "".join(f'<th scope="col">{x}</th>' for x in ("in the text", "found", "gold", "score"))
    caption = "<caption>What is wrong, the surest first, and what is missed</caption>"
    return f'<h3>Errors</h3><div class="wide" tabindex="0"><table>{caption}<tr>{head}</tr>{"".join(rows)}</table></div>'


def _table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{escape(x)}</th>' for x in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(x)}</td>' for x in row)}</tr>" for row in rows)
    table = f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"
    return f'<div class="wide" tabindex="0">{table}</div>'


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
