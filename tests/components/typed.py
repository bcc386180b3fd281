"""luke_typer in its modes: Docs with many mentions, and equal answers."""

import pytest

from tests.components.related import KEY, LONG
from tests.tiny import SENTENCES

MODES = ["full", "one_way"]
NAMES = ["Ada Lovelace", "London", "Royal Society", "Bank of Ghana", "Ghana", "Accra", "Berlin", "University of Lagos"]


def everywhere(nlp, text, *, also=()):
    """A Doc with every place of the names as a mention."""
    doc = nlp.make_doc(text)
    spans = []
    for name in [*NAMES, *also]:
        start = text.find(name)
        while start >= 0:
            spans.append(doc.char_span(start, start + len(name)))
            start = text.find(name, start + 1)
    doc.spans[KEY] = spans
    return doc


def docs_for(nlp):
    texts = [*SENTENCES, "", " ", "Accra", LONG, "\n\n", "Berlin , London and Accra ."]
    return [everywhere(nlp, text) for text in texts]


def same(one, other):
    assert set(one) == set(other)
    for key, labels in one.items():
        assert other[key] == pytest.approx(labels, abs=1e-5), key
