"""`spacy luke info`: what is here, and what a pipeline is made of."""

import json
import re
import tomllib
from pathlib import Path

import spacy
import torch
from spacy.cli._util import app as spacy_app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke import __version__
from spacy_luke.bridge.machine import describe_machine
from spacy_luke.pipelines.info import EXTRAS, about_pipeline, parts_of
from tests.pipelines import make_pipeline


def run(*words):
    result = CliRunner().invoke(spacy_app, ["luke", "info", *map(str, words)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_versions_and_machine():
    found = json.loads(run("--json"))
    assert found["versions"]["spacy-luke"] == __version__
    assert found["versions"]["spacy"] == spacy.__version__
    assert {"chip", "GPU", "int8"} <= set(found["machine"])
    assert found.keys() == {"versions", "machine"}
    assert sum(what.startswith("auto: ") for what, _ in describe_machine()) == 1


def test_pipeline(tmp_path):
    nlp = make_pipeline("luke_ner", "luke_relation")
    nlp.meta["performance"] = {"ents_f": 0.5, "speed": 3.0, "ents_per_type": {"A": {"f": 1.0}}, "dev": {"qa_f": 0.25}}
    nlp.to_disk(tmp_path / "pipeline")
    (tmp_path / "pipeline" / "README.md").write_text("# A card")
    found = json.loads(run(tmp_path / "pipeline", "--json"))
    assert found["pipeline"]["scores"] == "ents_f 0.500, dev.qa_f 0.250"
    assert found["pipeline"]["card"].endswith("README.md")
    names = [part["name"] for part in found["components"]]
    assert names == ["sentencizer", "luke_encoder", "luke_ner", "luke_relation"]
    ner = found["components"][2]
    assert (ner["finds"], ner["settings"]) == ("LOC, PER", "overlap=32, max_span_words=3")
    digests = [digest for part in found["components"] for digest in part["digest"].split()]
    assert len(set(digests)) == len(digests) == 3  # an encoder, which is shared, and two heads
    assert "luke_relation" in run(tmp_path / "pipeline")


def test_defaults_of_spacy_are_no_training():
    nlp = make_pipeline("luke_ner")
    assert nlp.config["training"]["max_steps"] > 0
    assert "trained by" not in dict(about_pipeline(nlp, None))
    nlp.meta["performance"] = {"ents_f": 0.5}
    assert "max_steps" in dict(about_pipeline(nlp, None))["trained by"]


def test_scores_that_were_not_computed():
    """`spacy train` writes 0 for them."""
    nlp = make_pipeline("luke_ner", "luke_relation")
    nlp.config["training"]["score_weights"] = {"sents_f": None, "tag_f": 0.0, "relations_f": 0.5, "ents_f": 0.0}
    nlp.meta["performance"] = {"sents_f": 0.0, "tag_f": 0.0, "relations_f": 0.0, "ents_f": 0.5}
    assert dict(about_pipeline(nlp, None))["scores"] == "relations_f 0.000, ents_f 0.500"


def test_digests_follow_the_weights():
    nlp = make_pipeline("luke_ner")
    before = {part.name: part.digest for part in parts_of(nlp)}
    parameter = next(nlp.get_pipe("luke_ner").model.shims[0].module.parameters())
    with torch.no_grad():
        parameter.add_(1)
    after = {part.name: part.digest for part in parts_of(nlp)}
    assert [name for name in before if before[name] != after[name]] == ["luke_ner"]


def test_every_extra_is_among_the_versions():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf8"))["project"]
    extras = project["optional-dependencies"]
    needed = {name: {re.split(r"[\[<>=]", x)[0] for x in packages} for name, packages in extras.items()}
    told = {name: {package for package, extra in EXTRAS.items() if extra == name} for name in EXTRAS.values()}
    assert told == needed
