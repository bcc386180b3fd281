"""Vectors for the case of words: as an encoder that has a row of its own for each piece in each case."""

from dataclasses import replace

import pytest
import torch

from spacy_luke.model.families import FAMILIES, build_encoder
from spacy_luke.model.int8 import build_quantized, quantize_encoder
from spacy_luke.model.luke import LukeEncoder, Windows
from spacy_luke.text.cases import CASES
from tests.model.noise import add_noise, make_encoder, make_mentions, make_windows

PIECES = 50  # of make_encoder
MODES = ["full", "one_way"]


def run(encoder, windows, mode):
    if mode == "full":
        return encoder(windows, make_mentions())
    words = encoder.encode_words(windows)
    return words.states_ND, encoder.encode_entities(words, make_mentions())


def make_cased(windows, **settings):
    """The encoder, and the windows' pieces in cases."""
    encoder = make_encoder(case_feature=True, **settings)
    cases_N = torch.randint(0, len(CASES), windows.pieces_N.shape, generator=torch.Generator().manual_seed(3))
    return encoder, Windows(windows.pieces_N + PIECES * cases_N, windows.lengths)


@pytest.mark.parametrize("mode", MODES)
def test_equals_a_table_of_all_cases_with_gradients(mode):
    encoder, windows = make_cased(make_windows())
    plain = make_encoder(vocab_size=PIECES * len(CASES))
    state = dict(encoder.state_dict())
    case_CD, piece_PD = state.pop("words.case.weight"), state["words.piece.weight"]
    state["words.piece.weight"] = (case_CD[:, None] + piece_PD).flatten(0, 1)
    plain.load_state_dict(state)
    got, wanted = run(encoder, windows, mode), run(plain, windows, mode)
    for g, w in zip(got, wanted, strict=True):
        torch.testing.assert_close(g, w, atol=2e-6, rtol=1e-5)
        weights = torch.randn(g.shape, generator=torch.Generator().manual_seed(1))
        (g * weights).sum().backward(retain_graph=True)
        (w * weights).sum().backward(retain_graph=True)
    gradient_CPD = plain.words.piece.weight.grad.unflatten(0, (len(CASES), PIECES))
    torch.testing.assert_close(encoder.words.piece.weight.grad, gradient_CPD.sum(0), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(encoder.words.case.weight.grad, gradient_CPD.sum(1), atol=1e-4, rtol=1e-4)
    assert encoder.words.case.weight.grad.abs().min(1).values.max() > 0


@pytest.mark.parametrize("mode", MODES)
@torch.no_grad()
def test_zeros_change_nothing(mode):
    encoder, windows = make_cased(make_windows())
    encoder.words.case.weight.zero_()
    plain = make_encoder()
    plain.load_state_dict({name: x for name, x in encoder.state_dict().items() if name != "words.case.weight"})
    assert plain.words.case is None
    for got, wanted in zip(run(encoder, windows, mode), run(plain, make_windows(), mode), strict=True):
        assert torch.equal(got, wanted)


@torch.no_grad()
def test_mentions_begin_with_their_cases_too():
    windows, mentions = make_windows(), make_mentions()
    plain = make_encoder(case_feature=True, entity_size=24)
    encoder = LukeEncoder(replace(plain.config, mention_start=True), mask_rows=range(9)).eval()
    encoder.load_state_dict(plain.state_dict())
    _, cased = make_cased(windows)
    small, capitals = encoder(windows, mentions)[1], encoder(cased, mentions)[1]
    assert (small - capitals).abs().max() > 0.1
    encoder.words.case.weight.zero_()
    assert torch.equal(encoder(windows, mentions)[1], encoder(cased, mentions)[1])


@torch.no_grad()
def test_int8_keeps_them():
    encoder, windows = make_cased(make_windows(), hidden_size=32)
    before = encoder.word_states(windows)
    quantize_encoder(encoder)
    empty = build_quantized(lambda: LukeEncoder(encoder.config))
    empty.load_state_dict(encoder.state_dict())
    assert torch.equal(empty.words.case.weight, encoder.words.case.weight)
    assert torch.equal(empty.word_states(windows), encoder.word_states(windows))
    torch.testing.assert_close(encoder.word_states(windows), before, atol=0.2, rtol=0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_every_family(family, mode):
    """Cases are seen, and mentions' own pieces; zeros change nothing."""
    sizes = {"vocab_size": PIECES, "entity_vocab_size": 9, "hidden_size": 24, "num_layers": 2, "num_heads": 4}
    sizes |= {"intermediate_size": 40, "entity_size": 8, "max_positions": 40}
    make = FAMILIES[family].config
    plain = add_noise(build_encoder(make(**sizes)))
    encoder = build_encoder(make(**sizes, case_feature=True)).eval()
    started = build_encoder(make(**sizes, mention_start=True), range(9)).eval()
    started.load_state_dict(plain.state_dict())
    encoder.load_state_dict({**plain.state_dict(), "words.case.weight": torch.zeros_like(encoder.words.case.weight)})
    windows = make_windows()
    _, cased = make_cased(windows)
    wanted = run(plain, windows, mode)
    assert all(torch.equal(a, b) for a, b in zip(run(encoder, cased, mode), wanted, strict=True))
    encoder.words.case.weight.normal_(generator=torch.Generator().manual_seed(2))
    assert all((a - b).abs().max() > 0.1 for a, b in zip(run(encoder, cased, mode), wanted, strict=True))
    assert (run(started, windows, mode)[1] - wanted[1]).abs().max() > 0.1
