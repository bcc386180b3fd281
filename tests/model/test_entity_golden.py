"""Typing and relation heads equal the reference implementations, and the comparison sees every injected fault."""

from dataclasses import replace

import pytest
import torch

from spacy_luke.model.losses import cross_entropy, multi_label_cross_entropy
from spacy_luke.model.span_heads import EntityHead
from tests.model.golden import Case, read_case

STATES = {  # entity tokens that each logit reads
    "luke_typing": 1,
    "luke_relation": 2,
    "hf_luke_entity_classification": 1,
    "hf_luke_entity_pair_classification": 2,
}


def logits_of(case: Case, states: int, *, words: bool = True) -> torch.Tensor:
    """Logits of each window's one unit, which reads its entity tokens in order, (B, L). words: whether their states are
    computed to the end too, which nobody needs here."""
    weight = case.head["classifier.weight"]
    head = EntityHead(case.config.hidden_size, len(weight), states=states, bias="classifier.bias" in case.head).eval()
    head.load_state_dict(case.head)
    mentions = case.mentions()
    assert set(mentions.counts) == {states}
    if words:
        words_ND, entities = case.encoder()(case.windows(), mentions)
    else:
        words_ND, entities = None, case.encoder().entity_states(case.windows(), mentions)
    return head(words_ND, mentions.first_E, mentions.last_E, entities, torch.arange(len(entities)).view(-1, states))


def error_of(case: Case, states: int) -> float:
    with torch.no_grad():
        return float((logits_of(case, states) - case.outputs["logits"]).abs().max())


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("name", STATES)
def test_logits(shared, name, words, gradients):
    """With gradients and without, where other kernels may run."""
    case = read_case(shared, name)
    with torch.set_grad_enabled(gradients):
        logits = logits_of(case, STATES[name], words=words)
    assert float((logits.detach() - case.outputs["logits"]).abs().max()) <= case.tolerance


@pytest.mark.parametrize("name", STATES)
@torch.no_grad()
def test_losses(shared, name):
    """The reference's means are our sums, divided by units, and by labels where several may hold."""
    case = read_case(shared, name)
    logits = logits_of(case, STATES[name])
    for key, output in (("labels", "loss"), ("label", "loss"), ("labels_multi", "loss_multi")):
        if key not in case.inputs:
            continue
        gold = case.inputs[key]
        if gold.ndim == 2:
            loss = multi_label_cross_entropy(logits, gold.float())[0] / gold.numel()
        else:
            loss = cross_entropy(logits, gold)[0] / len(gold)
        assert loss == pytest.approx(float(case.outputs[output]), abs=case.tolerance), output


@pytest.mark.parametrize("name", STATES)
def test_swapped_parameters_are_seen(shared, name):
    """test_golden.py swaps every pair of the encoder's parameters; here those that are most easily mistaken."""
    case = read_case(shared, name)
    swaps = sorted(case.swaps())
    assert not [pair for pair in swaps if not error_of(case.swapped(*pair), STATES[name]) > 10 * case.tolerance]


@pytest.mark.parametrize("name", STATES)
def test_other_inputs_are_seen(shared, name):
    """The head's order, a mention that ends too early, another entity's row."""
    case, states = read_case(shared, name), STATES[name]
    if states == 2:
        head, tail = case.head["classifier.weight"].chunk(2, 1)
        swapped = {**case.head, "classifier.weight": torch.cat([tail, head], 1)}
        assert error_of(replace(case, head=swapped), states) > 10 * case.tolerance
    places = case.inputs["entity_position_ids"].clone()
    longest = (places[0] >= 0).sum(-1).argmax()
    places[0, longest, (places[0, longest] >= 0).sum() - 1] = -1
    inputs = {**case.inputs, "entity_position_ids": places}
    assert error_of(replace(case, inputs=inputs), states) > 10 * case.tolerance
    rows = {**case.inputs, "entity_ids": (case.inputs["entity_ids"] + 1) % case.config.entity_vocab_size}
    assert error_of(replace(case, inputs=rows), states) > 10 * case.tolerance
