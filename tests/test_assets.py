"""The sample corpus keeps the promises of assets/README.md: offsets, types, relations, questions, queries and
counts."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.util import filter_spans

ASSETS = Path(__file__).parents[1] / "assets"
SPLITS = ("train", "dev", "test")

# label of a relation: labels of its head, labels of its tail
RELATIONS = {
    "located_in": ({"ORG", "LOC", "WORK"}, {"LOC"}),
    "lives_in": ({"PER"}, {"LOC"}),
    "born_in": ({"PER"}, {"LOC", "DATE"}),
    "member_of": ({"PER"}, {"ORG"}),
    "author_of": ({"PER"}, {"WORK"}),
    "performer_of": ({"PER", "ORG"}, {"WORK"}),
    "shown_at": ({"WORK"}, {"ORG", "LOC"}),
    "published_by": ({"WORK"}, {"ORG", "WORK"}),
    "dated": ({"WORK", "ORG", "LOC"}, {"DATE"}),
}


@cache
def read_split(split: str) -> tuple[tuple[dict[str, Any], Any], ...]:
    """Lines of a split, each with its Doc, which has sentences."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    lines = (ASSETS / "sample" / f"{split}.jsonl").read_text(encoding="utf8").splitlines()
    records = [json.loads(line) for line in lines]
    return tuple((record, nlp(record["text"])) for record in records)


@pytest.fixture(params=SPLITS)
def split(request):
    return read_split(request.param)


def read_tables() -> list[list[list[str]]]:
    """Tables of the README: rows of cells, without the line under the head and without the backquotes."""
    tables: list[list[list[str]]] = [[]]
    for line in (ASSETS / "README.md").read_text(encoding="utf8").splitlines():
        if line.startswith("|"):
            cells = [cell.strip().replace("`", "") for cell in line.strip("|").split("|")]
            if not all(re.fullmatch(r"-+:?", cell) for cell in cells):
                tables[-1].append(cells)
        elif tables[-1]:
            tables.append([])
    return [table for table in tables if table]


def read_inventory() -> dict[str, list[str]]:
    """Types by label: the general one, then the finer ones in the README's order."""
    (table,) = (table for table in read_tables() if table[0][:3] == ["label", "always", "finer"])
    inventory: dict[str, list[str]] = {}
    for label, general, finer, _ in table[1:]:
        if label:
            types = inventory[label] = [general]
        types.append(finer)
    return inventory


def outermost(record, doc) -> set:
    """Numbers of the entities that filter_spans keeps."""
    spans = [doc.char_span(entity["start"], entity["end"]) for entity in record["entities"]]
    kept = {(span.start, span.end) for span in filter_spans(spans)}
    return {i for i, span in enumerate(spans) if (span.start, span.end) in kept}


def test_entities_have_distinct_places_on_word_boundaries(split):
    for record, doc in split:
        places = [(entity["start"], -entity["end"]) for entity in record["entities"]]
        assert places == sorted(set(places)), record["id"]
        for entity in record["entities"]:
            span = doc.char_span(entity["start"], entity["end"])
            assert span is not None, (record["id"], entity)
            assert span.text == span.text.strip(), (record["id"], entity)
            assert span.end <= span[0].sent.end, (record["id"], entity)


def test_types_are_of_the_inventory_and_go_with_the_label(split):
    inventory = read_inventory()
    for record, _ in split:
        for entity in record["entities"]:
            known = inventory[entity["label"]]
            assert entity["types"][0] == known[0], (record["id"], entity)
            places = [known.index(name) for name in entity["types"]]
            assert places == sorted(set(places)), (record["id"], entity)


def test_mentions_of_one_name_have_the_same_types(split):
    """Within a document, where the label is the same too."""
    for record, _ in split:
        types: dict[tuple[str, str], list[str]] = {}
        for entity in record["entities"]:
            if entity["label"] != "DATE":
                name = (record["text"][entity["start"] : entity["end"]].lower(), entity["label"])
                assert types.setdefault(name, entity["types"]) == entity["types"], (record["id"], name)


def test_relations_join_outermost_entities_of_one_sentence(split):
    for record, doc in split:
        kept = outermost(record, doc)
        ends = [(relation["head"], relation["tail"], relation["label"]) for relation in record["relations"]]
        assert ends == sorted(set(ends)), record["id"]
        for head, tail, label in ends:
            assert head != tail, (record["id"], head)
            assert {head, tail} <= kept, (record["id"], head, tail)
            first, second = (record["entities"][i] for i in (head, tail))
            allowed = RELATIONS[label]
            assert first["label"] in allowed[0], (record["id"], head, label)
            assert second["label"] in allowed[1], (record["id"], tail, label)
            sentences = {doc.char_span(entity["start"], entity["end"]).sent.start for entity in (first, second)}
            assert len(sentences) == 1, (record["id"], head, tail)


def test_readme_lists_the_relations():
    (table,) = (table for table in read_tables() if table[0][:3] == ["label", "head", "tail"])
    assert [row[0] for row in table[1:]] == list(RELATIONS)


def test_questions_are_answered_by_whole_words(split):
    for record, doc in split:
        assert len(record["questions"]) == 2, record["id"]
        for question in record["questions"]:
            assert question["question"].endswith("?")
            for start, end in question["answers"]:
                span = doc.char_span(start, end)
                assert span is not None, (record["id"], question)
                assert span.text == span.text.strip(), (record["id"], question)


def test_queries_are_answered_by_all_mentions_of_an_outermost_entity(split):
    for record, doc in split:
        (query,) = record["queries"]
        assert query["query"].count("@placeholder") == 1, record["id"]
        answers = [tuple(place) for place in query["answers"]]
        assert answers, record["id"]
        assert answers == sorted(set(answers)), record["id"]
        places = {i: (e["start"], e["end"]) for i, e in enumerate(record["entities"]) if i in outermost(record, doc)}
        assert set(answers) <= set(places.values()), record["id"]
        names = {doc.text[start:end] for start, end in answers}
        same = {place for place in places.values() if doc.text[place[0] : place[1]] in names}
        assert same == set(answers), record["id"]
        assert not any(name in query["query"] for name in names), record["id"]


def count(split) -> Counter:
    """What the tables of counts say of a split, under the names of their rows."""
    counts: Counter = Counter()
    for record, doc in split:
        entities, relations, questions = record["entities"], record["relations"], record["questions"]
        counts["documents"] += 1
        counts["sentences"] += len(list(doc.sents))
        counts["tokens"] += sum(not token.is_space for token in doc)
        counts["all entities"] += len(entities)
        counts["of them nested"] += len(entities) - len(outermost(record, doc))
        counts.update(entity["label"] for entity in entities)
        counts.update(name for entity in entities for name in entity["types"])
        counts["all types"] += sum(len(entity["types"]) for entity in entities)
        counts["entities with a finer type"] += sum(len(entity["types"]) > 1 for entity in entities)
        counts.update(relation["label"] for relation in relations)
        counts["all relations"] += len(relations)
        counts["documents with a relation"] += bool(relations)
        counts["questions"] += len(questions)
        counts["of them unanswerable"] += sum(not question["answers"] for question in questions)
        counts["queries"] += len(record["queries"])
        counts["answers to them"] += sum(len(query["answers"]) for query in record["queries"])
    return counts


def test_counts_of_the_readme_are_true():
    counts = [count(read_split(split)) for split in SPLITS]
    named = set()
    for table in (table for table in read_tables() if table[0] == ["", *SPLITS, "total"]):
        for name, *cells in table[1:]:
            numbers = [part[name] for part in counts]
            assert [int(cell.replace(",", "")) for cell in cells] == [*numbers, sum(numbers)], name
            named.add(name)
    assert named == set().union(*counts)  # nothing is counted that no table names


def test_the_graph_is_what_the_readme_says():
    rows = [line.split("\t") for line in (ASSETS / "sample" / "graph.tsv").read_text(encoding="utf8").splitlines()]
    assert all(len(row) == 3 and all(cell == cell.strip() and cell for cell in row) for row in rows)
    assert len(rows) == len({tuple(row) for row in rows}) == 1391
    entities = {row[0] for row in rows} | {row[2] for row in rows}
    relations = {row[1] for row in rows}
    assert (len(entities), len(relations)) == (1000, 36)
    types = {name for names in read_inventory().values() for name in names}
    assert not types & (entities | relations)  # types are to be learned, and not looked up
    lines = (ASSETS / "sample" / "names.tsv").read_text(encoding="utf8").splitlines()
    names = [line.split("\t") for line in lines[1:]]
    assert lines[0] == "name\tentity\tcount"
    assert len(names) == len({name for name, *_ in names}) == 984
    assert all(entity in entities and count == "1" for _, entity, count in names)


def test_most_names_of_the_corpus_are_in_the_graph():
    lines = (ASSETS / "sample" / "names.tsv").read_text(encoding="utf8").splitlines()
    names = {line.split("\t")[0] for line in lines}
    texts = {
        (part, record["text"][entity["start"] : entity["end"]])
        for part in SPLITS
        for record, _ in read_split(part)
        for entity in record["entities"]
    }
    assert (len(texts), sum(text in names for _, text in texts)) == (1198, 879)


def test_open_data():
    """The words that assets/README.md counts; no document of a test part is in a training part."""
    readme = (ASSETS / "README.md").read_text(encoding="utf8")
    titles = {split: {d["title"] for d in _redocred(split)} for split in SPLITS}
    assert not titles["train"] & titles["test"] | titles["train"] & titles["dev"] | titles["dev"] & titles["test"]
    words = {
        "wikigold": [_count_words(f"open/wikigold.{split}.conll") for split in SPLITS],
        "wnut17": [_count_words(f"open/wnut17.{split}.conll") for split in SPLITS],
        "redocred": [sum(len(x) for d in _redocred(split) for x in d["sents"]) for split in SPLITS],
    }
    for name, counts in words.items():
        (row,) = (line for line in readme.splitlines() if line.startswith(f"| `open/{name}."))
        assert f"| {'; '.join(f'{n:,}' for n in counts)} | " in row
        assert "CC BY" in row


def _redocred(split: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ASSETS / f"open/redocred.{split}.json").read_text(encoding="utf8"))
    return found


def _count_words(name: str) -> int:
    lines = (ASSETS / name).read_text(encoding="utf8").splitlines()
    return sum(bool(line.strip()) and not line.startswith("-DOCSTART-") for line in lines)
