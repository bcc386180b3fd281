"""Cloze queries out of documents whose entities are named more than once, such as those of Re-DocRED (its own JSON).

    python scripts/gap_queries.py dev_revised.json corpus/gaps

A query is a sentence that names an entity of the sentences before it: that name becomes @placeholder, and the text is
what stands before. Candidates are all names of persons, organisations, places and other things in the text, and each
name of the entity there is an answer: so are ReCoRD's queries (Zhang et al. 2018), which come from articles' summaries.

Writes train.jsonl, dev.jsonl and test.jsonl, divided by document, and prints how often two simple answers are right:
the entity that the text names most often, and the one that it names last.
"""

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy_luke.readers.splits import part_of_title

NAMES = {"PER", "ORG", "LOC", "MISC"}  # others are dates and numbers
PARTS = ("train", "dev", "test")
MIN_SENTENCES = 2  # before a query's
MOST = 6  # queries of a document

Made = tuple[dict[str, Any], dict[str, list[int]]]  # a line, and simple answers to its query


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path, help="JSON of DocRED or Re-DocRED")
    parser.add_argument("output", type=Path, help="folder of the three files")
    parser.add_argument("--seed", type=int, default=0, help="of the queries that are drawn where there are many")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    lines: dict[str, list[Made]] = {part: [] for part in PARTS}
    for document in json.loads(options.documents.read_text(encoding="utf8")):
        lines[part_of_title(document["title"])] += make_queries(document, draw)
    options.output.mkdir(parents=True, exist_ok=True)
    for part, rows in lines.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row, _ in rows)
        (options.output / f"{part}.jsonl").write_text(text, encoding="utf8")
        counts = [len(row["queries"][0]["candidates"]) for row, _ in rows]
        print(f"{part}: {len(rows):,} queries, {sum(counts) / max(len(rows), 1):.1f} candidates each")
    test = lines["test"]
    for name in lines["test"][0][1]:
        right = sum(simple[name] in row["queries"][0]["answers"] for row, simple in test)
        print(f"test, the entity that is named {name}: {right / len(test):.1%} right")


def make_queries(document: dict[str, Any], draw: random.Random) -> list[Made]:
    """Some of the document's queries, each a line with the text before it, and what simple answers would be."""
    found = list(find_queries(document))
    return [x for _, x in sorted(draw.sample(list(enumerate(found)), min(len(found), MOST)))]


def find_queries(document: dict[str, Any]) -> Iterator[Made]:
    """At most one of a sentence: that of the entity which is first named there, of those that were named before."""
    sentences = document["sents"]
    entities = [x for x in document["vertexSet"] if x[0]["type"] in NAMES]
    for i in range(MIN_SENTENCES, len(sentences)):
        here = [(mention["pos"], entity) for entity in entities for mention in entity if mention["sent_id"] == i]
        known = [(place, x) for place, x in here if any(mention["sent_id"] < i for mention in x)]
        if not known:
            continue
        (start, end), entity = min(known, key=lambda row: row[0])
        if sum(x is entity for _, x in here) > 1:
            continue  # its other name would tell
        query = " ".join([*sentences[i][:start], "@placeholder", *sentences[i][end:]])
        text, places = join_sentences(sentences[:i])
        spans = [[places(mention) for mention in x if mention["sent_id"] < i] for x in entities]
        answers = spans[next(n for n, x in enumerate(entities) if x is entity)]
        candidates = sorted(span for some in spans for span in some)
        row = {"query": query, "candidates": candidates, "answers": sorted(answers)}
        simple = {"most often": max(spans, key=len)[0], "last": candidates[-1]}
        yield {"text": text, "entities": [], "queries": [row]}, simple


def join_sentences(sentences: list[list[str]]) -> tuple[str, Any]:
    """Text, and a function that gives the characters of a mention in it."""
    starts: list[list[tuple[int, int]]] = []
    at = 0
    for sentence in sentences:
        starts.append([])
        for word in sentence:
            starts[-1].append((at, at + len(word)))
            at += len(word) + 1

    def places(mention: dict[str, Any]) -> list[int]:
        words = starts[mention["sent_id"]]
        return [words[mention["pos"][0]][0], words[mention["pos"][1] - 1][1]]

    return " ".join(word for sentence in sentences for word in sentence), places


if __name__ == "__main__":
    main()
