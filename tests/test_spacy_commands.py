"""spaCy's own commands on pipelines with our components, as a user calls them."""

import subprocess
import sys
import zipfile

import numpy as np
import pytest
import spacy
import srsly
from spacy.cli._util import app as spacy_app
from spacy.cli.find_threshold import find_threshold
from spacy.tokens import DocBin, Span
from spacy.training import Corpus, Example
from spacy.util import load_config, load_model_from_config
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import register_extensions, set_candidates_given, set_queries, set_questions
from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.readers.given import copy_given
from spacy_luke.vectors.build import build_vectors
from tests.pipelines import COMPONENTS, QUERY, QUESTION, annotate, as_gold, make_gold, make_pipeline
from tests.tiny import SENTENCES, make_checkpoint

LABELLED = ("luke_ner", "luke_typer", "luke_relation")


def run(*arguments, code=0):
    result = CliRunner().invoke(spacy_app, [str(argument) for argument in arguments])
    text = " ".join(result.output.split())
    assert result.exit_code == code, (text, result.exception)
    return text if not result.exception or isinstance(result.exception, SystemExit) else str(result.exception)


def write(docs, path):
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """pipeline: of all components; gold.spacy: what it says; train.spacy; checkpoint; train.cfg: a config of all
    that."""
    path = tmp_path_factory.mktemp("commands")
    nlp = make_pipeline()
    nlp.to_disk(path / "pipeline")
    write([as_gold(doc) for doc in annotate(nlp)], path / "gold.spacy")
    write([make_gold(nlp, text) for text in SENTENCES], path / "train.spacy")
    write_huggingface(make_checkpoint(max_positions=130), path / "checkpoint")
    config = nlp.config.copy()
    config["paths"].update(train=str(path / "train.spacy"), dev=str(path / "train.spacy"))
    weights = {"@misc": "spacy-luke.checkpoint.v1", "path": str(path / "checkpoint")}
    config["initialize"]["components"]["luke_encoder"] = {"weights": weights}
    config["training"].update(max_steps=2, eval_frequency=1)
    config["training"]["optimizer"] = {"@optimizers": "spacy-luke.AdamW.v1", "learn_rate": 0.001}
    for name in ("train", "dev"):
        reader = {"@readers": "spacy-luke.GoldCorpus.v1", "path": f"${{paths.{name}}}", "questions": True}
        config["corpora"][name] = {**reader, "entities": True}
    config.to_disk(path / "train.cfg")
    return path


NOT_ASKED = "ignore:.*gold items of doc._.luke_(questions|queries) were not asked:UserWarning"


@pytest.mark.parametrize("command", [("evaluate",), ("benchmark", "accuracy")], ids=" ".join)
def test_evaluate(folder, tmp_path, command):
    """It gives a pipeline the texts alone: what they are asked is not scored, and all else is."""
    arguments = (*command, folder / "pipeline", folder / "gold.spacy", "--output", tmp_path / "scores.json")
    with pytest.warns(UserWarning, match="were not asked, and so are not scored") as caught:
        text = run(*arguments)
    assert "NER F 100.00" in text
    assert len(caught) == 2  # of questions, and of queries
    scores = srsly.read_json(tmp_path / "scores.json")
    assert [scores[key] for key in ("ents_f", "types_micro_f", "relations_f")] == [1.0, 1.0, 1.0]
    assert [scores[key] for key in ("qa_f", "qa_not_asked", "cloze_f", "cloze_not_asked")] == [None, 8, None, 4]


@pytest.mark.slow
def test_benchmark_speed(folder):
    words = ("--batch-size", 1, "--batches", 30, "--warmup", 1)
    assert "words/s" in run("benchmark", "speed", folder / "pipeline", folder / "gold.spacy", *words)


def with_ruler(nlp):
    """Something that finds the mentions of the gold."""
    register_extensions()
    ruler = nlp.add_pipe("entity_ruler", first=True)
    docs = [make_gold(nlp, text) for text in SENTENCES]
    ruler.add_patterns([{"label": e.label_, "pattern": e.text} for doc in docs for e in doc.ents])
    return nlp, docs


@pytest.fixture(scope="module")
def deciding(tmp_path_factory):
    """A pipeline whose thresholds decide something, and gold of it."""
    path = tmp_path_factory.mktemp("deciding")
    settings = {"luke_typer": {"always_best": False}, "luke_relation": {"multi_label": True}}
    nlp, docs = with_ruler(make_pipeline("luke_typer", "luke_relation", **settings))
    nlp.to_disk(path / "pipeline")
    write(docs, path / "gold.spacy")
    return path


@pytest.mark.parametrize(("name", "key"), [("luke_typer", "types_micro_f"), ("luke_relation", "relations_f")])
def test_find_threshold(deciding, name, key):
    data = deciding / "gold.spacy"
    best, score, scores = find_threshold(deciding / "pipeline", data, name, "threshold", key, n_trials=3)
    assert list(scores) == [0.0, 0.5, 1.0]
    assert (score, best) == (max(scores.values()), max(scores, key=scores.get))
    assert scores[0.0] > scores[1.0] == 0.0  # everything, nothing
    for threshold, found in scores.items():
        nlp = spacy.load(deciding / "pipeline")
        nlp.get_pipe(name).cfg["threshold"] = float(threshold)
        assert nlp.evaluate(list(Corpus(data)(nlp)))[key] == found


@pytest.mark.filterwarnings(NOT_ASKED)
def test_find_threshold_of_entities(folder):
    """The bias against "no entity" is a threshold of another kind."""
    data = folder / "gold.spacy"
    _, score, scores = find_threshold(folder / "pipeline", data, "luke_ner", "none_bias", "ents_f", n_trials=2)
    assert score == scores[0.0] == 1.0  # the gold is what it says


def test_find_threshold_of_links(tmp_path):
    nlp = spacy.blank("en")
    rows = np.random.default_rng(0).normal(size=(3, 13)).astype(np.float32)
    vectors = build_vectors(rows, tmp_path / "vectors", names=["A", "B", "C"]).store
    nlp, docs = with_ruler(nlp)
    for doc in docs:
        doc.set_ents([Span(doc, e.start, e.end, e.label_, kb_id="A") for e in doc.ents])
        places = [(e.start_char, e.end_char) for e in doc.ents]
        set_candidates_given(doc, [(*place, [("A", 0.5), ("B", 0.3), ("C", 0.2)]) for place in places])
    examples = [Example(copy_given(doc, nlp.vocab, links=True), doc) for doc in docs]
    linker = nlp.add_pipe("luke_linker", config={"model": {"encoder": {"train_precision": "float32"}}})
    linker.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, vectors=str(vectors.path))
    nlp.to_disk(tmp_path / "pipeline")
    data = write(docs, tmp_path / "gold.spacy")
    _, _, scores = find_threshold(tmp_path / "pipeline", data, "luke_linker", "threshold", "links_accuracy", n_trials=2)
    assert list(scores) == [0.0, 1.0]


# ---- configs


def test_init_labels(folder, tmp_path):
    """Of those that have labels; and training takes them from there."""
    run("init", "labels", folder / "train.cfg", tmp_path / "labels")
    found = {path.stem: srsly.read_json(path) for path in (tmp_path / "labels").iterdir()}
    assert found == {"luke_ner": ["LOC", "PER"], "luke_typer": ["city", "person", "place"], "luke_relation": ["near"]}
    srsly.write_json(tmp_path / "labels" / "luke_ner.json", ["PER", "LOC", "ORG"])
    config = load_config(folder / "train.cfg")
    path = str(tmp_path / "labels" / "luke_ner.json")
    config["initialize"]["components"]["luke_ner"] = {"labels": {"@readers": "spacy.read_labels.v1", "path": path}}
    config.to_disk(tmp_path / "train.cfg")
    run("train", tmp_path / "train.cfg", "--output", tmp_path / "trained", "--training.max_steps", 1)
    assert spacy.load(tmp_path / "trained" / "model-last").get_pipe("luke_ner").labels == ("PER", "LOC", "ORG")


@pytest.mark.parametrize(
    "names",
    [
        *COMPONENTS,
        "luke_linker",
        "ernie_typer",
        "ernie_relation",
        "entity_annotator",
        ",".join(LABELLED),
        "luke_encoder,luke_ner",
    ],
)
def test_init_config(tmp_path, names):
    """A config that builds what it says, and of which `fill-config` has nothing more to say."""
    run("init", "config", tmp_path / "config.cfg", "--pipeline", names)
    config = load_config(tmp_path / "config.cfg")
    assert load_model_from_config(config).pipe_names == names.split(",")
    assert "already complete" in run("init", "fill-config", tmp_path / "config.cfg", tmp_path / "filled.cfg")
    bare = {"nlp": config["nlp"], "components": {name: {"factory": name} for name in names.split(",")}}
    type(config)(bare).to_disk(tmp_path / "bare.cfg")
    run("init", "fill-config", tmp_path / "bare.cfg", tmp_path / "filled.cfg")
    assert load_config(tmp_path / "filled.cfg")["components"] == config["components"]


def test_from_init_config_to_a_pipeline(folder, tmp_path):
    """With one sentence on the way, which says what to add: to stock Adam, and to Docs that are one sentence each."""
    path, data = tmp_path / "config.cfg", folder / "train.spacy"
    run("init", "config", path, "--pipeline", "luke_ner")
    arguments = ("train", path, "--paths.train", data, "--paths.dev", data)
    said = run(*arguments, code=1)
    assert "'luke_ner' needs a checkpoint, but the config names none; add for example" in said
    assert "Traceback" not in said
    added = said[said.index("[initialize.components.luke_ner]") :].split(" where path")[0]
    for before, after in (("] ", "]\n"), (" path", "\npath"), ("studio-ousia/luke-base", str(folder / "checkpoint"))):
        added = added.replace(before, after)
    path.write_text(f"{path.read_text()}\n{added}\n")
    limits = ("--training.max_steps", 2, "--training.eval_frequency", 1)
    run(*arguments, *limits, "--output", tmp_path / "trained")
    nlp = spacy.load(tmp_path / "trained" / "model-last")
    assert nlp.get_pipe("luke_ner").labels == ("LOC", "PER")
    assert nlp.config["training"]["optimizer"]["@optimizers"] == "Adam.v1"
    nlp(SENTENCES[0])


def test_init_config_of_ernie(folder, tmp_path):
    """What is to be added is ERNIE's: its checkpoint, and the entities' vectors."""
    path, data = tmp_path / "config.cfg", folder / "train.spacy"
    run("init", "config", path, "--pipeline", "ernie_typer")
    said = " ".join(run("train", path, "--paths.train", data, "--paths.dev", data, code=1).split())
    assert '@misc = "spacy-luke.ernie_checkpoint.v1" path = "assets/ernie/ernie_base" vectors = "vectors' in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_debug(folder, tmp_path):
    data = write(
        25 * list(DocBin().from_disk(folder / "train.spacy").get_docs(spacy.blank("en").vocab)), tmp_path / "x.spacy"
    )
    said = run("debug", "data", folder / "train.cfg", "--paths.train", data)
    assert "Pipeline can be initialized with data" in said
    assert "100 training docs" in said
    assert "Config is valid" in run("debug", "config", folder / "train.cfg")
    said = run("debug", "model", folder / "train.cfg", "luke_ner", "--print-step0", code=1)
    assert "`spacy debug model` can show their structure and parameters, but not run them" in said


def test_assemble(folder, tmp_path):
    """Parts of trained pipelines put together."""
    nlp = spacy.blank("en")
    config = nlp.config.copy()
    config["nlp"]["pipeline"] = ["sentencizer", "luke_encoder", "luke_ner"]
    config["components"] = {name: {"source": str(folder / "pipeline")} for name in config["nlp"]["pipeline"]}
    config.to_disk(tmp_path / "parts.cfg")
    run("assemble", tmp_path / "parts.cfg", tmp_path / "assembled")
    found = [[str(e) for e in doc.ents] for doc in spacy.load(tmp_path / "assembled").pipe(SENTENCES)]
    assert found == [[str(e) for e in doc.ents] for doc in annotate(spacy.load(folder / "pipeline"))]
    assert any(found)


# ---- use


def said(doc):
    """Everything but the last digits of scores, which depend on the batch."""
    answers = [(x.question, x.text, round(x.score, 4)) for x in (*doc._.luke_answers, *doc._.luke_fillers)]
    return answers, [(x.head.text, x.tail.text, x.label, round(x.score, 4)) for x in doc._.luke_relations]


def test_apply(folder, tmp_path):
    """What the Docs of a .spacy file are asked is answered, and all of it is in the output."""
    nlp = spacy.load(folder / "pipeline")
    docs = [nlp.make_doc(text) for text in SENTENCES]
    for doc in docs:
        set_questions(doc, [QUESTION, "Why?"])
        set_queries(doc, [QUERY])
    run("apply", folder / "pipeline", write(docs, tmp_path / "in.spacy"), tmp_path / "out.spacy", "--force")
    found = list(DocBin().from_disk(tmp_path / "out.spacy").get_docs(nlp.vocab))
    for one, other in zip(found, annotate(nlp), strict=True):
        assert [(e.text, e.label_) for e in one.ents] == [(e.text, e.label_) for e in other.ents]
        assert one._.luke_rows.keys() == other._.luke_rows.keys()
        assert said(one) == said(other)
    (tmp_path / "in.txt").write_text(SENTENCES[0])
    run("apply", folder / "pipeline", tmp_path / "in.txt", tmp_path / "texts.spacy")
    assert len(DocBin().from_disk(tmp_path / "texts.spacy")) == 1


@pytest.mark.slow
def test_package(folder, tmp_path):
    """A wheel, installed elsewhere, finds what the pipeline finds."""
    (tmp_path / "wheels").mkdir()
    command = [
        sys.executable,
        "-m",
        "spacy",
        "package",
        folder / "pipeline",
        tmp_path / "wheels",
        "--build",
        "wheel",
        "--name",
        "all",
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = (tmp_path / "wheels").rglob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        requirements = next(file.read(n).decode() for n in file.namelist() if n.endswith("METADATA"))
    assert "Requires-Dist: spacy-luke" in requirements
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        tmp_path / "there",
        wheel,
    ]
    subprocess.run(command, check=True, capture_output=True)
    sys.path.insert(0, str(tmp_path / "there"))
    try:
        nlp = spacy.load("en_all")
    finally:
        sys.path.remove(str(tmp_path / "there"))
    docs = annotate(spacy.load(folder / "pipeline"))
    assert [str(doc.ents) for doc in annotate(nlp)] == [str(doc.ents) for doc in docs]


@pytest.mark.slow
def test_project(folder, tmp_path):
    """A workflow runs once, and its document says what it does."""
    command = f"python -m spacy apply {folder / 'pipeline'} in.txt out.spacy"
    script = {
        "name": "use",
        "help": "Annotate a text",
        "script": [command],
        "deps": ["in.txt"],
        "outputs": ["out.spacy"],
    }
    srsly.write_yaml(tmp_path / "project.yml", {"title": "Ours", "workflows": {"all": ["use"]}, "commands": [script]})
    (tmp_path / "in.txt").write_text(SENTENCES[0])
    run("project", "run", "all", tmp_path)
    (doc,) = DocBin().from_disk(tmp_path / "out.spacy").get_docs(spacy.blank("en").vocab)
    assert doc.text == SENTENCES[0]
    assert "nothing changed" in run("project", "run", "all", tmp_path)
    run("project", "document", tmp_path, "--output", tmp_path / "README.md")
    assert "Annotate a text" in (tmp_path / "README.md").read_text()


def test_info_and_analysis(folder):
    assert "luke_relation" in run("info", folder / "pipeline")
    nlp = spacy.load(folder / "pipeline")
    analysis = nlp.analyze_pipes()
    assert not any(analysis["problems"].values())
    assert set(COMPONENTS) <= set(analysis["summary"])
    assert analysis["summary"]["luke_relation"]["assigns"] == ["doc._.luke_relations"]
    alone = spacy.blank("en")
    alone.add_pipe("luke_relation")
    assert alone.analyze_pipes()["problems"]["luke_relation"] == ["doc.ents"]


@pytest.mark.slow
def test_commands_start_without_torchs_compiler():
    """Every command of spaCy's imports those of the package."""
    heavy = {"sympy", "torch._dynamo", "torch.distributed.checkpoint"}
    program = f"import sys, spacy_luke.cli; print(*{heavy} & {{*sys.modules}})"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == []
