"""Plain encoders of further families as a start: words as they are there, to 1e-5 in float32 with noise everywhere."""

from itertools import product

import pytest
import torch

from spacy_luke.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.families import PLAIN
from spacy_luke.model.families import FAMILIES, build_encoder, config_from_dict
from spacy_luke.model.luke import Windows
from tests.checkpoint.plain import make_encoder, make_plain

NAMES = {  # classes of transformers, and our family
    "MPNetForMaskedLM": "mpnet",
    "MPNetModel": "mpnet",
    "ElectraModel": "electra",
    "ElectraForPreTraining": "electra",
    "ElectraForMaskedLM": "electra",
    "DistilBertForMaskedLM": "distilbert",
    "DistilBertModel": "distilbert",
    "DebertaV2ForMaskedLM": "deberta-v2",
    "DebertaV2Model": "deberta-v2",
    "ModernBertForMaskedLM": "modernbert",
    "ModernBertModel": "modernbert",
}
# Classes with a masked-word head that is not read: Electra's has another width, ModernBERT's no biases.
HEADLESS = ("ElectraForMaskedLM", "ModernBertForMaskedLM")
LENGTHS = (9, 3, 20, 3)


def read(tmp_path, name, **settings):
    transformers = pytest.importorskip("transformers")
    model, _ = make_plain(transformers, tmp_path, name)
    return getattr(model, model.base_model_prefix, model), read_checkpoint(tmp_path, **settings)


def states(encoder, ids_N):
    with torch.no_grad():
        return encoder.encode_words(Windows(ids_N, LENGTHS)).states_ND


def expected_states(model, ids_N):
    with torch.no_grad():
        return torch.cat([model(input_ids=x[None]).last_hidden_state[0] for x in ids_N.split(LENGTHS)])


@pytest.fixture
def ids_N():
    return torch.randint(4, 12, (sum(LENGTHS),), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", NAMES)
def test_words_compute_what_transformers_computes(tmp_path, name, ids_N):
    model, checkpoint = read(tmp_path, name)
    assert checkpoint.config.family == NAMES[name]
    has_head = name.endswith("MaskedLM") and name not in HEADLESS
    assert checkpoint.task == ("masked_lm" if has_head else "encoder")
    wanted_ND = expected_states(model, ids_N)
    torch.testing.assert_close(states(make_encoder(checkpoint), ids_N), wanted_ND, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("Model")])
def test_every_tensor_of_words_counts(tmp_path, name, ids_N):
    """Parity would not hold if any tensor were read as another, or left out: each changes the states, but for biases of
    keys, which move all scores of a query alike."""
    _, checkpoint = read(tmp_path, name)
    encoder = make_encoder(checkpoint)
    before = states(encoder, ids_N)
    generator = torch.Generator().manual_seed(2)
    for key, parameter in encoder.named_parameters():
        if key.startswith("entities.") or "_query" in key or key.endswith("key.bias"):
            continue
        kept = parameter.detach().clone()
        with torch.no_grad():
            parameter.copy_(torch.randn(kept.shape, generator=generator) * 0.2)
        assert (states(encoder, ids_N) - before).abs().max() > 1e-4, key
        with torch.no_grad():
            parameter.copy_(kept)


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "luke"])
def test_shapes_are_those_of_the_module(family, aware):
    sizes = {"hidden_size": 8, "num_layers": 2, "num_heads": 2, "intermediate_size": 10, "max_positions": 12}
    projected = [{"embedding_size": 6}, {"embedding_size": 8}] if family == "electra" else [{}]
    for entity_size, more in product((5, 8), projected):
        config = FAMILIES[family].config(
            vocab_size=7, entity_vocab_size=4, entity_size=entity_size, entity_aware=aware, **sizes, **more
        )
        wanted = {f"encoder.{name}": tuple(x.shape) for name, x in build_encoder(config).state_dict().items()}
        assert PLAIN[family].shapes(config) == wanted
        names = PLAIN[family].known_names(config, root="")
        assert set(wanted) - set(names.values()) == {
            name
            for name in wanted
            if ".entities." in name or name.rsplit(".", 2)[1].endswith("e_query") or "e2w" in name
        }
        assert config_from_dict(config.to_dict()) == config


def test_unknown_families_are_refused():
    with pytest.raises(ValueError, match=r"Unknown family of encoders 'next'; this version knows \[.*'luke'"):
        config_from_dict({"family": "next"})


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("Model")])
def test_entities_begin_as_words(tmp_path, name):
    _, checkpoint = read(tmp_path, name, entity_start="words")
    tensors, tokenizer = checkpoint.tensors, checkpoint.tokenizer
    mask = checkpoint.entities.mask_row
    table = tensors["encoder.words.piece.weight"]
    assert torch.equal(tensors["encoder.entities.table.weight"][mask], table[tokenizer.mask_id])
    assert torch.equal(tensors["encoder.entities.norm.weight"], tensors["encoder.words.norm.weight"])


FURTHER = {family: name for name, family in NAMES.items() if name.endswith("Model")}


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("name", FURTHER.values())
def test_written_and_read(tmp_path, name, aware, ids_N):
    """The words by the family's class of transformers, all by us, to the bit; with a head, and fewer layers too."""
    transformers = pytest.importorskip("transformers")
    make_plain(transformers, tmp_path, name)
    checkpoint = read_checkpoint(
        tmp_path, entity_aware=aware, entity_size=12, entity_start="mention", layers=4 if "Modern" in name else 1
    )
    generator = torch.Generator().manual_seed(4)
    checkpoint.tensors.update(
        {
            key: torch.randn(x.shape, generator=generator) * 0.2
            for key, x in checkpoint.tensors.items()
            if ".entities." in key
        }
    )
    wide = 3 * checkpoint.config.hidden_size
    checkpoint.tensors["head.classifier.weight"] = torch.randn(3, wide, generator=generator)
    checkpoint.tensors["head.classifier.bias"] = torch.randn(3, generator=generator)
    checkpoint.task, checkpoint.labels = "span_classification", ["NIL", "PER", "LOC"]
    write_huggingface(checkpoint, tmp_path / "written")
    again = read_checkpoint(tmp_path / "written")
    assert again.config == checkpoint.config
    assert (again.task, again.labels) == (checkpoint.task, checkpoint.labels)
    assert again.tensors.keys() == checkpoint.tensors.keys()
    assert all(torch.equal(x, checkpoint.tensors[key]) for key, x in again.tensors.items())
    assert again.entities.titles() == checkpoint.entities.titles()
    assert again.tokenizer.encode("a b <ent> c")[0].tolist() == checkpoint.tokenizer.encode("a b <ent> c")[0].tolist()
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path / "written")
    ids = again.tokenizer.encode("a b <ent> c")[0]
    assert auto("a b <ent> c")["input_ids"] == again.tokenizer.window(ids).tolist()
    model = getattr(transformers, name).from_pretrained(tmp_path / "written").eval()
    wanted_ND = expected_states(model, ids_N)
    torch.testing.assert_close(states(make_encoder(again), ids_N), wanted_ND, atol=1e-5, rtol=0)
    write_huggingface(again, tmp_path / "twice")
    one, two = ((tmp_path / x / "model.safetensors").read_bytes() for x in ("written", "twice"))
    assert one == two


def test_without_its_own_config_it_is_not_written(tmp_path):
    _, checkpoint = read(tmp_path, "MPNetModel")
    checkpoint.source = {"kind": "plain", "model_type": "bert"}
    with pytest.raises(ValueError, match=r"family 'mpnet' is written with the config.json .* model_type 'bert'"):
        write_huggingface(checkpoint, tmp_path / "out")
