"""The data of quality_ernie.py: parts of Open Entity and FewRel, and a control in which vectors alone tell the answer.

options: `data`, the folder of the data sets; `vectors`; `dev`, for the dev part in the place of the test part; `limit`.
sizes: records to train on, and to test; None: all.
"""

import argparse
import json
import random
from collections import Counter
from itertools import islice
from typing import Any

Sizes = tuple[int, int | None]
Parts = tuple[list[Any], list[Any]]
FEWREL = ("fewrel/val_wiki.json", "fewrel/resplit_mgfte/val.json", "fewrel/resplit_mgfte/test.json")
SENTENCES = (
    "We spoke about it yesterday .",
    "Nobody had expected it at all .",
    "The report mentions it twice .",
    "They asked us about it again and again .",
)
KINDS = {  # of entities in the positive control, and their types in CoDEx
    "person": ("human",),
    "film": ("film",),
    "work": ("profession", "occupation"),
    "state": ("sovereign state", "country"),
    "city": ("big city", "city", "city with millions of inhabitants", "city of the United States"),
    "university": ("university", "public university", "private not-for-profit educational institution"),
    "record label": ("record label",),
    "genre": ("music genre", "film genre"),
}


def read_open_entity(nlp: Any, options: argparse.Namespace, sizes: Sizes) -> Parts:
    from spacy_luke.readers.datasets.table import dataset_docs

    def read(part: str, n: int | None) -> list[Any]:
        path = options.data / "open_entity_ernie" / f"{part}.json"
        return list(islice(dataset_docs(nlp, path, format="open_entity"), options.limit or n))

    return read("train", sizes[0]), read("dev" if options.dev else "test", sizes[1])


def read_fewrel(nlp: Any, options: argparse.Namespace, sizes: Sizes) -> Parts:
    """The 42 relations present, divided by `divide_records` with seed 0, the first records of each relation."""
    from spacy_luke.readers.datasets.table import read_dataset
    from spacy_luke.readers.records import make_doc
    from spacy_luke.readers.splits import divide_records

    def read(part: str, n: int | None) -> list[Any]:
        records = [x for file in FEWREL for x in read_dataset(options.data / file, format="fewrel")]
        most, taken = options.limit or n, Counter[str]()
        docs = []
        for record in divide_records(records, part=part, seed=0):
            label = record.relations[0][2]
            taken[label] += 1
            if most is None or taken[label] <= most:
                docs.append(make_doc(nlp, record))
        return docs

    return read("train", sizes[0]), read("dev" if options.dev else "test", sizes[1])


def read_control(nlp: Any, options: argparse.Namespace, sizes: tuple[int, int]) -> Parts:
    """Neutral sentences about entities of CoDEx: only their vectors tell what they are. As many entities of each kind,
    which are of no other; no entity is in two parts."""
    from spacy.tokens import Span

    from spacy_luke.vectors.store import EntityVectors

    types = json.loads((options.data / "codex" / "types" / "entity2types.json").read_text(encoding="utf8"))
    names = json.loads((options.data / "codex" / "types" / "en" / "types.json").read_text(encoding="utf8"))
    store = EntityVectors.open(options.vectors)
    kind_of = {label: kind for kind, labels in KINDS.items() for label in labels}
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for entity, found in sorted(types.items()):
        kinds = {kind_of[names[x]["label"]] for x in found if x in names and names[x]["label"] in kind_of}
        if len(kinds) == 1 and store.row(entity) >= 0:
            by_kind[kinds.pop()].append(entity)
    rng = random.Random(0)
    parts: dict[str, list[Any]] = {"train": [], "dev": [], "test": []}
    of_kind = {"train": sizes[0] // len(KINDS), "dev": 15, "test": sizes[1] // len(KINDS)}
    for kind, entities in by_kind.items():
        if len(entities) < sum(of_kind.values()):
            raise SystemExit(
                f"Expected {sum(of_kind.values())} entities of the kind {kind}, but there are {len(entities)}."
            )
        rng.shuffle(entities)
        start = 0
        for part, size in of_kind.items():
            for number, entity in enumerate(entities[start : start + size]):
                doc = nlp.make_doc(SENTENCES[number % len(SENTENCES)])
                word = next(word for word in doc if word.text == "it")
                doc.spans["luke_types"] = [Span(doc, word.i, word.i + 1, kind)]
                doc.user_data["luke_knowledge"] = [[word.idx, word.idx + 2, entity, 1.0]]
                parts[part].append(doc)
            start += size
    return parts["train"], parts["dev" if options.dev else "test"]


READERS = {"open_entity": read_open_entity, "fewrel": read_fewrel, "control": read_control}
