"""Configs that train tiny pipelines, complete and in files; and runs of them."""

import os
from pathlib import Path
from typing import Any

import spacy
from spacy.cli.init_config import fill_config
from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.util import load_config
from thinc.api import Config

from spacy_luke.checkpoint.export import write_huggingface
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.training import loop
from tests.components.recognised import gold_docs
from tests.tiny import make_checkpoint

STOCK_READER = {"@readers": "spacy.Corpus.v1"}
LUKE_NER = {
    "overlap": 32,
    "max_span_words": 3,
    "model": {
        "@architectures": "spacy-luke.SpanClassifier.v1",
        "encoder": {"@architectures": "spacy-luke.LukeEncoder.v1", "train_precision": "float32"},
    },
}


def write_config(
    path: Path,
    components: dict[str, dict[str, Any]],
    *,
    train: Path,
    checkpoint: Path,
    reader: dict[str, Any] = STOCK_READER,
    augmenter: dict[str, Any] | None = None,
    learn_rate: Any = 0.003,
    optimizer: dict[str, Any] | None = None,
    **training: Any,
) -> Path:
    """components: settings by the name of the factory; the first one starts from the checkpoint. train: the documents,
    for evaluation too. optimizer, training: settings besides those of a few small steps."""
    corpus = {**reader, "path": "${paths.train}", **({"augmenter": augmenter} if augmenter else {})}
    weights = {"@misc": "spacy-luke.checkpoint.v1", "path": "${paths.checkpoint}"}
    config = Config(
        {
            "paths": {"train": str(train), "dev": "${paths.train}", "checkpoint": str(checkpoint)},
            "nlp": {"lang": "en", "pipeline": list(components)},
            "components": {name: {"factory": name, **settings} for name, settings in components.items()},
            "corpora": {"train": corpus, "dev": {**reader, "path": "${paths.dev}"}},
            "training": {
                "seed": 3,
                "patience": 0,
                "max_epochs": 0,
                "optimizer": {"@optimizers": "spacy-luke.AdamW.v1", "learn_rate": learn_rate, **(optimizer or {})},
                **training,
            },
            "initialize": {"components": {next(iter(components)): {"weights": weights}}},
        }
    )
    base = path.with_name(f"{path.stem}_base.cfg")
    config.to_disk(base)
    fill_config(path, base, silent=True)
    return path


def write_ner_training(path: Path) -> Path:
    """A config of luke_ner, and beside it gold that 80 steps learn by heart, and a checkpoint."""
    folder = path.parent
    write_docbin(gold_docs(spacy.blank("en")), folder / "gold.spacy")
    write_huggingface(make_checkpoint(), folder / "checkpoint")
    return write_config(
        path,
        {"luke_ner": LUKE_NER},
        train=folder / "gold.spacy",
        checkpoint=folder / "checkpoint",
        max_steps=80,
        eval_frequency=40,
        dropout=0.0,
    )


def start(config_path: Path, **overrides: Any) -> Language:
    """The initialised pipeline of a config. overrides: training__max_steps=3 and the like."""
    config = load_config(config_path, overrides={key.replace("__", "."): x for key, x in overrides.items()})
    return init_nlp(config)


def quiet(nlp: Language, output: Path, **settings: Any) -> Any:
    """A training that says nothing."""
    with open(os.devnull, "w", encoding="utf8") as null:
        return loop.train(nlp, output, **{"stdout": null, "stderr": null, **settings})
