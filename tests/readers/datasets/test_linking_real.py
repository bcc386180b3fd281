"""The published sets of entity linking, with the counts that they are known to have."""

from collections import Counter

import pytest
import spacy
from spacy.training import Example

from spacy_luke.annotations import get_rows
from spacy_luke.readers.datasets.table import dataset_docs, read_dataset
from spacy_luke.readers.given import copy_given
from spacy_luke.readers.json_files import read_json_lines
from spacy_luke.scorers.linking import score_links
from tests.benchmark_files import load

NLP = spacy.blank("en")


def read(path, format, **settings):
    counts = Counter()
    docs = list(dataset_docs(NLP, path, format=format, counts=counts, **settings))
    return docs, {name.removeprefix("notes: "): n for name, n in counts.items() if n}


def links(docs):
    spans = [span for doc in docs for span in (doc.spans["luke_links"] if "luke_links" in doc.spans else doc.ents)]
    nil = sum(span.kb_id_ == "NIL" for span in spans)
    return len(spans) - nil, nil


def read_aida(shared, part, **settings):
    titles = shared(f"data/ed_wned/aida-{part}/aida-{part}.xml")
    return read(shared(f"data/conll2003/eng.{part}"), "aida", links=titles, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "n_docs", "known", "nil"), [
        ("train", 946, 18541, 4855), ("testa", 216, 4791, 1126), ("testb", 231, 4485, 1131)]
)  # fmt: skip
def test_aida(shared, part, n_docs, known, nil):
    titles = shared(f"data/ed_wned/aida-{part}/aida-{part}.xml")
    records = list(read_dataset(shared(f"data/conll2003/eng.{part}"), format="aida", links=titles))
    mentions = [mention for record in records for mention in record.mentions]
    assert (len(records), Counter(mention.kb_id == "NIL" for mention in mentions)) == (
        n_docs,
        {False: known, True: nil},
    )
    assert not any(record.notes for record in records)  # each mention is found, as whole words
    assert sum(mention.label != "ENTITY" for mention in mentions) / len(mentions) > 0.994


@pytest.mark.slow
def test_aida_testb_has_the_places_of_zelda(shared):
    docs, _ = read_aida(shared, "testb")
    items = [item for _, item in read_json_lines(shared("data/ed_zelda/test_aida-b.jsonl"))]
    by_text = {"".join(item["text"].split()): item for item in items}
    same = Counter()
    for doc in docs:
        item = by_text["".join(doc.text.split())]
        solid = [len("".join(item["text"][:edge].split())) for place in item["index"] for edge in place]
        theirs = dict(zip(zip(solid[::2], solid[1::2]), item["wikipedia_titles"], strict=True))
        ours = {}
        for ent in doc.ents:
            start = sum(map(len, (word.text for word in doc[: ent.start])))
            if ent.kb_id_ != "NIL":
                ours[start, start + sum(len(word) for word in ent)] = ent.kb_id_
        same.update(
            places=len(set(ours) & set(theirs)), titles=sum(ours.get(x) == title for x, title in theirs.items())
        )
    assert same["places"] == 4485
    assert same["titles"] > 4200  # of another year's Wikipedia


@pytest.mark.slow
def test_aida_testa_has_the_places_of_elevant(shared):
    docs, _ = read_aida(shared, "testa")
    records = list(read_dataset(shared("data/ed_elevant/aida-conll-dev.benchmark.jsonl"), format="elevant"))
    same = 0
    for doc, record in zip(docs, records, strict=True):
        ours = {(ent.start_char, ent.end_char) for ent in doc.ents}
        theirs = {(mention.start, mention.end) for mention in record.mentions}
        same += len(ours & theirs)
    assert same == 5917


@pytest.mark.slow
def test_pprforned(shared):
    candidates = shared("data/ed_pprforned/ppr_for_ned.tar.xz")
    listed = "mentions with given candidates"
    expected = {"testb": (4950, 25, 0.8022)}  # 80.2: most in-links, measured before
    for part, (n_listed, n_renamed, accuracy) in expected.items():
        docs, notes = read_aida(shared, part, candidates=candidates)
        assert notes[listed] == n_listed
        assert notes["titles that differ from the XML's, taken from the candidate lists"] == n_renamed
        assert set(notes) == {
            listed,
            "given candidates",
            "titles that differ from the XML's, taken from the candidate lists",
        }
        first = sum(
            row[2][0][0] == ent.kb_id_
            for doc in docs
            for row in get_rows(doc, "luke_candidates")
            for ent in doc.ents
            if (ent.start_char, ent.end_char) == (row[0], row[1])
        )
        assert first < 0.45 * n_listed  # by title; chance is 0.41, as many have one candidate
        examples = [
            Example(load("baselines").link_by_prior(copy_given(doc, NLP.vocab, links=True)), doc) for doc in docs
        ]
        scores = score_links(examples)
        assert scores["links_candidate_recall"] == scores["links_mentions_f"] == 1.0
        assert scores["links_accuracy"] == scores["links_f"] == pytest.approx(accuracy, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "n_docs", "known", "nil", "moved"),
    [("msnbc", 20, 656, 83, 0), ("clueweb", 320, 11154, 0, 22), ("wikipedia", 320, 6821, 0, 0)],
)
def test_wned(shared, name, n_docs, known, nil, moved):
    path = shared(f"data/ed_wned/{name}/{name}.xml")
    records = list(read_dataset(path, format="wned"))
    ids = [mention.kb_id for record in records for mention in record.mentions]
    assert (len(records), len(ids) - ids.count("NIL"), ids.count("NIL")) == (n_docs, known, nil)
    assert sum((Counter(record.notes) for record in records), Counter()).total() == moved
    if name == "msnbc":
        docs, _ = read(path, "wned")
        assert links(docs) == (known, nil)


@pytest.mark.parametrize(("name", "n_docs", "known"), [("aida-b", 231, 4485), ("tweeki", 500, 860)])
def test_zelda(shared, name, n_docs, known):
    docs, notes = read(shared(f"data/ed_zelda/test_{name}.jsonl"), "zelda")
    assert (len(docs), links(docs), notes) == (n_docs, (known, 0), {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_docs", "known", "nil", "left_out"),
    [("aida-conll-dev", 216, 4789, 1128, 0), ("msnbc", 20, 666, 89, 0), ("news-fair-v2", 120, 914, 166, 718), ("wiki-fair-v2", 120, 1870, 248, 1253)],  # noqa: E501
)  # fmt: skip
def test_elevant(shared, name, n_docs, known, nil, left_out):
    path = shared(f"data/ed_elevant/{name}.benchmark.jsonl")
    docs, notes = read(path, "elevant")
    assert (len(docs), links(docs)) == (n_docs, (known, nil))
    assert sum(n for note, n in notes.items() if note.endswith("left out")) == left_out
    labels = sum(len(item["labels"]) for _, item in read_json_lines(path))
    assert labels == known + nil + left_out + notes.get("equal labels counted once", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_docs", "known", "nil"), [("RSS-500_wd", 500, 588, 414), ("istex_test", 250, 670, 0), ("istex_train", 750, 2073, 0)]  # noqa: E501
)  # fmt: skip
def test_nif(shared, name, n_docs, known, nil):
    docs, _ = read(shared(f"data/ed_opentapioca/data/{name}.ttl"), "nif")
    assert (len(docs), links(docs)) == (n_docs, (known, nil))
