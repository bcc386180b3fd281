"""Gold documents of mixed lengths: cut and joined with all that is annotated on them."""

from collections import Counter

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import registry

from spacy_luke.annotations import get_all_rows, register_extensions, set_queries, set_questions
from spacy_luke.readers.gold_corpus import make_gold_corpus
from spacy_luke.readers.lengths import MixedLengths
from spacy_luke.readers.parts import cut_doc, free_starts, join_docs
from tests.counting import count_calls

NLP = spacy.blank("en")
TEXTS = [
    "Ada Lovelace lived in London. She knew Charles Babbage of Cambridge. Nobody came.",
    "It rained in Accra. Kofi Mensah left Berlin for Lagos. Kofi wrote home.",
    "Nadia Haddad works in Accra. The Bank of Ghana pays her. She is well.",
]
NAMES = "Ada Lovelace|London|Charles Babbage|Cambridge|Accra|Kofi Mensah|Berlin|Lagos|Kofi|Nadia Haddad|Bank of Ghana".split(  # noqa: E501
    "|"
)


@pytest.fixture(autouse=True)
def extensions():
    register_extensions()


def place(doc, text):
    start = doc.text.index(text)
    return start, start + len(text)


def make(text, *, sentences=True, vocab=NLP.vocab, unknown=False):
    """A Doc with everything that can be annotated."""
    words = NLP.make_doc(text)
    doc = Doc(vocab, words=[x.text for x in words], spaces=None if unknown else [bool(x.whitespace_) for x in words])
    found = {}
    for name in NAMES:
        if name in doc.text and not any(name in other for other in found):
            found[name] = Span(doc, *words_of(doc, name), label="ENT", kb_id=f"Q{len(name)}")
    doc.set_ents(list(found.values()))
    doc.spans["luke_types"] = [Span(doc, x.start, x.end, label=label) for x in doc.ents for label in ("thing", x.text)]
    if sentences:
        for word in doc:
            word.is_sent_start = word.i == 0 or doc[word.i - 1].text == "."
    first, second = doc.ents[:2]
    doc._.luke_relations = [(first, second, f"{first.text}>{second.text}")]
    doc._.luke_knowledge = [(x.start_char, x.end_char, x.text) for x in doc.ents]
    return doc


def words_of(doc, text):
    span = doc.char_span(*place(doc, text))
    return span.start, span.end


def said(doc):
    """What is annotated, by the words that it is said of."""
    rows = get_all_rows(doc)
    text = doc.text
    return Counter([
        *(("ent", x.text, x.label_, x.kb_id_) for x in doc.ents),
        *(("type", x.text, x.label_) for x in doc.spans.get("luke_types", [])),
        *(("relation", text[a:b], text[c:d], label) for a, b, c, d, label, _ in rows.get("luke_relations", [])),
        *(("known", text[a:b], name) for a, b, name, _ in rows.get("luke_knowledge", [])),
        *(
            (x["question"], *(text[a:b] for a, b in x["answers"]))
            for x in rows.get("luke_questions", [])
        ),
        *(
            (x["query"], *(text[a:b] for a, b in x["answers"] + x["candidates"]))
            for x in rows.get("luke_queries", [])
        ),
    ])  # fmt: skip


def all_said(docs):
    return sum((said(doc) for doc in docs), Counter())


@pytest.mark.parametrize("unknown", [False, True])
def test_parts_and_wholes_say_the_same(unknown):
    docs = [make(text, unknown=unknown) for text in TEXTS]
    starts = [word.i for word in docs[0] if word.is_sent_start]
    parts = cut_doc(docs[0], starts)
    assert [part.text.strip() for part in parts] == [x.text for x in docs[0].sents]
    assert all_said(parts) == said(docs[0])
    assert all(part.has_unknown_spaces == unknown for part in parts)
    joined = join_docs([*parts, *docs[1:]])
    assert said(joined) == all_said(docs)
    assert len(list(joined.sents)) == sum(len(list(doc.sents)) for doc in docs)
    assert joined.has_unknown_spaces == unknown
    if not unknown:
        assert joined.text == "\n\n".join([*(part.text for part in parts), *TEXTS[1:]])


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6)), max_size=30),
    st.sets(st.integers(1, 19)),
    st.integers(0, 5),
)
def test_spans_of_parts_are_those_inside_in_their_order(places, starts, around):
    """Of every cut, also through spans, and of empty spans, which may be at the end of one part and begin the next."""
    doc = Doc(NLP.vocab, words=["a"] * 20)
    doc.spans["x"] = [Span(doc, a, min(a + n, 20), label=f"X{i}", kb_id="Q1") for i, (a, n) in enumerate(places)]
    starts = [0, *sorted(starts)]
    if len(starts) == 1:
        return
    for start, end, part in zip(starts, [*starts[1:], 20], cut_doc(doc, starts, around=around)):
        first = max(0, start - around)
        expected = [
            (x.start - first, x.end - first, x.label_) for x in doc.spans["x"] if start <= x.start <= x.end <= end
        ]
        assert [(x.start, x.end, x.label_) for x in part.spans["x"]] == expected
        assert all(x.kb_id_ == "Q1" for x in part.spans["x"])


def test_spans_are_read_once_for_all_parts():
    def calls(groups):
        doc = Doc(NLP.vocab, words=["a"] * 1000)
        for i in range(groups):
            doc.spans[str(i)] = [Span(doc, a, a + 1, label="X") for a in range(1000)]
        return count_calls(cut_doc, doc, range(0, 1000, 10))

    assert calls(1) < 4 * calls(0)


def test_nothing_is_cut_in_two():
    doc = make(TEXTS[0])
    first, second, third = (word.i for word in doc if word.is_sent_start)
    assert free_starts(doc, [first, second, third]) == [first, second, third]
    doc._.luke_relations = [(doc.ents[0], doc.ents[3], "knows a man of")]  # into the second sentence
    assert free_starts(doc, [first, second, third]) == [first, third]
    doc.spans["clause"] = [doc[second:]]
    assert free_starts(doc, [first, second, third]) == [first]


def test_questions_stay_with_their_answers():
    doc = make(TEXTS[0])
    starts = [word.i for word in doc if word.is_sent_start]
    set_questions(doc, [{"question": "Where?", "answers": [place(doc, "London")]}])
    set_queries(doc, [
        {"query": "@placeholder died", "candidates": [place(doc, "Cambridge"), place(doc, "Charles Babbage")],
         "answers": [place(doc, "Charles Babbage")]},
    ])  # fmt: skip
    parts = cut_doc(doc, free_starts(doc, starts))
    assert [len(part._.luke_questions) for part in parts] == [1, 0, 0]
    assert [len(part._.luke_queries) for part in parts] == [0, 1, 0]
    assert all_said(parts) == said(doc)
    joined = join_docs([doc, doc.copy()])
    assert [x["id"] for x in joined._.luke_questions] == ["0", "1"]
    assert said(joined) == all_said([doc, doc])
    set_questions(doc, [{"question": "Why?", "answers": []}])
    assert free_starts(doc, starts) == [0]  # of no part it is known that it has no answer


@pytest.mark.parametrize("gap", [True, False])
def test_annotations_that_end_with_their_sentence(gap):
    """Also where no blank stands behind it, as in Chinese."""
    words = ["Ann", "met", "Bob", "He", "left"]
    doc = Doc(NLP.vocab, words=words, spaces=[True, True, gap, True, False], sent_starts=[1, 0, 0, 1, 0])
    doc._.luke_relations = [(doc[0:1], doc[2:3], "met")]
    doc._.luke_pairs = [(doc[0:1], doc[2:3]), (doc[3:4], doc[4:5])]
    doc._.luke_knowledge = [(*place(doc, "Bob"), "Q1"), (*place(doc, "left"), "Q2")]
    set_questions(doc, [{"question": "Who?", "answers": [place(doc, "Bob")]}])
    parts = cut_doc(doc, free_starts(doc, [0, 3]))
    assert [part.text.strip() for part in parts] == ["Ann met Bob", "He left"]
    assert all_said(parts) == said(doc)
    assert [len(part._.luke_pairs) for part in parts] == [1, 1]
    assert said(join_docs([*parts, doc])) == all_said([doc, doc])


@pytest.mark.parametrize("sentences", [True, False])
@pytest.mark.parametrize(("alone", "joined"), [(1, 0), (0, 1), (0.3, 0.4), (0, 0)])
def test_every_annotation_is_kept_once(alone, joined, sentences):
    docs = [make(text, sentences=sentences) for text in TEXTS * 5]
    lengths = MixedLengths(sentences=alone, joined=joined, max_words=30, seed=3)
    found = list(lengths(docs))
    assert all_said(found) == all_said(docs)
    words = Counter(word.text for doc in docs for word in doc if not word.is_space)
    assert Counter(word.text for doc in found for word in doc if not word.is_space) == words
    sizes = {len(doc) for doc in found}
    if alone == 1:
        assert len(found) == 40
        assert max(sizes) < 16
    if joined == 1:
        assert 15 < max(sizes) <= 30
        assert len(sizes) > 4
    if not alone + joined:
        assert sorted(doc.text for doc in found) == sorted(doc.text for doc in docs)


def test_the_seed_and_the_pass_decide():
    docs = [make(text) for text in TEXTS * 5]
    one, two, other = MixedLengths(seed=1), MixedLengths(seed=1), MixedLengths(seed=2)
    passes = [[doc.text for doc in lengths(docs)] for lengths in (one, two, other, one, two)]
    assert passes[0] == passes[1]
    assert passes[3] == passes[4]
    assert passes[0] != passes[2]
    assert passes[0] != passes[3]


def test_what_cannot_be_carried_stays_whole():
    with_cats, pair, others, plain = (make(TEXTS[0]) for _ in range(4))
    with_cats.cats = {"GOOD": 1.0}
    pair._.luke_second = 30
    others.user_data["title"] = "Ada"
    lengths = MixedLengths(sentences=0, joined=1, max_words=50, seed=0)
    found = list(lengths([with_cats, pair, others, plain, plain.copy()]))
    assert [doc for doc in found if len(doc) > 30 or doc not in (with_cats, pair, others)]
    assert sum(doc in (with_cats, pair, others) for doc in found) == 3


def test_docs_that_are_annotated_otherwise_are_not_joined():
    """No gold of one would be read as gold of the other."""
    bare = Doc(NLP.vocab, words=["No", "entities", "marked", "."])
    found = list(MixedLengths(sentences=0, joined=1, max_words=100, seed=0)([make(TEXTS[0]), bare]))
    (alone,) = [doc for doc in found if "entities" in doc.text]
    assert alone is bare
    assert not alone.has_annotation("ENT_IOB")
    assert sum(map(len, found)) == len(make(TEXTS[0])) + 4


def test_left_out_on_request():
    doc = make(TEXTS[0])
    set_questions(doc, [{"question": "Why?", "answers": []}])
    (same,) = MixedLengths(sentences=1, joined=0)([doc])
    assert same is doc
    parts = list(MixedLengths(sentences=1, joined=0, without=["luke_questions"])([doc]))
    assert len(parts) == 3
    assert doc._.luke_questions


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sentences": 0.7, "joined": 0.4}, "not more than 1 together"),
        ({"max_words": 0}, "max_words must be at least 1"),
        ({"without": ["luke_ents"]}, "without must be a list of some of"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        registry.misc.get("spacy-luke.mixed_lengths.v1")(**settings)


def test_corpora(tmp_path):
    """Each reader that `spacy train` uses gives the same words to the pipeline as the gold has."""
    DocBin(docs=[make(text) for text in TEXTS], store_user_data=True).to_disk(tmp_path / "train.spacy")
    (tmp_path / "train.conll").write_text("Ada B-PER\nleft O\n\nKofi B-PER\ncame O\n\n" * 6)
    (tmp_path / "train.jsonl").write_text('{"text": "Ada left. Kofi came.", "spans": [[0, 3, "PER"]]}\n' * 6)
    lengths = {"@misc": "spacy-luke.mixed_lengths.v1", "sentences": 0.5, "joined": 0.5, "max_words": 20}
    for reader, file, settings in (
        ("GoldCorpus", "train.spacy", {"entities": True}),
        ("ColumnCorpus", "train.conll", {"documents": 2}),
        ("JsonlCorpus", "train.jsonl", {}),
    ):
        block = {"@readers": f"spacy-luke.{reader}.v1", "path": str(tmp_path / file), "lengths": lengths, **settings}
        examples = list(registry.resolve({"corpus": block})["corpus"](NLP))
        assert len({len(example.reference) for example in examples}) > 1
        for example in examples:
            assert isinstance(example, Example)
            assert example.predicted.text == example.reference.text
    plain = list(make_gold_corpus(tmp_path / "train.spacy")(NLP))
    assert [example.reference.text for example in plain] == TEXTS
