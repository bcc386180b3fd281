"""Complete features of the original's readers: file -> Doc -> the window that a component encodes, entities
included."""

import json

import numpy as np
import pytest
import spacy

from spacy_luke.annotations import get_rows
from spacy_luke.components.knowledge import GivenEntities
from spacy_luke.components.known_entities import KnownEntities
from spacy_luke.components.units.inputs import Input, unit_items
from spacy_luke.readers.datasets.table import dataset_docs
from spacy_luke.text.backends import BERT_SPECIAL, build_wordpiece
from spacy_luke.text.tokenizer import PieceTokenizer

NLP = spacy.blank("en")
TASKS = {"typing": ("figer", ["。"]), "tacred": ("ernie_tacred", ["#", "$"]), "fewrel": ("ernie_fewrel", ["#", "$"])}


class Rows:
    """Stands for the store of vectors."""

    def __init__(self, rows):
        self.known = rows

    def rows(self, names):
        return np.array([self.known.get(name, -1) for name in names], dtype=np.int64)


@pytest.fixture(scope="module")
def golden(shared):
    return json.loads(shared("golden/ernie_features.json").read_text(encoding="utf8"))


def golden_tokenizer(vocab):
    settings = {"do_lower_case": True, "tokenize_chinese_chars": False}
    backend = build_wordpiece({piece: i for i, piece in enumerate(vocab)}, unk="[UNK]", settings=settings)
    return PieceTokenizer(backend, special=BERT_SPECIAL, settings=settings)


def features(golden, task, doc):
    """input_ids, input_ent, input_mask and ent_mask as the original pads them."""
    tokenizer = golden_tokenizer(golden["vocab"])
    size = golden["max_seq_length"]
    threshold = golden[task]["threshold"]
    known = KnownEntities(GivenEntities(threshold), "whitespace", Rows(golden["entity2id"]))
    settings = Input(
        tokenizer=tokenizer,
        attention="full",
        room=size - 2,
        context="document",
        overlap=8,
        rows=(),
        markers=[tokenizer.piece_id(piece) for piece in TASKS[task][1]],
        tokens=64,
        known=known,
    )
    places = get_rows(doc, "luke_pairs")[0] if task != "typing" else None
    spans = [doc.spans["luke_types"][0]] if places is None else [doc.char_span(*places[:2]), doc.char_span(*places[2:])]
    mentions = [(span.start, span.end) for span in spans]
    (item,) = unit_items(settings, doc, mentions, np.arange(len(mentions))[None], owner=0)
    padding = size - len(item.pieces)
    entities = np.full(size, -1)
    entities[item.first_E] = item.rows_E
    ent_mask = (entities >= 0).astype(int)
    ent_mask[0] = 1
    return {
        "input_ids": [*item.pieces.tolist(), *[0] * padding],
        "input_mask": [1] * len(item.pieces) + [0] * padding,
        "segment_ids": [0] * size,
        "input_ent": entities.tolist(),
        "ent_mask": ent_mask.tolist(),
    }


def marks_of(golden, task, found):
    """Places of the marks in features, two for each kind of mark where the window holds the mentions."""
    marks = [golden["vocab"].index(piece) for piece in TASKS[task][1]]
    return [[i for i, piece in enumerate(found["input_ids"]) if piece == mark] for mark in marks]


def read_docs(golden, task, tmp_path, *, text):
    path = tmp_path / "data.json"
    path.write_text(json.dumps([{"ann": [], **item} for item in golden[task]["data"]]), encoding="utf8")
    docs = list(dataset_docs(NLP, path, format=TASKS[task][0], text=text))
    return zip(docs, golden[task]["data"], golden[task]["features"], strict=True)


@pytest.mark.parametrize("task", TASKS)
def test_features(golden, tmp_path, task):
    labels = golden[task]["labels"]
    same = 0
    for doc, item, wanted in read_docs(golden, task, tmp_path, text="file" if task == "typing" else "paper"):
        if not isinstance(wanted, dict):  # see test_what_the_original_refuses
            continue
        found = features(golden, task, doc)
        if all(len(places) >= 2 for places in marks_of(golden, task, wanted)):
            assert found == {name: wanted[name] for name in found}, item
            same += 1
        else:  # the original cuts the text before the mention's end; our window moves to it
            assert sum(wanted["input_mask"]) == sum(found["input_mask"]) == golden["max_seq_length"]
            assert all(len(places) == 2 for places in marks_of(golden, task, found)), item
        if task == "typing":
            types = {span.label_ for span in doc.spans["luke_types"]}
            assert [int(label in types) for label in labels] == wanted["labels"]
        else:
            (row,) = get_rows(doc, "luke_relations") or [[None] * 4 + ["NA"]]
            assert labels.index(row[4]) == wanted["label_id"]
    assert same


def test_what_the_original_refuses(golden, tmp_path):
    """It drops an empty mention, as we do, and stops where a mention is said to begin with the blank before it."""
    refused = 0
    for task in TASKS:
        for doc, item, wanted in read_docs(golden, task, tmp_path, text="file"):
            if isinstance(wanted, dict):
                continue
            refused += 1
            if task == "typing" and item["start"] == item["end"]:
                assert "luke_types" not in doc.spans
                continue
            found = features(golden, task, doc)
            marks = marks_of(golden, task, found)
            assert all(len(places) == 2 for places in marks), item
            if task == "fewrel":
                assert get_rows(doc, "luke_knowledge") == [[a, b, name, 1.0] for name, a, b, _ in item["ents"]]
                rows = [found["input_ent"][first + 1] for first, _ in marks]
                assert rows == [golden["entity2id"].get(name, -1) for name, *_ in item["ents"]]
    assert refused
