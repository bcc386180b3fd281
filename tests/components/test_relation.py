"""`luke_relation`: relations between mentions."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import registry

from spacy_luke.annotations import RelationRow, get_relation_rows, get_rows, set_relation_rows
from spacy_luke.bridge.optimizer import make_adamw
from tests.components.pairs import LONG, MODES, PAIRS, SPANS, as_pair, make, marked, probabilities, same
from tests.components.related import (
    KEY,
    LABELS,
    docs_of,
    make_examples,
    noisy,
    relations_of,
    trained,
)
from tests.components.updates import OPTIMIZERS, assert_division_is_irrelevant, assert_learns
from tests.pipelines import make_pipeline
from tests.tiny import SENTENCES, make_checkpoint, make_wordpiece

# ---- learning


@pytest.mark.parametrize("mode", MODES)
def test_overfit(mode):
    attention, settings = MODES[mode]
    nlp = trained("luke_relation", attention, **settings)
    for example, doc in zip(make_examples(nlp), nlp.pipe(docs_of(nlp)), strict=True):
        assert set(relations_of(doc)) == set(relations_of(example.reference))
        assert all(0.5 < score <= 1 for score in relations_of(doc).values())
        assert all(x.head.label_ == x.tail.label_ == "ENT" for x in doc._.luke_relations)
    scores = nlp.evaluate(make_examples(nlp))
    assert scores["relations_f"] == scores["relations_strict_f"] == 1.0
    assert nlp.get_pipe("luke_relation").labels == tuple(LABELS["luke_relation"])


@pytest.mark.parametrize("mode", MODES)
def test_several_labels(mode):
    """A pair has two relations; the others none."""
    nlp, relation = make(mode, examples=lambda nlp: make_examples(nlp, more=True), multi_label=True)
    assert relation.labels == ("home_of", "knows", "lives_in", "works_for")
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(60):
        if relation.update(make_examples(nlp, more=True), sgd=optimizer)["luke_relation"] < 0.03:
            break
    for example, doc in zip(make_examples(nlp, more=True), nlp.pipe(docs_of(nlp)), strict=True):
        assert set(relations_of(doc)) == set(relations_of(example.reference))
    relation.cfg["threshold"] = 1 - 1e-6
    assert not any(map(relations_of, nlp.pipe(docs_of(nlp))))
    tuned = relation.tune(make_examples(nlp, more=True))
    fitted = {name: relation.cfg[name] for name in ("threshold", "temperature", "shift")}
    assert tuned == {**fitted, "relations_f": 1.0}
    assert nlp.evaluate(make_examples(nlp, more=True))["relations_f"] == 1.0
    again = spacy.blank("en")
    again.add_pipe("luke_relation", source=nlp)
    assert again.get_pipe("luke_relation").cfg["threshold"] == tuned["threshold"]


def test_only_thresholds_are_tuned():
    nlp, relation = make("pair")
    with pytest.raises(ValueError, match=r"gives each pair one label \(multi_label = false\)"):
        relation.tune(make_examples(nlp), calibrate=False)
    assert "threshold" not in relation.tune(make_examples(nlp))
    nlp, relation = make("pair", multi_label=True)
    with pytest.raises(ValueError, match="Expected examples with gold relations"):
        relation.tune([Example(nlp.make_doc("Ada"), nlp.make_doc("Ada"))])


@pytest.mark.product
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize(("accumulate", "pieces"), [(4, 100), (1, 1)])
def test_gradient_does_not_depend_on_the_division(mode, multi_label, accumulate, pieces):
    assert_division_is_irrelevant(
        lambda pieces: make(mode, batch_size=pieces, multi_label=multi_label),
        make_examples,
        accumulate=accumulate,
        pieces=pieces,
        atol=2e-6,
    )


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer):
    nlp, _ = make("pair")
    assert_learns(nlp, "luke_relation", make_examples, optimizer, share=0.9)


@pytest.mark.parametrize("mode", MODES)
def test_loss_is_that_of_the_paper(mode):
    """The mean over pairs of cross-entropy, "no relation" being a class."""
    nlp, relation = make(mode)
    losses = []
    for example in make_examples(nlp):
        gold = {key[:4]: key[4] for key in relations_of(example.reference)}
        for (head, tail), row in probabilities(relation, example.predicted).items():
            losses.append(-np.log(row[relation.classes.index(gold.get((*head, *tail)))]))
    assert len(losses) == 18
    assert relation.update(make_examples(nlp))["luke_relation"] == pytest.approx(np.mean(losses), rel=1e-4)


# ---- what an answer depends on


@pytest.mark.product
@pytest.mark.parametrize("context", ["document", "sentence"])
@pytest.mark.parametrize("mode", MODES)
def test_pipe_equals_one_by_one(mode, context):
    nlp, relation = make(mode, build=noisy, context=context, suggester={**PAIRS, "max_words": 15})
    docs = [
        marked(nlp, text)
        for text in [*SENTENCES, "", " ", "Accra", " ".join(SENTENCES * 2), "\n\n", "Berlin and Accra"]
    ]
    for word in docs[7]:
        word.is_sent_start = word.i == 0 or docs[7][word.i - 1].text in (".", "!")
    as_pair(docs[9], (0, 1), (2, 3))
    alone = [relations_of(relation(doc.copy())) for doc in docs]
    assert sum(map(len, alone)) > 100
    assert not alone[6]
    for batch_size, pieces in ((1, 150), (3, 1), (64, 100_000)):
        relation.cfg["batch_size"] = pieces
        piped = nlp.pipe((doc.copy() for doc in docs), batch_size=batch_size)
        for doc, one in zip(piped, alone, strict=True):
            same(one, relations_of(doc))


@pytest.mark.parametrize("mode", MODES)
def test_a_pair_does_not_depend_on_other_pairs(mode):
    """Whatever else is asked: a pair alone has the same probabilities, to the last class, wherever it stands: in one
    window, in two, nested, crossing, side by side or with equal words elsewhere."""
    nlp, relation = make(mode, build=noisy, getter=SPANS, suggester=PAIRS)
    doc = marked(nlp, LONG, spans=[(0, 5), (1, 5), (1, 3), (24, 27)])
    together = probabilities(relation, doc)
    count = len({(x.start, x.end) for x in doc.spans[KEY]})
    assert len(together) == count * (count - 1)
    lengths = {abs(head[0] - tail[0]) for head, tail in together}
    assert max(lengths) > 62  # farther apart than a window
    chosen = list(together)
    for head, tail in chosen[:: len(chosen) // 40] + [pair for pair in chosen if pair[0] in ((0, 5), (1, 3))][:20]:
        alone = probabilities(relation, as_pair(doc.copy(), head, tail))
        assert list(alone) == [(head, tail)]
        assert alone[head, tail] == pytest.approx(together[head, tail], abs=1e-5), (head, tail)


def test_pairs_of_two_windows():
    """In one-way attention a pair is read in the window of its head where that holds the tail, or else of the tail, or
    else in one between these or of two halves, which other pairs share."""
    nlp, relation = make("pair", build=noisy, suggester=PAIRS)
    doc = marked(nlp, LONG)
    from spacy_luke.components.units.inputs import unit_items

    asked = relation.asked(doc)
    items = list(unit_items(relation.input(), doc, asked.mentions, asked.units_UK, owner=0))
    numbers = np.concatenate([item.number_U for item in items])
    assert sorted(numbers.tolist()) == list(range(len(asked.units_UK)))
    assert len(items) < len(numbers) / 8
    assert len({item.pieces.tobytes() for item in items}) == len(items)
    for item in items:
        assert len(item.pieces) <= 64
        for unit, number in zip(item.units_UK, item.number_U):
            for token, mention in zip(unit, asked.units_UK[number]):
                start, end = asked.mentions[mention]
                read = item.pieces[item.first_E[token] : item.last_E[token] + 1].tolist()
                assert relation.tokenizer.backend.decode(read).strip() == doc[start:end].text
        rows = [relation.special_row("[MASK]"), relation.special_row("[MASK2]")]
        assert item.rows_E[item.units_UK].tolist() == [rows] * len(item.number_U)


@pytest.mark.parametrize("mode", MODES)
def test_a_mention_longer_than_a_window(mode):
    nlp, relation = make(mode, build=noisy, getter=SPANS, suggester=PAIRS)
    doc = marked(nlp, LONG)
    expected = relations_of(relation(doc.copy()))
    doc.spans[KEY] = [*doc.spans[KEY], doc[1:50]]
    count = len(doc.spans[KEY])
    message = (
        rf"{2 * (count - 1)} of {count * (count - 1)} pairs have no relation.*window of 62 pieces; the first is .Ada"
    )
    with pytest.warns(UserWarning, match=message):
        relation(doc)
    same(expected, relations_of(doc))


@pytest.mark.parametrize("mode", MODES)
def test_two_that_just_fit(mode):
    """Head and tail fill a window, far apart; one piece more is too much."""
    nlp, relation = make(mode, build=noisy, getter=SPANS, suggester=PAIRS, none=None)
    room = 58 if mode == "full" else 62
    doc = Doc(nlp.vocab, words=["."] * 200)
    for one, two in (((0, 30), (100, 70 + room)), ((199 - room, 170), (170, 199)), ((3, 4), (199 - room + 1, 199))):
        doc.spans[KEY] = [doc[slice(*one)], doc[slice(*two)]]
        assert len(relations_of(relation(doc))) == 2
        doc.spans[KEY] = [doc[slice(*one)], doc[two[0] : two[1] + 1]]
        with pytest.warns(UserWarning, match="2 of 2 pairs have no relation"):
            assert not relations_of(relation(doc))


def test_words_without_pieces():
    checkpoint = make_checkpoint(tokenizer=make_wordpiece(), position_offset=0)
    nlp, relation = make("pair", build=noisy, getter=SPANS, none=None, weights=lambda: checkpoint)
    doc = Doc(nlp.vocab, words=["ada", "\u200b", "london", "."], spaces=[True, True, True, False])
    doc.spans[KEY] = [doc[0:1], doc[1:2], doc[2:3], doc[1:3]]
    with pytest.warns(UserWarning, match=r"6 of 12 pairs have no relation, as a mention has no pieces"):
        assert len(relations_of(relation(doc))) == 6


@pytest.mark.parametrize("mode", MODES)
def test_words_alone(mode):
    """A Doc of which only the words are known."""
    nlp, relation = make(mode, build=noisy, none=None)
    doc = Doc(nlp.vocab, words=[*SENTENCES[0].split(), " ", "'s"])
    assert doc.has_unknown_spaces
    doc.set_ents([Span(doc, 0, 2, label="A"), Span(doc, 4, 5, label="A"), Span(doc, 11, 12, label="A")])
    assert len(relations_of(relation(doc))) == 6


@pytest.mark.parametrize("mode", MODES)
def test_nothing_to_relate(mode):
    nlp, relation = make(mode)
    for text in ("", " ", "Ada saw it"):
        doc = nlp(text)
        assert doc._.luke_relations == []
        assert get_rows(doc, "luke_relations") == []
        doc = relation(marked(nlp, text))
        assert doc._.luke_relations == []
        assert relation.update([Example(nlp.make_doc(text), doc)]) == {"luke_relation": 0.0}
    assert list(nlp.pipe([])) == []
    assert relation.update([]) == {"luke_relation": 0.0}


@pytest.mark.parametrize(("mode", "count"), [("mention", 500), ("pair", 200)])
def test_500_entities(mode, count, monkeypatch):
    """249,500 pairs of one Doc: each answered once, and the text encoded for thousands of them together."""
    batches = []
    nlp, relation = make(mode, build=noisy, suggester=PAIRS, none=None)
    batched = relation.batched

    def seen(items, **settings):
        for batch in batched(items, **settings):
            batches.append(batch)
            yield batch

    monkeypatch.setattr(relation, "batched", seen)
    doc = Doc(nlp.vocab, words=["."] * 60)
    doc.spans[KEY] = [doc[a:b] for a in range(60) for b in range(a + 1, min(a + 10, 61))][:count]
    relation.getter = registry.misc.get("spacy-luke.span_group.v1")(KEY)
    (found,) = relation.predict([doc])
    assert len(found.label_R) == count * (count - 1)
    assert len({tuple(pair) for pair in found.pair_R2.tolist()}) == count * (count - 1)
    assert sum(len(batch.units_UK) for batch in batches) == count * (count - 1)
    assert sum(len(batch.pieces_N) for batch in batches) < count * (count - 1) / 20
    assert sum(len(batch.rows_E) for batch in batches) <= 2 * count * (count - 1)


# ---- saving and loading


@pytest.mark.parametrize("mode", MODES)
def test_saved_and_loaded(mode, tmp_path):
    attention, settings = MODES[mode]
    nlp = trained("luke_relation", attention, **settings)
    expected = [relations_of(doc) for doc in nlp.pipe(docs_of(nlp))]
    nlp.to_disk(tmp_path)
    copies = [spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp)), copy.deepcopy(nlp)]
    copies.append(spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()))
    copies.append(spacy.blank("en"))
    copies[-1].add_pipe("luke_relation", source=nlp)
    for again in copies:
        assert again.get_pipe("luke_relation").cfg == nlp.get_pipe("luke_relation").cfg
        assert [relations_of(doc) for doc in again.pipe(docs_of(again))] == expected


def test_relations_survive_in_docs():
    nlp = trained("luke_relation")
    docs = list(nlp.pipe(docs_of(nlp)))
    expected = [relations_of(doc) for doc in docs]
    vocab = spacy.blank("en").vocab
    copies = [Doc(vocab).from_bytes(doc.to_bytes()) for doc in docs]
    assert [relations_of(doc) for doc in copies] == expected
    assert copies[0]._.luke_relations[0].head.label_ == "ENT"
    data = DocBin(docs=docs, store_user_data=True).to_bytes()
    assert [relations_of(doc) for doc in DocBin().from_bytes(data).get_docs(vocab)] == expected


# ---- settings


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"context": "paragraph"}, "context must be one of .* but it is 'paragraph'"),
        ({"tokens": "some"}, "tokens must be one of .* but it is 'some'"),
        ({"threshold": 1.1}, "threshold must be a probability, from 0 to 1, but it is 1.1"),
        ({"overlap": 0}, "overlap must be at least 1, but it is 0"),
        ({"features": "some"}, "features must be one of .* but it is 'some'"),
        ({"suggester": {**PAIRS, "same_sentences": True}}, "same_sentences"),
    ],
)
def test_wrong_settings(config, message):
    with pytest.raises(ValueError, match=message):
        make("pair", **config)


def test_ids_travel(tmp_path):
    """What labels are elsewhere is kept in the config, with blanks in names, and changes nothing."""
    ids = {"near": "P47", "country of citizenship": "P27"}
    nlp = make_pipeline("luke_ner", "luke_relation", luke_relation={"ids": ids})
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert again.get_pipe("luke_relation").ids == ids == again.config["components"]["luke_relation"]["ids"]


def test_a_doc_without_sentences_is_warned_of():
    nlp, _ = make("pair", build=noisy, suggester={**PAIRS, "same_sentence": True})
    doc = docs_of(nlp)[0]
    with pytest.warns(UserWarning, match="says nothing of its sentences and is taken as one"):
        nlp(doc)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doc = docs_of(nlp)[0]
        for word in doc:
            word.is_sent_start = word.i == 0
        nlp(doc)


def test_relations_that_another_component_has_found_stay():
    """Those with labels that it does not know; its own are written anew."""
    nlp = trained("luke_relation")
    doc = nlp(docs_of(nlp)[0])
    own = [tuple(x) for x in get_relation_rows(doc)]
    assert own
    set_relation_rows(doc, [*own, RelationRow(0, 3, 8, 14, "of others", 0.5)])
    assert [tuple(x) for x in get_relation_rows(nlp(doc))] == [(0, 3, 8, 14, "of others", 0.5), *own]
