"""Question answering and cloze heads are equal to the reference implementations; and the comparison sees every
fault."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.model.answers import AnswerHead
from spacy_luke.model.losses import binary_cross_entropy
from spacy_luke.model.span_heads import EntityHead
from tests.model.golden import Case, answer_loss, loss_of_answers, read_case

QA = ["luke_squad", "hf_luke_question_answering"]


def qa_error(case: Case) -> float:
    """Greatest error of start and end logits at real words."""
    head = AnswerHead(case.config.hidden_size).eval()
    head.load_state_dict(case.head)
    with torch.no_grad():
        logits = head(case.encoder()(case.windows(), case.mentions())[0])
    return max(case.word_error(f"{name}_logits", logits[:, i]) for i, name in enumerate(("start", "end")))


def cloze_logits(case: Case) -> torch.Tensor:
    """Logits of the real candidates, (U,): each window's first entity is the placeholder, the others are candidates."""
    head = EntityHead(case.config.hidden_size, 1, states=2).eval()
    head.load_state_dict(case.head)
    windows, mentions = case.windows(), case.mentions()
    units, start = [], 0
    for count in mentions.counts:
        units += [(start, start + i) for i in range(1, count)]
        start += count
    words, entities = case.encoder()(windows, mentions)
    return head(words, mentions.first_E, mentions.last_E, entities, torch.tensor(units))[:, 0]


def cloze_error(case: Case) -> float:
    real = case.real_entities[:, 1:]
    with torch.no_grad():
        return float((cloze_logits(case) - case.outputs["logits"][real]).abs().max())


@pytest.mark.parametrize("name", QA)
def test_start_and_end(shared, name):
    case = read_case(shared, name)
    assert qa_error(case) <= case.tolerance


@pytest.mark.parametrize("name", QA)
def test_loss_of_answers(shared, name):
    """From the reference's own logits, padding among them as there; it ignores places beyond the end, which we never
    make."""
    case = read_case(shared, name)
    assert loss_of_answers(case) == pytest.approx(float(case.outputs["loss"]), abs=case.tolerance)


def test_candidates(shared):
    case = read_case(shared, "luke_record")
    assert cloze_error(case) <= case.tolerance
    labels = case.inputs["labels"][case.real_entities[:, 1:]]
    with torch.no_grad():
        loss, _ = binary_cross_entropy(cloze_logits(case), labels)
    assert loss / len(labels) == pytest.approx(float(case.outputs["loss"]), abs=case.tolerance)


@pytest.mark.parametrize("name", [*QA, "luke_record"])
def test_swapped_parameters_are_seen(shared, name):
    """In a case where heads and encoder agree, each of these faults is seen."""
    case = read_case(shared, name)
    error = cloze_error if name == "luke_record" else qa_error
    matrix = "classifier.weight" if name == "luke_record" else "qa_outputs.weight"
    halves = case.head[matrix].chunk(2, 1 if name == "luke_record" else 0)
    faults = [replace(case, head={**case.head, matrix: torch.cat(halves[::-1], 1 if name == "luke_record" else 0)})]
    weights = sorted(pair for pair in case.swaps() if pair[0].endswith(".weight") and "token_type" not in pair[0])
    assert {pair[0].split(".")[0] for pair in weights} == {"layers", "entities"}
    faults += [case.swapped(*pair) for pair in weights]
    assert all(error(fault) > 10 * case.tolerance for fault in faults)


@pytest.mark.parametrize("lengths", [[5], [3, 7, 4], [1, 6]])
def test_loss_is_that_of_torch(lengths):
    torch.manual_seed(len(lengths))
    logits = torch.randn(sum(lengths), 2, requires_grad=True)
    gold = torch.stack([torch.tensor([torch.randint(n, ()).item() for n in lengths]) for _ in range(2)], 1)
    loss, gradient = answer_loss(logits, lengths, gold)
    expected = sum(
        F.cross_entropy(part[None, :, i], gold[b, i][None]) / 2
        for b, part in enumerate(logits.split(lengths))
        for i in range(2)
    )
    expected.backward()
    assert loss == pytest.approx(float(expected.detach()), abs=1e-5)
    assert torch.allclose(gradient, logits.grad, atol=1e-6)
