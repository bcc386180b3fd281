"""Texts that the ready pipeline's teacher reads: those of the training parts, of whatever they annotate.

    python scripts/ready_texts.py corpus/ready corpus/ready/texts.spacy

Each data set says little of its texts: WNUT-17 has no dates, FewRel one pair of a sentence. The teacher says of each
span what it may be. Docs keep their sentence boundaries, and nothing else.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import spacy
from spacy.tokens import Doc

from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.texts import read_texts

# Documents of each, drawn with seed 0; None: all.
MOST = {
    "wnut17": None,
    "wikigold": None,
    "gum": 50,
    "knowledge_net": None,
    "redocred": None,
    "fewrel": 1500,
    "litbank": 6,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder that scripts/ready_data.py wrote")
    parser.add_argument("output", type=Path, help="file of Docs")
    parser.add_argument("--sentences", action="store_true", help="a Doc for each sentence, not for each document")
    options = parser.parse_args()
    counts = dict.fromkeys(MOST, 0)

    def read() -> Iterator[Doc]:
        for name, most in MOST.items():
            for doc in read_docs(options.corpus / f"{name}.train.spacy", most):
                counts[name] += len(doc)
                yield from (sent.as_doc() for sent in doc.sents) if options.sentences else [doc]

    write_docbin(read(), options.output)
    print(", ".join(f"{name} {words:,} words" for name, words in counts.items()))


def read_docs(path: Path, most: int | None) -> list[Doc]:
    docs = list(read_texts(path, spacy.blank("en")))
    return docs if most is None else random.Random(0).sample(docs, min(most, len(docs)))


if __name__ == "__main__":
    main()
