"""How candidates agree with mentions without the encoder: names, descriptions, types; linkers of these alone."""

import json
import math
import unicodedata

import numpy as np
import pytest
import spacy
import torch
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.annotations import get_rows
from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.components.linker import matching
from spacy_luke.components.linker.matching import Labelled, Matcher, learn_types, split_title, type_score
from spacy_luke.kb.build import build_kb
from spacy_luke.model.linking import MATCH, PRIOR, FeatureHead
from spacy_luke.vectors.build import build_vectors
from tests.tiny import make_checkpoint

ROWS = [
    {"id": "Q84", "names": ["London"], "title": "London", "description": "city in England", "types": ["place"]},
    {"id": "Q1", "names": ["London"], "title": "London (band)", "description": "rock band", "types": ["organization"]},
    {"id": "Q2", "names": ["Paris"], "title": "Paris, Texas", "description": "city of the United States", "types": []},
    {"id": "Q3", "names": ["Lovelace"], "title": "Ada Lovelace", "description": "mathematician", "types": ["person"]},
    {"id": "Q4", "names": ["UN"], "title": "United Nations", "description": "", "types": ["organization"]},
    {"id": "Q5", "names": ["Iraqi"], "title": "Iraq", "description": "country", "types": ["place"]},
]
TEXT = (
    "Lovelace met the Iraqi envoy of the UN in Paris. Texas is not where London Bridge is. Ada Lovelace was in London."
)


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kb")
    (folder / "entities.jsonl").write_text("\n".join(map(json.dumps, ROWS)) + "\n", encoding="utf8")
    return build_kb([folder / "entities.jsonl"], folder / "kb").kb


def make_doc(nlp, *, ids=None):
    """ids: of mentions by their text, the first of several."""
    doc = nlp.make_doc(TEXT)
    spans = []
    for name, label in (("Lovelace", "PER"), ("Iraqi", "LOC"), ("UN", "ORG"), ("Paris", "LOC"), ("Texas", "LOC")):
        start = TEXT.index(name)
        span = doc.char_span(start, start + len(name), label=label, kb_id=(ids or {}).get(name, ""))
        spans.append(span)
    start = TEXT.rindex("London")
    spans.append(doc.char_span(start, start + 6, label="LOC", kb_id=(ids or {}).get("London", "")))
    doc.set_ents(spans)
    return doc


def test_numbers(kb):
    doc = make_doc(spacy.blank("en"))
    first, iraqi, un, paris, state, london = (Labelled(x.start, x.end, x.label_) for x in doc.ents)
    place = next(word.i for word in doc if word.text == "Bridge") - 1
    bridge = Labelled(place, place + 1, "LOC")
    assert doc[place].text == "London"
    asked = [first, iraqi, un, paris, london, bridge, first._replace(score=0.5), state]
    named = [
        [("Q3", 1.0)],
        [("Q5", 1.0)],
        [("Q4", 1.0)],
        [("Q2", 1.0)],
        [("Q84", 0.9), ("Q1", 0.1)],
        [("Q84", 1.0)],
        [("Q3", 1.0)],
        [],
    ]
    found = Matcher(kb, {"LOC": {"place": 1.5, "organization": -2.0}})(doc, asked, named)
    assert [x.shape for x in found] == [(len(x), len(MATCH)) for x in named]
    rows = [dict(zip(MATCH, map(float, row), strict=True)) for rows in found for row in rows]
    lovelace, iraq, nations, texas, city, band, part, scored = rows
    assert lovelace == {
        **dict.fromkeys(MATCH, 0.0),
        "part": 0.5,
        "surname": 1.0,
        "told": 1.0,
        "only": 1.0,
        "titled": 1.0,
    }
    assert (iraq["derived"], iraq["name"], iraq["type"]) == (1.0, 0.0, 1.5)
    assert (nations["short"], nations["derived"]) == (1.0, 0.0)
    assert (texas["name"], texas["long_name"], texas["related"]) == (1.0, 0.0, 1.0)
    assert (city["name"], city["only"], city["type"]) == (1.0, 0.0, 1.5)
    assert (band["name"], band["type"]) == (1.0, -2.0)
    assert (part["beside"], city["beside"]) == (1.0, 0.0)
    assert scored["sure"] == pytest.approx(math.log(0.5))


@pytest.mark.parametrize(("label", "short"), [("ORG", 1.0), ("", 1.0), ("LOC", 0.0), ("GPE", 0.0)])
def test_initials_of_a_place_are_seldom_anothers(kb, label, short):
    doc = spacy.blank("en").make_doc("He left the UN today.")
    (row,) = Matcher(kb, {})(doc, [Labelled(3, 4, label)], [[("Q4", 1.0)]])
    assert row[0, MATCH.index("short")] == short


def test_unicode_forms_make_no_difference(tmp_path):
    row = {"id": "Q1", "names": ["Łódź"], "title": "Łódź (city)", "description": "in Województwo łódzkie"}
    (tmp_path / "entities.jsonl").write_text(json.dumps(row) + "\n")
    matcher = Matcher(build_kb([tmp_path / "entities.jsonl"], tmp_path / "kb").kb, {})
    text = "Łódź is in województwo łódzkie"
    composed, decomposed = (
        matcher(spacy.blank("en").make_doc(one), [Labelled(0, 1, "LOC")], [[("Q1", 1.0)]])[0]
        for one in (text, unicodedata.normalize("NFD", text))
    )
    assert composed[0, MATCH.index("name")] == 1
    assert composed[0, MATCH.index("described")] > 0
    assert composed.tolist() == decomposed.tolist()


@pytest.mark.parametrize(
    ("text", "title", "found"),
    [
        ("FBI", "Federal Bureau of Investigation", (0, 1)),
        ("U.S.", "United States", (0, 1)),
        ("UCLA", "University of California, Los Angeles", (0, 1)),
        ("BEG", "Belgrade Airport", (0, 0)),
        ("Fbi", "Federal Bureau of Investigation", (0, 0)),  # no capitals
        ("UN", "UN", (1, 0)),
        ("Beatles", "The Beatles", (1, 0)),
        ("The Beatles", "The Beatles", (1, 0)),
        ("The Hague", "Hague", (1, 0)),
        ("The", "The", (1, 0)),
    ],
)
def test_initials_and_articles(tmp_path, text, title, found):
    """found: whether the mention is the name, and whether it is the initials of the title."""
    (tmp_path / "entities.jsonl").write_text(json.dumps({"id": "Q1", "names": [text], "title": title}) + "\n")
    matcher = Matcher(build_kb([tmp_path / "entities.jsonl"], tmp_path / "kb").kb, {})
    doc = spacy.blank("en").make_doc(text)
    (row,) = matcher(doc, [Labelled(0, len(doc), "ORG")], [[("Q1", 1.0)]])
    assert (row[0, MATCH.index("name")], row[0, MATCH.index("initials")]) == found


def test_what_the_text_says_of_places_and_persons(kb):
    """A text of sports, a name that is an organization elsewhere, a first name that another person has."""
    nlp = spacy.blank("en")
    doc = nlp.make_doc("London beat Ada Hudson's team in the last match. London and Ada won.")
    matcher = Matcher(kb, {})

    def ask(text, label, *others):
        start = doc.text.rindex(text)
        span = doc.char_span(start, start + len(text))
        asked = [Labelled(span.start, span.end, label), *others]
        named = [[("Q84", 0.6), ("Q1", 0.2), ("Q3", 0.2)], *([] for _ in others)]
        return [dict(zip(MATCH, map(float, row), strict=True)) for row in matcher(doc, asked, named)[0]]

    place, band, person = ask("London", "LOC")
    assert place["sports"] == pytest.approx(math.log1p(100 * 2 / len(doc)))
    assert (band["sports"], person["sports"], place["group"]) == (0, 0, 0)
    place, band, _ = ask("London", "LOC", Labelled(0, 1, "ORG"))
    assert (place["group"], band["group"]) == (1, 0)
    assert [x["shared"] for x in ask("Ada", "PER")] == [0, 0, 0]
    hudson, lovelace = Labelled(2, 4, "PER"), Labelled(2, 4, "LOC")
    assert [x["shared"] for x in ask("Ada", "PER", hudson)] == [1, 1, 1]
    assert [x["shared"] for x in ask("Ada", "LOC", hudson)] == [0, 0, 0]
    assert [x["shared"] for x in ask("Ada", "PER", lovelace)] == [0, 0, 0]
    whole = nlp.make_doc("Ada Lovelace came. Lovelace spoke.")
    asked = [Labelled(4, 5, "PER"), Labelled(0, 2, "PER")]
    rows = matcher(whole, asked, [[("Q3", 1.0)], []])[0]
    assert rows[0][MATCH.index("shared")] == 0  # the other person is the candidate


def test_titles_of_a_text_agree(tmp_path):
    """Words of a title that the text has, and that titles of candidates of other names have."""
    rows = [
        {"id": title, "names": [name], "count": count}
        for name, title, count in (
            ("Kent", "Kent", 2),
            ("Kent", "Kent County Cricket Club", 2),
            ("Essex", "Essex County Cricket Club", 1),
            ("Essex", "Essex", 3),
        )
    ]
    (tmp_path / "entities.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf8")
    matcher = Matcher(build_kb([tmp_path / "entities.jsonl"], tmp_path / "kb").kb, {})
    doc = spacy.blank("en").make_doc("Kent won the club cup. Kent beat Essex.")
    kent, again, essex = (Labelled(i, i + 1, "LOC") for i, word in enumerate(doc) if word.text in ("Kent", "Essex"))
    clubs = [("Kent", 0.5), ("Kent County Cricket Club", 0.5)]
    first, _, last = matcher(doc, [kent, again, essex], [clubs, clubs, [("Essex County Cricket Club", 0.25)]])
    found = [dict(zip(MATCH, map(float, row), strict=True)) for row in (*first, *last)]
    assert [x["titled"] for x in found] == pytest.approx([0, 1 / 3, 1 / 3])  # "club" of county, cricket, club
    assert [x["coherent"] for x in found] == pytest.approx([0, math.log1p(0.25), math.log1p(0.5)])


def test_heads_of_before():
    """A head that was saved when MATCH was shorter reads the numbers that it learned."""
    head = FeatureHead(features=len(PRIOR), match=2)
    torch.nn.init.constant_(head.prior.weight, 0.0)
    torch.nn.init.constant_(head.match.weight, 1.0)
    features_CF = torch.arange(float(len(PRIOR) + len(MATCH)))[None]
    assert head(features_CF).tolist() == [2 + 3]


def test_titles():
    assert split_title("Apple (company)") == ("Apple", "company")
    assert split_title("Paris, Texas") == ("Paris", "Texas")
    assert split_title("(What's the Story)") == ("(What's the Story)", "")


def test_types_are_learned():
    """A type that right candidates have beside a label counts for it, one that wrong ones have against it."""
    seen = [("LOC", ("place",), True)] * 20 + [("LOC", ("person",), False)] * 20 + [("", ("place",), True)]
    found = learn_types(seen)
    assert list(found) == ["LOC"]
    assert found["LOC"]["place"] > 1
    assert found["LOC"]["person"] < -1
    assert type_score(found["LOC"], ("place", "person", "unknown")) == pytest.approx(
        (found["LOC"]["place"] + found["LOC"]["person"]) / 2
    )
    assert type_score({}, ("place",)) == 0


def make_linker(kb, weights=make_checkpoint):
    nlp = spacy.blank("en")
    model = {"context": False, "match": True, "encoder": {"train_precision": "float32"}}
    linker = nlp.add_pipe("luke_linker", config={"model": model, "drop_gold": 0.0})
    gold = {"Lovelace": "Q3", "Iraqi": "NIL", "UN": "NIL", "Paris": "Q2", "London": "Q84"}
    example = Example(make_doc(nlp), make_doc(nlp, ids=gold))
    linker.initialize(lambda: [example], nlp=nlp, kb=lambda: kb, weights=weights)
    return nlp, linker, example, gold


@pytest.mark.parametrize("weights", [make_checkpoint, None])
def test_names_and_types_alone(kb, tmp_path, weights):
    """No vectors are needed and the encoder is not run, so that it needs no checkpoint; learned by heart, saved and
    loaded."""
    nlp, linker, example, gold = make_linker(kb, weights)
    assert kb.vectors is None
    encoder = linker.encoder.module
    encoder.forward = encoder.encode_words = encoder.encode_entities = None  # nothing calls them
    optimizer = make_adamw(learn_rate=0.1)
    for _ in range(60):
        linker.update([example], sgd=optimizer)
    doc = nlp(make_doc(nlp))
    assert {x.text: x.kb_id_ for x in doc.ents} == {**gold, "Texas": "NIL"}
    assert linker.type_agreement["PER"] == {"person": pytest.approx(linker.type_agreement["PER"]["person"])}
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert get_rows(again(make_doc(again)), "luke_linked") == get_rows(doc, "luke_linked")
    third = spacy.util.load_model_from_config(nlp.config, auto_fill=False, validate=True).from_bytes(nlp.to_bytes())
    assert get_rows(third(make_doc(third)), "luke_linked") == get_rows(doc, "luke_linked")
    docs = list(again.pipe([make_doc(again), again.make_doc("Nothing."), make_doc(again)], batch_size=2))
    assert [get_rows(x, "luke_linked") for x in (docs[0], docs[2])] == [get_rows(doc, "luke_linked")] * 2


def test_vectors_of_a_knowledge_base_are_not_needed(kb, tmp_path):
    """Of whatever width they are, and they are not saved; nor are those of a checkpoint's entity table."""
    nlp, linker, *_ = make_linker(kb)
    expected = get_rows(nlp(make_doc(nlp)), "luke_linked")
    kb.save(tmp_path / "kb")
    rows = np.ones((len(kb), 7), dtype="float32")
    build_vectors(rows, tmp_path / "kb" / "vectors", names=list(kb.entities()))
    other = type(kb).open(tmp_path / "kb")
    assert other.vectors is not None
    linker.set_kb(other)
    assert get_rows(nlp(make_doc(nlp)), "luke_linked") == expected
    nlp.to_disk(tmp_path / "pipeline")
    assert [path.name for path in (tmp_path / "pipeline").rglob("*vectors*") if "vocab" not in path.parts] == []
    for again in (
        spacy.load(tmp_path / "pipeline"),
        spacy.util.load_model_from_config(nlp.config, auto_fill=False, validate=True).from_bytes(nlp.to_bytes()),
    ):
        assert again.get_pipe("luke_linker").kb.vectors is None
        assert get_rows(again(make_doc(again)), "luke_linked") == expected


def test_all_shares_are_shown(kb):
    nlp, linker, *_ = make_linker(kb)
    for p in linker.head.module.parameters():
        p.data = torch_noise(p)
    linker.explain = True
    (ent, *_) = nlp(make_doc(nlp)).ents
    (shares,) = ent._.luke_evidence.values()
    assert list(shares) == ["context", "prior", "in_links", *MATCH]
    score_of = {x.id: x.score for x in ent._.luke_candidates}
    assert sum(shares.values()) == pytest.approx(math.log(score_of["Q3"] / score_of["NIL"]), abs=1e-4)
    assert shares["context"] == pytest.approx(-linker.head.module.nil.item(), abs=1e-4)


def torch_noise(p):
    return p.new_tensor(np.random.default_rng(p.numel()).normal(size=p.shape))


def test_nothing_that_could_decide(kb):
    with pytest.raises(ValueError, match="without context needs prior or match"):
        spacy.blank("en").add_pipe("luke_linker", config={"model": {"context": False, "prior": False}})


def test_given_candidates_that_no_knowledge_base_has():
    nlp = spacy.blank("en")
    doc = nlp.make_doc("London")
    found = Matcher(None, {})(doc, [Labelled(0, 1, "")], [[("London", 0.5), ("London, Ontario", 0.5)]])
    assert found[0][:, MATCH.index("name")].tolist() == [1, 1]
    assert Span(doc, 0, 1).text == "London"


def test_descriptions_that_are_kept_are_few_and_may_go_at_any_time(kb, monkeypatch):
    class Clearing(dict):
        """As if another thread cleared it at once."""

        def __setitem__(self, key, value):
            self.clear()

    monkeypatch.setattr(matching, "_CACHE", 4)
    ids = [row["id"] for row in ROWS]
    matcher, other = Matcher(kb, {}), Matcher(kb, {})
    other._known = Clearing()
    assert [matcher.describe(x) for x in ids] == [other.describe(x) for x in ids]
    assert 0 < len(matcher._known) <= 4
