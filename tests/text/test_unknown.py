"""Words that an encoder's vocabulary lacks pieces of."""

import pytest

from spacy_luke.text.cases import CasedTokenizer
from spacy_luke.text.tokenizer import PieceTokenizer
from spacy_luke.text.unknown import UnknownPieces, count_unknown

CHINESE = "马 云 在 东 京".split()


@pytest.fixture
def wordpiece(folders):
    """Reads letters, and a few others."""
    return PieceTokenizer.from_folder(folders["wordpiece"])


@pytest.mark.parametrize("cased", [False, True])
def test_a_script_that_is_not_there(wordpiece, cased):
    tokenizer = CasedTokenizer(wordpiece, len(wordpiece)) if cased else wordpiece
    found = count_unknown(tokenizer, [["live"], CHINESE, ["Live", "រស់"]])
    assert found[:3] == (8, 5, "马")
    assert found.many
    assert "62% of 8 words of the training data have a piece that the encoder's vocabulary lacks" in str(found)
    assert "such as '马'" in str(found)
    assert "[UNK]" in str(found)


def test_bytes_are_never_unknown(folders):
    assert count_unknown(PieceTokenizer.from_folder(folders["byte_bpe"]), [CHINESE])[:2] == (5, 0)


def test_emoji_and_rare_signs_are_few(wordpiece):
    """Signs alone are no words; single words are not many, however short the texts."""
    texts = [["the", "\U0001f600", "\u2713", "!"]] * 10
    assert count_unknown(wordpiece, texts)[:2] == (10, 0)
    rare = ["the", "T\u0142", "live", "马"]
    assert not count_unknown(wordpiece, [rare]).many
    assert not count_unknown(wordpiece, [["the"] * 98, rare]).many


def test_few_words_are_read(wordpiece):
    read = []
    texts = (read.append(i) or ["live"] * 5 for i in range(100))
    assert count_unknown(wordpiece, texts, most=12).words == 12
    assert len(read) == 4


def test_pieces():
    assert str(UnknownPieces(200, 10)) == "5.0% of the pieces are unknown to the encoder."
    assert not UnknownPieces(0, 0).many
    assert "Take an encoder of the texts' language" in str(UnknownPieces(200, 11))
