"""Pairs of mentions that are far apart, this version beside an older one: what is encoded for them, and how long it
takes.

    git worktree add ../old 5558060                    # the last one that read such pairs one by one
    python benchmarks/far_pairs.py ../old              # results/far_pairs.json, results/far_pairs.md

`luke_relation` (one_way, tokens = "pair") on MiniLM with a fresh head, all pairs of Re-DocRED's first mentions within
so many words, in documents and in five of them joined. Pieces are what goes through the encoder, in times of the
documents' own; seconds are of the processor, on one thread, the least of the rounds, in which both take turns.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

from machine import describe_machine
from measuring import MINILM, data_parser, write_report
from relation_speed import read_documents

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
HERE = Path(__file__).parents[1]
# Documents joined, pieces of a window, words between; the last one takes the older version a quarter of an hour.
CASES = list(product((1, 5), (128, 512), (100, 450)))[:-1]


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("old", type=Path, help="checkout of the older version")
    parser.add_argument("--documents", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        print(json.dumps(work(options, *CASES[options.worker])), flush=True)
        return
    rows = []
    for number, (joined, window, words) in enumerate(CASES):
        row: dict[str, Any] = {"joined": joined, "window": window, "words": words}
        for _ in range(options.rounds):
            for name, folder in (("old", options.old), ("new", HERE)):
                found = ask(folder, number)
                seconds = min(found.pop("seconds"), row.get(name, {}).get("seconds", float("inf")))
                row[name] = {**found, "seconds": seconds}
        print(row, flush=True)
        rows.append(row)
    result = {**describe_machine(), "documents": options.documents, "rows": rows}
    write_report("far_pairs", result, make_report(result))


def ask(folder: Path, case: int) -> dict[str, Any]:
    """The answer of a version's own process."""
    environment = {**os.environ, "PYTHONPATH": str(folder.resolve()), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, *sys.argv[1:], "--worker", str(case)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def work(options: argparse.Namespace, joined: int, window: int, words: int) -> dict[str, Any]:
    import logging
    import warnings

    import spacy
    import torch
    from spacy.tokens import Doc
    from spacy.training import Example

    from spacy_luke.annotations import set_relation_rows
    from spacy_luke.checkpoint.sources import make_checkpoint_loader
    from spacy_luke.components.units.inputs import unit_items

    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    nlp = spacy.blank("en")
    docs = read_documents(options.data / "redocred" / "dev_revised.json", nlp, options.documents)
    docs = [Doc.from_docs(docs[i : i + joined]) for i in range(0, len(docs), joined)]
    suggester = {"@misc": "spacy-luke.pairs.v1", "same_sentence": False, "max_words": words, "types": None}
    relation: Any = nlp.add_pipe("luke_relation", config={"max_window": window, "suggester": suggester})
    gold = docs[0].copy()
    a, b = gold.ents[:2]
    set_relation_rows(gold, [(a.start_char, a.end_char, b.start_char, b.end_char, "related", 1.0)])
    loader = make_checkpoint_loader(MINILM, entity_start="words")
    relation.initialize(lambda: [Example(docs[0].copy(), gold)], nlp=nlp, weights=loader)
    pieces = pairs = 0
    for doc in docs:
        asked = relation.asked(doc)
        pairs += len(asked.units_UK)
        items = unit_items(relation.input(), doc, asked.mentions, asked.units_UK, owner=0)
        pieces += sum(len(item.pieces) for item in items)
    own = sum(len(relation.tokenizer.encode(doc.text)[0]) for doc in docs)
    start = time.process_time()
    relation.predict([doc.copy() for doc in docs])
    return {"pairs": pairs, "own": own, "pieces": pieces, "seconds": time.process_time() - start}


def make_report(result: dict[str, Any]) -> str:
    lines = [
        "# Pairs that are far apart",
        "",
        f"{result['chip']}, one thread; `python benchmarks/far_pairs.py`, the older version is 5558060. All pairs of",
        f"the first mentions of entities within so many words, in {result['documents']} documents of Re-DocRED, or in",
        "these joined by five; `luke_relation`, one_way, MiniLM. Encoded: pieces that go through the encoder, in times",
        "of the documents' own.",
        "",
        "| documents | window | words between | pairs | encoded, older | now | seconds, older | now | times as fast |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["rows"]:
        old, new = row["old"], row["new"]
        cells = [f"{row['joined']}", f"{row['window']}", f"{row['words']}", f"{new['pairs']:,}"]
        cells += [f"{x['pieces'] / x['own']:.1f}" for x in (old, new)]
        cells += [f"{x['seconds']:.1f}" for x in (old, new)]
        lines.append(f"| {' | '.join(cells)} | {old['seconds'] / new['seconds']:.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
