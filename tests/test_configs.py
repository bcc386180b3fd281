"""Every file in configs/ is complete and valid; each trains two steps offline with a tiny checkpoint, the small ones on
the sample corpus."""

from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.cli._util import app as spacy_app
from spacy.cli.train import train
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.util import load_config, load_model_from_config
from typer.testing import CliRunner

from spacy_luke.annotations import (
    get_rows,
    register_extensions,
    set_candidates_given,
    set_knowledge,
    set_pairs,
    set_queries,
    set_questions,
    set_relations,
)
from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.checkpoint.ernie import write_ernie
from spacy_luke.kb.build import build_kb
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.readers.jsonl import jsonl_docs
from spacy_luke.vectors.build import build_vectors
from tests.tiny import make_checkpoint, make_ernie

ROOT = Path(__file__).parents[1]
ASSEMBLED = ROOT / "configs/all_small.cfg"
# No pipelines (tests/pretraining), one of parts (below), one of a finished pipeline (tests/test_ready_relate.py).
OTHERS = ("ernie_pretrain", "pretrain_", "all_small", "ready_relation")
CONFIGS = sorted(path for path in (ROOT / "configs").glob("*.cfg") if not path.stem.startswith(OTHERS))
JOINED = ("ready", "open_small")  # of several sources
TEXT = [("Ada", "B-PER"), ("Lovelace", "I-PER"), ("lived", "O"), ("in", "O"), ("London", "B-LOC"), (".", "O")]
LABELS = {"luke_ner": ("LOC", "PER"), "luke_typer": ("person", "place"), "luke_relation": ("lives_in",)}
LABELS |= {name.replace("luke", "ernie"): labels for name, labels in LABELS.items()}


def flatten(config, path=""):
    if not isinstance(config, dict):
        return {path: config}
    leaves = {path: {}} if not config else {}
    for name, value in config.items():
        leaves.update(flatten(value, f"{path}.{name}" if path else name))
    return leaves


def make_gold(nlp: Language) -> Doc:
    """Two sentences with all that any component learns."""
    register_extensions()
    words, tags = zip(*TEXT * 2, strict=True)
    starts = [i % len(TEXT) == 0 for i in range(len(words))]
    doc = Doc(nlp.vocab, words=words, sent_starts=starts, ents=list(tags), tags=["NN"] * len(words))
    ids = {"PER": "Ghana", "LOC": "Japan"}
    doc.set_ents([Span(doc, e.start, e.end, label=e.label_, kb_id=ids[e.label_]) for e in doc.ents])
    proposed = [("Ghana", 0.5), ("Japan", 0.4)]
    set_candidates_given(doc, [(e.start_char, e.end_char, proposed) for e in doc.ents])
    doc.spans["sc"] = [*doc.ents, Span(doc, 1, 2, "PER")]
    types = {"PER": "person", "LOC": "place"}
    doc.spans["luke_types"] = [Span(doc, span.start, span.end, types[span.label_]) for span in doc.ents]
    set_relations(doc, [(doc.ents[0], doc.ents[1], "lives_in"), (doc.ents[2], doc.ents[3], "lives_in")])
    place = (doc.ents[1].start_char, doc.ents[1].end_char)
    set_questions(doc, [{"question": "Where did she live?", "answers": [place]}])
    candidates = [(span.start_char, span.end_char) for span in doc.ents]
    set_queries(doc, [{"query": "Ada lived in @placeholder.", "candidates": candidates, "answers": [place]}])
    set_knowledge(doc, [(*place, "Japan", 0.9), (0, 3, "Q9", 0.5)])
    doc.cats = {"equivalent": 1.0, "not_equivalent": 0.0}
    doc._.luke_second = doc[len(TEXT)].idx
    return doc


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the configs name, small: data, a checkpoint of noise, names of entities."""
    folder = tmp_path_factory.mktemp("configs")
    write_huggingface(make_checkpoint(max_positions=300), folder / "tiny")
    nlp = spacy.blank("en")
    gold = make_gold(nlp)
    write_docbin([gold] * 3, folder / "data.spacy")
    paired = make_gold(nlp)
    set_pairs(paired, [(paired.ents[head], paired.ents[tail]) for head, tail in ((0, 1), (1, 0), (2, 3))])
    write_docbin([paired] * 3, folder / "pairs.spacy")
    sample = jsonl_docs(nlp, ROOT / "assets/sample/dev.jsonl", overlaps="outermost")
    write_docbin(list(sample)[:3], folder / "sample.spacy")
    write_ernie(make_ernie(max_positions=300), folder / "tiny_ernie")
    build_vectors(
        np.random.default_rng(0).normal(size=(2, 12)).astype("float32"), folder / "vectors", names=["Japan", "Q9"]
    )
    entities = "".join(f'{{"id": "{name}", "names": ["{name}"]}}\n' for name in ("Ghana", "Japan"))
    (folder / "entities.jsonl").write_text(entities, encoding="utf8")
    build_kb([folder / "entities.jsonl"], folder / "kb")
    noise = np.random.default_rng(1).normal(size=(2, 12)).astype("float32")
    build_vectors(noise, folder / "kb/vectors", names=["Ghana", "Japan"])
    for name in JOINED:
        write_sources(name, folder / "sources" / name)
    (folder / "names.tsv").write_text("name\tentity\tcount\toccurrences\nLondon\tJapan\t5\t10\n", encoding="utf8")
    return folder


def write_sources(name, folder):
    """The files of a config that joins sources: each with all the labels that its source has there."""
    nlp = spacy.blank("en")
    config = load_config(ROOT / f"configs/{name}.cfg", overrides={"paths.data": str(folder)}, interpolate=True)
    for corpus in ("train", "dev"):
        for source in config["corpora"][corpus]["sources"].values():
            gold = make_gold(nlp)
            told = source.get("entities") or {}
            names = [label for label in told.get("labels", {}) if label != "*"] or ["PER", "LOC"]
            gold.set_ents([Span(gold, i, i + 1, label) for i, label in enumerate(names)])
            if typer := config["initialize"]["components"].get("luke_typer"):
                gold.spans["luke_types"] = [Span(gold, 0, 1, typer["labels"][0])]
            relations = config["initialize"]["components"]["luke_relation"]["labels"][:1]
            if told := source.get("relations"):
                relations = [label for label in told["labels"] if label != "*"]
            set_relations(gold, [(gold.ents[0], gold.ents[1], relation) for relation in relations])
            write_docbin([gold] * 3, source["path"])


def overrides(path, folder):
    """Settings that make a config small."""
    config = load_config(path, interpolate=False)
    settings = {
        "paths.weights": folder / "tiny",
        "system.gpu_allocator": None,
        "training.max_steps": 2,
        "training.eval_frequency": 1,
        "training.logger.progress_bar": False,
    }
    data = "sample" if path.stem in ("joint_small", "cloze_small", "qa_small") else "data"
    data = "pairs" if "relation" in path.stem else data
    settings |= {f"paths.{part}": folder / f"{data}.spacy" for part in ("train", "dev")}
    if "data" in config["paths"]:
        settings["paths.data"] = folder / "sources" / path.stem
    if "mentions" in config["paths"]:
        settings["paths.mentions"] = folder / "names.tsv"
    if "kb" in config["paths"]:
        settings["paths.kb"] = folder / "kb"
    if "entity_vectors" in config["paths"]:
        settings |= {"paths.weights": folder / "tiny_ernie", "paths.entity_vectors": folder / "vectors"}
    if data == "sample" and "luke_ner" in config["components"]:  # the tiny tokenizer makes many pieces of a word
        settings["components.luke_ner.max_span_pieces"] = None
    for name, component in config["initialize"]["components"].items():
        if component.get("weights", {}).get("layers"):
            settings[f"initialize.components.{name}.weights.layers"] = 1  # of two
    for name, component in config["components"].items():
        if component.get("max_window"):
            settings[f"components.{name}.max_window"] = None  # the tiny encoders read less
        model = component.get("model", {})
        if "tok2vec" in model:
            settings[f"components.{name}.model.tok2vec.width"] = 32
        for key, at in ((model, "model"), (model.get("encoder", {}), "model.encoder")):
            if "train_precision" in key:
                settings[f"components.{name}.{at}.train_precision"] = "float32"
    return {key: str(value) if isinstance(value, Path) else value for key, value in settings.items()}


def test_there_are_configs():
    assert len(CONFIGS) >= 20


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_complete(path):
    """Nothing is left for `spacy init fill-config` to fill in, and no setting is one that nothing reads."""
    config = load_config(path, interpolate=False)
    load_model_from_config(config, auto_fill=False)
    filled = load_model_from_config(config, auto_fill=True).config
    assert flatten(config) == flatten(filled)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_component_has_comments(path):
    text = path.read_text(encoding="utf8")
    assert text.startswith("# ")
    sections = text.split("\n[components]\n")[1].split("\n[corpora]\n")[0]
    for name in load_config(path)["nlp"]["pipeline"]:
        if not name.startswith(("luke_", "ernie_", "entity_")):
            continue
        part = "".join(x for x in sections.split("\n[") if x.startswith((f"components.{name}]", f"components.{name}.")))
        assert sum(line.startswith("#") for line in part.splitlines()) >= 6, name


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_the_head_names_the_file(path):
    """The commands at the top are those of this config."""
    head = path.read_text(encoding="utf8").split("\n\n[")[0].splitlines()
    named = [f"configs/{path.name}" in line for line in head if "spacy train " in line or "luke train " in line]
    assert all(named or ["project run" in "".join(head)])


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_trains_two_steps(path, folder, tmp_path, capsys):
    train(path, tmp_path, overrides=overrides(path, folder))
    assert "Saved pipeline" in capsys.readouterr().out
    nlp = spacy.load(tmp_path / "model-last")
    small = "sample" in overrides(path, folder)["paths.train"]
    for name, labels in LABELS.items():
        if name in nlp.pipe_names and path.stem in JOINED:  # which names its labels
            own = load_config(path)["initialize"]["components"][name]["labels"]
            assert sorted(nlp.get_pipe(name).labels) == sorted(own)
        elif name in nlp.pipe_names and not small:
            assert nlp.get_pipe(name).labels == labels
        elif name in nlp.pipe_names:
            assert len(nlp.get_pipe(name).labels) >= 4
    doc = nlp(make_asked(nlp))
    if "sentencizer" in nlp.pipe_names:
        assert doc.has_annotation("SENT_START")
    if "nested" in path.stem:
        assert len(doc.spans["sc"].attrs["scores"]) == len(doc.spans["sc"])
    if "luke_qa" in nlp.pipe_names:
        assert len(doc._.luke_answers) == 1
    if "luke_cloze" in nlp.pipe_names:
        assert len(doc._.luke_fillers) == 1
    if {"luke_relation", "ernie_relation"} & set(nlp.pipe_names):
        assert get_rows(doc, "luke_relations") is not None
    if "textcat" in nlp.pipe_names:
        assert set(doc.cats) == {"equivalent", "not_equivalent"}


def test_parts_are_assembled(folder, tmp_path, capsys):
    """What two configs train becomes one pipeline, which says what they say."""
    for name in ("joint_small", "qa_small"):
        path = ROOT / f"configs/{name}.cfg"
        train(path, tmp_path / name, overrides=overrides(path, folder))
    paths = ("--paths.joint", tmp_path / "joint_small/model-last", "--paths.qa", tmp_path / "qa_small/model-last")
    result = CliRunner().invoke(spacy_app, ["assemble", str(ASSEMBLED), str(tmp_path / "all"), *map(str, paths)])
    assert result.exit_code == 0, result.output
    capsys.readouterr()
    nlp, joint, qa = (spacy.load(tmp_path / part) for part in ("all", "joint_small/model-last", "qa_small/model-last"))
    doc = nlp(make_asked(nlp))
    assert get_rows(doc, "luke_answers") == get_rows(qa(make_asked(qa)), "luke_answers")
    expected = joint(make_asked(joint))
    assert [(e.text, e.label_, e._.luke_types) for e in doc.ents] == [
        (e.text, e.label_, e._.luke_types) for e in expected.ents
    ]
    assert get_rows(doc, "luke_relations") == get_rows(expected, "luke_relations")


def make_asked(nlp):
    doc = nlp.make_doc("Ada Lovelace lived in London.")
    set_questions(doc, ["Where?"])
    set_queries(doc, ["She lived in @placeholder."])
    return doc
