"""Flipped bits and cut files in every store, pipeline and checkpoint: refused with our error, or the same is read.

What a format of others has no checksum for may be read as another value, and is counted (`others' formats`): weights
and settings of checkpoints in Hugging Face's layout, config.cfg and meta.json, which are there to be edited, and
spaCy's own files of tokenizer, vocabulary and sentencizer. A crash, a hang or a strange error is a failure there, too;
in spaCy's own files and through spaCy's own code only a crash or a hang.
"""

import hashlib
import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch

from .docs import read
from .forks import run_forked
from .inputs import make_inputs, say
from .runner import Kind, Outcome
from .stand import make_stand

MEMORY = 3 << 30  # bytes that a damaged file may make a child take
REFUSED, OTHER = 11, 12  # exit statuses
SPACYS = (
    "tokenizer",
    "vocab/",
    "sentencizer.json",
    "config.cfg",
    "meta.json",
)  # files of a pipeline that are spaCy's, or the user's
FOREIGN = "others' formats: read as another value"


@dataclass(frozen=True)
class Target:
    """Something on disk. look: reads all of it; editable: whether a value of it may be another one, as above."""

    look: Callable[[Path], Any]
    editable: Callable[[str], bool] = lambda name: False
    weight: float = 1.0


def _names(path: Path) -> Any:
    from spacy_luke.aliases.store import AliasStore

    store = AliasStore.open(path)
    return [[name, store.candidates(name), store.link_probability(name)] for name in store]


def _kb(path: Path) -> Any:
    from spacy_luke.kb.knowledge_base import EntityKB

    kb = EntityKB.open(path)
    ids = [kb.name_of(row) for row in range(len(kb))]
    names = ["ada", "Ada Lovelace", "London", "Lagos", "東京", "Newcomer 1", "nobody"]
    found = [[name, [[x.entity, x.prior] for x in kb.candidates(name)]] for name in names]
    vectors = kb.vectors.gather(kb.vectors.rows(ids)).tolist() if kb.vectors is not None else None
    return [[[x, kb.row(x), kb.count(kb.row(x)), kb.description(kb.row(x))] for x in ids], found, vectors]


def _vectors(path: Path) -> Any:
    from spacy_luke.vectors.store import EntityVectors

    store = EntityVectors.open(path)
    names = store.names_of(np.arange(len(store)))
    return [list(names), store.rows(names).tolist(), store.gather(np.arange(len(store))).tolist()]


def _shards(path: Path) -> Any:
    from spacy_luke.corpus.shards import Shards

    shards = Shards.open(path)
    rows = [[np.asarray(x).tolist() for x in shards[i]] for i in range(len(shards))]
    return [rows, [shards.title(row[-2]) for row in rows], shards.tokenizer().to_json(), shards.entity_vocab().names()]


def _linked(path: Path) -> Any:
    from spacy_luke.corpus.linked_corpus import LinkedCorpus

    return [repr(x) for x in LinkedCorpus.open(path).paragraphs()]


def _vocab(path: Path) -> Any:
    from spacy_luke.entity_vocab import EntityVocab

    vocab = EntityVocab.from_file(path)
    return [vocab.names(), None if vocab.counts is None else list(vocab.counts)]


def _checkpoint(path: Path) -> Any:
    from spacy_luke.checkpoint import read_checkpoint

    found = read_checkpoint(path)
    text = found.tokenizer.to_json()
    return [repr(found.config), found.labels, text, found.entities.names(), _digest(found.tensors)]


def _ernie(path: Path) -> Any:
    from spacy_luke.checkpoint.ernie import read_ernie

    found = read_ernie(path)
    return [repr(found.config), found.tokenizer.to_json(), _digest(found.tensors)]


def _digest(tensors: dict[str, Any]) -> Any:
    return {
        name: hashlib.sha256(x.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()
        for name, x in tensors.items()
    }


def _pipeline(path: Path) -> Any:
    return say(spacy.load(path))


def _ernie_pipeline(path: Path) -> Any:
    return [read(doc) for doc in spacy.load(path).pipe(["Ada Lovelace lived in London .", "Lagos ."])]


def _is_spacys(name: str) -> bool:
    return name.startswith(SPACYS)


def _always(name: str) -> bool:
    return True


TARGETS: dict[str, Target] = {
    "names": Target(_names, weight=2),
    "kb": Target(_kb, weight=2),
    "vectors": Target(_vectors, weight=2),
    "wiki_shards": Target(_shards, weight=2),
    "linked": Target(_linked),
    "vocab": Target(_vocab, _always),  # lines of JSON, which others write, too
    "pipeline": Target(_pipeline, _is_spacys, weight=2),
    "pipeline_ernie": Target(_ernie_pipeline, _is_spacys),
    "tiny": Target(_checkpoint, _always),
    "pretrained": Target(_checkpoint, _always),
    "ernie": Target(_ernie, _always),
}


class FlipsKind(Kind):
    name, unit, wanted, slow, limit, share = "flips", "flips", 5000, 120, 120.0, 12

    def prepare(self, folder: Path) -> None:
        self.place = make_inputs(folder / "inputs")
        make_stand("shared ernie", self.place).to_disk(self.place / "pipeline_ernie")
        self.whole = {name: self._look(name, self.place / name, folder)[1] for name in TARGETS}

    def _look(self, name: str, path: Path, folder: Path) -> tuple[int, str]:
        """Exit status and what was read, as a digest, or what was raised."""

        def look() -> None:
            try:
                found = json.dumps(TARGETS[name].look(path), default=repr)
            except (ValueError, OSError) as error:
                print(f"{type(error).__name__}: {error}"[:1500])
                sys.exit(OTHER if _is_strange(error) else REFUSED)
            print(hashlib.sha256(found.encode()).hexdigest())

        ended = run_forked(look, folder=folder, limit=30.0, memory=MEMORY)
        said = ended.said.strip()
        if ended.status in (0, REFUSED, OTHER) and not ended.hung:
            return ended.status, said.splitlines()[-1] if ended.status == 0 else said
        return -1, f"{ended.describe()}: {said[-1800:]}"

    def case(self, number: int, rng: random.Random, folder: Path) -> Outcome:
        name = rng.choices(list(TARGETS), weights=[x.weight for x in TARGETS.values()])[0]
        path = folder / name
        copy(self.place / name, path)
        file, what = damage(path, rng)
        editable = TARGETS[name].editable(file)
        status, found = self._look(name, path, folder)
        outcome = Outcome(counts={name: 1, what.split(" ")[0]: 1})
        wrong = None
        if status == REFUSED:
            outcome.refused = 1
        elif status == 0:
            outcome.counts["same"] = int(found == self.whole[name])
            if found != self.whole[name]:
                outcome.counts[FOREIGN] = int(editable)
                wrong = None if editable else "something else is read without a word"
        elif status == OTHER or not found.startswith(("signal", "hangs")):
            if name.startswith("pipeline") and _is_spacys(file):
                outcome.counts["spaCy's own errors"] = 1
            else:
                wrong = f"no error of ours: {found}"
        else:
            wrong = found
        if wrong:
            outcome.failures.append(f"{name}/{file}, {what}: {wrong}")
        return outcome


def _is_strange(error: BaseException) -> bool:
    """Whether it is raised where nobody of ours looked: a bare error of Python's or of a library, without words for a
    user."""
    return type(error) not in (ValueError, OSError, FileNotFoundError) or len(str(error)) < 25


def copy(source: Path, target: Path) -> None:
    """With new times, as another machine has it."""
    if source.is_file():
        shutil.copyfile(source, target)
        return
    shutil.copytree(source, target, copy_function=shutil.copyfile)


def damage(path: Path, rng: random.Random) -> tuple[str, str]:
    """One file of a store. RETURNS: its name and what was done to it."""
    files = [x for x in sorted([path, *path.rglob("*")]) if x.is_file() and x.stat().st_size]
    sizes = [x.stat().st_size for x in files]
    file = rng.choices(files, weights=sizes if rng.random() < 0.5 else None)[0]
    data = bytearray(file.read_bytes())
    place, draw = rng.randrange(len(data)), rng.random()
    if draw < 0.8:
        data[place] ^= 1 << rng.randrange(8)
        what = f"bit of byte {place:,} of {len(data):,}"
    elif draw < 0.9:
        del data[place:]
        what = f"cut to {place:,} bytes"
    elif draw < 0.95:
        data[place : place + 64] = bytes(len(data[place : place + 64]))
        what = f"zeros from byte {place:,} of {len(data):,}"
    else:
        data += os.urandom(1) * rng.choice([1, 8, 4096])
        what = "longer"
    file.write_bytes(data)
    return file.relative_to(path).as_posix() if file != path else "", what
