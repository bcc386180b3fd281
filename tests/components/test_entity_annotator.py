"""`entity_annotator`: names in Docs, settings, saving, other processes."""

import multiprocessing
import pickle
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_luke.aliases.build import build_store
from spacy_luke.components.entity_annotator import FILE
from tests.components.annotator import TABLE, ents, links

TEXT = "In the New York City library Ada Lovelace's notes are not. York and New York have them."


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.tsv"
    path.write_text(TABLE, encoding="utf8")
    return path


@pytest.fixture
def pipeline(names):
    def make(lang="en", **config):
        nlp = spacy.blank(lang)
        nlp.add_pipe("entity_annotator", config=config)
        nlp.config["initialize"]["components"]["entity_annotator"] = {"store": str(names)}
        nlp.initialize()
        return nlp

    return make


FOUND = [
    ("New York City", "New York City", 0.75, 1.0),
    ("Ada Lovelace", "Ada Lovelace", 1.0, 1.0),
    ("New York", "New York City", 0.5, 0.6),
]
SEEN: list = []  # by the probe


def test_names_in_a_text(pipeline):
    doc = pipeline()(TEXT)
    assert links(doc) == FOUND
    assert {span.label_ for span in doc.spans["luke_links"]} == {"ENTITY"}
    assert doc.spans["luke_links"].attrs["scores"].dtype == np.float32
    assert doc.ents == ()


def test_settings(pipeline):
    nlp = pipeline(spans_key="x", label="NAME", min_link_probability=0.0, max_candidates=None, overlaps=True)
    doc = nlp(TEXT)
    assert {span.label_ for span in doc.spans["x"]} == {"NAME"}
    assert [row[:2] for row in links(doc, "x")] == [
        ("the", "The (article)"),
        ("New York", "New York City"),
        ("New York", "New York (state)"),
        ("New York City", "New York City"),
        ("York", "York"),
        ("Ada Lovelace", "Ada Lovelace"),
        ("Lovelace's notes", "Note G"),
        ("York", "York"),
        ("New York", "New York City"),
        ("New York", "New York (state)"),
        ("York", "York"),
    ]
    assert "luke_links" not in doc.spans
    assert nlp.pipe_labels["entity_annotator"] == ["NAME"]
    assert [row[1] for row in links(pipeline(min_prior=0.5, max_candidates=2)(TEXT))] == [row[1] for row in FOUND]
    assert links(pipeline(min_prior=0.7)(TEXT)) == FOUND[:2], "names with no entity at 0.7 are no mentions"
    assert [row[0] for row in links(pipeline(max_words=1, min_link_probability=0)(TEXT))] == [
        "the",
        "York",
        "York",
        "York",
    ]
    assert [row[0] for row in links(pipeline(min_link_probability=0.01)(TEXT))] == [row[0] for row in FOUND]


QUESTION = "Is Ada Lovelace's letter (in York, New  York City-hall)?"


def test_names_in_questions(pipeline):
    nlp = pipeline(min_link_probability=0.1)
    doc = nlp.make_doc(TEXT)
    given = [[3, 6, "Ada Yonath"]]
    doc._.luke_questions = [QUESTION, {"question": "Who?", "id": "x"}, {"question": QUESTION, "entities": given}]
    nlp(doc)
    found, none, kept = doc._.luke_questions
    names = [(QUESTION[start:end], entity) for start, end, entity in found["entities"]]
    assert names == [("Ada Lovelace", "Ada Lovelace"), ("New  York City", "New York City")]
    assert (none["entities"], kept["entities"]) == ([], given)
    assert links(doc) == FOUND
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert again._.luke_questions == doc._.luke_questions
    overwriting = pipeline(min_link_probability=0.1, overwrite=True)(doc)
    assert overwriting._.luke_questions[2]["entities"] == found["entities"]
    other = nlp.make_doc(TEXT)
    other._.luke_questions = [QUESTION]
    assert "entities" not in pipeline(questions=False)(other)._.luke_questions[0]


def test_thresholds_are_inclusive(pipeline):
    nlp = pipeline(min_link_probability=0.75)
    assert [row[0] for row in links(nlp("New York City, New York"))] == ["New York City"]
    assert links(pipeline(min_prior=0.6)("New York")) == FOUND[2:]


def test_casefold(pipeline):
    nlp = pipeline(case="casefold")
    assert [row[:2] for row in links(nlp("new york CITY"))] == [("new york CITY", "New York City")]
    assert links(pipeline()("new york CITY")) == []


def test_words_of_the_doc(pipeline):
    nlp = pipeline()
    annotate = nlp.get_pipe("entity_annotator")
    given = Doc(nlp.vocab, words=["Ada", "Lovelace", "'s", "notes", "New", "\n", "York", "Ada", "\n\n", "Lovelace"])
    assert [row[0] for row in links(annotate(given))] == ["Ada Lovelace", "New \n York"]
    for empty in (Doc(nlp.vocab), Doc(nlp.vocab, words=["\n"]), Doc(nlp.vocab, words=["!"])):
        assert links(annotate(empty)) == []


def test_entities_of_the_doc(pipeline):
    nlp = pipeline(annotate_ents=True)
    doc = nlp(TEXT)
    assert ents(doc) == [(text, "ENTITY", entity) for text, entity, _, _ in FOUND]
    assert [entity._.luke_score for entity in doc.ents] == pytest.approx([0.75, 1, 0.5])
    assert dict(doc.spans) == {}


@pytest.mark.parametrize(("overwrite", "place"), [(False, "City library"), (True, "New York City")])
def test_entities_of_others(pipeline, overwrite, place):
    nlp = pipeline(annotate_ents=True, overwrite=overwrite)
    doc = nlp.make_doc(TEXT)
    doc.ents = [Span(doc, 4, 6, label="LOC"), Span(doc, 11, 12, label="ODD")]
    assert [entity.text for entity in doc.ents] == ["City library", "not"]
    doc = nlp.get_pipe("entity_annotator")(doc)
    assert [entity.text for entity in doc.ents] == [place, "Ada Lovelace", "not", "New York"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_blocked_words(pipeline, overwrite):
    nlp = pipeline(annotate_ents=True, overwrite=overwrite)
    annotator = nlp.get_pipe("entity_annotator")
    doc = nlp.make_doc(TEXT)
    doc.set_ents([], blocked=[doc[3:4], doc[0:1]], default="missing")
    assert doc[3].text == "York"
    annotator(doc)
    assert [entity.text for entity in doc.ents] == ["Ada Lovelace", "New York"]
    assert {i: word.ent_type_ for i, word in enumerate(doc) if word.ent_iob == 3} == {
        0: "", 3: "", 6: "ENTITY", doc.ents[1].start: "ENTITY"
    }  # fmt: skip
    assert all(word.ent_iob for word in doc)
    annotator.annotate_ents = False
    annotator(doc)
    assert [span.text for span in doc.spans["luke_links"]] == ["New York City", "Ada Lovelace", "New York"]


def test_pipe_and_serialized_docs(pipeline):
    nlp = pipeline()
    texts = [TEXT, "", "York", "New York"]
    docs = list(nlp.pipe(texts, batch_size=2))
    assert [links(doc) for doc in docs] == [links(nlp(text)) for text in texts]
    other = spacy.blank("en").vocab
    copies = [Doc(other).from_bytes(doc.to_bytes()) for doc in docs]
    assert [links(doc) for doc in copies] == [links(doc) for doc in docs]
    copies = list(DocBin().from_bytes(DocBin(docs=docs, store_user_data=True).to_bytes()).get_docs(other))
    assert [links(doc) for doc in copies] == [links(doc) for doc in docs]


def test_to_disk_and_elsewhere(pipeline, names, tmp_path):
    nlp = pipeline(spans_key="x")
    nlp.to_disk(tmp_path / "one")
    names.unlink()
    shutil.move(tmp_path / "one", tmp_path / "two")
    again = spacy.load(tmp_path / "two")
    assert links(again(TEXT), "x") == FOUND
    again.to_disk(tmp_path / "two")  # over the file that it is mapped from
    assert links(again(TEXT), "x") == links(spacy.load(tmp_path / "two")(TEXT), "x") == FOUND
    assert [path.name for path in (tmp_path / "two" / "entity_annotator").iterdir()] == [FILE]
    stricter = spacy.load(tmp_path / "two", config={"components.entity_annotator.min_link_probability": 0.6})
    assert links(stricter(TEXT), "x") == FOUND[:2]


def test_bytes_pickle_and_source(pipeline):
    nlp = pipeline()
    assert nlp.to_bytes() == nlp.to_bytes()
    again = spacy.blank("en")
    again.add_pipe("entity_annotator")
    sourced = spacy.blank("en")
    sourced.add_pipe("entity_annotator", source=nlp)
    for copy in (again.from_bytes(nlp.to_bytes()), pickle.loads(pickle.dumps(nlp)), sourced):
        assert links(copy(TEXT)) == FOUND


def test_before_initialisation(pipeline, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_annotator")
    with pytest.raises(ValueError, match=r"no names yet.*\[initialize\.components\.entity_annotator\]"):
        nlp(TEXT)
    with pytest.raises(ValueError, match="needs names: set store"):
        nlp.initialize()
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    with pytest.raises(ValueError, match="no names yet"):
        again(TEXT)
    again.from_bytes(pipeline().to_bytes())
    assert links(again(TEXT)) == FOUND
    again.initialize()
    assert links(again(TEXT)) == FOUND
    assert spacy.blank("en").from_config(nlp.config) is not None


def test_a_store_and_its_case(pipeline, names, tmp_path):
    store = build_store([names], case="casefold").store
    store.save(tmp_path / "names")
    nlp = spacy.blank("en")
    annotator = nlp.add_pipe("entity_annotator", config={"case": "casefold"})
    nlp.config["initialize"]["components"]["entity_annotator"] = {"store": str(tmp_path / "names")}
    nlp.initialize()
    assert [row[0] for row in links(nlp("NEW YORK"))] == ["NEW YORK"]
    annotator.store = store
    with pytest.raises(ValueError, match=r"has case = 'exact', but the names are stored for 'casefold'.*--case exact"):
        pipeline().get_pipe("entity_annotator").store = store
    nlp.to_disk(tmp_path / "saved")
    with pytest.raises(ValueError, match="but the names are stored for 'casefold'"):
        spacy.load(tmp_path / "saved", config={"components.entity_annotator.case": "exact"})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"min_link_probability": 1.5}, "min_link_probability must be from 0 to 1, but it is 1.5"),
        ({"min_prior": -1}, "min_prior must be from 0 to 1, but it is -1"),
        ({"max_candidates": 0}, "max_candidates must be at least 1, or null for no limit, but it is 0"),
        ({"max_words": 0}, "max_words must be at least 1, or null for no limit, but it is 0"),
        ({"label": ""}, "label must be a text that is not empty, but it is ''"),
        ({"case": "lower"}, "case must be one of"),
        ({"annotate_ents": True, "overlaps": True}, "doc.ents holds one entity for a word"),
        ({"annotate_ents": True, "max_candidates": 3}, "doc.ents holds one entity for a word"),
    ],
)
def test_bad_settings(config, message):
    with pytest.raises(ValueError, match=message):
        spacy.blank("en").add_pipe("entity_annotator", config=config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mediawiki></mediawiki>", "is a dump, which takes long .*build-mentions"),
        ("name\tentity", "has no names"),
        ("spacy_luke mentions 7\n", "version 7"),
    ],
)
def test_bad_sources(names, text, message):
    names.write_text(text, encoding="utf8")
    annotator = spacy.blank("en").add_pipe("entity_annotator")
    with pytest.raises(ValueError, match=message):
        annotator.initialize(lambda: [], store=names)
    with pytest.raises(ValueError, match="no such file"):
        annotator.initialize(lambda: [], store=str(names) + "x")


def test_damaged_pipeline(pipeline, tmp_path):
    pipeline().to_disk(tmp_path)
    path = tmp_path / "entity_annotator" / FILE
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="mentions is not a whole store of names"):
        spacy.load(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match="mentions, but there is no such file"):
        spacy.load(tmp_path)


def test_too_large_for_bytes(pipeline, monkeypatch):
    monkeypatch.setattr("spacy_luke.components.entity_annotator.BYTES_LIMIT", 100)
    with pytest.raises(ValueError, match=r"Use nlp\.to_disk"):
        pipeline().to_bytes()


@Language.component("luke_links_probe")
def probe(doc):
    SEEN.append(links(doc))
    return doc


def test_in_a_training(pipeline):
    """It is not trainable, and annotates for those behind it."""
    nlp = pipeline()
    nlp.add_pipe("luke_links_probe")
    nlp.add_pipe("textcat")
    example = Example.from_dict(nlp.make_doc(TEXT), {"cats": {"A": 1.0, "B": 0.0}})
    optimizer = nlp.initialize(lambda: [example])
    SEEN.clear()
    nlp.update([example], sgd=optimizer, annotates=["entity_annotator", "luke_links_probe"])
    assert SEEN == [FOUND]


PROCESSES = """
    import multiprocessing, sys
    import spacy

    def read(docs):
        return [[(s.text, s.kb_id_) for s in doc.spans["luke_links"]] for doc in docs]

    if __name__ == "__main__":
        nlp = spacy.load("pipeline")
        texts = [sys.argv[1], "", "York"] * 4
        expected = read([nlp(text) for text in texts])
        assert sum(map(len, expected)) >= 12, expected
        multiprocessing.set_start_method(sys.argv[2])
        assert read(nlp.pipe(texts, n_process=2, batch_size=3)) == expected
        print("same")
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(pipeline, tmp_path, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    pipeline().to_disk(tmp_path / "pipeline")
    (tmp_path / "run.py").write_text(textwrap.dedent(PROCESSES))
    command = [sys.executable, "run.py", TEXT, method]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "same\n"


def test_ids_of_what_gives_way(pipeline):
    """The id that an entity_ruler gave is gone with its entity."""
    nlp = pipeline(annotate_ents=True, overwrite=True)
    nlp.add_pipe("entity_ruler", first=True).add_patterns([{"label": "GPE", "pattern": "York", "id": "york-uk"}])
    doc = nlp(TEXT)
    assert {x.ent_id_ for x in doc.ents if x.label_ == "GPE"} == {"york-uk"}
    found = [x for x in doc.ents if x.label_ == "ENTITY" and "York" in x.text]
    assert found
    assert not any(word.ent_id_ for entity in found for word in entity)
