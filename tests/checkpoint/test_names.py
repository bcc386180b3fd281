import pytest
import torch

from spacy_luke.checkpoint.families import BERT
from spacy_luke.checkpoint.names import (
    PLAIN_DROPPED,
    archive_names,
    encoder_shapes,
    extra_queries,
    find_root,
    head_shapes,
    luke_names,
    sort_names,
)
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.luke import LukeEncoder

SIZES = {
    "vocab_size": 11,
    "entity_vocab_size": 7,
    "hidden_size": 8,
    "num_layers": 2,
    "num_heads": 2,
    "intermediate_size": 10,
    "max_positions": 12,
}
CONFIGS = [
    LukeConfig(**SIZES, entity_size=entity_size, entity_aware=entity_aware)
    for entity_size in (6, 8)
    for entity_aware in (True, False)
]


@pytest.mark.parametrize("config", CONFIGS)
def test_our_column_is_the_encoder(config):
    state = {f"encoder.{name}": tuple(value.shape) for name, value in LukeEncoder(config).state_dict().items()}
    assert encoder_shapes(config) == state
    names = set(luke_names(config, root="luke.").values())
    heads = {name for head in head_shapes(config).values() for name in head}
    tasks = {"head.classifier.weight", "head.classifier.bias", "head.qa_outputs.weight", "head.qa_outputs.bias"}
    assert names == set(state) | heads | tasks


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(
    "task",
    [
        "LukeModel",
        "LukeForMaskedLM",
        "LukeForEntityClassification",
        "LukeForEntityPairClassification",
        "LukeForEntitySpanClassification",
        "LukeForQuestionAnswering",
        "LukeForTokenClassification",
        "LukeForSequenceClassification",
    ],
)
def test_their_column_is_hugging_face(config, task):
    """Every name of the real classes has a place, and between them they use every name of the table."""
    transformers = pytest.importorskip("transformers")
    theirs = transformers.LukeConfig(
        vocab_size=11,
        entity_vocab_size=7,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=10,
        max_position_embeddings=12,
        type_vocab_size=1,
        entity_emb_size=config.entity_size,
        use_entity_aware_attention=config.entity_aware,
    )
    state = getattr(transformers, task)(theirs).state_dict()
    table = luke_names(config, root=find_root(state, ("luke.", "")))
    names = sort_names(state, table, entity_aware=config.entity_aware)
    shapes = encoder_shapes(config)
    for head in head_shapes(config).values():
        shapes.update(head)
    assert set(encoder_shapes(config)) <= set(names.mapped)
    for ours, name in names.mapped.items():
        if ours in shapes:
            assert tuple(state[name].shape) == shapes[ours]
    assert all(name.endswith(("position_ids", "token_type_ids")) for name in names.dropped)
    assert set(names.tied) <= {"lm_head.decoder.weight", "lm_head.decoder.bias", "entity_predictions.decoder.weight"}
    if task == "LukeForMaskedLM":
        assert {*head_shapes(config)["lm_head"], *head_shapes(config)["entity_head"]} <= set(names.mapped)


@pytest.mark.parametrize("config", CONFIGS)
def test_tables_are_one_to_one(config):
    for table in (
        luke_names(config, root="luke."),
        luke_names(config, root=""),
        BERT.known_names(config, root="bert."),
    ):
        ours = [name for name in table.values() if not name.startswith("lm_head")]
        assert len(set(ours)) == len(ours)
    assert set(archive_names(config)) > set(luke_names(config, root=""))
    assert set(extra_queries(config)) <= set(encoder_shapes(config))
    assert len(extra_queries(config)) == (12 if config.entity_aware else 0)


@pytest.mark.parametrize("name", ["RobertaForMaskedLM", "XLMRobertaModel", "BertForPreTraining", "BertModel"])
def test_plain_tables_are_hugging_face(name):
    transformers = pytest.importorskip("transformers")
    kind = getattr(transformers, name)
    sizes = {"vocab_size": 11, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    state = kind(kind.config_class(**sizes, intermediate_size=10, max_position_embeddings=12)).state_dict()
    config = LukeConfig(**SIZES)
    table = BERT.known_names(config, root=find_root(state, BERT.roots))
    names = sort_names(state, table, entity_aware=True, dropped=PLAIN_DROPPED)
    words = {ours for ours in encoder_shapes(config) if ".entities." not in ours} - set(extra_queries(config))
    heads = head_shapes(config)
    assert words <= set(names.mapped)
    assert set(names.mapped) - words <= {*heads["pooler"], *heads["lm_head"]}
    assert ("lm_head.bias" in names.mapped) == (name in ("RobertaForMaskedLM", "BertForPreTraining"))


def test_old_names_of_layer_norm():
    table = BERT.known_names(LukeConfig(**SIZES), root="")
    names = sort_names(["embeddings.LayerNorm.gamma", "embeddings.LayerNorm.beta"], table, entity_aware=True)
    assert names.mapped["encoder.words.norm.weight"] == "embeddings.LayerNorm.gamma"
    with pytest.raises(ValueError, match="names of one tensor"):
        sort_names(["embeddings.LayerNorm.gamma", "embeddings.LayerNorm.weight"], table, entity_aware=True)


def test_unknown_names_and_no_root():
    table = luke_names(CONFIGS[0], root="luke.")
    with pytest.raises(ValueError, match=r"2 tensors .*'luke\.surprise', 'other'"):
        sort_names([*table, "other", "luke.surprise"], table, entity_aware=True)
    with pytest.raises(ValueError, match=r"word embeddings.*found 0"):
        find_root({"transformer.wte.weight": torch.zeros(1)}, ("luke.", ""))


def test_queries_are_dropped_where_they_are_off():
    name = "luke.encoder.layer.1.attention.self.e2w_query.bias"
    table = luke_names(CONFIGS[1], root="luke.")
    assert not CONFIGS[1].entity_aware
    assert name in sort_names([name], table, entity_aware=False).dropped
