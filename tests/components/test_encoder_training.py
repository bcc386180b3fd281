"""`luke_encoder` in a training from a config: spaCy's own loop, and ours with resume."""

import pytest
import spacy
from spacy.cli.train import train as spacy_train
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.util import load_config

from spacy_luke.checkpoint.checkpoint import write_huggingface
from tests.components.related import gold_doc
from tests.components.sharing import (
    SHARED,
    equal,
    state,
)
from tests.tiny import make_checkpoint
from tests.training_config import quiet, write_config
from tests.training_config import start as start_training


@pytest.fixture(scope="module")
def config_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    nlp = spacy.blank("en")
    DocBin(docs=[gold_doc(nlp, i) for i in range(4)], store_user_data=True).to_disk(folder / "train.spacy")
    write_huggingface(make_checkpoint(), folder / "checkpoint")
    classifier = {"@architectures": "spacy-luke.EntityClassifier.v1", "encoder": SHARED}
    components = {name: {"overlap": 32, "model": classifier} for name in ("luke_typer", "luke_relation")}
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "train_precision": "float32"}
    return write_config(
        folder / "config.cfg",
        {"luke_encoder": {"model": encoder}, **components},
        train=folder / "train.spacy",
        checkpoint=folder / "checkpoint",
        reader={"@readers": "spacy-luke.GoldCorpus.v1", "entities": True},
        dropout=0.1,
        accumulate_gradient=2,
        max_steps=4,
        eval_frequency=2,
        frozen_components=[],
    )


@pytest.mark.product
@pytest.mark.parametrize("frozen", ["", "trainable", "sourced"])
@pytest.mark.parametrize("optimizer", ["spacy-luke.AdamW.v1", "Adam.v1"])
def test_spacy_train(config_path, tmp_path, capsys, optimizer, frozen):
    """spaCy's own loop; what is frozen is bit-identical on disk."""
    config = load_config(config_path)
    config["training"]["optimizer"] = {"@optimizers": optimizer}
    if frozen == "trainable":
        config["components"]["luke_encoder"]["model"]["trainable"] = False
    if frozen == "sourced":
        init_nlp(load_config(config_path)).to_disk(tmp_path / "source")
        config["components"]["luke_encoder"] = {"source": str(tmp_path / "source")}
        config["training"]["frozen_components"] = ["luke_encoder"]
    config.to_disk(tmp_path / "config.cfg")
    first = state(init_nlp(load_config(tmp_path / "config.cfg")).get_pipe("luke_encoder").encoder)
    spacy_train(tmp_path / "config.cfg", tmp_path / "out")
    capsys.readouterr()
    nlp = spacy.load(tmp_path / "out/model-last")
    assert equal(first, state(nlp.get_pipe("luke_encoder").encoder)) == bool(frozen)
    assert {"types_micro_f", "relations_f", "luke_typer_loss", "luke_relation_loss"} <= set(nlp.meta["performance"])


def test_frozen_before_it_is_initialised(config_path):
    config = load_config(config_path)
    config["training"]["frozen_components"] = ["luke_encoder"]
    with pytest.raises(ValueError, match=r"is 'luke_encoder' in frozen_components\?.*set trainable = false in"):
        init_nlp(config)


@pytest.mark.slow
def test_exact_resume(config_path, tmp_path):
    """`spacy luke train` with a shared encoder: stopped and resumed, bit for bit the same."""

    def run(folder, steps, **settings):
        quiet(start_training(config_path, training__max_steps=steps), folder, **settings)
        return {x.parent.name: x.read_bytes() for x in (folder / "model-last").rglob("model.safetensors")}

    whole = run(tmp_path / "whole", steps=4)
    run(tmp_path / "parts", steps=2)
    assert run(tmp_path / "parts", steps=4, resume=True) == whole
