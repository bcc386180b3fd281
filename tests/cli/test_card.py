"""The card of a pipeline: it tells of pipeline, author and measurements, and goes into the package."""

import json

import pytest
import spacy
import srsly
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.pipelines.card import leave_out, read_about, write_card
from spacy_luke.pipelines.conversion import build_pipeline
from spacy_luke.pipelines.figures import figure_tables, markdown_table, wilson
from tests.tiny import make_checkpoint

ABOUT = {
    "name": "tiny",
    "version": "0.2.0",
    "description": "Finds names.",
    "license": "CC BY-SA 4.0",
    "why_license": "By the texts of Re-DocRED.",
    "text": "Ada lived in London.",
    "spacy_version": ">=3.8.1,<3.9",
    "sources": [
        {"name": "WikiGold", "license": "CC BY 4.0", "url": "https://a.org/wikigold", "used": "entities | all"},
        {"name": "Re-DocRED", "license": "MIT"},
    ],
    "limits": ["English alone.", "No tweets."],
    "cite": ["The authors."],
}
SCORES = {
    "ents_p": 0.5,
    "ents_r": 0.25,
    "ents_f": 0.333,
    "ents_per_type": {"PER": {"p": 1.0, "r": 0.5, "f": 0.667}},
    "types_micro_f": None,
    "words": 1234,
    "words_per_second": 2500.0,
    "luke_ner_reliability": {
        "n": 40,
        "ece": 0.0625,
        "bins": [{"n": 10, "score": 0.5, "right": 0.4}, {"n": 30, "score": 0.9, "right": 1.0}],
    },
    "luke_linker_reliability": {"n": 0, "ece": None, "bins": []},
}
ONE = {"f": 80.0, "p": 82.0, "r": 78.0, "interval": [79.0, 81.0], "PER": 90.0, "LOC": 70.0}
SETS = {
    "sets": [
        {"set": "wikigold", "inside": True, "size": 1, "mentions": 1000, "ready": ONE, "spacy": {"f": 59.0}},
        {"set": "news", "inside": False, "size": 40, "mentions": 10, "ready": ONE, "spacy": {"f": 50.0}},
    ],
    "reliability": {"other domains": {"n": 10, "ece": 0.05, "bins": [{"n": 10, "score": 0.75, "right": 0.8}]}},
    "chip": "a chip",
}
LINKS = {
    "links": {"msnbc": {"precision": 88.0, "recall": 40.5, "f": 55.5, "shown": 1111}},
    "reliability": {"n": 20, "ece": 0.025, "bins": [{"n": 20, "score": 0.9, "right": 0.9}]},
}
SPEED = {
    "words": 8000,
    "speeds": [
        {"system": "all components", "words_per_second": 4000, "ratio": 0.4},
        {"system": "spaCy's", "words_per_second": 10000, "ratio": 1.0},
    ],
    "load_seconds": 2.75,
    "amx": False,
    "chip": "a chip",
}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    folder = tmp_path_factory.mktemp("card") / "pipeline"
    build_pipeline(make_checkpoint(labels=["NIL", "PER", "LOC"])).to_disk(folder)
    return folder


@pytest.fixture
def files(tmp_path):
    def write(**contents):
        paths = [tmp_path / f"{name}.json" for name in contents]
        for path, content in zip(paths, contents.values(), strict=True):
            path.write_text(json.dumps(content), encoding="utf8")
        return paths

    return write


def test_card(pipeline, files):
    about, *metrics = files(about=ABOUT, ready=SETS, relations=SCORES, links=LINKS, speed=SPEED)
    card = write_card(pipeline, read_about(about), metrics)
    assert (pipeline / "README.md").read_text(encoding="utf8") == card
    assert card.startswith("# en_tiny 0.2.0\n\nFinds names.\n")
    for expected in (
        'nlp = spacy.load("en_tiny")',
        "| `luke_ner` | PER, LOC |",
        "| wikigold | 1 | 1,000 | 80.0 (79.0-81.0) | 82.0 | 78.0 | 90.0 | 70.0 | 59.0 |",
        "| news (another domain) | 40 |",
        "On `relations`, 1,234 words:",
        "| PER | 100.0 | 50.0 | 66.7 |",
        "| `luke_ner` | 40 | 85.0 (70.9-92.9) % | 80.0 % | 0.062 |",
        "| `luke_ner`, other domains | 10 | 80.0 (49.0-94.3) % | 75.0 % | 0.050 |",
        "| msnbc | 1,111 | 88.0 | 40.5 | 55.5 |",
        "| `luke_linker` | 20 | 90.0 (69.9-97.2) % | 90.0 % | 0.025 |",
        "8,000 words, one thread of a chip, a chip without AMX; it loads in 2.8 seconds",
        "| all components | 4,000 | 0.40 |",
        "The pipeline: **CC BY-SA 4.0**. By the texts of Re-DocRED.",
        "| [WikiGold](https://a.org/wikigold) | CC BY 4.0 | entities \\| all |",
        "English alone.\n\nNo tweets.",
        "## How to cite",
    ):
        assert expected in card, expected
    assert "2,500 words a second" not in card  # but those of the measurement of speed
    assert "luke_relations" not in card  # nor how they are read: it has none
    assert "How it was made" not in card
    assert "CC BY 4.0 (https://a.org/wikigold)" in (pipeline / "LICENSES_SOURCES").read_text(encoding="utf8")
    meta = srsly.read_json(pipeline / "meta.json")
    assert (meta["name"], meta["version"], meta["license"]) == ("tiny", "0.2.0", "CC BY-SA 4.0")
    assert meta["spacy_version"] == ">=3.8.1,<3.9"
    assert [x["name"] for x in meta["sources"]] == ["WikiGold", "Re-DocRED"]
    assert meta["performance"]["relations"] == {
        "ents_p": 0.5,
        "ents_r": 0.25,
        "ents_f": 0.333,
        "words": 1234,
        "words_per_second": 2500.0,
        "ents_per_type": {"PER": {"p": 1.0, "r": 0.5, "f": 0.667}},
        "luke_ner_reliability": {"n": 40, "ece": 0.0625},
        "luke_linker_reliability": {"n": 0},
    }
    assert meta["performance"]["links"]["links"] == LINKS["links"]
    assert spacy.load(pipeline).meta["license"] == "CC BY-SA 4.0"  # it is a pipeline still


def test_without_figures_those_of_training_stay(pipeline, files, tmp_path):
    (about,) = files(about=ABOUT)
    nlp = spacy.load(pipeline)
    nlp.meta["performance"] = {"ents_f": 0.5}
    nlp.to_disk(tmp_path / "trained")
    write_card(tmp_path / "trained", read_about(about), [])
    assert srsly.read_json(tmp_path / "trained/meta.json")["performance"] == {"ents_f": 0.5}


def test_it_tells_of_the_components_that_are_there(pipeline, files, tmp_path):
    components = {"luke_ner": "They are calibrated.", "luke_linker": "They are linked."}
    about, metrics = files(about=ABOUT | {"components": components}, figures=SCORES)
    nlp = spacy.load(pipeline)
    leave_out(nlp, "luke_linker", "it was wrong too often.")
    leave_out(nlp, "luke_relation", "nobody wanted it.")
    nlp.to_disk(tmp_path / "without")
    before = (tmp_path / "without/meta.json").read_bytes()
    card = write_card(tmp_path / "without", read_about(about), [metrics], output=tmp_path / "copy")
    assert card.startswith("# en_tiny 0.2.0\n\nFinds names. They are calibrated.\n")
    assert (
        "## Limits\n\nWithout `luke_linker`: it was wrong too often.\n\nWithout `luke_relation`: nobody wanted it.\n\n"
        "English alone." in card
    )
    assert (tmp_path / "without/meta.json").read_bytes() == before
    assert not (tmp_path / "without/README.md").exists()
    assert (tmp_path / "copy/README.md").read_text(encoding="utf8") == card
    assert spacy.load(tmp_path / "copy").meta["description"] == "Finds names. They are calibrated."
    leave_out(nlp, "luke_ner", "why not.")
    assert "luke_ner" not in nlp.pipe_names


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # spaCy leaves files open
def test_the_package_has_it(pipeline, files, tmp_path):
    about, metrics = files(about=ABOUT, figures=SCORES)
    done = CliRunner().invoke(
        spacy_app, ["luke", "card", str(pipeline), "--about", str(about), "--metrics", str(metrics)]
    )
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(spacy_app, ["package", str(pipeline), str(tmp_path), "--build", "none"])
    assert done.exit_code == 0, done.output
    folder = tmp_path / "en_tiny-0.2.0"
    card = (pipeline / "README.md").read_text(encoding="utf8")
    assert (folder / "README.md").read_text(encoding="utf8") == card
    assert (folder / "LICENSES_SOURCES").is_file()
    assert srsly.read_json(folder / "meta.json")["license"] == "CC BY-SA 4.0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sources": [{"name": "x"}]}, "expected 'name', 'version'"),
        ({"sources": None}, "expected 'name', 'version'"),
        ({"colour": "red"}, "colour"),
        ({"name": "a b/c"}, "the name must be letters, digits and underscores, .* it is 'a b/c'"),
        ({"version": "abc"}, "the version must be one of a Python package, as 1.0.2, but it is 'abc'"),
    ],
)
def test_a_description_that_is_none(files, change, message):
    (path,) = files(about=ABOUT | change)
    with pytest.raises(ValueError, match=message):
        read_about(path)


def test_figures_that_are_none(pipeline, files, tmp_path):
    about, other = files(about=ABOUT, other={"colour": 1})
    with pytest.raises(ValueError, match=r"figures in 'other' have none .* \['colour'\]"):
        write_card(pipeline, read_about(about), [other])
    with pytest.raises(ValueError, match="no folder with a pipeline"):
        write_card(tmp_path, read_about(about), [])


def test_tables():
    assert markdown_table(("a", "b"), [("1", ""), ("2\n3", "")]) == "| a |\n| --- |\n| 1 |\n| 2 3 |"
    assert list(figure_tables({"x": SCORES, "y": SCORES})) == [
        "Scores: entities",
        "How far scores can be believed",
        "Speed",
    ]
    assert figure_tables({"x": SCORES, "y": SCORES})["Speed"][0] == "On `x`, 1,234 words:"
    group = {"spans_entities_f": 0.5, "spans_entities_per_type": {"PER": {"p": 0.1, "r": 0.2, "f": 0.3}}, "words": 1}
    assert "| PER | 10.0 | 20.0 | 30.0 |" in figure_tables({"x": group})["Scores: entities, nested ones too"][1]
    assert figure_tables({"links": {"links": {}}}) == {}  # of a pipeline whose linker was left out


def test_intervals():
    assert wilson(0.0, 0) == (0.0, 1.0)
    assert [round(x, 4) for x in wilson(0.5, 10)] == [0.2366, 0.7634]  # as R's binom.confint
    low, high = wilson(1.0, 20)
    assert low < 0.9
    assert round(high, 6) == 1.0
