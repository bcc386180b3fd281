"""`ernie_typer`, `ernie_relation`, `ernie_encoder`: entities of a Doc reach the encoder, and everything saves and
loads."""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.bridge.documents import read_document
from spacy_luke.components.known_entities import KnownPieces
from spacy_luke.components.units.asked import Units
from spacy_luke.vectors.build import build_vectors
from tests.components.known import ALWAYS, BOTH, TEXTS, annotate, annotated, make, results
from tests.tiny import ENTITY_SIZE as SIZE
from tests.tiny import make_ernie


@pytest.mark.parametrize("shared", [False, True])
def test_batches_and_saving(vectors, tmp_path, shared):
    nlp, _ = make(BOTH, vectors, shared=shared, **ALWAYS)
    expected = results(annotated(nlp))
    assert all(types for found in expected for _, types in found[0])
    assert expected[0][1]
    assert results(annotated(nlp, batch_size=1)) == expected
    assert results(annotated(nlp, batch_size=50)) == expected
    nlp.to_disk(tmp_path / "pipeline")
    stores = sorted(x.parent.name for x in (tmp_path / "pipeline").glob("*/entity_vectors"))
    assert stores == (["ernie_encoder"] if shared else sorted(BOTH))
    assert results(annotated(spacy.load(tmp_path / "pipeline"))) == expected
    (tmp_path / "pipeline").rename(tmp_path / "moved")
    assert results(annotated(spacy.load(tmp_path / "moved"))) == expected
    again = make(BOTH, vectors, shared=shared, **ALWAYS)[0]
    for name in BOTH:  # other weights, so that only the bytes can bring these
        for p in again.get_pipe(name).model.shims[0].module.parameters():
            p.data.zero_()
    assert results(annotated(again)) != expected
    assert results(annotated(again.from_bytes(nlp.to_bytes()))) == expected
    docs = [annotate(nlp.make_doc(text)) for text in TEXTS]
    assert results(nlp.pipe(docs, n_process=2, batch_size=1)) == expected


def test_vectors_matter(vectors):
    """An entity changes what is said of its mention; one without a vector, or none at all, is as nothing."""
    nlp, _ = make(("ernie_typer",), vectors, **ALWAYS)
    linked, plain = results(annotated(nlp)), results(annotated(nlp, linked=False))
    assert linked[0] != plain[0]
    docs = [annotate(nlp.make_doc(text)) for text in TEXTS]
    for doc in docs:
        doc.set_ents([Span(doc, e.start, e.end, e.label_, kb_id="Q99") for e in doc.ents])
    assert results(nlp.pipe(docs)) == plain
    without, _ = make(("ernie_typer",), None, **{"ernie_typer": {"knowledge": None, "always_best": True}})
    for (_, a), (_, b) in zip(
        nlp.get_pipe("ernie_typer").named_parameters(), without.get_pipe("ernie_typer").named_parameters()
    ):
        b.data.copy_(a.data)
    assert results(annotated(without)) == plain


def test_entity_in_its_place(vectors):
    """The item of a marked mention holds the pieces and entities that a person would write down."""
    nlp, _ = make(("ernie_typer",), vectors)
    typer = nlp.get_pipe("ernie_typer")
    doc = annotate(nlp.make_doc(TEXTS[0]))
    (item,) = list(typer.items(doc, Units.alone([(2, 3)])))  # bob
    tokenizer = typer.tokenizer
    pieces = [tokenizer.backend.id_to_token(i) for i in item.pieces.tolist()]
    assert [pieces[0], pieces[-1], pieces.count("。")] == ["[CLS]", "[SEP]", 2]
    first = pieces.index("。")
    assert [(pieces[at], row) for at, row in zip(item.first_E.tolist(), item.rows_E.tolist())] == [
        ("ada", 0),
        (pieces[first + 1], 1),
        ("london", 2),
    ]
    assert item.units_UK.shape == (1, 0)


@pytest.mark.slow
def test_learns_from_vectors_alone(vectors, tmp_path):
    """One text, and only its entity tells the type; entities of the test are new."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(120, SIZE)).astype("float32")
    build_vectors(values, tmp_path / "many", names=[f"Q{i}" for i in range(120)])

    def example(nlp, i):
        gold, given = nlp.make_doc("in london ada lost"), nlp.make_doc("in london ada lost")
        given.set_ents([Span(given, 2, 3, "X", kb_id=f"Q{i}")])
        gold.set_ents([Span(gold, 2, 3, "X", kb_id=f"Q{i}")])
        gold.spans["luke_types"] = [Span(gold, 2, 3, "yes" if values[i, 0] > 0 else "no")]
        return Example(given, gold)

    nlp = spacy.blank("en")
    typer = nlp.add_pipe("ernie_typer", config={"always_best": True})
    typer.initialize(lambda: [example(nlp, i) for i in range(90)], weights=lambda: make_ernie(tmp_path / "many"))
    optimizer = nlp.resume_training()
    optimizer.learn_rate = 0.003
    for _ in range(60):
        nlp.update([example(nlp, i) for i in rng.permutation(90)[:30]], sgd=optimizer)
    test = [example(nlp, i) for i in range(90, 120)]
    for x in test:
        typer(x.predicted)
    assert typer.score(test)["types_micro_f"] > 0.8


def test_word_states_for_other_components(vectors, tmp_path):
    """textcat, tagger, ner and spancat listen to ernie_encoder; its entities reach them."""
    nlp = spacy.blank("en")
    nlp.add_pipe("ernie_encoder", config={"overlap": 8})
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32, "upstream": "*"}
    nlp.add_pipe(
        "textcat",
        config={
            "model": {
                "@architectures": "spacy.TextCatReduce.v1",
                "tok2vec": listener,
                "exclusive_classes": True,
                "use_reduce_first": True,
                "use_reduce_last": False,
                "use_reduce_max": False,
                "use_reduce_mean": True,
            }
        },
    )
    nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}})
    nlp.add_pipe("ner", config={"model": {"tok2vec": listener}})
    nlp.add_pipe("spancat", config={"model": {"tok2vec": listener}, "spans_key": "names"})
    golds = [annotate(nlp.make_doc(text)) for text in TEXTS]
    for i, gold in enumerate(golds):
        gold.cats = {"A": float(i == 0), "B": float(i != 0)}
        gold.spans["names"] = [Span(gold, x.start, x.end, x.label_) for x in gold.ents]
        for word in gold:
            word.tag_ = "N" if word.ent_type_ else "X"
    examples = [Example(annotate(nlp.make_doc(x.text)), x) for x in golds]
    nlp.get_pipe("ernie_encoder").initialize(lambda: examples, nlp=nlp, weights=lambda: make_ernie(vectors))
    listening = ("textcat", "tagger", "ner", "spancat")
    for name in listening:
        nlp.get_pipe(name).initialize(lambda: examples, nlp=nlp)
    optimizer = nlp.resume_training()
    before = nlp.get_pipe("ernie_encoder").encoder.module.words.piece.weight.detach().clone()
    for _ in range(3):
        losses = {}
        nlp.update(examples, sgd=optimizer, losses=losses)
    assert all(losses[name] > 0 for name in ("ernie_encoder", *listening))
    assert not torch.equal(before, nlp.get_pipe("ernie_encoder").encoder.module.words.piece.weight)
    linked = [doc.tensor.copy() for doc in annotated(nlp)]
    plain = [doc.tensor.copy() for doc in annotated(nlp, linked=False)]
    assert not np.allclose(linked[0], plain[0])
    assert np.array_equal(linked[2], plain[2])
    one = [doc.tensor for doc in annotated(nlp, batch_size=1)]
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(one, linked))
    nlp.to_disk(tmp_path / "p")
    again = annotated(spacy.load(tmp_path / "p"))
    assert all(np.array_equal(a.tensor, b) for a, b in zip(again, linked))


def test_bad_input(vectors, tmp_path):
    with pytest.raises(ValueError, match="has no entity vectors"):
        make(("ernie_typer",), None)
    with pytest.raises(ValueError, match="have 12 numbers, but the encoder's entities 16"):
        make(("ernie_typer",), vectors, weights=lambda: make_ernie(vectors, entity_size=16))
    with pytest.raises(ValueError, match="alignment must be one of"):
        make(("ernie_typer",), vectors, ernie_typer={"alignment": "words"})
    with pytest.raises(ValueError, match="markers must be a list of 2"):
        make(("ernie_relation",), vectors, ernie_relation={"markers": ["#"]})
    nlp = spacy.blank("en")
    typer = nlp.add_pipe("luke_typer")
    with pytest.raises(ValueError, match=r"Expected spacy-luke\.checkpoint\.v1"):
        typer.load_encoder(make_ernie(vectors))
    other = [Span(doc := nlp.make_doc("ada left"), 0, 1, "PER", kb_id="Q77")]
    doc.set_ents(other)
    doc.spans["luke_types"] = [Span(doc, 0, 1, "per")]
    nlp = spacy.blank("en")
    typer = nlp.add_pipe("ernie_typer")
    with pytest.warns(UserWarning, match="1 have no vector"):
        typer.initialize(lambda: [Example(doc.copy(), doc)], weights=lambda: make_ernie(vectors))


def test_empty_docs(vectors):
    nlp, _ = make(BOTH, vectors, **ALWAYS)
    docs = list(nlp.pipe(["", " ", "x"]))
    assert [len(doc) for doc in docs] == [0, 1, 1]
    assert all(doc._.luke_relations == [] for doc in docs)
    assert isinstance(docs[0], Doc)


@pytest.mark.parametrize("strips", [True, False])
def test_accents_of_the_tokenizer(vectors, strips):
    """A run of nothing but accents vanishes where the tokenizer strips them, and then moves the entities after it by
    one, as in the original; else they stay."""
    from tokenizers import normalizers

    nlp, _ = make(("ernie_typer",), vectors, ernie_typer={"alignment": "whitespace"})
    typer = nlp.get_pipe("ernie_typer")
    typer.tokenizer.backend.normalizer = normalizers.BertNormalizer(lowercase=strips, strip_accents=strips)
    assert typer.tokenizer.strips_accents is strips
    doc = nlp.make_doc("in \u0301\u0301 ada met bob .")
    doc.set_ents([Span(doc, i, i + 1, "PER", kb_id=name) for i, name in ((2, "Q1"), (4, "Q2"))])
    found = typer.known.find(doc, read_document(doc, typer.tokenizer))
    words = [word.text for word in doc]
    pieces = read_document(doc, typer.tokenizer).pieces
    carriers = [words[int(np.flatnonzero(pieces.first_W == p)[-1])] for p in found.pieces_E]
    assert carriers == (["met", "."] if strips else ["ada", "bob"])


def test_of_entities_at_one_piece_the_last_counts():
    """Marks cut the text anew, so that two words may share a piece there."""
    known = KnownPieces(np.array([3, 4, 9]), np.array([7, 8, 5]))
    rows, at = known.inside({3: 2, 4: 2, 9: 30}.get, np.array([-1, 1, 2, -1, 3]))
    assert (rows.tolist(), at.tolist()) == ([8], [2])


def test_only_entities_near_a_window_are_looked_at():
    """A text may have as many windows as entities, so that to look at all of them for each took minutes."""
    pieces = np.arange(0, 30_000, 3)
    looked = []

    def number(piece):
        looked.append(int(piece))
        return int(piece) + 5

    window = np.array([-1, *range(300, 330), -1, -1, *range(24_000, 24_030), -1])
    rows, at = KnownPieces(pieces, pieces + 7).inside(number, window)
    expected = [(n - 5 + 7, i) for i, n in enumerate(window.tolist()) if n > 0 and (n - 5) % 3 == 0]
    assert list(zip(rows.tolist(), at.tolist())) == expected
    assert len(expected) == 20
    assert len(looked) < 60
