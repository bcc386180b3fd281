"""Knowledge bases from real data: Wikidata items, a whole small Wikipedia, PPRforNED."""

import bz2
import json
import tarfile

import pytest

from spacy_luke.kb.build import KBSettings, build_kb
from spacy_luke.kb.items import Wikidata

ITEMS = "data/ed_opentapioca/opentapioca/tests/data"


def read_items(path):
    lines = (line.strip().rstrip(",") for line in bz2.open(path, "rt", encoding="utf8"))
    return [json.loads(line) for line in lines if line not in ("[", "]", "")]


@pytest.mark.slow
def test_wikidata(shared, tmp_path):
    folder = shared(ITEMS)
    sources = [folder / "sample_wikidata_items.json.bz2", folder / "short_stream.json.bz2"]
    built = build_kb(sources, tmp_path / "kb")
    kb, items = built.kb, [item for source in sources for item in read_items(source)]
    assert built.read == {"items": 735}
    named = {item["id"]: item for item in items if "en" in item["labels"]}
    assert set(kb.entities()) == set(named)
    for item in named.values():
        assert item["id"] in dict(kb.candidates(item["labels"]["en"]["value"]))
        for alias in item["aliases"].get("en", []):
            assert item["id"] in dict(kb.candidates(alias["value"]))
    belgium = kb.row("Q31")
    assert kb.description(belgium) == "federal constitutional monarchy in Western Europe"
    assert kb.count(belgium) > 200
    persons = {kb.name_of(row) for row in range(len(kb)) if kb.is_person(row)}
    assert len(persons) > 10
    titles = build_kb(sources[:1], tmp_path / "titles", settings=KBSettings(wikidata=Wikidata("de", "enwiki"))).kb
    assert titles.candidates("Belgien")[0].entity == "Belgium"


@pytest.mark.slow
def test_a_whole_wikipedia(shared, tmp_path):
    dump = shared("data/wiki_ltg_smallwiki/smallwiki-latest-pages-articles.xml")
    built = build_kb([dump], tmp_path / "kb")
    kb = built.kb
    assert built.read == {"articles": len(kb), "links": 5621, "redirects": 147}
    assert kb.candidates("Latveja")[0] == ("Latveja", pytest.approx(1.0, abs=0.05))
    assert kb.candidates("LATVEJA") == kb.candidates("Latveja")
    assert kb.description(kb.row("Slovakeja")).endswith("vaļsteiba Europā.")
    assert sum(kb.count(row) > 0 for row in range(len(kb))) > 400
    assert sum(bool(kb.description(row)) for row in range(len(kb))) > 850
    for name in kb.names():
        priors = [prior for _, prior in kb.candidates(name)]
        assert priors == sorted(priors, reverse=True)
        assert sum(priors) == pytest.approx(1, abs=1e-5)
    small = build_kb([dump], tmp_path / "small", most=500).kb  # through many temporary files
    assert [kb.candidate_rows(name) for name in kb.names()] == [small.candidate_rows(name) for name in kb.names()]


def test_english_articles(shared, tmp_path):
    dump = shared("data/wiki_wikipedia2vec_sample/enwiki-pages-articles-sample.xml.bz2")
    kb = build_kb([dump], tmp_path / "kb", settings=KBSettings(unknown="add")).kb
    assert len(kb) > 100
    described = [kb.description(row) for row in range(len(kb)) if kb.description(row)]
    assert len(described) == 2
    assert all(text.endswith(".") for text in described)


def test_ppr(shared, tmp_path):
    archive = shared("data/ed_pprforned/ppr_for_ned.tar.xz")
    with tarfile.open(archive) as tar:
        members = [x for x in tar.getmembers() if x.name.rpartition("/")[2] in ("1", "2", "3", "9", "1001")]
        tar.extractall(tmp_path / "ppr", members=members, filter="data")
    built = build_kb([tmp_path / "ppr"], tmp_path / "kb")
    kb = built.kb
    assert built.left_out == []
    assert "Syria" in dict(kb.candidates("Syria"))
    assert kb.candidates("SYRIA") == kb.candidates("Syria")
    assert kb.count(kb.row("Syria")) == 15845
    for name in kb.names():  # no order that tells the answer: the more links, the likelier
        found = kb.candidates(name)
        assert found == sorted(found, key=lambda candidate: (-candidate.prior, candidate.entity))
        counts = [max(1, kb.count(kb.row(entity))) for entity, _ in found]
        assert counts == sorted(counts, reverse=True)
        assert sum(prior for _, prior in found) == pytest.approx(1)
