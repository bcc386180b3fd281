"""Linked corpora of paragraphs that are given, and damaged ones."""

import gzip
import json
import shutil

import pytest

from spacy_luke.corpus.linked_corpus import LinkedCorpus, Paragraph, read_linked_part
from tests.corpus import written
from tests.sealing import change_manifest

PARAGRAPHS = [
    Paragraph("A", "Ada lives in London.", [(0, 3, "Ada Lovelace"), (13, 19, "London")]),
    Paragraph("A", "Line\u2028separators and \U0001d518", [(20, 21, "U")], False),
    Paragraph("B", "Nothing.", []),
]


def write(folder, paragraphs=PARAGRAPHS, **settings):
    return written.write_corpus(lambda counts: iter(paragraphs), folder, language="en", **settings)


def test_round_trip(tmp_path):
    corpus = write(tmp_path / "corpus")
    again = LinkedCorpus.open(corpus.path, verify=True)
    assert list(again.paragraphs()) == PARAGRAPHS
    assert again.manifest["counts"] == {"pages": 2, "paragraphs": 3, "links": 3}
    assert (again.language, again.interwiki) == ("en", None)
    first = json.loads(gzip.open(corpus.parts[0]).readline())
    assert first == {"page": "A", "text": PARAGRAPHS[0].text, "links": [[0, 3, "Ada Lovelace"], [13, 19, "London"]], "lead": True}  # fmt: skip  # noqa: E501


def test_pages_stay_together(tmp_path):
    corpus = write(tmp_path / "corpus", part_chars=1)
    assert [[x.page for x in read_linked_part(part)] for part in corpus.parts] == [["A", "A"], ["B"]]
    assert write(tmp_path / "again", part_chars=1).digest == corpus.digest


@pytest.mark.parametrize(
    ("paragraphs", "message"),
    [
        ([Paragraph("A", "abc", [(1, 4, "B")])], r"text of 3 characters of 'A', but link 0 is \[1, 4\) to 'B'"),
        ([Paragraph("A", "abc", [(1, 2, "B"), (1, 3, "C")])], r"link 1 is \[1, 3\) to 'C' after 2"),
        ([Paragraph("A", "abc", [(1, 1, "B")])], r"link 0 is \[1, 1\)"),
        ([Paragraph("A", "abc", [(0, 1, "")])], "link 0 .* to ''"),
        ([], "Expected text in the documents, but there is none"),
    ],
)
def test_bad_paragraphs(tmp_path, paragraphs, message):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "corpus", paragraphs)
    assert not list(tmp_path.iterdir())


def test_full_disk(tmp_path, monkeypatch):
    write(tmp_path / "corpus")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(written, "write_part", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "corpus", PARAGRAPHS[:1])
    assert list(LinkedCorpus.open(tmp_path / "corpus", verify=True).paragraphs()) == PARAGRAPHS
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "manifest.json").unlink(), "no linked corpus: there is no manifest.json"),
        (
            lambda folder: (folder / "part-00000.jsonl.gz").unlink(),
            "part-00000.jsonl.gz is missing",
        ),
        (lambda folder: (folder / "part-00000.jsonl.gz").write_bytes(b"x"), "but it has 1"),
        (lambda folder: flip(folder / "part-00000.jsonl.gz", 40), "part-00000.jsonl.gz is damaged"),
    ],
)
def test_damaged_corpora(tmp_path, damage, message):
    write(tmp_path / "corpus")
    damage(tmp_path / "corpus")
    with pytest.raises(ValueError, match=message):
        LinkedCorpus.open(tmp_path / "corpus")


@pytest.mark.parametrize(
    "line",
    [b"{}", b"[1]", b"not json", b'{"page": "A", "text": "abc", "links": [[0, 9, "B"]], "lead": true}'],
)
def test_damaged_lines(tmp_path, line):
    path = tmp_path / "part.jsonl.gz"
    good = gzip.decompress(write(tmp_path / "corpus").parts[0].read_bytes())
    path.write_bytes(gzip.compress(good + line + b"\n"))
    with pytest.raises(ValueError, match=r"part.jsonl.gz, line 4: expected a paragraph"):
        list(read_linked_part(path))
    path.write_bytes(gzip.compress(good)[:-10])
    with pytest.raises(ValueError, match="not a whole gzip file"):
        list(read_linked_part(path))


def test_another_version(tmp_path):
    corpus = write(tmp_path / "corpus")
    change_manifest(corpus.path, version=99)
    with pytest.raises(ValueError, match="linked corpus of version 99, but this spacy_luke reads version 2"):
        LinkedCorpus.open(corpus.path)
    shutil.rmtree(corpus.path)


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
