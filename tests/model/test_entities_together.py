"""One-way attention where all entities of a window see one another: against a loop in plain Python; vectors in place of
rows of the entity table."""

import pytest
import torch

from spacy_luke.model.attention import Attention
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.luke import LukeEncoder, Mentions, Windows

LENGTHS, COUNTS = [5, 3, 7], [2, 0, 4]


def plain(attention, entities_ED, keys, values, e2w, e2e):
    """Of one window: a softmax of each entity over the words and all entities."""
    heads = attention.num_heads
    k_e, v_e = (x(entities_ED).unflatten(-1, (heads, -1)) for x in (attention.key, attention.value))
    rows = []
    for e in range(len(entities_ED)):
        to_words, to_entities = (x(entities_ED[e]).view(heads, -1) for x in (e2w, e2e))
        parts = []
        for h in range(heads):
            scores = torch.cat([keys[:, h] @ to_words[h], k_e[:, h] @ to_entities[h]]) / to_words.shape[1] ** 0.5
            parts.append(scores.softmax(0) @ torch.cat([values[:, h], v_e[:, h]]))
        rows.append(attention.output(torch.cat(parts)))
    return torch.stack(rows)


@pytest.mark.parametrize("entity_aware", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
def test_against_a_loop(entity_aware, gradients):
    torch.manual_seed(0)
    attention = Attention(12, 3, entity_aware=entity_aware, dropout=0.1).eval()
    e2w, e2e = (attention.e2w_query, attention.e2e_query) if entity_aware else (attention.query, attention.query)
    keys, values = torch.randn(15, 3, 4), torch.randn(15, 3, 4)
    entities_ED = torch.randn(6, 12)
    with torch.set_grad_enabled(gradients):
        found = attention.entities_together(entities_ED, keys, values, LENGTHS, COUNTS).detach()
    a = c = 0
    for n_words, n_entities in zip(LENGTHS, COUNTS, strict=True):
        if n_entities:
            one = plain(
                attention, entities_ED[c : c + n_entities], keys[a : a + n_words], values[a : a + n_words], e2w, e2e
            )
            assert torch.allclose(found[c : c + n_entities], one, atol=1e-5)
        a, c = a + n_words, c + n_entities


def test_no_entities():
    attention = Attention(12, 3, entity_aware=False, dropout=0.1)
    none = attention.entities_together(torch.empty(0, 12), torch.randn(4, 3, 4), torch.randn(4, 3, 4), [4], [0])
    assert none.shape == (0, 12)


@pytest.fixture
def encoder():
    config = LukeConfig(
        vocab_size=30,
        hidden_size=16,
        num_layers=2,
        num_heads=2,
        intermediate_size=24,
        max_positions=40,
        entity_vocab_size=9,
        entity_size=6,
    )
    torch.manual_seed(0)
    encoder = LukeEncoder(config).eval()
    for p in encoder.parameters():
        p.data.normal_(std=0.2)
    return encoder


@torch.no_grad()
def test_vectors_stand_for_rows(encoder):
    rows = torch.tensor([1, 5, 1, 7])
    first = torch.tensor([1, 2, 3, 1])
    table = encoder.entities.table.weight
    by_row = encoder.entities(Mentions(rows, first, first + 1, [4]))
    vectors = torch.where((rows == 1)[:, None], 99.0, table[rows])
    given = encoder.entities(Mentions(torch.where(rows == 1, rows, -1), first, first + 1, [4], vectors_EV=vectors))
    assert torch.allclose(by_row, given, atol=1e-6)


def test_one_entity_sees_what_it_saw(encoder):
    """A window with one entity gives what separate entities get; a further entity changes it, and no word."""
    windows = Windows(torch.arange(9), [9])
    one = Mentions(torch.tensor([2]), torch.tensor([1]), torch.tensor([3]), [1])
    two = Mentions(torch.tensor([2, 3]), torch.tensor([1, 5]), torch.tensor([3, 6]), [2])
    with torch.no_grad():
        words = encoder.encode_words(windows)
        alone = encoder.encode_entities(words, one)
        assert torch.allclose(encoder.encode_entities(words, one, group_size=None), alone, atol=1e-5)
        assert torch.allclose(
            encoder.encode_entities(words, two, group_size=None),
            encoder.encode_entities(words, two, group_size=2),
            atol=1e-5,
        )
        assert not torch.allclose(encoder.encode_entities(words, two, group_size=None)[:1], alone, atol=1e-3)
    trained = encoder.encode_entities(encoder.encode_words(windows), two, group_size=None)
    trained.sum().backward()
    assert encoder.words.piece.weight.grad.abs().max() > 0
