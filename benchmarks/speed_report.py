"""results/speed.json as Markdown."""

from statistics import median
from typing import Any

# What is wanted of the ratios of words per second, float32: (faster, slower, wanted at least, what it says).
WANTED: list[tuple[str, str, float, str]] = [
    ("luke_full", "hf_luke", 2.0, "`full` beside Hugging Face LUKE, identical predictions"),
    ("luke_full", "products", 1 / 1.3, "`full` beside its own matrix products alone"),
    ("luke_one_way", "hf_luke", 20.0, "`one_way` beside Hugging Face LUKE"),
    ("luke_one_way", "hf_luke_sentence", 0.0, "`one_way` beside Hugging Face LUKE without context"),
    ("luke_one_way", "span_marker", 10.0, "`one_way` beside SpanMarker"),
    ("luke_one_way", "span_marker_document", 0.0, "`one_way` beside SpanMarker with document context"),
    ("luke_one_way", "spacy_ner", 1.0, "`one_way` beside spaCy's transformer `ner`"),
    ("luke_one_way", "token_classifier", 1 / 1.5, "`one_way` beside a bare token classifier"),
    ("luke_one_way", "gliner2", 0.0, "`one_way` beside GLiNER2"),
    ("luke_small", "spacy_cnn", 0.5, "`one_way` of MiniLM beside spaCy's CNN `ner`"),
    ("luke_one_way_sentence", "token_classifier", 0.0, "`one_way`, sentence context, beside a bare token classifier"),
]


def make_report(result: dict[str, Any]) -> str:
    size = ", ".join(f"{k} {v}" for k, v in result["size"].items())
    versions = ", ".join(f"{k} {v}" for k, v in result["versions"].items())
    lines = [
        "# NER speed",
        "",
        "Written by `python benchmarks/speed.py`; docs/results/speed.md says what each system does.",
        f"Random weights ({size}), CoNLL-2003 test documents, one process, alternating, medians.",
        f"{result['chip']}{_told(result)}; {versions}.",
        "",
        "## Inference",
        "",
        "| system | precision | words/s | slowest and fastest round | documents | words | entities | batch | threads |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["inference"]:
        if not row["seconds"]:
            continue
        ends = [row["words"] / x for x in (max(row["seconds"]), min(row["seconds"]))]
        cells = [row["system"], row["precision"], f"{row['words_per_second']:.1f}", f"{ends[0]:.1f} to {ends[1]:.1f}"]
        cells += [str(row[k]) for k in ("documents", "words", "entities")]
        cells += ["default" if row["batch"] is None else str(row["batch"]), str(row["threads"])]
        lines.append("| " + " | ".join(cells) + " |")
    lines += _ratios(result)
    for precision, (equal, found) in result.get("equal", {}).items():
        lines += ["", f"{precision}: `luke_full` and Hugging Face LUKE agree on {equal} of {found} entities."]
    lines += ["", *result["notes"]] if result["notes"] else []
    if result["training"]:
        lines += ["", "## Training steps", "", "| system | precision | words/s | seconds a step |", "|---|---|---|---|"]
        for row in result["training"]:
            step = median(row["seconds"])
            lines.append(f"| {row['system']} | {row['precision']} | {row['words_per_second']:.1f} | {step:.2f} |")
    return "\n".join(lines) + "\n"


def _ratios(result: dict[str, Any]) -> list[str]:
    rates = {(x["system"], x["precision"]): x.get("words_per_second") for x in result["inference"]}
    precisions = list(dict.fromkeys(x["precision"] for x in result["inference"]))
    head = " | ".join(precisions)
    lines = [
        "",
        "## Ratios of words per second",
        "",
        "Beside a peer that has float32 alone, that counts in each column.",
        "",
        f"| | wanted in float32 | {head} |",
        "|---|---|" + "---|" * len(precisions),
    ]
    for one, other, wanted, words in WANTED:
        alone = [p for p in precisions if (other, p) in rates] == ["float32"]  # it stands beside all formats
        ratios = [_ratio(rates.get((one, p)), rates.get((other, "float32" if alone else p))) for p in precisions]
        if any(ratios):
            shown = " | ".join(f"{x:.2f}" if x else "" for x in ratios)
            lines.append(f"| {words} | {f'{wanted:.2f}' if wanted else ''} | {shown} |")
    return lines


def _told(result: dict[str, Any]) -> str:
    """Of newer results: the chip's instructions, and what one-way attention encodes."""
    if "instructions" not in result:
        return ""
    return f" with {', '.join(result['instructions'])}; {result['spans_per_word']:g} spans a word in one-way attention"


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None
