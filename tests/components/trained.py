"""A training config for the tiny luke_ner of conftest, and runs of it."""

import os

import spacy
from spacy.cli.init_config import fill_config
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.util import load_config

from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.training import loop
from tests.tiny import make_checkpoint

CONFIG = """
[paths]
train = null
dev = ${paths.train}
checkpoint = null

[nlp]
lang = "en"
pipeline = ["luke_ner"]

[components]

[components.luke_ner]
factory = "luke_ner"
overlap = 32
max_span_words = 3

[components.luke_ner.model]
@architectures = "spacy-luke.SpanClassifier.v1"
attention = "one_way"

[components.luke_ner.model.encoder]
@architectures = "spacy-luke.LukeEncoder.v1"
train_precision = "float32"

[corpora]

[corpora.train]
@readers = "spacy.Corpus.v1"
path = ${paths.train}

[corpora.train.augmenter]
@augmenters = "spacy.lower_case.v1"
level = 0.5

[corpora.dev]
@readers = "spacy.Corpus.v1"
path = ${paths.dev}

[training]
seed = 3
dropout = 0.1
accumulate_gradient = 2
patience = 0
max_epochs = 0
max_steps = 9
eval_frequency = 3

[training.batcher]
@batchers = "spacy.batch_by_sequence.v1"
size = 3

[training.optimizer]
@optimizers = "spacy-luke.AdamW.v1"
grad_clip = 1.0
layer_decay = 0.9

[training.optimizer.learn_rate]
@schedules = "warmup_linear.v1"
warmup_steps = 3
total_steps = 12
initial_rate = 0.003

[initialize]

[initialize.components]

[initialize.components.luke_ner]

[initialize.components.luke_ner.weights]
@misc = "spacy-luke.checkpoint.v1"
path = ${paths.checkpoint}
"""


def write_config(folder, docs):
    """In a folder, with data and weights beside it; complete."""
    DocBin(docs=docs(spacy.blank("en"))).to_disk(folder / "train.spacy")
    write_huggingface(make_checkpoint(), folder / "checkpoint")
    paths = {"train = null": folder / "train.spacy", "checkpoint = null": folder / "checkpoint"}
    text = CONFIG
    for line, path in paths.items():
        text = text.replace(line, f'{line.split(" = ")[0]} = "{path}"')
    (folder / "base.cfg").write_text(text)
    fill_config(folder / "config.cfg", folder / "base.cfg", silent=True)
    return folder / "config.cfg"


def start(config_path, **overrides):
    config = load_config(config_path, overrides={key.replace("__", "."): x for key, x in overrides.items()})
    return init_nlp(config)


def quiet(nlp, output, **settings):
    with open(os.devnull, "w") as null:
        return loop.train(nlp, output, **{"stdout": null, "stderr": null, **settings})
