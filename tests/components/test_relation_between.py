"""What heads and tails a relation has, by the labels of mentions: the setting `between` of `luke_relation`."""

import warnings

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span

from spacy_luke.annotations import set_score
from spacy_luke.components.units.sides import barred_classes
from tests.components.pairs import PAIRS, make
from tests.components.related import docs_of, noisy, relations_of, trained
from tests.pipelines import make_pipeline


@pytest.mark.parametrize("several", [False, True])
def test_between(several, tmp_path):
    """A relation is not predicted of mentions whose labels it does not have; other relations are as they were."""
    nlp = trained("luke_relation", "one_way", multi_label=several)
    before = [relations_of(doc) for doc in nlp.pipe(docs_of(nlp))]
    assert any(label == "lives_in" for found in before for *_, label in found)
    relation = nlp.get_pipe("luke_relation")
    relation.between = {"lives_in": [["ENT"], ["ENT", "LOC"]], "unknown": [[], []]}
    with pytest.warns(UserWarning, match=r"that it does not predict.*: 'unknown'\. Its relations: .*lives_in"):
        assert [relations_of(doc) for doc in nlp.pipe(docs_of(nlp))] == before
    for sides in ([["PER"], ["ENT"]], [["ENT"], ["LOC"]]):
        relation.between = {"lives_in": sides}
        after = [relations_of(doc) for doc in nlp.pipe(docs_of(nlp))]
        assert not any(label == "lives_in" for found in after for *_, label in found)
        if several:
            left = [{x: score for x, score in found.items() if x[-1] != "lives_in"} for found in before]
            assert after == left
    nlp.to_disk(tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    assert [relations_of(doc) for doc in loaded.pipe(docs_of(nlp))] == after


def test_between_of_mentions_without_labels():
    classes = [None, "born", "knows"]
    pairs = np.array([[0, 1], [1, 0], [2, 1], [2, 0]])
    barred = barred_classes(["PER", "TIME", ""], pairs, classes, {"born": [["PER"], ["TIME"]]})
    assert barred.tolist() == [[False, x, False] for x in (False, True, False, True)]
    assert barred_classes([], np.empty((0, 2), dtype=np.int64), classes, {"born": [[], []]}).shape == (0, 3)


def test_between_is_checked():
    with pytest.raises(ValueError, match=r"between must have for each relation .* but for 'born' it"):
        make_pipeline("luke_relation", luke_relation={"between": {"born": [["PER"]]}})
    with pytest.raises(ValueError, match=r"luke_relation.between: at born . 0: 'PER' is not list"):
        make_pipeline("luke_relation", luke_relation={"between": {"born": ["PER", "TIME"]}})


@pytest.mark.parametrize(
    ("labels", "scores", "named"),
    [
        (["ENT", "CITY"], [0.9, None], "CITY"),  # an entity_ruler's, beside those of luke_ner
        (["ENT", "NUM"], [0.9, 0.8], None),  # luke_ner's own, between no relation
        (["ENT", "NUM"], [None, None], None),  # of which nobody says whose they are
        (
            ["EMPLOYEE", "CITY"],
            [None, None],
            "CITY, EMPLOYEE",
        ),  # of rules or by hand, none of which a relation is between
        (["ENT", "ENTITY"], [0.9, 0.1], "ENTITY"),  # entity_annotator's, which has scores too
        (["PERSON", "GPE"], [None, None], "GPE, PERSON"),  # spaCy's own
    ],
)
def test_mentions_whose_labels_no_relation_is_between(labels, scores, named):
    nlp, relation = make("pair", build=noisy, suggester={**PAIRS, "types": [["ENT", "ENT"]]})
    doc = nlp.make_doc("Ada met Zoe")
    doc.ents = [Span(doc, 2 * i, 2 * i + 1, label) for i, label in enumerate(labels)]
    for entity, score in zip(doc.ents, scores, strict=True):
        if score is not None:
            set_score(entity, score)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        relation(doc)
    messages = [str(x.message) for x in told]
    assert [f"some that are {named}, of another component" in x for x in messages] == ([True] if named else [])


def test_mentions_without_labels():
    _, relation = make("pair", build=noisy, suggester={**PAIRS, "types": [["ENT", "ENT"]]})
    doc = Doc(relation.vocab, ["Ada", "met", "Zoe"])
    relation.getter = lambda doc: [doc[:1], doc[2:]]
    with pytest.warns(UserWarning, match="a Doc has some that are without a label, of another component"):
        relation(doc)
