"""Paragraphs of Docs with linked entities, for a linked corpus (see `corpus.linked`)."""

from collections import Counter
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Sequence, Tuple

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Corpus
from spacy.util import filter_spans

from ..corpus.linked import Paragraph

NIL = "NIL"  # the id of mentions of what is in no knowledge base


def read_doc_paragraphs(
    docs: Iterable[Doc], counts: Counter, *, spans_key: Optional[str] = None
) -> Iterator[Paragraph]:
    """The lines of each Doc that are not blank; links are the mentions with a kb_id, which is the entity's title.

    spans_key: mentions are those of doc.spans[KEY], and of ones that overlap the longest is taken; None: of doc.ents. The
    title of a page is doc.user_data["title"], else "document 1" and so on. counts: gets what is left out.
    """
    for number, doc in enumerate(docs, 1):
        title = str(doc.user_data.get("title") or f"document {number}")
        links = _links(doc, spans_key, counts)
        start = taken = found = 0
        for line in doc.text.split("\n"):
            text = line.strip()
            before = start + len(line) - len(line.lstrip())
            inside = [
                (a - before, b - before, entity) for a, b, entity in links if before <= a and b <= before + len(text)
            ]
            taken += len(inside)
            start += len(line) + 1
            if text:
                found += 1
                yield Paragraph(title, text, inside)
        counts["links across lines, left out"] += len(links) - taken
        counts["documents without text"] += not found


def read_linked_docs(paths: Sequence[Path], *, language: str) -> Iterator[Doc]:
    """Docs of .spacy files, or folders of them."""
    nlp = spacy.blank(language)
    for path in paths:
        for example in Corpus(path)(nlp):
            yield example.reference


def _links(doc: Doc, spans_key: Optional[str], counts: Counter) -> List[Tuple[int, int, str]]:
    spans: List[Span] = list(doc.ents if spans_key is None else doc.spans.get(spans_key, ()))
    linked = [span for span in spans if span.kb_id_ not in ("", NIL) and span.text.strip()]
    counts["mentions without an entity, left out"] += len(spans) - len(linked)
    apart = filter_spans(linked)
    counts["mentions inside or across others, left out"] += len(linked) - len(apart)
    places = []
    for span in apart:
        blanks = len(span.text) - len(span.text.lstrip())
        places.append((span.start_char + blanks, span.start_char + len(span.text.rstrip()), span.kb_id_))
    return places
