"""NIL as a candidate: mentions with one candidate too, one scale of scores, what is learned, settings about ids."""

import math

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Span
from spacy.training import Example
from thinc.api import Adam

from spacy_luke.annotations import set_candidates_given
from spacy_luke.batch.linking import MASKED
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.components.linker.decisions import decide
from spacy_luke.components.thresholds import best_nil_bias
from spacy_luke.model.linking import NIL_START, CandidateHead, segment_softmax
from spacy_luke.model.losses import candidate_cross_entropy
from tests.components.linker.linked import ENTITIES, candidates_of, make_doc, make_example, make_linker, make_tasks
from tests.tiny import SENTENCES

TEXTS = ["She ate an Apple and threw the core away.", "The phone that Apple sold was expensive."]


def apple(nlp, text, kb_id=""):
    """A Doc whose mention "Apple" has one candidate."""
    doc = nlp.make_doc(text)
    (start,) = (word.i for word in doc if word.text == "Apple")
    span = Span(doc, start, start + 1, "ORG", kb_id=kb_id)
    doc.set_ents([span])
    set_candidates_given(doc, [(span.start_char, span.end_char, [("Entity 3", 1.0)])])
    return doc


def with_nil_score(linker, score):
    """NIL's score is this number, whatever the context."""
    nil = linker.head.module.nil
    nil.weight.data.zero_()
    nil.bias.data.fill_(score)


@pytest.mark.slow
def test_one_candidate_can_be_nil(store):
    """Learned by heart: the same name with its only candidate is the entity in one text and NIL in the other."""
    nlp, linker = make_linker(store, nil=True, inference="local")
    ids = dict(zip(TEXTS, ("NIL", "Entity 3"), strict=True))
    examples = [Example(apple(nlp, text), apple(nlp, text, kb_id)) for text, kb_id in ids.items()]
    optimizer = make_adamw(learn_rate=4e-3)
    for _ in range(100):
        linker.update(examples, sgd=optimizer)
        found = [nlp(apple(nlp, text)).ents[0] for text in TEXTS]
        if [x.kb_id_ for x in found] == ["NIL", "Entity 3"]:
            break
    assert [x.kb_id_ for x in found] == ["NIL", "Entity 3"]
    for ent in found:
        assert sorted(x.id for x in ent._.luke_candidates) == ["Entity 3", "NIL"]
        assert 0 < ent._.luke_candidates[0].score < 1
        assert ent._.luke_candidates[0].id == ent.kb_id_
        assert sum(x.score for x in ent._.luke_candidates) == pytest.approx(1, abs=1e-5)
    linker.threshold = 0.9999
    assert [nlp(apple(nlp, text)).ents[0].kb_id_ for text in TEXTS] == ["NIL", "NIL"]
    linker.threshold = 0.0
    again = spacy.util.load_model_from_config(nlp.config, auto_fill=False, validate=True).from_bytes(nlp.to_bytes())
    assert [again(apple(again, text)).ents[0].kb_id_ for text in TEXTS] == ["NIL", "Entity 3"]


def test_without_nil_one_candidate_is_certain(store):
    """As pipelines of earlier versions have it, whose configs and weights do not know NIL."""
    nlp, linker = make_linker(store, nil=False)
    model = nlp.config["components"]["luke_linker"]["model"]
    assert model.pop("@architectures") == "spacy-luke.EntityLinker.v2"
    assert [model.pop(name) for name in ("nil", "match", "context")] == [False, False, True]
    model["@architectures"] = "spacy-luke.EntityLinker.v1"
    for name in ("drop_gold", "overwrite", "labels_ignore", "explain"):
        del nlp.config["components"]["luke_linker"][name]
    old = spacy.util.load_model_from_config(nlp.config, auto_fill=True, validate=True).from_bytes(nlp.to_bytes())
    assert not old.get_pipe("luke_linker").nil
    for pipeline in (nlp, old):
        ent = pipeline(apple(pipeline, TEXTS[0])).ents[0]
        assert [tuple(x) for x in ent._.luke_candidates] == [("Entity 3", 1.0, 1.0)]


def test_newly_made_linkers_know_nil():
    assert spacy.blank("en").add_pipe("luke_linker").nil


def test_thincs_adam_moves_nil_of_a_head_without_context(store):
    """spaCy's default optimizer teaches all numbers of the head, also NIL's, which stands alone."""
    nlp, linker = make_linker(store, prior=True, nil=True, model={"context": False})
    before = {name: p.detach().clone() for name, p in linker.head.named_parameters()}
    assert {name: x.shape for name, x in before.items()} == {"prior.weight": (1, 2), "nil": ()}
    optimizer = Adam(0.05, use_averages=True)
    losses = [nlp.update([make_example(nlp, x) for x in SENTENCES], sgd=optimizer)["luke_linker"] for _ in range(20)]
    assert losses[-1] < 0.8 * losses[0]
    assert not any(torch.equal(p, before[name]) for name, p in linker.head.named_parameters())
    with nlp.use_params(optimizer.averages):
        assert linker.head.module.nil.shape == ()
    again = spacy.util.load_model_from_config(nlp.config).from_bytes(nlp.to_bytes()).get_pipe("luke_linker")
    assert torch.equal(again.head.module.nil, linker.head.module.nil)


def test_one_scale_for_one_and_thirty_candidates():
    """A candidate's probability against NIL does not depend on candidates that are out of the question."""
    alone = segment_softmax(torch.tensor([1.5]), torch.zeros(1, dtype=torch.long), 1, nil=True).exp()
    assert float(alone[0]) == pytest.approx(1 / (1 + math.exp(-1.5)))
    many = segment_softmax(torch.tensor([1.5] + [-20.0] * 29), torch.zeros(30, dtype=torch.long), 1, nil=True).exp()
    assert float(many[0]) == pytest.approx(float(alone[0]), abs=1e-6)
    assert float(many[-1]) == pytest.approx(float(alone[-1]), abs=1e-6)


def test_the_head_scores_against_nil():
    head, plain = CandidateHead(6, 4, nil=True), CandidateHead(6, 4)
    head.reset_prior()
    plain.load_state_dict({key: x for key, x in head.state_dict().items() if not key.startswith("nil")})
    states, owner = torch.randn(2, 6), torch.tensor([0, 0, 1])
    given = states, owner, torch.randn(3, 4), torch.zeros(3), torch.zeros(3, 2)
    assert torch.allclose(head(*given), plain(*given) - NIL_START)
    head.nil.weight.data.normal_()
    nil = head.nil(head.transform(states)).squeeze(-1)
    assert torch.allclose(head(*given), plain(*given) - nil[owner], atol=1e-6)


def test_the_order_of_candidates_is_learned_as_without_nil():
    """Gradients of all but NIL's own parameters are those of the cross-entropy among candidates; of a mention that is
    NIL there are none. NIL's own are those of the cross-entropy with NIL."""
    torch.manual_seed(0)
    head, plain = CandidateHead(6, 4, features=2, nil=True), CandidateHead(6, 4, features=2)
    head.reset_prior()
    plain.load_state_dict({key: x for key, x in head.state_dict().items() if not key.startswith("nil")})
    owner, gold = torch.tensor([0, 0, 1, 1, 1, 2]), torch.tensor([1, -1, 5])
    given = torch.randn(3, 6), owner, torch.randn(6, 4), torch.zeros(6), torch.randn(6, 2)

    def learn(module, nil):
        scores = module(*given)
        loss, gradient = candidate_cross_entropy(scores, owner, gold, nil=nil)
        scores.backward(gradient)
        return scores.detach(), loss

    scores, loss = learn(head, True)
    learn(plain, False)
    for name, parameter in plain.named_parameters():
        assert parameter.grad.abs().max() > 0
        assert torch.allclose(head.get_parameter(name).grad, parameter.grad, atol=1e-6), name
    bias = torch.zeros(3, requires_grad=True)
    log = segment_softmax(scores - bias[owner], owner, 3, nil=True)
    joint = -(log[1] + log[6 + 1] + log[5])
    assert float(joint.detach()) == pytest.approx(float(loss), abs=1e-5)
    joint.backward()
    assert torch.allclose(head.nil.bias.grad, bias.grad.sum(), atol=1e-6)


@pytest.mark.parametrize("inference", ["local", "global"])
def test_what_is_nil_stays_masked(store, inference):
    nlp, linker = make_linker(store, nil=True)
    table = linker.table()
    for score, known in ((50.0, False), (-50.0, inference == "global")):
        tasks = make_tasks(linker, [make_doc(nlp, text) for text in SENTENCES[:3]], table)
        with_nil_score(linker, score)
        decide(linker.model, tasks, table.vectors(), inference=inference, size=500)
        for task in tasks:
            for e, rows in enumerate(task.rows):
                assert len(task.probabilities[e]) == len(rows) + 1
                assert (task.probabilities[e].argmax() == len(rows)) == (score > 0)
                assert (task.entities_E[e] != MASKED) == known


def test_what_is_learned_as_nil(store):
    """Gold NIL, and gold that is no candidate; others keep their place."""
    nlp, linker = make_linker(store, nil=True, masked_share=1.0, drop_gold=0.0)
    example = make_example(nlp, SENTENCES[0])
    first, second, *rest = example.reference.ents
    ids = ["NIL", "Nowhere", *(x.kb_id_ for x in rest)]
    gold = example.reference
    gold.set_ents([Span(gold, x.start, x.end, "X", kb_id=id) for x, id in zip(gold.ents, ids, strict=True)])
    (batch,) = linker.batches([example])
    assert batch.gold_S.tolist()[:2] == [-1, -1]
    assert (batch.gold_S[2:] >= 0).all()
    linker.labels_ignore = ["X"]
    assert list(linker.batches([example])) == []


def test_gold_candidates_are_dropped(store):
    """All of a mention with several; the only one of a mention is never taken away."""
    nlp, linker = make_linker(store, nil=True, masked_share=1.0, drop_gold=1.0)
    for text in SENTENCES[:3]:
        example = make_example(nlp, text)
        (batch,) = linker.batches([example])
        sizes = [len(candidates_of(x.text)) for x in example.reference.ents]
        assert np.bincount(batch.owner_C).tolist() == [size - (size > 1) for size in sizes]
        assert (batch.gold_S == -1).tolist() == [size > 1 for size in sizes]
    linker.drop_gold = 0.0
    (batch,) = linker.batches([example])
    assert (batch.gold_S >= 0).all()


def test_ids_that_others_have_set(store):
    nlp, linker = make_linker(store, nil=True)
    doc = make_doc(nlp, SENTENCES[0])
    first, *rest = doc.ents
    doc.set_ents([Span(doc, first.start, first.end, "X", kb_id="Q_rule"), *rest])
    given = doc.copy()
    assert nlp(doc).ents[0].kb_id_ != "Q_rule"
    linker.overwrite = False
    found = nlp(given)
    assert found.ents[0].kb_id_ == "Q_rule"
    assert not found.ents[0]._.luke_candidates
    assert all(x.kb_id_ in {"NIL", *ENTITIES} and x._.luke_candidates for x in found.ents[1:])


def test_labels_that_are_not_linked(store):
    nlp, linker = make_linker(store, nil=True, labels_ignore=["DATE"])
    doc = make_doc(nlp, SENTENCES[0])
    doc.set_ents([Span(doc, x.start, x.end, "DATE" if i == 0 else "X") for i, x in enumerate(doc.ents)])
    found = nlp(doc)
    assert found.ents[0].kb_id_ == ""
    assert not found.ents[0]._.luke_candidates
    assert all(x.kb_id_ for x in found.ents[1:])


@pytest.mark.parametrize("nil", [True, False])
def test_what_a_score_is_made_of(store, nil):
    """The shares add up to the logarithm of how much more likely than NIL, or than the best, a candidate is."""
    nlp, linker = make_linker(store, nil=nil, prior=True, explain=True, inference="local")
    doc = nlp(make_doc(nlp, SENTENCES[0]))
    weights = linker.head.module.prior.weight[0].tolist()
    for ent in doc.ents:
        found = {x.id: x for x in ent._.luke_candidates}
        evidence = ent._.luke_evidence
        assert list(evidence) == [x for x in found if x != "NIL"]
        base = found["NIL"].score if nil else max(x.score for x in found.values())
        for name, shares in evidence.items():
            assert list(shares) == ["context", "prior", "in_links"]
            assert sum(shares.values()) == pytest.approx(math.log(found[name].score / base), abs=1e-3)
            assert shares["prior"] == pytest.approx(weights[0] * math.log(found[name].prior), abs=1e-4)
            assert shares["in_links"] == 0
    linker.explain = False
    assert nlp(make_doc(nlp, SENTENCES[0])).ents[0]._.luke_evidence == {}


def test_tuning_knows_nil(store):
    """A mention that is NIL at any bias, and is to be, is right at any bias."""
    nlp, linker = make_linker(store, nil=True)
    with_nil_score(linker, 50.0)
    examples = [Example(apple(nlp, text), apple(nlp, text, "NIL")) for text in TEXTS]
    assert linker.tune(examples, gold_mentions=True) == {"nil_bias": 0.0, "links_accuracy": 1.0}


@pytest.mark.parametrize("inference", ["local", "global"])
def test_bias_of_nil_is_added_to_its_score(store, inference):
    nlp, linker = make_linker(store, nil=True, inference=inference)
    given = [make_doc(nlp, text) for text in SENTENCES[:3]]

    def scores():
        return [
            [(x.id, x.score) for x in ent._.luke_candidates]
            for doc in nlp.pipe(doc.copy() for doc in given)
            for ent in doc.ents
        ]

    with_nil_score(linker, 1.5)
    wanted = scores()
    with_nil_score(linker, 0.0)
    assert scores() != wanted
    linker.nil_bias = 1.5
    for found, expected in zip(scores(), wanted, strict=True):
        assert [x for x, _ in found] == [x for x, _ in expected]
        assert [x for _, x in found] == pytest.approx([x for _, x in expected], abs=1e-6)


def test_bias_of_nil_is_tuned(store):
    """Tuning again finds what is left to add: nothing."""
    nlp, linker = make_linker(store, nil=True)
    with_nil_score(linker, 50.0)
    golds = [make_doc(nlp, text) for text in SENTENCES[:3]]
    for gold in golds:  # the best candidate is right, but all are NIL for the time being
        linker.nil_bias = -50.0
        gold.set_ents([Span(gold, x.start, x.end, "X", kb_id=x.kb_id_) for x in nlp(gold.copy()).ents])
    linker.nil_bias = -42.0
    before = [ent.kb_id_ for gold in golds for ent in nlp(make_doc(nlp, gold.text)).ents]
    assert set(before) == {"NIL"}
    examples = [Example(make_doc(nlp, gold.text), gold) for gold in golds]
    found = linker.tune(examples, gold_mentions=True)
    assert found["links_accuracy"] == 1.0
    assert found["nil_bias"] < -42.0
    assert [x.kb_id_ for gold in golds for x in nlp(make_doc(nlp, gold.text)).ents] == [
        x.kb_id_ for gold in golds for x in gold.ents
    ]
    assert linker.tune(examples, gold_mentions=True) == found


def test_bias_of_nil_costs_few_links():
    """What NIL gains is not paid with links: of 1,000 mentions with an entity one may be lost."""
    linked = [(3.0, True, False)] * 998 + [(-5.0, True, False), (-1.0, True, False)]
    nil = [(-2.0, False, True)] * 50 + [(0.5, False, True)] * 50
    assert best_nil_bias([*linked, *nil]) == (-1.0, pytest.approx((999 + 50) / 1100))
    assert best_nil_bias([(5.0, True, False), (-1.0, False, True)])[0] == 0.0, "the nearest to 0"
    with pytest.raises(ValueError, match="Expected examples with linked mentions"):
        best_nil_bias([])
