"""`luke_typer`: types of mentions."""

import copy
import pickle

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_luke.annotations import set_types
from tests.components.related import KEY, LABELS, LONG, docs_of, make_examples, make_pipeline, noisy, trained, types_of
from tests.components.typed import MODES, docs_for, everywhere, same
from tests.components.updates import OPTIMIZERS, assert_division_is_irrelevant, assert_learns
from tests.tiny import SENTENCES, make_checkpoint

# ---- learning


@pytest.mark.parametrize("attention", MODES)
def test_overfit(attention):
    nlp = trained("luke_typer", attention)
    for example, doc in zip(make_examples(nlp), nlp.pipe(docs_of(nlp)), strict=True):
        gold = {}
        for span in example.reference.spans["luke_types"]:
            gold.setdefault((span.start, span.end), set()).update({span.label_} - {""})
        found = types_of(doc)
        assert {key: set(labels) for key, labels in found.items()} == gold
        for labels in found.values():
            assert list(labels) == sorted(labels, key=lambda x: -labels[x])
            assert all(0.5 < p <= 1 for p in labels.values())
    scores = nlp.evaluate(make_examples(nlp))
    assert scores["types_micro_f"] == scores["types_strict"] == 1.0
    assert nlp.get_pipe("luke_typer").labels == tuple(LABELS["luke_typer"])


@pytest.mark.product
@pytest.mark.parametrize("attention", MODES)
@pytest.mark.parametrize(("accumulate", "pieces"), [(2, 4096), (4, 100), (1, 1)])
def test_gradient_does_not_depend_on_the_division(attention, accumulate, pieces):
    """Also with Docs that hold nothing to learn from among them."""
    assert_division_is_irrelevant(
        lambda pieces: make_pipeline("luke_typer", attention, batch_size=pieces),
        make_examples,
        accumulate=accumulate,
        pieces=pieces,
    )


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer):
    nlp, _ = make_pipeline("luke_typer")
    assert_learns(nlp, "luke_typer", make_examples, optimizer, share=0.8)


@pytest.mark.parametrize("attention", MODES)
def test_loss_is_that_of_the_paper(attention):
    """The mean over mentions of binary cross-entropy, summed over labels."""
    nlp, typer = make_pipeline("luke_typer", attention)
    examples = make_examples(nlp)
    expected = mentions = 0
    for example in examples:
        ((places, logits),) = typer.predict([example.predicted])
        wanted, gold, _ = typer.gold(example)
        assert wanted.mentions == places
        p = 1 / (1 + np.exp(-logits.astype(np.float64)))
        expected -= (gold * np.log(p) + (1 - gold) * np.log(1 - p)).sum()
        mentions += len(places)
    assert mentions == 10
    assert typer.update(examples)["luke_typer"] == pytest.approx(expected / mentions, rel=1e-4)


def test_focus():
    """With it, types that do not hold weigh as much as they are believed."""
    nlp, typer = make_pipeline("luke_typer")
    plain = typer.update(make_examples(nlp))["luke_typer"]
    typer.cfg["focus"] = 2.0
    assert 0 < typer.update(make_examples(nlp))["luke_typer"] < plain


def test_a_fresh_head_knows_how_frequent_types_are():
    _, typer = make_pipeline("luke_typer")
    bias = typer.model.shims[0].module.classifier.bias.sigmoid().tolist()
    assert dict(zip(typer.labels, bias)) == pytest.approx(
        {"city": 2 / 12, "group": 4 / 12, "person": 4 / 12, "place": 4 / 12, "scientist": 2 / 12}, rel=1e-4
    )


# ---- what an answer depends on


@pytest.mark.product
@pytest.mark.parametrize("context", ["document", "sentence"])
@pytest.mark.parametrize("attention", MODES)
def test_pipe_equals_one_by_one(attention, context):
    nlp, typer = noisy("luke_typer", attention, context=context)
    docs = docs_for(nlp)
    for doc in docs[7:]:
        for word in doc:
            word.is_sent_start = word.i == 0 or doc[word.i - 1].text in (".", "!")
    alone = [types_of(typer(doc.copy())) for doc in docs]
    assert sum(map(len, alone)) > 30
    assert len({str(labels) for found in alone for labels in found.values()}) > 10
    for batch_size in (1, 3, 64):
        for pieces in (1, 150, 100_000):
            typer.cfg["batch_size"] = pieces
            piped = nlp.pipe((doc.copy() for doc in docs), batch_size=batch_size)
            for doc, one in zip(piped, alone, strict=True):
                same(types_of(doc), one)


@pytest.mark.parametrize("attention", MODES)
def test_answers_do_not_depend_on_other_mentions(attention):
    """Nested, crossing and equal mentions, and some in other windows."""
    nlp, typer = noisy("luke_typer", attention)
    doc = everywhere(nlp, LONG)
    doc.spans[KEY] = [*doc.spans[KEY], doc[0:1], doc[1:5], doc[0:2], doc[0:3], doc[30:34], doc[32:40]]
    together = types_of(typer(doc.copy()))
    assert len(together) > 25
    for start, end in together:
        alone = doc.copy()
        alone.spans[KEY] = [alone[start:end]]
        same(types_of(typer(alone)), {(start, end): together[start, end]})


def test_overlap_of_windows():
    """In a long document a mention is read in the window whose core holds its beginning: with all the context that
    other mentions of its core have."""
    nlp, typer = noisy("luke_typer")
    doc = everywhere(nlp, LONG)
    (item, *more) = typer.items(doc, typer.asked(doc))
    assert len(more) >= 2
    for x in (item, *more):
        assert len(x.pieces) == 64
        assert (x.first_E >= 1).all()
        assert (x.last_E <= 62).all()


@pytest.mark.parametrize("attention", MODES)
def test_mention_longer_than_a_window(attention):
    nlp, typer = noisy("luke_typer", attention)
    doc = everywhere(nlp, LONG)
    expected = types_of(typer(doc.copy()))
    doc.spans[KEY] = [doc[1:50], *doc.spans[KEY]]
    with pytest.warns(UserWarning, match=r"1 of \d+ mentions get no types.*window of 62 pieces.*words \[1, 50\)"):
        found = types_of(typer(doc))
    assert found.pop((1, 50)) == {}
    same(found, expected)


def test_a_mention_that_just_fits():
    """One of exactly a window's pieces, and one between two cores of windows."""
    for attention, room in (("one_way", 62), ("full", 60)):
        nlp, typer = noisy("luke_typer", attention)
        doc = Doc(nlp.vocab, words=["."] * 200)
        assert len(typer.tokenizer.encode_word(".", blank=False)) == 1
        for start in (0, 3, 20, 100, 199 - room):
            doc.spans[KEY] = [doc[start : start + room]]
            assert np.isfinite(typer.predict([doc])[0][1]).all()
        doc.spans[KEY] = [doc[5 : 6 + room]]
        with pytest.warns(UserWarning, match="1 of 1 mentions get no types"):
            typer(doc)


@pytest.mark.parametrize("attention", MODES)
def test_words_alone(attention):
    """A Doc of which only the words are known."""
    nlp, typer = noisy("luke_typer", attention)
    doc = Doc(nlp.vocab, words=[*SENTENCES[0].split(), " ", "'s"])
    assert doc.has_unknown_spaces
    doc.spans[KEY] = [doc[0:2], doc[4:5], doc[10:11], doc[11:12]]
    assert len(types_of(typer(doc))) == 4


@pytest.mark.parametrize("attention", MODES)
def test_nothing_to_type(attention):
    nlp, typer = make_pipeline("luke_typer", attention)
    for text in ("", " ", "Ada"):
        doc = typer(nlp.make_doc(text))
        assert KEY not in doc.spans
        assert typer.update([Example(nlp.make_doc(text), doc)]) == {"luke_typer": 0.0}
    assert list(nlp.pipe([])) == []
    assert typer.update([]) == {"luke_typer": 0.0}


def test_500_mentions():
    nlp, typer = noisy("luke_typer")
    doc = Doc(nlp.vocab, words=(" ".join(SENTENCES).split() * 24)[:1000])
    doc.spans[KEY] = [doc[i : i + 1 + i % 3] for i in range(0, 1000, 2)]
    assert all(x is not None for x in types_of(typer(doc)).values())
    assert len(types_of(doc)) == 500


# ---- what is written


def test_threshold_and_best():
    nlp, typer = noisy("luke_typer", scale=0.3)
    ((mentions, logits),) = typer.predict([everywhere(nlp, LONG)])
    p = 1 / (1 + np.exp(-logits))

    def found(**cfg):
        typer.cfg.update(cfg)
        return types_of(typer(everywhere(nlp, LONG)))

    for threshold in (0.05, 0.5, 0.9):
        for best in (False, True):
            answers = found(threshold=threshold, always_best=best)
            for at, row in zip(mentions, p):
                chosen = {i for i in range(len(row)) if row[i] > threshold or (best and row[i] == row.max())}
                assert set(answers[at]) == {typer.labels[i] for i in chosen}
    assert any(not x for x in found(threshold=0.9, always_best=False).values())
    assert all(x for x in found(threshold=0.9, always_best=True).values())


def test_set_label_of_entities():
    nlp = trained("luke_typer", getter={"@misc": "spacy-luke.doc_ents.v1"}, set_label=True)
    doc = nlp(docs_of(nlp)[1])
    assert [(x.text, x.label_) for x in doc.ents] == [
        ("Nadia Haddad", "person"),
        ("Bank of Ghana", "group"),
        ("Accra", "place"),
    ]
    assert {x.label_ for x in doc.spans[KEY]} == {""}  # other groups stay
    assert doc.ents[0]._.luke_types
    doc = nlp.make_doc(SENTENCES[2])
    doc.set_ents([Span(doc, 3, 4, label="X", kb_id="Q64")], missing=[doc[0:2]], default="outside")
    doc = nlp.get_pipe("luke_typer")(doc)
    assert [(x.text, x.label_, x.kb_id_) for x in doc.ents] == [("Berlin", "X", "Q64")]  # no type: its label stays
    assert [word.ent_iob for word in doc][:4] == [0, 0, 2, 3]


def test_set_label_of_spans():
    nlp = trained("luke_typer")
    typer = nlp.get_pipe("luke_typer")
    typer.cfg["set_label"] = True
    doc = docs_of(nlp)[1]
    doc.spans["other"] = [doc[0:2]]
    doc.spans[KEY].attrs["scores"] = [1, 2, 3, 4]
    typer(doc)
    assert [(x.text, x.label_) for x in doc.spans[KEY]] == [
        ("Nadia Haddad", "person"),
        ("Bank of Ghana", "group"),
        ("Ghana", "place"),
        ("Accra", "place"),
    ]
    assert doc.spans[KEY].attrs["scores"] == [1, 2, 3, 4]
    assert doc.spans["other"][0].label_ == ""
    assert {x.label_ for x in doc.ents} == {"ENT"}


# ---- saving and loading


@pytest.mark.parametrize("attention", MODES)
def test_saved_and_loaded(attention, tmp_path):
    nlp = trained("luke_typer", attention)
    nlp.get_pipe("luke_typer").cfg["threshold"] = 0.3
    expected = [types_of(doc) for doc in nlp.pipe(docs_for(nlp))]
    nlp.to_disk(tmp_path)
    copies = [spacy.load(tmp_path), pickle.loads(pickle.dumps(nlp)), copy.deepcopy(nlp)]
    copies.append(spacy.blank("en"))
    copies[-1].add_pipe("luke_typer", source=nlp)
    for again in copies:
        assert again.get_pipe("luke_typer").cfg == nlp.get_pipe("luke_typer").cfg
        assert [types_of(doc) for doc in again.pipe(docs_for(again))] == expected


def test_types_survive_in_docs():
    nlp = trained("luke_typer")
    docs = list(nlp.pipe(docs_of(nlp)))
    expected = [types_of(doc) for doc in docs]
    vocab = spacy.blank("en").vocab
    assert [types_of(Doc(vocab).from_bytes(doc.to_bytes())) for doc in docs] == expected
    data = DocBin(docs=docs, store_user_data=True).to_bytes()
    assert [types_of(doc) for doc in DocBin().from_bytes(data).get_docs(vocab)] == expected


# ---- settings


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"context": "paragraph"}, "context must be one of .* but it is 'paragraph'"),
        ({"threshold": -0.1}, "threshold must be a probability, from 0 to 1, but it is -0.1"),
        ({"focus": -1.0}, r"focus must be a finite number, 0 or more, but it is -1\.0"),
        ({"batch_size": 0}, "batch_size must be at least 1, but it is 0"),
        ({"features": "some"}, "features must be one of .* but it is 'some'"),
        ({"attention": "both"}, "attention must be one of .* but it is 'both'"),
        ({"getter": {"@misc": "spacy-luke.span_group.v2"}}, "span_group.v2"),
    ],
)
def test_wrong_settings(config, message):
    with pytest.raises(ValueError, match=message):
        make_pipeline("luke_typer", **config)


def test_a_tokenizer_without_markers():
    from tests.tiny import make_wordpiece

    checkpoint = make_checkpoint(tokenizer=make_wordpiece(), position_offset=0)
    with pytest.raises(ValueError, match=r"marks mentions by the piece '<ent>'.*set attention to one_way"):
        make_pipeline("luke_typer", "full", weights=lambda: checkpoint)


def test_types_that_another_component_has_found_stay():
    """Those with labels that it does not know, the most probable first; its own are written anew."""
    nlp = trained("luke_typer")
    doc = nlp(docs_of(nlp)[0])
    span = next(x for x in doc.spans[KEY] if x._.luke_types)
    own = dict(span._.luke_types)
    set_types(span, {**own, "of others": 1.0, "also": 0.0})
    assert list(nlp(doc).spans[KEY][0]._.luke_types)[:1] == ["of others"]
    assert span._.luke_types == {**own, "of others": 1.0, "also": 0.0}
    assert list(span._.luke_types)[-1] == "also"
