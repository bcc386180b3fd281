"""What the models have in common: heads ask of an encoder what it can."""

import pytest

from spacy_luke.architectures.entity_classifier import create_entity_head
from spacy_luke.architectures.extractive_qa import build_extractive_qa, create_answer_head
from spacy_luke.architectures.pooled_classifier import build_pooled_classifier
from spacy_luke.architectures.span_classifier import build_span_classifier, create_span_head
from spacy_luke.encoders.ernie_kind import build_ernie_encoder
from spacy_luke.encoders.kind import Needs
from spacy_luke.encoders.luke_kind import build_luke_encoder
from spacy_luke.encoders.nodes import encoder_of
from tests.tiny import make_checkpoint, make_ernie


@pytest.mark.parametrize(
    ("build", "create", "encoder", "weights", "message"),
    [
        (build_span_classifier, lambda x: create_span_head(x, 3), build_ernie_encoder, make_ernie, "entity tokens"),
        (build_extractive_qa, create_answer_head, build_ernie_encoder, make_ernie, "entity tokens"),
        (
            build_pooled_classifier,
            lambda x: create_entity_head(x, 3, states=1),
            build_luke_encoder,
            make_checkpoint,
            "the pooled state of a window",
        ),
    ],
    ids=["spans", "answers", "pooled"],
)
def test_a_head_says_what_its_encoder_lacks(build, create, encoder, weights, message):
    model = build(encoder())
    shim = encoder_of(model.layers[0])
    shim.kind.load(shim, weights(), Needs(["[MASK]"]))
    with pytest.raises(ValueError, match=f"{message}, which its encoder does not give: it is {shim.kind.title}"):
        create(model)
