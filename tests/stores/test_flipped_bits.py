"""One flipped bit anywhere in any store: it is refused in our words, or everything is answered as before.

A child does it, so that one that is ended by a signal is seen.
"""

import os
import pickle
import random
import warnings

import numpy as np
import pytest
from spacy.vocab import Vocab

from spacy_luke.aliases.build import build_store
from spacy_luke.aliases.store import AliasStore
from spacy_luke.components.linker.spacy_kb import LinkedKB
from spacy_luke.corpus.linked_corpus import LinkedCorpus, Paragraph
from spacy_luke.corpus.shards import Shards
from spacy_luke.kb.change import add_to_kb
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.stores import digests
from spacy_luke.vectors.build import build_vectors
from spacy_luke.vectors.store import EntityVectors
from tests.corpus.written import write_corpus
from tests.kb.kbs import small_kb, write_entities

FLIPS = 60  # of each store; make harness flips thousands
NAMES = ["Q1", "Q22", "Berlin (Ohio)", "東京", "q1", "Q5"]


def make_mentions(folder):
    rows = [f"name {i}\tEntity {i % 7}\t{i + 1}\t{2 * i + 9}\n" for i in range(40)]
    (folder / "names.tsv").write_text("name\tentity\tcount\toccurrences\n" + "".join(rows), encoding="utf8")
    build_store([folder / "names.tsv"]).store.save(folder / "store")
    return folder / "store"


def read_mentions(path):
    store = AliasStore.open(path)
    names = list(store)
    found = [(name, store.candidates(name), store.link_probability(name)) for name in names]
    return store.case, store.longest, store.info, found, [store.entity_number_of(title) for title in store.entities()]


def make_vectors(folder):
    (folder / "titles.txt").write_text("Tokyo\t東京\nThe first\tQ1\n", encoding="utf8")
    values = np.random.default_rng(0).normal(size=(6, 10)).astype(np.float32)
    build_vectors(values, folder / "store", names=NAMES, dtype="int8", titles=folder / "titles.txt")
    return folder / "store"


def read_vectors(path):
    store = EntityVectors.open(path)
    rows = store.rows([*NAMES, "Tokyo", "The first", "Q2"]).tolist()
    return rows, store.gather(np.arange(6)).tolist(), store.names_of(np.arange(6)), store.info, store.name_count


def make_kb(folder):
    kb = small_kb(folder)
    more = [{"id": "Ohio", "names": ["Ohio", "Clinton"], "description": "A state.", "count": 5}]
    kb = add_to_kb(kb, [write_entities(folder / "more.jsonl", more)]).kb
    build_vectors(np.eye(len(kb), 4, dtype=np.float32) + 1, kb.path / "vectors", names=list(kb.entities()))
    return kb.path


def read_kb(path):
    kb = EntityKB.open(path)
    rows = [(kb.name_of(i), kb.description(i), kb.count(i), kb.is_person(i)) for i in range(len(kb))]
    names = [*kb.names(), "JAPAN", "u.s.", "Sao Paulo", "sampa", "nobody"]
    vectors = kb.vectors.gather(np.arange(len(kb))).tolist()
    return rows, [(kb.find_name(name), kb.candidates(name)) for name in names], kb.info, vectors


def make_linked_kb(folder):
    LinkedKB(Vocab(), EntityKB.open(make_kb(folder)), top=2).to_disk(folder / "saved")
    return folder / "saved"


def read_linked_kb(path):
    kb = LinkedKB(Vocab()).from_disk(path)
    return kb.top, kb.entity_vector_length, read_kb(path)


def make_small_shards(folder):
    from tests.pretraining.luke.shards import make_shards

    return make_shards(folder / "store").path


def read_shards(path):
    shards = Shards.open(path)
    examples = [[np.asarray(part).tolist() for part in example] for example in shards]
    return examples, [shards.title(i) for i in range(12)], shards.entity_vocab().names(), shards.tokenizer().to_json()


def make_corpus(folder):
    paragraphs = [Paragraph(f"Page {i}", "Ada lives in London.", [(0, 3, "Ada"), (13, 19, "London")]) for i in range(9)]
    return write_corpus(lambda counts: iter(paragraphs), folder / "store", language="en", part_chars=60).path


def read_corpus(path):
    corpus = LinkedCorpus.open(path)
    return corpus.language, corpus.manifest["counts"], list(corpus.paragraphs())


STORES = {
    "mentions": (make_mentions, read_mentions),
    "vectors": (make_vectors, read_vectors),
    "kb": (make_kb, read_kb),
    "linked_kb": (make_linked_kb, read_linked_kb),
    "shards": (make_small_shards, read_shards),
    "corpus": (make_corpus, read_corpus),
}


def try_flips(path, read, report):
    """Each flip of a random bit of a random file; a line about each goes to `report` before and after it."""
    rng, expected = random.Random(0), pickle.dumps(read(path))
    files = [path] if path.is_file() else sorted(x for x in path.rglob("*") if x.is_file() and x.stat().st_size)
    for _ in range(FLIPS):
        file = rng.choice(files)
        good = file.read_bytes()
        place, bit = rng.randrange(len(good)), rng.randrange(8)
        bad = bytearray(good)
        bad[place] ^= 1 << bit
        file.write_bytes(bad)
        report.write(f"{file.name} byte {place} bit {bit}: ")
        report.flush()
        try:
            report.write("same\n" if pickle.dumps(read(path)) == expected else "OTHER ANSWERS\n")
        except ValueError as error:
            ours = (
                type(error) is ValueError
                and str(path) in str(error)
                and ("again" in str(error) or "Build" in str(error))
            )
            report.write("refused\n" if ours else f"NOT OURS: {error!r}\n")
        except BaseException as error:
            report.write(f"NOT OURS: {error!r}\n")
        file.write_bytes(good)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
@pytest.mark.parametrize("small", [True, False], ids=["small", "large"])
@pytest.mark.parametrize("kind", STORES)
def test_flipped_bits(kind, small, tmp_path, monkeypatch):
    """small: whether files are small enough to be read at each opening, or are to be remembered."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if not small:
        monkeypatch.setattr(digests, "SMALL", 0)
        monkeypatch.setattr(digests, "SETTLED", -1)
    make, read = STORES[kind]
    path = make(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's threads do nothing here
        child = os.fork()
    if child == 0:
        with (tmp_path / "report").open("w", encoding="utf8") as report:
            try_flips(path, read, report)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, (tmp_path / "report").read_text()[-300:]
    lines = (tmp_path / "report").read_text(encoding="utf8").splitlines()
    assert len(lines) == FLIPS
    assert [line for line in lines if not line.endswith((": refused", ": same"))] == []
    assert sum(line.endswith(": refused") for line in lines) > FLIPS * 0.8
