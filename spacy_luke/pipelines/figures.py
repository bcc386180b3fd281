"""Figures of measurements as tables in Markdown.

Known are the files of `spacy luke evaluate` (scores of components, by label, with their reliability), of
`benchmarks/ready.py` (entities on several sets beside another pipeline, with intervals), of
`benchmarks/ready_speed.py`, and of `scripts/ready_linker.py` (links on several sets).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from math import sqrt
from typing import Any, NamedTuple

Figures = Mapping[str, Any]
Row = Sequence[str]


class _Scored(NamedTuple):
    """What `evaluate` writes of a component. name: in prose; key: before "_p", "_r", "_f" and "_per_type"; a group of
    spans has its name after "spans_"."""

    name: str
    key: str


_SCORED = (
    _Scored("entities", "ents"),
    _Scored("entities, nested ones too", "spans_*"),
    _Scored("types of mentions", "types_micro"),
    _Scored("relations", "relations"),
    _Scored("links", "links"),
)
_PER_TYPE = {"types_micro": "types_per_type"}
_RELIABILITY = "_reliability"  # after the name of a component
_BELIEVED, _SPEED = "How far scores can be believed", "Speed"
_RELIABILITY_HEADER = ("component", "shown", "right", "mean score", "expected calibration error")
Z = 1.96  # of a 95 % interval


def figure_tables(figures: Mapping[str, Figures]) -> dict[str, list[str]]:
    """Paragraphs of Markdown under their titles. figures: by the name of their file. Raises ValueError where a file has
    nothing that is known."""
    found: dict[str, list[str]] = {}
    measured = any("speeds" in figure for figure in figures.values())  # then what `evaluate` took is left out
    for name, figure in figures.items():
        read = next((table for key, table in _SEVERAL.items() if key in figure), None)
        texts = list(_scores(figure) if read is None else read(figure))
        if read is None and not texts:
            raise ValueError(
                f"The figures in '{name}' have none of the scores that `spacy luke evaluate` or benchmarks/ready.py "
                f"write; they have {sorted(figure)[:10]}."
            )
        for title, text in texts:
            if read is None and title == _SPEED and measured:
                continue
            heading = [f"On `{name}`, {figure.get('words', 0):,} words:"] if read is None else []
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
    if reliability := figure.get("reliability"):
        believed = [_reliability_row(f"`luke_ner`, {name}", one) for name, one in reliability.items()]
        yield _BELIEVED, markdown_table(_RELIABILITY_HEADER, believed)


def _link_sets(figure: Figures) -> Iterator[tuple[str, str]]:
    rows: list[Row] = [
        (name, f"{x['shown']:,}", *(f"{x[key]:.1f}" for key in ("precision", "recall", "f")))
        for name, x in figure["links"].items()
    ]
    if not rows:  # the linker was left out
        return
    note = "Of entities that the pipeline itself finds; recall of all mentions whose entity is in the knowledge base."
    yield "Scores: links", f"{note}\n\n{markdown_table(('set', 'shown', 'P', 'R', 'F1'), rows)}"
    if (reliability := figure.get("reliability")) and reliability["n"]:
        yield _BELIEVED, markdown_table(_RELIABILITY_HEADER, [_reliability_row("`luke_linker`", reliability)])


def _speeds(figure: Figures) -> Iterator[tuple[str, str]]:
    rows = [(x["system"], f"{x['words_per_second']:,.0f}", f"{x['ratio']:.2f}") for x in figure["speeds"]]
    header = ("system", "words a second", "of spaCy's")
    note = (
        f"{figure['words']:,} words, one thread of {figure['chip']}, a chip {'with' if figure['amx'] else 'without'} "
        f"AMX; it loads in {figure['load_seconds']:.1f} seconds, with Python and its imports."
    )
    yield _SPEED, f"{note}\n\n{markdown_table(header, rows)}"


def _scores(figure: Figures) -> Iterator[tuple[str, str]]:
    for scored in _SCORED:
        for key in (key.removesuffix("_f") for key in figure if fnmatch(key, f"{scored.key}_f")):
            if (f := figure[f"{key}_f"]) is None:
                continue
            p, r = (figure.get(f"{key}_{x}") or 0.0 for x in "pr")
            rows: list[Sequence[str]] = [("**all**", *(f"{100 * x:.1f}" for x in (p, r, f)))]
            per_type = figure.get(_PER_TYPE.get(key, f"{key}_per_type")) or {}
            rows += [(label, *(f"{100 * score[x]:.1f}" for x in "prf")) for label, score in sorted(per_type.items())]
            yield f"Scores: {scored.name}", markdown_table(("label", "P", "R", "F1"), rows)
    rows = [
        _reliability_row(f"`{key.removesuffix(_RELIABILITY)}`", value)
        for key, value in figure.items()
        if key.endswith(_RELIABILITY) and value["n"]
    ]
    if rows:
        yield _BELIEVED, markdown_table(_RELIABILITY_HEADER, rows)
    if speed := figure.get("words_per_second"):
        yield _SPEED, f"{speed:,.0f} words a second, with all components."


def _reliability_row(name: str, value: Mapping[str, Any]) -> Row:
    n = value["n"]
    right, score = (sum(one["n"] * one[key] for one in value["bins"]) / n for key in ("right", "score"))
    low, high = wilson(right, n)
    return (
        name,
        f"{n:,}",
        f"{_with_interval(100 * right, (100 * low, 100 * high))} %",
        f"{100 * score:.1f} %",
        f"{value['ece']:.3f}",
    )


def _with_interval(value: float, interval: Sequence[float]) -> str:
    low, high = interval
    return f"{value:.1f} ({low:.1f}-{high:.1f})"


# What is in a file, by a key that only such files have.
_SEVERAL: Mapping[str, Callable[[Figures], Iterator[tuple[str, str]]]] = {
    "sets": _sets,
    "links": _link_sets,
    "speeds": _speeds,
}
