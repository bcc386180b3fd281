"""luke_relation in its modes, and what it is asked about and says of pairs."""

import pytest
from spacy.tokens import Span

from tests.components.related import (
    KEY,
    make_pipeline,
)
from tests.tiny import SENTENCES

MODES = {"full": ("full", {}), "pair": ("one_way", {"tokens": "pair"}), "mention": ("one_way", {"tokens": "mention"})}
SPANS = {"@misc": "spacy-luke.span_group.v1", "key": KEY}
PAIRS = {"@misc": "spacy-luke.pairs.v1", "max_words": None}
LONG = " ".join(SENTENCES * 3)  # several windows
GIVEN = [
    [("Ada Lovelace", "London"), ("London", "Ada Lovelace"), ("London", "Royal Society")],
    [("Nadia Haddad", "Bank of Ghana"), ("Ghana", "Bank of Ghana"), ("Bank of Ghana", "Accra")],
    [("Kofi Mensah", "University of Lagos")],
    [],
]


def make(mode, *, build=make_pipeline, **config):
    attention, settings = MODES[mode]
    return build("luke_relation", attention, **{**settings, **config})


def marked(nlp, text, *, spans=()):
    """A Doc whose capitalised runs of words are its entities."""
    doc = nlp.make_doc(text)
    runs, start = [], None
    for i, word in enumerate([*doc, None]):
        if word is not None and word.is_title:
            start = i if start is None else start
        elif start is not None:
            runs.append(Span(doc, start, i, label="ENT"))
            start = None
    doc.set_ents(runs)
    doc.spans[KEY] = [*runs, *(doc[a:b] for a, b in spans)]
    return doc


def same(one, other):
    assert other == pytest.approx(one, abs=1e-5)


def as_pair(doc, one, two):
    doc.user_data["luke_pairs"] = [
        [doc[a:b].start_char, doc[a:b].end_char, doc[c:d].start_char, doc[c:d].end_char]
        for (a, b), (c, d) in [(one, two)]
    ]
    return doc


def probabilities(relation, doc):
    """(head, tail) as words -> probabilities of all classes, for each pair that can be encoded."""
    several = relation.cfg["multi_label"]
    relation.cfg.update(multi_label=False)
    rows = {}
    read = relation.read

    def spy(scored):
        asked = relation.asked(doc)
        for number, row in zip(scored.number_U.tolist(), scored.logits_UL.softmax(-1).tolist()):
            rows[asked.places(number)] = row
        return read(scored)

    relation.read = spy
    try:
        relation.predict([doc])
    finally:
        del relation.read
        relation.cfg.update(multi_label=several)
    return rows
