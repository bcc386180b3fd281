"""Names that were not found."""

from spacy_luke.text.spelling import nearest


def test_what_may_be_meant():
    assert nearest("overlp", ["overlap", "scorer"]) == ". Is overlap meant?"


def test_what_there_is():
    assert nearest("zzz", ["scorer", "overlap", "scorer"]) == "; there are overlap, scorer."
