"""Tables, Wikidata and lists: what is read of them, and what is refused."""

import json

import pytest

from spacy_luke.aliases.counts import Limits
from spacy_luke.kb.build import KBSettings, build_kb, find_format
from spacy_luke.kb.items import Wikidata
from spacy_luke.kb.sources import title_of_url
from tests.kb.kbs import ENTITIES, write_entities

JSONL = "entities.jsonl"
ITEM = {
    "type": "item",
    "id": "Q1",
    "labels": {"en": {"language": "en", "value": "Ada"}, "de": {"language": "de", "value": "Die Ada"}},
    "aliases": {"en": [{"language": "en", "value": "A. L."}, {"language": "en", "value": "Ada"}]},
    "descriptions": {"en": {"language": "en", "value": "mathematician"}},
    "claims": {"P31": [{"mainsnak": {"datavalue": {"value": {"id": "Q5"}}}}]},
    "sitelinks": {"enwiki": {"title": "Ada Lovelace"}, "dewiki": {"title": "Ada"}, "frwiki": {"title": "Ada"}},
}
OTHER = {
    "id": "Q2",
    "labels": {"en": {"value": "Ada"}},
    "claims": {"P31": [{"mainsnak": {"snaktype": "novalue"}}]},
    "sitelinks": {},
}
PPR = """ENTITY\ttext:EU\tnormalName:eu\torigText:E.U. of old\turl:http://en.wikipedia.org/wiki/European_Union
CANDIDATE\tid:1\tinCount:50\toutCount:1\turl:http://en.wikipedia.org/wiki/European_Union\tname:European Union
CANDIDATE\tid:2\tinCount:5\toutCount:1\turl:http://en.wikipedia.org/wiki/AT&T_EU\tname:AT&T EU
ENTITY\ttext:Nobody\turl:NIL
"""


@pytest.fixture
def build(tmp_path):
    """Writes files and builds a knowledge base from them."""

    def build(files, **settings):
        paths = []
        for name, content in files.items():
            paths.append(tmp_path / name)
            paths[-1].parent.mkdir(exist_ok=True)
            data = content if isinstance(content, bytes) else content.encode("utf8", "surrogatepass")
            paths[-1].write_bytes(data)
        return build_kb(paths, tmp_path / "kb", settings=KBSettings(**settings))

    return build


def test_csv(build):
    kb = build({"e.csv": 'id,names,description,person\nQ1,"Ada|A. L.","Poet, not",yes\nQ2,Ada,,\n'}).kb
    assert kb.candidates("Ada") == [("Q1", 0.5), ("Q2", 0.5)]
    assert kb.candidates("AL") == [("Q1", 1.0)]
    assert kb.description(kb.row("Q1")) == "Poet, not"
    assert kb.is_person(kb.row("Q1"))
    assert not kb.is_person(kb.row("Q2"))


def test_quotes_of_spreadsheets_in_tsv(build):
    """Quoted as Excel and pandas do, and quotes that are none."""
    text = 'id\tnames\tdescription\n001\t"Hammer ""Pro"""|Nagel\t"a ""b"" c"\n002\t"Drill ""X"""\t5" nail\n'
    kb = build({"e.tsv": text}).kb
    assert kb.candidates('Drill "X"') == [("002", 1.0)]
    assert [kb.description(kb.row(x)) for x in ("001", "002")] == ['a "b" c', '5" nail']
    assert build({"n.tsv": 'name\tentity\n"the ""end"""\t"a\nb"\n'}).kb.candidates('the "end"') == [("a b", 1.0)]


def test_long_descriptions(build):
    """A field of .csv may be longer than Python's own limit."""
    kb = build({"e.csv": f"id,names,description\nQ1,Ada,{'x' * 200_000}\n"}).kb
    assert len(kb.description(kb.row("Q1"))) == 200_000


def test_tsv_with_priors(build):
    kb = build({"e.tsv": "id\tnames\tprior\nQ1\tAda\t0.75\nQ2\tAda\t0.125\n"}).kb
    assert kb.candidates("Ada") == [("Q1", 0.75), ("Q2", 0.125)]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"e.csv": "id,names\nQ1,Ada\nQ2,\n"}, r"e.csv, line 3: expected names that have some text, but got ''"),
        ({"e.csv": "id,names\nQ1,Ada|| B\n"}, "line 2: expected names that have some text, but got ''"),
        ({"e.csv": "id,names\n ,Ada\n"}, "line 2: expected a text for id, but got ' '"),
        ({"e.csv": "id,names\nQ1,Ada\nQ1,B\n"}, r"e.csv: the id 'Q1' is in line 2 and again in line 3"),
        ({"e.csv": "id,names,prior\nQ1,Ada,0.6\nQ2,Ada,0.5\n"}, r"e.csv: the priors of the name 'Ada' sum up to 1.1"),
        ({"e.csv": "id,names,prior\nQ1,Ada,1.5\n"}, "line 2: expected a number above 0 to 1 for prior, but got '1.5'"),
        (
            {"e.jsonl": '{"id": "Q1", "names": ["Ada"], "count": %s}\n' % ("9" * 400)},
            "expected a number from 0 for count",
        ),
        ({"e.csv": "id,names,count\nQ1,Ada,1_000\n"}, "line 2: expected a number from 0 for count, but got '1_000'"),
        ({"e.csv": "id,names,count\nQ1,Ada,many\n"}, "line 2: expected a number from 0 for count, but got 'many'"),
        ({"e.csv": "id,names,person\nQ1,Ada,perhaps\n"}, "expected 1 or 0, true or false, yes or no for person"),
        ({"e.csv": "id,names,size\nQ1,Ada,1\n"}, r"line 2: expected the columns id, names and some of .*'size'"),
        ({"e.csv": "id,names\n"}, "e.csv has no entities"),
        (
            {"e.csv": "id,names,names\nQ1,Ada,Lovelace\n"},
            "e.csv: expected each column once, but 'names' is there twice",
        ),
        ({"e.tsv": "id\tnames\tcount\tcount\n"}, "e.tsv: expected each column once, but 'count' is there twice"),
        (
            {JSONL: '{"id": "a", "names": ["x"], "id": "b"}\n'},
            "line 1: not JSON .expected each key once, but 'id' is there twice",
        ),
        (
            {JSONL: '{"id": "a", "names": {"x": 1, "x": 2}}\n'},
            "line 1: not JSON .expected each key once, but 'x' is there twice",
        ),
        ({"e.csv": '"id";"names"\n"Q1";"Ada"\n'}, "e.csv: expected commas between the columns"),
        (
            {"e.tsv": "id\tnames\rQ1\tAda\r"},
            "e.tsv, line 1: expected a line feed .* a carriage return alone",
        ),
        ({"n.tsv": "name\tentity\rAda\tQ1\r"}, "n.tsv, line 1: expected a line feed"),
        ({"e.csv": "id;names\nQ1;Ada\n"}, "e.csv: expected commas .* first line is 'id;names'. Save it with commas"),
        ({JSONL: '{"id": "Q1", "names": []}\n'}, "line 1: expected one or more names, but got \\[\\]"),
        ({JSONL: '{"id": "Q1", "names": ["a", 3]}\n'}, "line 1: expected names that have some text, but got 3"),
        ({JSONL: '{"id": 7, "names": ["a"]}\n'}, "line 1: expected a text for id, but got 7"),
        ({JSONL: '{"id": "Q1", "names": ["a"]}\n{"id": "Q2"}\n'}, "line 2: expected the columns id, names"),
        ({JSONL: '{"id": "Q1", "names": ["a"]}\n{"id": "Q2", "names": ["a"], "prior": 1}\n'}, "line 2: .*as before"),
        ({JSONL: '{"id": "Q1", "names": ["a"]}\n{"id": "Q2", "na'}, "line 2: not JSON"),
        ({JSONL: '{"id": "Q\\u0000", "names": ["a"]}\n'}, "line 1: Expected no control characters in the id"),
        ({JSONL: '{"id": "Q1", "names": ["a\\ud800"]}\n'}, "line 1: Expected Unicode for the name 'a\\\\ud800'"),
        ({JSONL: '{"id": "Q1", "names": ["a"], "description": 4}\n'}, "line 1: expected a text for description"),
        ({"n.tsv": "name\tentity\tcount\nx\t\t1\n"}, "line 2: expected a text for entity, but got ''"),
        ({"n.tsv": "name\tentity\tcount\n \tQ1\t1\n"}, "line 2: expected a text for name, but got ' '"),
        ({"n.tsv": "name\tentity\tcount\nx\tQ1\t0\n"}, "line 2: expected a number above 0 for count, but got '0'"),
        ({"n.tsv": "name\tentity\tprobability\nx\tQ1\t.9\nx\tQ2\t.2\n"}, r"n.tsv: the priors of .* 'x' sum up to 1.1"),
        ({"n.tsv": "x\tQ1\t4\n"}, "n.tsv has no names"),
        ({"n.tsv": "x\tQ1\t4\ny\tQ1\t3\n"}, "line 2: expected the columns name, entity and one of"),
        ({"w.json": '[\n{"id": "Q1", "labels": {}},\n{"id": "Q2", "lab\n'}, "line 3: not JSON"),
        ({"w.json": "[\n]\n"}, "w.json has no items"),
        ({"w.json": '["Q1"]\n'}, "line 1: expected an item, but got"),
        ({"w.json": '{"id": "Q1"}\n'}, "line 1: expected an item of Wikidata, but KeyError"),
        ({"w.json": json.dumps({"id": "Q1", "labels": {"de": {"value": "x"}}})}, "No name with an entity is left"),
        ({JSONL: '{"id": "Q1", "names": ["a"], "description": "\\udcff"}\n'}, "line 1: Expected Unicode for the descr"),
        ({"e.txt": "x"}, "its name does not say which table it is"),
    ],
)
def test_bad_input(build, tmp_path, files, message):
    with pytest.raises(ValueError, match=message):
        build(files)
    assert not (tmp_path / "kb").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


def test_nothing(tmp_path):
    with pytest.raises(ValueError, match="Expected one or more sources"):
        build_kb([], tmp_path / "kb")
    with pytest.raises(ValueError, match="there is nothing"):
        build_kb([tmp_path / "none.csv"], tmp_path / "kb")
    with pytest.raises(ValueError, match="unknown must be one of"):
        KBSettings(unknown="ignore")


def test_odd_titles(build):
    odd = [
        "ﬁ",
        "e\u0301",
        "é",
        "\u202eabc",
        "a\u200bb",
        "😀 Movie",
        "İstanbul",
        "ẞ",
        "日本",
        "中村・俊輔",
        "C++",
        "...And",
        "\ue000",
    ]
    rows = [{"id": title, "names": [title]} for title in odd]
    with pytest.warns(
        UserWarning, match=r"^2 ids of entities are equal .* 'é', once as '\\xe9' and once as 'e\\u0301'"
    ):
        kb = build({JSONL: "".join(json.dumps(row) + "\n" for row in rows)}).kb
    assert len(kb) == len(odd)
    for title in odd:
        assert kb.name_of(kb.row(title)) == title
        assert title in dict(kb.candidates(title))
    assert {entity for entity, _ in kb.candidates("é")} == {"é", "e\u0301"}
    assert kb.find_name("istanbul") == "İstanbul"  # whose capital has a dot of its own
    assert kb.find_name("SS") == "ẞ"


def test_ids_that_no_source_has(build):
    files = {
        JSONL: json.dumps({"id": "Q1", "names": ["Ada"]}) + "\n",
        "n.tsv": "name\tentity\tcount\nAda\tQ1\t1\nAda\tQ9\t3\n",
    }
    with pytest.raises(ValueError, match=r"n.tsv: the name 'Ada' means 'Q9', which no source of entities has"):
        build(files)
    dropped = build(files, unknown="drop")
    assert dropped.kb.candidates("Ada") == [("Q1", 1.0)]
    assert dropped.left_out == ["1 names and their ids that no source of entities has"]
    added = build(files, unknown="add").kb
    assert added.candidates("Ada") == [("Q9", pytest.approx(3 / 5)), ("Q1", pytest.approx(2 / 5))]
    assert len(added) == 2


def test_several_lists_are_summed(build):
    """As deep-ed: min(1, p of counts + p of a list without weights)."""
    files = {
        "counts.tsv": "name\tentity\tcount\nEU\tEuropean Union\t90\nEU\tEuropa\t10\n",
        "yago.tsv": "name\tentity\nEU\tEuropa\nEU\tEuropean University\nUN\tUnited Nations\n",
    }
    kb = build(files).kb
    assert kb.candidates("EU") == [
        ("European Union", pytest.approx(0.9)),
        ("Europa", pytest.approx(0.6)),
        ("European University", 0.5),
    ]
    assert kb.candidates("UN") == [("United Nations", 1.0)]
    more = {**files, "p.tsv": "name\tentity\tprobability\nEU\tEuropean Union\t0.4\n"}
    assert build(more).kb.candidates("EU")[0] == ("European Union", 1.0)


@pytest.mark.parametrize("other", [{"names": ["Foo"], "count": 1}, {"names": {"Foo": 1}}, {"names": ["Foo"]}])
def test_counts_of_several_sources_are_one(build, other):
    """A catalogue in two files is that in one, and as one that was added."""
    rows = [{"id": "x1", "names": ["Foo"], "count": 1000}, {"id": "x2", **other}]
    lines = [json.dumps(row) + "\n" for row in rows]
    together = build({JSONL: "".join(lines)})
    apart = build({"1.jsonl": lines[0], "2.jsonl": lines[1]})
    assert dict(together.kb.candidates("Foo")) == {"x1": pytest.approx(1000 / 1001), "x2": pytest.approx(1 / 1001)}
    assert apart.kb.candidates("Foo") == together.kb.candidates("Foo")
    assert apart.left_out == together.left_out == []


def test_links_beside_own_counts_are_one(build):
    files = {"w.json": json.dumps(ITEM) + "\n", JSONL: json.dumps({"id": "x", "names": ["Ada"], "count": 9}) + "\n"}
    kb = build(files).kb
    assert dict(kb.candidates("Ada")) == {"Q1": pytest.approx(3 / 12), "x": pytest.approx(9 / 12)}


def test_priors_above_one_are_told(build):
    """Priors are added as they are, within a table up to 1 and across tables beyond."""
    rows = [{"id": "x1", "names": ["Foo", "Bar"], "prior": 0.8}, {"id": "x2", "names": ["Foo"], "prior": 0.7}]
    built = build({f"{row['id']}.jsonl": json.dumps(row) + "\n" for row in rows})
    assert dict(built.kb.candidates("Foo")) == {"x1": pytest.approx(0.8), "x2": pytest.approx(0.7)}
    assert "nothing; but the priors of 1 names sum up to more than 1" in built.left_out[0]


def test_lists_without_a_first_line(build):
    kb = build({"n.tsv": "EU\tEuropean Union\t3\nEU\tEuropa\t1\n"}, columns=["name", "entity", "count"]).kb
    assert kb.candidates("EU") == [("European Union", 0.75), ("Europa", 0.25)]
    with pytest.raises(ValueError, match="line 1: expected 2 fields, as columns are named, but got 3"):
        build({"n.tsv": "EU\tEuropean Union\t3\n"}, columns=["name", "entity"])


def test_limits(build):
    files = {"n.tsv": "name\tentity\tcount\nx\tA\t8\nx\tB\t1\nx\tC\t1\na b c d\tA\t5\n"}
    built = build(files, limits=Limits(min_count=2, max_words=3))
    assert built.kb.candidates("x") == [("A", pytest.approx(0.8))]
    assert built.kb.n_names == 1
    assert built.left_out == ["1 links of names with more words than max_words", "2 candidates with fewer links"]


def test_wikidata(build):
    lines = "[\n" + json.dumps(ITEM) + ",\n" + json.dumps(OTHER) + ",\n" + json.dumps(ITEM) + "\n]\n"
    built = build({"w.json": lines})
    kb = built.kb
    assert kb.candidates("Ada") == [("Q1", pytest.approx(6 / 7)), ("Q2", pytest.approx(1 / 7))]
    assert kb.candidates("A.L.") == [("Q1", 1.0)]
    row = kb.row("Q1")
    assert (kb.description(row), kb.count(row), kb.is_person(row)) == ("mathematician", 3, True)
    assert not kb.is_person(kb.row("Q2"))
    assert built.left_out == ["1 entities that came again (their names are there)"]
    titles = build({"w.json": lines}, wikidata=Wikidata("de", "enwiki"))
    assert titles.kb.candidates("Die Ada") == [("Ada Lovelace", 1.0)]
    assert titles.kb.count(0) == 0
    assert "1 items without a name" in titles.left_out[1]


def test_ppr(build, tmp_path):
    (tmp_path / "ppr").mkdir()
    (tmp_path / "ppr" / "1").write_text(PPR)
    kb = build_kb([tmp_path / "ppr"], tmp_path / "kb").kb
    (tmp_path / "ppr" / "3").write_text(PPR)  # a list that comes again changes nothing
    again = build_kb([tmp_path / "ppr"], tmp_path / "again").kb
    for name in ("EU", "E.U. of old"):  # the one that was looked up, and the one in the text
        assert kb.candidates(name) == again.candidates(name)
        assert [x.entity for x in kb.candidates(name)] == ["European Union", "AT&T EU"]  # by their links, 50 and 5
        assert [x.prior for x in kb.candidates(name)] == pytest.approx([50 / 55, 5 / 55])
    assert kb.count(kb.row("European Union")) == 50
    (tmp_path / "ppr" / "2").write_text(PPR.replace("CANDIDATE", "CANDIDAT"))
    with pytest.raises(ValueError, match="2, line 2: expected a line of PPRforNED"):
        build_kb([tmp_path / "ppr"], tmp_path / "kb")
    assert title_of_url("http://en.wikipedia.org/wiki/S%C3%A3o_Paulo") == "São Paulo"
    assert title_of_url("http://de.wikipedia.org/wiki/X") is None
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="Expected the files of PPRforNED"):
        build_kb([tmp_path / "empty"], tmp_path / "kb")


def test_persons(build, tmp_path):
    (tmp_path / "persons.txt").write_text("Q1\n\nQ7\n")
    built = build({"n.tsv": "name\tentity\nAda\tQ1\nB\tQ2\n"}, persons=tmp_path / "persons.txt")
    assert [built.kb.is_person(built.kb.row(entity)) for entity in ("Q1", "Q2")] == [True, False]
    assert built.left_out == ["1 persons that are no entities"]


def test_formats(tmp_path):
    found = {}
    for name, text in {
        "a.csv": '"id","names"\n',
        "b.tsv": "description\tid\tnames\n",
        "c.csv": "name,entity,count\n",
        "d.jsonl": '{"id": "x", "names": ["y"]}\n',
        "e.jsonl": '{"name": "x", "entity": "y"}\n',
        "f.jsonl": '{"id": "Q1", "labels": {}}\n',
        "g.json": "[\n",
        "h.xml": "<mediawiki>",
        "i.tsv": 'a "quote" here\tQ1\t1\n',
    }.items():
        (tmp_path / name).write_text(text)
        found[name[0]] = find_format(tmp_path / name)
    assert [found[name] for name in "abcde"] == ["entities", "entities", "names", "entities", "names"]
    assert [found[name] for name in "fghi"] == ["wikidata", "wikidata", "dump", "names"]
    assert find_format(tmp_path) == "ppr"


def test_sources_of_one_entity_are_joined(build, tmp_path):
    write_entities(tmp_path / "first.jsonl", [{"id": "Japan", "names": ["Land"], "person": False, "count": 3}])
    write_entities(tmp_path / "all.jsonl")
    kb = build_kb([tmp_path / "first.jsonl", tmp_path / "all.jsonl"], tmp_path / "kb").kb
    assert len(kb) == len(ENTITIES)
    row = kb.row("Japan")
    assert (kb.count(row), kb.description(row)) == (90, "A country in Asia.")
    assert kb.candidates("Land") == [("Japan", 1.0)]
