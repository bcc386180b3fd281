"""Data of a user become files for training; nothing is lost, and no document is in both parts."""

import json

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_luke.quickstart.data import prepare_parts
from spacy_luke.readers.docbin import read_docbins

VOCAB = spacy.blank("en").vocab


def write_jsonl(path, entities=((0, 3, "PER"),), n=10):
    rows = [{"start": start, "end": end, "label": label} for start, end, label in entities]
    path.write_text("".join(json.dumps({"text": f"Ada left {i} .", "entities": rows}) + "\n" for i in range(n)))
    return path


def texts(path):
    return [doc.text for doc in read_docbins(path, VOCAB)]


def test_convert_and_divide(tmp_path):
    data = write_jsonl(tmp_path / "data.jsonl")
    parts = prepare_parts([data], [], tmp_path / "corpus", format="jsonl", share=0.3)
    train, dev = texts(parts.train), texts(parts.dev)
    assert (len(train), len(dev)) == (7, 3)
    assert sorted(train + dev) == [f"Ada left {i} ." for i in range(10)]
    again = prepare_parts([parts.train], [], tmp_path / "again", share=0.3, seed=1)
    assert sorted(texts(again.train) + texts(again.dev)) == sorted(train)
    assert len(parts.made) == 2


def test_what_is_left_out_is_told(tmp_path):
    data = write_jsonl(tmp_path / "data.jsonl")
    with data.open("a") as file:
        file.write(json.dumps({"text": "No.", "spans": [], "answer": "reject"}) + "\n")
    made, _ = prepare_parts([data], [], tmp_path / "corpus", format="jsonl").made
    assert made.endswith("; 1 documents left out, since their answer is reject or ignore")


def test_files_that_are_there_stay(tmp_path):
    data = write_jsonl(tmp_path / "data.jsonl")
    first = prepare_parts([data], [data], tmp_path / "corpus", format="jsonl")
    before = first.train.read_bytes()
    second = prepare_parts([first.train], [first.dev], tmp_path / "other")
    assert (second.train, second.dev, second.made) == (first.train, first.dev, ())
    assert not (tmp_path / "other").exists()
    third = prepare_parts([first.train], [], tmp_path / "corpus")  # whose names are taken
    assert first.train.read_bytes() == before
    assert (third.train.name, third.dev.name) == ("train-part.spacy", "dev-part.spacy")


def test_parts_are_not_written_into_what_they_are_taken_of(tmp_path):
    data = write_jsonl(tmp_path / "data.jsonl")
    first = prepare_parts([data], [data], tmp_path / "corpus" / "my", format="jsonl")
    before = first.train.read_bytes()
    for folder in (tmp_path / "corpus", tmp_path / "corpus" / "my"):
        with pytest.raises(ValueError, match=r"would be written into it, to .*give the config another name"):
            prepare_parts([folder], [], tmp_path / "corpus" / "my")
    assert first.train.read_bytes() == before


def test_entities_inside_others_go_to_a_group(tmp_path):
    data = write_jsonl(tmp_path / "data.jsonl", [(0, 8, "ORG"), (0, 3, "PER")])
    parts = prepare_parts([data], [data], tmp_path / "corpus", format="jsonl")
    doc = next(iter(DocBin().from_disk(parts.train).get_docs(VOCAB)))
    assert (len(doc.ents), len(doc.spans["sc"])) == (0, 2)


def test_other_faults_are_said_as_they_are(tmp_path):
    data = write_jsonl(tmp_path / "data.jsonl", [(0, 99, "PER")])
    with pytest.raises(ValueError, match="line 1"):
        prepare_parts([data], [data], tmp_path / "corpus", format="jsonl")


def test_what_is_missing(tmp_path):
    data = write_jsonl(tmp_path / "data.jsonl", n=4)
    with pytest.raises(ValueError, match=r"say by --format what it is: .*jsonl"):
        prepare_parts([data], [], tmp_path / "corpus")
    with pytest.raises(ValueError, match="4 documents, too few"):
        prepare_parts([data], [], tmp_path / "corpus", format="jsonl")
    with pytest.raises(ValueError, match="between 0 and 1, not 1"):
        prepare_parts([data], [], tmp_path / "corpus", format="jsonl", share=1.0)
    with pytest.raises(ValueError, match="stay as they are: there is no use for align"):
        prepare_parts([tmp_path / "a.spacy"], [], tmp_path / "corpus", settings={"align": "split", "documents": None})
    with pytest.raises(ValueError, match=r"one \.spacy file or folder, but there are 2"):
        prepare_parts([tmp_path / "a.spacy", tmp_path / "b.spacy"], [], tmp_path / "corpus")


def test_documents_of_one_text_are_in_one_part(tmp_path):
    """What the pipeline is scored on it has not learned by heart."""
    data = write_jsonl(tmp_path / "data.jsonl")
    data.write_text(data.read_text() * 3)
    parts = prepare_parts([data], [], tmp_path / "corpus", format="jsonl", share=0.3)
    train, dev = texts(parts.train), texts(parts.dev)
    assert (len(train), len(dev)) == (21, 9)
    assert set(train).isdisjoint(dev)
    write_jsonl(data, n=1)
    data.write_text(data.read_text() * 3)
    with pytest.raises(ValueError, match="has 3 documents of 1 different texts, too few"):
        prepare_parts([data], [], tmp_path / "other", format="jsonl")
