"""[MASK] entities that begin with their mention's pieces: as a plain encoder that is given these vectors."""

import pytest
import torch

from spacy_luke.model.luke import EntityEmbeddings, LukeEncoder, Mentions
from spacy_luke.model.mention_means import MOST_PIECES, mean_pieces
from tests.model.noise import LENGTHS, add_noise, make_encoder, make_mentions, make_windows, pick

MODES = ["full", "full_entities", "one_way", "together"]
MASKS = (3, 5)


def make_pair(**settings):
    """An encoder with mention_start, and one without that has the same parameters."""
    plain = make_encoder(entity_size=24, **settings)
    started = LukeEncoder(type(plain.config).from_dict({**plain.config.to_dict(), "mention_start": True}), MASKS)
    return add_noise(started).eval(), plain


def run(encoder, windows, mentions, mode):
    if mode == "full":
        return encoder(windows, mentions)
    if mode == "full_entities":
        return (encoder.entity_states(windows, mentions),)
    words = encoder.encode_words(windows)
    return words.states_ND, encoder.encode_entities(words, mentions, group_size=1 if mode == "one_way" else None)


def given_vectors(encoder, windows, mentions):
    """The same mentions, each [MASK] entity replaced by its vector, in plain Python."""
    pieces, vectors, rows = windows.pieces_N.split(list(windows.lengths)), [], []
    window_of = [b for b, n in enumerate(mentions.counts) for _ in range(n)]
    for b, row, first, last in zip(window_of, mentions.entities_E, mentions.first_E, mentions.last_E, strict=True):
        vector = encoder.entities.table.weight[row]
        if int(row) in MASKS:
            vector = vector + encoder.words.piece.weight[pieces[b][first : last + 1]].mean(0)
        vectors.append(vector)
        rows.append(-1)
    return Mentions(
        torch.tensor(rows), mentions.first_E, mentions.last_E, mentions.counts, vectors_EV=torch.stack(vectors)
    )


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_equals_plain_vectors_with_gradients(mode, aware):
    started, plain = make_pair(entity_aware=aware)
    windows, mentions = make_windows(), make_mentions()
    asked = torch.isin(mentions.entities_E, torch.tensor(MASKS))
    assert asked.any()
    assert not asked.all()
    got = run(started, windows, mentions, mode)
    wanted = run(plain, windows, given_vectors(plain, windows, mentions), mode)
    generator = torch.Generator().manual_seed(5)
    for g, w in zip(got, wanted, strict=True):
        torch.testing.assert_close(g, w, atol=2e-6, rtol=1e-5)
        weights = torch.randn(g.shape, generator=generator)
        (g * weights).sum().backward(retain_graph=True)
        (w * weights).sum().backward(retain_graph=True)
    unlike = run(plain, windows, mentions, mode)[-1] - got[-1]
    assert float(unlike[asked].detach().abs().max()) > 0.1
    of_plain = dict(plain.named_parameters())
    for name, p in started.named_parameters():
        if p.grad is None:
            assert of_plain[name].grad is None, name
        else:
            scale = float(p.grad.abs().max())
            torch.testing.assert_close(p.grad, of_plain[name].grad, atol=1e-5 * scale + 1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("mode", MODES)
def test_packed_equals_one_by_one(mode):
    started, _ = make_pair()
    windows, mentions = make_windows(), make_mentions()
    with torch.no_grad():
        together = run(started, windows, mentions, mode)[-1]
        alone = [run(started, *pick(windows, mentions, [i]), mode)[-1] for i in range(len(LENGTHS))]
    torch.testing.assert_close(together, torch.cat(alone), atol=2e-6, rtol=1e-5)


def test_words_do_not_know_in_one_way():
    started, plain = make_pair()
    windows = make_windows()
    with torch.no_grad():
        assert torch.equal(started.word_states(windows), plain.word_states(windows))
        assert plain.encode_words(windows).rows_ND is None


def test_first_pieces_count():
    rows_ND = torch.randn(80, 4, generator=torch.Generator().manual_seed(1))
    last = MOST_PIECES + 5
    got = mean_pieces(rows_ND, [20, 60], torch.tensor([3, 0, 7]), torch.tensor([3, last, 8]), [1, 2])
    wanted = [rows_ND[3], rows_ND[20 : 20 + MOST_PIECES].mean(0), rows_ND[27:29].mean(0)]
    torch.testing.assert_close(got, torch.stack(wanted))
    assert mean_pieces(rows_ND, [80], torch.empty(0).long(), torch.empty(0).long(), [0]).shape == (0, 4)


def test_the_rows_of_mask_must_be_known():
    config = type(make_encoder().config).from_dict({**make_encoder().config.to_dict(), "mention_start": True})
    with pytest.raises(AssertionError, match="rows of"):
        EntityEmbeddings(config)
