"""`spacy luke evaluate`: every component of a pipeline against gold documents."""

import re

import pytest
import spacy
import srsly
from spacy.cli._util import app as spacy_app
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.pipelines.conversion import build_pipeline
from spacy_luke.pipelines.evaluation import evaluate
from spacy_luke.pipelines.gold import Given
from spacy_luke.readers.docbin import write_docbin
from tests.pipelines import annotate, as_gold, make_pipeline
from tests.tiny import SENTENCES, make_checkpoint


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", *map(str, arguments)])
    return result, " ".join(result.output.split())


@pytest.fixture(params=[None, "sc"])
def entities(request, tmp_path):
    """A luke_ner of noise, its own predictions as gold documents, and the folder of both."""
    nlp = build_pipeline(make_checkpoint(labels=["NIL", "PER", "LOC"]), config={"spans_key": request.param})
    docs = list(nlp.pipe(SENTENCES))
    assert all(doc.ents or doc.spans.get("sc") for doc in docs)
    DocBin(docs=docs).to_disk(tmp_path / "gold.spacy")
    nlp.to_disk(tmp_path / "pipeline")
    return docs, request.param, tmp_path


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """A pipeline with all components, its own predictions as gold documents, and the folder of both."""
    folder = tmp_path_factory.mktemp("everything")
    nlp = make_pipeline()
    docs = annotate(nlp)
    assert any(doc._.luke_relations for doc in docs)
    write_docbin([as_gold(doc) for doc in docs], folder / "gold.spacy")
    nlp.to_disk(folder / "pipeline")
    return docs, folder


@pytest.mark.parametrize("options", [[], ["--gold-sentences"]])
def test_own_entities_are_right(entities, options):
    docs, key, folder = entities
    metrics = folder / "new" / "metrics.json"
    result, text = run("evaluate", folder / "pipeline", folder / "gold.spacy", "--output", metrics, *options)
    assert result.exit_code == 0, result.output
    gold = sum(len(doc.ents if key is None else doc.spans[key]) for doc in docs)
    assert re.search(rf"all 100\.00 100\.00 100\.00 {gold}\b", text), text
    scores = srsly.read_json(metrics)
    assert scores["ents_f" if key is None else "spans_sc_f"] == 1.0
    reliability = scores["luke_ner_reliability"]
    assert reliability["n"] == sum(x["n"] for x in reliability["bins"]) == gold
    assert [x["right"] for x in reliability["bins"]] == [1.0] * len(reliability["bins"])
    assert f"calibration error {reliability['ece']:.3f} {gold}" in text
    assert scores["words"] == sum(map(len, docs))
    assert scores["words_per_second"] > 0


def test_all_components_are_scored(everything):
    docs, folder = everything
    metrics = folder / "metrics.json"
    result, text = run("evaluate", folder / "pipeline", folder / "gold.spacy", "--output", metrics)
    assert result.exit_code == 0, result.output
    scores = srsly.read_json(metrics)
    assert {
        key: scores[key] for key in ("ents_f", "types_micro_f", "types_strict", "relations_f", "relations_strict_f")
    } == (dict.fromkeys(("ents_f", "types_micro_f", "types_strict", "relations_f", "relations_strict_f"), 1.0))
    assert scores["qa_em"] == scores["qa_f"] == scores["cloze_em"] == scores["cloze_f"] == 1.0
    places = [text.index(name) for name in ("luke_ner", "luke_typer", "luke_relation", "luke_qa", "luke_cloze")]
    assert places == sorted(places)
    assert f"all 100.00 100.00 {2 * len(docs)}" in text
    relations = sum(len(doc._.luke_relations) for doc in docs)
    assert f"with the entities' labels 100.00 100.00 100.00 {relations}" in text
    assert f"mean of the labels 100.00 100.00 100.00 {relations}" in text


def test_one_component(everything):
    docs, folder = everything
    result, text = run("evaluate", folder / "pipeline", folder / "gold.spacy", "--component", "luke_typer", "--rows", 0)
    assert result.exit_code == 0, result.output
    assert "luke_typer" in text
    assert "luke_ner" not in text
    assert re.search(r"\(\d other labels?\)", text)


def test_gold_entities_take_the_place_of_luke_ner(everything, tmp_path):
    """With other entities than those that luke_ner would find, relations are between the given ones."""
    docs, folder = everything
    gold = spacy.load(folder / "pipeline").make_doc(SENTENCES[0])
    gold.set_ents([Span(gold, 0, 2, "X"), Span(gold, 4, 5, "Y")])
    gold.spans["luke_types"] = [Span(gold, 4, 5, "city")]
    gold._.luke_relations = [(gold.ents[0], gold.ents[1], "near")]
    write_docbin([gold], tmp_path / "gold.spacy")
    result, text = run(
        "evaluate", folder / "pipeline", tmp_path / "gold.spacy", "--gold-entities", "-o", tmp_path / "m.json"
    )
    assert result.exit_code == 0, result.output
    scores = srsly.read_json(tmp_path / "m.json")
    assert "ents_f" not in scores
    assert scores["relations_r"] == scores["relations_strict_r"] == 1.0  # none = null: every pair has a relation
    assert "'luke_qa' is not scored" in text
    assert "'luke_cloze' is not scored" in text
    nlp = spacy.load(folder / "pipeline")
    names = list(nlp.pipe_names)
    found = evaluate(nlp, tmp_path / "gold.spacy", given=Given(entities=True), component="luke_relation")
    assert [str(x) for x in found.docs[0].ents] == [str(x) for x in gold.ents]
    assert nlp.pipe_names == names


def test_gold_mentions_and_pairs(tmp_path):
    key = {"getter": {"@misc": "spacy-luke.span_group.v1", "key": "luke_mentions"}}
    nlp = make_pipeline("luke_typer", "luke_relation", luke_typer=key)
    nlp.to_disk(tmp_path / "pipeline")
    gold = nlp.make_doc(SENTENCES[1])
    gold.spans["luke_types"] = [Span(gold, 0, 2, "person"), Span(gold, 0, 2, "city")]
    pairs = [(gold[0:2], gold[8:9]), (gold[8:9], gold[0:2])]
    gold._.luke_pairs = pairs
    gold._.luke_relations = [(*pair, "near") for pair in pairs]
    write_docbin([gold], tmp_path / "gold.spacy")
    arguments = ("evaluate", tmp_path / "pipeline", tmp_path / "gold.spacy", "-o", tmp_path / "m.json")
    result, text = run(*arguments, "--gold-mentions", "--gold-pairs")
    assert result.exit_code == 0, result.output
    assert srsly.read_json(tmp_path / "m.json")["relations_accuracy"] == 1.0
    assert "--gold-mentions" not in text
    assert "--gold-pairs" not in text
    result, text = run(*arguments)  # nothing finds what is asked about
    assert result.exit_code == 0, result.output
    assert "'luke_typer' has no mentions to type: no component before it finds any. --gold-mentions gives it" in text
    assert "'luke_relation' has no pairs to ask about" in text
    gold.spans["luke_types"] = [Span(gold, 0, 2, "robot"), Span(gold, 0, 2, "city")]
    write_docbin([gold], tmp_path / "gold.spacy")
    _, text = run(*arguments, "--gold-mentions", "--gold-pairs")
    assert "'luke_typer' does not know robot (1), which the gold has: they count as missed." in text
    assert srsly.read_json(tmp_path / "m.json")["types_micro_r"] > 0
    assert "accuracy of given pairs 100.00 2" in text
    result, _ = run(*arguments)
    assert result.exit_code == 0, result.output
    assert srsly.read_json(tmp_path / "m.json")["types_micro_r"] == 0
    assert srsly.read_json(tmp_path / "m.json")["relations_r"] == 0


def test_no_relation_is_none_in_every_part(tmp_path):
    """Gold pairs that are told to have no relation are no item, no row and not counted, as the scores have it."""
    nlp = make_pipeline("luke_relation", luke_relation={"none": "no_relation"})
    gold = nlp.make_doc(SENTENCES[1])
    pairs = [(gold[0:2], gold[8:9]), (gold[8:9], gold[0:2])]
    gold._.luke_pairs = pairs
    gold._.luke_relations = [(*pair, label) for pair, label in zip(pairs, ("near", "no_relation"), strict=True)]
    write_docbin([gold], tmp_path / "gold.spacy")
    (scored,) = evaluate(nlp, tmp_path / "gold.spacy", given=Given(pairs=True)).components
    assert {item.label for item in scored.items} == set(scored.scores["relations_per_type"]) == {"near"}
    assert scored.table.counts == {"near": 1}
    assert scored.table.totals[0][-1] == "1"


def test_nothing_to_score(entities):
    _, _, folder = entities
    DocBin(docs=[Doc(spacy.blank("en").vocab, words=["Ada"])]).to_disk(folder / "empty.spacy")
    result, text = run("evaluate", folder / "pipeline", folder / "empty.spacy")
    assert result.exit_code == 1
    assert "has no mentions" in text
    assert "nothing that the components" in text


def test_components_of_one_kind(tmp_path):
    nlp = make_pipeline("luke_ner")
    settings = {key: value for key, value in nlp.get_pipe_config("luke_ner").items() if key != "factory"}
    second = nlp.add_pipe("luke_ner", name="second", config=settings)
    second.cfg["labels"] = ["PER"]
    second.create_head()
    docs = annotate(nlp)
    write_docbin([as_gold(doc) for doc in docs], tmp_path / "gold.spacy")
    nlp.to_disk(tmp_path / "pipeline")
    result, text = run("evaluate", tmp_path / "pipeline", tmp_path / "gold.spacy")
    assert result.exit_code == 1
    assert "choose one with --component" in text
    result, text = run("evaluate", tmp_path / "pipeline", tmp_path / "gold.spacy", "--component", "second")
    assert result.exit_code == 0, result.output


def test_unknown_component(entities):
    _, _, folder = entities
    result, text = run("evaluate", folder / "pipeline", folder / "gold.spacy", "--component", "ner")
    assert result.exit_code == 1
    assert "no LUKE component 'ner'; it has ['luke_ner']" in text
