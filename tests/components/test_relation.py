"""`luke_relation`: relations between mentions."""

import copy
import pickle

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import registry
from thinc.api import Adam

from spacy_luke.annotations import get_rows
from spacy_luke.batch import entities
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.components.mentions import Pairs, make_pairs
from tests.components.related import (
    KEY,
    LABELS,
    docs_of,
    make_examples,
    make_pipeline,
    noisy,
    place,
    relations_of,
    trained,
)
from tests.tiny import SENTENCES, make_checkpoint, make_wordpiece

MODES = {"full": ("full", {}), "pair": ("one_way", {"tokens": "pair"}), "mention": ("one_way", {"tokens": "mention"})}
SPANS = {"@misc": "spacy-luke.span_group.v1", "key": KEY}
PAIRS = {"@misc": "spacy-luke.pairs.v1", "max_words": None}
LONG = " ".join(SENTENCES * 3)  # several windows
GIVEN = [
    [("Ada Lovelace", "London"), ("London", "Ada Lovelace"), ("London", "Royal Society")],
    [("Nadia Haddad", "Bank of Ghana"), ("Ghana", "Bank of Ghana"), ("Bank of Ghana", "Accra")],
    [("Kofi Mensah", "University of Lagos")],
    [],
]


def make(mode, *, build=make_pipeline, **config):
    attention, settings = MODES[mode]
    return build("luke_relation", attention, **{**settings, **config})


def marked(nlp, text, *, spans=()):
    """A Doc whose capitalised runs of words are its entities."""
    doc = nlp.make_doc(text)
    runs, start = [], None
    for i, word in enumerate([*doc, None]):
        if word is not None and word.is_title:
            start = i if start is None else start
        elif start is not None:
            runs.append(Span(doc, start, i, label="ENT"))
            start = None
    doc.set_ents(runs)
    doc.spans[KEY] = [*runs, *(doc[a:b] for a, b in spans)]
    return doc


def same(one, other):
    assert other == pytest.approx(one, abs=1e-5)


def as_pair(doc, one, two):
    doc.user_data["luke_pairs"] = [
        [doc[a:b].start_char, doc[a:b].end_char, doc[c:d].start_char, doc[c:d].end_char]
        for (a, b), (c, d) in [(one, two)]
    ]
    return doc


def probabilities(relation, doc):
    """(head, tail) as words -> probabilities of all classes, for each pair that can be encoded."""
    cfg = dict(relation.cfg)
    relation.cfg.update(multi_label=False)
    rows = {}
    read = relation._read

    def spy(batch, logits_UL):
        asked = relation.asked(doc)
        for number, row in zip(batch.number_U().tolist(), logits_UL.softmax(-1).tolist()):
            head, tail = asked.pairs_P2[number]
            rows[asked.mentions[head], asked.mentions[tail]] = row
        return read(batch, logits_UL)

    relation._read = spy
    try:
        relation.predict([doc])
    finally:
        del relation._read
        relation.cfg.update(cfg)
    return rows


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
    assert tuned == {"threshold": relation.cfg["threshold"], "relations_f": 1.0}
    assert nlp.evaluate(make_examples(nlp, more=True))["relations_f"] == 1.0
    again = spacy.blank("en")
    again.add_pipe("luke_relation", source=nlp)
    assert again.get_pipe("luke_relation").cfg["threshold"] == tuned["threshold"]


def test_only_thresholds_are_tuned():
    nlp, relation = make("pair")
    with pytest.raises(ValueError, match=r"gives each pair one label \(multi_label = false\)"):
        relation.tune(make_examples(nlp))
    nlp, relation = make("pair", multi_label=True)
    with pytest.raises(ValueError, match="Expected examples with relations"):
        relation.tune([Example(nlp.make_doc("Ada"), nlp.make_doc("Ada"))])


@pytest.mark.product
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize(("accumulate", "pieces"), [(4, 100), (1, 1)])
def test_gradient_does_not_depend_on_the_division(mode, multi_label, accumulate, pieces):
    def gradients(accumulate, pieces):
        nlp, relation = make(mode, batch_size=pieces, multi_label=multi_label)
        every = make_examples(nlp)
        for i in range(0, len(every), len(every) // accumulate):
            nlp.update(every[i : i + len(every) // accumulate], sgd=False, drop=0.0)
        result = {}
        relation.finish_update(lambda key, x, d_x: (x, result.setdefault(key[1], d_x.copy())))
        return result

    expected, actual = gradients(1, 100_000), gradients(accumulate, pieces)
    assert set(actual) == set(expected)
    assert max(np.abs(x).max() for x in expected.values()) > 0.01
    for name, x in expected.items():
        assert np.abs(actual[name] - x).max() <= 2e-6, name


@pytest.mark.parametrize("optimizer", ["thinc", "adamw", "none"])
def test_optimizers(optimizer):
    nlp, relation = make("pair")
    sgd = {"thinc": Adam(4e-3), "adamw": make_adamw(learn_rate=4e-3), "none": None}[optimizer]
    losses = []
    for _ in range(12):
        found = {}
        nlp.update(make_examples(nlp), sgd=sgd, losses=found)
        losses.append(found["luke_relation"])
    assert losses[-1] < 0.9 * losses[0]


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
    else in a window of its own, which is read in two stretches where the two are far apart."""
    nlp, relation = make("pair", build=noisy, suggester=PAIRS)
    doc = marked(nlp, LONG)
    from spacy_luke.components.units.inputs import unit_items

    asked = relation.asked(doc)
    items = list(unit_items(relation.input(), doc, asked.mentions, asked.pairs_P2, owner=0))
    numbers = np.concatenate([item.number_U for item in items])
    assert sorted(numbers.tolist()) == list(range(len(asked.pairs_P2)))
    shared = [item for item in items if len(item.number_U) > 1]
    assert len({item.pieces.tobytes() for item in shared}) == len(shared) > 5
    assert sum(len(item.number_U) for item in shared) < len(numbers)
    for item in items:
        assert len(item.pieces) <= 64
        for unit, number in zip(item.units_UK, item.number_U):
            for token, mention in zip(unit, asked.pairs_P2[number]):
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

    def batch_entities(*arguments, **settings):
        for batch in entities.batch_entities(*arguments, **settings):
            batches.append(batch)
            yield batch

    monkeypatch.setattr("spacy_luke.components.relation.batch_entities", batch_entities)
    nlp, relation = make(mode, build=noisy, suggester=PAIRS, none=None)
    doc = Doc(nlp.vocab, words=["."] * 60)
    doc.spans[KEY] = [doc[a:b] for a in range(60) for b in range(a + 1, min(a + 10, 61))][:count]
    relation.getter = registry.misc.get("spacy-luke.span_group.v1")(KEY)
    (found,) = relation.predict([doc])
    assert len(found.label_R) == count * (count - 1)
    assert len({tuple(pair) for pair in found.pair_R2.tolist()}) == count * (count - 1)
    assert sum(len(batch.units_UK) for batch in batches) == count * (count - 1)
    assert sum(len(batch.pieces_N) for batch in batches) < count * (count - 1) / 20
    assert sum(len(batch.rows_E) for batch in batches) <= 2 * count * (count - 1)


# ---- which pairs


def suggest(doc, **settings):
    spans = list(doc.ents)
    return [(spans[a].text, spans[b].text) for a, b in make_pairs(**settings)(doc, spans).tolist()]


def test_suggester():
    nlp = spacy.blank("en")
    doc = nlp.make_doc("Ada saw London . Kofi left")
    doc.set_ents([Span(doc, 0, 1, label="P"), Span(doc, 2, 3, label="L"), Span(doc, 4, 5, label="P")])
    every = [
        ("Ada", "London"),
        ("Ada", "Kofi"),
        ("London", "Ada"),
        ("London", "Kofi"),
        ("Kofi", "Ada"),
        ("Kofi", "London"),
    ]
    assert suggest(doc) == every
    assert suggest(doc, same_sentence=True) == every  # without boundaries a Doc is one sentence
    for word in doc:
        word.is_sent_start = word.i in (0, 4)
    assert suggest(doc, same_sentence=True) == [every[0], every[2]]
    assert suggest(doc, max_words=1) == [every[0], every[2], every[3], every[5]]
    assert suggest(doc, max_words=0) == []
    assert suggest(doc, types=[["P", "L"]]) == [every[0], every[5]]
    assert suggest(doc, types=[["P", "L"], ["P", "P"]], max_words=1) == [every[0], every[5]]
    assert suggest(doc, types=[]) == []
    with pytest.raises(ValueError, match="max_words must be 0 or more"):
        make_pairs(max_words=-1)
    with pytest.raises(ValueError, match="types must be a list of"):
        make_pairs(types=[["P"]])


def test_suggester_against_a_loop():
    """Nested, crossing, equal and side-by-side mentions, and sentences that some of them cross."""
    chosen = np.random.default_rng(0)
    nlp = spacy.blank("en")
    for _ in range(20):
        doc = Doc(nlp.vocab, words=["w"] * 20)
        for word in doc:
            word.is_sent_start = word.i == 0 or chosen.random() < 0.2
        edges = [sorted(chosen.choice(21, 2, replace=False).tolist()) for _ in range(8)]
        spans = [Span(doc, a, b, label=str(chosen.integers(2))) for a, b in edges]
        sentences = [
            {i for i, sent in enumerate(doc.sents) if sent.start < x.end and x.start < sent.end} for x in spans
        ]
        expected = []
        for h, head in enumerate(spans):
            for t, tail in enumerate(spans):
                gap = max(tail.start - head.end, head.start - tail.end)
                if (
                    (head.start, head.end) != (tail.start, tail.end)
                    and sentences[h] == sentences[t]
                    and len(sentences[h]) == 1
                    and gap <= 3
                    and (head.label_, tail.label_) in (("0", "1"), ("1", "1"))
                ):
                    expected.append([h, t])
        pairs = Pairs(same_sentence=True, max_words=3, types=[["0", "1"], ["1", "1"]])
        assert pairs(doc, spans).tolist() == expected


def test_equal_mentions_are_one():
    nlp, relation = make("pair", build=noisy, getter=SPANS, none=None)
    doc = nlp.make_doc(SENTENCES[0])
    doc.spans[KEY] = [doc[0:2], doc[4:5], doc[0:2], doc[4:5]]
    assert len(relations_of(relation(doc))) == 2


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 1], [1, 1]], "paired a mention with itself, 'London': head and tail must differ"),
        ([[0, 3]], "must give indices of the Doc's 3 mentions, but it gave 3 and 0"),
        ([[0, -1]], "must give indices of the Doc's 3 mentions"),
    ],
)
def test_wrong_suggestions(pairs, message):
    nlp, relation = make("pair", build=noisy)
    relation.suggester = lambda doc, spans: pairs
    with pytest.raises(ValueError, match=message):
        nlp(docs_of(nlp)[0])
    relation.suggester = lambda doc, spans: []
    assert nlp(docs_of(nlp)[0])._.luke_relations == []


@pytest.mark.parametrize("mode", MODES)
def test_given_pairs(mode):
    """They are asked instead, getter and suggester are not; those with a relation are learned, the others have none."""
    nlp, relation = make(mode, examples=lambda nlp: make_examples(nlp, pairs=GIVEN))
    for i, example in enumerate(make_examples(nlp, pairs=GIVEN)):
        asked, gold, missing = relation.gold(example)
        wanted = [(place(example.predicted, a), place(example.predicted, b)) for a, b in GIVEN[i]]
        asked = [tuple(asked.mentions[m] for m in pair) for pair in asked.pairs_P2.tolist()]
        assert asked == [((a.start, a.end), (b.start, b.end)) for a, b in wanted]
        labels = {key[:4]: key[4] for key in relations_of(example.reference)}
        assert [relation.classes[k] for k in gold] == [labels.get((a.start, a.end, b.start, b.end)) for a, b in wanted]
        assert not missing
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(60):
        if relation.update(make_examples(nlp, pairs=GIVEN), sgd=optimizer)["luke_relation"] < 0.02:
            break
    scores = nlp.evaluate(make_examples(nlp, pairs=GIVEN))
    assert scores["relations_f"] == scores["relations_accuracy"] == 1.0


def test_a_given_pair_of_one_mention():
    nlp, relation = make("pair", build=noisy, none=None)
    doc = nlp.make_doc(SENTENCES[0])
    doc._.luke_pairs = [(doc[0:2], doc[0:2]), (doc[0:2], doc[4:5])]
    with pytest.warns(UserWarning, match=r"1 of 2 given pairs have no relation, as head and tail are the same.*Ada"):
        assert len(relations_of(relation(doc))) == 1
    doc._.luke_pairs = []
    assert relations_of(relation(doc)) == {}


def test_given_pairs_of_another_text():
    nlp, relation = make("pair")
    doc = nlp.make_doc("Ada")
    doc.user_data["luke_pairs"] = [[0, 3, 900, 905]]
    with pytest.raises(ValueError, match=r"characters \[900, 905\), but the Doc's text has 3"):
        relation(doc)


# ---- gold


def related(nlp, text, *rows, words=None, pairs=None):
    """An example of entities and relations between them, both as words of the text."""
    gold = nlp.make_doc(text)
    gold.set_ents([Span(gold, a, b, label="ENT") for a, b in {x for row in rows for x in row[:2]}])
    gold._.luke_relations = [(gold[slice(*head)], gold[slice(*tail)], label) for head, tail, label in rows]
    if pairs is not None:
        gold._.luke_pairs = [(gold[slice(*head)], gold[slice(*tail)]) for head, tail in pairs]
    return Example(nlp.make_doc(text) if words is None else words, gold)


@pytest.mark.parametrize("mode", MODES)
def test_gold_that_cannot_be_predicted_is_counted(mode):
    def examples(nlp):
        far = related(nlp, LONG, ((0, 2), (4, 5), "a"), ((0, 2), (30, 31), "b"))
        other = Doc(nlp.vocab, words=["Ada saw", "London"], spaces=[True, False])
        moved = related(nlp, "Ada saw London", ((0, 1), (2, 3), "c"), words=other)
        twice = related(nlp, "Ada saw London", ((0, 1), (2, 3), "a"), ((0, 1), (2, 3), "b"))
        given = related(nlp, "Ada saw London", ((0, 1), (2, 3), "a"), ((2, 3), (0, 1), "b"), pairs=[((0, 1), (2, 3))])
        itself = related(nlp, "Ada saw London", ((0, 1), (0, 1), "a"), ((0, 1), (2, 3), "none"))
        outside = related(nlp, "Ada saw London", ((0, 1), (2, 3), "a"))
        outside.reference.set_ents([])
        long = related(nlp, LONG, ((0, 2), (3, 55), "b"))
        return [far, moved, twice, given, itself, outside, long]

    reasons = [
        "are not proposed by the suggester",
        "are not among the given pairs",
        "have a head or tail that does not fall on word boundaries",
        "have a pair with another label (set multi_label)",
        "have a head that is their tail",
        "have a head or tail that is no mention",
        "have mentions without pieces, or longer than a window",
    ]
    with pytest.warns(UserWarning, match="7 of 10 gold relations .* can never be predicted") as warned:
        nlp, relation = make(mode, examples=examples, none="none", suggester={**PAIRS, "max_words": 10})
    message = str(warned[0].message)
    for reason in reasons:
        assert f"1 {reason}" in message, reason
    assert relation.update(examples(nlp))["luke_relation"] > 0


def test_label_unseen_in_initialisation():
    nlp, relation = make("pair")
    example = related(nlp, "Ada saw London", ((0, 1), (2, 3), "hates"))
    with pytest.raises(ValueError, match=r"does not know the relation 'hates'.*\['home_of', 'lives_in', 'works_for'\]"):
        relation.update([example])
    relation.add_label("hates")
    assert relation.update([example])["luke_relation"] > 0


@pytest.mark.parametrize("multi_label", [False, True])
def test_add_label(multi_label):
    nlp, relation = make("pair", multi_label=multi_label)
    doc = docs_of(nlp)[0]
    before = probabilities(relation, doc)
    assert relation.add_label("hates") == 1
    assert relation.add_label("hates") == 0
    assert relation.classes[-1] == "hates"
    after = probabilities(relation, doc)
    for pair, row in before.items():
        rest = np.array(after[pair][:-1])
        assert (rest / rest.sum()).tolist() == pytest.approx(row, abs=1e-5)
    optimizer = make_adamw(learn_rate=4e-3)
    example = related(nlp, SENTENCES[2], ((0, 2), (3, 4), "hates"))
    for _ in range(25):
        relation.update([example], sgd=optimizer)
    assert {key[4] for key in relations_of(nlp(docs_of(nlp)[2]))} >= {"hates"}


def test_labels_are_given():
    nlp = spacy.blank("en")
    relation = nlp.add_pipe("luke_relation", config={"overlap": 32})
    examples = make_examples(nlp)
    labels = ["z", *LABELS["luke_relation"]]
    relation.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, labels=labels)
    assert list(relation.labels) == relation.label_data == labels
    assert relation.classes == [None, *labels]
    with pytest.raises(ValueError, match=r"also hold \['home_of', 'works_for'\]"):
        relation.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, labels=["lives_in", "z"])
    with pytest.raises(ValueError, match="hold its name for no relation, 'no_relation'"):
        relation.initialize(lambda: examples, nlp=nlp, weights=make_checkpoint, labels=[*labels, "no_relation"])
    with pytest.raises(ValueError, match=r"found no labels: expected relations in doc\._\.luke_relations"):
        relation.initialize(lambda: [related(nlp, "Ada")], nlp=nlp, weights=make_checkpoint)


def test_name_of_no_relation_in_the_gold():
    """Pairs that the gold says have none are learned as such, and no scorer counts them as missed."""
    nlp, relation = make("pair", none="Other")
    example = related(nlp, "Ada saw London", ((0, 1), (2, 3), "Other"))
    _, gold, missing = relation.gold(example)
    assert gold.tolist() == [0, 0]
    assert not missing
    scores = nlp.evaluate([related(nlp, "Ada saw London", ((0, 1), (2, 3), "Other")), *make_examples(nlp)])
    assert "Other" not in scores["relations_per_type"]


@pytest.mark.parametrize("mode", MODES)
def test_every_pair_has_a_relation(mode):
    """none = null: the best label, whatever its probability; pairs without gold teach nothing."""
    nlp, relation = make(mode, none=None)
    assert relation.classes == LABELS["luke_relation"]
    examples = make_examples(nlp)
    assert sum(relation.loss_weight(batch) for batch in relation.batches(examples)) == 5
    doc = nlp(docs_of(nlp)[0])
    assert len(doc._.luke_relations) == 6
    for key, score in relations_of(doc).items():
        row = probabilities(relation, docs_of(nlp)[0])[key[:2], key[2:4]]
        assert (max(row), relation.labels[int(np.argmax(row))]) == (pytest.approx(score), key[4])


def test_a_fresh_head_knows_how_frequent_relations_are():
    _, relation = make("pair")
    bias = relation.model.shims[0].module.classifier.bias.softmax(-1).tolist()
    assert bias == pytest.approx([14 / 22, 2 / 22, 3 / 22, 3 / 22], rel=1e-4)
    _, relation = make("pair", multi_label=True)
    bias = relation.model.shims[0].module.classifier.bias.sigmoid().tolist()
    assert bias == pytest.approx([2 / 21, 3 / 21, 3 / 21], rel=1e-4)
    _, relation = make("pair", bias=False)
    assert relation.model.shims[0].module.classifier.bias is None


def test_head_of_a_fine_tuned_checkpoint():
    """Taken over where the labels fit, and given back; index 0 is "no relation"."""
    checkpoint = make_checkpoint()
    checkpoint.labels = ["nothing", "z", *LABELS["luke_relation"]]
    checkpoint.task = "entity_pair_classification"
    checkpoint.tensors["head.classifier.weight"] = torch.randn(5, 64, generator=torch.Generator().manual_seed(1))
    nlp, relation = make("full", weights=lambda: checkpoint)
    assert relation.classes == [None, *checkpoint.labels[1:]]
    again = relation.to_checkpoint()
    assert (again.labels, again.task) == (checkpoint.labels, "entity_pair_classification")
    assert torch.equal(again.tensors["head.classifier.weight"], checkpoint.tensors["head.classifier.weight"])
    assert not again.tensors["head.classifier.bias"].any()
    for config in ({"none": None}, {"multi_label": True}, {"features": "all"}):
        _, relation = make("full", weights=lambda: checkpoint, **config)
        assert list(relation.labels) == LABELS["luke_relation"], config


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
        ({"threshold": 1.1}, "threshold is a probability, from 0 to 1, but it is 1.1"),
        ({"overlap": 0}, "overlap must be at least 1, but it is 0"),
        ({"features": "some"}, "features must be one of .* but it is 'some'"),
        ({"suggester": {**PAIRS, "same_sentences": True}}, "same_sentences"),
    ],
)
def test_wrong_settings(config, message):
    with pytest.raises(ValueError, match=message):
        make("pair", **config)
