"""luke_linker: equal decisions in fewer passes, learning by heart, knowledge bases, NIL, other inputs."""

import json
import warnings

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.annotations import LINK_EVIDENCE, get_rows, set_candidates_given
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.components.linker.candidates import best_candidates
from spacy_luke.vectors.build import build_vectors
from tests.components.linker.linked import ENTITIES, candidates_of, make_doc, make_example, make_linker
from tests.tiny import SENTENCES, make_checkpoint


def test_annotations(store):
    nlp, linker = make_linker(store, prior=True)
    doc = nlp(make_doc(nlp, SENTENCES[0]))
    assert doc.ents
    assert all(x.label_ == "X" for x in doc.ents)
    for ent in doc.ents:
        found = ent._.luke_candidates
        assert ent.kb_id_ == found[0].id
        assert {x.id for x in found} == {x for x, _ in candidates_of(ent.text)}
        assert sum(x.score for x in found) == pytest.approx(1, abs=1e-5)
        assert [x.score for x in found] == sorted((x.score for x in found), reverse=True)
    linker.cfg["threshold"] = 1.0
    several = [x for x in nlp(make_doc(nlp, SENTENCES[0])).ents if len(x._.luke_candidates) > 1]
    assert several
    assert {x.kb_id_ for x in several} == {"NIL"}


def test_windows_that_cannot_be(store):
    with pytest.raises(ValueError, match=r"max_window must be a number of pieces.* from 5, or null, but it is 1"):
        make_linker(store, max_window=1)
    nlp, linker = make_linker(store)
    linker.cfg["max_window"] = 100_000
    with pytest.raises(ValueError, match="has max_window = 100000, but its encoder reads"):
        nlp(make_doc(nlp, SENTENCES[0]))


def test_span_groups_and_unknown_entities(store):
    """Mentions may overlap; a candidate without a vector is there, and one of an empty list is NIL."""
    nlp, _ = make_linker(store)
    nlp, linker = make_linker(store, getter={"@misc": "spacy-luke.span_group.v1", "key": "mentions"})
    doc = nlp.make_doc(SENTENCES[0])
    doc.spans["mentions"] = [Span(doc, 0, 2), Span(doc, 0, 1), Span(doc, 4, 5)]
    given = [(doc[0:2], [("New", 0.5), ("Newer", 0.4)]), (doc[0:1], [("Entity 3", 0.9), ("New", 0.8)])]
    set_candidates_given(doc, [(x.start_char, x.end_char, named) for x, named in given])
    doc = nlp(doc)
    spans = list(doc.spans["mentions"])
    assert spans[2].kb_id_ == "NIL"
    assert not spans[2]._.luke_candidates
    assert {x.id for x in spans[0]._.luke_candidates} == {"New", "Newer"}
    assert spans[0].kb_id_ in ("New", "Newer")
    assert not doc.ents


@pytest.mark.parametrize(("attention", "others"), [("full", "masked"), ("one_way", "masked"), ("full", "pseudo")])
def test_learns_by_heart(store, attention, others):
    nlp, linker = make_linker(store, attention=attention, others=others)
    np.random.seed(0)
    examples = [make_example(nlp, text) for text in SENTENCES[:3]]
    optimizer = make_adamw(learn_rate=4e-3)
    gold = [[x.kb_id_ for x in example.reference.ents] for example in examples]
    before = [p.clone() for p in linker.model.shims[0].module.parameters()]
    for _ in range(150):
        loss = linker.update(examples, sgd=optimizer)["luke_linker"]
        found = [[x.kb_id_ for x in doc.ents] for doc in nlp.pipe([make_doc(nlp, text) for text in SENTENCES[:3]])]
        if found == gold and loss < 0.3:
            break
    assert found == gold
    assert any(not (a == b).all() for a, b in zip(before, linker.model.shims[0].module.parameters()))
    again = spacy.util.load_model_from_config(nlp.config, auto_fill=False, validate=True).from_bytes(nlp.to_bytes())
    docs = again.pipe([make_doc(nlp, text) for text in SENTENCES[:3]])
    assert [[x.kb_id_ for x in doc.ents] for doc in docs] == gold


def test_a_step_of_training(store):
    """Of n mentions round(0.9 n), at least one, are scored, the others are given; gold is the loss's place."""
    nlp, linker = make_linker(store, masked_share=0.5)
    batch = next(iter(linker.batches([make_example(nlp, text) for text in SENTENCES[:2]])))
    assert batch.counts == [3, 3]
    assert len(batch.scored_S) == 4
    assert ((batch.entities_E >= 0).sum()) == 2
    golds = batch.rows_C[batch.gold_C()]
    names = linker.vectors.names_of(range(len(ENTITIES)))
    assert len(golds) == 4
    assert len(names) == 20
    scores, backprop = linker.model.begin_update(batch)
    loss, (gradient,) = linker.get_loss(batch, scores)
    assert loss > 0
    assert gradient.shape == scores.shape
    backprop(gradient)
    assert linker.encoder.module.layers[0].up.weight.grad.abs().max() > 0


@pytest.mark.parametrize("others", ["pseudo", "none"])
def test_some_mentions_of_a_doc_are_learned_at_a_time(store, others):
    """Each has an input of its own, with what is told of the others; so many are drawn anew each time."""
    nlp, linker = make_linker(store, others=others)
    examples = [make_example(nlp, text) for text in SENTENCES[:2]]

    def inputs():
        batches = list(linker.batches(examples))
        counts = [n for batch in batches for n in batch.counts]
        places = [(item.owner, int(item.first_E[item.owner_C[0]])) for batch in batches for item in batch.items]
        return counts, places

    counts, everything = inputs()
    assert len(counts) == len(everything) == 6
    linker.cfg["learned_mentions"] = 1
    np.random.seed(0)
    drawn = [inputs() for _ in range(20)]
    assert all(sorted(owner for owner, _ in places) == [0, 1] for _, places in drawn)
    assert {place for _, places in drawn for place in places} == set(everything)
    assert all((n > 1) == (others == "pseudo") for counts, _ in drawn for n in counts)


def test_gold_that_cannot_be_learned(store):
    nlp = spacy.blank("en")
    example = make_example(nlp, SENTENCES[0])
    gold = example.reference
    ents = list(gold.ents)
    nil = Span(gold, ents[0].start, ents[0].end, "X", kb_id="NIL")
    gold.set_ents([nil, ents[1], Span(gold, ents[2].start, ents[2].end, "X", kb_id="Nowhere")])
    told = r"1 of 2 gold mentions .*\(1 have candidates without the gold entity\)\. "
    with pytest.warns(UserWarning, match=f"{told}Correct the data"):
        make_linker(store, examples=[example])
    with pytest.warns(UserWarning, match=f"{told}A mention without the gold entity is NIL, and teaches NIL"):
        make_linker(store, examples=[example], nil=True)
    gold.set_ents([Span(gold, x.start, x.end, "X", kb_id="Nowhere") for x in ents])
    with pytest.raises(ValueError, match="cannot learn from any of 3 gold mentions: 3 have candidates without"):
        make_linker(store, examples=[example])


def test_tune(store):
    nlp, linker = make_linker(store)
    linker.cfg["threshold"] = 0.5
    examples = [make_example(nlp, text) for text in SENTENCES]
    found = linker.tune(examples, gold_mentions=True)
    assert 0 <= found["threshold"] < 1
    assert 0 <= found["links_accuracy"] <= 1
    assert linker.cfg["threshold"] == found["threshold"]
    assert 0 <= linker.tune(examples)["links_strict_f"] <= 1
    for one in examples:
        one.predicted.set_ents([])
    with pytest.raises(ValueError, match=r"the pipeline finds no mentions.*--gold-mentions"):
        linker.tune(examples)
    with pytest.raises(ValueError, match=r"chosen from \d+ gold mentions with an entity, expected at least 50"):
        linker.tune(examples, gold_mentions=True, least=50)
    with pytest.raises(ValueError, match="linked mentions"):
        linker.tune([Example(nlp.make_doc("x"), nlp.make_doc("x"))])


def test_no_vectors_and_wrong_ones(store, tmp_path):
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("luke_linker")
    with pytest.raises(ValueError, match="needs a checkpoint"):
        linker.initialize(lambda: [make_example(nlp, SENTENCES[0])], vectors=str(store.path))
    wrong = build_vectors(np.ones((2, 7), np.float32), tmp_path / "wrong", names=["a", "b"]).store
    with pytest.raises(ValueError, match="have 7 numbers, but the encoder's entities have 12"):
        make_linker(wrong)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"inference": "both"}, "inference must be one of"),
        ({"split": "no"}, "split must be one of"),
        ({"others": "no"}, "others must be one of"),
        ({"threshold": 2}, "threshold must be from 0 to 1"),
        ({"max_candidates": 0}, "max_candidates must be at least 1"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        spacy.blank("en").add_pipe("luke_linker", config=settings)


@pytest.mark.slow
def test_more_candidates_and_mentions_than_fit(store):
    """10,000 candidates, priors that sum to more than one, more mentions than a window takes, one longer than a
    window."""
    nlp, linker = make_linker(store, max_mentions=4)
    linker.cfg["max_candidates"] = 3
    doc = nlp.make_doc(" ".join(["London"] * 20 + ["Berlin"] * 60))
    doc.set_ents([*(Span(doc, i, i + 1, "X") for i in range(12)), Span(doc, 12, 80, "X")])
    many = [(x, 0.9) for x in ENTITIES] + [(f"Other {i}", 0.1) for i in range(10_000)]
    set_candidates_given(doc, [(x.start_char, x.end_char, many) for x in doc.ents])
    with pytest.warns(UserWarning, match="1 of 13 mentions get no score"):
        doc = nlp(doc)
    assert [len(x._.luke_candidates) for x in doc.ents] == [3] * 13
    assert all(x._.luke_candidates[0].score > 0 for x in doc.ents[:12])


def test_best_candidates():
    named = [("b", 0.2), ("a", 0.2), ("c", 0.5), ("a", 0.1)]
    assert best_candidates(named, most=2) == [("c", 0.5), ("a", 0.2)]
    assert best_candidates(named[::-1], most=2) == best_candidates(named, most=2)
    with pytest.raises(ValueError, match="prior of a candidate must be 0 or more"):
        best_candidates([("a", -1.0)], most=2)


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    from spacy_luke.kb.build import build_kb

    folder = tmp_path_factory.mktemp("kb")
    rows = [
        {"id": "Q1", "names": ["London"], "description": "capital of England"},
        {"id": "Q2", "names": ["London", "London, Ontario"], "description": "city in Canada"},
        {"id": "Q3", "names": ["Berlin"], "description": ""},
        {"id": "Q4", "names": ["Berlin"], "description": "town in New Hampshire"},
    ]
    (folder / "entities.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf8")
    return build_kb([folder / "entities.jsonl"], folder / "kb").kb


def test_a_knowledge_base(kb, tmp_path):
    """Vectors from texts; links of raw names; saved with the pipeline; an entity is added without training."""
    from spacy_luke.checkpoint.text_encoder import TextEncoder
    from spacy_luke.components.linker.embed_entities import embed_entities
    from spacy_luke.kb.change import add_to_kb

    checkpoint = make_checkpoint(entity_size=32)
    encoder = TextEncoder(checkpoint)
    kb.save(tmp_path / "kb")
    found, made = embed_entities(type(kb).open(tmp_path / "kb"), encoder)
    assert made == len(found) == 4
    assert np.linalg.norm(found.vectors.gather([0]), axis=1) == pytest.approx(1, abs=1e-5)
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("luke_linker", config={"overlap": 16, "model": {"nil": False}})

    def example():
        doc = nlp.make_doc(SENTENCES[0])
        doc.set_ents([Span(doc, 4, 5, "LOC", kb_id="Q1")])
        given = nlp.make_doc(SENTENCES[0])
        given.set_ents([Span(given, 4, 5, "LOC")])
        return Example(given, doc)

    linker.initialize(lambda: [example()], weights=lambda: checkpoint, kb=lambda: found)
    doc = nlp(example().predicted)
    assert doc.ents[0].kb_id_ in ("Q1", "Q2")
    assert {x.id for x in doc.ents[0]._.luke_candidates} == {"Q1", "Q2"}
    nlp.to_disk(tmp_path / "pipeline")
    expected = get_rows(doc, "luke_linked")
    again = spacy.load(tmp_path / "pipeline")
    assert get_rows(again(example().predicted), "luke_linked") == expected
    third = spacy.util.load_model_from_config(nlp.config, auto_fill=False, validate=True).from_bytes(nlp.to_bytes())
    assert get_rows(third(example().predicted), "luke_linked") == expected
    again.to_disk(tmp_path / "pipeline")  # over the folder that it reads
    assert get_rows(again(example().predicted), "luke_linked") == expected
    assert get_rows(spacy.load(tmp_path / "pipeline")(example().predicted), "luke_linked") == expected
    assert [x.kb_id_ for doc in again.pipe([example().predicted] * 3, n_process=2) for x in doc.ents] == [
        expected[0][2][0][0]
    ] * 3
    more = tmp_path / "more.jsonl"
    more.write_text(json.dumps({"id": "Q9", "names": ["London"], "description": "a ship"}) + "\n", encoding="utf8")
    larger, made = embed_entities(add_to_kb(found, [more], tmp_path / "larger").kb, encoder)
    assert made == 1
    assert len(larger.vectors) == 5
    assert (larger.vectors.gather([larger.vectors.row("Q1")]) == found.vectors.gather([found.vectors.row("Q1")])).all()
    linker.set_kb(larger)
    assert {x.id for x in nlp(example().predicted).ents[0]._.luke_candidates} == {"Q1", "Q2", "Q9"}


def test_empty_docs(store):
    nlp, _ = make_linker(store)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [get_rows(doc, "luke_linked") for doc in nlp.pipe([Doc(nlp.vocab), nlp.make_doc("Nothing here.")])] == [
            [],
            [],
        ]


def test_shares_an_encoder(store):
    """The linker beside another component: one pass over the words, and what they learn goes into one encoder."""
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_encoder", config={"model": {"train_precision": "float32"}})
    shared = {"@architectures": "spacy-luke.SharedEncoder.v1"}
    linker = nlp.add_pipe("luke_linker", config={"model": {"attention": "one_way", "encoder": shared}, "overlap": 16})
    examples = [make_example(nlp, text) for text in SENTENCES[:3]]
    nlp.get_pipe("luke_encoder").initialize(lambda: examples, nlp=nlp, weights=make_checkpoint)
    linker.initialize(lambda: examples, nlp=nlp, vectors=str(store.path))
    before = linker.encoder.module.layers[0].up.weight.clone()
    sgd = make_adamw(learn_rate=4e-3)
    nlp.update(examples, sgd=sgd)
    assert not (before == linker.encoder.module.layers[0].up.weight).all()
    texts = [make_doc(nlp, text) for text in SENTENCES]
    expected = [get_rows(doc, "luke_linked") for doc in nlp.pipe(x.copy() for x in texts)]
    again = spacy.util.load_model_from_config(nlp.config, auto_fill=False, validate=True).from_bytes(nlp.to_bytes())
    assert [get_rows(doc, "luke_linked") for doc in again.pipe(x.copy() for x in texts)] == expected


def test_share_names_needs_persons(store):
    nlp, _ = make_linker(store, share_names=False)
    linker = nlp.get_pipe("luke_linker")
    linker.cfg["share_names"] = True
    with pytest.raises(ValueError, match="needs a knowledge base that knows persons"):
        nlp(make_doc(nlp, SENTENCES[0]))


def test_what_others_have_linked_stays(kb):
    """A linker that leaves links as they are, or has mentions of its own, keeps what is known of the others."""
    nlp = spacy.blank("en")
    linker = make_named(nlp, "first", kb, explain=True)
    doc = linker(entities_of(nlp))
    first = [(x.kb_id_, x._.luke_entity, x._.luke_candidates, x._.luke_evidence) for x in doc.ents]
    assert all(entity and candidates and evidence for _, entity, candidates, evidence in first)
    make_named(nlp, "again", kb, overwrite=False)(doc)
    group = make_named(nlp, "group", kb, getter={"@misc": "spacy-luke.span_group.v1", "key": "names"}, ids="title")
    group(doc)
    assert [(x.kb_id_, x._.luke_entity, x._.luke_candidates, x._.luke_evidence) for x in doc.ents] == first
    doc.spans["names"] = [Span(doc, 2, 3, "X")]
    group(doc)
    assert doc.spans["names"][0]._.luke_candidates
    assert [(x.kb_id_, x._.luke_entity, x._.luke_candidates, x._.luke_evidence) for x in doc.ents] == first
    doc.set_ents([doc.ents[0]])
    linker(doc)  # of what is no entity any more nothing is left
    assert [row[:2] for row in get_rows(doc, "luke_linked")] == [[11, 17], [0, 6]]
    assert [row[:2] for row in get_rows(doc, LINK_EVIDENCE)] == [[0, 6]]


def make_named(nlp, name, kb, **config):
    linker = nlp.add_pipe("luke_linker", name=name, config={"overlap": 16, "model": {"context": False}, **config})
    gold = entities_of(nlp)
    gold.set_ents([Span(gold, x.start, x.end, x.label, kb_id="Q3" if x.start else "Q1") for x in gold.ents])
    linker.initialize(lambda: [Example(entities_of(nlp), gold)], kb=lambda: kb)
    return linker


def entities_of(nlp):
    doc = nlp.make_doc("London and Berlin saw Berlin")
    doc.set_ents([Span(doc, 0, 1, "LOC"), Span(doc, 4, 5, "LOC")])
    return doc
