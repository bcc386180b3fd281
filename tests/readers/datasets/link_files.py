"""Files of published data sets for entity linking, written and read."""

from collections import Counter

import spacy

from spacy_luke.readers.datasets.table import dataset_docs

NLP = spacy.blank("en")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf8")
    return path


def read(path, format, **own):
    counts = Counter()
    return list(dataset_docs(NLP, path, format=format, counts=counts, **own)), counts


def links(doc, key=None):
    return [(span.text, span.label_, span.kb_id_) for span in (doc.spans[key] if key else doc.ents)]
