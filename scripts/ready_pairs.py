"""Pairs of names of which KnowledgeNet says that nothing holds, for the workflow `ready`, after `ready_relations.py`.

    python scripts/ready_pairs.py assets/ready corpus/ready/pairs.train.spacy
    python scripts/ready_pairs.py assets/ready corpus/ready_pairs.spacy --pipeline training/ready_md/model-best

A passage was read for some properties, and has all facts of these: they do not hold of two other mentions, of the kinds
that a property is between. So a model learns what makes two names in a sentence no fact, and not from Wikipedia alone.
KnowledgeNet marks the mentions of facts; what else is named, a pipeline may say. Left out is what may mean the same as
a fact: mentions of facts with pronouns, and pairs with the words of a fact.
"""

import argparse
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import spacy
from ready_relations import KNOWLEDGE_NET, make
from spacy.language import Language
from spacy.tokens import Doc

from spacy_luke.annotations import get_pair_rows, register_extensions
from spacy_luke.readers.datasets.knowledge_net import PRONOUNS, PROPERTIES, KnowledgeRow, read_knowledge_rows
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.records import Mention, Record
from spacy_luke.readers.splits import part_of_title

FOUND = {"PER": "PER", "ORG": "ORG", "LOC": "LOC", "TIME": "DATE"}  # labels of the pipeline, and KnowledgeNet's
MOST = 6  # pairs of a passage and a property: some passages are lists of names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("output", type=Path, help="file of Docs of the training part")
    parser.add_argument("--pipeline", help="folder or name of what finds other names; left out: those of facts alone")
    parser.add_argument("--seed", type=int, default=0, help="of the pairs that are drawn where there are many")
    options = parser.parse_args()
    register_extensions()
    passages: dict[tuple[str, tuple[int, int]], list[KnowledgeRow]] = {}
    for row in read_knowledge_rows(options.data / "knowledge_net/human_readable-v10-notest.zip"):
        if part_of_title(row.document) == "train":
            passages.setdefault((row.document, row.place), []).append(row)
    rows = list(passages.values())
    others = find_names([x[0].text for x in rows], options.pipeline)
    draw = random.Random(options.seed)
    nlp = spacy.blank("en")
    docs = [doc for some, names in zip(rows, others, strict=True) for doc in unrelated(nlp, some, names, draw)]
    write_docbin(docs, options.output)
    counts = Counter(label for doc in docs for label in doc._.luke_scope["relations"]["annotates"])
    pairs = sum(len(get_pair_rows(doc) or []) for doc in docs)
    print(f"{options.output.stem}: {pairs:,} pairs; passages by relation: {dict(counts.most_common())}")


def find_names(texts: Sequence[str], pipeline: str | None) -> list[list[Mention]]:
    """Of each text, where there is a pipeline."""
    if pipeline is None:
        return [[] for _ in texts]
    found = spacy.load(pipeline, exclude=["luke_typer", "luke_relation", "luke_linker"]).pipe(texts)
    return [
        [Mention(x.start_char, x.end_char, FOUND[x.label_]) for x in doc.ents if x.label_ in FOUND] for doc in found
    ]


def unrelated(
    nlp: Language, rows: Sequence[KnowledgeRow], others: Iterable[Mention], draw: random.Random
) -> Iterator[Doc]:
    """A Doc for each property that a passage was read for, with its pairs. rows: of the passage; others: names in it
    that are perhaps of no fact."""
    text = rows[0].text
    marked = {
        Mention(start, end, label)
        for row in rows
        for (start, end), label in zip(row.ends or (), PROPERTIES[row.property])
        if text[start:end].lower() not in PRONOUNS
    }
    new = [x for x in others if not any(x.start < y.end and y.start < x.end for y in marked)]
    mentions = sorted({*marked, *new}, key=lambda x: (x.start, x.end, x.label))
    for name in sorted({row.property for row in rows if KNOWLEDGE_NET[row.property]}):
        pairs = list(other_pairs(text, mentions, [x.ends for x in rows if x.property == name and x.ends], name))
        if pairs:
            pairs = sorted(draw.sample(pairs, min(MOST, len(pairs))))
            record = Record(rows[0].where, text=text, sentence_starts=[0], mentions=mentions, relations=[], pairs=pairs)
            yield make(nlp, record, {}, KNOWLEDGE_NET[name])


def other_pairs(
    text: str, mentions: Sequence[Mention], facts: Sequence[tuple[tuple[int, int], tuple[int, int]]], name: str
) -> Iterator[tuple[int, int]]:
    """Numbers of mentions that a property may be between, but which are no fact. facts: places of subject and object
    of all facts that the passage has of the property `name`."""
    subject, thing = PROPERTIES[name]
    words = {tuple(text[a:b] for a, b in fact) for fact in facts}
    words |= {(b, a) for a, b in words} if name == "SPOUSE" else set()
    unsure = {end for fact in facts for end in fact if any(text[a:b].lower() in PRONOUNS for a, b in fact)}
    for h, head in enumerate(mentions):
        for t, tail in enumerate(mentions):
            if (head.label, tail.label) != (subject, thing) or (head.start < tail.end and tail.start < head.end):
                continue
            places = (head.start, head.end), (tail.start, tail.end)
            one, other = (text[a:b] for a, b in places)
            if one != other and (one, other) not in words and not unsure.intersection(places):
                yield h, t


if __name__ == "__main__":
    main()
