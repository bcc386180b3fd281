"""The starter knowledge base: what several sources say of one entity comes together, and names have sensible priors."""

import bz2
import io
import json
import tarfile

import pytest

from spacy_luke.kb.starter.build import COUNTRIES, WELL_KNOWN, build_starter_kb, collect_entities
from spacy_luke.kb.starter.catalogue import Catalogue, Known, weigh_names
from spacy_luke.kb.starter.places import add_countries, read_table_lines

CITIES = "London\t\t51.5\t-0.1\tGB\t9000000\nLondon\t\t42.9\t-81.2\tCA\t360000\nWien\tVienna\t48.2\t16.3\tAT\t1700000\n"
SLICE = "Q312\torganization\t150\tApple Inc.\tApple|AAPL\nQ213710\torganization\t20\tApple Records\tApple\n"
TYPES = {"Q84": ["Q515"], "Q2": ["Q5"]}
LABELS = {"Q515": {"label": "city"}, "Q5": {"label": "human"}, "Q36180": {"label": "writer"}}
TRIPLES = "Q84\tP17\tQ145\nQ2\tP106\tQ36180\nQ2\tP27\tQ145\n"
FEWREL = {
    "P26": [
        {
            "tokens": "Ada Bell married Bo Li .".split(),
            "h": ["ada bell", "Q2", [[0, 1]]],
            "t": ["bo li", "Q3", [[3, 4]]],
        }
    ],
    "P177": [{"tokens": "London Bridge in London".split(), "h": ["b", "Q4", [[0, 1]]], "t": ["london", "Q84", [[3]]]}],
    "P641": [{"tokens": "She plays tennis".split(), "h": ["she", "Q6", [[0]]], "t": ["tennis", "Q847", [[2]]]}],
}
DUMP = """<mediawiki><siteinfo><namespaces><namespace key="0"/></namespaces></siteinfo>
<page><title>London</title><ns>0</ns><revision><text>London is the capital of the [[United Kingdom|UK]].

It has [[music]] and [[music]] and the [[The Shard]] and the [[The Shard|Shard]].</text></revision></page>
</mediawiki>"""
FACTS = "/m/01\t/people/person/profession\t/m/02\n/m/01\t/people/person/nationality\t/m/03\n/m/03\t/location/x\t/m/01\n"


@pytest.fixture
def sources(tmp_path):
    folder = tmp_path / "sources"
    for name in ("codex", "fewrel"):
        (folder / name).mkdir(parents=True)
    (folder / "cities15000.tsv").write_text(CITIES)
    (folder / "wikidata-slice.tsv").write_text(SLICE)
    (folder / "codex/entity2types.json").write_text(json.dumps(TYPES))
    (folder / "codex/types.json").write_text(json.dumps(LABELS))
    (folder / "codex/train.txt").write_text(TRIPLES)
    (folder / "fewrel/a.json").write_text(json.dumps(FEWREL))
    (folder / "enwiki.xml.bz2").write_bytes(bz2.compress(DUMP.encode()))
    (folder / "entity2text.txt").write_text("/m/01\tCy Dow-GB\n/m/02\tActor-GB\n/m/03\tUnited Kingdom\n")
    with tarfile.open(folder / "FB15k-237.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("Release/train.txt")
        member.size = len(FACTS)
        archive.addfile(member, io.BytesIO(FACTS.encode()))
    return folder


def test_an_entity_of_several_sources_is_one(sources, tmp_path):
    starter = build_starter_kb(sources, tmp_path / "kb")
    kb = starter.built.kb
    london = kb.record(kb.row("Q84"))
    assert london.title == "London"  # of FewRel, the dump and GeoNames
    assert london.url == "https://en.wikipedia.org/wiki/London"
    assert london.description == "London is the capital of the UK."
    assert london.types == ("place", "city")
    assert kb.row("London") == kb.row("Q84")  # its page has that title
    other = kb.record(kb.row("geo:42.9,-81.2"))
    assert (other.title, other.description) == ("London", "city in Canada with 360,000 inhabitants")
    ada = kb.record(kb.row("Q2"))
    assert (ada.title, ada.description, ada.types) == ("Ada Bell", "writer from United Kingdom", ("person", "human"))
    assert kb.is_person(kb.row("Q2"))
    cy = kb.record(kb.row("/m/01"))
    assert (cy.title, cy.description) == ("Cy Dow", "actor from United Kingdom")
    assert kb.row("/m/03") == -1  # it is Q145
    assert kb.row("Q847") == -1  # tennis is no name
    assert kb.row("music") == -1
    assert kb.record(kb.row("The Shard")).url == "https://en.wikipedia.org/wiki/The_Shard"


def test_priors_of_cities_are_shares_of_their_inhabitants(tmp_path):
    (tmp_path / "cities15000.tsv").write_text(CITIES)
    kb = build_starter_kb(tmp_path, tmp_path / "kb").built.kb
    named = {kb.description(row): prior for row, prior in kb.candidate_rows("London")}
    assert named == {
        "city in United Kingdom with 9,000,000 inhabitants": pytest.approx(9000 / 9360, abs=1e-3),
        "city in Canada with 360,000 inhabitants": pytest.approx(360 / 9360, abs=1e-3),
    }
    assert kb.candidate_rows("Vienna") == kb.candidate_rows("Wien")


def test_a_well_known_organization_that_another_source_has_too_is_one(sources, tmp_path):
    """The slice and a dump have NATO, each in its words."""
    (sources / "wikidata-slice.tsv").write_text(SLICE + "Q7184\torganization\t240\tN. A. T. O.\tNATO|NATO Alliance\n")
    (sources / "enwiki.xml.bz2").write_bytes(bz2.compress(DUMP.replace("[[music]] and", "[[NATO]] and").encode()))
    kb = build_starter_kb(sources, tmp_path / "kb").built.kb
    names = ("NATO", "NATO Alliance", "North Atlantic Treaty Organization")
    assert {one.entity for name in names for one in kb.candidates(name)} == {"Q7184"}
    nato = kb.record(kb.row("Q7184"))
    assert (nato.title, nato.url) == ("NATO", "https://en.wikipedia.org/wiki/NATO")
    assert kb.candidates("FBI") == [("Q8333", 1.0)]
    assert kb.record(kb.row("Q8333")).description == "organization from United States"


def test_every_line_of_the_well_known_is_of_one_entity_of_a_known_kind_and_country():
    known = {"place", "region", "person", "organization", "work", "product", "other"}
    codes = add_countries(COUNTRIES, Catalogue())
    _, *lines = (fields for _, fields in read_table_lines(WELL_KNOWN, columns=6))
    assert len({fields[0] for fields in lines}) == len(lines) > 600
    for wikidata, kind, code, title, *_ in lines:
        assert wikidata[:1] == "Q", title
        assert kind in known, title
        assert not code or code in codes, title


def test_well_known_cities_and_persons_have_their_ids(sources, tmp_path):
    (sources / "cities15000.tsv").write_text(CITIES + "Köln\tKoeln\t50.9\t7.0\tDE\t1000000\n")
    kb = build_starter_kb(sources, tmp_path / "kb").built.kb
    assert kb.record(kb.row("Q365"))[1:5] == (
        "Cologne",
        "Q365",
        "https://en.wikipedia.org/wiki/Cologne",
        "city in Germany with 1,000,000 inhabitants",
    )
    assert {kb.name_of(row) for name in ("Köln", "Koln", "Cologne") for row, _ in kb.candidate_rows(name)} == {"Q365"}
    merkel = kb.record(kb.row("Q567"))
    assert (merkel.title, merkel.types, merkel.description) == ("Angela Merkel", ("person",), "person from Germany")
    assert kb.candidates("Merkel") == [("Q567", 1.0)]


def test_a_country_is_meant_rather_than_its_team_that_a_relation_is_full_of(sources, tmp_path):
    """FewRel has as many sentences of "participating team" as of other relations."""
    words = "France beat Mexico .".split()
    one = {"tokens": words, "h": ["france", "Q47774", [[0]]], "t": ["mexico", "Q164089", [[2]]]}
    (sources / "fewrel/teams.json").write_text(json.dumps({"P1923": [one] * 40}))
    kb = build_starter_kb(sources, tmp_path / "kb").built.kb
    (country, prior), (team, rest) = kb.candidates("France")
    assert (country, team) == ("Q142", "Q47774")
    assert prior > 0.8
    assert rest == pytest.approx(1 - prior)


@pytest.mark.parametrize(
    ("types", "found"),
    [
        (["big city"], "Q7"),  # no country is known, and the largest is so by far
        (["city of the United States"], "Q7"),
        (["city of Canada"], "geo:43,-83"),  # in which there is none
        (["big city", "county of Texas"], "geo:43,-83"),  # an area
        ([], "geo:43,-83"),
    ],
)
def test_a_place_with_the_name_of_a_city_is_that_city_as_far_as_its_types_tell(sources, tmp_path, types, found):
    lines = ["Flint\tFlint\t43\t-83\tUS\t98310", "Flint\tFlint\t53\t-3\tGB\t13000"]
    (sources / "cities15000.tsv").write_text(CITIES + "\n".join(lines) + "\n")
    (sources / "codex/types.json").write_text(json.dumps({f"Q9{i}": {"label": name} for i, name in enumerate(types)}))
    (sources / "codex/entity2types.json").write_text(json.dumps({"Q7": [f"Q9{i}" for i in range(len(types))]}))
    one = {"tokens": ["Flint", "lies", "here"], "h": ["flint", "Q7", [[0]]], "t": ["here", "Q8", [[2]]]}
    (sources / "fewrel/places.json").write_text(json.dumps({"P177": [one]}))
    kb = build_starter_kb(sources, tmp_path / "kb").built.kb
    assert {one.entity for one in kb.candidates("Flint")} == {found, "geo:53,-3", *(["Q7"] if found != "Q7" else [])}
    address = "https://www.wikidata.org/wiki/Q7" if found == "Q7" else "https://www.openstreetmap.org/?mlat=43&mlon=-83"
    assert kb.record(kb.row(found)).url == address


def test_of_cities_of_nearly_one_size_none_is_taken_for_the_place(sources, tmp_path):
    lines = ["Peoria\tPeoria\t33\t-112\tUS\t190985", "Peoria\tPeoria\t40\t-89\tUS\t115070"]
    (sources / "cities15000.tsv").write_text(CITIES + "\n".join(lines) + "\n")
    (sources / "codex/types.json").write_text(json.dumps({"Q9": {"label": "city of the United States"}}))
    (sources / "codex/entity2types.json").write_text(json.dumps({"Q7": ["Q9"]}))
    one = {"tokens": ["Peoria", "lies", "here"], "h": ["peoria", "Q7", [[0]]], "t": ["here", "Q8", [[2]]]}
    (sources / "fewrel/places.json").write_text(json.dumps({"P177": [one]}))
    kb = build_starter_kb(sources, tmp_path / "kb").built.kb
    assert len(kb.candidates("Peoria")) == 3


def test_regions_are_meant_rather_than_towns_of_their_name(sources, tmp_path):
    (sources / "cities15000.tsv").write_text(CITIES + "Florida\tFlorida\t21.5\t-78.2\tCU\t63007\n")
    kb = build_starter_kb(sources, tmp_path / "kb").built.kb
    (state, prior), (town, rest) = kb.candidates("Florida")
    assert (state, town) == ("Q812", "geo:21.5,-78.2")
    assert prior > 0.9
    assert prior + rest == pytest.approx(1)
    florida = kb.record(kb.row("Q812"))
    assert (florida.title, florida.types, florida.description) == (
        "Florida",
        ("place", "state"),
        "state in United States",
    )
    assert kb.candidates("Fla.") == [("Q812", 1.0)]
    assert kb.record(kb.row("Q15")).description == "continent"


def test_links_that_were_seen_count_beside_prominence():
    catalogue = Catalogue()
    known = catalogue.add(Known("Q1", "Mercury", prominence=30.0))
    other = catalogue.add(Known("Q2", "Mercury", prominence=10.0))
    assert weigh_names(catalogue) == {"Q1": {"Mercury": pytest.approx(4.5)}, "Q2": {"Mercury": pytest.approx(0.5)}}
    other.links["Mercury"] = 20
    known.links["Hermes"] = 2
    weights = weigh_names(catalogue)
    assert weights["Q2"]["Mercury"] == pytest.approx(20.5)
    assert weights["Q1"] == {"Mercury": pytest.approx(4.5), "Hermes": 2.0}


def test_sources_that_are_absent_are_told_and_the_best_known_are_kept(sources, tmp_path):
    (sources / "enwiki.xml.bz2").unlink()
    starter = build_starter_kb(sources, tmp_path / "kb", most=5)
    assert len(starter.built.kb) == 5
    assert "174 well-known cities that no source has" in starter.left_out
    assert "enwiki.xml.bz2, which is not there" in starter.left_out
    assert any(line.endswith("entities that are known less than others") for line in starter.left_out)
    rows = [json.loads(line) for line in (tmp_path / "kb.jsonl").read_text().splitlines()]
    assert len(rows) == 5
    assert all(row["types"][0] == "place" for row in rows)  # countries come first


def test_every_country_has_its_item_and_an_adjective_means_it_less():
    catalogue = Catalogue()
    by_code = add_countries(COUNTRIES, catalogue)
    assert len(by_code) == 201
    assert catalogue.read["countries"] == 210
    assert by_code["FR"].wikidata == "Q142"
    assert catalogue.find("Georgia (country)") is by_code["GE"]
    assert by_code["FR"].names == {"France": 1.0, "French Republic": 1.0, "French": 0.3}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cities15000.tsv", "London\t1\n", r"cities15000.tsv, line 1: expected 6 columns, but got 2"),
        ("cities15000.tsv", "A\t\t1\t2\tGB\tmany\n", "line 1: expected a number of inhabitants, but got 'many'"),
        (
            "wikidata-slice.tsv",
            "Q1\tperson\t9\tA\t\n",
            "line 1: expected an organization or a product, but got 'person'",
        ),
        ("codex/types.json", "{", "types.json is not JSON"),
        ("fewrel/a.json", "[]", "a.json: expected an object, but got list"),
        ("FB15k-237.tar.gz", "no", "FB15k-237.tar.gz is not a whole archive"),
    ],
)
def test_bad_sources_are_refused_by_name(sources, name, content, message):
    (sources / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        collect_entities(sources)


def test_there_must_be_a_folder(tmp_path):
    with pytest.raises(ValueError, match=r"Expected a folder with sources at .*nowhere"):
        build_starter_kb(tmp_path / "nowhere", tmp_path / "kb")
