"""The published files, with the counts that they are known to have."""

import json
from collections import Counter
from pathlib import Path

import pytest
import spacy

from spacy_luke.annotations import get_rows, register_extensions
from spacy_luke.readers.datasets.table import dataset_docs, read_dataset
from spacy_luke.readers.jsonl import jsonl_docs
from spacy_luke.readers.splits import PARTS, choose_by_title

NLP = spacy.blank("en")
SAMPLE = Path(__file__).parents[3] / "assets" / "sample" / "dev.jsonl"
SEMEVAL = "data/semeval2010_task8/SemEval2010_task8_"


def read(path, format, **settings):
    counts = Counter()
    return list(dataset_docs(NLP, path, format=format, counts=counts, **settings)), counts


def labels(docs):
    return Counter(row[4] for doc in docs for row in get_rows(doc, "luke_relations"))


@pytest.mark.slow
@pytest.mark.parametrize(("part", "n_bare", "people"), [
    ("train", 354, 824), ("dev", 386, 759), ("test", 400, 759)])  # fmt: skip
def test_open_entity(shared, part, n_bare, people):
    path = shared(f"data/open_entity_ernie/{part}.json")
    docs, _ = read(path, "open_entity", text="paper")
    types = Counter(span.label_ for doc in docs for span in doc.spans["luke_types"])
    assert (len(docs), types[""], types["person"]) == (1998, n_bare, people)
    assert len(types) - 1 == (8 if part == "test" else 9)
    assert not any("-LRB-" in doc.text for doc in docs)
    ufet, _ = read(shared(f"data/open_entity_ufet/{part}.json"), "ufet", text="paper")
    mentions = [next(iter(doc.spans["luke_types"])).text for doc in docs]
    assert mentions == [next(iter(doc.spans["luke_types"])).text for doc in ufet]
    assert [doc.text for doc in docs] == [doc.text for doc in ufet]  # both go back to the same sentences


def test_ufet(shared):
    docs, _ = read(shared("data/open_entity_ufet/train.json"), "ufet")
    types = [{span.label_ for span in doc.spans["luke_types"]} for doc in docs]
    assert len(docs) == 1998
    assert len(set().union(*types)) == 1639
    assert sum(map(len, types)) / len(docs) == pytest.approx(5.39, abs=0.005)
    assert all(doc.has_unknown_spaces for doc in docs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "n_other"),
    [
        ("training/TRAIN_FILE.TXT", 8000, 1410),
        ("testing_keys/TEST_FILE_FULL.TXT", 2717, 454),
    ],
)
def test_semeval2010(shared, name, n, n_other):
    docs, _ = read(shared(SEMEVAL + name), "semeval2010")
    assert len(docs) == n
    assert sum(not get_rows(doc, "luke_relations") for doc in docs) == n_other
    found = labels(docs)
    assert len(found) == 18
    assert len({label.partition("(")[0] for label in found}) == 9
    assert all(len(get_rows(doc, "luke_pairs")) == 1 for doc in docs)


@pytest.mark.slow
def test_semeval2010_keeps_the_sentences(shared):
    docs, _ = read(shared(SEMEVAL + "testing_keys/TEST_FILE_FULL.TXT"), "semeval2010")
    lines = shared(SEMEVAL + "testing/TEST_FILE.txt").read_text(encoding="utf8").splitlines()
    marks = ("<e1>", "</e1>", "<e2>", "</e2>")
    for doc, line in zip(docs, lines, strict=True):
        sentence = line.partition("\t")[2][1:-1]
        plain = sentence
        for mark in marks:
            plain = plain.replace(mark, "")
        assert doc.text == plain
        inside = [sentence.split(a)[1].split(b)[0] for a, b in (marks[:2], marks[2:])]
        (row,) = get_rows(doc, "luke_pairs")
        assert [doc.text[row[0] : row[1]], doc.text[row[2] : row[3]]] == inside


@pytest.mark.parametrize(
    ("part", "counts", "kinds"),
    [
        ("train", (922, 3377, 1283), (330, 271)),
        ("dev", (231, 893, 343), (91, 76)),
        ("test", (288, 1079, 422), (100, 105)),
    ],
)
def test_conll04(shared, part, counts, kinds):
    docs, _ = read(shared(f"data/conll04/conll04_{part}.json"), "conll04")
    found = labels(docs)
    assert (len(docs), sum(len(doc.ents) for doc in docs), found.total()) == counts
    assert (found["Live_In"], found["OrgBased_In"]) == kinds


@pytest.mark.parametrize(
    ("part", "n", "n_sentences", "n_entities", "n_relations"),
    [("train", 350, 1861, 5598, 3219), ("dev", 50, 275, 811, 455), ("test", 100, 551, 1685, 974)],
)
def test_scierc(shared, part, n, n_sentences, n_entities, n_relations):
    path = shared(f"data/scierc/{part}.json")
    docs, counts = read(path, "scierc", spans_key="sc")
    assert (len(docs), sum(len(list(doc.sents)) for doc in docs)) == (n, n_sentences)
    assert sum(len(doc.spans["sc"]) for doc in docs) == n_entities
    assert labels(docs).total() + counts["equal relations"] == n_relations
    with pytest.raises(ValueError, match=r"overlap, which doc\.ents cannot hold"):
        read(path, "scierc")
    flat, counts = read(path, "scierc", overlaps="outermost")
    assert sum(len(doc.ents) for doc in flat) + counts["left out"] == n_entities
    assert labels(flat) == labels(docs)


@pytest.mark.slow
def test_docred(shared):
    path = shared("data/redocred/dev_revised.json")
    docs, _ = read(path, "docred", spans_key="sc")
    firsts, counts = read(path, "docred", spans_key="sc", mention_pairs="first")
    assert len(docs) == 500
    assert labels(firsts).total() + counts["equal relations"] == 17284
    assert len(labels(firsts)) == len(labels(docs)) == 95
    for doc, first in zip(docs, firsts, strict=True):
        rows = {tuple(row) for row in get_rows(doc, "luke_relations")}
        assert {tuple(row) for row in get_rows(first, "luke_relations")} <= rows


@pytest.mark.slow
def test_docred_parts(shared):
    path = shared("data/redocred/dev_revised.json")
    records = list(read_dataset(path, format="docred"))
    assert [len(choose_by_title(records, part=part)) for part in PARTS] == [307, 85, 108]


@pytest.mark.slow
def test_knowledge_net(shared):
    path = shared("data/knowledge_net/human_readable-v10-notest.zip")
    docs, counts = read(path, "knowledge_net", pronouns="keep")
    assert (len(docs), len(labels(docs))) == (5728, 15)
    assert labels(docs).total() + counts["equal relations"] == 10895
    assert counts["notes: properties of which a passage states nothing"] == 2504


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "n_relations"),
    [("val_wiki", 11200, 16), ("resplit_mgfte/test", 10500, 15), ("val_nyt", 2500, 25), ("val_pubmed", 1000, 10),
     ("val_semeval", 8851, 17)],
)  # fmt: skip
def test_fewrel(shared, name, n, n_relations):
    docs, _ = read(shared(f"data/fewrel/{name}.json"), "fewrel", spans_key="sc")
    assert (len(docs), len(labels(docs)), labels(docs).total()) == (n, n_relations, n)


@pytest.mark.slow
def test_fewrel_names(shared):
    docs, _ = read(shared("data/fewrel/val_wiki.json"), "fewrel", spans_key="sc")
    first = docs[0]
    a, b, c, d, label, _ = get_rows(first, "luke_relations")[0]
    assert (first.text[a:b], first.text[c:d], label) == ("Cape Girardeau Bridge", "Mississippi River", "P177")
    assert {span.kb_id_ for span in first.spans["sc"]} == {"Q5034838", "Q1497"}


@pytest.mark.slow
def test_xquad(shared):
    docs, _ = read(shared("data/xquad_en/xquad.en.json"), "squad")
    questions = [question for doc in docs for question in get_rows(doc, "luke_questions")]
    assert (len(docs), len(questions), len({question["id"] for question in questions})) == (240, 1190, 1190)
    (start, end), *_ = questions[0]["answers"]
    assert docs[0].text[start:end] == "308"


@pytest.mark.slow
def test_squad_triples(shared):
    docs, _ = read(shared("data/squad_subset/routerlens_squad_dev.json"), "squad_triples")
    assert (len(docs), sum(len(get_rows(doc, "luke_questions")) for doc in docs)) == (3902, 4330)


def test_record(shared):
    docs, _ = read(shared("data/record_fewglue/train.jsonl"), "record")
    assert (len(docs), sum(len(doc.ents) for doc in docs)) == (32, 585)
    for doc in docs:
        (query,) = get_rows(doc, "luke_queries")
        assert query["answers"]
        assert all(answer in query["candidates"] for answer in query["answers"])


def test_the_sample():
    """What stands in assets/sample comes out as Spans."""
    register_extensions()
    docs = list(jsonl_docs(NLP, SAMPLE, spans_key="sc"))
    lines = [json.loads(line) for line in SAMPLE.read_text(encoding="utf8").splitlines()]
    for doc, line in zip(docs, lines, strict=True):
        entities = line["entities"]
        texts = [line["text"][entity["start"] : entity["end"]] for entity in entities]
        assert [(r.head.text, r.tail.text, r.label) for r in doc._.luke_relations] == [
            (texts[relation["head"]], texts[relation["tail"]], relation["label"]) for relation in line["relations"]
        ]
        assert len(doc.spans["luke_types"]) == sum(len(entity["types"]) or 1 for entity in entities)
        assert [q["answers"] for q in doc._.luke_questions] == [q["answers"] for q in line["questions"]]
        assert [q["query"] for q in doc._.luke_queries] == [q["query"] for q in line["queries"]]
