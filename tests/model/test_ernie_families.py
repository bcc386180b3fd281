"""ERNIE's second stream over MPNet's and ELECTRA's words: the words are the family's, the fusion is ERNIE's."""

import pytest
import spacy
import torch

from spacy_luke.checkpoint.ernie import read_ernie, write_ernie
from spacy_luke.checkpoint.ernie_names import ernie_shapes
from spacy_luke.model.ernie import ErnieConfig, Knowledge
from spacy_luke.model.ernie_families import ENCODERS, build_ernie
from spacy_luke.model.families import FAMILIES, build_encoder
from spacy_luke.pretraining.ernie.task import ErniePretraining
from tests.checkpoint.plain import make_plain
from tests.model.noise import LENGTHS, add_noise, make_windows

FURTHER = [name for name in ENCODERS if name != "bert"]
SIZES = {"hidden_size": 24, "num_layers": 3, "num_heads": 4, "intermediate_size": 40, "max_positions": 40}
COUNTS = (3, 0, 1, 2, 0, 5, 1)
WIDTH = 10


def make(family, kinds, **settings):
    further = {"embedding_size": 16} if family == "electra" else {}
    types = 0 if family == "mpnet" else 2
    config = ErnieConfig(
        vocab_size=50, family=family, layer_kinds=kinds, entity_size=WIDTH, entity_heads=2, token_types=types,
        **SIZES, **further, **settings,
    )  # fmt: skip
    return add_noise(build_ernie(config))


def make_knowledge():
    generator = torch.Generator().manual_seed(3)
    places = [1 + torch.randperm(n - 1, generator=generator)[:c].sort().values for n, c in zip(LENGTHS, COUNTS)]
    return Knowledge(torch.randn(sum(COUNTS), WIDTH, generator=generator), torch.cat(places), list(COUNTS))


@pytest.mark.parametrize("family", FURTHER)
@torch.no_grad()
def test_words_without_entities_are_the_familys(family):
    """In layers that fuse, too, where the fusion gets nothing."""
    encoder, windows = make(family, ("sim", "sim", "mix")), make_windows()
    encoder.layers[2].entity_up.bias.zero_()
    plain = build_encoder(
        FAMILIES[family].config(
            vocab_size=50, entity_vocab_size=4, entity_size=24, entity_aware=False, position_offset=0, norm_eps=1e-12,
            **SIZES, **({"embedding_size": 16, "token_types": 2} if family == "electra" else {}),
        )
    )  # fmt: skip
    missing = plain.load_state_dict(encoder.state_dict(), strict=False).missing_keys
    assert all(name.startswith("entities.") for name in missing)
    torch.testing.assert_close(encoder.word_states(windows), plain.eval().word_states(windows), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kinds", [("sim", "mix", "norm"), ("norm", "norm", "mix")])
@torch.no_grad()
def test_the_fusion_is_that_of_bert(kinds):
    """MPNet's encoder without biases is BERT's without token types."""
    ours, windows, knowledge = make("mpnet", kinds), make_windows(), make_knowledge()
    biased = ours(windows, knowledge)
    ours.relative.weight.zero_()
    bert = make("bert", kinds)
    assert bert.load_state_dict(ours.state_dict(), strict=False).missing_keys == ["words.token_type.weight"]
    bert.words.token_type.weight.zero_()
    found, wanted = ours(windows, knowledge), bert(windows, knowledge)
    for one, other, before in zip(found, wanted, biased, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
        assert (one - before).abs().max() > 1e-2


@pytest.mark.parametrize("name", ["MPNetModel", "ElectraModel"])
def test_a_plain_encoder_begins_one(tmp_path, name):
    transformers = pytest.importorskip("transformers")
    model, _ = make_plain(transformers, tmp_path / "plain", name)
    checkpoint = read_ernie(tmp_path / "plain", layer_kinds=("sim", "mix"), entity_size=WIDTH, entity_heads=2)
    config = checkpoint.config
    assert ErnieConfig.from_dict(config.to_dict()) == config
    assert set(checkpoint.tensors) >= set(ernie_shapes(config))
    nlp = spacy.blank("en")
    owner = nlp.add_pipe("luke_encoder", config={"model": {"@architectures": "spacy-luke.ErnieEncoder.v1"}})
    owner.load_encoder(checkpoint)
    encoder = owner.encoder.module.eval()
    with torch.no_grad():
        encoder.layers[1].entity_up.bias.zero_()
        ids_N = torch.tensor([4, 6, 9, 7, 5, 8])
        windows = make_windows((6,))
        found_ND = encoder.word_states(type(windows)(ids_N, [6]))
        torch.testing.assert_close(found_ND, model(input_ids=ids_N[None]).last_hidden_state[0], atol=1e-5, rtol=0)
    nlp.initialize()
    nlp.to_disk(tmp_path / "nlp")
    again = spacy.load(tmp_path / "nlp")
    assert torch.equal(torch.from_numpy(again("a b c").tensor), torch.from_numpy(nlp("a b c").tensor))
    with pytest.raises(ValueError, match="The original's ERNIE has BERT's words"):
        write_ernie(owner.to_checkpoint(), tmp_path / "out")
    with pytest.raises(ValueError, match="Begin with a BERT"):
        ErniePretraining(config)


def test_unknown_words_are_refused():
    with pytest.raises(ValueError, match="family must be one of"):
        ErnieConfig(vocab_size=5, family="luke")
