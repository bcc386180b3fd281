"""Parts by seed, and the pairs of ids that they ask about."""

import json
from collections import Counter

import pytest

from spacy_luke.readers.datasets.table import read_dataset
from spacy_luke.readers.records import Mention, Record
from spacy_luke.readers.splits import PARTS, choose_by_title, divide_records, part_of_title, write_pair_ids

FEWREL = ["val_wiki", "resplit_mgfte/val", "resplit_mgfte/test"]


def make(number, label):
    mentions = [Mention(0, 1, "E", kb_id=f"Q{number}"), Mention(1, 2, "E", kb_id="Q0")]
    relations = [(0, 1, label)] if label else []
    return Record(f"line {number}", words=["a", "b"], mentions=mentions, relations=relations, pairs=[(0, 1)])


RECORDS = [make(i, ["r", "s", "", "s"][i % 4]) for i in range(1, 81)]


def wheres(records):
    return [record.where for record in records]


def test_shares_of_each_relation():
    parts = {part: divide_records(RECORDS, part=part, shares=(0.5, 0.3, 0.2)) for part in PARTS}
    assert sorted(where for found in parts.values() for where in wheres(found)) == sorted(wheres(RECORDS))
    for part, sizes in {"train": (10, 20, 10), "dev": (6, 12, 6), "test": (4, 8, 4)}.items():
        found = Counter(record.relations[0][2] if record.relations else "" for record in parts[part])
        assert (found["r"], found["s"], found[""]) == sizes


def test_only_seed_and_content_matter():
    train = wheres(divide_records(RECORDS, part="train", seed=3))
    counts = Counter()
    assert wheres(divide_records(RECORDS[::-1] + RECORDS[:7], part="train", seed=3, counts=counts)) == train
    assert counts["equal records"] == 7
    assert wheres(divide_records(RECORDS, part="train", seed=4)) != train
    of_r = [record for record in RECORDS if record.relations and record.relations[0][2] == "r"]
    assert set(wheres(divide_records(of_r, part="train", seed=3))) <= set(train)  # other relations do not matter


def test_what_cannot_be_divided():
    for records, settings, message in [
        (RECORDS, {"part": "all"}, "part must be one of"),
        (RECORDS, {"part": "dev", "shares": (0.5, 0.5)}, "shares must be three numbers"),
        (RECORDS, {"part": "dev", "shares": (0.9, 0.2, -0.1)}, "shares must be three numbers"),
        (
            [*RECORDS, make(1, "r")],
            {"part": "dev"},
            "line 1: the same text and pair have the relation 'r' here and 's'",
        ),
        ([Record("line 9", words=["a"])], {"part": "dev"}, "line 9: to be divided by relation, .* it has none"),
    ]:
        with pytest.raises(ValueError, match=message):
            divide_records(records, **settings)


def test_pair_ids(tmp_path):
    path = tmp_path / "new" / "pairs.tsv"
    assert write_pair_ids([make(2, "r"), make(1, ""), make(2, "r")], path) == 2
    assert path.read_bytes() == b"Q1\tQ0\t\nQ2\tQ0\tr\n"
    with pytest.raises(ValueError, match="there are none"):
        write_pair_ids([], path)
    with pytest.raises(ValueError, match="line 3: expected an id of the head and of the tail"):
        write_pair_ids(
            [Record("line 3", words=["a", "b"], mentions=[Mention(0, 1), Mention(1, 2)], pairs=[(0, 1)])], path
        )
    assert path.read_bytes() == b"Q1\tQ0\t\nQ2\tQ0\tr\n"


@pytest.mark.slow
def test_fewrel(shared, tmp_path):
    """42 relations in three files, of which four stand in two."""
    files = [shared(f"data/fewrel/{name}.json") for name in FEWREL]
    counts = Counter()
    records = [record for path in files for record in read_dataset(path, format="fewrel")]
    parts = {part: divide_records(records, part=part, counts=counts) for part in PARTS}
    assert {part: len(found) for part, found in parts.items()} == {"train": 23520, "dev": 2940, "test": 2940}
    assert counts["equal records"] == 3 * 2800  # in each of the three calls
    for part, n in (("train", 560), ("dev", 70), ("test", 70)):
        found = Counter(record.relations[0][2] for record in parts[part])
        assert (len(found), set(found.values())) == (42, {n})
    pairs = {}
    for part in PARTS:
        path = tmp_path / f"{part}.tsv"
        assert write_pair_ids(parts[part], path) == len(parts[part])
        pairs[part] = {tuple(line.split("\t")[:2]) for line in path.read_text(encoding="utf8").splitlines()}
    assert len(set.union(*pairs.values())) == 29400  # no pair is asked about twice
    first = json.dumps([record.words for record in parts["test"][:3]])
    assert first == json.dumps([record.words for record in divide_records(records[::-1], part="test")[:3]])
    assert all(len(record.knowledge) == 2 for record in records)


def test_parts_by_title():
    titles = [f"Title {i}" for i in range(500)]
    parts = Counter(map(part_of_title, titles))
    assert set(parts) == set(PARTS)
    assert parts["train"] > 250
    assert min(parts["dev"], parts["test"]) > 70
    assert [part_of_title(x) for x in ("Göteborg", "Berlin", "Paris")] == ["train", "dev", "test"]  # for all time
    records = [Record(f"line {i}", title=title, words=["a"]) for i, title in enumerate(titles)]
    found = {part: choose_by_title(records, part=part) for part in PARTS}
    assert sum(map(len, found.values())) == 500
    assert all(part_of_title(record.title) == part for part in PARTS for record in found[part])
    with pytest.raises(ValueError, match="line 7: expected a title"):
        choose_by_title([Record("line 7", words=["a"])], part="dev")
    with pytest.raises(ValueError, match="part must be one of"):
        choose_by_title(records, part="held out")
