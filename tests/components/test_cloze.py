"""`luke_cloze`: candidates, windows and gaps; checkpoints."""

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.annotations import get_rows, set_queries
from spacy_luke.batch.entities import make_entity_batch
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.components.questions.cloze_windows import query_items
from spacy_luke.text.passages import encode_query
from tests.components.asked import asked_doc, gold_doc, make_examples, make_pipeline, trained
from tests.tiny import SENTENCES, make_checkpoint, make_wordpiece

QUERY = "@placeholder lived there"
LONG = " ".join([*SENTENCES[1:], *SENTENCES[1:], SENTENCES[0]])


def make_cloze(**config):
    return make_pipeline("luke_cloze", **config)


def find(text, *words):
    return [(text.index(word), text.index(word) + len(word)) for word in words]


def pieces_of(cloze, *names):
    return [cloze.tokenizer.piece_id(name) for name in names]


def test_fill_without_asking_the_doc():
    nlp = trained("luke_cloze")
    cloze = nlp.get_pipe("luke_cloze")
    doc = nlp.make_doc(SENTENCES[0])
    candidates = find(doc.text, "London", "Ada Lovelace", "Royal Society")
    answer = cloze.fill(doc, {"query": QUERY, "candidates": candidates})
    assert (answer.question, answer.span) == (QUERY, doc[0:2])
    assert [x.score for x in answer.spans] == sorted((x.score for x in answer.spans), reverse=True)
    assert len(answer.spans) == 3
    assert doc.user_data == {}
    doc.ents = [Span(doc, 4, 5, label="LOC"), Span(doc, 0, 2, label="PER")]
    assert {x.text for x in cloze.fill(doc, QUERY).spans} == {"London", "Ada Lovelace"}  # of the Doc's entities
    assert cloze.fill(nlp.make_doc(SENTENCES[0]), QUERY).spans == ()
    assert cloze.fill(doc, {"query": QUERY, "candidates": []}).spans == ()


def test_input():
    """[CLS] query [SEP][SEP] passage [SEP]; the placeholder's entity first, then the candidates with their markers."""
    nlp, cloze = make_cloze()
    text = "@highlight\n" + SENTENCES[0]
    candidates = find(text, "London", "Ada Lovelace")
    (item,) = query_items(cloze.input(), text, {"query": QUERY}, candidates, owner=3, gold=np.array([0, 1]))
    highlight, gap, marker = pieces_of(cloze, "[HIGHLIGHT]", "[PLACEHOLDER]", "<ent>")
    cls, sep = cloze.tokenizer.cls_id, cloze.tokenizer.sep_id
    assert item.pieces[:2].tolist() == [cls, gap]
    assert item.pieces.tolist().count(sep) == 3
    assert item.pieces.tolist().count(marker) == 4
    assert highlight in item.pieces
    assert item.rows_E.tolist() == [cloze.special_row("[MASK]")] * 3
    assert (item.first_E[0], item.last_E[0]) == (1, 1)
    for (a, b), first, last in zip(candidates, item.first_E[1:], item.last_E[1:]):
        assert item.pieces[first] == item.pieces[last] == marker
        inside = cloze.tokenizer.backend.decode(item.pieces[first + 1 : last].tolist())
        assert inside.strip() == text[a:b]
    assert item.units_UK.tolist() == [[0, 1], [0, 2]]
    assert item.gold.tolist() == [0, 1]


def test_every_candidate_is_in_a_window():
    nlp, cloze = make_cloze()
    query, _ = encode_query(cloze.tokenizer, QUERY, placeholder="@placeholder", piece=0)
    shared = cloze.input().window - len(query) - 4 - cloze.cfg["stride"]
    long = next(n for n in range(len(LONG)) if len(cloze.tokenizer.encode(LONG[:n])[0]) > shared + 10)
    candidates = [
        *find(LONG, "Ada Lovelace", "Berlin", "Bank of"),
        (5, long),
        (len(LONG) - 40, len(LONG)),
        (0, len(LONG)),
    ]
    lost = []
    items = list(query_items(cloze.input(), LONG, {"query": QUERY}, candidates, owner=0, lost=lost))
    room = cloze.encoder.module.config.max_window
    assert all(len(item.pieces) <= room for item in items)
    assert {c for item in items for c in item.number_U.tolist()} | set(lost) == set(range(len(candidates)))
    assert lost == [5]
    for item in items:
        assert len(item.first_E) == len(item.number_U) + 1
        for c, first, last in zip(item.number_U, item.first_E[1:], item.last_E[1:]):
            text = cloze.tokenizer.backend.decode(item.pieces[first : last + 1].tolist())
            expected = LONG[slice(*candidates[c])]
            assert text.replace("<ent>", "").replace(" ", "") == expected.replace(" ", "")


def test_best_of_several_windows_wins():
    """A candidate in several windows has the highest of its logits."""
    nlp, cloze = make_cloze()
    doc = nlp.make_doc(LONG)
    candidates = find(LONG, "Ada Lovelace", "Berlin", "Accra")
    items = list(query_items(cloze.input(), LONG, {"query": QUERY}, candidates, owner=0))
    assert len(items) > sum(map(len, [candidates]))
    logits = {}
    for item in items:
        for c, logit in zip(item.number_U.tolist(), cloze.model.predict(make_entity_batch([item]))[:, 0].tolist()):
            logits.setdefault(c, []).append(logit)
    assert max(map(len, logits.values())) > 1
    answer = cloze.fill(doc, {"query": QUERY, "candidates": candidates})
    expected = {LONG[slice(*candidates[c])]: 1 / (1 + np.exp(-max(x))) for c, x in logits.items()}
    assert {x.text: x.score for x in answer.spans} == pytest.approx(expected, abs=1e-5)


def test_one_way_candidates_do_not_influence_one_another():
    for attention in ("full", "one_way"):
        nlp, cloze = make_cloze(attention=attention)
        text = SENTENCES[0]
        given = find(text, "Ada Lovelace", "London", "Royal Society")
        (item,) = query_items(cloze.input(), text, {"query": QUERY}, given, owner=0)
        alone = [0, 2]  # the placeholder and one candidate, in the same marked text
        part = type(item)(
            0, item.pieces, item.rows_E[alone], item.first_E[alone], item.last_E[alone], np.array([[0, 1]])
        )
        together = cloze.model.predict(make_entity_batch([item]))[1, 0]
        apart = cloze.model.predict(make_entity_batch([part]))[0, 0]
        assert (float(together) == pytest.approx(float(apart), abs=1e-5)) == (attention == "one_way")


@pytest.mark.parametrize("features", ["all", "words"])
def test_other_features(features):
    nlp, cloze = make_cloze(model={"features": features})
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(150):
        if cloze.update(make_examples(nlp), sgd=optimizer)["luke_cloze"] < 0.02:
            break
    assert nlp.evaluate(make_examples(nlp))["cloze_em"] == 1.0
    with pytest.raises(ValueError, match="Train with features = 'entity' to export it"):
        cloze.to_checkpoint()


def test_given_candidates_that_overlap():
    nlp = trained("luke_cloze")
    doc = nlp.make_doc(SENTENCES[1])
    candidates = find(doc.text, "Bank of Ghana", "Ghana", "Ghana in Accra", "Bank of Ghana")
    answer = nlp.get_pipe("luke_cloze").fill(doc, {"query": QUERY, "candidates": candidates})
    assert {x.text for x in answer.spans} == {"Bank of Ghana", "Ghana", "Ghana in Accra"}
    assert len(answer.spans) == 3


def test_many_candidates():
    nlp = trained("luke_cloze")
    doc = nlp.make_doc(" ".join(SENTENCES * 20))
    candidates = [(word.idx, word.idx + len(word)) for word in doc][:500]
    answer = nlp.get_pipe("luke_cloze").fill(doc, {"query": QUERY, "candidates": candidates})
    assert len(answer.spans) == len(candidates)


# ---- what cannot be done


def test_candidates_longer_than_a_window():
    nlp = trained("luke_cloze")
    doc = nlp.make_doc(LONG)
    with pytest.warns(
        UserWarning, match="1 of 2 candidates are longer than a window and get no score; the first is 'Nadia"
    ):
        answer = nlp.get_pipe("luke_cloze").fill(doc, {"query": QUERY, "candidates": [(0, len(LONG)), (0, 5)]})
    assert [x.text for x in answer.spans] == ["Nadia"]


@pytest.mark.parametrize("place", [(3, 3), (-1, 4), (0, 1000)])
def test_candidates_outside_of_the_text(place):
    nlp = trained("luke_cloze")
    with pytest.raises(ValueError, match=r"The query: candidates must be characters \[start, end\)"):
        nlp.get_pipe("luke_cloze").fill(nlp.make_doc(SENTENCES[0]), {"query": QUERY, "candidates": [place]})


@pytest.mark.parametrize("query", ["nothing", "@placeholder and @placeholder"])
def test_gaps(query):
    nlp = trained("luke_cloze")
    doc = nlp.make_doc(SENTENCES[0])
    with pytest.raises(ValueError, match="must have @placeholder exactly once"):
        nlp.get_pipe("luke_cloze").fill(doc, {"query": query, "candidates": [(0, 3)]})
    with pytest.raises(ValueError, match="must have @placeholder exactly once"):
        doc._.luke_queries = [query]


def test_long_queries():
    nlp = trained("luke_cloze")
    with pytest.raises(ValueError, match="pieces, but it may have 30, half of a window"):
        nlp.get_pipe("luke_cloze").fill(
            nlp.make_doc(SENTENCES[0]), {"query": QUERY + " and there" * 20, "candidates": [(0, 3)]}
        )


@pytest.mark.parametrize(("query", "kept"), [("x " * 40 + "@placeholder", 9), ("@placeholder" + " x" * 40, 10)])
def test_queries_are_cut_where_that_is_asked(query, kept):
    """At so many pieces, as the original at 90; the gap stays, as the last piece at least."""
    nlp, cloze = make_cloze(max_query_pieces=10)
    gap = cloze.tokenizer.piece_id("[PLACEHOLDER]")
    (item,) = query_items(cloze.input(), SENTENCES[0], {"query": query}, find(SENTENCES[0], "London"), owner=0)
    assert item.pieces.tolist().index(cloze.tokenizer.sep_id) == 11
    place = int(item.first_E[0])
    assert item.pieces[place] == gap
    assert place == (10 if kept == 9 else 1)


def test_lost_answers_are_counted():
    nlp = spacy.blank("en")
    gold = gold_doc(nlp, 0)
    first, second = get_rows(gold, "luke_queries")
    first["answers"], second["answers"] = find(gold.text, "Lovelace", "London"), find(gold.text, "lived")
    set_queries(gold, [first, second])
    with pytest.warns(UserWarning, match="2 answers are no candidates, 1 queries have no right candidate") as caught:
        make_cloze(examples=[Example(asked_doc(nlp, gold), gold)])
    assert "of 2 queries with 6 candidates and 3 answers" in str(caught[0].message)


def test_encoder_without_the_pieces():
    nlp = spacy.blank("en")
    nlp.add_pipe("luke_encoder", config={"model": {"train_precision": "float32"}})
    nlp.get_pipe("luke_encoder").initialize(lambda: make_examples(nlp), nlp=nlp, weights=make_checkpoint)
    shared = {"@architectures": "spacy-luke.SharedEncoder.v1"}
    cloze = nlp.add_pipe("luke_cloze", config={"model": {"encoder": shared}})
    with pytest.raises(ValueError, match="was loaded before this component was added"):
        cloze.initialize(lambda: make_examples(nlp), nlp=nlp)
    nlp.get_pipe("luke_encoder").initialize(lambda: make_examples(nlp), nlp=nlp, weights=make_checkpoint)
    cloze.initialize(lambda: make_examples(nlp), nlp=nlp)
    assert cloze.update(make_examples(nlp))["luke_cloze"] > 0


# ---- checkpoints


@pytest.mark.parametrize("tokenizer", [None, make_wordpiece()], ids=["byte_bpe", "wordpiece"])
def test_pieces_begin_as_in_the_original(tokenizer):
    """[HIGHLIGHT] as "@", [PLACEHOLDER] as "#"; the marker as "*", unless the checkpoint has learned one."""
    checkpoint = make_checkpoint(tokenizer=tokenizer)
    before = checkpoint.tensors["encoder.words.piece.weight"].clone()
    ids = {piece: checkpoint.tokenizer.piece_id(piece) for piece in ("@", "#", "*", "<ent>")}
    _, cloze = make_cloze(weights=lambda: checkpoint)
    table = cloze.encoder.module.words.piece.weight
    unknown = checkpoint.tokenizer.unk_id
    for piece, start in (("[HIGHLIGHT]", "@"), ("[PLACEHOLDER]", "#")):
        (row,) = pieces_of(cloze, piece)
        assert torch.equal(table[row], before[ids[start] if ids[start] is not None else unknown])
    (marker,) = pieces_of(cloze, "<ent>")
    expected = before[ids["<ent>"]] if ids["<ent>"] is not None else before[unknown]
    assert torch.equal(table[marker], expected)
    if tokenizer is None:
        fresh = make_checkpoint()
        fresh.tensors["encoder.words.piece.weight"][ids["<ent>"]] = before[ids["@"]]
        _, cloze = make_cloze(weights=lambda: fresh)
        assert torch.equal(cloze.encoder.module.words.piece.weight[ids["<ent>"]], before[ids["*"]])


def test_export_and_import(tmp_path):
    nlp = trained("luke_cloze")
    cloze = nlp.get_pipe("luke_cloze")
    write_huggingface(cloze.to_checkpoint(), tmp_path)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.task == "cloze"
    other, again = make_cloze(weights=lambda: checkpoint)
    for i in range(3):
        doc, copy = nlp(asked_doc(nlp, gold_doc(nlp, i))), other(asked_doc(other, gold_doc(other, i)))
        assert get_rows(copy, "luke_fillers") == get_rows(doc, "luke_fillers")


def test_head_of_a_checkpoint_is_kept():
    checkpoint = make_checkpoint()
    checkpoint.task = "cloze"
    checkpoint.tensors["head.classifier.weight"] = torch.randn(1, 64)
    checkpoint.tensors["head.classifier.bias"] = torch.randn(1)
    _, cloze = make_cloze(weights=lambda: checkpoint)
    exported = cloze.to_checkpoint().tensors
    for name in ("head.classifier.weight", "head.classifier.bias"):
        assert torch.equal(exported[name], checkpoint.tensors[name])
