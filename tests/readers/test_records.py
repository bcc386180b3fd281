from collections import Counter

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin

from spacy_luke.annotations import get_rows
from spacy_luke.readers.records import Mention, Record, blanks_between, make_doc
from tests.counting import count_calls

NLP = spacy.blank("en")
TEXT = "The co-founder's don't-care  attitude."


def record(*mentions, text=TEXT, **fields):
    return Record("file, line 3", text=text, mentions=[Mention(*mention) for mention in mentions], **fields)


@given(st.text(alphabet="ab-'. \n1", max_size=25), st.data())
def test_split_words_begin_and_end_where_mentions_do(text, data):
    """No character is lost, every mention is found at its characters, and other words are as they were."""
    solid = [i for i, character in enumerate(text) if not character.isspace()]
    places = st.tuples(st.sampled_from(solid), st.sampled_from(solid)) if solid else st.nothing()
    chosen = data.draw(st.lists(places, max_size=3)) if solid else []
    mentions = [(min(a, b), max(a, b) + 1, f"X{i}") for i, (a, b) in enumerate(chosen)]
    doc = make_doc(NLP, record(*mentions, text=text), spans_key="sc")
    assert doc.text == text
    assert sorted((s.start_char, s.end_char, s.label_) for s in doc.spans["sc"]) == sorted(mentions)
    edges = {edge for start, end, _ in mentions for edge in (start, end)}
    plain = {word.idx for word in NLP.make_doc(text)}
    assert plain <= {word.idx for word in doc} <= plain | edges


@given(st.text(alphabet="ab ", min_size=1, max_size=60), st.lists(st.tuples(st.integers(0, 59), st.integers(1, 9))))
def test_words_are_split_at_the_edges_inside_them(text, chosen):
    mentions = [(a, a + n, "X") for a, n in chosen if a + n <= len(text) and text[a : a + n] == text[a : a + n].strip()]
    edges = {edge for start, end, _ in mentions for edge in (start, end)}
    expected = []
    for word in NLP.make_doc(text):
        cuts = [0, *sorted(edge - word.idx for edge in edges if word.idx < edge < word.idx + len(word)), len(word)]
        expected += [word.text[a:b] for a, b in zip(cuts, cuts[1:])]
    assert [word.text for word in make_doc(NLP, record(*mentions, text=text), spans_key="sc")] == expected


def test_splitting_is_linear_in_the_words():
    """Not words times mentions."""
    one, four = (
        count_calls(make_doc, NLP, record(*((5 * i, 5 * i + 4, "X") for i in range(size)), text="word " * size))
        for size in (200, 800)
    )
    assert four < 5 * one


def test_alignment_settings():
    inside = (7, 14, "X")  # "founder" of "co-founder's"
    doc = make_doc(NLP, record(inside, (4, 6, "Y"), (2, 5, "Z")), spans_key="sc")
    assert [word.text for word in doc][:6] == ["Th", "e", "c", "o", "-", "founder"]
    assert {span.text for span in doc.spans["sc"]} == {"founder", "co", "e c"}
    expanded = make_doc(NLP, record((5, 9, "X")), align="expand")
    assert [word.text for word in expanded] == [word.text for word in NLP.make_doc(TEXT)]
    assert expanded.ents[0].text == "co-founder"
    with pytest.raises(ValueError, match=r"line 3: mention \[5, 9, 'X'\] is 'o-fo'.*'expand' or 'split'"):
        make_doc(NLP, record((5, 9, "X")), align="strict")
    with pytest.raises(ValueError, match="align must be one of"):
        make_doc(NLP, record(), align="grow")


def test_blanks_at_the_edges_belong_to_no_mention():
    doc = make_doc(NLP, record((27, 38, "X"), text=TEXT))
    assert [entity.text for entity in doc.ents] == ["attitude."]
    with pytest.raises(ValueError, match="not blanks alone"):
        make_doc(NLP, record((27, 29, "X")))


def test_types_and_entities():
    doc = make_doc(NLP, record((0, 3, "A", ["b", "a", "b"]), (17, 22, "", []), (0, 3, "", ["c"])))
    assert [(s.text, s.label_) for s in doc.spans["luke_types"]] == [
        ("The", "a"), ("The", "b"), ("The", "c"), ("don't", ""),
    ]  # fmt: skip
    assert [(e.text, e.label_) for e in doc.ents] == [("The", "A")]
    assert "luke_types" not in make_doc(NLP, record((0, 3, "A"))).spans
    silent = make_doc(NLP, record((0, 3, "", ["a"]), has_entities=False))
    assert not silent.has_annotation("ENT_IOB")


def test_overlaps():
    nested = record((0, 14, "A"), (4, 14, "B"), relations=[(0, 1, "r"), (0, 1, "r")])
    with pytest.raises(ValueError, match=r"line 3: mentions \[0, 14, 'A'\].*set spans_key"):
        make_doc(NLP, nested)
    counts = Counter()
    doc = make_doc(NLP, nested, overlaps="outermost", counts=counts)
    assert [entity.label_ for entity in doc.ents] == ["A"]
    assert get_rows(doc, "luke_relations") == [[0, 14, 4, 14, "r", 1.0]]
    assert counts == {"left out": 1, "equal relations": 1}
    assert len(make_doc(NLP, nested, spans_key="sc").spans["sc"]) == 2


def test_words_and_their_blanks():
    words = ["Bonn", "is", "\xa0", "nice", "."]
    fields = {"words": words, "mentions": [Mention(0, 1, "LOC", kb_id="Q586")], "sentence_starts": [0, 3]}
    doc = make_doc(NLP, Record("x", **fields))
    assert doc.has_unknown_spaces
    assert [word.text for word in doc] == words
    assert [word.is_sent_start for word in doc] == [True, False, False, True, False]
    assert (doc.ents[0].text, doc.ents[0].kb_id_) == ("Bonn", "Q586")
    known = make_doc(NLP, Record("x", spaces=blanks_between(words, text="paper"), **fields))
    assert not known.has_unknown_spaces
    assert known.text == "Bonn is \xa0 nice ."
    with pytest.raises(ValueError, match="x: expected words, but word 1 of 2 is empty"):
        make_doc(NLP, Record("x", words=["a", ""]))


def test_words_of_scripts_without_blanks():
    words = [*"马云在", "Alibaba", *"和百度"]
    fields = {"mentions": [Mention(0, 2, "PER"), Mention(3, 4, "ORG")], "knowledge": [(5, 7, "Q14772", 1.0)]}
    doc = make_doc(NLP, Record("x", words=words, **fields))
    assert (doc.text, len(doc)) == ("马云在Alibaba和百度", 7)
    assert [entity.text for entity in doc.ents] == ["马云", "Alibaba"]
    ((start, end, *_),) = get_rows(doc, "luke_knowledge")
    assert doc.text[start:end] == "百度"
    assert make_doc(NLP, Record("x", words=words, spaces=[True] * 6 + [False])).text == " ".join(words)


def test_texts_above_the_limit_of_pipelines():
    nlp = spacy.blank("en")
    nlp.max_length = len(TEXT) - 1
    assert make_doc(nlp, record()).text == TEXT
    assert make_doc(nlp, record(second=TEXT)).text == f"{TEXT} {TEXT}"


def test_everything_survives_a_docbin():
    doc = make_doc(
        NLP,
        record(
            (0, 3, "A", ["t"]),
            (29, 37, "B"),
            relations=[(1, 0, "r")],
            pairs=[(1, 0), (0, 1)],
            questions=[{"question": "Why?", "answers": [[5, 9]]}, {"question": "How?", "answers": []}],
            queries=[{"query": "@placeholder?", "candidates": [[0, 3]]}],
        ),
    )
    (again,) = DocBin(store_user_data=True, docs=[doc]).get_docs(NLP.vocab)
    for name in ("luke_relations", "luke_pairs", "luke_questions", "luke_queries"):
        assert get_rows(again, name) == get_rows(doc, name)
    assert get_rows(doc, "luke_questions")[0]["answers"] == [[5, 9]]
    assert [word.text for word in again] == [word.text for word in NLP.make_doc(TEXT)]  # answers split no words
    assert [(s.text, s.label_) for s in again.spans["luke_types"]] == [("The", "t")]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"relations": [(0, 2, "r")]}, r"relation 0 \('r'\) must have numbers of the 2 mentions"),
        ({"relations": [(-1, 1, "r")]}, r"from 0, but it has -1 and 1"),
        ({"pairs": [(0, 1), (1, 1)]}, r"pair 1 has one mention as head and tail, \[29, 37, 'B'\] 'attitude'"),
        ({"questions": [{"question": " "}]}, "Item 0 must be a string"),
        ({"questions": [{"question": "Why?", "answers": [[30, 60]]}]}, "Item 0: answers must be characters"),
        ({"queries": [{"query": "no mark"}]}, "@placeholder exactly once"),
    ],
)
def test_errors_name_the_record(fields, message):
    with pytest.raises(ValueError, match=f"file, line 3: .*{message}"):
        make_doc(NLP, record((0, 3, "A"), (29, 37, "B"), **fields))
