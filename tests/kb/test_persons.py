"""Names of persons within a document, against the reference's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.aliases.store import Candidate
from spacy_luke.kb.persons import share_person_names
from tests.kb.kbs import small_kb


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    return small_kb(tmp_path_factory.mktemp("persons"))


def share(kb, *mentions):
    return share_person_names(mentions, [kb.candidates(mention) for mention in mentions], kb)


def test_a_part_of_a_persons_name(kb):
    found = share(kb, "Bill Clinton", "Clinton", "CLINTON", "Iowa")
    assert found == [kb.candidates("Bill Clinton")] * 3 + [[]]


def test_several_are_averaged(kb):
    found = share(kb, "Clinton", "Bill Clinton", "Hillary  Clinton", "Bill Clinton")[0]
    assert found == [("Bill Clinton", pytest.approx(2 / 3)), ("Hillary Clinton", pytest.approx(1 / 3))]


def test_who_does_not_share(kb):
    alone = kb.candidates("Clinton")
    assert share(kb, "Clinton", "Clinton, Iowa")[0] == alone  # no person
    assert share(kb, "Clinton", "clinton") == [alone, alone]  # the same text
    assert share(kb, "Clint", "Bill Clinton")[0] == []  # no whole word
    assert share(kb, "", "Bill Clinton")[0] == []
    assert share(kb) == []
    with pytest.raises(ValueError, match="Expected the candidates of 1 mentions, but got those of 0"):
        share_person_names(["x"], [], kb)


def test_candidates_that_the_kb_does_not_have(kb):
    given = [[Candidate("Nobody", 1.0)], [Candidate("Else", 1.0)]]
    assert share_person_names(["A B", "B"], given, kb) == given


def plain(mentions, candidates, is_person):
    """One by one, as the reference does (nel/dataset.py, `with_coref`)."""
    shared = []
    for mention, own in zip(mentions, candidates, strict=True):
        full = [
            theirs
            for other, theirs in zip(mentions, candidates, strict=True)
            if theirs
            and is_person(theirs[0])
            and other.lower() != mention.lower()
            and mention.lower() in other.lower().split()
        ]
        priors = {}
        for entity, prior in (pair for theirs in full for pair in theirs):
            priors[entity] = priors.get(entity, 0) + prior / len(full)
        shared.append(sorted(priors.items(), key=lambda pair: (-pair[1], pair[0])) if full else own)
    return shared


@given(st.lists(st.sampled_from(["Bill Clinton", "Clinton", "Hillary Clinton", "bill", "Japan", "Clinton, Iowa"])))
def test_as_the_plain_procedure(kb, mentions):
    candidates = [kb.candidates(mention) for mention in mentions]
    expected = plain(mentions, candidates, lambda candidate: kb.is_person(kb.row(candidate.entity)))
    for found, wanted in zip(share_person_names(mentions, candidates, kb), expected, strict=True):
        assert dict(found) == pytest.approx(dict(wanted))
