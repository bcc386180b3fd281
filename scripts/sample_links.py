"""The entities of the sample corpus as links, and its pairs, for the papers' tables in small (configs/papers.toml).

    python scripts/sample_links.py assets/sample/names.tsv corpus/small corpus/small_linked

A mention that is a name of the table gets its entity (kb_id_, and doc._.luke_knowledge for ERNIE), and as candidates it
and four others, drawn by the name alone, all with one prior. Sentences are those of spaCy's sentencizer. Given pairs
are those with a relation and, as in TACRED, others of the same sentence: as many, drawn by the text alone.
"""

import argparse
import csv
import itertools
import random
from pathlib import Path

import spacy
from spacy.tokens import Doc, Span

from spacy_luke.annotations import get_relations, set_candidates_given, set_knowledge, set_pairs
from spacy_luke.readers.docbin import read_docbins, write_docbin

OTHERS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", type=Path, help="table of names: name, entity")
    parser.add_argument("corpus", type=Path, help="folder of .spacy files")
    parser.add_argument("output", type=Path, help="folder of the same files, linked")
    options = parser.parse_args()
    with options.names.open(encoding="utf8", newline="") as file:
        entities = {row["name"]: row["entity"] for row in csv.DictReader(file, delimiter="\t")}
    options.output.mkdir(parents=True, exist_ok=True)
    nlp = spacy.blank("en")
    divide = nlp.add_pipe("sentencizer")
    files = sorted(options.corpus.glob("*.spacy"))
    parts = {file.name: [divide(doc) for doc in read_docbins(file, nlp.vocab)] for file in files}
    texts = {mention.text for docs in parts.values() for doc in docs for mention in doc.ents}
    everything = sorted({entity for name, entity in entities.items() if name in texts})
    for name, docs in parts.items():
        write_docbin([link(doc, entities, everything) for doc in docs], options.output / name)
        print(f"{name}: {sum(bool(x.kb_id) for doc in docs for x in doc.ents):,} mentions of known entities")


def link(doc: Doc, entities: dict[str, str], everything: list[str]) -> Doc:
    """entities: by name; everything: those of all documents."""
    known = [(x, entities[x.text]) for x in doc.ents if x.text in entities]
    others = [x for x in doc.ents if x.text not in entities]
    doc.set_ents([*others, *(Span(doc, x.start, x.end, label=x.label, kb_id=entity) for x, entity in known)])
    set_knowledge(doc, [(x.start_char, x.end_char, entity) for x, entity in known])
    set_candidates_given(doc, [(x.start_char, x.end_char, draw(entity, everything)) for x, entity in known])
    set_pairs(doc, draw_pairs(doc))
    return doc


def draw_pairs(doc: Doc) -> list[tuple[Span, Span]]:
    related = list(dict.fromkeys((x.head, x.tail) for x in get_relations(doc)))
    mentions = [[x for x in doc.ents if x.sent == sent] for sent in doc.sents]
    others = [pair for some in mentions for pair in itertools.permutations(some, 2) if pair not in related]
    return related + random.Random(doc.text).sample(others, min(len(related), len(others)))


def draw(entity: str, everything: list[str]) -> list[tuple[str, float]]:
    others = random.Random(entity).sample([x for x in everything if x != entity], OTHERS)
    return [(x, 1 / (OTHERS + 1)) for x in sorted([entity, *others])]


if __name__ == "__main__":
    main()
