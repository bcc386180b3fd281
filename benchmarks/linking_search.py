"""How often the entity of a mention is among 30 that a knowledge base proposes: by names, with slips, by vectors.

    python -m spacy luke starter-kb SOURCES KB && python -m spacy luke embed-entities KB --weights WEIGHTS
    python benchmarks/linking_search.py KB --weights WEIGHTS

Mentions are the gold ones; of a mention the text alone is asked. Writes results/linking_search.json and .md, and which
mentions each way finds to results/predictions/linking_search. docs/results/linking.md says what is compared.
"""

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from linking import ENCODER
from machine import describe_machine
from paired import Answers, Gap, compare, count, keep, score

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
RESULTS = Path(__file__).parent / "results"
SETS = {
    "AIDA testb": ("zelda", "ed_zelda/test_aida-b.jsonl"),
    "MSNBC": ("wned", "ed_wned/msnbc/msnbc.xml"),
    "Tweeki": ("zelda", "ed_zelda/test_tweeki.jsonl"),
}
TOP = 30
WAYS = ("alias", "fuzzy", "dense", "alias, fuzzy", "together")
BATCH = 256  # texts encoded at once


class Mention(NamedTuple):
    """start, end: characters."""

    start: int
    end: int
    text: str
    title: str


def main() -> None:
    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kb", type=Path, help="folder of a knowledge base with vectors")
    parser.add_argument("--weights", default=ENCODER, help="the encoder that made its vectors")
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--limit", type=int, help="records of each set (smoke runs)")
    result = run(parser.parse_args())
    (RESULTS / "linking_search.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    (RESULTS / "linking_search.md").write_text(make_table(result), encoding="utf8")
    print(make_table(result))


def run(options: argparse.Namespace) -> dict[str, Any]:
    import torch

    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source
    from spacy_luke.checkpoint.text_encoder import TextEncoder
    from spacy_luke.kb.knowledge_base import EntityKB

    if options.threads:
        torch.set_num_threads(options.threads)
    kb = EntityKB.open(options.kb)
    encoder = TextEncoder(read_checkpoint(find_source(options.weights), entities="special"))
    if kb.vectors is None or kb.vectors.encoder not in (None, encoder.fingerprint()):
        raise SystemExit(f"Expected vectors of {options.weights} in {options.kb}: run embed-entities.")
    rows = []
    for name, (format, path) in SETS.items():
        records = list(read_mentions(options.data / path, format, options.limit))
        known = [[x for x in mentions if kb.row(x.title) >= 0] for mentions in records]
        start = time.perf_counter()
        found = search_all(kb, encoder, sorted({x.text for mentions in known for x in mentions}))
        seconds = time.perf_counter() - start
        answers = {way: answers_of(kb, known, found, way) for way in WAYS}
        counts = {way: count(some) for way, some in answers.items()}
        rows.append(
            {
                "set": name,
                "mentions": sum(map(len, records)),
                "known": sum(map(len, known)),
                **{way: round(float(score(x.sum(0))), 1) for way, x in counts.items()},
                "above": {way: compare([counts["alias"]], [x])[:3] for way, x in counts.items() if way != "alias"},
                "predictions": {way: keep_answers(name, way, some, options) for way, some in answers.items()},
                "seconds": round(seconds, 1),
                "texts": len(found),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return {"kb": options.kb.name, "entities": len(kb), "names": kb.n_names, "rows": rows, **describe_machine()}


def read_mentions(path: Path, format: str, limit: int | None) -> Iterator[list[Mention]]:
    """Of each record the mentions whose entity is known."""
    from itertools import islice

    from spacy_luke.annotations import UNLINKED
    from spacy_luke.readers.datasets.table import read_dataset

    for record in islice(read_dataset(path, format=format), limit):
        yield [
            Mention(x.start, x.end, record.text[x.start : x.end], x.kb_id)
            for x in record.mentions
            if x.kb_id and x.kb_id not in UNLINKED and record.text is not None
        ]


def answers_of(
    kb: Any, records: Sequence[Sequence[Mention]], found: Mapping[str, Mapping[str, set[int]]], way: str
) -> list[Answers]:
    """Of each record the titles of its mentions, and the same of those that are found; "-" of the others, so that F1
    is the share that is found."""
    answers = []
    for mentions in records:
        titles = [x.title if kb.row(x.title) in found[x.text][way] else "-" for x in mentions]
        pairs = [x.title for x in mentions], titles
        answers.append(tuple([f"{x.start}-{x.end} {y}" for x, y in zip(mentions, some, strict=True)] for some in pairs))
    return answers


def keep_answers(name: str, way: str, answers: Sequence[Answers], options: argparse.Namespace) -> str | None:
    """The path; None of a smoke run."""
    return None if options.limit else keep(f"linking_search/{name}-{way}.jsonl", answers)


def search_all(kb: Any, encoder: Any, texts: Sequence[str]) -> dict[str, dict[str, set[int]]]:
    """Of each text the rows that each way finds, TOP at most. "alias, fuzzy" and "together" take the first of each way
    before the next one's."""
    from spacy_luke.kb.search import fuzzy_names, nearest_entities

    found = {}
    for start in range(0, len(texts), BATCH):
        some = texts[start : start + BATCH]
        for text, vector in zip(some, encoder.encode(some), strict=True):
            alias = [row for row, _ in kb.candidate_rows(text, top=TOP)]
            slips = {row: prior for name in fuzzy_names(kb, text) for row, prior in kb.candidate_rows(name)}
            fuzzy = sorted(slips, key=lambda row: (-kb.count(row), -slips[row], row))[:TOP]
            dense = [row for row, _ in nearest_entities(kb, vector, top=TOP)]
            ways = [alias, fuzzy, dense, [*alias, *fuzzy], share(alias, [*fuzzy, *dense])]
            found[text] = {way: set(list(dict.fromkeys(rows))[:TOP]) for way, rows in zip(WAYS, ways, strict=True)}
    return found


def share(first: Sequence[int], others: Sequence[int]) -> list[int]:
    """Two thirds of TOP of the first at most, then the others, then what is left of the first."""
    most = 2 * TOP // 3
    return [*first[:most], *others, *first[most:]]


def percent(part: int, whole: int) -> float:
    return round(100 * part / max(whole, 1), 1)


def make_table(result: dict[str, Any]) -> str:
    lines = [
        "# Candidates of a starter knowledge base",
        "",
        "Written by `python benchmarks/linking_search.py`; see docs/results/linking.md. Gold mentions; of those",
        f"whose entity it has ({result['entities']:,} entities, {result['names']:,} names) the percentage for",
        f"which it is one of {TOP} found, and how far this is above `alias`, with 95 % intervals over documents.",
        "",
        "| set | mentions | in the knowledge base | " + " | ".join(WAYS) + " | ms a text, all ways |",
        "|---" * (4 + len(WAYS)) + "|",
    ]
    for x in result["rows"]:
        cells = [x["set"], f"{x['mentions']:,}", f"{x['known']:,} ({percent(x['known'], x['mentions'])} %)"]
        for way in WAYS:
            gap = Gap(*x["above"][way], runs=None) if way in x["above"] else None
            cells.append(f"{x[way]:.1f}" + ("" if gap is None else f"; {gap}"))
        lines.append("| " + " | ".join([*cells, f"{1000 * x['seconds'] / max(x['texts'], 1):.0f}"]) + " |")
    machine = f"{result['chip']}, {result['threads']} threads, torch {result['versions']['torch']}"
    return "\n".join([*lines, "", f"Machine: {machine}.", ""])


if __name__ == "__main__":
    main()
