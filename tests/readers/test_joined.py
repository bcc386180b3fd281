"""The corpus of several sources, and their maps of labels."""

from collections import Counter

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.util import registry

from spacy_luke.annotations import Scope, get_relation_rows, get_scope, register_extensions
from spacy_luke.readers.label_maps import map_doc, read_label_map

NLP = spacy.blank("en")
make = registry.readers.get("spacy-luke.JoinedCorpus.v1")


@pytest.fixture(autouse=True)
def extensions():
    register_extensions()


def news(i=0):
    """PER and ORG, with relations; a word without annotation."""
    doc = NLP.make_doc(f"Ada works for Shell since {i} .")
    person, firm = Span(doc, 0, 1, label="PER"), Span(doc, 3, 4, label="ORG", kb_id="Q1")
    doc.set_ents([person, firm], missing=[doc[6:7]], default="outside")
    doc._.luke_relations = [(person, firm, "job"), (firm, person, "old")]
    return doc


def places(i=0):
    """Nested places and types."""
    doc = NLP.make_doc(f"The Bank of Ghana in Accra {i} .")
    spans = [Span(doc, 1, 4, label="GROUP"), Span(doc, 3, 4, label="PLACE"), Span(doc, 5, 6, label="PLACE")]
    doc.spans["nested"] = spans
    doc.spans["luke_types"] = [
        Span(doc, 3, 4, label="spot"),
        Span(doc, 5, 6, label="city"),
        Span(doc, 5, 6, label="spot"),
    ]
    return doc


@pytest.fixture
def files(tmp_path):
    paths = {}
    for name, function, n in (("news", news, 12), ("places", places, 4)):
        paths[name] = tmp_path / f"{name}.spacy"
        DocBin(docs=[function(i) for i in range(n)], store_user_data=True).to_disk(paths[name])
    return paths


def of_label(doc, key=None):
    return [(x.text, x.label_) for x in (doc.ents if key is None else doc.spans[key])]


def read(files, **settings):
    sources = {name: {"path": str(files[name]), **settings.pop(name, {})} for name in ("news", "places")}
    return [example.reference for example in make(sources=sources, **settings)(NLP)]


def test_labels_become_ours_and_the_doc_says_what_is_open(files):
    docs = read(
        files,
        spans_key="nested",
        news={
            "entities": {"labels": {"PER": "PERSON", "ORG": ["ORG", "GPE"]}, "annotates": ["PERSON"], "nested": False},
            "relations": {"labels": {"job": ["P1", ""], "*": ""}, "annotates": []},
        },
        places={
            "entities": {"labels": {"GROUP": None, "PLACE": "GPE"}, "annotates": ["GPE"]},
            "types": {"labels": {"city": "place", "spot": ""}},
            "relations": False,
        },
    )
    first = next(doc for doc in docs if doc.text.startswith("Ada"))
    assert of_label(first) == of_label(first, "nested") == [("Ada", "PERSON"), ("Shell", "ORG")]
    assert first.ents[1].kb_id_ == "Q1"
    assert [word.ent_iob_ for word in first] == ["B", "O", "O", "B", "O", "O", ""]
    assert [row.label for row in get_relation_rows(first)] == ["job"]
    assert first._.luke_scope == {
        "entities": {"annotates": ["PERSON"], "labels": {"ORG": ["GPE", "ORG"]}, "nested": False},
        "relations": {"annotates": [], "labels": {"job": ["", "P1"]}, "nested": True},
    }
    second = next(doc for doc in docs if doc.text.startswith("The"))
    assert of_label(second, "nested") == [("Bank of Ghana", "GROUP"), ("Ghana", "GPE"), ("Accra", "GPE")]
    assert of_label(second, "luke_types") == [("Ghana", ""), ("Accra", "place")]
    assert get_scope(second, "entities") == Scope(frozenset({"GPE"}), {"GROUP": None})
    assert get_scope(second, "relations").is_empty


def test_without_maps_nothing_changes(files):
    docs = read(files)
    assert Counter(len(doc.ents) for doc in docs) == {2: 12, 0: 4}
    assert all(doc._.luke_scope is None for doc in docs)
    texts = [*(news(i).text for i in range(12)), *(places(i).text for i in range(4))]
    assert sorted(doc.text for doc in docs) == sorted(texts)


def test_shares_and_order(files):
    def texts(seed=0, passes=1, **news):
        sources = {"news": {"path": str(files["news"]), **news}, "places": {"path": str(files["places"])}}
        corpus = make(sources=sources, seed=seed)
        return [[example.reference.text for example in corpus(NLP)] for _ in range(passes)]

    (twice,) = texts(repeat=2.5)
    counts = Counter(twice)
    assert {counts[places(i).text] for i in range(4)} == {1}
    assert {counts[news(i).text] for i in range(12)} == {2, 3}
    (some,) = texts(repeat=0.5)
    assert 0 < sum(text.startswith("Ada") for text in some) < 12
    assert sum(text.startswith("Ada") for text in texts(limit=3)[0]) == 3
    # The sources are mixed; each pass draws anew, and the same seed gives the same.
    first = [text.startswith("The") for text in texts()[0]]
    assert first != sorted(first)
    assert first != sorted(first, reverse=True)
    assert texts(passes=3, repeat=0.5) == texts(passes=3, repeat=0.5)
    assert len({str(one) for one in texts(passes=3, repeat=0.5)}) == 3
    assert texts(seed=1) != texts(seed=0)


def test_a_limit_does_not_hide_labels(files):
    entities = {"labels": {"PER": "PERSON", "ORG": "ORG"}, "annotates": ["PERSON"]}
    rare = NLP.make_doc("Nobody came .")
    rare.set_ents([], default="outside")
    docs = [rare, *(news(i) for i in range(3))]
    DocBin(docs=docs, store_user_data=True).to_disk(files["news"])
    assert sum(doc.text.startswith("Nobody") for doc in read(files, news={"entities": entities, "limit": 1})) == 1


def test_only_docs_of_one_kind_are_joined(files):
    lengths = registry.misc.get("spacy-luke.mixed_lengths.v1")(sentences=0.0, joined=1.0, max_words=100)
    docs = read(
        files,
        lengths=lengths,
        news={"entities": {"annotates": ["PER", "ORG"]}, "repeat": 3},
        places={"types": {"annotates": ["city", "spot"]}, "repeat": 3},
    )
    assert max(len(doc) for doc in docs) > 20
    for doc in docs:
        assert ("Ada" in doc.text) != ("Accra" in doc.text)
        assert get_scope(doc, "entities" if "Ada" in doc.text else "types").annotates is not None


ENTITIES = {"labels": {"PER": "PER", "ORG": "ORG"}}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"entities": {"labels": {"PER": "PER", "ORG": "ORG", "GPE": "GPE"}}},
            r"names \['GPE'\], which the source",
        ),
        ({"entities": {"labels": {"PER": "PER"}}}, r"does not say what becomes of \['ORG'\]"),
        ({"entities": {**ENTITIES, "annotates": ["PER", "GPE"]}}, r"annotates has \['GPE'\], but no source has gold"),
        ({"relations": {"labels": {"job": 3, "*": ""}}}, "sources.news.relations.labels must say"),
        ({"relations": {"labels": {"job": [], "*": ""}}}, "sources.news.relations.labels must say"),
        ({"relations": {"nested": False}}, r"must be false, or have some of \['labels', 'annotates'\]"),
        ({"entities": True}, "must be false, or have some of"),
        ({"entities": {"annotates": "PER"}}, "sources.news.entities: Expected a list of labels"),
        ({"entitys": {}}, "The source 'news' of a joined corpus may have"),
        ({"repeat": 0}, "repeat must be a number above 0"),
        ({"repeat": "much"}, "repeat must be a number above 0"),
        ({"limit": 0}, "limit must be a number of documents"),
        ({"path": None}, "needs the path"),
        ({"path": ""}, "needs the path"),
        ({"path": "nix.spacy"}, r"sources\.news\.path is nix\.spacy, which does not exist\. Make it with"),
    ],
)
def test_wrong_settings(files, settings, message):
    with pytest.raises(ValueError, match=message):
        read(files, news=settings)


def test_no_sources_and_empty_ones(tmp_path):
    with pytest.raises(ValueError, match="needs sources"):
        make(sources={})
    DocBin().to_disk(tmp_path / "empty.spacy")
    with pytest.raises(ValueError, match="'none' of a joined corpus has no documents"):
        list(make(sources={"none": {"path": tmp_path / "empty.spacy"}})(NLP))


def test_a_name_that_stands_for_something_else():
    """Where LOC means GPE or LOC, a label that becomes LOC keeps its name, and means LOC."""
    label_map = read_label_map("entities", {"labels": {"LOC": ["GPE", "LOC"], "SEA": "LOC"}}, where="x")
    doc = Doc(NLP.vocab, words=["Accra", "Volta"])
    doc.set_ents([Span(doc, 0, 1, label="LOC"), Span(doc, 1, 2, label="SEA")])
    map_doc(doc, {"entities": label_map}, spans_key=None)
    scope = get_scope(doc, "entities")
    assert [sorted(scope.meaning(x.label_)) for x in doc.ents] == [["GPE", "LOC"], ["LOC"]]
    assert label_map.ours(["LOC", "SEA"]) == {"GPE", "LOC"}


def test_all_others_may_be_anything():
    label_map = read_label_map("entities", {"labels": {"PER": "PERSON", "*": None}}, where="x")
    doc = Doc(NLP.vocab, words=["Ada", "Volta"])
    doc.set_ents([Span(doc, 0, 1, label="PER"), Span(doc, 1, 2, label="SEA")])
    map_doc(doc, {"entities": label_map}, spans_key=None)
    scope = get_scope(doc, "entities")
    assert [scope.meaning(x.label_) for x in doc.ents] == [{"PERSON"}, None]


def test_from_a_config(files):
    """As a config file has it: nulls, lists and names in sections."""
    text = f"""
[corpus]
@readers = "spacy-luke.JoinedCorpus.v1"
seed = 1

[corpus.sources]

[corpus.sources.news]
path = "{files["news"]}"

[corpus.sources.news.entities]
labels = {{"PER": null, "ORG": ["GPE", "ORG"]}}
annotates = []

[corpus.sources.places]
path = "{files["places"]}"
relations = false
"""
    corpus = registry.resolve(spacy.util.Config().from_str(text))["corpus"]
    docs = [example.reference for example in corpus(NLP)]
    assert len(docs) == 16
    scopes = [get_scope(doc, "entities") for doc in docs if doc.text.startswith("Ada")]
    assert {scope.meaning("PER") for scope in scopes} == {None}
    assert {scope.annotates for scope in scopes} == {frozenset()}
