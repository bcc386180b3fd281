import warnings

import pytest

from spacy_luke.stores.unicode_forms import warn_of_forms

NFD = "Ko\u0308ln"


def told(row_of):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_forms(row_of, row_of.get, what="ids")
    return [str(x.message) for x in caught]


@pytest.mark.parametrize(
    "names", [["Köln", "Bonn"], [NFD, "Bonn"], ["北京", "Ko\u0308", "ö", "o"], ["ﬁ", "fi"], ["[PAD]"], []]
)
def test_nothing_to_say(names):
    assert told({name: row for row, name in enumerate(names)}) == []


def test_names_of_one_entity_are_well():
    assert told({"Köln": 3, NFD: 3}) == []


def test_two_entities():
    (message,) = told({NFD: 0, "Köln": 1, "Bonn": 2, "A\u030a": 3, "\u212b": 4})
    assert message.startswith(
        "4 ids are equal to others but for their Unicode form, such as 'Köln', once as 'K\\xf6ln' "
    )
    assert "and once as 'Ko\\u0308ln'" in message
    assert "unicodedata.normalize('NFC', text)" in message
