import random

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from spacy_luke.annotations import get_rows
from spacy_luke.scorers.linking import KEYS, link_rows, make_linking_scorer, score_links
from tests.benchmark_files import load

VOCAB = spacy.blank("en").vocab
WORDS = [f"w{i}" for i in range(8)]
score = make_linking_scorer()


def doc_of(mentions=None, *, words=WORDS, key=None, candidates=None, given=False, spaces=None, missing=()):
    """mentions: {(first word, after): id}; candidates: {place: [ids]}."""
    doc = Doc(VOCAB, words=words, spaces=spaces)
    spans = [Span(doc, *place, label="E", kb_id=name) for place, name in (mentions or {}).items()]
    if key:
        doc.spans[key] = spans
    elif mentions is not None:
        doc.set_ents(spans, missing=[doc[i : i + 1] for i in missing])
    if candidates is not None:
        rows = []
        for (start, end), names in candidates.items():
            span = doc[start:end]
            rows.append(
                [span.start_char, span.end_char, [[name, 0.5] if given else [name, 0.5, 0.1] for name in names]]
            )
        doc.user_data["luke_candidates" if given else "luke_linked"] = rows
    return doc


def f1(p, r):
    return 2 * p * r / (p + r) if p + r else 0.0


def plain(documents):
    """The definitions once more, document after document: (gold, predicted, candidates), dicts by place."""
    known = answered = right = reachable = tp = fp = fn = 0
    accuracies, fs, strict_fs = [], [], []
    found, nil = [0, 0, 0], [0, 0, 0]
    for gold, predicted, candidates in documents:
        k = [place for place in gold if gold[place] != "NIL"]
        a = [place for place in k if candidates.get(place)]
        r = [place for place in k if predicted.get(place) == gold[place]]
        known, answered, right = known + len(k), answered + len(a), right + len(r)
        reachable += sum(gold[place] in candidates.get(place, []) for place in k)
        if k:
            accuracies.append(len(r) / len(k))
            fs.append(f1(len(r) / len(a) if a else 0.0, len(r) / len(k)))
        gold_links = {(place, gold[place]) for place in k}
        links = {(place, name) for place, name in predicted.items() if name not in ("", "NIL")}
        n = len(gold_links & links)
        tp, fp, fn = tp + n, fp + len(links) - n, fn + len(gold_links) - n
        if gold_links or links:
            strict_fs.append(f1(n / len(links) if links else 0.0, n / len(gold_links) if gold_links else 0.0))
        both = gold.keys() & predicted.keys()
        said, asked = ({x for x in both if ids[x] in ("", "NIL")} for ids in (predicted, gold))
        nil = [x + y for x, y in zip(nil, (len(said & asked), len(said), len(asked)))]
        found = [x + y for x, y in zip(found, (len(set(gold) & set(predicted)), len(predicted), len(gold)))]

    def share(part, whole):
        return part / whole if whole else 0.0

    def mean(values):
        return sum(values) / len(values) if values else None

    p, r = share(right, answered), share(right, known)
    strict = share(tp, tp + fp), share(tp, tp + fn)
    spans = share(found[0], found[1]), share(found[0], found[2])
    nils = (share(nil[0], nil[1]), share(nil[0], nil[2])) if nil[1] + nil[2] else None
    return {
        "links_accuracy": r,
        "links_macro_accuracy": mean(accuracies),
        "links_p": p,
        "links_r": r,
        "links_f": f1(p, r),
        "links_macro_f": mean(fs),
        "links_strict_p": strict[0],
        "links_strict_r": strict[1],
        "links_strict_f": f1(*strict),
        "links_strict_macro_f": mean(strict_fs),
        "links_candidate_recall": share(reachable, known),
        "links_mentions_p": spans[0],
        "links_mentions_r": spans[1],
        "links_mentions_f": f1(*spans),
        "links_nil_p": nils and nils[0],
        "links_nil_r": nils and nils[1],
        "links_nil_f": nils and f1(*nils),
    }


@pytest.mark.parametrize("seed", range(30))
def test_against_the_plain_definition(seed):
    rng = random.Random(seed)
    examples, documents = [], []
    names = ["Q1", "Q2", "Q3", "NIL"]
    key = rng.choice([None, "linked"])
    for _ in range(rng.randint(2, 6)):
        gold = {(i, i + 1): rng.choice(names) for i in range(0, 8) if rng.random() < 0.6}
        predicted, candidates = {}, {}
        for place in [*gold, *((i, i + 2) for i in range(0, 7, 2))]:
            if rng.random() < 0.7 and not any(a < place[1] and place[0] < b for a, b in predicted):
                candidates[place] = rng.sample(names[:3], rng.randint(0, 3))
                predicted[place] = rng.choice([*candidates[place], "NIL"])
        documents.append((gold, predicted, candidates))
        examples.append(Example(doc_of(predicted, candidates=candidates, key=key), doc_of(gold)))
    documents[0][0][0, 1] = "Q1"  # one at least
    examples[0] = Example(examples[0].predicted, doc_of(documents[0][0]))
    scores = make_linking_scorer(spans_key=key)(examples)
    assert tuple(scores) == KEYS
    expected = plain(documents)
    assert {name: value or 0.0 for name, value in scores.items()} == pytest.approx(
        {name: value or 0.0 for name, value in expected.items()}
    )


def test_by_hand():
    gold = doc_of({(0, 1): "A", (2, 3): "B", (4, 5): "NIL", (6, 7): "C"})
    linked = {(0, 1): "A", (2, 3): "X", (4, 5): "Y"}
    found = score([Example(doc_of(linked, candidates={(0, 1): ["A"], (2, 3): ["X", "B"], (4, 5): ["Y"]}), gold)])
    assert (found["links_accuracy"], found["links_p"], found["links_f"]) == (1 / 3, 1 / 2, pytest.approx(0.4))
    assert (found["links_strict_p"], found["links_strict_r"]) == (1 / 3, 1 / 3)  # the link of a NIL mention is wrong
    assert found["links_candidate_recall"] == pytest.approx(2 / 3)
    assert (found["links_mentions_p"], found["links_mentions_r"]) == (1.0, 0.75)


def test_candidates_decide_precision():
    gold = {(0, 1): "A", (2, 3): "B"}
    silent = {(0, 1): "A", (2, 3): "NIL"}
    assert score([Example(doc_of(silent), doc_of(gold))])["links_p"] == 1.0
    assert score([Example(doc_of(silent), doc_of(gold))])["links_candidate_recall"] is None
    candidates = {(0, 1): ["A"], (2, 3): ["X"]}
    for given in (True, False):
        found = score([Example(doc_of(silent, candidates=candidates, given=given), doc_of(gold))])
        assert (found["links_p"], found["links_candidate_recall"]) == (0.5, 0.5)


def test_overlapping_gold_and_several_ids():
    gold = doc_of({(0, 3): "A", (0, 1): "B", (4, 5): "C"}, key="luke_links")
    gold.spans["luke_links"].append(Span(gold, 4, 5, label="E", kb_id="D"))
    gold.set_ents([Span(gold, 0, 3, label="E", kb_id="A")])
    nested = score_links([Example(doc_of({(0, 3): "A", (0, 1): "B", (4, 5): "D"}, key="mine"), gold)], spans_key="mine")
    assert nested["links_accuracy"] == nested["links_strict_f"] == nested["links_mentions_f"] == 1.0
    flat = score([Example(doc_of({(0, 3): "A", (4, 5): "X"}), gold)])
    assert flat["links_accuracy"] == pytest.approx(1 / 3)


def test_what_is_not_annotated():
    words_outside = doc_of({(0, 1): "A"}, missing=[4, 5, 6, 7])
    found = score([Example(doc_of({(0, 1): "A", (3, 5): "B", (6, 7): "C"}), words_outside)])
    assert found["links_strict_p"] == found["links_mentions_p"] == 1.0
    not_said = score([Example(doc_of({(0, 1): "A", (2, 3): "B"}), doc_of({(0, 1): "A", (2, 3): ""}))])
    assert not_said["links_strict_p"] == not_said["links_accuracy"] == not_said["links_mentions_f"] == 1.0
    nothing = [Example(doc_of({(0, 1): "A"}), doc_of({(0, 1): ""})), Example(doc_of({}), doc_of())]
    assert score(nothing) == dict.fromkeys(KEYS)
    assert score([]) == dict.fromkeys(KEYS)


def test_other_blanks_and_words():
    gold = doc_of({(0, 2): "A", (3, 4): "B"}, words=["New", "York", "and", "Rome"])
    predicted = doc_of({(0, 2): "A", (3, 4): "B"}, words=["New", "York", "and", "Ro", "me"], spaces=[1, 1, 1, 0, 0])
    found = score([Example(predicted, gold)])
    assert (found["links_accuracy"], found["links_mentions_f"]) == (0.5, 0.5)
    with pytest.raises(ValueError, match="same characters"):
        score([Example(doc_of({}, words=["Rom"]), gold)])


def test_link_by_prior():
    doc = doc_of({(0, 1): "", (2, 3): "", (4, 5): ""})
    doc.user_data["luke_candidates"] = [[0, 2, [["A", 0.3], ["B", 0.7]]], [6, 8, [["D", 0.5], ["C", 0.5]]]]
    load("baselines").link_by_prior(doc)
    assert [ent.kb_id_ for ent in doc.ents] == ["B", "C", "NIL"]
    assert get_rows(doc, "luke_linked")[0] == [0, 2, [["B", 0.7, 0.7], ["A", 0.3, 0.3]]]
    gold = doc_of({(0, 1): "B", (2, 3): "D", (4, 5): "E"})
    found = score([Example(doc, gold)])
    assert (found["links_accuracy"], found["links_p"]) == (pytest.approx(1 / 3), 0.5)
    assert link_rows(found)[0] == ("given mentions, micro", "50.00", "33.33", "40.00")
    assert link_rows(dict.fromkeys(KEYS)) == []


def test_registered():
    assert registry.scorers.get("spacy-luke.linking_scorer.v1") is make_linking_scorer
