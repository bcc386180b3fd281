import bz2
import gzip
import json

import pytest

from spacy_luke.aliases.build import build_store
from spacy_luke.aliases.counts import Limits


def read(path, **settings):
    store = build_store([path], **settings).store
    return {name: (round(store.link_probability(name), 4), store.candidates(name)) for name in sorted(store)}


EXPECTED = {
    'Weird"Al"': (0.5, [("Weird Al Yankovic", 1.0)]),
    "York": (0.1, [("York", 0.75), ("New York", 0.25)]),
}


def test_tsv(table):
    lines = [
        "name\tentity\tcount\toccurrences",
        "York\tYork\t3\t40",
        "York\tNew York\t1\t40",
        'Weird "Al"\tWeird Al Yankovic\t1\t2',
    ]
    assert read(table(*lines)) == EXPECTED
    assert read(table(*lines[:1], *reversed(lines[1:]), "")) == EXPECTED


def test_windows_lines_and_byte_order_mark(table):
    assert read(table("\ufeffname\tentity\tcount\r", "York\tYork\t3\r")) == {"York": (1.0, [("York", 1.0)])}


def test_csv(table):
    lines = [
        "count,entity,name,link_probability",
        '3,"York",York,0.1',
        "1,New York,York,0.1",
        '9,Weird Al Yankovic,"Weird ""Al""",0.5',
    ]
    assert read(table(*lines, name="x.csv")) == EXPECTED


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, bz2.compress])
def test_jsonl(table, tmp_path, pack):
    rows = [("York", "York", 0.75, 0.1), ("York", "New York", 0.25, 0.1), ('Weird "Al"', "Weird Al Yankovic", 1, 0.5)]
    fields = ("name", "entity", "probability", "link_probability")
    path = table(*(json.dumps(dict(zip(fields, row, strict=True))) for row in rows), name="plain.jsonl")
    packed = tmp_path / ("x.jsonl.gz" if pack is not bz2.compress else "x.jsonl.bz2")
    packed.write_bytes(pack(path.read_bytes()))
    assert read(packed) == EXPECTED


def test_names_that_are_one_without_case(table):
    counts = table("name\tentity\tcount\toccurrences", "US\tUnited States\t30\t40", "us\tWe\t1\t60", name="a.tsv")
    assert read(counts, case="casefold") == {
        "us": (0.31, [("United States", pytest.approx(30 / 31)), ("We", pytest.approx(1 / 31))])
    }
    shares = table(
        "name\tentity\tprobability\tlink_probability",
        "US\tUnited States\t0.8\t0.5",
        "us\tWe\t1\t0",
        "U\tV\t1\t0",
        name="b.tsv",
    )
    assert read(shares, case="casefold") == {
        "u": (0.0, [("V", 1.0)]),
        "us": (0.0, [("We", 0.5), ("United States", pytest.approx(0.4))]),
    }


def test_shares_need_not_sum_up(table):
    path = table("name\tentity\tprobability", "x\tA\t0.5", "x\tB\t0.3")
    assert read(path) == {"x": (1.0, [("A", 0.5), ("B", pytest.approx(0.3))])}


def test_several_tables_are_one(table):
    paths = [table("name\tentity\tcount", f"x\t{entity}\t1", name=f"{entity}.tsv") for entity in "AB"]
    store = build_store(paths).store
    assert store.candidates("x") == [("A", 0.5), ("B", 0.5)]
    assert store.info == {"sources": ["A.tsv", "B.tsv"], "rows": 2}


HEADER = "name\tentity\tcount\toccurrences"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["York\tNew York\t3", "York\tYork\t3"], r"line 2: expected the columns name, entity"),
        (["York\tYork\t3"], r"each column once, but 'York' is there twice: the columns are \['York', 'York', '3'\]"),
        (["name\tentity", "York\tYork"], r"line 2: expected the columns name, entity, one of \('count'"),
        (["name\tentity\tcount\tprobability", "a\tb\t1\t1"], "one of"),
        (["name\tentity\tcount\tpage", "a\tb\t1\t1"], "got .*'page'"),
        ([HEADER, "a\tb\t1"], "line 2: expected 4 fields, as the first line has, but got 3"),
        ([HEADER, "a\tb\t1\t9", "a\tb\tx\t9"], "line 3: expected a number above 0 for count, but got 'x'"),
        ([HEADER, "a\tb\t0\t9"], "above 0 for count, but got '0'"),
        ([HEADER, "a\tb\tnan\t9"], "for count, but got 'nan'"),
        ([HEADER, "a\tb\t1\t-1"], "from 0 for occurrences, but got '-1'"),
        ([HEADER, " \tb\t1\t1"], "expected a text for name, but got ' '"),
        ([HEADER, "a\tb\t1\t9", "a\tc\t1\t8"], "line 3: the name 'a' has occurrences 8.0, but 9.0"),
        (["name\tentity\tprobability", "a\tb\t0.7", "a\tc\t0.7"], "probabilities of the name 'a' sum up to 1.4"),
        (["name\tentity\tprobability", "a\tb\t7"], "above 0 to 1 for probability, but got '7'"),
        ([HEADER], "has no names"),
        ([""], "has no names"),
    ],
)
def test_bad_tables(table, lines, message):
    path = table(*lines)
    with pytest.raises(ValueError, match=message):
        build_store([path])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.jsonl", '{"name": "a"', "line 1: not JSON"),
        ("x.jsonl", "[1]", r"line 1: expected an object, but got '\[1\]'"),
        ("x.jsonl", '{"name": 1, "entity": "b", "count": 1}', "expected a text for name, but got 1"),
        ("x.jsonl", '{"name": "a", "entity": "b", "count": true}', "for count, but got True"),
        (
            "x.jsonl",
            '{"name": "a", "entity": "b", "count": 1}\n{"name": "a", "entity": "b"}',
            "line 2: expected .* as in the first",
        ),
        ("x.csv", 'name,entity,count\na,"b"c,1', "line 2: not CSV"),
        ("x.txt", "name", "expected one of .*tsv"),
    ],
)
def test_bad_files(table, name, text, message):
    with pytest.raises(ValueError, match=message):
        build_store([table(text, name=name)])


def test_damaged_files(tmp_path, table):
    path = tmp_path / "x.tsv.gz"
    path.write_bytes(gzip.compress(table(HEADER, *(f"n{i}\te{i * i}\t1\t1" for i in range(3000))).read_bytes())[:-50])
    with pytest.raises(ValueError, match=r"x\.tsv\.gz is not a whole gzip file"):
        build_store([path])
    bad = tmp_path / "x.tsv"
    bad.write_bytes(b"name\tentity\tcount\n\xff\tb\t1\n")
    with pytest.raises(ValueError, match="expected UTF-8, but byte"):
        build_store([bad])
    with pytest.raises(ValueError, match="no such file"):
        build_store([tmp_path / "absent.tsv"])


def test_nothing_left(table):
    path = table("name\tentity\tcount", "a b c\td\t1")
    with pytest.raises(ValueError, match="No name is left to store: 1 links of names with more words"):
        build_store([path], limits=Limits(max_words=2))
    with pytest.raises(ValueError, match="but got nothing"):
        build_store([])
    with pytest.raises(ValueError, match="titles, which tables do not have"):
        build_store([path], titles=True)
