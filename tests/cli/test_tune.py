"""`spacy luke tune`: thresholds are found on dev data, end to end, and saved in the config."""

import re

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from spacy.tokens import DocBin, Span
from spacy.training import Example
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.pipelines.gold import read_gold
from spacy_luke.pipelines.tuning import prepare_examples
from spacy_luke.readers.docbin import write_docbin
from tests.pipelines import annotate, as_gold, make_pipeline
from tests.tiny import SENTENCES

TUNABLE = [
    ("luke_ner", "none_bias", "ents_f"),
    ("luke_typer", "threshold", "types_micro_f"),
    ("luke_relation", "threshold", "relations_f"),
    ("luke_qa", "no_answer_threshold", "qa_f"),
]


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", "tune", *map(str, arguments)])
    return result, " ".join(result.output.split())


def copies(gold, n):
    return [gold.copy() for _ in range(n)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A pipeline whose components have thresholds that fit badly, and gold of which it finds half of the mentions."""
    folder = tmp_path_factory.mktemp("tune")
    nlp = make_pipeline(luke_typer={"threshold": 0.98}, luke_relation={"none": "no", "multi_label": True})
    golds = []
    for i, doc in enumerate(annotate(nlp)):
        gold = as_gold(doc)
        found = sorted(doc.ents, key=lambda x: x.start)[:2] if i % 2 else []
        places = [(x.start, x.end) for x in found] if len(found) == 2 else [(0, 2), (4, 5)]
        gold.set_ents([Span(gold, *places[0], "PER"), Span(gold, *places[1], "LOC")])
        gold.spans["luke_types"] = [
            Span(gold, *place, label) for place, label in zip([*places, places[1]], ("person", "place", "city"))
        ]
        gold._.luke_relations = [(gold.ents[0], gold.ents[1], "near")]
        golds.append(gold)
    write_docbin(golds, folder / "dev.spacy")
    write_docbin([one for gold in golds for one in copies(gold, 50)], folder / "large.spacy")
    nlp.to_disk(folder / "pipeline")
    return folder


@pytest.mark.parametrize(("name", "key", "metric"), TUNABLE)
def test_a_new_pipeline(saved, tmp_path, name, key, metric):
    """What is said of the best threshold is what `evaluate` says of the pipeline, end to end."""
    result, text = run(
        saved / "pipeline", saved / "dev.spacy", "--component", name, "--output", tmp_path / "tuned", "--force"
    )
    assert result.exit_code == 0, result.output
    assert f"'{name}': {key} = " in text
    nlp = spacy.load(tmp_path / "tuned")
    before = spacy.load(saved / "pipeline")
    value = nlp.get_pipe(name).cfg[key]
    assert nlp.config["components"][name][key] == value
    if name == "luke_typer":
        assert value < before.get_pipe(name).cfg[key] == 0.98
    if name != "luke_qa":
        fitted = {key: nlp.config["components"][name][key] for key in ("temperature", "shift")}
        assert fitted != {"temperature": 1.0, "shift": 0.0}
        assert all(f"{key} = {x:g}" in text for key, x in fitted.items())
        assert {key: nlp.get_pipe(name).cfg[key] for key in fitted} == fitted
    score = nlp.evaluate(read_gold(nlp, saved / "dev.spacy"))[metric]
    assert f"{metric} on {saved}/dev.spacy, end to end: {100 * score:.2f}" in text.replace("\n", " ")
    assert score >= before.evaluate(read_gold(before, saved / "dev.spacy"))[metric]
    others = [pipe for pipe in nlp.pipe_names if pipe.startswith("luke_") and pipe != name]
    assert all(nlp.get_pipe(pipe).cfg == before.get_pipe(pipe).cfg for pipe in others)


def test_by_precision(saved, tmp_path):
    """The lowest threshold that is precise enough; an error where none is, or where there is no threshold."""
    arguments = (saved / "pipeline", saved / "dev.spacy", "--force", "--output", tmp_path / "tuned", "--component")
    result, text = run(*arguments, "luke_typer", "--precision", 0.5)
    assert result.exit_code == 0, result.output
    nlp = spacy.load(tmp_path / "tuned")
    scores = nlp.evaluate(read_gold(nlp, saved / "dev.spacy"))
    assert scores["types_micro_p"] >= 0.5
    assert f"types_micro_p on {saved}/dev.spacy, end to end: {100 * scores['types_micro_p']:.2f}" in text
    result, text = run(*arguments, "luke_relation", "--precision", 1)
    assert result.exit_code == 1
    assert "expected a --precision of " in text
    result, text = run(*arguments, "luke_ner", "--precision", 0.5)
    assert result.exit_code == 1
    assert "'luke_ner' has no threshold that is chosen by precision" in text


def test_without_calibration(saved, tmp_path):
    arguments = (saved / "pipeline", saved / "dev.spacy", "--force", "--no-calibrate", "--output", tmp_path / "tuned")
    result, text = run(*arguments, "--component", "luke_ner")
    assert result.exit_code == 0, result.output
    assert "temperature" not in text
    assert spacy.load(tmp_path / "tuned").get_pipe("luke_ner").temperature == 1.0


def test_scores_that_tell_nothing(saved, tmp_path):
    """What is found is gold where its score is low: calibration can but make all scores alike, which is said."""
    nlp = spacy.load(saved / "pipeline")
    nlp.get_pipe("luke_typer").cfg["threshold"] = 0.0
    golds = []
    for doc in annotate(nlp):
        gold = as_gold(doc)
        types = sorted((p, x, label) for x in doc.ents for label, p in x._.luke_types.items())
        gold.spans["luke_types"] = [Span(gold, x.start, x.end, label) for _, x, label in types[: len(types) // 2]]
        golds.append(gold)
    write_docbin(golds, tmp_path / "dev.spacy")
    command = [saved / "pipeline", tmp_path / "dev.spacy", "--component", "luke_typer", "--force"]
    result, text = run(*command, "-o", tmp_path / "tuned")
    assert result.exit_code == 0, result.output
    assert "temperature = 20" in text
    assert "Higher scores of 'luke_typer' are no more often right in these data" in text
    _, text = run(*command, "-o", tmp_path / "other", "--no-calibrate")
    assert "no more often right" not in text


@pytest.mark.parametrize(("name", "key", "metric"), TUNABLE[:3])
def test_labels_that_the_pipeline_does_not_know(saved, tmp_path, name, key, metric):
    """They are missed, as `evaluate` counts."""
    nlp = spacy.load(saved / "pipeline")
    golds = list(DocBin().from_disk(saved / "dev.spacy").get_docs(nlp.vocab))
    for gold in golds[::2]:
        gold.set_ents([Span(gold, x.start, x.end, "NEW") for x in gold.ents])
        gold.spans["luke_types"] = [Span(gold, x.start, x.end, "NEW") for x in gold.spans["luke_types"]]
        gold._.luke_relations = [(x.head, x.tail, "NEW") for x in gold._.luke_relations]
    write_docbin(golds, tmp_path / "dev.spacy")
    command = [saved / "pipeline", tmp_path / "dev.spacy", "--component", name, "--force", "-o", tmp_path / "tuned"]
    result, text = run(*command)
    assert result.exit_code == 0, result.output
    assert re.search(rf"'{name}' does not know NEW \(\d\), which the gold has: they count as missed", text)
    tuned = spacy.load(tmp_path / "tuned")
    score = tuned.evaluate(read_gold(tuned, tmp_path / "dev.spacy"))[metric]
    assert f"end to end: {100 * score:.2f}" in text
    assert score < 1


@pytest.mark.parametrize(("force", "least"), [((), 50), (("--force",), 1)])
@pytest.mark.parametrize(("name", "key", "metric"), TUNABLE[:3])
def test_no_label_that_the_pipeline_knows(saved, tmp_path, name, key, metric, force, least):
    """A threshold at which nothing is shown, and scores that are all nearly 0, were the best."""
    nlp = spacy.load(saved / "pipeline")
    golds = list(DocBin().from_disk(saved / "large.spacy").get_docs(nlp.vocab))
    for gold in golds:
        gold.set_ents([Span(gold, x.start, x.end, "NEW") for x in gold.ents])
        gold.spans["luke_types"] = [Span(gold, x.start, x.end, "NEW") for x in gold.spans["luke_types"]]
        gold._.luke_relations = [(x.head, x.tail, "NEW") for x in gold._.luke_relations]
    write_docbin(golds, tmp_path / "dev.spacy")
    command = [saved / "pipeline", tmp_path / "dev.spacy", "--component", name, *force, "-o", tmp_path / "tuned"]
    result, text = run(*command)
    assert result.exit_code == 1
    assert re.search(rf"'{name}' knows the labels of 0 of the [\d,]+ gold ones, expected at least {least}; it", text)
    assert re.search(r"does not know NEW \([\d,]+\)\. Its labels are .*: give the data these", text)
    assert not (tmp_path / "tuned").exists()


def test_one_label_a_pair(tmp_path):
    """Relations with one label each have no threshold; when they are named, their scores are calibrated."""
    nlp = make_pipeline("luke_ner", "luke_relation", luke_relation={"none": "no"})
    golds = [as_gold(doc) for doc in annotate(nlp)]
    for gold in golds[::2]:
        gold._.luke_relations = []
    write_docbin([one for gold in golds for one in copies(gold, 3)], tmp_path / "dev.spacy")
    nlp.to_disk(tmp_path / "pipeline")
    arguments = (tmp_path / "pipeline", tmp_path / "dev.spacy", "--force", "--component", "luke_relation")
    result, text = run(*arguments)
    assert result.exit_code == 0, result.output
    tuned = spacy.load(tmp_path / "pipeline")
    fitted = tuned.get_pipe("luke_relation").temperature
    assert f"'luke_relation': temperature = {fitted:g} (before: 1)" in text
    assert fitted != 1.0
    result, text = run(*arguments, "--no-calibrate")
    assert result.exit_code == 1
    assert "gives each pair one label (multi_label = false), so it has no threshold" in text


@pytest.mark.parametrize(("name", "metric"), [("luke_typer", "types_micro_f"), ("luke_relation", "relations_f")])
def test_found_and_gold_mentions(saved, name, metric):
    """Types and relations of mentions that the pipeline misses count as missed, unless the gold ones are given."""
    nlp = spacy.load(saved / "pipeline")
    proc = nlp.get_pipe(name)

    def tune(*, gold_mentions):
        examples = read_gold(nlp, saved / "dev.spacy")
        examples = prepare_examples(nlp, proc, examples, gold_mentions=gold_mentions)
        return proc.tune(examples, nlp=nlp, gold_mentions=gold_mentions)

    found = tune(gold_mentions=False)
    evaluated = nlp.evaluate(read_gold(nlp, saved / "dev.spacy"))[metric]
    assert found[metric] == pytest.approx(evaluated)
    assert nlp.config["components"][name]["threshold"] == found["threshold"]
    assert tune(gold_mentions=True)[metric] > found[metric] > 0


@pytest.mark.slow
def test_few_positives(saved, tmp_path):
    arguments = [saved / "pipeline", saved / "dev.spacy", "--output", tmp_path / "tuned", "--component"]
    for name, _, _ in TUNABLE:
        result, text = run(*arguments, name)
        assert result.exit_code == 1
        assert f"The threshold of '{name}' would be chosen from " in text
        assert "expected at least 50: each is worth" in text
        assert not (tmp_path / "tuned").exists()
    result, text = run(*arguments, "luke_relation")
    assert "from 2 gold relations of the pairs that are asked about" in text
    arguments[1] = saved / "large.spacy"
    result, text = run(*arguments, "luke_relation")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("name", [name for name, _, _ in TUNABLE])
def test_few_positives_are_counted_before_anything_is_predicted(saved, monkeypatch, name):
    nlp = spacy.load(saved / "pipeline")
    proc = nlp.get_pipe(name)
    examples = prepare_examples(nlp, proc, read_gold(nlp, saved / "dev.spacy"), gold_mentions=False)
    monkeypatch.setattr(proc, "scored_batches", None)
    with pytest.raises(ValueError, match="expected at least 50: each is worth"):
        proc.tune(examples, nlp=nlp, least=50)


@pytest.mark.slow
def test_none_found(saved, tmp_path):
    nlp = spacy.load(saved / "pipeline", config={"components": {"luke_ner": {"none_bias": 100.0}}})
    nlp.to_disk(tmp_path / "pipeline")
    for name, what in (("luke_typer", "gold types is of mentions"), ("luke_relation", "gold relations is of entities")):
        arguments = (tmp_path / "pipeline", saved / "large.spacy", "--component", name)
        result, text = run(*arguments)
        assert result.exit_code == 1
        assert what in text
        assert "--gold-mentions" in text
        result, text = run(*arguments, "--gold-mentions")
        assert result.exit_code == 0, result.output
        assert "with gold mentions: " in text


def test_no_mentions_to_give(saved):
    for name in ("luke_ner", "luke_qa"):
        result, text = run(saved / "pipeline", saved / "dev.spacy", "--component", name, "--gold-mentions")
        assert result.exit_code == 1
        assert f"'{name}' takes no mentions" in text


def test_always_best():
    """The best type is given below the threshold too, and `tune` counts it."""
    nlp = make_pipeline("luke_ner", "luke_typer", luke_typer={"always_best": True, "threshold": 0.98})
    typer = nlp.get_pipe("luke_typer")
    golds = [doc.copy() for doc in annotate(nlp)]
    for gold in golds:
        gold.spans["luke_types"] = [Span(gold, x.start, x.end, typer.labels[0]) for x in gold.ents]

    def examples():
        return [Example(doc, gold) for doc, gold in zip(annotate(nlp), golds)]

    found = typer.tune(examples())
    assert nlp.evaluate(examples())["types_micro_f"] == pytest.approx(found["types_micro_f"])


def test_in_place(tmp_path):
    nlp = make_pipeline("luke_typer", luke_typer={"threshold": 0.98})
    nlp.to_disk(tmp_path / "pipeline")
    gold = nlp.make_doc(SENTENCES[0])
    gold.spans["luke_types"] = [Span(gold, 0, 2, "person"), Span(gold, 0, 2, "city")]
    DocBin(docs=[gold]).to_disk(tmp_path / "dev.spacy")
    files = {path: path.read_bytes() for path in (tmp_path / "pipeline").rglob("*") if path.is_file()}
    result, text = run(tmp_path / "pipeline", tmp_path / "dev.spacy", "--gold-mentions", "--force")
    assert result.exit_code == 0, result.output
    changed = {path.relative_to(tmp_path / "pipeline").as_posix() for path in files if path.read_bytes() != files[path]}
    assert changed == {"config.cfg"}
    assert {path for path in (tmp_path / "pipeline").rglob("*") if path.is_file()} == set(files)
    tuned = spacy.load(tmp_path / "pipeline")
    assert tuned.get_pipe("luke_typer").cfg["threshold"] == tuned.config["components"]["luke_typer"]["threshold"] < 0.98
    again = spacy.load(tmp_path / "pipeline", config={"components": {"luke_typer": {"threshold": 0.98}}})
    assert again.get_pipe("luke_typer").cfg["threshold"] == 0.98


def test_in_place_of_a_value_in_the_file(tmp_path):
    """What was found without the pipeline, and so is in the component's file, gives way to what is found with it."""
    nlp = make_pipeline("luke_typer", luke_typer={"threshold": 0.98})
    gold = nlp.make_doc(SENTENCES[0])
    gold.spans["luke_types"] = [Span(gold, 0, 2, "person"), Span(gold, 0, 2, "city")]
    DocBin(docs=[gold]).to_disk(tmp_path / "dev.spacy")
    nlp.get_pipe("luke_typer").settle(None, threshold=0.97)
    nlp.to_disk(tmp_path / "pipeline")
    assert spacy.load(tmp_path / "pipeline").get_pipe("luke_typer").cfg["threshold"] == 0.97
    result, text = run(tmp_path / "pipeline", tmp_path / "dev.spacy", "--gold-mentions", "--force")
    assert "(before: 0.97)" in text
    again = spacy.load(tmp_path / "pipeline", config={"components": {"luke_typer": {"threshold": 0.98}}})
    assert again.get_pipe("luke_typer").cfg["threshold"] == 0.98


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "The components with a threshold are ['luke_ner', 'luke_typer', 'luke_relation', 'luke_qa']. Expected"),
        (("--component", "luke_cloze"), "'luke_cloze' has no threshold to tune"),
        (("--component", "typer"), "no LUKE component 'typer'"),
    ],
)
def test_the_component_must_be_clear(saved, arguments, message):
    result, text = run(saved / "pipeline", saved / "dev.spacy", *arguments)
    assert result.exit_code == 1
    assert message in text


def test_no_foreign_folder_is_replaced(saved, tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    result, text = run(saved / "pipeline", saved / "dev.spacy", "--component", "luke_qa", "--output", tmp_path)
    assert result.exit_code == 1
    assert "holds no pipeline" in text
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_what_is_no_folder_cannot_be_changed(saved):
    result, text = run("en_core_web_none", saved / "dev.spacy")
    assert result.exit_code == 1
    assert "choose a new one with --output" in text


def test_no_gold(saved, tmp_path):
    DocBin(docs=[spacy.blank("en").make_doc(SENTENCES[0])]).to_disk(tmp_path / "empty.spacy")
    result, text = run(saved / "pipeline", tmp_path / "empty.spacy", "--component", "luke_typer")
    assert result.exit_code == 1
    assert "Nothing was changed." in text
    assert "found none" in text
