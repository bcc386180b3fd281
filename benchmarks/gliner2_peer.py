"""GLiNER2 (Zaratiana et al., 2025) as a spaCy pipeline, with random weights of its base size.

Its checkpoints are on the Hugging Face hub alone. Here is the encoder of DeBERTa-v3-base's size that
`fastino/gliner2-base-v1` has, with MiniLM's pieces in the place of its own: speed depends on sizes, and what is found
means nothing. `pip install --no-deps gliner2`, on top of this package's environment.
"""

import os
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import Any

import spacy
from measuring import MINILM
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from spacy_luke.checkpoint.sources import find_source

LABELS = ["person", "organization", "location"]
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
DEBERTA = {
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": ["p2c", "c2p"],
    "type_vocab_size": 0,
    "position_biased_input": False,
}


def load_gliner2() -> Language | None:
    """None where the package is not installed."""
    if find_spec("gliner2") is None:
        return None
    if not Language.has_factory("gliner2"):
        Language.factory("gliner2", func=Gliner2)
    nlp = spacy.blank("en")
    nlp.add_pipe("gliner2")
    return nlp


class Gliner2:
    """Finds LABELS in the texts of Docs, eight at a time; they are not written into the Docs."""

    def __init__(self, nlp: Language, name: str) -> None:
        os.environ.update(HF_HUB_OFFLINE="1")
        from gliner2 import GLiNER2
        from gliner2.configuration import ExtractorConfig
        from transformers import AutoTokenizer, DebertaV2Config

        tokenizer = AutoTokenizer.from_pretrained(find_source(MINILM))
        encoder = DebertaV2Config(vocab_size=len(tokenizer), **BASE, **DEBERTA)
        config = ExtractorConfig(model_name="random", max_width=8, counting_layer="count_lstm")
        self.model: Any = GLiNER2(config, encoder_config=encoder, tokenizer=tokenizer).eval()

    def __call__(self, doc: Doc) -> Doc:
        return next(iter(self.pipe([doc])))

    def pipe(self, docs: Iterable[Doc], *, batch_size: int = 8) -> Iterator[Doc]:
        for some in minibatch(docs, 8):
            self.model.batch_extract_entities([doc.text for doc in some], LABELS, batch_size=8)
            yield from some
