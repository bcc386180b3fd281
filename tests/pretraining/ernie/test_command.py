"""`spacy luke pretrain-ernie`: both configs train, a killed run goes on to the same bits, and what is refused."""

import json
import random
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from spacy.cli._util import app
from spacy.util import load_config
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.checkpoint.ernie import read_ernie, write_ernie
from spacy_luke.distributed.processes import Processes
from spacy_luke.pretraining import loop
from spacy_luke.pretraining.ernie.job import pretrain_ernie
from spacy_luke.pretraining.saving import read_model
from spacy_luke.vectors.store import EntityVectors
from tests.forked import run_together
from tests.pretraining.runs import as_arguments, kill_at, reports
from tests.tiny import make_fresh_ernie, make_wordpiece

CONFIGS = Path(__file__).parents[3] / "configs"
SMALL, LARGE = CONFIGS / "ernie_pretrain_small.cfg", CONFIGS / "ernie_pretrain.cfg"
NAMES = [f"Q{i}" for i in range(9)]
STEPS = 60


def write_corpus(path, *, documents, seed=0):
    """Lines of JSON: words of letters, every third one an entity."""
    rng = random.Random(seed)
    with path.open("w", encoding="utf8") as file:
        for _ in range(documents):
            words, entities, at = [], [], 0
            for i in range(rng.randint(6, 40)):
                word = "." if i % 6 == 5 else "".join(rng.choices("abcdef", k=rng.randint(1, 4)))
                if i % 3 == 0:
                    entities.append([at, at + len(word), rng.choice(NAMES)])
                words.append(word)
                at += len(word) + 1
            file.write(json.dumps({"text": " ".join(words), "entities": entities}) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_vectors):
    """A tiny ERNIE, vectors, a corpus, and the same words as pieces."""
    folder = tmp_path_factory.mktemp("pretrain")
    write_ernie(make_fresh_ernie(12), folder / "tiny")
    make_vectors(NAMES).save(folder / "vectors")
    write_corpus(folder / "train.jsonl", documents=12)
    write_corpus(folder / "dev.jsonl", documents=5, seed=1)
    rng = random.Random(0)
    with (folder / "x_token").open("w") as tokens, (folder / "x_entity").open("w") as entities:
        for _ in range(15):
            sizes = [rng.randint(2, 9) for _ in range(4)]
            for file, draw in ((tokens, lambda: rng.randint(5, 31)), (entities, lambda: rng.choice([*NAMES, "#UNK#"]))):
                parts = [str(x) for size in sizes for x in (size, *(draw() for _ in range(size)))]
                file.write("\t".join([str(len(sizes)), *parts]) + "\n")
    return folder


def overrides(folder, path=LARGE):
    settings = {
        "paths.weights": str(folder / "tiny"),
        "paths.vectors": str(folder / "vectors"),
        "model.layer_kinds": None,
        "training.max_steps": STEPS,
        "training.batch_size": 4,
        "training.step_batches": 2,
        "training.precision": "float32",
        "training.log_every": 1,
        "training.save_every": 4,
        "training.eval_every": 20,
        "training.optimizer.warmup_steps": 5,
        "training.optimizer.learn_rate": 0.01,
        "corpora.train.block": 5,
    }
    for part in ("train", "dev"):
        settings |= {f"corpora.{part}.max_pieces": 24, f"corpora.{part}.min_entities": 1}
    if path == SMALL:
        return settings | {"paths.pieces": str(folder / "x")}
    return settings | {"paths.documents": str(folder / "train.jsonl"), "paths.dev": str(folder / "dev.jsonl")}


def read_config(folder, path=LARGE, **changes):
    return load_config(path, overrides={**overrides(folder, path), **changes}, interpolate=True)


@pytest.fixture(scope="module")
def whole(folder):
    """An uninterrupted run."""
    pretrain_ernie(read_config(folder), folder / "whole", progress=False)
    return folder / "whole"


@pytest.mark.slow
def test_it_learns(whole):
    """Entities of held-out text: far above chance, since the vectors of those that were kept show through."""
    *_, last = reports(whole)
    assert last["step"] == STEPS
    assert last["dev_dea_acc_kept"] > 0.6 > 3 * last["dev_dea_chance"]
    assert last["dea"] < 0.7 * reports(whole)[0]["dea"]


def test_what_is_written(whole, folder):
    read = read_ernie(whole / "model")
    assert (read.task, read.config.layer_kinds) == ("pretraining", ("sim", "mix", "norm"))
    assert len(read.tokenizer) == len(make_wordpiece())
    before = read_ernie(folder / "tiny")
    assert all(not torch.equal(before.tensors[name], x) for name, x in read.tensors.items() if "piece" in name)


@pytest.mark.slow
def test_kill_at_a_random_step(whole, folder, tmp_path):
    """kill -9, then --resume: the same parameters and reports as without, to the last bit."""
    step = random.SystemRandom().randint(3, STEPS - 15)
    command = [sys.executable, "-m", "spacy", "luke", "pretrain-ernie", str(LARGE), "--output", str(tmp_path / "run")]
    done = kill_at(
        step, [*command, *as_arguments(overrides(folder))], tmp_path / "run/metrics.jsonl", tmp_path / "errors"
    )
    assert not (tmp_path / "run/model").exists()
    has_state = any((tmp_path / "run" / name).exists() for name in ("resume", ".resume.old"))
    assert has_state or done <= 4, "the state is saved right after the report of step 4"
    pretrain_ernie(read_config(folder), tmp_path / "run", resume=has_state, progress=False)
    assert reports(tmp_path / "run") == reports(whole), f"killed after step {done}"
    name = "resume/model.safetensors"
    assert (tmp_path / "run" / name).read_bytes() == (whole / name).read_bytes(), f"killed after step {done}"
    ours, theirs = read_ernie(tmp_path / "run/model"), read_ernie(whole / "model")
    assert all(torch.equal(x, theirs.tensors[key]) for key, x in ours.tensors.items())


def test_the_small_config(folder, tmp_path):
    command = ["luke", "pretrain-ernie", str(SMALL), "-o", str(tmp_path / "run")]
    settings = {**overrides(folder, SMALL), "training.max_steps": 2, "training.eval_every": 1}
    del settings["training.precision"]
    settings["training.optimizer.group_rates"] = {}
    settings["model.layer_kinds"] = ["sim", "mix", "norm"]
    result = CliRunner().invoke(app, [*command, *as_arguments(settings)])
    assert result.exit_code == 0, result.output
    assert "entity mentions read" in result.output
    assert (tmp_path / "run/model/ernie_config.json").is_file()


@pytest.mark.parametrize("path", [SMALL, LARGE], ids=lambda path: path.stem)
def test_the_head_names_the_file(path):
    text = path.read_text(encoding="utf8")
    assert f"pretrain-ernie configs/{path.name}" in text.split("\n\n[")[0]
    assert sum(line.startswith("#") for line in text.splitlines()) > 20


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training.max_steps": 0}, "max_steps must be a whole number from 1"),
        ({"training.optimizer.schedule": "cosine"}, "schedule must be one of"),
        ({"task.candidates": "corpus"}, "candidates must be one of"),
        ({"corpora.train.max_pieces": 65, "corpora.dev.max_pieces": 65}, "windows of 65 pieces, but the encoder reads"),
        ({"paths.vectors": None}, "needs a checkpoint with its tokenizer's files, and entity vectors"),
    ],
)
def test_what_is_refused(folder, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        pretrain_ernie(read_config(folder, **changes), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_unknown_settings_and_sections(folder, tmp_path):
    config = read_config(folder)
    config["training"]["max_step"] = 3
    with pytest.raises(ValueError, match=r"training\.max_step: there is no such setting\. Is max_steps meant\?"):
        pretrain_ernie(config, tmp_path / "run", progress=False)
    config = read_config(folder)
    config["pretraining"] = config.pop("training")
    with pytest.raises(ValueError, match=r"must have the sections .* but this one has"):
        pretrain_ernie(config, tmp_path / "run", progress=False)


def test_vectors_of_another_width(folder, tmp_path, make_vectors):
    make_vectors(NAMES, size=10).save(tmp_path / "narrow")
    assert EntityVectors.open(tmp_path / "narrow").size == 10
    with pytest.raises(ValueError, match=r"takes entity vectors of 12 numbers, but those in .*narrow have 10"):
        pretrain_ernie(
            read_config(folder, **{"paths.vectors": str(tmp_path / "narrow")}), tmp_path / "run", progress=False
        )


def test_a_corpus_without_known_entities(folder, tmp_path, make_vectors):
    make_vectors(["other"]).save(tmp_path / "other")
    with pytest.raises(ValueError, match=r"gives no instance.*\(100.0%\) without a vector"):
        pretrain_ernie(
            read_config(folder, **{"paths.vectors": str(tmp_path / "other")}), tmp_path / "run", progress=False
        )


def test_the_command_says_what_is_wrong(folder, tmp_path):
    (tmp_path / "resume").mkdir()
    result = CliRunner().invoke(
        app, ["luke", "pretrain-ernie", str(LARGE), "-o", str(tmp_path), *as_arguments(overrides(folder)), "--resume"]
    )
    assert result.exit_code == 1
    assert "nothing to resume" in " ".join(result.output.split())


def write_without_dropout(path):
    started = make_fresh_ernie(12)
    write_ernie(replace(started, config=replace(started.config, dropout=0.0, attention_dropout=0.0)), path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_compiled_layers_that_are_computed_twice(folder, tmp_path, monkeypatch):
    """They learn what plain ones do, also after a stop. The graphs are run as they are, without a compiler of C++."""
    monkeypatch.setattr("torch.compile", partial(torch.compile, backend="eager"))
    torch._dynamo.reset()
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    write_without_dropout(tmp_path / "tiny")
    changes = {"training.max_steps": 3, "training.save_every": 2, "training.optimizer.learn_rate": 0.001}
    changes |= {"paths.weights": str(tmp_path / "tiny"), "training.optimizer.eps": 1e-3}
    changes["training.eval_every"] = 0
    pretrain_ernie(read_config(folder, **changes), tmp_path / "plain", progress=False)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == before
    changes |= {"training.compile": True, "training.recompute": True}
    pretrain_ernie(read_config(folder, **{**changes, "training.max_steps": 2}), tmp_path / "run", progress=False)
    pretrain_ernie(read_config(folder, **changes), tmp_path / "run", resume=True, progress=False)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > before
    for one, other in zip(reports(tmp_path / "run"), reports(tmp_path / "plain"), strict=True):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-5)


def train_one_of_two(config, output):
    """RETURNS: whether it wrote, and the instances that it made."""
    checkpoint, source = pretrain_ernie(config, output, progress=False)
    return checkpoint is not None, source.counts["instances"]


@pytest.mark.slow
@pytest.mark.parametrize(("parallel", "pieces"), [("ddp", 100), ("ddp", None), ("fsdp", None)])
def test_two_processes_are_one(folder, tmp_path, parallel, pieces):
    """A batch in each of two is two batches of one, and the settings are the same. They are stopped, and one goes on.
    pieces: batches have as many instances as fit."""
    write_without_dropout(tmp_path / "tiny")
    changes = {"paths.weights": str(tmp_path / "tiny"), "training.optimizer.eps": 1e-3, "training.eval_every": 4}
    changes |= {"training.max_steps": 6, "training.save_every": 2, "training.optimizer.learn_rate": 0.001}
    changes |= {} if pieces is None else {"training.batch_pieces": pieces}
    pretrain_ernie(read_config(folder, **changes), tmp_path / "one", progress=False)

    both = {"training.max_steps": 4, "training.parallel": parallel}
    config = read_config(folder, **changes | both)
    (wrote, made), (other_wrote, _) = run_together(train_one_of_two, config, tmp_path / "two", joined=False)
    assert (wrote, other_wrote) == (True, False)
    assert made > 0
    resumed = {**changes, "training.parallel": parallel}
    assert (tmp_path / "two/resume/divided").is_dir() == (parallel == "fsdp")
    pretrain_ernie(read_config(folder, **resumed), tmp_path / "two", resume=True, progress=False)
    for two, one in zip(reports(tmp_path / "two"), reports(tmp_path / "one"), strict=True):
        assert two == pytest.approx(one, rel=1e-4, abs=1e-5)
    two, one = (read_model(tmp_path / name / "resume") for name in ("two", "one"))
    assert max(float((two[name] - one[name]).abs().max()) for name in one) < 1e-5


@pytest.mark.slow
def test_one_begins_and_two_go_on_in_parts(folder, tmp_path):
    """From a whole state to one that is divided, and on in two of those; what is saved is what one process has."""
    write_without_dropout(tmp_path / "tiny")
    changes = {"paths.weights": str(tmp_path / "tiny"), "training.optimizer.eps": 1e-3, "training.save_every": 2}
    changes |= {"training.keep": 2, "training.eval_every": 0, "training.optimizer.learn_rate": 0.001}
    pretrain_ernie(read_config(folder, **changes, **{"training.max_steps": 6}), tmp_path / "one", progress=False)
    pretrain_ernie(read_config(folder, **changes, **{"training.max_steps": 2}), tmp_path / "two", progress=False)
    both = {**changes, "training.parallel": "fsdp"}
    for steps in (4, 6):
        config = read_config(folder, **both, **{"training.max_steps": steps})
        run_together(go_on_with_one_of_two, config, tmp_path / "two", joined=False)
    for two, one in zip(reports(tmp_path / "two"), reports(tmp_path / "one"), strict=True):
        assert two == pytest.approx(one, rel=1e-4, abs=1e-5)
    assert {x.name for x in (tmp_path / "two/states").iterdir()} == {"step-4", "step-6"}
    assert len(list((tmp_path / "two/states/step-4/divided").glob("*.distcp"))) == 2, "a file of each process"
    two, one = (read_model(tmp_path / name / "states/step-4") for name in ("two", "one"))
    assert set(two) == set(one)
    assert max(float((two[name] - one[name]).abs().max()) for name in one) < 1e-5


def go_on_with_one_of_two(config, output):
    pretrain_ernie(config, output, progress=False, resume=True)


def train_and_look(config, output):
    """RETURNS: the types of a layer's parameters during its passes, and of the gradients that a step is made of."""
    used, learned = set(), set()
    wrap, clip = Processes.wrap, loop.clip_gradients

    def wrap_and_watch(processes, model, dtype):
        wrapped = wrap(processes, model, dtype)
        linear = next(x for x in model.get_submodule("encoder.layers").modules() if isinstance(x, torch.nn.Linear))
        linear.register_forward_pre_hook(lambda module, _: used.add(module.weight.dtype))
        return wrapped

    def look_and_clip(model, most):
        learned.update(p.grad.dtype for p in model.parameters() if p.grad is not None)
        return clip(model, most)

    Processes.wrap, loop.clip_gradients = wrap_and_watch, look_and_clip
    pretrain_ernie(config, output, progress=False)
    return used, learned


@pytest.mark.slow
def test_parts_go_over_in_bfloat16(folder, tmp_path):
    """FSDP with mixed precision: what is learned is about that of one process in bfloat16, and kept in float32."""
    write_without_dropout(tmp_path / "tiny")
    changes = {"training.precision": "bfloat16", "training.max_steps": 4, "training.optimizer.learn_rate": 0.001}
    changes |= {"paths.weights": str(tmp_path / "tiny"), "training.optimizer.eps": 1e-3}
    pretrain_ernie(read_config(folder, **changes), tmp_path / "one", progress=False)
    both = {**changes, "training.parallel": "fsdp"}
    seen = run_together(train_and_look, read_config(folder, **both), tmp_path / "two", joined=False)
    assert seen == [({torch.bfloat16}, {torch.float32})] * 2
    for two, one in zip(reports(tmp_path / "two"), reports(tmp_path / "one"), strict=True):
        for name in ("mlm", "dea"):
            assert two[name] == pytest.approx(one[name], rel=0.05), name
    assert {x.dtype for x in read_model(tmp_path / "two/resume").values()} == {torch.float32}
