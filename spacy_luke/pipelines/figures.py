"""Figures of measurements as tables in Markdown.

Known are the files of `spacy luke evaluate` (scores of components, by label, with their reliability) and those of
`benchmarks/ready.py` (entities on several sets beside another pipeline, with intervals).
"""

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

Figures = Mapping[str, Any]
Row = Sequence[str]


class _Scored(NamedTuple):
    """What `evaluate` writes of a component. name: in prose; key: before "_p", "_r", "_f" and "_per_type"."""

    name: str
    key: str


SCORED = (
    _Scored("entities", "ents"),
    _Scored("types of mentions", "types_micro"),
    _Scored("relations", "relations"),
    _Scored("links", "links"),
)
PER_TYPE = {"types_micro": "types_per_type"}
RELIABILITY = "_reliability"  # after the name of a component
Z = 1.96  # of a 95 % interval


def figure_tables(figures: Mapping[str, Figures]) -> dict[str, list[str]]:
    """Paragraphs of Markdown under their titles. figures: by the name of their file. Raises ValueError where a file has
    nothing that is known."""
    found: dict[str, list[str]] = {}
    for name, figure in figures.items():
        read = list(_sets(figure) if "sets" in figure else _scores(figure))
        if not read:
            raise ValueError(
                f"The figures in '{name}' have none of the scores that `spacy luke evaluate` or benchmarks/ready.py "
                f"write; they have {sorted(figure)[:10]}."
            )
        for title, text in read:
            heading = [] if "sets" in figure else [f"On `{name}`, {figure.get('words', 0):,} words:"]
            found.setdefault(title, []).extend([*heading, text])
    return found


def markdown_table(header: Row, rows: Sequence[Row]) -> str:
    """Columns without any text are left out."""
    columns = [i for i in range(len(header)) if any(row[i] for row in rows)]
    lines = [[header[i] for i in columns], ["---"] * len(columns)]
    lines += [[row[i].replace("|", "\\|").replace("\n", " ") for i in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wilson(right: float, n: int) -> tuple[float, float]:
    """A 95 % interval of a share (Wilson, 1927). right: the share that was found among n."""
    if not n:
        return 0.0, 1.0
    middle, width = right + Z**2 / (2 * n), Z * sqrt(right * (1 - right) / n + Z**2 / (4 * n**2))
    return (middle - width) / (1 + Z**2 / n), (middle + width) / (1 + Z**2 / n)


def _sets(figure: Figures) -> Iterator[tuple[str, str]]:
    lines = figure["sets"]
    labels = [key for key in lines[0]["ready"] if key not in ("f", "p", "r", "interval")]
    rows = [
        (
            f"{x['set']}{'' if x['inside'] else ' (another domain)'}",
            f"{x['size']}",
            f"{x['mentions']:,}",
            _with_interval(x["ready"]["f"], x["ready"]["interval"]),
            *(f"{x['ready'][key]:.1f}" for key in ("p", "r", *labels)),
            f"{x['spacy']['f']:.1f}" if "spacy" in x else "",
        )
        for x in lines
    ]
    header = ("set", "sentences a text", "mentions", "F1", "P", "R", *labels, "spaCy's small")
    note = "F1 in points; a mention counts where words and label are right. In brackets 95 % intervals over sentences."
    yield "Scores: entities", f"{note}\n\n{markdown_table(header, rows)}"
    if "chip" in figure:
        yield "Scores: entities", f"Measured on {figure['chip']}."


def _scores(figure: Figures) -> Iterator[tuple[str, str]]:
    for scored in SCORED:
        if (f := figure.get(f"{scored.key}_f")) is not None:
            p, r = (figure.get(f"{scored.key}_{x}") or 0.0 for x in "pr")
            rows: list[Sequence[str]] = [("**all**", *(f"{100 * x:.1f}" for x in (p, r, f)))]
            per_type = figure.get(PER_TYPE.get(scored.key, f"{scored.key}_per_type")) or {}
            rows += [(label, *(f"{100 * score[x]:.1f}" for x in "prf")) for label, score in sorted(per_type.items())]
            yield f"Scores: {scored.name}", markdown_table(("label", "P", "R", "F1"), rows)
    rows = [
        _reliability_row(key.removesuffix(RELIABILITY), value)
        for key, value in figure.items()
        if key.endswith(RELIABILITY) and value["n"]
    ]
    if rows:
        header = ("component", "shown", "right", "mean score", "expected calibration error")
        yield "How far scores can be believed", markdown_table(header, rows)
    if speed := figure.get("words_per_second"):
        yield "Speed", f"{speed:,.0f} words a second, with all components."


def _reliability_row(name: str, value: Mapping[str, Any]) -> Row:
    n = value["n"]
    right, score = (sum(one["n"] * one[key] for one in value["bins"]) / n for key in ("right", "score"))
    low, high = wilson(right, n)
    return (
        f"`{name}`",
        f"{n:,}",
        f"{_with_interval(100 * right, (100 * low, 100 * high))} %",
        f"{100 * score:.1f} %",
        f"{value['ece']:.3f}",
    )


def _with_interval(value: float, interval: Sequence[float]) -> str:
    low, high = interval
    return f"{value:.1f} ({low:.1f}-{high:.1f})"
