"""`spacy luke pretrain`: every config trains, a killed run goes on to the same bits, processes together learn what one
does, the result loads everywhere, and what is refused."""

import json
import sys

import pytest
import spacy
import torch
from safetensors.torch import load_file
from spacy.cli._util import app
from spacy.tokens import Span
from spacy.training import Example
from spacy.util import load_config
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import set_candidates_given, set_relations
from spacy_luke.checkpoint.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.text_encoder import TextEncoder
from spacy_luke.distributed.processes import Processes
from spacy_luke.pretraining.luke import job
from spacy_luke.pretraining.luke.job import pretrain_luke
from spacy_luke.pretraining.saving import read_model
from spacy_luke.readers.given import copy_given
from spacy_luke.vectors.store import EntityVectors
from tests.pretraining.luke.small_runs import (
    ALL,
    REST,
    SHORT,
    SMALL,
    WORDS,
    overrides,
    read_config,
    state,
    torchrun,
)
from tests.pretraining.runs import as_arguments, reports
from tests.sealing import change_manifest
from tests.tiny import make_checkpoint


@pytest.mark.slow
def test_it_learns(whole):
    """Each entity is told by two pieces of its own."""
    first, *_, last = reports(whole / "all")
    assert last["step"] == REST
    assert last["entity"] < 0.9 * reports(whole / "new")[0]["entity"]
    assert {"dev_mlm", "dev_mlm_acc", "dev_entity", "dev_entity_acc", "epoch", "learn_rate"} <= set(last)


def test_the_first_stage_leaves_what_was_there(folder, whole):
    before, after = load_file(folder / "dropout/model.safetensors"), load_file(whole / "new/resume/model.safetensors")
    theirs = {name.removeprefix("luke."): x for name, x in before.items()}
    assert torch.equal(
        theirs["encoder.layer.0.attention.self.query.weight"], after["encoder.layers.0.attention.query.weight"]
    )
    assert torch.equal(theirs["embeddings.word_embeddings.weight"], after["encoder.words.piece.weight"])
    assert not torch.equal(
        theirs["entity_embeddings.position_embeddings.weight"], after["encoder.entities.position.weight"]
    )
    final = load_file(whole / "all/resume/model.safetensors")
    assert not torch.equal(after["encoder.words.piece.weight"], final["encoder.words.piece.weight"])


@pytest.mark.slow
@pytest.mark.parametrize(("parallel", "corrected"), [("ddp", True), ("fsdp", True), ("fsdp", False)])
def test_two_processes_are_one(folder, tmp_path, parallel, corrected):
    """Batches of 4 in each of two processes are batches of 8 in one, but for the order of sums."""
    changes = {**SHORT, "paths.weights": str(folder / "tiny")}
    changes |= {f"stages.{stage}.optimizer.bias_correction": corrected for stage in ("new", "all")}
    changes |= {f"stages.{stage}.optimizer.learn_rate": 0.001 for stage in ("new", "all")}
    pretrain_luke(read_config(folder, **changes, **{"training.batch_size": 8}), tmp_path / "one", progress=False)
    torchrun(folder, tmp_path / "two", **changes, **{"training.parallel": parallel})
    for stage in ("new", "all"):
        for two, one in zip(*(reports(tmp_path / n / stage) for n in ("two", "one")), strict=True):
            assert {k: v for k, v in two.items() if "dev" not in k} == pytest.approx(
                {k: v for k, v in one.items() if "dev" not in k}, rel=1e-4, abs=1e-5
            )
        two, one = (read_model(tmp_path / n / stage / "resume") for n in ("two", "one"))
        assert set(two) == set(one)
        assert max(float((two[name] - one[name]).abs().max()) for name in one) < 1e-4
    with pytest.raises(ValueError, match=r"windows of a step[.]all: was 16, now 8"):
        pretrain_luke(
            read_config(folder, **changes, **{"training.parallel": parallel}),
            tmp_path / "two",
            resume=True,
            progress=False,
        )


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_every_config_trains(folder, tmp_path, path):
    settings = overrides(folder, **SHORT)
    settings |= {
        "training.eval_every": 2,
        "training.eval_batches": 1,
        "stages.all.step_batches": 1,
        "stages.new.step_batches": 1,
    }
    del settings["training.precision"]
    result = CliRunner().invoke(
        app, ["luke", "pretrain", str(path), "-o", str(tmp_path / "run"), *as_arguments(settings)]
    )
    assert result.exit_code == 0, result.output
    assert "2 (new), 6 (all) steps of pretraining" in result.output
    assert read_checkpoint(tmp_path / "run/model").config.entity_aware


def test_words_alone(folder, tmp_path):
    """The paper's tables 8 and 10: one stage of 200,000 steps for all parameters, at the second stage's rate."""
    config = load_config(WORDS, interpolate=True)
    stage, last = config["stages"]["all"], load_config(ALL[2], interpolate=True)["stages"]["all"]
    assert (config["training"]["stages"], config["task"]["entities"], stage["max_steps"]) == (["all"], None, 200_000)
    assert {**stage, "max_steps": 100_000} == last
    settings = {key: x for key, x in overrides(folder, **SHORT).items() if not key.startswith("stages.new")}
    settings |= {"stages.all.step_batches": 1, "training.eval_every": 2, "training.eval_batches": 1}
    result = CliRunner().invoke(
        app, ["luke", "pretrain", str(WORDS), "-o", str(tmp_path / "run"), *as_arguments(settings)]
    )
    assert result.exit_code == 0, result.output
    assert all("mlm" in report and "entity" not in report for report in reports(tmp_path / "run/all"))


@pytest.mark.parametrize("path", [*ALL, WORDS], ids=lambda path: path.stem)
def test_the_head_names_the_file(path):
    text = path.read_text(encoding="utf8")
    assert f"luke pretrain configs/{path.name}" in text.split("\n\n[")[0]
    assert sum(line.startswith("#") for line in text.splitlines()) > 20


def test_the_schedule_of_the_paper():
    """Appendix of LUKE, and pretraining_config/luke_*.json of the original."""
    for path in ALL[1:]:
        config = load_config(path, interpolate=True)
        rates = {"new": 5e-4, "all": 1e-5}
        for name, rate in rates.items():
            stage = config["stages"][name]
            optimizer = stage["optimizer"]
            assert (optimizer["learn_rate"], optimizer["warmup_steps"], optimizer["schedule"]) == (rate, 2500, "linear")
            assert [optimizer[key] for key in ("beta1", "beta2", "eps", "weight_decay", "grad_clip")] == [
                0.9, 0.999, 1e-6, 0.01, 0.0
            ]  # fmt: skip
            assert not optimizer["bias_correction"]


@pytest.mark.parametrize(
    ("changes", "there", "absent"),
    [
        ({"task.words": None, "task.entities": 0.3, "task.entity_aware": False}, "entity_head", "lm_head"),
        ({"task.entities": None}, "lm_head", "entity_head"),
        ({"task.pages": True}, "entity_head", "page_head"),
        ({"task.sampling": {"negatives": 5}}, "entity_head", "page_head"),
        ({"task.sampling": {"negatives": 5, "sparse": True}, "task.pages": True}, "entity_head", "page_head"),
    ],
    ids=["entities alone", "words alone", "pages", "sampled", "sparse"],
)
def test_other_tasks(folder, tmp_path, changes, there, absent):
    changes = {**SHORT, **changes}
    if "task.entities" in changes and changes["task.entities"] is None:
        changes["stages.new.optimizer.frozen"] = ["^encoder[.]"]
    config = read_config(folder, **{k: x for k, x in changes.items() if k != "task.sampling"})
    config["task"]["sampling"] = changes.get("task.sampling")
    if "sparse" in changes.get("task.sampling", ()):
        with pytest.raises(ValueError, match=r"task.sampling.sparse needs bias_correction = false"):
            pretrain_luke(config, tmp_path / "none", progress=False)
        for stage in config["stages"].values():
            stage["optimizer"]["bias_correction"] = False
    trained = pretrain_luke(config, tmp_path / "run", progress=False)
    assert any(name.startswith(there) for name in trained.tensors)
    assert not any(name.startswith(absent) for name in trained.tensors)
    read_checkpoint(tmp_path / "run/model", entities="special")
    figures = {"task.words": "mlm", "task.entities": "entity"}
    gone = [name for key, name in figures.items() if key in changes and changes[key] is None]
    for report in reports(tmp_path / "run/all"):
        assert not set(gone) & set(report)
        assert ("page" in report) == ("task.pages" in changes)


def test_vectors_of_titles_without_entities(folder, tmp_path):
    """As configs/pretrain_small.cfg says it: --task.entities null, with its vectors of titles."""
    changes = {**SHORT, "paths.vectors": "titles", "task.entities": None}
    pretrain_luke(read_config(folder, **changes), tmp_path / "run", progress=False)
    assert all("mlm" in report and "entity" not in report for report in reports(tmp_path / "run/all"))
    assert not (tmp_path / "run/titles").exists()


def test_vectors_of_titles(folder, tmp_path, monkeypatch):
    """Of the encoder's width; made once, where the model is trained, also for a run that goes on."""
    asked = []
    make = lambda started, gpu_id: asked.append(gpu_id) or TextEncoder(started, gpu_id=gpu_id)  # noqa: E731
    monkeypatch.setattr(job, "TextEncoder", make)
    write_huggingface(make_checkpoint(entity_aware=False, entity_size=32), tmp_path / "wide")
    changes = {**SHORT, "paths.vectors": "titles", "paths.weights": str(tmp_path / "wide")}
    changes |= {f"stages.{stage}.optimizer.frozen": ["entities[.]table"] for stage in ("new", "all")}
    trained = pretrain_luke(read_config(folder, **changes), tmp_path / "run", progress=False)
    assert "20 of 23 entities began as vectors of titles" in trained.report
    store = EntityVectors.open(tmp_path / "run/titles")
    encoder = TextEncoder(read_checkpoint(tmp_path / "wide"))
    assert store.gather(store.rows(["E7"])) == pytest.approx(encoder.encode(["E7"]), abs=1e-5)
    table = trained.tensors["encoder.entities.table.weight"]
    assert table[trained.entities.row("E7")].tolist() == pytest.approx(encoder.encode(["E7"])[0], abs=1e-5)
    before = state(tmp_path / "run")
    pretrain_luke(read_config(folder, **changes), tmp_path / "run", resume=True, progress=False)
    assert state(tmp_path / "run") == before
    assert asked == [-1]


def test_a_frozen_entity_table(folder, tmp_path):
    """With vectors of its own that stay as they are."""
    frozen = ["entities[.]table"]
    changes = {**SHORT, "stages.all.optimizer.frozen": frozen, "stages.new.optimizer.frozen": [*frozen, "words"]}
    pretrain_luke(read_config(folder, **changes), tmp_path / "run", progress=False)
    first, last = (
        load_file(tmp_path / "run" / stage / "resume/model.safetensors")["encoder.entities.table.weight"]
        for stage in ("new", "all")
    )
    assert torch.equal(first, last)


def test_spacy_loggers(folder, tmp_path):
    """They get the figures of the reports."""
    path = tmp_path / "log.jsonl"
    config = read_config(folder, **SHORT)
    config["training"]["stages"], config["stages"] = ["all"], {"all": config["stages"]["all"]}
    config["training"]["logger"] = {
        "@loggers": "spacy.ConsoleLogger.v3",
        "console_output": False,
        "output_file": str(path),
    }
    pretrain_luke(config, tmp_path / "run", progress=False)
    lines, own = [json.loads(x) for x in path.read_text("utf8").splitlines()], reports(tmp_path / "run/all")
    assert [x["step"] for x in lines] == [x["step"] for x in own]
    for line, report in zip(lines, own, strict=True):
        assert line["losses"] == pytest.approx({name: report[name] for name in ("mlm", "entity")})
        assert line["scores"]["entity_acc"] == pytest.approx(100 * (report["entity_acc"] or 0.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stages.all.max_steps": 0}, "max_steps must be a whole number from 1"),
        ({"stages.all.optimizer.schedule": "cosine"}, "schedule must be one of"),
        ({"task.words": 2.0}, "share of words to mask must be"),
        ({"training.stages": ["all"]}, r"training.stages must name each of \['all', 'new'\] once"),
        ({"training.parallel": "tpu"}, "parallel must be one of"),
        ({"corpora.train.held_out": 1}, "and held_out from 2"),
        ({"task.words": None, "task.entities": None}, "both are None"),
        ({"task.entities": None, "task.pages": True}, "only learns with masked entities"),
        (
            {"task.entities": None, "stages.new.optimizer.frozen": ["^encoder[.]", "^lm_head[.]"]},
            r"Expected a stage that learns something, but its patterns frozen = ",
        ),
        ({"stages.new.optimizer.frozen": ["nothing"]}, r"No parameter has a name that \['nothing'\] finds"),
    ],
)
def test_what_is_refused(folder, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        pretrain_luke(read_config(folder, **changes), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_unknown_settings_and_sections(folder, tmp_path):
    for section, name, message in (
        ("training", "max_step", r"training\.max_step: there is no such setting"),
        ("task", "word", r"task\.word: there is no such setting\. Is words meant\?"),
    ):
        config = read_config(folder)
        config[section][name] = 3
        with pytest.raises(ValueError, match=message):
            pretrain_luke(config, tmp_path / "run", progress=False)
    config = read_config(folder)
    config["pretraining"] = config.pop("training")
    with pytest.raises(ValueError, match=r"must have the sections .* but this one has"):
        pretrain_luke(config, tmp_path / "run", progress=False)


def test_shards_of_another_tokenizer(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for file in (folder / "shards").iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    change_manifest(other, tokenizer="0" * 64)
    with pytest.raises(ValueError, match="were made with another tokenizer"):
        pretrain_luke(read_config(folder, **{"paths.shards": str(other)}), tmp_path / "run", progress=False)


def test_the_command_says_what_is_wrong(folder, tmp_path, whole):
    arguments = ["luke", "pretrain", str(SMALL), *as_arguments(overrides(folder))]
    result = CliRunner().invoke(app, [*arguments, "-o", str(whole)])
    assert result.exit_code == 1
    assert "has the state of an earlier run" in " ".join(result.output.split())
    result = CliRunner().invoke(app, [*arguments, "-o", str(whole), "--resume", "--system.seed", "9"])
    assert result.exit_code == 1
    assert "other settings or data" in " ".join(result.output.split())


def make_example(nlp):
    """With all that a component learns."""
    doc = nlp.make_doc("Ada lived in London .")
    doc.set_ents([Span(doc, 0, 1, "PER", kb_id="E1"), Span(doc, 3, 4, "LOC", kb_id="E2")])
    doc.spans["luke_types"] = [Span(doc, 0, 1, "person")]
    set_relations(doc, [(*doc.ents, "lives_in")])
    set_candidates_given(doc, [(e.start_char, e.end_char, [("E1", 0.5), ("E2", 0.4)]) for e in doc.ents])
    doc._.luke_questions = [{"question": "Who lived in London?", "answers": [[0, 3]], "entities": [[13, 19, "E2"]]}]
    doc._.luke_queries = [{"query": "@placeholder lived", "candidates": [[0, 3], [13, 19]], "answers": [[0, 3]]}]
    return Example(copy_given(doc, nlp.vocab, links=True, questions=True), doc)


COMPONENTS = {
    **{name: {"overlap": 40} for name in ("luke_ner", "luke_typer", "luke_relation", "luke_linker")},
    "luke_encoder": {},
    "luke_cloze": {"stride": 16},
    "luke_qa": {"stride": 16, "max_question_pieces": 28, "max_answer_pieces": 20},
}


@pytest.mark.parametrize("name", COMPONENTS)
def test_components_load_it(whole, name):
    """The linker with the entities of the pretraining as its own, and questions with those as input."""
    nlp = spacy.blank("en")
    component = nlp.add_pipe(name, config=COMPONENTS[name])
    example = make_example(nlp)
    entities = "all" if name in ("luke_linker", "luke_qa") else "special"
    options = {} if name == "luke_encoder" else {"seed": 0}
    component.initialize(
        lambda: [example], nlp=nlp, weights=lambda: read_checkpoint(whole / "model", entities=entities), **options
    )
    doc = nlp(example.predicted)
    if name == "luke_linker":
        assert {ent.kb_id_ for ent in doc.ents} <= {"E1", "E2"}
    if name == "luke_qa":
        assert len(doc._.luke_answers) == 1
        question = doc._.luke_questions[0]
        linked = component.answer(doc, question)
        assert linked.score != component.answer(doc, question["question"]).score  # the pretrained entity is read
    if name == "luke_cloze":
        assert len(doc._.luke_fillers[0].spans) == 2


def test_a_torch_without_fsdp(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.distributed.fsdp", None)
    with pytest.raises(ImportError, match=r'training.parallel = "fsdp" needs torch 2.6 or later, but this is '):
        Processes(0, 2, "fsdp").wrap(torch.nn.Linear(1, 1))
