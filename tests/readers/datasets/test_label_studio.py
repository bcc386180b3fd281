"""Label Studio's exports, written by hand after its documentation."""

import json

import pytest
import spacy

from spacy_luke.readers.conversion import convert_files
from spacy_luke.readers.datasets.table import dataset_docs, read_dataset

TEXT = "😀 Ada of Shell met Ben."


def region(number, start, end, *labels, kind="labels", **value):
    return {"id": f"r{number}", "type": kind, "value": {"start": start, "end": end, kind: list(labels), **value}}


def task(*regions, data=None, **more):
    return {"data": {"text": TEXT} if data is None else data, "annotations": [{"result": list(regions), **more}]}


@pytest.fixture
def write(tmp_path):
    def write(*tasks):
        path = tmp_path / "export.json"
        path.write_text(json.dumps(tasks), encoding="utf8")
        return path

    return write


def records(path):
    return list(read_dataset(path, format="label_studio"))


def mentions(record):
    return [(record.text[x.start : x.end], x.label) for x in record.mentions]


def test_regions_and_relations(write):
    ada = region(1, 2, 5, "PER", text="Ada")
    shell = region(2, 10, 15, "ORG", kind="hypertextlabels", text="Shell")  # of UTF-16, where the face has two units
    works = {"type": "relation", "from_id": "r1", "to_id": "r2", "labels": ["works for", "owns"], "direction": "right"}
    (record,) = records(write(task(ada, shell, works)))
    assert mentions(record) == [("Ada", "PER"), ("Shell", "ORG")]
    assert record.relations == [(0, 1, "works for"), (0, 1, "owns")]
    for direction, expected in (("left", [(1, 0, "x")]), ("bi", [(0, 1, "x"), (1, 0, "x")])):
        (record,) = records(write(task(ada, shell, {**works, "labels": ["x"], "direction": direction})))
        assert record.relations == expected
    assert records(write(task(ada, shell, {**works, "labels": []})))[0].relations == [(0, 1, "related")]


@pytest.mark.parametrize(
    ("text", "words"), [("😀哈哈哈 Köln", [("哈", 2), ("Köln", 5)]), ("🇩🇪 1 1 1 0 Köln", [("1", 3), ("Köln", 11)])]
)
@pytest.mark.parametrize("has_text", [True, False])
@pytest.mark.parametrize(("unit", "size"), [("utf-16-le", 2), ("utf-32-le", 4)])
def test_the_regions_of_a_task_tell_the_unit(text, words, has_text, unit, size, write):
    regions = []
    for word, start in words:
        first, last = (len(text[:x].encode(unit)) // size for x in (start, start + len(word)))
        own = {"text": word} if has_text or word == "Köln" else {}
        regions.append(region(start, first, last, "X", **own))
    (record,) = records(write(task(*regions, data={"text": text})))
    assert [(x.start, x.end) for x in record.mentions] == [(x, x + len(word)) for word, x in words]


def test_units_that_nothing_proves_and_that_are_mixed(write):
    text = "😀哈哈哈 Köln"
    (record,) = records(write(task(region(1, 2, 3, "X", text="哈"), data={"text": text})))
    assert [(x.start, x.end) for x in record.mentions] == [(2, 3)]
    mixed = [region(2, 5, 9, "X", text="Köln"), region(3, 6, 10, "X", text="Köln")]
    assert len(records(write(task(*mixed, data={"text": text})))[0].mentions) == 2
    with pytest.raises(ValueError, match="the mention at 2 3 may be meant in characters or in units of UTF-16"):
        records(write(task(region(1, 2, 3, "X", text="哈"), *mixed, data={"text": text})))


def test_an_empty_text(write):
    """Another field is not the text, whose places would be wrong there."""
    (record,) = records(write(task(data={"title": "Ada", "text": ""})))
    assert (record.text, record.mentions) == ("", [])
    with pytest.raises(ValueError, match="the mention at 0 3 should be 'Ada', but there stands ''"):
        records(write(task(region(1, 0, 3, "PER", text="Ada"), data={"title": "Ada", "text": ""})))
    (record,) = records(write(task(data={"title": "Ada", "text": None})))
    assert record.text == "Ada"


def test_what_is_left_out_is_counted(write):
    done = task(region(1, 2, 5, "PER"), {"type": "choices", "value": {"choices": ["good"]}})
    skipped = task(region(1, 2, 5, "PER"), was_cancelled=True)
    first, last = records(write({"data": {"text": TEXT}}, done, skipped, done, skipped))
    assert first.notes == {"regions of type choices, left out": 1}
    assert last.notes == {**first.notes, "tasks without an annotation, left out": 3}
    with pytest.raises(ValueError, match="expected tasks with an annotation, but none of the 2 has any"):
        records(write(skipped, skipped))


def test_further_annotations_and_regions_without_a_label(write):
    ada, nothing, ben = region(1, 2, 5, "PER"), region(2, 9, 14), region(3, 19, 22, "PER")
    relations = [{"type": "relation", "from_id": "r1", "to_id": f"r{i}"} for i in (2, 3)]
    several = task(ada, nothing, ben, *relations)
    several["annotations"] = [{"was_cancelled": True}, *several["annotations"], {"result": [ben]}, {"result": []}]
    (record,) = records(write(several))
    assert mentions(record) == [("Ada", "PER"), ("Ben", "PER")]
    assert record.relations == [(0, 1, "related")]
    assert record.notes == {
        "annotations of a task beside its first, left out": 2,
        "regions without a label, left out": 1,
        "relations of regions without a label, left out": 1,
    }


def test_other_shapes(write):
    (record,) = records(write(task(region(1, 2, 5, "PER"), data={"body": TEXT, "id": 7})))
    assert mentions(record) == [("Ada", "PER")]
    short = {"id": 1, "text": TEXT, "label": [{"start": 2, "end": 5, "text": "Ada", "labels": ["PER"]}]}
    assert [mentions(x) for x in records(write(short, {"id": 2, "text": TEXT}))] == [[("Ada", "PER")], []]


@pytest.mark.parametrize("as_string", [False, True])
def test_json_min_has_regions_under_the_names_of_controls(as_string, write):
    def small(**lists):
        return {"id": 1, "text": TEXT, **{x: json.dumps(y) if as_string else y for x, y in lists.items()}}

    ada = {"start": 2, "end": 5, "text": "Ada", "labels": ["PER"]}
    shell = {"start": 9, "end": 14, "text": "Shell", "hypertextlabels": ["ORG"]}
    (first, second) = records(write(small(ner=[ada], orgs=[shell], hard=[{"number": 3}]), small(ner=[])))
    assert mentions(first) == [("Ada", "PER"), ("Shell", "ORG")]
    assert first.notes == {"lists under 'hard' without start, end and labels, left out": 1}
    assert (second.mentions, second.notes) == ([], {})
    with pytest.raises(ValueError, match=r"expected 'labels' \(list\), but got an object with \['end', 'start'\]"):
        records(write(small(ner=[ada, {"start": 2, "end": 5}])))
    with pytest.raises(ValueError, match=r"no task has one; their keys are \['hard', 'id', 'text'\]"):
        records(write(small(hard=[{"number": 3}]), small()))


def test_documents(write, tmp_path):
    path = write(task(region(1, 2, 5, "PER"), region(2, 9, 14, "ORG")))
    (doc,) = dataset_docs(spacy.blank("en"), path, format="label_studio")
    assert [(x.text, x.label_) for x in doc.ents] == [("Ada", "PER"), ("Shell", "ORG")]
    found = convert_files([path], tmp_path / "x.spacy", format="label_studio")
    assert found.labels["mentions"] == {"PER": 1, "ORG": 1}


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (
            [task(region(1, 2, 5, "PER", text="Bob"))],
            r"item 0: the mention at 2 5 should be 'Bob', but there stands 'Ada'",
        ),
        ([task(data={"a": "x", "b": "y"})], "expected the text under 'text' of its data"),
        ([task({"type": "relation", "from_id": "r1", "to_id": "r9"}, region(1, 2, 5, "PER"))], "the region 'r9'"),
        ([{"texts": "x"}], "expected 'text'"),
        ([task({"type": "labels", "value": {"start": "2", "end": 5}})], "expected 'start'"),
    ],
)
def test_faults(write, tasks, message):
    with pytest.raises(ValueError, match=message):
        records(write(*tasks))
