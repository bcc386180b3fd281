from dataclasses import replace

import pytest

from spacy_luke.text.backends import build_unigram
from spacy_luke.text.charsmap import Charsmap
from spacy_luke.text.sentencepiece_model import (
    CONTROL,
    NORMAL,
    UNKNOWN,
    SentencePieceModel,
    read_sentencepiece,
    write_sentencepiece,
)
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.text.hard_texts import HARD

HEAD = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
SMALL = SentencePieceModel(
    pieces=[*HEAD, ("▁", -2.5, NORMAL), ("a", -1.25, NORMAL), ("▁a", -0.5, NORMAL), ("日", -3.0, NORMAL)],
    unk_id=0,
    byte_fallback=False,
    charsmap=b"",
)


def test_round_trip():
    assert read_sentencepiece(write_sentencepiece(SMALL)) == SMALL


def test_without_the_sentencepiece_package(tmp_path):
    """A model file is read by ourselves: ids of XLM-R, an empty character map changes nothing."""
    (tmp_path / "sentencepiece.bpe.model").write_bytes(write_sentencepiece(SMALL))
    tokenizer = PieceTokenizer.from_folder(tmp_path)
    assert (tokenizer.cls_id, tokenizer.pad_id, tokenizer.sep_id, tokenizer.unk_id) == (0, 1, 2, 3)
    assert tokenizer.mask_id == len(tokenizer) - 1 == 8
    ids, starts, ends = tokenizer.encode("a  日 x<mask>")
    assert ids.tolist() == [6, 4, 7, 4, 3, 8]
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == [(0, 1), (2, 3), (3, 4), (4, 5), (5, 6), (6, 12)]


def test_the_package_reads_what_we_write():
    sentencepiece = pytest.importorskip("sentencepiece", reason="the sentencepiece package is not installed")
    processor = sentencepiece.SentencePieceProcessor(model_proto=write_sentencepiece(SMALL))
    assert processor.encode("a a 日a", out_type=str) == ["▁a", "▁a", "▁", "日", "a"]
    assert processor.unk_id() == 0


def test_charsmap_equals_the_packages(folders):
    sentencepiece = pytest.importorskip("sentencepiece", reason="the sentencepiece package is not installed")
    data = (folders["unigram"] / "sentencepiece.bpe.model").read_bytes()
    charsmap = Charsmap(read_sentencepiece(data).charsmap)
    normalizer = sentencepiece.SentencePieceNormalizer(
        model_proto=data, add_dummy_prefix=False, escape_whitespaces=False, remove_extra_whitespaces=False
    )
    for text in HARD:
        normal, starts, ends = charsmap.normalize(text)
        assert normal == normalizer.normalize(text), repr(text)
        if starts is not None:
            assert len(normal) == len(starts) == len(ends)
            assert ((0 <= starts) & (starts < ends) & (ends <= len(text))).all()


@pytest.mark.parametrize("cut", [1, 10, 25, 60])
def test_truncated_files(cut):
    with pytest.raises(ValueError, match=r"SentencePiece model in model\.file"):
        read_sentencepiece(write_sentencepiece(SMALL)[:cut][:-1] + b"\xff", name="model.file")


def test_errors():
    with pytest.raises(ValueError, match="no pieces"):
        read_sentencepiece(b"")
    with pytest.raises(ValueError, match="its type is 'bpe'"):
        read_sentencepiece(write_sentencepiece(SMALL) + b"\x12\x02\x18\x02")
    with pytest.raises(ValueError, match="compiled character map"):
        Charsmap(b"\xff\xff\xff\x00abcd")
    with pytest.raises(ValueError, match="XLM-R's kind in here"):
        build_unigram(SentencePieceModel(SMALL.pieces[1:], 0, False, b""), source="here")
    with pytest.raises(ValueError, match="adds a blank before a text"):
        build_unigram(SentencePieceModel(SMALL.pieces, 0, False, b"", add_dummy_prefix=False), source="here")


def test_deberta_equals_the_package(folders):
    """spm.model alone: the ids are those of the model itself, and [MASK] is behind them."""
    if folders["deberta_spm"] is None:
        pytest.skip("the sentencepiece package is not installed")
    import sentencepiece

    data = (folders["deberta_spm"] / "spm.model").read_bytes()
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    tokenizer = PieceTokenizer.from_folder(folders["deberta_spm"])
    assert (tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.unk_id) == (0, 1, 2, 3)
    assert tokenizer.mask_id == len(processor) == len(tokenizer) - 1
    for text in HARD:
        if not any(piece in text for piece in tokenizer.special):
            assert tokenizer.encode(text)[0].tolist() == processor.encode(text), repr(text)


def test_models_of_other_kinds_are_no_deberta(tmp_path):
    (tmp_path / "spm.model").write_bytes(write_sentencepiece(SMALL))
    with pytest.raises(ValueError, match=r"whose first pieces are \['\[CLS\]', .* but got \['<unk>', '<s>', '</s>'"):
        PieceTokenizer.from_folder(tmp_path)
    head = [("[PAD]", 0.0, CONTROL), ("[CLS]", 0.0, CONTROL), ("[SEP]", 0.0, CONTROL), ("[UNK]", 0.0, UNKNOWN)]
    (tmp_path / "spm.model").write_bytes(write_sentencepiece(replace(SMALL, pieces=head + SMALL.pieces[3:], unk_id=3)))
    tokenizer = PieceTokenizer.from_folder(tmp_path)
    assert tokenizer.encode("a [MASK]日x")[0].tolist() == [6, 8, 4, 7, 3]
    assert not tokenizer.doubles_sep
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    with pytest.raises(ValueError, match=r"with do_lower_case off, but tokenizer_config\.json"):
        PieceTokenizer.from_folder(tmp_path)
