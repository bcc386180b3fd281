"""DeBERTa and ModernBERT with entities equal their plain twins, in both modes, in states and in gradients."""

import pytest
import torch

from spacy_luke.checkpoint.families import PLAIN
from spacy_luke.model.deberta import DebertaConfig, find_buckets
from spacy_luke.model.luke import Mentions, Windows
from spacy_luke.model.modernbert import ModernBertConfig
from spacy_luke.model.recompute import recomputing
from tests.model.noise import pick
from tests.model.placed import COUNTS, LENGTHS, NAMES, SIZES, make_batch, make_encoder, plainly, run

MODES = ["full", "one_way"]
EACH = range(len(LENGTHS))


def assert_close(got, expected, *, atol=1e-5):
    for g, e in zip(got, expected, strict=True):
        torch.testing.assert_close(g.detach(), e.detach(), atol=atol, rtol=1e-5)


@pytest.mark.product
@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_equals_the_plain_twin(name, mode, aware, gradients):
    encoder, batch = make_encoder(name, entity_aware=aware), make_batch()
    with torch.set_grad_enabled(gradients):
        got = run(encoder, *batch, mode)
    with torch.no_grad():
        assert_close(got, plainly(encoder, *batch, mode))


@pytest.mark.parametrize("group", [2, None])
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_groups_equal_the_plain_twin(name, group):
    """The two of a pair, and all of a window, see one another."""
    encoder, batch = make_encoder(name), make_batch((4, 0, 6, 2, 0, 2, 8))
    assert_close(run(encoder, *batch, "one_way", group), plainly(encoder, *batch, "one_way", group))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_those_of_the_plain_twin(name, mode):
    encoder, batch = make_encoder(name).double(), make_batch()
    generator = torch.Generator().manual_seed(5)
    weights = [torch.randn(n, 24, generator=generator, dtype=torch.double) for n in (sum(LENGTHS), sum(COUNTS))]
    gradients = []
    for function in (run, plainly):
        encoder.zero_grad(set_to_none=True)
        sum((x * w).sum() for x, w in zip(function(encoder, *batch, mode), weights, strict=True)).backward()
        gradients.append({key: p.grad for key, p in encoder.named_parameters()})
    assert {key for key, x in gradients[0].items() if x is None} <= {
        key for key in gradients[0] if mode == "one_way" and "w2e_query" in key
    }
    for key, own in gradients[0].items():
        if own is not None:
            torch.testing.assert_close(own, gradients[1][key], atol=1e-5, rtol=1e-4, msg=key)
            assert own.abs().max() > 0 or key.endswith("key.bias"), key


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_layers_that_are_computed_again_give_the_same_gradients(name, mode):
    encoder, batch, found = make_encoder(name).double(), make_batch(), []
    for wanted in (False, True):
        encoder.zero_grad(set_to_none=True)
        with recomputing(wanted):
            sum(x.square().sum() for x in run(encoder, *batch, mode)).backward()
        found.append({key: p.grad for key, p in encoder.named_parameters() if p.grad is not None})
    assert found[0].keys() == found[1].keys()
    for key, own in found[0].items():
        torch.testing.assert_close(found[1][key], own, msg=key)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_batches_change_nothing(name, mode):
    encoder, (windows, mentions) = make_encoder(name), make_batch()
    whole = run(encoder, windows, mentions, mode)
    parts = [run(encoder, *pick(windows, mentions, [i]), mode) for i in EACH]
    assert_close(whole, tuple(torch.cat(x) for x in zip(*parts, strict=True)))
    order = [6, 3, 0, 5, 1, 4, 2]
    words, entities = run(encoder, *pick(windows, mentions, order), mode)
    assert_close([words], [torch.cat([whole[0].split(LENGTHS)[i] for i in order])])
    assert_close([entities], [torch.cat([whole[1].split(COUNTS)[i] for i in order])])


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_entity_states_are_those_of_forward(name):
    encoder, batch = make_encoder(name), make_batch()
    assert_close([encoder.entity_states(*batch)], [encoder(*batch)[1]])


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_entities_without_the_states_of_words(name):
    encoder, (windows, mentions) = make_encoder(name), make_batch()
    words = encoder.encode_words(windows, states=False)
    assert len(words.states_ND) == 0
    assert_close([encoder.encode_entities(words, mentions)], [run(encoder, windows, mentions, "one_way")[1]])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_no_mentions_at_all(name, mode):
    encoder, (windows, mentions) = make_encoder(name), make_batch([0] * len(LENGTHS))
    words, entities = run(encoder, windows, mentions, mode)
    assert_close([words], [encoder.word_states(windows)])
    assert len(entities) == 0


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_an_entity_that_begins_as_a_piece_is_that_piece(name):
    """A [MASK] entity with the parameters of the words, at the one piece of a window, which is [MASK] itself: it sees
    this piece and itself, which are the same, and so has its state."""
    encoder = make_encoder(name, entity_size=24, entity_aware=False)
    encoder.entities.table.weight[3] = encoder.words.piece.weight[7]
    encoder.entities.norm.load_state_dict(encoder.words.norm.state_dict())
    words = encoder.encode_words(Windows(torch.tensor([7]), [1]))
    one = Mentions(torch.tensor([3]), torch.tensor([0]), torch.tensor([0]), [1])
    assert_close([encoder.encode_entities(words, one)], [words.states_ND])


@torch.no_grad()
def test_long_windows_one_by_one(monkeypatch):
    encoder, (windows, _) = make_encoder("deberta"), make_batch(lengths=(30, 30, 30, 9), counts=(0, 0, 0, 0))
    whole = encoder.word_states(windows)
    monkeypatch.setattr("spacy_luke.model.deberta.NUMBERS_AT_ONCE", 1)
    assert_close([encoder.word_states(windows)], [whole])


@pytest.mark.slow
@torch.no_grad()
def test_windows_of_8192_pieces():
    """Equal to transformers', with a few entities at both ends."""
    transformers = pytest.importorskip("transformers")
    encoder = make_encoder("modernbert", max_positions=8192, local_attention=128, num_layers=3)
    sizes = {"vocab_size": 50, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
    config = transformers.ModernBertConfig(**sizes, **ids, intermediate_size=40, max_position_embeddings=8192)
    model = transformers.ModernBertModel(config).eval()
    family = PLAIN["modernbert"]
    names = family.known_names(encoder.config, root="")
    state = {f"encoder.{key}": x for key, x in encoder.state_dict().items()}
    tensors = {theirs: state[ours] for theirs, ours in names.items()}
    for i in range(3):
        parts = [tensors.pop(f"layers.{i}.attn.{part}.weight") for part in ("query", "key", "value")]
        tensors[f"layers.{i}.attn.Wqkv.weight"] = torch.cat(parts)
    model.load_state_dict(tensors)
    pieces = torch.arange(8192) % 47 + 3
    words = encoder.encode_words(Windows(pieces, [8192]))
    assert_close([words.states_ND], [model(pieces[None]).last_hidden_state[0]], atol=1e-4)
    ends = Mentions(torch.tensor([3, 3]), torch.tensor([0, 8190]), torch.tensor([2, 8191]), [2])
    alone = Mentions(ends.entities_E[1:], ends.first_E[1:], ends.last_E[1:], [1])
    assert_close([encoder.encode_entities(words, ends)[1:]], [encoder.encode_entities(words, alone)])


def test_buckets_are_those_of_transformers():
    hf = pytest.importorskip("transformers.models.deberta_v2.modeling_deberta_v2")
    for buckets, farthest in ((256, 512), (8, 60), (32, 100), (2, 9)):
        config = DebertaConfig(**SIZES, position_buckets=buckets, max_distance=farthest)
        distances = torch.arange(-3 * farthest, 3 * farthest)
        wanted = hf.make_log_bucket_position(distances, buckets, farthest).long() + config.span
        assert torch.equal(find_buckets(distances, config), wanted.clamp(0, 2 * config.span - 1))


def test_wrong_sizes():
    with pytest.raises(ValueError, match="position_buckets must be 0 or at least 2"):
        DebertaConfig(**SIZES, position_buckets=1)
    with pytest.raises(ValueError, match="width of a head must be even for rotary positions, but it is 3"):
        ModernBertConfig(**{**SIZES, "hidden_size": 12})
