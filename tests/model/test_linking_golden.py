"""The original's entity disambiguation model: all logits, those of candidates, and the loss; and that a swap is
seen."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from spacy_luke.model.linking import CandidateHead, segment_softmax
from spacy_luke.model.losses import candidate_cross_entropy
from spacy_luke.model.luke import Mentions
from tests.model.golden import padded_loss, read_case

CASES = ("luke_entity_disambiguation", "luke_entity_disambiguation_proj")
PREFIX = "weights/entity_predictions."
HEAD = {
    "dense.weight": "transform.dense.weight",
    "dense.bias": "transform.dense.bias",
    "norm.weight": "transform.LayerNorm.weight",
    "norm.bias": "transform.LayerNorm.bias",
}
MASK = 2


class Disambiguation:
    """A golden case with our head. swap: two of the head's parameters that are exchanged."""

    def __init__(self, shared, name, *, swap=None, encoder_swap=None):
        case = read_case(shared, name)
        tensors = load_file(shared(f"golden/{name}.safetensors"))
        zeros = {x: torch.zeros_like(case.inputs[y]) for x, y in TYPES.items()}
        state = dict(case.state)
        if encoder_swap:
            a, b = encoder_swap
            state[a], state[b] = state[b], state[a]
        self.case = replace(case, inputs={**case.inputs, **zeros}, state=state)
        self.table = state["entities.table.weight"].clone()
        self.bias = tensors[f"{PREFIX}bias"]
        self.mask = tensors["weights/luke.entity_embeddings.mask_embedding"]
        parameters = {ours: tensors[PREFIX + theirs] for ours, theirs in HEAD.items()}
        if swap:
            a, b = swap
            parameters[a], parameters[b] = parameters[b], parameters[a]
        self.head = CandidateHead(case.config.hidden_size, case.config.entity_size).eval()
        self.head.load_state_dict(parameters)

    def states(self):
        """With the vectors of entities given, as the linker gives them: the module's own table is not read."""
        encoder = self.case.encoder()
        encoder.entities.table.weight.data.fill_(7.0)
        mentions = self.case.mentions()
        masked = mentions.entities_E == MASK
        encoder.entities.table.weight.data[MASK] = self.mask
        given = Mentions(
            torch.where(masked, MASK, -1),
            mentions.first_E,
            mentions.last_E,
            mentions.counts,
            vectors_EV=self.table[mentions.entities_E],
        )
        return encoder.entity_states(self.case.windows(), given)

    def all_logits(self):
        states = self.states()
        n, size = len(states), len(self.table)
        owner = torch.arange(n).repeat_interleave(size)
        rows = torch.arange(size).repeat(n)
        return self.head(states, owner, self.table[rows], self.bias[rows], torch.empty(len(rows), 0)).view(n, size)

    def error(self):
        with torch.no_grad():
            return float((self.all_logits() - self.case.outputs["logits_all"][self.case.real_entities]).abs().max())


TYPES = {"token_type_ids": "input_ids", "entity_token_type_ids": "entity_ids"}


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_all_logits(shared, name, gradients):
    golden = Disambiguation(shared, name)
    with torch.set_grad_enabled(gradients):
        logits = golden.all_logits()
    expected = golden.case.outputs["logits_all"][golden.case.real_entities]
    assert float((logits.detach() - expected).abs().max()) <= golden.case.tolerance


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_candidates_and_loss(shared, name):
    """Candidates alone are gathered; [UNK], which several may be, counts once, as in the reference."""
    golden = Disambiguation(shared, name)
    real = golden.case.real_entities
    ids, labels = golden.case.inputs["entity_candidate_ids"][real], golden.case.inputs["labels"][real]
    chosen = [list(dict.fromkeys(x for x in row if x)) for row in ids.tolist()]
    scored = [e for e, row in enumerate(chosen) if row]
    rows = torch.tensor([x for e in scored for x in chosen[e]])
    owner = torch.tensor([i for i, e in enumerate(scored) for _ in chosen[e]])
    scores = golden.head(
        golden.states()[scored], owner, golden.table[rows], golden.bias[rows], torch.empty(len(rows), 0)
    )
    expected = golden.case.outputs["logits_candidates"][real][torch.tensor(scored)[owner], rows]
    assert float((scores - expected).abs().max()) <= golden.case.tolerance
    assert torch.allclose(
        segment_softmax(scores, owner, len(scored)).exp(),
        golden.case.outputs["logits_candidates"][real].softmax(1)[torch.tensor(scored)[owner], rows],
        atol=1e-5,
    )
    gold = [
        (labels[e], [i for i, x in enumerate(rows.tolist()) if int(owner[i]) == n and x == labels[e]])
        for n, e in enumerate(scored)
    ]
    if any(label >= 0 and not at for label, at in gold) or any(
        labels[e] >= 0 for e in range(len(chosen)) if e not in scored
    ):
        return  # the reference counts 1e32 for these
    loss, _ = candidate_cross_entropy(scores, owner, torch.tensor([at[0] if at else -1 for _, at in gold]))
    of_padding, n = padded_loss(golden.case.outputs["logits_candidates"], golden.case.inputs["labels"], real)
    mean = (loss + of_padding) / (int((labels >= 0).sum()) + n)
    assert mean == pytest.approx(float(golden.case.outputs["loss"]), abs=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_swapped_parameters_are_seen(shared, name):
    golden = Disambiguation(shared, name)
    least = 10 * golden.case.tolerance
    for swap in [("dense.bias", "norm.bias"), ("norm.weight", "norm.bias"), ("dense.bias", "norm.weight")]:
        assert Disambiguation(shared, name, swap=swap).error() > least, swap
    for swap in sorted(golden.case.swaps()):
        assert Disambiguation(shared, name, encoder_swap=swap).error() > least, swap
    golden.mask = golden.table[MASK]  # its row of the table is not what [MASK] is
    assert golden.error() > least


def test_the_gradient_of_the_loss():
    scores = torch.randn(9, dtype=torch.double, requires_grad=True)
    owner, gold = torch.tensor([0, 0, 0, 1, 2, 2, 2, 2, 2]), torch.tensor([1, 3, -1])
    log = segment_softmax(scores, owner, 3)
    for i in range(3):
        assert torch.allclose(log[owner == i], scores[owner == i].log_softmax(0))
    (-log[[1, 3]].sum()).backward()
    loss, gradient = candidate_cross_entropy(scores, owner, gold)
    assert loss == pytest.approx(float(-log[[1, 3]].sum().detach()), abs=1e-5)
    assert torch.allclose(gradient.double(), scores.grad, atol=1e-6)
