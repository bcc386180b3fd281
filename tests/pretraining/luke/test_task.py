"""A model for LUKE's pretraining from a checkpoint: rows by name, fresh heads, what is written; and what is frozen."""

import pytest
import torch

from spacy_luke.checkpoint.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.names import ENTITY_TABLE
from spacy_luke.entity_vocab import EntityVocab
from spacy_luke.pretraining.luke.task import idle_patterns, load_luke_pretraining, to_luke_checkpoint
from spacy_luke.pretraining.luke.windows import Drawn
from spacy_luke.pretraining.optimizer import OptimizerSettings, make_stepper
from tests.pretraining.luke.shards import NAMES, make_shards, make_vocab, make_windows
from tests.tiny import ENTITIES, make_checkpoint

BOTH = {"words": True, "entities": True, "pages": False}


def test_rows_by_name(make_vectors):
    """The checkpoint's own, then a store's, then fresh ones."""
    checkpoint = make_checkpoint(entity_aware=False)
    vocab = EntityVocab((name, row) for row, name in enumerate(["[PAD]", "[UNK]", "[MASK]", "Ghana", "E1", "E2"]))
    store = make_vectors(["E1", "Ghana"], size=12)
    model = load_luke_pretraining(checkpoint, vocab, seed=0, vectors=store)
    table, old = model.encoder.entities.table.weight, checkpoint.tensors[ENTITY_TABLE]
    for row, name in enumerate(["[PAD]", "[UNK]", "[MASK]", "Ghana"]):
        assert torch.equal(table[row], old[ENTITIES[name]])
    assert torch.equal(table[4], torch.from_numpy(store.gather([0])[0]))
    assert 0 < float(table[5].detach().std()) < 0.05
    assert checkpoint.report == [
        "initialised entity_head, lm_head: fresh, seed 0",
        f"2 of 6 entities began as vectors of {store.path.name}",
        "4 of 6 entities are the checkpoint's own",
    ]
    with pytest.raises(ValueError, match=r"has 12 columns, but the vectors in .* have 10 numbers"):
        load_luke_pretraining(checkpoint, vocab, seed=0, vectors=make_vectors(["E1"], size=10))


def test_fresh_heads_follow_the_seed():
    first, again, other = (load_luke_pretraining(make_checkpoint(), make_vocab(), seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first.entity_head.dense.weight, again.entity_head.dense.weight)
    assert not torch.equal(first.entity_head.dense.weight, other.entity_head.dense.weight)
    assert torch.equal(first.encoder.words.piece.weight, other.encoder.words.piece.weight)


def test_an_encoder_that_is_not_whole():
    checkpoint = make_checkpoint()
    del checkpoint.tensors["encoder.words.norm.bias"]
    with pytest.raises(ValueError, match=r"lacks \['encoder.words.norm.bias'\] of the encoder"):
        load_luke_pretraining(checkpoint, make_vocab(), seed=0)
    with pytest.raises(ValueError, match="which only learns with masked entities"):
        load_luke_pretraining(make_checkpoint(), make_vocab(), seed=0, entities=False, pages=True)


@pytest.mark.parametrize("entity_aware", [True, False])
def test_written_and_read(tmp_path, entity_aware):
    started = make_checkpoint(entity_aware=False)
    model = load_luke_pretraining(started, make_vocab(), seed=0)
    trained = to_luke_checkpoint(model.state_dict(), started, make_vocab(), tasks=BOTH, entity_aware=entity_aware)
    write_huggingface(trained, tmp_path / "model")
    read = read_checkpoint(tmp_path / "model", entities="all")
    assert (read.task, read.config.entity_aware) == ("masked_lm", entity_aware)
    assert read.entities.titles() == [*NAMES, "[MASK2]"]
    state = model.state_dict()
    for name, tensor in state.items():
        own = read.tensors[name][: len(tensor)] if name in (ENTITY_TABLE, "entity_head.bias") else read.tensors[name]
        assert torch.equal(own, tensor), name
    extra = {name for name in read.tensors if "e2e_query" in name}
    assert bool(extra) == entity_aware
    for name in extra:
        assert torch.equal(read.tensors[name], state[name.replace("e2e_query", "query")])
    small = read_checkpoint(tmp_path / "model", entities="special")
    assert len(small.entities) == 4


def test_heads_that_nobody_trained_are_not_written():
    started = make_checkpoint(entity_aware=False)
    state = load_luke_pretraining(started, make_vocab(), seed=0).state_dict()
    for task, head in (("words", "lm_head."), ("entities", "entity_head.")):
        trained = to_luke_checkpoint(state, started, make_vocab(), tasks={**BOTH, task: False})
        assert not any(name.startswith(head) for name in trained.tensors)
        assert any(name.startswith(("lm_head.", "entity_head.")) for name in trained.tensors)  # the other one is


@pytest.mark.parametrize("tasks", [{}, {"words": False}, {"entities": False}, {"pages": True}], ids=str)
def test_every_parameter_learns_or_is_idle(tmp_path, tasks):
    """Of all others none, so that decay moves nothing that no loss reaches."""
    shards = make_shards(tmp_path / "shards")
    model = load_luke_pretraining(make_checkpoint(entity_aware=False), make_vocab(), seed=0, **tasks).eval()
    shares = {name: None for name in ("words", "entities") if tasks.get(name) is False}
    windows = make_windows(shards, **shares)
    make_stepper(model, OptimizerSettings(frozen=idle_patterns(model.tasks)))
    loss, _ = model(windows.collate([Drawn(i, 0, i) for i in range(60)]))
    loss.backward()
    silent = {name for name, p in model.named_parameters() if p.requires_grad and (p.grad is None or not p.grad.any())}
    assert not {name for name in silent if "key.bias" not in name and "token_type" not in name}


def test_no_entity_in_the_batch(tmp_path):
    """Its loss is 0, and every parameter has a gradient, which processes that wait for one another need."""
    shards = make_shards(tmp_path / "shards")
    numbers = [i for i in range(len(shards)) if not len(shards[i].entities)]
    model = load_luke_pretraining(make_checkpoint(entity_aware=False), make_vocab(), seed=0)
    loss, measured = model(make_windows(shards).collate([Drawn(i, 0, i) for i in numbers[:2]]))
    loss.backward()
    assert [float(x) for x in measured["entity"]] == [0, 0]
    assert all(p.grad is not None for p in model.parameters())


def test_totals_of_a_step(tmp_path):
    """The losses of parts, divided by what all are asked, sum to the loss of the whole."""
    shards = make_shards(tmp_path / "shards")
    model = load_luke_pretraining(make_checkpoint(entity_aware=False), make_vocab(), seed=0, pages=True).eval()
    windows, drawn = make_windows(shards), [Drawn(i, 0, i) for i in range(12)]
    whole = windows.collate(drawn)
    parts = [windows.collate(part) for part in (drawn[:3], drawn[3:])]
    expected, _ = model(whole)
    found = sum(model(part, whole.counts)[0] for part in parts)
    assert float(found.detach()) == pytest.approx(float(expected.detach()), abs=1e-5)


def test_entities_alone_and_none_in_the_batch(tmp_path):
    """The same, where no word is asked either."""
    shards = make_shards(tmp_path / "shards")
    numbers = [i for i in range(len(shards)) if not len(shards[i].entities)]
    model = load_luke_pretraining(make_checkpoint(entity_aware=False), make_vocab(), seed=0, words=False)
    make_stepper(model, OptimizerSettings(frozen=idle_patterns(model.tasks)))
    loss, _ = model(make_windows(shards, words=None).collate([Drawn(i, 0, i) for i in numbers[:2]]))
    assert float(loss.detach()) == 0
    loss.backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)
