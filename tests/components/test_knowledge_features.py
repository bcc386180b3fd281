"""Complete features of the original's readers: file -> Doc -> the window that a component encodes, entities included."""

import json

import numpy as np
import pytest
import spacy

from spacy_luke.components.knowledge import GivenEntities
from spacy_luke.components.known import KnownEntities
from spacy_luke.components.units import Input, unit_items
from spacy_luke.readers.datasets import dataset_docs
from spacy_luke.text.backends import BERT_SPECIAL, build_wordpiece
from spacy_luke.text.tokenizer import PieceTokenizer

NLP = spacy.blank("en")
TASKS = {"typing": ("figer", ["。"]), "tacred": ("ernie_tacred", ["#", "$"]), "fewrel": ("ernie_fewrel", ["#", "$"])}
# What the original cannot use: it drops the first, whose mention is empty, and stops at the second, whose head is said to
# begin with the blank before it.
REFUSED = [("typing", 7), ("fewrel", 3)]


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
    places = doc.user_data["luke_pairs"][0] if task != "typing" else None
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


@pytest.mark.parametrize("task", TASKS)
def test_features(golden, tmp_path, task):
    path = tmp_path / "data.json"
    path.write_text(json.dumps([{"ann": [], **item} for item in golden[task]["data"]]), encoding="utf8")
    docs = list(dataset_docs(NLP, path, format=TASKS[task][0], text="file" if task == "typing" else "paper"))
    expected = golden[task]["features"]
    labels = golden[task]["labels"]
    assert len(docs) == len(expected)
    for i, (doc, wanted) in enumerate(zip(docs, expected, strict=True)):
        if (task, i) in REFUSED:
            assert not isinstance(wanted, dict)
            continue
        found = features(golden, task, doc)
        assert found == {name: wanted[name] for name in found}, (task, i)
        if task == "typing":
            types = {span.label_ for span in doc.spans["luke_types"]}
            assert [int(label in types) for label in labels] == wanted["labels"]
        else:
            (row,) = doc.user_data["luke_relations"] or [[None] * 4 + ["NA"]]
            assert labels.index(row[4]) == wanted["label_id"]


def test_what_the_original_refuses(golden, tmp_path):
    path = tmp_path / "data.json"
    for task, number in REFUSED:
        path.write_text(json.dumps([golden[task]["data"][number]]), encoding="utf8")
        (doc,) = dataset_docs(NLP, path, format=TASKS[task][0], text="file")
        if task == "typing":
            assert "luke_types" not in doc.spans
        else:
            assert doc.user_data["luke_knowledge"] == [[1, 5, "Q41187", 1.0], [12, 17, "Q1490", 1.0]]
            assert features(golden, task, doc)["input_ent"][2] == golden["entity2id"]["Q41187"]
