"""Streams of instances: the same from any position on, shared between processes, and damaged corpora."""

import random
from itertools import islice

import numpy as np
import pytest

from spacy_luke.pretraining.ernie.corruption import ernie_stream
from spacy_luke.pretraining.ernie.instances import SourceDocument
from spacy_luke.pretraining.ernie.sources import (
    make_document_source,
    make_piece_documents,
    make_record_source,
    read_entity_numbers,
)
from spacy_luke.pretraining.stream import BatchSize, Position, batch_instances
from tests.pretraining.ernie.published import SEED
from tests.pretraining.ernie.record_files import RecordWriter, to_record
from tests.tiny import make_wordpiece

NAMES = [f"Q{i}" for i in range(1, 8)]


def read_made_up(start):
    """15 documents of given pieces, each with its number among them."""
    for number in range(start, 15):
        rng = random.Random(number)
        sentences = []
        for _ in range(rng.randint(1, 6)):
            pieces = [rng.randint(5, 31) for _ in range(rng.randint(1, 9))]
            sentences.append((pieces, [(0, 1, rng.choice(NAMES))]))
        yield SourceDocument(f"document {number}", sentences)


def read_from(source, position):
    return ((source.read(drawn), after) for drawn, after in source.instances(position))


def show(instance):
    return [x.tolist() if isinstance(x, np.ndarray) else x for x in vars(instance).values()]


@pytest.fixture
def bound(make_vectors):
    return {"tokenizer": make_wordpiece(), "vectors": make_vectors(NAMES), "max_window": 64, "seed": 3}


@pytest.fixture
def record_file(tmp_path, bound):
    source = make_document_source(read_made_up, max_pieces=20, min_entities=1)(**bound)
    with RecordWriter(tmp_path / "made") as writer:
        for instance, _ in islice(read_from(source, Position()), 13):
            writer.add(to_record(instance, 20))
    return tmp_path / "made"


@pytest.fixture(params=["documents", "records"])
def make_source(request, bound, record_file):
    if request.param == "documents":
        bind = make_document_source(read_made_up, max_pieces=20, min_entities=1, block=4)
    else:
        bind = make_record_source(str(record_file))
    return lambda **changes: bind(**{**bound, **changes})


def test_the_same_from_any_position(make_source):
    """Over three epochs."""
    everything = list(islice(read_from(make_source(), Position()), 120))
    assert everything[-1][1].epoch >= 2
    for at in [*range(0, 119, 7), 118]:
        again = next(read_from(make_source(), everything[at][1]))
        assert show(again[0]) == show(everything[at + 1][0])
        assert again[1] == everything[at + 1][1]


def test_epochs_differ_and_seeds_differ(make_source):
    def epoch(number, **changes):
        stream = read_from(make_source(**changes), Position(epoch=number))
        return [show(x) for x, after in islice(stream, 200) if after.epoch == number]

    assert epoch(0) == epoch(0)
    assert epoch(0) != epoch(1)
    assert epoch(0) != epoch(0, seed=4)


def test_an_epoch_of_records_has_each_once(bound, record_file):
    stream = read_from(make_record_source(str(record_file))(**bound), Position())
    names = [[x.name for x, _ in islice(stream, 13)] for _ in range(3)]
    assert all(sorted(part) == sorted(names[0]) for part in names)
    assert len(set(names[0])) == 13


def shown(source, batch):
    return [show(source.read(x)) for x in batch]


def batches_of(source, position=Position(), *, size, pieces=None, **share):
    return batch_instances(source, position, size=BatchSize(size, pieces), pieces_of=source.pieces_of, **share)


@pytest.mark.parametrize("pieces", [None, 200])
def test_processes_take_turns_in_the_batches(make_source, pieces):
    source = make_source()
    one = batches_of(source, size=3, pieces=pieces)
    parts = [batches_of(make_source(), size=3, pieces=pieces, rank=rank, world_size=2) for rank in (0, 1)]
    for _ in range(12):
        both = [next(part) for part in parts]
        alone = [next(one) for _ in range(2)]
        assert [shown(source, batch) for batch, _ in both] == [shown(source, batch) for batch, _ in alone]
        assert alone[1][1] == both[0][1] == both[1][1]


def test_batches_go_over_the_end_of_an_epoch(bound, record_file):
    source = make_record_source(str(record_file))(**bound)
    stream = batches_of(source, size=5)
    batches = [next(stream) for _ in range(3)]
    assert [len(batch) for batch, _ in batches] == [5, 5, 5]
    assert [after.epoch for _, after in batches] == [0, 0, 1]
    assert [after.batches for _, after in batches] == [1, 2, 3]
    again = next(batches_of(source, batches[1][1], size=5))
    assert shown(source, again[0]) == shown(source, batches[2][0])
    assert again[1] == batches[2][1]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": 0}, "batch_size must be a whole number from 1"),
        ({"size": 2, "rank": 2, "world_size": 2}, "a rank below the number of processes"),
        ({"size": 2, "rank": -1}, "a rank below the number of processes"),
    ],
)
def test_impossible_shares(make_source, wrong, message):
    with pytest.raises(ValueError, match=message):
        next(batches_of(make_source(), **wrong))


def test_memory_is_a_block(bound):
    """No more than two blocks of documents have been asked for when the first instance comes."""
    asked = []

    def read(start):
        for document in read_made_up(start):
            asked.append(document.name)
            yield document

    next(make_document_source(read, max_pieces=20, min_entities=0, block=3)(**bound).instances(Position()))
    assert len(asked) == 3


def test_nothing_to_train_on(bound):
    with pytest.raises(
        ValueError, match=r"no instance: 15 documents were read. 47 entity mentions read.*lower min_ent"
    ):
        next(make_document_source(read_made_up, max_pieces=60, min_entities=99)(**bound).instances(Position()))
    with pytest.raises(ValueError, match="no instance: 0 documents"):
        next(make_document_source(lambda start: iter(()), max_pieces=60)(**bound).instances(Position()))
    with pytest.raises(ValueError, match="A block needs 2 documents"):
        make_document_source(read_made_up, max_pieces=60, block=1)(**bound)


def test_entities_without_a_vector_are_counted(bound, make_vectors):
    source = make_document_source(read_made_up, max_pieces=20, min_entities=0)(
        **{**bound, "vectors": make_vectors(NAMES[:3])}
    )
    instances = [x for x, after in islice(read_from(source, Position()), 300) if after.epoch == 0]
    assert source.counts["mentions"] >= 47
    assert source.counts["without a vector"] > 20
    assert {int(e) for x in instances for e in x.entities_N} == {-1, 0, 1, 2}


@pytest.mark.parametrize("pieces", [None, 60])
def test_what_a_batch_reads_is_counted_once(bound, record_file, pieces):
    """Records, of which one more than a batch holds is looked at where it is full of pieces."""
    source = make_record_source(str(record_file))(**bound)
    stream = ernie_stream(source, bound["vectors"], {}, BatchSize(3, pieces), seed=0)
    batches = [batch for batch, _ in islice(stream(Position()), 6)]
    assert source.counts["mentions"] == sum(len(batch.gold_A) for batch in batches) > 20


def test_pieces_of_what_is_drawn(make_source):
    source = make_source()
    lengths = [(source.pieces_of(x), len(source.read(x).pieces_N)) for x, _ in islice(source.instances(Position()), 30)]
    assert all(told == found for told, found in lengths)
    assert len(set(lengths)) > 3


def test_numbers_of_records(bound, record_file, tmp_path, make_vectors):
    """By the original's entity2id.txt; what has no vector is counted, and is no entity."""
    path = tmp_path / "entity2id.txt"
    path.write_text("7\n" + "".join(f"{name}\t{i}\n" for i, name in enumerate(NAMES)), encoding="utf8")
    plain = make_record_source(str(record_file))(**bound)
    backwards = make_record_source(str(record_file), str(path))(**{**bound, "vectors": make_vectors(NAMES[::-1])})
    few = make_record_source(str(record_file), str(path))(**{**bound, "vectors": make_vectors(NAMES[:2])})
    for (a, _), (b, _), (c, _) in islice(zip(*(read_from(x, Position()) for x in (plain, backwards, few))), 13):
        assert [6 - e if e >= 0 else -1 for e in a.entities_N.tolist()] == b.entities_N.tolist()
        assert [e if e < 2 else -1 for e in a.entities_N.tolist()] == c.entities_N.tolist()
    assert 0 < few.counts["without a vector"] < few.counts["mentions"] == plain.counts["mentions"]


def test_records_of_another_vocabulary_or_store(bound, record_file, make_vectors, tmp_path):
    with pytest.raises(ValueError, match=r"but the vectors have 1 rows: give the entity2id.txt"):
        list(
            islice(
                read_from(
                    make_record_source(str(record_file))(**{**bound, "vectors": make_vectors(["Q1"])}), Position()
                ),
                13,
            )
        )
    source = make_record_source(str(record_file))(**bound)
    source.pieces = 20
    with pytest.raises(ValueError, match="but the tokenizer has 20: the records were made for another one"):
        list(islice(read_from(source, Position()), 13))
    source.pieces, source.max_window = 32, 5
    with pytest.raises(ValueError, match=r"pieces, but the encoder reads 5\."):
        list(islice(read_from(source, Position()), 13))
    with RecordWriter(tmp_path / "empty"):
        pass
    with pytest.raises(ValueError, match="has no records"):
        make_record_source(str(tmp_path / "empty"))(**bound)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2\nQ1\t0\n", "speaks of '2' entities in its first line, but has 1"),
        ("1\nQ1 x\n", "line 2: expected a name and"),
    ],
)
def test_a_damaged_entity2id(tmp_path, text, message):
    (tmp_path / "entity2id.txt").write_text(text, encoding="utf8")
    with pytest.raises(ValueError, match=message):
        read_entity_numbers(tmp_path / "entity2id.txt")


def write_pieces(folder, tokens, entities):
    for name, lines in (("token", tokens), ("entity", entities)):
        (folder / f"x_{name}").write_text("".join(f"{line}\n" for line in lines), encoding="utf8")
    return str(folder / "x")


def test_piece_files(tmp_path):
    path = write_pieces(tmp_path, ["2 4 11 12 13 14 1 15", "0", "1 1 7"], ["2 4 Q5 Q5 Q5 Q6 1 #UNK#", "0", "1 1 #UNK#"])
    first, second = make_piece_documents(path)(0)
    assert first.sentences == [([11, 12, 13, 14], [(0, 1, "Q5"), (3, 4, "Q6")]), ([15], [])]
    assert second.sentences == [([7], [])]
    assert second.name.endswith("x, line 3")
    (code, _) = make_piece_documents(path, placing="code")(0)
    assert code.sentences[0][1] == [(0, 1, "Q5"), (2, 3, "Q5"), (3, 4, "Q6")]
    assert [d.name for d in make_piece_documents(path)(1)] == [second.name]
    assert [d.name for d in make_piece_documents(path, skip=1)(0)] == [second.name]
    assert [d.name for d in make_piece_documents(path, limit=1)(0)] == [first.name]
    assert list(make_piece_documents(path, limit=1)(1)) == []


@pytest.mark.parametrize(
    ("tokens", "entities", "message"),
    [
        ("1 2 7 8", "1 2 Q1", "as many entities as pieces, but got 3 and 4"),
        ("1 3 7 8", "1 3 Q1 Q1", "line 1: sentence 0 is not as its length says"),
        ("1 2 7 x", "1 2 Q1 Q1", "line 1: sentence 0 is not"),
        ("1 2 7 8", "1 1 Q1 Q1", "line 1: sentence 0 is not"),
        ("1 1 7 8", "1 1 Q1 Q1", "1 pieces follow the last sentence"),
        ("2 1 7", "2 1 Q1", "sentence 1 is not"),
    ],
)
def test_damaged_piece_files(tmp_path, tokens, entities, message):
    with pytest.raises(ValueError, match=message):
        list(make_piece_documents(write_pieces(tmp_path, [tokens], [entities]))(0))


def test_piece_files_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match="x_token is missing"):
        make_piece_documents(str(tmp_path / "x"))
    with pytest.raises(ValueError, match="placing must be one of"):
        make_piece_documents(str(tmp_path / "x"), placing="last")


def test_the_seed_of_the_sample():
    assert random.Random(12345).randint(0, 100) == SEED
