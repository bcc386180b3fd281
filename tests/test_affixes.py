"""The tokenizer that looks for affixes near the ends of a stretch alone finds what spaCy's own does."""

import pickle
import random

import pytest
import spacy

from spacy_luke.pipelines.affixes import WINDOW, NearSearch, look_near

PARTS = [
    *(
        "!",
        "?",
        ".",
        "..",
        "...",
        "-",
        "--",
        "—",
        "'s",
        "’s",
        "km",
        "5",
        "$",
        "a",
        "Z",
        "é",
        "😂",
        "👨\u200d",
        "(",
        ")",
    ),
    *(
        "[",
        "]",
        '"',
        "“",
        "=",
        "_",
        "中",
        "。",
        "http://",
        "://",
        ".com",
        "@",
        "°C",
        "%",
        "…",
        "،",
        "U.S.",
        "can't",
        " ",
    ),
]


@pytest.mark.product
@pytest.mark.parametrize("lang", ["en", "de", "ru", "xx", pytest.param("fr", marks=pytest.mark.slow)])
@pytest.mark.parametrize("size", [3, 100, 300])
def test_the_words_are_those_of_spacy(lang, size):
    plain, near = spacy.blank(lang), spacy.blank(lang)
    look_near(near)
    draw = random.Random(size)
    for kinds in (1, 1, 1, 2, 3, 8, len(PARTS)) * 5:
        parts = draw.sample(PARTS, kinds)
        text = "".join(draw.choice(parts) for _ in range(size))
        assert [x.text for x in near.make_doc(text)] == [x.text for x in plain.make_doc(text)]
    assert near.tokenizer.to_bytes() == plain.tokenizer.to_bytes()
    assert len(pickle.loads(pickle.dumps(near)).make_doc("!" * 1000)) == 1000


def test_what_is_looked_at_does_not_grow():
    nlp = spacy.blank("en")
    look_near(nlp)
    look_near(nlp)  # once more does no harm
    asked = []
    for name in ("prefix_search", "suffix_search"):
        search = getattr(nlp.tokenizer, name)
        assert isinstance(search, NearSearch)
        plain = search.search
        assert not isinstance(plain, NearSearch)
        search.search = lambda text, plain=plain: asked.append(len(text)) or plain(text)
    assert len(nlp.make_doc("?!" * 2000)) == 4000
    assert max(asked) == WINDOW


def test_other_tokenizers_stay():
    nlp = spacy.blank("en")
    nlp.tokenizer = own = lambda text: nlp.tokenizer.make_doc(text)
    look_near(nlp)
    assert nlp.tokenizer is own
