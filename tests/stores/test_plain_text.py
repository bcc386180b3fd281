"""What is said of files that are no UTF-8: advice that, followed, gives the text."""

import bz2
import gzip
import shlex
from pathlib import Path

import pytest

from spacy_luke.stores.plain_text import read_text

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
    ("pack", "kind", "command"), [(gzip.compress, "gzip", "gunzip"), (bz2.compress, "bzip2", "bunzip2")]
)
def test_what_is_packed(tmp_path, pack, kind, command):
    path = tmp_path / f"a.{kind}"
    told = message_of(path, pack(TEXT.encode()))
    assert told.endswith(f"it is packed by {kind}. Unpack it by {command} -c {path} > NEW.")
    assert "iconv" not in told


def message_of(path: Path, raw: bytes) -> str:
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="expected") as caught:
        read_text(path)
    return str(caught.value)
