"""Shards: what is read is what was written; damage, other vocabularies, full disks, builds that go on."""

import json

import numpy as np
import pytest

from spacy_luke.corpus import build_shards as build_module
from spacy_luke.corpus import shard_writer
from spacy_luke.corpus.shards import (
    Example,
    PageExamples,
    Shards,
    entity_vocab_sha256,
    tokenizer_fingerprint,
)
from spacy_luke.entity_vocab import EntityVocab
from spacy_luke.pretraining.luke.windows import make_shard_reader
from spacy_luke.stores.parallel import Engine
from spacy_luke.text.tokenizer import PieceTokenizer
from tests.corpus.written import write_corpus, write_shards
from tests.sealing import reseal
from tests.tiny import make_wordpiece, tokenizer_json

VOCAB = EntityVocab([("[PAD]", 0), ("[UNK]", 1), ("[MASK]", 2), ("Ada", 3)])


def example(pieces, mentions=()):
    table = np.array(mentions, np.int32).reshape(-1, 3)
    starts = np.arange(len(pieces)) % 2 == 0
    return Example(np.array(pieces, np.int32), starts, table[:, 2], table[:, 0], table[:, 1], 0, 1)


def write(folder, pages, **settings):
    return write_shards(pages, folder, tokenizer=make_wordpiece(), vocab=VOCAB, **settings)


@pytest.fixture
def pages():
    return [
        PageExamples("A", 3, [example([5, 6, 7], [(0, 2, 3)]), example([8])]),
        PageExamples("Ünd\u2028", 1, [example([9, 5], [(0, 1, 1), (1, 2, 3)])]),
    ]


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a[:5], b[:5]))


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_round_trip(tmp_path, pages):
    written = write(tmp_path / "shards", pages, max_pieces=16, max_entities=4, max_mention_pieces=5)
    found = Shards.open(tmp_path / "shards", verify=True)
    flat = [x for page in pages for x in page.examples]
    assert len(found) == len(written) == 3
    assert all(equal(x, y) for x, y in zip(flat, found))
    assert [x.page for x in found] == [0, 0, 1]
    assert [x.page_id for x in found] == [3, 3, 1]
    assert [found.title(0), found.title(1)] == ["A", "Ünd\u2028"]
    assert {name: found.manifest[name] for name in ("max_pieces", "max_entities", "max_mention_pieces")} == {
        "max_pieces": 16, "max_entities": 4, "max_mention_pieces": 5,
    }  # fmt: skip
    assert found[0].pieces.dtype == found[0].starts.dtype == found[0].entities.dtype == np.int32
    assert type(found[0].pieces) is np.ndarray, "no view of the file"
    assert found.tokenizer().to_json() == make_wordpiece().to_json()
    assert found.entity_vocab().names() == VOCAB.names()
    for number in (3, -1):
        with pytest.raises(IndexError, match="one of 3 examples"):
            found[number]


def test_no_examples(tmp_path):
    with pytest.raises(ValueError, match="at least one example"):
        write(tmp_path / "shards", [])
    assert not list(tmp_path.iterdir())


def test_no_mentions_at_all(tmp_path):
    found = write(tmp_path / "shards", [PageExamples("A", 1, [example([5])])])
    assert len(found[0].entities) == 0


@pytest.mark.parametrize("name", ["pieces.npy", "entities.npy", "starts.npy", "piece_starts.npy", "pages.txt", "tokenizer.json"])  # fmt: skip  # noqa: E501
def test_a_flipped_byte(tmp_path, pages, name):
    write(tmp_path / "shards", pages)
    path = tmp_path / "shards" / name
    data = bytearray(path.read_bytes())
    data[-1] ^= 128
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"{name} is damaged"):
        Shards.open(tmp_path / "shards")


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("pieces.npy", -5, 255, r"Example 1 .* piece \d+ of a vocabulary of 34"),
        ("entities.npy", -4, 9, r"Example 2 .* entity 9 of a vocabulary of 4"),
        ("entities.npy", -1, 255, r"Example 2 .* entity \d+ of a vocabulary of 4"),
        ("ends.npy", -4, 9, "Example 2 .* a mention outside of its 2 pieces"),
        ("piece_starts.npy", -15, 255, r"Example [12] .* its pieces are"),
        ("example_pages.npy", -4, 7, "Example 2 .* its page is 7 of 2"),
    ],
)
def test_numbers_out_of_range(tmp_path, pages, name, place, value, message):
    """With digests that are right, too."""
    write(tmp_path / "shards", pages)
    path = tmp_path / "shards" / name
    data = bytearray(path.read_bytes())
    data[place] = value
    path.write_bytes(data)
    reseal(path.parent)
    with pytest.raises(ValueError, match=message):
        list(Shards.open(tmp_path / "shards"))


def test_files_that_are_not_whole(tmp_path, pages):
    write(tmp_path / "shards", pages)
    path = tmp_path / "shards" / "pieces.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"expected \d+ bytes in pieces.npy, but it has"):
        Shards.open(tmp_path / "shards")
    path.unlink()
    with pytest.raises(ValueError, match=r"pieces\.npy is missing"):
        Shards.open(tmp_path / "shards")
    with pytest.raises(ValueError, match="no folder of shards"):
        Shards.open(tmp_path)


def test_another_tokenizer_or_vocabulary(tmp_path, pages):
    found = write(tmp_path / "shards", pages)
    ours = {
        "tokenizer_fingerprint": tokenizer_fingerprint(make_wordpiece()),
        "entity_vocab_sha256": entity_vocab_sha256(VOCAB),
    }
    found.check(**ours)
    other = EntityVocab([("[PAD]", 0), ("[UNK]", 1), ("[MASK]", 2), ("Bob", 3)])
    with pytest.raises(ValueError, match="made with another entity vocabulary"):
        found.check(**{**ours, "entity_vocab_sha256": entity_vocab_sha256(other)})
    bpe = PieceTokenizer.from_json(tokenizer_json())
    with pytest.raises(ValueError, match="made with another tokenizer"):
        found.check(**{**ours, "tokenizer_fingerprint": tokenizer_fingerprint(bpe)})


def test_fingerprints(shared, tmp_path):
    """The same for a tokenizer that was saved and one with further special pieces; another for other pieces."""
    tokenizer = make_wordpiece()
    before = tokenizer_fingerprint(tokenizer)
    tokenizer.save_huggingface(tmp_path)
    assert tokenizer_fingerprint(PieceTokenizer.from_folder(tmp_path)) != "", "normalisation is written in BERT's words"
    tokenizer.add_special_piece("<ent>")
    assert tokenizer_fingerprint(tokenizer) == before
    assert tokenizer_fingerprint(PieceTokenizer.from_json(tokenizer.to_json())) == before
    cased = PieceTokenizer.from_folder(shared("data/vocabularies/bert_cased"), defaults={"do_lower_case": False})
    lower = PieceTokenizer.from_folder(shared("data/vocabularies/bert_cased"), defaults={"do_lower_case": True})
    assert tokenizer_fingerprint(cased) != tokenizer_fingerprint(lower)


def test_full_disk(tmp_path, pages, monkeypatch):
    write(tmp_path / "shards", pages)
    before = contents(tmp_path / "shards")
    monkeypatch.setattr(
        shard_writer.NameList, "starts", lambda self: exec("raise OSError(28, 'No space left on device')")
    )
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "shards", pages[:1])
    assert contents(tmp_path / "shards") == before
    assert [path.name for path in tmp_path.iterdir()] == ["shards"]


def test_shards_of_the_sample(make_shards, linked, vocab):
    found = make_shards(min_sentence_length=0, max_mention_pieces=62)
    assert found.manifest["counts"]["links"] == linked.manifest["counts"]["links"]
    assert {found.title(x.page) for x in found} == {"Vellmouth", "Ada Thorne", "Vellmouth lighthouse", "Ister Water"}
    titles = vocab.titles()
    linked_titles = [title for paragraph in linked.paragraphs() for _, _, title in paragraph.links]
    assert [titles[row] for x in found for row in x.entities] == linked_titles
    assert found.manifest["info"]["settings"]["max_pieces"] == 64


def test_languages_of_examples(linked, make_shards, tmp_path):
    """Of corpora one after the other, and drawn by them: the rare one as often as the other, where that is wanted."""
    paragraphs = [x._replace(page=f"{x.page} (de)") for x in linked.paragraphs() if x.page == "Vellmouth"]
    german = write_corpus(lambda counts: paragraphs, tmp_path / "de", language="de")
    found = make_shards(corpora=[linked, german])
    (_, n), (language, m) = known = found.example_languages()
    assert known == [(linked.language, n), ("de", m)]
    assert {found.title(x.page) for x in list(found)[n:]} == {"Vellmouth (de)"}
    assert n + m == len(found)
    assert n > m > 0
    alike, own = (make_shard_reader(str(found.path), smoothing=x)().quotas for x in (0, 1))
    assert {tuple(x.numbers) for x in alike} == {tuple(range(n)), tuple(range(n, n + m))}
    assert sorted(x.wanted for x in alike) == [(n + m) // 2, -(-(n + m) // 2)]
    assert sorted(x.wanted for x in own) == [m, n]
    train = make_shard_reader(str(found.path), "train", 2, smoothing=0)()
    assert sum(x.wanted for x in train.quotas) == len(train.examples)


@pytest.mark.slow
def test_the_same_bytes_every_time_from_one_process_and_two(make_shards):
    one, again, two = make_shards("one"), make_shards("again"), make_shards("two", engine=Engine(workers=2))
    assert contents(one.path) == contents(again.path) == contents(two.path)


def test_a_build_that_failed_goes_on(make_shards, monkeypatch, tmp_path):
    expected = make_shards("expected")
    make, made = build_module.make_block, []

    def full(examples):
        made.append(len(examples))
        if len(made) == 2:
            raise OSError(28, "No space left on device")
        return make(examples)

    monkeypatch.setattr(build_module, "make_block", full)
    with pytest.raises(OSError, match="No space left"):
        make_shards("shards")
    assert not (tmp_path / "shards").exists()
    found = make_shards("shards")
    assert len(made) == 4, "three parts, of which the first was made once"
    assert contents(found.path) == contents(expected.path)
    assert not list(tmp_path.glob(".*"))


def test_other_folders_are_not_replaced(tmp_path, pages):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "manifest.json").write_text(json.dumps({"format": "another"}))
    with pytest.raises(ValueError, match="holds something else than shards"):
        write(tmp_path / "mine", pages)
