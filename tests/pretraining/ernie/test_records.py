"""Records of the original: the published sample to the last byte, and files that are damaged."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.pretraining.ernie.instances import Instance
from spacy_luke.pretraining.ernie.records import Records, from_record
from tests.pretraining.ernie.record_files import RecordWriter, to_record

SAMPLE = "data/ernie_pretrain_sample"


@pytest.fixture
def small(tmp_path):
    """Three records of different lengths."""
    with RecordWriter(tmp_path / "small") as writer:
        for values in ([1, -1, 7], [], [2**31 - 2]):
            writer.add(np.array(values, dtype=np.int64))
    return tmp_path / "small"


def test_reads_the_sample(shared):
    records = Records(shared(SAMPLE) / "sample.idx")
    instances = [from_record(records[i], name=f"record {i}") for i in range(len(records))]
    assert len(records) == 334
    assert {len(records[i]) for i in range(len(records))} == {1537}
    assert sum((x.entities_N >= 0).sum() for x in instances) == 3809
    assert min((x.entities_N >= 0).sum() for x in instances) == 5
    assert max((x.labels_N >= 0).sum() for x in instances) == 38


def test_the_raw_sample_has_the_stated_entity_positions(shared):
    with (shared(SAMPLE) / "wiki_entity").open(encoding="utf8") as file:
        assert sum(mark.startswith("Q") for line in file for mark in line.split()) == 32_384


def test_writes_the_sample_again(shared, tmp_path):
    """Byte for byte, over instances and back."""
    records = Records(shared(SAMPLE) / "sample")
    with RecordWriter(tmp_path / "again") as writer:
        for i in range(len(records)):
            writer.add(to_record(from_record(records[i], name="record"), 256))
    for ending in ("bin", "idx"):
        theirs = shared(SAMPLE) / f"sample.{ending}"
        assert (tmp_path / f"again.{ending}").read_bytes() == theirs.read_bytes()


def test_reads_by_number(small):
    records = Records(small)
    assert [records[i].tolist() for i in range(3)] == [[1, -1, 7], [], [2**31 - 2]]
    for i in (-1, 3):
        with pytest.raises(IndexError, match=f"records 0 to 2, but record {i}"):
            records[i]


def test_no_records(tmp_path):
    with RecordWriter(tmp_path / "none"):
        pass
    assert len(Records(tmp_path / "none")) == 0


def test_an_error_leaves_the_old_files(small):
    before = small.with_suffix(".bin").read_bytes()
    with pytest.raises(RuntimeError), RecordWriter(small) as writer:
        writer.add(np.array([5]))
        raise RuntimeError
    assert small.with_suffix(".bin").read_bytes() == before
    assert len(Records(small)) == 3
    assert {path.name for path in small.parent.iterdir()} == {"small.bin", "small.idx"}


@pytest.mark.parametrize("values", [[-2], [2**31 - 1], [[1]]])
def test_what_cannot_be_written(tmp_path, values):
    with pytest.raises(ValueError, match="Record 0: expected a vector of integers"):
        with RecordWriter(tmp_path / "x") as writer:
            writer.add(np.array(values))


def test_a_record_cut_in_half(small):
    data = small.with_suffix(".bin")
    data.write_bytes(data.read_bytes()[:6])
    with pytest.raises(ValueError, match=r"has 6 bytes, but small.idx speaks of 16 \(3 records\): record 0 is cut"):
        Records(small)


def test_the_sample_cut_in_half(shared, tmp_path):
    for ending, share in (("bin", 2), ("idx", 1)):
        data = (shared(SAMPLE) / f"sample.{ending}").read_bytes()
        (tmp_path / f"half.{ending}").write_bytes(data[: len(data) // share])
    with pytest.raises(ValueError, match="record 167 is cut"):
        Records(tmp_path / "half")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda x: x + b"\0" * 8, "3 records need 136 bytes, but it has 144"),
        (lambda x: x[:-8], "3 records need 136 bytes, but it has 128"),
        (lambda x: x[:40], "a header of 48 bytes"),
        (lambda x: b"TNTIDY" + x[6:], "must begin with b'TNTIDX"),
        (lambda x: x[:8] + struct.pack("<Q", 2) + x[16:], "the version is 2"),
        (lambda x: x[:16] + struct.pack("<Q", 7) + x[24:], "type code 7"),
        (lambda x: x[:24] + struct.pack("<Q", 8) + x[32:], "of 8 bytes"),
        (lambda x: x[:-24] + struct.pack("<3q", 2, 1, 1), "record 0 should reach from 0 over 2 numbers, but the next"),
        (lambda x: x[:48] + struct.pack("<4q", 0, 1, 2, 2) + x[80:], "expected vectors, one size a record"),
    ],
)
def test_a_damaged_index(small, damage, message):
    index = small.with_suffix(".idx")
    index.write_bytes(damage(index.read_bytes()))
    with pytest.raises(ValueError, match=message):
        Records(small)


def test_bytes_too_many_and_files_missing(small):
    data = small.with_suffix(".bin")
    data.write_bytes(data.read_bytes() + b"\0" * 4)
    with pytest.raises(ValueError, match="the rest belongs to no record"):
        Records(small)
    data.unlink()
    with pytest.raises(ValueError, match=r"small\.bin is missing"):
        Records(small)


def make_instance(pieces, masked, linked):
    n = len(pieces)
    return Instance(
        pieces_N=np.array(pieces),
        types_N=np.arange(n) // max(1, n // 2 + 1),
        labels_N=np.array([piece if i in masked else -1 for i, piece in enumerate(pieces)]),
        entities_N=np.array([3 * i if i in linked else -1 for i in range(n)]),
        is_random=bool(masked),
        name="instance",
    )


@given(
    pieces=st.lists(st.integers(0, 99), min_size=1, max_size=12),
    masked=st.sets(st.integers(0, 11)),
    linked=st.sets(st.integers(1, 11)),
)
def test_there_and_back(pieces, masked, linked):
    instance = make_instance(pieces, masked, linked)
    again = from_record(to_record(instance, 12), name="instance")
    assert [x.tolist() if isinstance(x, np.ndarray) else x for x in vars(again).values()] == [
        x.tolist() if isinstance(x, np.ndarray) else x for x in vars(instance).values()
    ]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (1 * 6 + 2, 0, "a mask of ones followed by zeros"),
        (0, -1, "pieces from 0"),
        (2 * 6, 2, "token types of 0 and 1"),
        (36, 3, "0 or 1 at the end"),
        (4 * 6, 5, "entities stand where"),
        (5 * 6 + 1, 1, "entities stand where"),
        (3 * 6 + 5, 5, "entities stand where"),
    ],
)
def test_a_damaged_record(place, value, message):
    record = to_record(make_instance([5, 6, 7, 8], {1}, {2}), 6)
    record[place] = value
    with pytest.raises(ValueError, match=message):
        from_record(record, name="record 3")


def test_pieces_by_the_mask_alone(tmp_path):
    """Records of other data, and those without a piece, would fill a batch for ever."""
    record = to_record(make_instance([5, 6, 7, 8], {1}, {2}), 6)
    hole, empty = record.copy(), record.copy()
    hole[6 + 2] = 0
    empty[6:12] = 0
    with RecordWriter(tmp_path / "made") as writer:
        for values in (record, to_record(make_instance([5, 6], {1}, {1}), 3), hole, empty, record[:-1]):
            writer.add(values)
    records = Records(tmp_path / "made")
    assert [records.pieces_of(i, name="") for i in range(2)] == [4, 2]
    for i, message in ((2, "a mask of ones followed by zeros"), (3, "a mask of ones"), (4, "expected 6 S")):
        with pytest.raises(ValueError, match=f"record {i}: .*{message}"):
            records.pieces_of(i, name=f"record {i}")
        with pytest.raises(ValueError, match=f"record {i}: .*{message}"):
            from_record(records[i], name=f"record {i}")


def test_a_record_of_another_length():
    with pytest.raises(ValueError, match="record 3: expected 6 S"):
        from_record(np.zeros(12), name="record 3")
    with pytest.raises(ValueError, match="instance has 4 pieces, but a record is to have places for 3"):
        to_record(make_instance([5, 6, 7, 8], {1}, {2}), 3)
