import json
import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from spacy_luke.text import tokenizer as module
from spacy_luke.text.tokenizer import PieceTokenizer, safe_cuts
from tests.text.hard_texts import HARD, plain_texts, texts

BYTES = {chr(b) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255 else None: b for b in range(256)}
BYTES.pop(None)
REST = [b for b in range(256) if b not in BYTES.values()]
BYTES.update({chr(256 + n): b for n, b in enumerate(REST)})


def encode_in_parts(tokenizer, text, size, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module, "PART", size)
        return tokenizer.encode(text)


@given(text=texts, size=st.integers(1, 9))
def test_cutting_changes_nothing(tokenizer, text, size):
    with pytest.MonkeyPatch.context() as patch:
        whole = encode_in_parts(tokenizer, text, 10**9, patch)
        parts = encode_in_parts(tokenizer, text, size, patch)
    for a, b in zip(whole, parts, strict=True):
        assert a.tolist() == b.tolist()


@given(text=texts, size=st.integers(1, 30))
def test_parts_are_the_text(text, size):
    spans = list(safe_cuts(text, size=size, added=[AddedToken("a b"), AddedToken("the", rstrip=True)]))
    assert "".join(text[start:end] for start, end in spans) == text
    for (_, end), (start, _) in zip(spans, spans[1:], strict=False):
        assert start == end
        assert text[start] == " "
        assert not text.endswith("the", 0, start)


def test_no_cut_inside_an_added_piece():
    text = "x a b y a b z"
    cuts = [start for start, _ in safe_cuts(text, size=1, added=[AddedToken("a b")])][1:]
    assert [text[:cut] for cut in cuts] == ["x", "x a b", "x a b y", "x a b y a b"]


def test_a_long_text_is_cut(tokenizer):
    text = "Los Angeles lives on. " * 5000
    assert len(list(safe_cuts(text, size=module.PART, added=[]))) == 6
    ids, starts, ends = tokenizer.encode(text)
    one = tokenizer.encode("Los Angeles lives on. Los Angeles")
    assert ids[: len(one[0]) - 2].tolist() == one[0][:-2].tolist()
    assert text[starts[-1] : ends[-1]].strip() in (".", "")
    assert ends[-1] >= len(text) - 1


@given(text=plain_texts)
def test_bytes_of_the_pieces_spell_the_text(folders, text):
    tokenizer = PieceTokenizer.from_folder(folders["byte_bpe"])
    ids, starts, ends = tokenizer.encode(text)
    pieces = [bytes(BYTES[char] for char in tokenizer.backend.id_to_token(i)) for i in ids]
    if not any(special in text for special in tokenizer.special):
        assert b"".join(pieces) == text.encode("utf8")


@given(text=texts)
def test_every_character_is_accounted_for(tokenizer, text):
    ids, starts, ends = tokenizer.encode(text)
    assert ids.dtype == starts.dtype == ends.dtype == np.int64
    assert ((starts >= 0) & (starts < ends) & (ends <= len(text))).all()
    assert (np.diff(starts) >= 0).all() or tokenizer.kind == "wordpiece"
    covered = np.zeros(len(text), dtype=bool)
    for start, end in zip(starts, ends, strict=True):
        covered[start:end] = True
        span = text[start:end]
        assert not span.strip() or span == span.strip()
    for char in {char for char, is_covered in zip(text, covered, strict=True) if not is_covered}:
        dropped = {
            "byte_bpe": False,
            "wordpiece": unicodedata.category(char)[0] == "C" or unicodedata.category(char) == "Mn" or char == "\ufffd",
            "unigram": char == "▁" or (tokenizer.charsmap and tokenizer.charsmap.normalize(char)[0] in ("", " ")),
        }[tokenizer.kind]
        assert char.isspace() or dropped, f"{char!r} of {text!r} has no piece"


@pytest.mark.parametrize("text", HARD)
def test_json_round_trip(tokenizer, text):
    again = PieceTokenizer.from_json(tokenizer.to_json())
    assert again.to_json() == tokenizer.to_json()
    assert [x.tolist() for x in again.encode(text)] == [x.tolist() for x in tokenizer.encode(text)]


def test_pickle(tokenizer):
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again.encode(HARD[1])[0].tolist() == tokenizer.encode(HARD[1])[0].tolist()
    assert (again.kind, again.cls_id, again.mask_id, len(again)) == (
        tokenizer.kind,
        tokenizer.cls_id,
        tokenizer.mask_id,
        len(tokenizer),
    )


def test_add_special_piece(tokenizer):
    size = len(tokenizer)
    assert tokenizer.piece_id("<ent>") is None
    number = tokenizer.add_special_piece("<ent>")
    assert (number, len(tokenizer), tokenizer.piece_id("<ent>")) == (size, size + 1, size)
    assert tokenizer.add_special_piece("<ent>") == number
    ids, starts, ends = tokenizer.encode("a <ent>b")
    at = ids.tolist().index(number)
    assert (starts[at], ends[at]) == (2, 7)
    again = PieceTokenizer.from_json(tokenizer.to_json())
    assert again.encode("a <ent>b")[0].tolist() == ids.tolist()


def test_offsets_leave_out_the_blank(folders):
    text = "the  <mask> Los  \ua66e"
    tokenizer = PieceTokenizer.from_folder(folders["byte_bpe"])
    ids, starts, ends = tokenizer.encode(text)
    spans = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    assert "<mask>" in spans  # it takes the whitespace before it, which is not among its characters
    assert all(span == span.strip() or span == " " for span in spans)
    assert spans.count(" ") >= 2  # pieces that are nothing but whitespace keep it
    assert spans.count("\ua66e") == 3  # parts of a character have that character


@pytest.mark.parametrize("kind", ["byte_bpe", "wordpiece", "unigram"])
def test_export_reads_back(folders, tmp_path, kind):
    if folders[kind] is None:
        pytest.skip("the sentencepiece package is not installed")
    tokenizer = PieceTokenizer.from_folder(folders[kind])
    tokenizer.add_special_piece("<ent>")
    tokenizer.add_special_piece("<ent2>")
    tokenizer.save_huggingface(tmp_path)
    again = PieceTokenizer.from_folder(tmp_path)
    assert (again.kind, again.special, len(again)) == (tokenizer.kind, tokenizer.special, len(tokenizer))
    for text in HARD:
        assert [x.tolist() for x in again.encode(text)] == [x.tolist() for x in tokenizer.encode(text)]
    again.save_huggingface(tmp_path / "again")
    for path in sorted(tmp_path.iterdir()):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("name", ["hf_luke_tokenizer", "hf_luke_tokenizer_lite"])
def test_export_of_a_luke_folder_keeps_its_files(shared, tmp_path, name):
    source = shared(f"golden/{name}")
    PieceTokenizer.from_folder(source).save_huggingface(tmp_path)
    for path in tmp_path.iterdir():
        if path.suffix == ".json":
            mine, theirs = json.loads(path.read_text()), json.loads((source / path.name).read_text())
            assert strip_normalized(mine) == strip_normalized(theirs), path.name
        else:
            assert path.read_bytes() == (source / path.name).read_bytes()


def strip_normalized(data):
    """`normalized` has no meaning for a tokenizer without a normaliser."""
    if isinstance(data, dict):
        return {key: strip_normalized(value) for key, value in data.items() if key != "normalized"}
    return [strip_normalized(item) for item in data] if isinstance(data, list) else data


def test_tokenizer_json_of_other_classes(folders, tmp_path):
    source = PieceTokenizer.from_folder(folders["byte_bpe"])
    source.backend.save(str(tmp_path / "tokenizer.json"))
    tokenizer = PieceTokenizer.from_folder(tmp_path)
    assert tokenizer.kind == "byte_bpe"
    assert tokenizer.encode(HARD[1])[0].tolist() == source.encode(HARD[1])[0].tolist()


def test_truncation_in_tokenizer_json_is_off(folders, tmp_path):
    backend = PieceTokenizer.from_folder(folders["wordpiece"]).backend
    backend.enable_truncation(3)
    backend.enable_padding(length=9)
    backend.save(str(tmp_path / "tokenizer.json"))
    assert len(PieceTokenizer.from_folder(tmp_path).encode("a b c d e")[0]) == 5


def test_errors(folders, tmp_path):
    tokenizer = PieceTokenizer.from_folder(folders["byte_bpe"])
    with pytest.raises(ValueError, match=r"lone surrogate '\\ud800', after 'ab'"):
        tokenizer.encode("ab\ud800c")
    with pytest.raises(ValueError, match=r"vocab.json and merges.txt; vocab.txt; .* but found none of them"):
        PieceTokenizer.from_folder(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0}))
    with pytest.raises(ValueError, match=r"found \['vocab.json'\]"):
        PieceTokenizer.from_folder(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    (tmp_path / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(alphabet[:-2])}))
    with pytest.raises(
        ValueError, match=r"each of the 256 bytes in vocab.json, but 2 are missing, .*'\u0142', '\u0143'"
    ):
        PieceTokenizer.from_folder(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(alphabet)}))
    with pytest.raises(ValueError, match=r"Merge 0 of merges.txt.*not in vocab.json"):
        PieceTokenizer.from_folder(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b c\n")
    with pytest.raises(ValueError, match="line 2 of"):
        PieceTokenizer.from_folder(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    with pytest.raises(ValueError, match="special piece '<s>'"):
        PieceTokenizer.from_folder(tmp_path)
    (tmp_path / "vocab.json").write_text("{")
    with pytest.raises(ValueError, match=r"vocab.json is not JSON"):
        PieceTokenizer.from_folder(tmp_path)
    with pytest.raises(ValueError, match="one of the models"):
        PieceTokenizer(Tokenizer(models.WordLevel({"a": 0}, unk_token="a")), special=("a",) * 5)
    with pytest.raises(ValueError, match="version 1, but got version 7"):
        PieceTokenizer.from_json('{"version": 7}')
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=r"tokenizers. library in"):
        PieceTokenizer.from_folder(tmp_path / "x")


def test_added_pieces_must_fit(folders, tmp_path):
    for path in folders["byte_bpe"].iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<ent>": 9000}))
    with pytest.raises(ValueError, match=r"'<ent>' the id 9000, but the next free id is"):
        PieceTokenizer.from_folder(tmp_path)


def test_golden_encodings(shared):
    """golden/hf_luke_tokenizer: ids and character offsets of LukeTokenizer 4.53.2, which encodes the text around each
    mention on its own."""
    folder = shared("golden/hf_luke_tokenizer")
    tokenizer = PieceTokenizer.from_folder(folder)
    compared = 0
    for case in json.loads((folder / "encodings.json").read_text(encoding="utf8"))["encodings"]:
        arguments = case["arguments"]
        if (
            "error" in case
            or arguments["options"]
            or arguments.get("text_pair")
            or case["task"]
            not in (
                None,
                "entity_span_classification",
            )
        ):
            continue
        text = arguments["text"]
        got_ids, got_spans = [], []
        for start, end in chunks(text, arguments["entity_spans"] or []):
            ids, starts, ends = tokenizer.encode(text[start:end])
            got_ids += ids.tolist()
            got_spans += [[start + a, start + b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        assert got_ids == case["encoding"]["input_ids"][1:-1], text
        if case["char_offsets"] is not None:
            assert got_spans == [trim(text, *span) for span in case["char_offsets"][1:-1]], text
        compared += 1
    assert compared


def chunks(text, spans):
    cuts = {0, len(text)}
    for start, end in spans:
        cuts |= {start - 1 if start and text[start - 1] == " " else start, end}
    cuts = sorted(cuts)
    return list(zip(cuts, cuts[1:], strict=False))


def trim(text, start, end):
    while text[start:end].strip() and text[start].isspace():
        start += 1
    return [start, end]


@pytest.mark.parametrize(
    ("normalizer", "message"),
    [  # SentencePiece's map is the size of a trie, the trie, and texts
        (
            {"type": "Precompiled", "precompiled_charsmap": "/////wAAAAA="},
            "tokenizer.json, but .*its 8 bytes do not hold one",
        ),
        ({"type": "Precompiled", "precompiled_charsmap": "AAAAAAAAAAA="}, "tokenizer.json, but index out of bounds"),
        ({"type": "Replace", "pattern": {"Regex": ""}, "content": "y"}, "tokenizer.json, but index out of bounds"),
    ],
)
def test_rules_that_cannot_be_followed(folders, tmp_path, normalizer, message):
    data = json.loads(PieceTokenizer.from_folder(folders["byte_bpe"]).backend.to_str())
    steps = {"type": "Sequence", "normalizers": [normalizer]}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**data, "normalizer": steps}))
    with pytest.raises(ValueError, match=message):
        PieceTokenizer.from_folder(tmp_path)


def test_a_rule_that_some_texts_break(folders):
    """One that files may not have: see tests/text/test_patterns.py."""
    known = PieceTokenizer.from_folder(folders["byte_bpe"])
    data = json.loads(known.backend.to_str())
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    backend = Tokenizer.from_str(json.dumps({**data, "pre_tokenizer": split}))
    tokenizer = PieceTokenizer(backend, special=known.special)
    tokenizer.encode("Ada")
    with pytest.raises(ValueError, match=r"rules of the tokenizer do not end well on the text 'aaaa.*retry-limit"):
        tokenizer.encode("a" * 40 + "!")
