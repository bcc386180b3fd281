"""Instances from documents: the original's sample made anew, the stated rates, and what cannot be used."""

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from spacy_luke.pretraining.ernie.instances import (
    InstanceSettings,
    LinkedSentence,
    SourceDocument,
    encode_document,
    pair_documents,
    report_counts,
)
from spacy_luke.pretraining.ernie.records import Records
from tests.pretraining.ernie.published import BERT, remake
from tests.pretraining.ernie.record_files import to_record
from tests.tiny import make_wordpiece

SETTINGS = InstanceSettings(cls_id=2, sep_id=3, mask_id=4, random_pieces=1000, max_pieces=64, min_entities=0)


def make_documents(n, *, seed=0, sentences=20, length=12):
    """Documents whose pieces say where they are from: 1000 times the document and more."""
    rng = random.Random(seed)
    documents = []
    for i in range(n):
        made = []
        for j in range(sentences):
            size = rng.randint(1, length)
            pieces = [10_000 * (i + 1) + 100 * j + k for k in range(size)]
            made.append(LinkedSentence(pieces, [piece if k == 0 else -1 for k, piece in enumerate(pieces)]))
        documents.append((f"document {i}", made))
    return documents


def make_instances(documents, **changes):
    counts = Counter()
    settings = replace(SETTINGS, **changes)
    return list(pair_documents(documents, settings=settings, rng=random.Random(1), counts=counts)), counts


def test_the_published_sample_is_made_anew(shared):
    """From the first 11 documents and the seed, all 334 records come out, to the last number; entities by a number for
    each Wikidata id; and what was dropped has fewer than 5 entities that have a number."""
    folder = shared("data/ernie_pretrain_sample")
    made, ids, counts = remake(folder)
    assert (len(made), len(ids), counts["instances"]) == (508, 2004, 508)
    records = Records(folder / "sample")
    by_words = {to_record(instance, 256)[: 4 * 256].tobytes(): instance for instance in made}
    numbers, used = {}, set()
    for i in range(len(records)):
        record = records[i]
        instance = by_words[record[: 4 * 256].tobytes()]
        used.add(instance.name)
        assert record[-1] == instance.is_random
        theirs = record[4 * 256 : 5 * 256]
        for ours, number in zip(instance.entities_N.tolist(), theirs.tolist()):
            assert number == -1 if ours < 0 else numbers.setdefault(ours, number) == number
    with_number = {entity for entity, number in numbers.items() if number >= 0}
    assert len({numbers[entity] for entity in with_number}) == len(with_number) == 1607
    dropped = [instance for instance in made if instance.name not in used]
    assert len(dropped) == 508 - 334
    assert max(sum(entity in with_number for entity in x.entities_N.tolist()) for x in dropped) == 4


def test_masking_rates(shared):
    """On the whole sample: 15 % of the pieces, of them 80 % [MASK], 10 % the same, 10 % another; at most 40."""
    made, _, _ = remake(shared("data/ernie_pretrain_sample"), documents=100)
    pieces = np.concatenate([x.pieces_N for x in made])
    labels = np.concatenate([x.labels_N for x in made])
    masked = labels >= 0
    n = masked.sum()
    assert n > 100_000
    assert max((x.labels_N >= 0).sum() for x in made) <= 40
    full = [x for x in made if len(x.pieces_N) == 256]
    assert {int((x.labels_N >= 0).sum()) for x in full} == {38}  # round(0.15 * 256)
    for share, expected in (
        ((pieces[masked] == BERT.mask_id).mean(), 0.8),
        ((pieces[masked] == labels[masked]).mean(), 0.1),
        (((pieces[masked] != labels[masked]) & (pieces[masked] != BERT.mask_id)).mean(), 0.1),
    ):
        assert share == pytest.approx(expected, abs=5 * np.sqrt(expected * (1 - expected) / n))
    assert not np.isin(labels, (BERT.cls_id, BERT.sep_id)).any()
    assert np.mean([x.is_random for x in made]) == pytest.approx(0.5, abs=0.06)  # more: parts of one sentence
    short = np.mean([len(x.pieces_N) < 200 for x in made])
    assert 0.02 < short < 0.4


def test_most_masked():
    made, _ = make_instances(make_documents(5), max_masked=3)
    assert {int((x.labels_N >= 0).sum()) for x in made} <= {1, 2, 3}


def test_structure():
    made, _ = make_instances(make_documents(6))
    for x in made:
        n = len(x.pieces_N)
        assert n <= 64
        assert len(x.types_N) == len(x.labels_N) == len(x.entities_N) == n
        pieces = np.where(x.labels_N >= 0, x.labels_N, x.pieces_N)
        seps = np.flatnonzero(pieces == 3)
        assert pieces[0] == 2
        assert len(seps) == 2
        assert seps[1] == n - 1
        assert x.types_N.tolist() == [0] * (seps[0] + 1) + [1] * (n - seps[0] - 1)
        linked = x.entities_N >= 0
        assert (x.entities_N[linked] == pieces[linked]).all()  # entities stay with their pieces, cut or masked
        first, second = pieces[1 : seps[0]] // 10_000, pieces[seps[0] + 1 : -1] // 10_000
        assert len(set(first)) == len(set(second)) == 1
        assert (first[0] != second[0]) == x.is_random


def test_no_piece_of_a_document_is_lost():
    """Every piece stands in a first or a following second part, but for what is cut where a pair is too long."""
    documents = make_documents(4, length=5)
    made, _ = make_instances(documents, short_share=0.0)
    seen = set()
    for x in made:
        pieces = np.where(x.labels_N >= 0, x.labels_N, x.pieces_N)
        own = x.types_N == 0 if x.is_random else np.ones(len(pieces), bool)
        seen |= set(pieces[own].tolist())
    everything = {piece for _, sentences in documents for s in sentences for piece in s.pieces}
    assert len(everything - seen) < 0.1 * len(everything)


def test_too_few_entities_are_counted():
    everything, _ = make_instances(make_documents(5))
    enough, counts = make_instances(make_documents(5), min_entities=8)
    assert 0 < len(enough) < len(everything) == counts["instances"]
    assert counts["with too few entities"] == len(everything) - len(enough)
    assert f"{counts['with too few entities']:,} dropped" in report_counts(counts)[0]


def test_one_sentence_documents():
    made, _ = make_instances([(f"d{i}", [LinkedSentence([10 + i], [-1])]) for i in range(3)])
    assert [x.is_random for x in made] == [True] * 3
    assert all(len(x.pieces_N) == 5 for x in made)


@pytest.mark.parametrize(
    "changes",
    [{"max_pieces": 4}, {"max_masked": 0}, {"min_entities": -1}, {"short_share": 1.5}, {"masked_share": -0.1}],
)
def test_impossible_settings(changes):
    with pytest.raises(ValueError, match=r"Expected max_pieces|must be a share"):
        replace(SETTINGS, **changes)


def encode(sentences, make_vectors, names=("Q1", "Q2")):
    counts = Counter()
    document = SourceDocument("article 7", sentences)
    encoded = encode_document(document, tokenizer=make_wordpiece(), vectors=make_vectors(names), counts=counts)
    return encoded, counts


def test_entities_stand_at_the_first_piece(make_vectors):
    text = "adaa london. ada"
    encoded, counts = encode([(text, [(0, 4, "Q2"), (5, 11, "Q1"), (13, 16, "Q2")])], make_vectors)
    tokenizer = make_wordpiece()
    names = [tokenizer.backend.id_to_token(piece) for piece in encoded[0].pieces]
    assert names == ["[UNK]", "london", ".", "ada"]
    assert encoded[0].entities == [1, 0, -1, 1]
    assert counts["mentions"] == 3
    assert counts["without a vector"] == 0


def test_what_is_not_used_is_counted(make_vectors):
    text = "ada london  "
    mentions = [(0, 3, "Q1"), (0, 3, "Q2"), (4, 10, "Q3"), (11, 12, "Q1")]
    encoded, counts = encode([(text, mentions), ("", [])], make_vectors)
    assert [s.entities for s in encoded] == [[1, -1]]
    assert dict(counts) == {
        "mentions": 4,
        "without a vector": 1,
        "without a piece": 1,
        "at the piece of another": 1,
    }
    line = report_counts(counts)[0]
    assert line.startswith("4 entity mentions read, of them 1 (25.0%) without a vector")


def test_pieces_that_are_given(make_vectors):
    encoded, _ = encode([([7, 8, 9], [(1, 2, "Q2")])], make_vectors)
    assert encoded == [LinkedSentence([7, 8, 9], [-1, 1, -1])]


@pytest.mark.parametrize("place", [(-1, 2), (2, 2), (0, 99)])
def test_a_place_outside(make_vectors, place):
    with pytest.raises(ValueError, match=r"article 7, sentence 0: the entity 'Q1' has the place"):
        encode([("ada", [(*place, "Q1")])], make_vectors)
