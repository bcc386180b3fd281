"""Windows of shards: the order of an epoch, masks that follow the place alone, packed positions, what is refused."""

from itertools import islice

import numpy as np
import pytest
import torch

from spacy_luke.pretraining.luke.negatives import EntitySampler, SamplingSettings
from spacy_luke.pretraining.luke.windows import (
    Drawn,
    ShardSource,
    held_out_windows,
    luke_stream,
    make_shard_reader,
    smooth_languages,
)
from spacy_luke.pretraining.stream import BatchSize, Position
from tests.pretraining.luke.shards import FIRST, TOKENIZER, make_shards, make_vocab, make_windows
from tests.sealing import reseal


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return make_shards(tmp_path_factory.mktemp("shards") / "shards")


def names_of(batches):
    return [x.name for x, _ in batches]


def same(a, b):
    tensors = [
        (getattr(a, name), getattr(b, name)) for name in ("masked_K", "pieces_K", "asked_A", "gold_A", "pages_B")
    ]
    tensors += [(a.windows.pieces_N, b.windows.pieces_N), (a.mentions.entities_E, b.mentions.entities_E)]
    return all(torch.equal(x, y) for x, y in tensors)


def test_an_epoch_has_every_example_once_in_another_order(shards):
    source = ShardSource(shards, seed=0)
    drawn = [x for x, _ in islice(source.instances(Position()), 2 * len(shards))]
    first, second = drawn[: len(shards)], drawn[len(shards) :]
    for epoch, part in enumerate((first, second)):
        assert sorted(x.number for x in part) == list(range(len(shards)))
        assert [(x.epoch, x.place) for x in part] == [(epoch, i) for i in range(len(shards))]
    assert [x.number for x in first] != [x.number for x in second]


@pytest.mark.parametrize("at", [0, 5, 59, 60, 61, 100])
def test_taken_up_at_any_place(shards, at):
    source = ShardSource(shards, seed=0)
    whole = list(islice(source.instances(Position()), 130))
    position = whole[at][1]
    assert list(islice(source.instances(position), 10)) == whole[at + 1 : at + 11]


def test_masks_depend_on_nothing_but_the_place(shards):
    """However the windows are divided among batches and processes."""
    windows, source = make_windows(shards), ShardSource(shards, seed=0)
    single = [b for b, _ in islice(luke_stream(source, windows, BatchSize(1))(Position()), 12)]
    whole = next(luke_stream(source, windows, BatchSize(12))(Position()))[0]
    pieces = torch.cat([b.windows.pieces_N for b in single])
    assert torch.equal(pieces, whole.windows.pieces_N)
    assert torch.equal(torch.cat([b.gold_A for b in single]), whole.gold_A)
    for rank in (0, 1):
        part = next(luke_stream(source, windows, BatchSize(6), rank=rank, world_size=2)(Position()))[0]
        assert torch.equal(
            part.windows.pieces_N, torch.cat([b.windows.pieces_N for b in single[6 * rank : 6 * rank + 6]])
        )
    assert whole.counts == {"words": len(whole.pieces_K), "entities": len(whole.gold_A), "pages": 12}


def test_masks_change_with_the_epoch(shards):
    windows = make_windows(shards)
    first, again, later = (windows.collate([Drawn(3, epoch, 8)]) for epoch in (0, 0, 1))
    assert same(first, again)
    assert not torch.equal(first.masked_K, later.masked_K)


def test_packed_places(shards):
    """Rows of what is asked, and mentions counted with [CLS]."""
    windows = make_windows(shards, entities=0.5)
    drawn = [Drawn(i, 0, i) for i in range(10)]
    batch = windows.collate(drawn)
    pieces, at, entity = batch.windows.pieces_N, 0, 0
    original = torch.cat([torch.tensor([0, *shards[i].pieces, 0]) for i in range(10)])
    assert torch.equal(original[batch.masked_K], batch.pieces_K)
    assert torch.equal(torch.tensor([shards[i].page_id for i in range(10)]), batch.pages_B)
    assert batch.mentions.counts == [len(shards[i].entities) for i in range(10)]
    for i, length in enumerate(batch.windows.lengths):
        assert pieces[at] == TOKENIZER.cls_id
        assert pieces[at + length - 1] == TOKENIZER.sep_id
        for row, start in zip(shards[i].entities, shards[i].starts):
            first, last = batch.mentions.first_E[entity], batch.mentions.last_E[entity]
            assert original[at + first] == 30 + row - FIRST
            assert original[at + last] == 60 + row - FIRST
            assert (first, last) == (start + 1, start + 2)
            entity += 1
        at += length
    entities = torch.cat([torch.from_numpy(shards[i].entities).long() for i in range(10)])
    assert torch.equal(entities[batch.asked_A], batch.gold_A)
    assert (batch.mentions.entities_E[batch.asked_A] == 2).all()


def test_without_entities(shards):
    batch = make_windows(shards, entities=None).collate([Drawn(i, 0, i) for i in range(10)])
    assert len(batch.mentions.entities_E) == len(batch.gold_A) == sum(batch.mentions.counts) == 0
    assert len(batch.pieces_K)


def test_random_pieces_are_no_special_ones(shards):
    pieces = make_windows(shards).vocabularies.pieces_P
    special = {TOKENIZER.cls_id, TOKENIZER.sep_id, TOKENIZER.pad_id, TOKENIZER.unk_id, TOKENIZER.mask_id}
    assert not special & set(pieces.tolist())
    assert not {TOKENIZER.piece_id("<ent>"), TOKENIZER.piece_id("<ent2>")} & set(pieces.tolist())
    assert len(pieces) == len(TOKENIZER) - 7


def test_sampled_entities(shards):
    sampler = EntitySampler(SamplingSettings(negatives=4), first=FIRST, end=len(make_vocab()))
    windows = make_windows(shards, sampler=sampler)
    first, again = (windows.collate([Drawn(i, 0, i) for i in range(10)]) for _ in range(2))
    assert set(first.gold_A.tolist()) <= set(first.sampled.rows_C.tolist())
    assert torch.equal(first.sampled.rows_C, again.sampled.rows_C)
    assert len(first.sampled.log_weight_C) == len(first.sampled.rows_C)


def test_held_out_windows_stay(shards):
    windows = make_windows(shards)
    first, again = (held_out_windows(shards, windows, 4, 3) for _ in range(2))
    assert [len(x.windows.lengths) for x in first] == [4, 4, 4]
    assert all(same(a, b) for a, b in zip(first, again))
    assert len(held_out_windows(shards, windows, 50, 9)) == 2


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_batches_by_pieces(shards, world_size):
    """As many windows as fit, in the epoch's order; the same batches for any processes, and taken up anywhere."""
    windows, source, most = make_windows(shards), ShardSource(shards, seed=0), 150

    def stream(rank, position=Position()):
        return luke_stream(source, windows, BatchSize(4, pieces=most), rank=rank, world_size=world_size)(position)

    lengths = [windows.pieces_of(drawn) for drawn, _ in islice(source.instances(Position()), 60)]
    plain, held = [], []
    for length in lengths:
        if held and sum(held) + length > most:
            plain.append(held)
            held = []
        held.append(length)
    ranks = [list(islice(stream(rank), 12 // world_size)) for rank in range(world_size)]
    taken = [batch for batches in zip(*ranks) for batch in batches]
    assert [list(batch.windows.lengths) for batch, _ in taken] == plain[:12]
    assert max(sum(x) for x in plain) <= most
    assert len({len(x) for x in plain}) > 1
    for (_, position), (after, _) in zip(ranks[-1], ranks[-1][1:]):
        assert same(next(stream(world_size - 1, position))[0], after)
    assert [x for _, x in ranks[0]] == [x for _, x in ranks[-1]]


def test_a_window_with_more_pieces_is_a_batch(shards):
    windows, source = make_windows(shards), ShardSource(shards, seed=0)
    batches = luke_stream(source, windows, BatchSize(4, pieces=1))(Position())
    assert [len(batch.windows.lengths) for batch, _ in islice(batches, 8)] == [1] * 8
    with pytest.raises(ValueError, match=r"training\.batch_pieces must be a whole number from 1, but it is 0"):
        BatchSize(4, pieces=0)


def test_rare_languages_are_drawn_more_often():
    """8, 4 and 1 examples: 13 as 1 : 1 : 1 are 5, 4, 4; none of a language is left out before it has come as often."""
    languages = np.array([0] * 8 + [1] * 4 + [2])
    wanted = {s: [x.wanted for x in smooth_languages(languages, s)] for s in (0.0, 0.5, 1.0)}
    assert wanted == {0.0: [5, 4, 4], 0.5: [6, 5, 2], 1.0: [8, 4, 1]}
    source = ShardSource(languages, seed=3, quotas=smooth_languages(languages, 0.0))
    drawn = [x for x, _ in islice(source.instances(Position()), 26)]
    epochs = [[x.number for x in drawn[:13]], [x.number for x in drawn[13:]]]
    for epoch in epochs:
        assert len({x for x in epoch if x < 8}) == sum(x < 8 for x in epoch) == 5
        assert sorted(x for x in epoch if 8 <= x < 12) == [8, 9, 10, 11]
        assert epoch.count(12) == 4
    assert epochs[0] != epochs[1]
    position = next(islice(source.instances(Position()), 6, 7))[1]
    assert [x for x, _ in islice(source.instances(position), 10)] == drawn[7:17]


def test_smoothing_needs_languages(shards):
    with pytest.raises(ValueError, match="do not say which examples are of which language"):
        make_shard_reader(str(shards.path), smoothing=0.7)()
    with pytest.raises(ValueError, match="Expected smoothing from 0 to 1, or null, but got 2"):
        make_shard_reader(str(shards.path), smoothing=2)


def test_parts_of_pages(shards):
    parts = {name: make_shard_reader(str(shards.path), name, 4)() for name in ("train", "dev")}
    pages = {name: {part.examples[i].page for i in range(len(part.examples))} for name, part in parts.items()}
    assert pages == {"dev": {0, 4, 8}, "train": set(range(12)) - {0, 4, 8}}
    assert sum(len(part.examples) for part in parts.values()) == len(shards)
    assert len(make_shard_reader(str(shards.path))().examples) == len(shards)


def test_what_is_refused(shards, tmp_path):
    with pytest.raises(ValueError, match=r"has \d+ pieces with \[CLS\] and \[SEP\], but the encoder reads 12"):
        make_windows(shards, max_window=12).collate([Drawn(0, 0, 0)])
    for part, held_out in (("all", 3), ("dev", None), ("test", 3), ("train", 1)):
        with pytest.raises(ValueError, match="and held_out from 2"):
            make_shard_reader(str(shards.path), part, held_out)
    one = make_shards(tmp_path / "one", pages=1)
    with pytest.raises(ValueError, match="of which none is in the part 'train'"):
        make_shard_reader(str(one.path), "train", 2)()
    with pytest.raises(ValueError, match="The shards have no examples"):
        ShardSource(np.zeros(0), seed=0)


def test_a_flipped_byte_is_seen_before_training(shards, tmp_path):
    made = make_shards(tmp_path / "flipped")
    path = made.path / "entities.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"entities\.npy is damaged"):
        make_shard_reader(str(made.path), verify=False)()
    reseal(made.path)
    windows = make_windows(make_shard_reader(str(made.path))().shards)
    with pytest.raises(ValueError, match=r"Example \d+ of the shards in .* is damaged"):
        windows.collate([Drawn(i, 0, i) for i in range(len(windows.examples))])


def test_names_of_batches(shards):
    first, second = names_of(
        islice(luke_stream(ShardSource(shards, seed=0), make_windows(shards), BatchSize(2))(Position()), 2)
    )
    assert first.startswith("1 (epoch 0, examples ")
    assert second.startswith("2 (epoch 0, examples ")
