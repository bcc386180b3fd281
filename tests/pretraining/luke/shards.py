"""Small shards with entities that their words tell: each entity is always mentioned by the same two pieces."""

import numpy as np

from spacy_luke.corpus.shards import Example, PageExamples, Shards
from spacy_luke.entity_vocab import EntityVocab
from spacy_luke.pretraining.luke.masking import MaskingSettings
from spacy_luke.pretraining.luke.windows import LukeWindows
from tests.corpus.written import write_shards
from tests.tiny import make_checkpoint

ENTITIES = 20
FIRST = 3  # row of the first entity after [PAD], [UNK] and [MASK]
TOKENIZER = make_checkpoint().tokenizer
NAMES = ("[PAD]", "[UNK]", "[MASK]", *[f"E{i}" for i in range(ENTITIES)])


def make_vocab() -> EntityVocab:
    return EntityVocab(
        ((name, row) for row, name in enumerate(NAMES)), counts=[0] * FIRST + list(range(2 * ENTITIES, ENTITIES, -1))
    )


def make_example(rng: np.random.Generator, *, pieces: int, page: int, most: int = 60) -> Example:
    n, m = int(rng.integers(12, most)), int(rng.integers(0, 5))
    ids = rng.integers(10, pieces, size=n)
    entities, starts = rng.integers(ENTITIES, size=m), 3 * np.sort(rng.choice(n // 3, size=m, replace=False))
    for entity, start in zip(entities, starts):
        ids[start : start + 2] = 30 + entity, 60 + entity
    starts = starts.astype(np.int32)
    words = rng.random(n) < 0.7
    return Example(
        ids.astype(np.int32), words, (entities + FIRST).astype(np.int32), starts, starts + 2, 0, FIRST + page
    )


def make_shards(folder, *, pages: int = 12, seed: int = 0, most: int = 60) -> Shards:
    rng = np.random.default_rng(seed)
    made = [
        PageExamples(f"E{page}", FIRST + page, [make_example(rng, pieces=300, page=page, most=most) for _ in range(5)])
        for page in range(pages)
    ]
    return write_shards(made, folder, tokenizer=TOKENIZER, vocab=make_vocab(), max_pieces=62)


def make_windows(shards, *, sampler=None, max_window=62, **settings):
    return LukeWindows(
        shards,
        tokenizer=TOKENIZER,
        mask_entity=2,
        first_entity=FIRST,
        entities=len(make_vocab()),
        settings=MaskingSettings(**settings),
        seed=7,
        max_window=max_window,
        sampler=sampler,
    )
