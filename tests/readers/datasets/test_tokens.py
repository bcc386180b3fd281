"""Words with tags, as the Hugging Face hub has them, and with mentions, as GLiNER has them."""

import json

import pytest
import spacy

from spacy_luke.readers.conversion import convert_files
from spacy_luke.readers.datasets.table import dataset_docs

WORDS = ["EU", "rejects", "the", "New", "York", "call"]
NAMES = "O, B-ORG, I-ORG, B-LOC, I-LOC"
FOUND = [("EU", "ORG"), ("New York", "LOC")]


def write(path, *items, lines=True):
    path.write_text("\n".join(map(json.dumps, items)) if lines else json.dumps(items), encoding="utf8")
    return path


def mentions(path, **settings):
    docs = dataset_docs(spacy.blank("en"), path, format="tokens", **settings)
    return [[(span.text, span.label_) for span in doc.ents] for doc in docs]


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize(
    "item",
    [
        {"id": "0", "tokens": WORDS, "ner_tags": ["B-ORG", "O", "O", "B-LOC", "I-LOC", "O"]},
        {"words": WORDS, "labels": ["I-ORG", "O", "O", "I-LOC", "I-LOC", "O"], "pos_tags": [1] * 6},
        {"tokens": WORDS, "tags": ["U-ORG", "O", "O", "B-LOC", "L-LOC", "O"]},
        {"tokens": WORDS, "ner_tags": [1, 0, 0, 3, 4, 0]},
        {"tokenized_text": WORDS, "ner": [[0, 0, "ORG"], [3, 4, "LOC"]]},
    ],
)
def test_read(item, lines, tmp_path):
    none = {"tokens": ["Nobody", "came"], "ner_tags": ["O", "O"]}
    path = write(tmp_path / "data.json", item, none, lines=lines)
    assert mentions(path, tag_names=NAMES) == [FOUND, []]


def test_no_mentions(tmp_path):
    assert mentions(write(tmp_path / "data.json", {"tokenized_text": ["Nobody", "came"], "ner": []})) == [[]]


def test_nested_mentions(tmp_path):
    path = write(tmp_path / "data.json", {"tokenized_text": WORDS, "ner": [[3, 4, "LOC"], [3, 5, "EVENT"]]})
    (doc,) = dataset_docs(spacy.blank("en"), path, format="tokens", spans_key="sc")
    assert [(span.text, span.label_) for span in doc.spans["sc"]] == [("New York", "LOC"), ("New York call", "EVENT")]


def test_files(tmp_path):
    path = write(tmp_path / "data.jsonl", {"tokens": WORDS, "ner_tags": [1, 0, 0, 3, 4, 0]})
    found = convert_files([path], tmp_path / "out.spacy", format="tokens", settings={"tag_names": NAMES})
    assert (found.counts["words"], dict(found.labels["mentions"])) == (6, {"ORG": 1, "LOC": 1})


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"tokens": WORDS, "ner_tags": [1] * 6}, "line 1: its tags are numbers.*--tag-names"),
        ({"tokens": WORDS, "ner_tags": [7] * 6, "names": NAMES}, "tag 0 is 7, but there are 5 names"),
        ({"tokens": WORDS, "ner_tags": ["O"] * 5}, "expected a tag for each of 6 words, but there are 5"),
        ({"tokens": WORDS, "ner_tags": []}, "expected a tag for each of 6 words, but there are 0"),
        ({"tokens": WORDS, "ner_tags": ["O"] * 5 + ["LOC"]}, "word 5"),
        ({"tokens": WORDS, "ner_tags": ["O"] * 5 + [None]}, "expected tags, but number 5 is None"),
        ({"tokens": ["EU", " "], "ner_tags": ["O", "O"]}, "expected words, but number 1 is ' '"),
        ({"tokens": WORDS}, "expected one list under 'ner_tags'.* but found none"),
        ({"tokens": WORDS, "ner_tags": [], "labels": []}, "found 'ner_tags' and 'labels'"),
        ({"text": "EU"}, "expected one list under 'tokens', 'words' or 'tokenized_text'"),
        ({"tokenized_text": WORDS, "ner": [[3, 6, "LOC"]]}, "is not within its 6 words"),
        ({"tokenized_text": WORDS, "ner": [[3, "LOC"]]}, r"expected a mention as \[first word, last word, label\]"),
    ],
)
def test_what_is_not_so(item, message, tmp_path):
    path = write(tmp_path / "data.jsonl", item)
    with pytest.raises(ValueError, match=message):
        mentions(path, tag_names=item.pop("names", None))


def test_jsonl_says_what_they_are(tmp_path):
    path = write(tmp_path / "data.jsonl", {"tokens": WORDS, "ner_tags": ["O"] * 6})
    with pytest.raises(ValueError, match="--format tokens"):
        convert_files([path], tmp_path / "out.spacy", format="jsonl")
