"""LUKE's pretraining is equal to the reference implementation, with noise for weights; and the comparison sees every
injected fault."""

from dataclasses import replace
from itertools import combinations

import pytest
import torch

from spacy_luke.model.losses import mean_cross_entropy
from spacy_luke.pretraining.luke.task import LukePretraining, idle_patterns
from spacy_luke.pretraining.luke.windows import LukeBatch
from tests.model.golden import Case, read_case

CASES = ("luke_pretraining", "luke_pretraining_bert")
HEADS = {  # two parameters of one shape each
    ("lm_head.dense.bias", "lm_head.norm.bias"),
    ("lm_head.norm.bias", "lm_head.norm.weight"),
    ("entity_head.dense.bias", "entity_head.norm.bias"),
    ("entity_head.norm.bias", "entity_head.norm.weight"),
    ("encoder.words.norm.bias", "lm_head.norm.bias"),
    ("encoder.entities.table.weight", "encoder.entities.table.weight"),  # its rows in another order
}


def make_model(case: Case) -> LukePretraining:
    model = LukePretraining(case.config, pages="page_id" in case.inputs).eval()
    state = {**{f"encoder.{name}": x for name, x in case.state.items()}, **case.pretraining}
    model.load_state_dict({name: x.clone() for name, x in state.items()})
    return model


def make_batch(case: Case) -> LukeBatch:
    labels = case.inputs["masked_lm_labels"][case.real_words]
    entities = case.inputs["masked_entity_labels"][case.real_entities]
    masked, asked = labels >= 0, entities >= 0
    return LukeBatch(
        windows=case.windows(),
        mentions=case.mentions(),
        masked_K=masked.nonzero()[:, 0],
        pieces_K=labels[masked],
        asked_A=asked.nonzero()[:, 0],
        gold_A=entities[asked],
        pages_B=case.inputs.get("page_id", torch.zeros(len(case.real_words), dtype=torch.long)),
        sampled=None,
        name="golden",
    )


@torch.no_grad()
def logit_errors(case: Case, model: LukePretraining) -> dict:
    """Greatest difference of the logits at every position."""
    words, entities = model.encoder(case.windows(), case.mentions())
    found = {
        "masked_lm_logits": case.word_error("masked_lm_logits", model.lm_head(words, model.encoder.words.piece.weight)),
        "masked_entity_logits": case.entity_error(
            "masked_entity_logits", model.entity_head(entities, model.encoder.entities.table.weight)
        ),
    }
    if model.page_head is not None:
        starts = torch.tensor(case.windows().lengths).cumsum(0) - torch.tensor(case.windows().lengths)
        pages = case.outputs["cls_entity_prediction"] - model.page_head(words[starts])
        found["cls_entity_prediction"] = float(pages.abs().max())
    return found


@pytest.mark.parametrize("name", CASES)
def test_logits(shared, name):
    case = read_case(shared, name)
    assert max(logit_errors(case, make_model(case)).values()) <= case.tolerance


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_losses_and_accuracies(shared, name, gradients):
    """With gradients and without, where other kernels run."""
    case = read_case(shared, name)
    with torch.set_grad_enabled(gradients):
        loss, measured = make_model(case)(make_batch(case))
    found = {key: float(total / count) for key, (total, count) in measured.items()}
    expected = {"mlm": "masked_lm_loss", "mlm_acc": "masked_lm_accuracy"}
    expected |= {"entity": "masked_entity_loss", "entity_acc": "masked_entity_accuracy"}
    expected |= {"page": "cls_entity_loss"} if "page_id" in case.inputs else {}
    assert set(found) == set(expected)
    for ours, theirs in expected.items():
        assert found[ours] == pytest.approx(float(case.outputs[theirs]), abs=case.tolerance), ours
    assert float(loss.detach()) == pytest.approx(float(case.outputs["loss"]), abs=3 * case.tolerance)


@pytest.mark.parametrize("name", CASES)
def test_entities_alone(shared, name):
    """The shorter way through the last layer, where no word is asked."""
    case = read_case(shared, name)
    model = make_model(replace(case, inputs={k: x for k, x in case.inputs.items() if k != "page_id"}, pretraining={
        k: x for k, x in case.pretraining.items() if not k.startswith("page")}))  # fmt: skip
    model.tasks["words"] = False
    loss, measured = model(make_batch(case))
    assert set(measured) == {"entity", "entity_acc"}
    assert float(loss.detach()) == pytest.approx(float(case.outputs["masked_entity_loss"]), abs=case.tolerance)
    assert idle_patterns(model.tasks) == ["^lm_head[.]"]


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_swapped_parameters_are_seen(shared, name):
    case = read_case(shared, name)
    model = make_model(case)
    parameters = dict(model.named_parameters())
    before = {key: x.clone() for key, x in parameters.items()}
    named = {tuple(f"encoder.{x}" for x in pair) for pair in case.swaps()}
    heads = [key for key in parameters if not key.startswith("encoder.")]
    pairs = {(a, b) for a, b in combinations(heads, 2) if before[a].shape == before[b].shape}
    assert {name for pair in HEADS for name in pair if name in heads} <= {name for pair in pairs for name in pair}
    unseen = []
    for a, b in sorted(pairs | HEADS | named):
        if before[a].shape != before[b].shape:
            continue
        parameters[a].copy_(before[b].flip(0) if a == b else before[b])
        parameters[b].copy_(before[a].flip(0) if a == b else before[a])
        if not max(logit_errors(case, model).values()) > 10 * case.tolerance:
            unseen.append((a, b))
        parameters[a].copy_(before[a])
        parameters[b].copy_(before[b])
    assert not unseen


@pytest.mark.parametrize("change", [{"norm_eps": 1e-2}, {"activation": "relu"}, {"activation": "gelu_new"}])
def test_changed_settings_are_seen(shared, change):
    case = read_case(shared, "luke_pretraining")
    changed = make_model(replace(case, config=replace(case.config, **change)))
    changed.encoder = case.encoder()  # in the heads alone
    assert min(logit_errors(case, changed).values()) > 10 * case.tolerance


@pytest.mark.parametrize("name", CASES)
def test_other_labels_are_seen(shared, name):
    case = read_case(shared, name)
    batch = make_batch(case)
    for change in (
        {"pieces_K": batch.pieces_K.flip(0)},
        {"gold_A": batch.gold_A.flip(0)},
        {"asked_A": batch.asked_A.flip(0)},
    ):
        loss, _ = make_model(case)(replace(batch, **change))
        assert abs(float(loss.detach()) - float(case.outputs["loss"])) > 10 * case.tolerance, change


def test_nothing_is_asked():
    """The loss is 0, with gradients that are 0."""
    logits = torch.empty(0, 5, requires_grad=True)
    loss = mean_cross_entropy(logits, torch.empty(0, dtype=torch.long))
    loss.backward()
    assert float(loss.detach()) == 0
