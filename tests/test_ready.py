"""The ready pipeline en_luke_sm, as it lies in assets: size, card, and what it finds in the article."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
import spacy
from packaging.requirements import Requirement

from spacy_luke.annotations import NIL
from spacy_luke.facts.build import build_facts
from spacy_luke.kb.starter.catalogue import Catalogue
from spacy_luke.kb.starter.places import COUNTRIES, add_countries
from spacy_luke.pages.answer_key import read_answer_key
from spacy_luke.pages.schema import as_form
from spacy_luke.pipelines.annotation import annotate_file
from tests.ready_pipeline import ASSETS, WHEELS, unpack_ready

ROOT = ASSETS.parent
MEGABYTES = 45

pytestmark = pytest.mark.skipif(not WHEELS, reason="assets has no wheel of en_luke_sm")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The pipeline of the wheel, unpacked."""
    there = unpack_ready(tmp_path_factory.mktemp("ready"))
    (config,) = there.glob("en_luke_sm/en_luke_sm-*/config.cfg")
    return config.parent


@pytest.fixture(scope="module")
def nlp(folder):
    return spacy.load(folder)


def test_one_wheel_of_its_size():
    assert len(WHEELS) == 1
    assert WHEELS[0].stat().st_size <= MEGABYTES * 1_000_000


def test_the_card_comes_along(folder):
    meta = json.loads((folder / "meta.json").read_text(encoding="utf8"))
    card = (folder / "README.md").read_text(encoding="utf8")
    about = json.loads((ROOT / "configs/ready.card.json").read_text(encoding="utf8"))
    assert card.startswith(f"# en_luke_sm {meta['version']}\n")
    assert meta["license"] == about["license"]
    assert all(x["name"] in card for x in about["sources"])
    for title in ("What it finds", "Scores: entities", "Data and licences", "Limits", "How to cite"):
        assert f"## {title}\n" in card
    with zipfile.ZipFile(WHEELS[0]) as file:
        (name,) = (x for x in file.namelist() if x.endswith("METADATA"))
        metadata = file.read(name).decode("utf8")
    (needed,) = (
        Requirement(x.split(": ")[1]) for x in metadata.splitlines() if x.startswith("Requires-Dist: spacy-luke")
    )
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]["version"]
    assert own in needed.specifier, f"pip would refuse the wheel, which needs {needed}, beside spacy-luke {own}"
    assert f"License: {meta['license']}" in metadata


@pytest.fixture(scope="module")
def shown(nlp):
    """What `make run` shows of the article."""
    return annotate_file(nlp, ASSETS / "article.txt")


@pytest.fixture(scope="module")
def judged(shown):
    """The same, beside what is true of it."""
    text = (ASSETS / "article.txt").read_text(encoding="utf8")
    return read_answer_key(ASSETS / "article.key.json", text).judge(shown)


def needs(nlp, name):
    """Skips where the pipeline was made without a component, and says why it was."""
    if name not in nlp.pipe_names:
        pytest.skip(f"{WHEELS[0].name} has no {name}: {nlp.meta.get('left_out', {}).get(name, 'it is older')}")


def test_entities_of_the_article(judged):
    known = [x for x in judged.mentions if x is not None]
    assert len(known) >= 60
    assert sum(known) >= 0.9 * len(known), judged.verdict()


def test_types_of_the_article(nlp, judged):
    needs(nlp, "luke_typer")
    shown = [right for types in judged.types for right in types]
    assert len(shown) >= 20
    assert sum(shown) >= 0.75 * len(shown), judged.verdict()


def test_relations_of_the_article(nlp, judged):
    needs(nlp, "luke_relation")
    assert len(judged.relations) >= 3
    assert sum(judged.relations) >= 0.75 * len(judged.relations), judged.verdict()


def test_links_of_the_article(nlp, judged):
    needs(nlp, "luke_linker")
    links = [x for x in judged.links if x is not None]
    assert len(links) >= 20
    assert sum(links) >= 0.85 * len(links), judged.verdict()


def test_graph_of_the_article(shown, tmp_path):
    """That of docs/howto/graph.md: chips round otherwise, by which a fact or two can cross the threshold."""
    line = as_form(shown, id="article.txt").model_dump_json()
    (tmp_path / "found.jsonl").write_text(f"{line}\n", encoding="utf8")
    graph = build_facts([tmp_path / "found.jsonl"], tmp_path / "graph")
    page = (ROOT / "docs/howto/graph.md").read_text(encoding="utf8")
    (told,) = re.findall(r"makes (\d+) nodes, of which (\d+) are in its knowledge base, and (\d+) edges", page)
    nodes, edges = list(graph.nodes()), list(graph.edges())
    counts = [len(nodes), sum(not x.id.startswith(("nil:", "value:")) for x in nodes), len(edges)]
    assert counts == pytest.approx([int(x) for x in told], abs=2)
    said = r"\| `(\S+)` [^|]+ \| ([^|(]+) \(P\d+\) \| `(\S+)` [^|]+ \| ([\d.]+) "
    places = r"\| article.txt, (\d+)-(\d+) and (\d+)-(\d+) \|"
    rows = {row[:3]: tuple(map(float, row[3:])) for row in re.findall(said + places, page)}
    assert len(rows) == 5
    found = {(x.head, x.label, x.tail): (x.score, *_ends(x.evidence[0])) for x in edges}
    assert {key: found.get(key) for key in rows} == {key: pytest.approx(row, abs=0.03) for key, row in rows.items()}


def _ends(evidence):
    return [end for side in (evidence.head, evidence.tail) for end in (side.start, side.end)]


def test_countries_are_linked(nlp):
    """As the first thing that anybody tries: next to all, and none to a team or a town of its name."""
    needs(nlp, "luke_linker")
    catalogue = Catalogue()
    add_countries(COUNTRIES, catalogue)
    names = {known.title: known.id for known in catalogue}
    found = {}
    for name, doc in zip(names, nlp.pipe(f"She moved to {name} in 1990." for name in names), strict=True):
        found[name] = next((entity.kb_id_ for entity in doc.ents if entity.text == name), "no entity")
    assert {(name, x) for name, x in found.items() if x not in (names[name], NIL, "no entity")} == set()
    assert sum(found[name] == names[name] for name in names) >= 0.95 * len(names)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("He flew from Boston to Milan.", ["Q100", "Q490"]),
        ("Boston beat Toronto 3-1 in the final.", [NIL, NIL]),  # their teams
        ("Barack Obama met Vladimir Putin in Geneva.", ["Q76", "Q7747", "Q71"]),
        ("Microsoft bought GitHub.", ["Q2283", "Q364"]),
        ("The U.S. economy grew.", ["Q30"]),
        ("Real Madrid beat Manchester United.", ["Q8682", "Q18656"]),
        ("She lives in Honolulu.", ["Q18094"]),
        ("John Lennon founded The Beatles in Liverpool.", ["Q1203", "Q1299", "Q24826"]),
        ("Harvard sued YouTube and The New York Times.", ["Q13371", "Q866", "Q9684"]),
        ("Apple is looking at buying U.K. startup for $1 billion", ["Q312", "Q145"]),
    ],
)
def test_what_all_know_is_linked(nlp, text, ids):
    needs(nlp, "luke_linker")
    assert [entity.kb_id_ for entity in nlp(text).ents] == ids


def test_all_has_a_probability(nlp):
    doc = nlp((ASSETS / "article.txt").read_text(encoding="utf8"))
    assert len(doc.ents) > 50
    assert doc._.luke_relations
    assert all(0 < entity._.luke_score <= 1 for entity in doc.ents)
    assert all(0 < relation.score <= 1 for relation in doc._.luke_relations)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "🙂", "No names here.", "LONDON", "a\tb\n| c |", "x " * 2000])
def test_any_text(nlp, text):
    assert nlp(text).text == text


@pytest.mark.slow
def test_loading_takes_nothing_that_is_slow(folder):
    """Neither torch's compiler nor what it brings: their imports take longer than all else."""
    code = (
        f"import sys, spacy; spacy.load({str(folder)!r}); print('sympy' in sys.modules, 'torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "False"]
