"""ERNIE is equal to the reference implementation, with noise for weights; and the comparison sees every injected
fault."""

import re
from dataclasses import replace
from itertools import combinations

import pytest
import torch
import torch.nn.functional as F

from spacy_luke.model.answers import AnswerHead
from spacy_luke.model.ernie import ErnieEncoder, place_slots, run_layer
from spacy_luke.model.ernie_heads import PooledHead, PretrainingHeads
from spacy_luke.model.losses import cross_entropy, multi_label_cross_entropy, pretraining_losses
from spacy_luke.model.packing import pack
from tests.model.ernie_golden import ErnieCase, difference, read_ernie_case, rolled, swapped
from tests.model.golden import loss_of_answers

CPU = torch.device("cpu")
LOOKING = re.compile(r"layers\.\d+\.entity_attention\.(query\.|key\.weight)")


def pooled_logits(case: ErnieCase) -> torch.Tensor:
    bias = "head.classifier.bias" in case.state
    head = PooledHead(case.config.hidden_size, len(case.state["head.classifier.weight"]), bias=bias)
    encoder, windows = case.encoder(), case.windows()
    words, _ = encoder(windows, case.knowledge())
    return case.fill(head, "head.")(encoder.pool(words, windows.lengths))


def pooled_error(case: ErnieCase) -> float:
    return case.error("logits", pooled_logits(case))


def answer_error(case: ErnieCase) -> float:
    logits = case.fill(AnswerHead(case.config.hidden_size), "head.")(
        case.encoder()(case.windows(), case.knowledge())[0]
    )
    return max(case.word_error(f"{name}_logits", logits[:, i]) for i, name in enumerate(("start", "end")))


def pretraining_logits(case: ErnieCase) -> tuple:
    """Of every real piece."""
    encoder, windows = case.encoder(), case.windows()
    words, _ = encoder(windows, case.knowledge())
    heads = PretrainingHeads(case.config).eval()
    own = {key: x for key, x in case.state.items() if not key.startswith("encoder.")}
    heads.load_state_dict(own)
    every = torch.arange(len(words))
    return heads(
        words,
        encoder.pool(words, windows.lengths),
        encoder.words.piece.weight,
        masked_K=every,
        linked_K=every,
        candidates_CH=case.inputs["candidate"],
    )


def pretraining_error(case: ErnieCase) -> float:
    words, sentences, entities = pretraining_logits(case)
    return max(
        case.word_error("mlm_logits", words),
        case.error("nsp_logits", sentences),
        case.word_error("dea_logits", entities),
    )


ERRORS = {
    "ernie_typing": pooled_error,
    "ernie_relation": pooled_error,
    "ernie_qa": answer_error,
    "ernie_pretraining": pretraining_error,
}


class Layers:
    """The encoder of a case layer by layer: each begins from what the layers before it gave, and is compared alone."""

    def __init__(self, case: ErnieCase):
        self.case, self.encoder, self.windows = case, case.encoder(), case.windows()
        self.slots = place_slots(self.windows, case.knowledge())
        self.packing = pack(self.windows.lengths, device=CPU)
        words, entities = self.encoder.words(self.windows), self.encoder.fill_slots(case.knowledge(), self.slots)
        self.states = [(words, entities)]
        for layer in self.encoder.layers:
            words, entities = run_layer(layer, words, entities, self.packing, self.slots)
            self.states.append((words, entities))

    def error(self, part: str) -> float:
        """part: words, layers.I or pooler."""
        if part == "words":
            return self.case.word_error("embeddings", self.encoder.words(self.windows))
        if part == "pooler":
            return self.case.error("pooled", self.encoder.pool(self.states[-1][0], self.windows.lengths))
        i = int(part.split(".")[1])
        words, entities = run_layer(self.encoder.layers[i], *self.states[i], self.packing, self.slots)
        return max(
            self.case.word_error(f"hidden_layer_{i}", words), self.case.slot_error(f"entity_layer_{i}", entities)
        )


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_last_states(shared, monkeypatch, gradients, padded):
    """With gradients and without; also in the padded calls that a GPU gets."""
    case = read_ernie_case(shared, "ernie_encoder")
    if padded:
        monkeypatch.setattr("spacy_luke.model.packing.tolerated_waste", lambda device: 10.0)
        (group,) = pack(case.windows().lengths, device=CPU).groups
        assert group.real_BL is not None
    with torch.set_grad_enabled(gradients):
        encoder, windows = case.encoder(), case.windows()
        words, entities = encoder(windows, case.knowledge())
        pooled = encoder.pool(words, windows.lengths)
    linked = case.real_slots.clone()
    linked[:, 0] = False
    assert linked.any()
    assert case.word_error("last_hidden", words) <= case.tolerance
    assert case.error("pooled", pooled) <= case.tolerance
    last = len(case.config.layer_kinds) - 1
    assert difference(case.outputs[f"entity_layer_{last}"][linked], entities) <= case.tolerance


@torch.no_grad()
def test_every_layer(shared):
    case = read_ernie_case(shared, "ernie_encoder")
    layers = Layers(case)
    assert not case.real_slots.all(0)[1:].any()
    assert (case.real_slots.sum(1) == 1).any(), "expected a window without entities"
    assert case.word_error("embeddings", layers.states[0][0]) <= case.tolerance
    for i, (words, entities) in enumerate(layers.states[1:]):
        assert case.word_error(f"hidden_layer_{i}", words) <= case.tolerance, i
        assert case.slot_error(f"entity_layer_{i}", entities) <= case.tolerance, i


@pytest.mark.parametrize("name", ERRORS)
@torch.no_grad()
def test_heads(shared, name):
    case = read_ernie_case(shared, name)
    assert ERRORS[name](case) <= case.tolerance


@torch.no_grad()
def test_losses_of_types_and_relations(shared):
    case = read_ernie_case(shared, "ernie_typing")
    loss, _ = multi_label_cross_entropy(pooled_logits(case), case.inputs["labels"])
    assert loss / case.inputs["labels"].numel() == pytest.approx(float(case.outputs["loss"]), abs=case.tolerance)
    case = read_ernie_case(shared, "ernie_relation")
    loss, _ = cross_entropy(pooled_logits(case), case.inputs["labels"])
    assert loss / len(case.inputs["labels"]) == pytest.approx(float(case.outputs["loss"]), abs=case.tolerance)


def test_loss_of_answers(shared):
    """From the reference's own logits, padding among them as there; it ignores places beyond the end."""
    case = read_ernie_case(shared, "ernie_qa")
    assert loss_of_answers(case) == pytest.approx(float(case.outputs["loss"]), abs=case.tolerance)


@torch.no_grad()
def test_losses_of_pretraining(shared):
    case = read_ernie_case(shared, "ernie_pretraining")
    real = case.real_words
    gold = (
        case.inputs["masked_lm_labels"][real],
        case.inputs["next_sentence_label"][:, 0],
        case.inputs["ent_labels"][real],
    )
    assert all((x >= 0).any() for x in gold)
    losses = pretraining_losses(pretraining_logits(case), gold)
    for name, loss in zip(("mlm", "nsp", "dea"), losses, strict=True):
        assert float(loss) == pytest.approx(float(case.outputs[f"{name}_loss"]), abs=case.tolerance)
    assert float(sum(losses)) == pytest.approx(float(case.outputs["total_loss"]), abs=3 * case.tolerance)


@pytest.mark.slow
@torch.no_grad()
def test_swapped_parameters_are_seen(shared):
    """The comparison fails for every swap of two parameters of one shape, within layers and across them, but for those
    that
    cannot show: key biases shift all scores of a query alike, and so change no softmax; the two biases of a fusion are
    added to each other; and slots may be so alike in late layers that whom they look at hardly matters: so it is where
    that parameter's rows in another order hardly show either."""
    case = read_ernie_case(shared, "ernie_encoder")
    layers = Layers(case)
    parts = {name: name.removeprefix("encoder.").rsplit(".", 1)[0] for name in case.state}
    for name, part in parts.items():
        parts[name] = ".".join(part.split(".")[: 2 if part.startswith("layers.") else 1])
    assert all(layers.error(part) <= case.tolerance for part in set(parts.values()))
    parameters = {f"encoder.{name}": p for name, p in layers.encoder.named_parameters()}
    pairs = [(a, b) for a, b in combinations(sorted(case.state), 2) if case.state[a].shape == case.state[b].shape]
    assert {a for a in case.state if ".layers." in a} <= {a for pair in pairs for a in pair}
    looking = {a for a in case.state if LOOKING.search(a)}
    assert len(looking) == 3 * len(case.layers("norm"))
    hardly = {a for a in looking if turned_error(layers, parameters[a], parts[a]) <= 40 * case.tolerance}
    assert {a.split("attention.")[1] for a in looking - hardly} == {"query.weight", "query.bias", "key.weight"}
    mute = hardly | {a for a in case.state if a.endswith("key.bias")}
    unseen = []
    for a, b in pairs:
        parameters[a].copy_(case.state[b])
        parameters[b].copy_(case.state[a])
        seen = any(layers.error(part) > 4 * case.tolerance for part in {parts[a], parts[b]})
        if not seen and not {a, b} <= mute and not _one_fusion(a, b):
            unseen.append((a, b))
        assert not (seen and _one_fusion(a, b))
        parameters[a].copy_(case.state[a])
        parameters[b].copy_(case.state[b])
    assert not unseen


def turned_error(layers: Layers, parameter: torch.Tensor, part: str) -> float:
    """The part's error with the parameter's rows in another order."""
    before = parameter.clone()
    parameter.copy_(before.flip(0))
    error = layers.error(part)
    parameter.copy_(before)
    return error


def _one_fusion(a: str, b: str) -> bool:
    """Whether these are the two biases of one fusion."""
    return b.endswith(".up.bias") and a == b.replace(".up.", ".entity_up.")


@pytest.mark.parametrize("name", ERRORS)
@torch.no_grad()
def test_swapped_parameters_of_heads_are_seen(shared, name):
    """Each parameter of a head against all of its shape, its own rows in another order, and some swaps inside the
    encoder."""
    case = read_ernie_case(shared, name)
    heads = [key for key in case.state if not key.startswith("encoder.")]
    mix, norm, last_norm = case.layers("mix")[0], case.layers("norm")[0], case.layers("norm")[-1]
    last = len(case.config.layer_kinds) - 1
    some = tuple(f"encoder.layers.{i}." for i in range(last + 1) if i not in case.layers("norm"))
    pairs = {
        frozenset((key, other))
        for key in heads
        for other in case.state
        if key != other and case.state[key].shape == case.state[other].shape and not other.startswith(some)
    }
    layer = "encoder.layers.{}."
    pairs |= {
        frozenset((layer.format(i) + a, layer.format(j) + b))
        for i, j, a, b in (
            (mix, norm, "entity_up.weight", "entity_up.weight"),
            (mix, norm, "entity_down.bias", "entity_down.bias"),
            (norm, norm, "entity_attention.key.weight", "entity_attention.value.weight"),
            (norm, last_norm, "entity_attention.query.weight", "entity_attention.query.weight"),
            (norm, norm, "entity_attention_norm.bias", "entity_output_norm.bias"),
            (0, last, "attention.output.weight", "attention.output.weight"),
            (mix, mix, "up.bias", "entity_up.bias"),
        )
        if (i, a) != (j, b)
    }
    unseen = []
    for one, other in sorted(map(sorted, pairs)):
        error = ERRORS[name](replace(case, state=swapped(case.state, one, other)))
        if (error <= 4 * case.tolerance) != _one_fusion(one, other):
            unseen.append((one, other, error))
    unseen += [
        (key, "rolled")
        for key in heads
        if ERRORS[name](replace(case, state=rolled(case.state, key))) <= 4 * case.tolerance
    ]
    assert not unseen


@pytest.mark.parametrize(
    "change",
    [
        {"norm_eps": 1e-3},
        {"activation": "gelu_new"},
        {"activation": "relu"},
        {"entity_heads": "another"},
        {"num_heads": "another"},
    ],
    ids=lambda change: "-".join(map(str, *change.items())),
)
@torch.no_grad()
def test_changed_settings_are_seen(shared, change):
    case = read_ernie_case(shared, "ernie_encoder")
    ((name, value),) = change.items()
    if value == "another":
        heads = {"num_heads": case.config.hidden_size, "entity_heads": case.config.entity_size}
        change = {name: next(n for n in range(2, 99) if heads[name] % n == 0 and n != getattr(case.config, name))}
    encoder = case.fill(ErnieEncoder(replace(case.config, **change)), "encoder.")
    words, _ = encoder(case.windows(), case.knowledge())
    assert case.word_error("last_hidden", words) > 10 * case.tolerance


@torch.no_grad()
def test_moved_and_missing_entities_are_seen(shared):
    """An entity one piece further, or away; [CLS] is a slot although it has no entity."""
    case = read_ernie_case(shared, "ernie_encoder")
    encoder, windows, knowledge = case.encoder(), case.windows(), case.knowledge()
    places = knowledge.at_E.clone()
    places[0] = next(i for i in range(1, windows.lengths[0]) if i not in places[: knowledge.counts[0]])
    moved = replace(knowledge, at_E=places)
    counts = [knowledge.counts[0] - 1, *knowledge.counts[1:]]
    fewer = replace(knowledge, vectors_EH=knowledge.vectors_EH[1:], at_E=knowledge.at_E[1:], counts=counts)
    for changed in (moved, fewer, replace(knowledge, vectors_EH=F.pad(knowledge.vectors_EH[:, 1:], (1, 0)))):
        words, _ = encoder(windows, changed)
        assert case.word_error("last_hidden", words) > 10 * case.tolerance
