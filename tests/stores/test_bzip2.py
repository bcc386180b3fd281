"""bzip2 files of one stream and of many: the same bytes and the same errors as from the standard library."""

import bz2
import io
import random
import threading

import pytest

from spacy_luke.stores.bzip2 import open_bzip2

TEXT = bytes(random.Random(0).choices(b"abcdefgh \n", k=60_000))


def pack(*sizes):
    parts, start = [], 0
    for size in sizes:
        parts.append(bz2.compress(TEXT[start : start + size]))
        start += size
    return b"".join(parts), TEXT[:start]


@pytest.mark.parametrize("sizes", [(60_000,), (1000,) * 60, (0, 10, 0), (1, 50_000, 10, 20)])
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("longest", [100, 1 << 23])
@pytest.mark.parametrize("read", [1, 7, 1 << 20])
def test_the_same_bytes(sizes, threads, longest, read, monkeypatch):
    monkeypatch.setattr("spacy_luke.stores.bzip2._READ", 3000)
    data, expected = pack(*sizes)
    with open_bzip2(io.BytesIO(data), threads=threads, longest=longest) as file:
        found = bytearray()
        while block := file.read(read if len(found) < 50 else 1 << 20):
            found += block
    assert bytes(found) == expected


@pytest.mark.parametrize("longest", [100, 1 << 23])
def test_damaged_files(longest):
    data, _ = pack(*(1000,) * 20)
    for damaged in (data[:-20], data[:3000] + b"\0" * 200 + data[3200:]):
        with pytest.raises((EOFError, OSError)), open_bzip2(io.BytesIO(damaged), threads=2, longest=longest) as file:
            file.read()


def test_a_file_that_is_closed_early_leaves_no_threads():
    before = threading.active_count()
    data, expected = pack(*(1000,) * 40)
    with open_bzip2(io.BytesIO(data), threads=3) as file:
        assert file.read(10) == expected[:10]
    assert threading.active_count() == before
