"""JSON that says something twice, or nothing, and JSON from pipes."""

import os
import re
import threading

import pytest

from spacy_luke.readers.json_files import read_json, read_json_lines, read_json_objects
from spacy_luke.readers.jsonl import read_jsonl

TWICE = '{"text": "ab c", "spans": [[0, 2, "X"]], "spans": []}'


@pytest.mark.parametrize(
    ("read", "before", "after", "where"),
    [
        (read_jsonl, '{"text": "a", "spans": []}\n', "", ", line 2: expected a JSON object in UTF-8, one a line,"),
        (read_json_lines, "", "", ", line 1: expected a JSON object in UTF-8, one a line,"),
        (read_json_objects, "[", "]", ":"),
        (read_json, '{"data":\n[', "]}", ":"),
    ],
)
def test_a_key_that_is_there_twice(tmp_path, read, before, after, where):
    """Of Python's reader the last one stays, and the first one's gold is lost."""
    path = tmp_path / "x.jsonl"
    path.write_text(before + TWICE + after, encoding="utf8")
    told = f"{path}{where}"
    with pytest.raises(ValueError, match=rf"^{re.escape(told)}.*expected each key once, but 'spans' is there twice"):
        list(read(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
@pytest.mark.parametrize("many", [3, 30_000])
@pytest.mark.parametrize(("begin", "between", "end"), [("\ufeff", "\n", "\n"), ("\n", "\n", ""), ("\n[\n", ",\n", "]")])
def test_a_pipe_is_read_whole(tmp_path, many, begin, between, end):
    """It can be opened once alone."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    text = begin + between.join(f'{{"number": {i}}}' for i in range(many)) + end
    writer = threading.Thread(target=path.write_text, args=(text, "utf8"))
    writer.start()
    found = [item["number"] for _, item in read_json_objects(path)]
    writer.join()
    assert found == list(range(many))
