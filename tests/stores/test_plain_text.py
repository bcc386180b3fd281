"""What is said of files that are no UTF-8: advice that, followed, gives the text."""

import bz2
import gzip
import shlex
from pathlib import Path

import pytest

from spacy_luke.stores.plain_text import check_line_end, read_lines, read_text, tsv_lines

TEXT = "Ada \u201eCountess\u201c of L\xf6v\xe9 \u2013 5 \u20ac.\n"  # quotes and a dash that latin1 has not


@pytest.mark.parametrize(
    ("text", "coding"), [(TEXT, "cp1252"), ("L\xf6v\xe9", "latin1"), (TEXT, "utf-16-le"), (TEXT, "utf-16-be")]
)
def test_texts_of_other_encodings(tmp_path, text, coding):
    raw = f"\ufeff{text}".encode(coding) if coding.startswith("utf") else text.encode(coding)
    told = message_of(tmp_path / "a.txt", raw)
    _, _, advised, _, to, *_ = shlex.split(told[told.index("iconv") :])
    assert (raw.decode(advised), to) == (text, "utf8")


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"", []),
        (b"\xef\xbb\xbfa\r\n\r\nb\n", ["a", "", "b"]),
        ("a\x0c\x85\u2028b\rc\n d".encode(), ["a\x0c\x85\u2028b\rc", " d"]),
    ],
)
def test_lines(tmp_path, raw, lines):
    (tmp_path / "a").write_bytes(raw)
    assert read_lines(tmp_path / "a") == lines


@pytest.mark.parametrize(
    ("pack", "kind", "command"), [(gzip.compress, "gzip", "gunzip"), (bz2.compress, "bzip2", "bunzip2")]
)
def test_what_is_packed(tmp_path, pack, kind, command):
    path = tmp_path / f"a.{kind}"
    told = message_of(path, pack(TEXT.encode()))
    assert told.endswith(f"it is packed by {kind}. Unpack it by {command} -c {path} > NEW.")
    assert "iconv" not in told


@pytest.mark.parametrize("first", ["id\tnames\rQ1\tAda\r", '"id"\t"names"\rQ1\t5" nail\n'])
def test_line_ends_of_old_macs(first):
    with pytest.raises(ValueError, match=r"a.tsv, line 1: .* a carriage return alone, .*tr '.r' '.n' < a.tsv"):
        list(tsv_lines("a.tsv", [first]))


def test_carriage_returns_that_end_no_line_alone():
    lines = ['id\t"a\rb"\r\n', "1\ta\rb\r"]
    assert list(tsv_lines("a.tsv", lines)) == lines
    check_line_end("a", 7, "a\r")
    with pytest.raises(ValueError, match="a, line 7: expected a line feed"):
        check_line_end("a", 7, "a\rb")


def message_of(path: Path, raw: bytes) -> str:
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="expected") as caught:
        read_text(path)
    return str(caught.value)
