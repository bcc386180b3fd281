"""Examples in other letters, with all that is annotated on them."""

from collections import Counter

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import registry

from spacy_luke.annotations import get_all_rows, register_extensions
from spacy_luke.readers.case import recase

NLP = spacy.blank("en")
TEXT = "Ada Straße met İrem in São Paulo 😀 . She left ."


@pytest.fixture(autouse=True)
def extensions():
    register_extensions()


def make(*, unknown=False):
    words = TEXT.split()
    doc = Doc(
        NLP.vocab,
        words=words,
        spaces=None if unknown else [True] * len(words),
        sent_starts=[i in (0, 9) for i in range(len(words))],
    )
    doc.set_ents([Span(doc, 0, 2, label="PER", kb_id="Q1"), Span(doc, 3, 4, label="PER"), Span(doc, 5, 7, label="LOC")])
    doc.spans["entities"] = [*doc.ents, Span(doc, 5, 6, label="MISC")]
    person, _, place = doc.ents
    doc._.luke_relations = [(person, place, "seen in")]
    doc._.luke_knowledge = [(person.start_char, person.end_char, "Q1")]
    doc.cats = {"travel": 1.0}
    doc.user_data["mine"] = [1, 2]
    return doc


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (str.lower, "ada straße met İrem in são paulo 😀 . she left ."),
        (str.upper, "ADA STRAßE MET İREM IN SÃO PAULO 😀 . SHE LEFT ."),
    ],
)
def test_everything_stays_where_it_is(change, wanted, unknown):
    old = make(unknown=unknown)
    new = recase(old, change)
    assert new.text.strip() == wanted
    assert [(x.idx, x.is_sent_start) for x in new] == [(x.idx, x.is_sent_start) for x in old]
    assert [x.lower_ for x in new] == [x.text.lower() for x in new]

    def said(doc):
        spans = [*doc.ents, *doc.spans["entities"]]
        return [(x.start, x.end, x.label_, x.kb_id_) for x in spans], get_all_rows(doc), doc.cats, doc.user_data["mine"]

    assert said(new) == said(old)
    assert new.has_unknown_spaces == unknown
    assert old.text.strip() == TEXT


def test_shares_and_seed():
    make_augmenter = registry.augmenters.get("spacy-luke.case.v1")
    gold = make()
    examples = [Example(Doc(NLP.vocab, words=[x.text for x in gold]), gold) for _ in range(400)]

    def run(**settings):
        augment = make_augmenter(**settings)
        return [x for example in examples for x in augment(NLP, example)]

    found = run(lower=0.2, upper=0.1, seed=1)
    kinds = Counter(x.reference[0].text for x in found)
    assert len(found) == 400
    assert set(kinds) == {"Ada", "ada", "ADA"}
    assert 50 < kinds["ada"] < 110  # 80 are expected
    assert 20 < kinds["ADA"] < 65  # 40
    assert all(x.predicted[0].text == x.reference[0].text and not x.predicted.ents for x in found)
    assert [x.text for x in found] == [x.text for x in run(lower=0.2, upper=0.1, seed=1)]
    assert {x.text for x in run(lower=0, upper=0)} == {examples[0].text}
    for bad in ({"lower": -0.1}, {"lower": 0.7, "upper": 0.4}):
        with pytest.raises(ValueError, match="shares of the Examples"):
            make_augmenter(**bad)


@pytest.mark.parametrize("joined", [False, True])
def test_corpora_take_augmenters(tmp_path, joined):
    DocBin(docs=[make()], store_user_data=True).to_disk(tmp_path / "x.spacy")
    augmenter = registry.augmenters.get("spacy-luke.case.v1")(lower=1.0, upper=0.0)
    name, data = (
        ("JoinedCorpus", {"sources": {"x": {"path": str(tmp_path / "x.spacy")}}})
        if joined
        else ("GoldCorpus", {"path": tmp_path / "x.spacy"})
    )
    corpus = registry.readers.get(f"spacy-luke.{name}.v1")(**data, augmenter=augmenter)
    (example,) = corpus(NLP)
    assert example.predicted.text == example.reference.text == recase(make(), str.lower).text
    assert [x.text for x in example.reference.ents] == ["ada straße", "İrem", "são paulo"]
