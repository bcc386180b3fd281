"""Items of Wikidata: labels of all languages, several languages, pages, types, items that were merged."""

import json

import pytest

import spacy_luke.kb.items as module
from spacy_luke.annotations import EntityRecord
from spacy_luke.kb.build import KBSettings, build_kb
from spacy_luke.kb.items import Wikidata, read_item
from spacy_luke.stores.parallel import Engine


def text(value):
    return {"value": value}


def p31(*items):
    return {"P31": [{"mainsnak": {"datavalue": {"value": {"id": item}}}} for item in items]}


PARIS = {
    "id": "Q90",
    "labels": {"en": text("Paris"), "de": text("Paris"), "el": text("Παρίσι")},
    "aliases": {"en": [text("City of Light")], "de": [text("Lutetia")]},
    "descriptions": {"de": text("Hauptstadt"), "en": text("capital")},
    "sitelinks": {"enwiki": {"title": "Paris"}, "dewiki": {"title": "Paris"}, "frwiki": {"title": "Paris"}},
    "claims": p31("Q515", "Q5119", "Q515"),
}
MUL = {  # a name that is the same in all languages, of which editors remove the copies
    "id": "Q1",
    "labels": {"mul": text("Ada Bell")},
    "aliases": {"mul": [text("A. Bell")], "en": [text("Countess Ada")]},
    "sitelinks": {"de_x_oldwiki": {"title": "x"}, "commonswiki": {"title": "Ada"}},
    "claims": p31("Q5"),
}
GREEK = {"id": "Q2", "labels": {"el": text("Άδα")}, "sitelinks": {}}
MERGED = {"entity": "Q100", "redirect": "Q90"}


def build(folder, *items, engine=None, **wikidata):
    (folder / "w.json").write_text("".join(json.dumps(item) + "\n" for item in items))
    settings = KBSettings(wikidata=Wikidata(**wikidata), engine=engine)
    return build_kb([folder / "w.json"], folder / "kb", settings=settings)


def test_labels_of_all_languages_are_names(tmp_path):
    built = build(tmp_path, PARIS, MUL, GREEK)
    kb = built.kb
    assert built.left_out == ["1 items without a name in the language, or without a title in the wiki"]
    assert [kb.candidates(name) for name in ("Ada Bell", "A. Bell", "Countess Ada")] == [[("Q1", 1.0)]] * 3
    record = EntityRecord("Q1", "Ada Bell", "Q1", "https://www.wikidata.org/wiki/Q1", "", ("Q5",))
    assert kb.record(kb.row("Q1")) == record
    assert kb.is_person(kb.row("Q1"))


def test_types_pages_and_merged_items(tmp_path):
    built = build(tmp_path, PARIS, MERGED)
    kb = built.kb
    assert kb.record(kb.row("Q90")) == EntityRecord(
        "Q90", "Paris", "Q90", "https://en.wikipedia.org/wiki/Paris", "capital", ("Q515", "Q5119")
    )
    assert kb.row("Paris") == kb.row("Q100") == kb.row("Q90")
    assert built.read == {"items": 1, "redirects of items": 1}


def test_several_languages_in_order(tmp_path):
    kb = build(tmp_path, PARIS, GREEK, language="el, de,en").kb
    assert kb.record(kb.row("Q90"))[1:5] == ("Paris", "Q90", "https://de.wikipedia.org/wiki/Paris", "Hauptstadt")
    assert set(kb.names()) == {"Παρίσι", "Paris", "City of Light", "Lutetia", "Άδα"}
    assert Wikidata("en,mul,de,en").languages == ["en", "de", "mul"]
    assert read_item({**PARIS, "sitelinks": {}}, Wikidata("el,en")).about.title == "Παρίσι"
    with pytest.raises(ValueError, match="Expected the code of a language, or several with commas, but got 'mul'"):
        Wikidata("mul")


def test_titles_as_ids_keep_the_wikidata_id(tmp_path):
    kb = build(tmp_path, PARIS, MUL, site="dewiki").kb
    assert list(kb.entities()) == ["Paris"]
    assert kb.record(0)[:4] == ("Paris", "Paris", "Q90", "https://de.wikipedia.org/wiki/Paris")
    assert kb.row("Q90") == 0
    other = build(tmp_path, MUL, site="commonswiki").kb
    assert other.record(0)[:4] == ("Ada", "Ada", "Q1", "https://www.wikidata.org/wiki/Q1")


ODD = [
    {"entity": "Q1", "redirect": 3},
    {"redirect": "Q1"},
    {"id": "Q1", "labels": 3},
    {"id": "Q1", "labels": {"en": text(3)}},
    {"id": 5, "labels": {"en": text("Ada")}},
]


@pytest.mark.parametrize("engine", [None, Engine(workers=1)])
@pytest.mark.parametrize("bad", ODD)
def test_odd_items_are_refused_by_line(tmp_path, bad, engine):
    with pytest.raises(ValueError, match=r"w.json, line 2: expected an item of Wikidata, but"):
        build(tmp_path, PARIS, bad, engine=engine)


MANY = [{**PARIS, "id": f"Q{i}", "labels": {"en": text(f"Paris {i % 7}\u2028é")}} for i in range(200, 240)]


def build_by_tasks(folder, name, engine, on_damage="skip"):
    rows = [*MANY, MUL, GREEK, MERGED, {"id": "P31", "type": "property"}, {"id": "Q3"}]
    lines = ["[", *(json.dumps(row, ensure_ascii=False) + "," for row in rows), '{"id": "Q4', "]"]
    if not (folder / "w.json").exists():  # a dump that changed is read anew
        (folder / "w.json").write_text("\n".join(lines), encoding="utf8")
    return build_kb([folder / "w.json"], folder / name, settings=KBSettings(engine=engine, on_damage=on_damage))


def files_of(kb):
    return {path.name: path.read_bytes() for path in (kb.path / "0").iterdir()}


def test_by_tasks_and_again_after_a_kill(tmp_path, monkeypatch):
    expected = build_by_tasks(tmp_path, "one", None)
    assert any("2 lines that are not as expected" in line for line in expected.left_out)
    monkeypatch.setattr(module, "LINES_SIZE", 2000)
    parse, asked = module.parse_lines, []

    def stopping(folder, name, task):
        asked.append(name)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return parse(folder, name, task)

    monkeypatch.setattr(module, "parse_lines", stopping)
    with pytest.raises(KeyboardInterrupt):
        build_by_tasks(tmp_path, "other", Engine(workers=1))
    assert not (tmp_path / "other").exists()
    assert (tmp_path / ".other.items0.work" / "read-00001.json").is_file()
    built = build_by_tasks(tmp_path, "other", Engine(workers=1))
    assert len(asked) > 5
    assert len(set(asked)) == len(asked) - 1  # what was done is not done again
    assert (built.read, built.left_out) == (expected.read, expected.left_out)
    assert files_of(built.kb) == files_of(expected.kb)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_damage_by_tasks(tmp_path):
    for engine in (None, Engine(workers=1)):
        with pytest.raises(ValueError, match="line 46: expected an item of Wikidata"):
            build_by_tasks(tmp_path, "kb", engine, "error")


@pytest.mark.slow  # starts two processes
def test_by_processes(tmp_path, monkeypatch):
    expected = build_by_tasks(tmp_path, "one", None)
    monkeypatch.setattr(module, "LINES_SIZE", 2000)
    built = build_by_tasks(tmp_path, "other", Engine(workers=2))
    assert files_of(built.kb) == files_of(expected.kb)
