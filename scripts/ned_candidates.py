"""Titles of the entities that are candidates in linked documents, the best 30 of each mention, and of those that are
right, a line each: the vocabulary of the masked-entity pretraining for disambiguation (`build-entity-vocab
--white-list`).

    python scripts/ned_candidates.py OUTPUT CORPUS.spacy ...
"""

import sys
from pathlib import Path

import spacy

from spacy_luke.annotations import NIL
from spacy_luke.components.linker.candidates import best_candidates, given_candidates
from spacy_luke.readers.docbin import read_docbins
from spacy_luke.stores.atomic import write_atomically

MOST = 30  # candidates of a mention that are scored; LUKE's create_candidate_data.py takes as many


def titles_of(paths: list[Path]) -> list[str]:
    vocab = spacy.blank("en").vocab
    found: set[str] = set()
    for path in paths:
        for doc in read_docbins(path, vocab):
            for named in (given_candidates(doc) or {}).values():
                found.update(title for title, _ in best_candidates(named, most=MOST))
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
