"""Texts are encoded once for all that ask for them one after another, and are not held for ever."""

import copy

import numpy as np
import pytest

from spacy_luke.text import recent
from spacy_luke.text.cases import CasedTokenizer
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.tiny import SENTENCES, make_wordpiece, tokenizer_json

MAKERS = {
    "byte_bpe": lambda: PieceTokenizer.from_json(tokenizer_json()),
    "wordpiece": make_wordpiece,
    "cased": lambda: CasedTokenizer(make_wordpiece(), 1000),
}


@pytest.fixture(params=MAKERS)
def tokenizer(request):
    return MAKERS[request.param]()


def encode_again(tokenizer, text):
    return tokenizer.recent.encoded(text, tokenizer.encode)


def counted(tokenizer, monkeypatch):
    texts, plain = [], tokenizer.encode
    monkeypatch.setattr(tokenizer, "encode", lambda text: texts.append(text) or plain(text))
    return texts


def test_encoded_once(tokenizer, monkeypatch):
    expected = [tokenizer.encode(text) for text in SENTENCES]
    asked = counted(tokenizer, monkeypatch)
    for _ in range(3):
        for text, own in zip(SENTENCES, expected, strict=True):
            for one, other in zip(encode_again(tokenizer, text), own, strict=True):
                assert np.array_equal(one, other)
                with pytest.raises(ValueError):
                    one[0] = 1
    assert asked == SENTENCES


def test_what_is_held_is_bounded(tokenizer, monkeypatch):
    monkeypatch.setattr(recent, "CHARACTERS", len(SENTENCES[0]) + len(SENTENCES[1]))
    asked = counted(tokenizer, monkeypatch)
    for text in SENTENCES[:3] * 2:
        encode_again(tokenizer, text)
        assert sum(map(len, tokenizer.recent._held)) <= recent.CHARACTERS
    assert len(asked) > 3
    assert set(asked) == set(SENTENCES[:3])


def test_a_new_piece_is_found():
    tokenizer = make_wordpiece()
    before = encode_again(tokenizer, "ada #")
    other = copy.deepcopy(tokenizer)
    number = tokenizer.add_special_piece("#")
    assert encode_again(tokenizer, "ada #")[0][-1] == number != before[0][-1]
    assert np.array_equal(encode_again(other, "ada #")[0], before[0])
