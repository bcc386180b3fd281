"""A further family of encoders is a kind and the function that builds its node: nothing else asks what it is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import spacy
import torch
from spacy.training import Example
from spacy.util import registry
from torch import nn

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.bridge.wrapper import to_tensor
from spacy_luke.checkpoint.contents import Checkpoint
from spacy_luke.encoders.kind import EncoderKind, Needs, encoder_tensors, fill_encoder
from spacy_luke.encoders.luke_kind import Luke
from spacy_luke.encoders.nodes import build_shared_encoder, encoder_of, make_encoder
from spacy_luke.model.config import TransformerConfig
from spacy_luke.model.luke import Encoder, Windows
from tests.tiny import SENTENCES, make_checkpoint, make_wordpiece

WIDTH = 16


class BagEncoder(Encoder):
    """The state of a piece is its own."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        self.piece = nn.Embedding(config.vocab_size, config.hidden_size)

    def word_states(self, windows: Windows) -> torch.Tensor:
        return self.piece(windows.pieces_N)


@dataclass
class BagCheckpoint(Checkpoint):
    kind: ClassVar[str] = "bag"


class Bag(EncoderKind[BagEncoder, BagCheckpoint]):
    name = "bag"
    title = "a bag"
    architecture = "tests.BagEncoder.v1"
    loader = "tests.bag_checkpoint.v1"
    pair_task = "pairs"

    def build(self, settings: dict[str, Any]) -> BagEncoder:
        return BagEncoder(TransformerConfig.from_dict(settings["config"]))

    def load(self, shim, checkpoint: BagCheckpoint, needs: Needs) -> None:
        shim.create({"config": checkpoint.config.to_dict()})
        fill_encoder(shim, checkpoint.tensors)
        shim.texts = {"tokenizer": checkpoint.tokenizer.to_json()}

    def to_checkpoint(self, shim, tokenizer) -> BagCheckpoint:
        config = TransformerConfig.from_dict(shim.settings["config"])
        return BagCheckpoint(config, encoder_tensors(shim), tokenizer=tokenizer)

    def write(self, checkpoint: BagCheckpoint, folder: Path) -> None:
        raise NotImplementedError

    def word_states(self, shim, batch) -> torch.Tensor:
        return shim.module.word_states(Windows(to_tensor(batch.pieces_N, shim.device), batch.lengths))


@registry.architectures("tests.BagEncoder.v1")
def build_bag_encoder(trainable: bool = True):
    return make_encoder(Bag(), trainable=trainable, train_precision="float32", predict_precision="float32")


def make_bag() -> BagCheckpoint:
    tokenizer = make_wordpiece()
    config = TransformerConfig(len(tokenizer), hidden_size=WIDTH, num_layers=1, num_heads=1, max_positions=40)
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(len(tokenizer), WIDTH, generator=generator)
    return BagCheckpoint(config, {"encoder.piece.weight": table}, tokenizer=tokenizer)


def make_pipeline():
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_encoder", config={"model": {"@architectures": "tests.BagEncoder.v1"}, "overlap": 8})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": WIDTH, "upstream": "*"}
    nlp.add_pipe("tagger", config={"model": {"tok2vec": listener}})
    docs = [nlp.make_doc(text) for text in SENTENCES]
    examples = [
        Example.from_dict(doc, {"tags": ["NAME" if word.text[0].isupper() else "WORD" for word in doc]}) for doc in docs
    ]
    nlp.get_pipe("luke_encoder").load_encoder(make_bag())
    nlp.initialize(lambda: examples)
    return nlp, examples


def test_a_further_family_learns_and_is_kept(tmp_path):
    nlp, examples = make_pipeline()
    owner = nlp.get_pipe("luke_encoder")
    before = owner.encoder.module.piece.weight.detach().clone()
    nlp.update(examples, sgd=make_adamw(learn_rate=1e-2))
    assert not torch.equal(before, owner.encoder.module.piece.weight)
    assert owner.fixed["encoder"] == "bag"
    nlp.to_disk(tmp_path)
    doc, again = nlp(SENTENCES[0]), spacy.load(tmp_path)(SENTENCES[0])
    np.testing.assert_array_equal(again.tensor, doc.tensor)
    assert [word.tag_ for word in again] == [word.tag_ for word in doc]
    written = owner.to_checkpoint()
    assert torch.equal(written.tensors["encoder.piece.weight"], owner.encoder.module.piece.weight.detach())


def test_what_a_family_lacks():
    owner = make_pipeline()[0].get_pipe("luke_encoder")
    assert owner.special_rows("[MASK]", "[MASK2]") == []
    assert owner.known is None
    with pytest.raises(ValueError, match=r"is a bag's \(tests.BagEncoder.v1\), but .* kind 'luke'. Expected tests.bag"):
        owner.load_encoder(make_checkpoint())


def test_a_stand_in_has_no_kind_before_it_is_linked():
    shim = encoder_of(build_shared_encoder())
    with pytest.raises(ValueError, match="no luke_encoder stands before it"):
        _ = shim.kind
    shim.family = Luke()
    assert shim.kind.has_entity_tokens
