"""Items of Wikidata: labels of all languages, several languages, pages, types, items that were merged."""

import json

import pytest

from spacy_luke.annotations import EntityRecord
from spacy_luke.kb.build import KBSettings, build_kb
from spacy_luke.kb.wikidata import Wikidata, read_item


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


def build(folder, *items, **wikidata):
    (folder / "w.json").write_text("".join(json.dumps(item) + "\n" for item in items))
    return build_kb([folder / "w.json"], folder / "kb", settings=KBSettings(wikidata=Wikidata(**wikidata)))


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


@pytest.mark.parametrize("bad", [{"entity": "Q1", "redirect": 3}, {"redirect": "Q1"}, {"id": "Q1", "labels": 3}])
def test_odd_items_are_refused_by_line(tmp_path, bad):
    with pytest.raises(ValueError, match=r"w.json, line 2: expected an item of Wikidata, but"):
        build(tmp_path, PARIS, bad)
