"""Corruption and candidates: those of the reference for the same random numbers, and the stated rates."""

import json
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from spacy_luke.pretraining.ernie.corruption import CORRUPTIONS, collate, corrupt
from spacy_luke.pretraining.ernie.instances import Instance
from spacy_luke.pretraining.ernie.records import from_record


@pytest.fixture(scope="module")
def golden(shared, make_vectors):
    path = shared("golden/ernie_pretraining.safetensors")
    tensors = load_file(path)
    inputs = {key.removeprefix("inputs/"): x for key, x in tensors.items() if key.startswith("inputs/")}
    table = inputs["entity_table"][1:].numpy()
    inputs["vectors"] = make_vectors([f"Q{i}" for i in range(len(table))], matrix=table)
    inputs["seed"] = json.loads(path.with_suffix(".json").read_text("utf8"))["config"]["collate_random_seed"]
    return inputs


def collate_golden(golden, **changes):
    instances = [from_record(record.numpy(), name=f"record {i}") for i, record in enumerate(golden["record"])]
    return collate(instances, golden["vectors"], rng=random.Random(golden["seed"]), **changes)


def test_golden_batch(golden):
    """With the reference's random numbers, its inputs to the last bit."""
    batch = collate_golden(golden)
    real = golden["attention_mask"].bool()
    lengths = real.sum(1).tolist()
    assert list(batch.windows.lengths) == lengths
    assert torch.equal(batch.windows.pieces_N, golden["input_ids"][real])
    assert torch.equal(batch.windows.types_N, golden["token_type_ids"][real])
    labels_N = torch.full((sum(lengths),), -1)
    labels_N[batch.masked_K] = batch.pieces_K
    assert torch.equal(labels_N, golden["masked_lm_labels"][real])
    entities_N = torch.full((sum(lengths),), -1)
    entities_N[batch.linked_A] = batch.gold_A
    assert torch.equal(entities_N, golden["ent_labels"][real])
    assert torch.equal(batch.candidates_CH, golden["candidate"])
    assert torch.equal(batch.random_B, golden["next_sentence_label"].flatten())
    dense, mask = torch.zeros_like(golden["input_ent"]), torch.zeros_like(golden["ent_mask"])
    mask[:, 0] = 1  # [CLS] always takes part
    window_E = torch.arange(len(lengths)).repeat_interleave(torch.tensor(batch.knowledge.counts))
    dense[window_E, batch.knowledge.at_E] = batch.knowledge.vectors_EH
    mask[window_E, batch.knowledge.at_E] = 1
    assert torch.equal(dense, golden["input_ent"])
    assert torch.equal(mask, golden["ent_mask"])


def test_golden_batch_is_corrupted(golden):
    """The golden batch tests something: other random numbers give another batch."""
    expected = collate_golden(golden).knowledge.vectors_EH
    others = [collate_golden({**golden, "seed": seed}).knowledge.vectors_EH for seed in range(20)]
    assert not all(torch.equal(x, expected) for x in others)


def test_rates():
    entities = np.random.default_rng(0).integers(0, 50, 200_000).tolist()
    candidates = [-1, *range(50)]
    after, kinds = corrupt(entities, candidates, rng=random.Random(0), replaced=0.05, removed=0.15)
    n = len(entities)
    for kind, share in zip(CORRUPTIONS, (0.8, 0.05, 0.15)):
        assert kinds.count(CORRUPTIONS.index(kind)) / n == pytest.approx(
            share, abs=5 * np.sqrt(share * (1 - share) / n)
        )
    drawn = [b for b, kind in zip(after, kinds) if CORRUPTIONS[kind] == "replaced"]
    counts = np.bincount(drawn, minlength=50)  # any of the candidates but none, the same one too
    assert counts.min() > 0.7 * len(drawn) / 50
    assert len(counts) == 50
    assert all(
        (a == b) == (CORRUPTIONS[kind] == "kept") or CORRUPTIONS[kind] == "replaced"
        for a, b, kind in zip(entities, after, kinds)
    )
    assert all((b == -1) == (CORRUPTIONS[kind] == "removed") for b, kind in zip(after, kinds))


def make_instance(entities):
    n = len(entities)
    return Instance(np.arange(n), np.zeros(n, int), np.full(n, -1), np.array(entities), False, f"of {n}")


ROWS = st.lists(st.integers(-1, 6), max_size=8).map(lambda rows: [-1, *rows])


@pytest.mark.slow
@given(st.lists(ROWS, min_size=1, max_size=5), st.integers(0, 99))
def test_candidates_and_labels(make_vectors, entities, seed):
    """Whatever is drawn: the gold candidate is the entity before, and what is fed is the entity after."""
    vectors = make_vectors([f"Q{i}" for i in range(7)])
    batch = collate([make_instance(x) for x in entities], vectors, rng=random.Random(seed))
    flat = [entity for window in entities for entity in window]
    linked = [i for i, entity in enumerate(flat) if entity >= 0]
    assert batch.linked_A.tolist() == linked
    assert len(batch.candidates_CH) == len(set(flat) - {-1}) + 1
    assert not batch.candidates_CH[0].any()
    assert (batch.gold_A > 0).all()
    before = torch.from_numpy(vectors.gather([flat[i] for i in linked]))
    assert torch.equal(batch.candidates_CH[batch.gold_A], before)
    stays = batch.kinds_A != CORRUPTIONS.index("removed")
    assert sum(batch.knowledge.counts) == int(stays.sum()) == len(batch.knowledge.at_E)
    starts = np.cumsum([0, *batch.windows.lengths])
    window_E = np.repeat(np.arange(len(entities)), batch.knowledge.counts)
    assert (starts[window_E] + batch.knowledge.at_E.numpy()).tolist() == batch.linked_A[stays].tolist()
    kept = batch.kinds_A == CORRUPTIONS.index("kept")
    assert torch.equal(batch.knowledge.vectors_EH[kept[stays]], before[kept])


def test_candidates_of_the_sequence(make_vectors):
    """The paper's: a window chooses among its own entities."""
    vectors = make_vectors([f"Q{i}" for i in range(7)])
    instances = [make_instance([-1, 3, 5, 3]), make_instance([-1, 5, 6])]
    batch = collate(instances, vectors, rng=random.Random(0), candidates="sequence")
    assert batch.allowed_AC.tolist() == [[False, True, True, False]] * 3 + [[False, False, True, True]] * 2
    with pytest.raises(ValueError, match="candidates must be one of"):
        collate(instances, vectors, rng=random.Random(0), candidates="corpus")
