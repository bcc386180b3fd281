"""Equal to the reference implementations, with noise for weights; and the comparison sees every injected fault."""

from dataclasses import replace
from itertools import combinations, permutations

import pytest
import torch

from spacy_luke.model.losses import cross_entropy
from spacy_luke.model.packing import pack, pack_pairs
from spacy_luke.model.span_heads import SpanHead
from tests.model.golden import Case, padded_loss, read_case

ENCODERS = {  # the names of the last states in each case
    "luke_encoder": ("word_last_hidden", "entity_last_hidden"),
    "luke_plain": ("word_last_hidden", "entity_last_hidden"),
    "luke_plain_bert": ("word_last_hidden", "entity_last_hidden"),
    "luke_pretraining": ("word_last_hidden", "entity_last_hidden"),
    "hf_luke_model": ("last_hidden_state", "entity_last_hidden_state"),
    "hf_luke_model_lite": ("last_hidden_state", "entity_last_hidden_state"),
    "hf_luke_model_plain": ("last_hidden_state", "entity_last_hidden_state"),
}
LAYERS = {  # the names of the embeddings and of the states after layer i, words and entities
    "luke_encoder": ("{}_embeddings", "{}_layer_{}"),
    "luke_plain": ("{}_embeddings", "{}_layer_{}"),
    "luke_plain_bert": ("{}_embeddings", "{}_layer_{}"),
    "hf_luke_model": None,
    "hf_luke_model_lite": None,
    "hf_luke_model_plain": None,
}
SPAN_HEADS = {
    "luke_ner": "all",
    "luke_ner_no_word": "entity",
    "luke_ner_no_entity": "words",
    "hf_luke_entity_span_classification": "all",
    "hf_luke_span_lite": "all",
}


def logits_of(case: Case, features: str) -> torch.Tensor:
    """Logits of the real spans, (E, L)."""
    head = SpanHead(case.config.hidden_size, len(case.head["classifier.weight"]), features=features).eval()
    head.load_state_dict(case.head)
    windows, mentions = case.windows(), case.mentions()
    words, entities = case.encoder()(windows, mentions)
    starts = torch.tensor([sum(windows.lengths[:i]) for i in range(len(windows.lengths))])
    starts = starts.repeat_interleave(torch.tensor(mentions.counts))
    real = case.real_entities
    first, last = (case.inputs[f"entity_{side}_positions"][real] for side in ("start", "end"))
    return head(words, starts + first, starts + last, entities)


def error_of(case: Case) -> float:
    """Greatest error of the last states of `luke_encoder`."""
    with torch.no_grad():
        words, entities = case.encoder()(case.windows(), case.mentions())
    return max(case.word_error("word_last_hidden", words), case.entity_error("entity_last_hidden", entities))


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("name", ENCODERS)
def test_last_states(shared, name, gradients):
    """With gradients and without, where other kernels may run."""
    case = read_case(shared, name)
    with torch.set_grad_enabled(gradients):
        words, entities = case.encoder()(case.windows(), case.mentions())
    word_name, entity_name = ENCODERS[name]
    assert case.word_error(word_name, words) <= case.tolerance
    assert case.entity_error(entity_name, entities) <= case.tolerance


@pytest.mark.parametrize("name", LAYERS)
@torch.no_grad()
def test_every_layer(shared, name):
    case = read_case(shared, name)
    encoder, windows, mentions = case.encoder(), case.windows(), case.mentions()
    packing = pack_pairs(windows.lengths, mentions.counts, device=torch.device("cpu"))
    words, entities = encoder.words(windows), encoder.entities(mentions)
    states = [(words, entities)]
    for layer in encoder.layers:
        words, entities = layer(words, entities, packing)
        states.append((words, entities))
    for i, (words, entities) in enumerate(states):
        if LAYERS[name] is None:
            word_name, entity_name = f"hidden_states_{i}", f"entity_hidden_states_{i}"
        else:
            pattern = LAYERS[name][1 if i else 0]
            word_name, entity_name = pattern.format("word", i - 1), pattern.format("entity", i - 1)
        assert case.word_error(word_name, words) <= case.tolerance, word_name
        assert case.entity_error(entity_name, entities) <= case.tolerance, entity_name


@pytest.mark.parametrize("name", ["luke_plain", "luke_plain_bert", "hf_luke_model", "hf_luke_model_plain"])
@torch.no_grad()
def test_without_entities(shared, name):
    case = read_case(shared, name)
    encoder = case.encoder()
    expected = ENCODERS[name][0] + "_no_entities"
    words, entities = encoder(case.windows(), case.no_mentions())
    assert case.word_error(expected, words) <= case.tolerance
    assert entities.shape == (0, case.config.hidden_size)
    assert case.word_error(expected, encoder.encode_words(case.windows()).states_ND) <= case.tolerance


@pytest.mark.parametrize("name", ["luke_encoder", "luke_plain"])
@pytest.mark.parametrize("gradients", [True, False])
def test_padding_of_calls_changes_nothing(shared, monkeypatch, gradients, name):
    """The groups of unequal windows that a GPU gets, with their masks."""
    case = read_case(shared, name)
    monkeypatch.setattr("spacy_luke.model.packing.tolerated_waste", lambda device: 10.0)
    (group,) = pack(case.windows().lengths, device=torch.device("cpu")).groups
    assert group.real_BL is not None
    with torch.set_grad_enabled(gradients):
        words, entities = case.encoder()(case.windows(), case.mentions())
    assert case.word_error("word_last_hidden", words) <= case.tolerance
    assert case.entity_error("entity_last_hidden", entities) <= case.tolerance


@pytest.mark.parametrize("name", SPAN_HEADS)
@torch.no_grad()
def test_span_logits_and_loss(shared, name):
    case = read_case(shared, name)
    logits = logits_of(case, SPAN_HEADS[name])
    assert case.entity_error("logits", logits) <= case.tolerance
    labels = case.inputs["labels"]
    loss, _ = cross_entropy(logits, labels[case.real_entities])
    of_padding, _ = padded_loss(case.outputs["logits"], labels, case.real_entities)
    mean = (loss + of_padding) / int((labels >= 0).sum())
    assert mean == pytest.approx(float(case.outputs["loss"]), abs=case.tolerance)


@pytest.mark.slow
def test_swapped_parameters_are_seen(shared):
    """The comparison fails for every swap of two parameters of one shape, within layers and across them."""
    case = read_case(shared, "luke_encoder")
    assert error_of(case) <= case.tolerance
    most = int(case.real_entities.sum(1).argmax())  # the window with most entities is enough
    case = replace(
        case,
        inputs={key: x[most : most + 1] for key, x in case.inputs.items()},
        outputs={key: x[most : most + 1] for key, x in case.outputs.items()},
    )
    assert sum(case.mentions().counts) >= 2
    pairs = [(a, b) for a, b in combinations(sorted(case.state), 2) if case.state[a].shape == case.state[b].shape]
    assert case.swaps() <= set(pairs)
    encoder, windows, mentions = case.encoder(), case.windows(), case.mentions()
    parameters = dict(encoder.named_parameters())
    unseen = []
    with torch.no_grad():
        for a, b in pairs:
            parameters[a].copy_(case.state[b])
            parameters[b].copy_(case.state[a])
            words, entities = encoder(windows, mentions)
            error = max(case.word_error("word_last_hidden", words), case.entity_error("entity_last_hidden", entities))
            if not error > 10 * case.tolerance:
                unseen.append((a, b, error))
            parameters[a].copy_(case.state[a])
            parameters[b].copy_(case.state[b])
    assert not unseen


@pytest.mark.parametrize(
    "change",
    [{"position_offset": 1}, {"norm_eps": 1e-3}, {"activation": "gelu_new"}, {"activation": "relu"}],
    ids=lambda change: "-".join(map(str, *change.items())),
)
def test_changed_settings_are_seen(shared, change):
    case = read_case(shared, "luke_encoder")
    assert error_of(replace(case, config=replace(case.config, **change))) > 10 * case.tolerance


@torch.no_grad()
def test_swapped_features_are_seen(shared):
    """The head's features are [first; last; entity]; any other order fails, and so does an exclusive end."""
    case = read_case(shared, "luke_ner")
    blocks = case.head["classifier.weight"].split(case.config.hidden_size, 1)
    for order in permutations(range(3)):
        weight = torch.cat([blocks[i] for i in order], 1)
        changed = replace(case, head={**case.head, "classifier.weight": weight})
        error = case.entity_error("logits", logits_of(changed, "all"))
        assert (error <= case.tolerance) == (order == (0, 1, 2)), order
    lengths = case.real_words.sum(1)[:, None]
    ends = torch.minimum(case.inputs["entity_end_positions"] + 1, lengths - 1)
    assert not torch.equal(ends[case.real_entities], case.inputs["entity_end_positions"][case.real_entities])
    shifted = replace(case, inputs={**case.inputs, "entity_end_positions": ends})
    assert case.entity_error("logits", logits_of(shifted, "all")) > 10 * case.tolerance
