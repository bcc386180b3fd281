"""Titles of the entities that are candidates in linked documents, a line each: the vocabulary of the masked-entity
pretraining for disambiguation (`build-entity-vocab --white-list`).

    python scripts/ned_candidates.py OUTPUT CORPUS.spacy ...
"""

import sys
from pathlib import Path

import spacy

from spacy_luke.annotations import NIL, get_candidates_given
from spacy_luke.readers.docbin import read_docbins
from spacy_luke.stores.atomic import write_atomically


def titles_of(paths: list[Path]) -> list[str]:
    vocab = spacy.blank("en").vocab
    found: set[str] = set()
    for path in paths:
        for doc in read_docbins(path, vocab):
            found.update(x.id for mention in get_candidates_given(doc) or () for x in mention.candidates)
            found.update(span.kb_id_ for span in doc.ents if span.kb_id_ not in ("", NIL))
    return sorted(found)


def main() -> None:
    output, *paths = map(Path, sys.argv[1:])
    output.parent.mkdir(parents=True, exist_ok=True)
    titles = titles_of(paths)
    with write_atomically(output) as temporary:
        temporary.write_text("".join(f"{title}\n" for title in titles), encoding="utf8")
    print(f"{output}: {len(titles):,} titles")


if __name__ == "__main__":
    main()
