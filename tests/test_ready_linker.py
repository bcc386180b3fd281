"""The data of the ready pipeline's linker: gold ids as the knowledge base has them, GUM's titles, what is learned."""

import json
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.kb.build import build_kb

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
import link_data
import ready_linker

ROWS = [
    {"id": "Q84", "names": ["London"], "title": "London", "wikidata": "Q84", "url": "en", "types": ["place"]},
    {"id": "geo:42.3,-85.6", "names": ["Kalamazoo"], "title": "Kalamazoo", "description": "city in Michigan"},
    {"id": "/m/0x", "names": ["Wilco"], "title": "Wilco", "types": ["organization"]},
]


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kb")
    (folder / "entities.jsonl").write_text("\n".join(map(json.dumps, ROWS)) + "\n", encoding="utf8")
    return build_kb([folder / "entities.jsonl"], folder / "kb").kb


@pytest.mark.parametrize(
    ("gold", "title", "text", "expected"),
    [
        ("NIL", "", "London", "NIL"),
        ("Q84", "", "London", "Q84"),
        ("London", "", "the city", "Q84"),
        ("Q92561", "London, Ontario", "London", "NIL"),  # another item than Q84
        ("London, Ontario", "", "London", link_data.UNKNOWN),  # a page of the same name, whose item is not told
        ("Kalamazoo, Michigan", "", "Kalamazoo", "geo:42.3,-85.6"),
        ("Kalamazoo, Ohio", "", "Kalamazoo", link_data.UNKNOWN),
        ("Q123", "Wilco", "Wilco", "/m/0x"),
        ("Q123", "", "Wilco", link_data.UNKNOWN),
        ("Wilco (farmer)", "", "Wilco", link_data.UNKNOWN),
        ("Q5", "Nobody", "Nobody", "NIL"),
    ],
)
def test_ids_of_the_knowledge_base(kb, gold, title, text, expected):
    assert link_data.resolve(gold, title, text, kb) == expected


def test_titles_of_gum(kb, tmp_path):
    """Nested and repeated names; what is no name, or of no label that counts, is left out."""
    cells = [
        ("The", "(1-place-new-nn-cf1-2-coref"),
        ("mayor", "(2-person-new-nn-cf1-1-coref"),
        ("of", ""),
        ("London", "(3-place-new-nn-cf1-1-coref-London)2)1)"),
        ("London", "(3-place-giv-nn-cf1-1-coref)"),
        ("met", ""),
        ("Wilco", "(4-organization-new-nn-cf1-1-sgl-Wilco_%28farmer%29)"),
    ]
    lines = ["# newdoc id = GUM_news_x", "# sent_id = 1"]
    lines += [
        "\t".join([str(i), word, *"_" * 7, f"Entity={cell}" if cell else "SpaceAfter=No"])
        for i, (word, cell) in enumerate(cells, 1)
    ]
    (tmp_path / "GUM_news_x.conllu").write_text("\n".join([*lines, ""]), encoding="utf8")
    found = link_data.read_gum(tmp_path / "GUM_news_x.conllu", kb)
    assert [x.text for x in found.doc] == [word for word, _ in cells]
    assert found.links == {(3, 4): "Q84", (4, 5): "Q84", (6, 7): link_data.UNKNOWN}


def test_examples(kb):
    """What is found and has no gold is NIL where all names are annotated, and nothing elsewhere."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "LOC", "pattern": x} for x in ("London", "Paris", "Rome")])
    doc = nlp.make_doc("Bob saw London , Paris and Wilco .")
    text = link_data.LinkedText(doc, {(2, 3): "Q84", (0, 1): "NIL", (6, 7): "/m/0x"})
    (full,) = ready_linker.find_mentions(nlp, [text], partial=False)
    ids = {(x.start, x.end): x.kb_id_ for x in full.reference.spans["luke_links"]}
    assert ids == {(0, 1): "NIL", (2, 3): "Q84", (4, 5): "NIL", (6, 7): "/m/0x"}
    assert [x.text for x in full.predicted.ents] == ["London", "Paris"]
    (part,) = ready_linker.find_mentions(nlp, [text], partial=True)
    assert (4, 5) not in {(x.start, x.end) for x in part.reference.spans["luke_links"]}
    assert [x.text for x in part.predicted.ents] == ["London"]
    ready_linker.keep_found(full)
    assert [x.text for x in full.reference.spans["luke_links"]] == ["London", "Paris"]
    train, dev = ready_linker.divide(
        {"gum": [full], "wiki_fair": [full, part, full], "tweeki": [part], "msnbc": [part]}
    )
    assert train == [full, full, full]
    assert dev == [part, part]


def test_evaluate(kb):
    """Shares with intervals over texts, and how many links are right of each label."""

    class Linker:
        """London is Q84, all else NIL."""

        def predict(self, docs):
            return docs

        def set_annotations(self, docs, found):
            for doc in docs:
                ids = [(x, "Q84" if x.text in ("London", "Paris") else "NIL") for x in doc.ents]
                doc.set_ents([Span(doc, x.start, x.end, x.label_, kb_id=kb_id) for x, kb_id in ids])

    nlp = spacy.blank("en")
    examples = []
    for words, gold in (("London", "Q84"), ("Paris", "Q90"), ("London", "Q84"), ("Rome", "Q220")):
        doc, reference = nlp.make_doc(words), nlp.make_doc(words)
        doc.set_ents([Span(doc, 0, 1, "LOC")])
        reference.spans["luke_links"] = [Span(reference, 0, 1, kb_id=gold)]
        examples.append(Example(doc, reference))
    scores, reliability = ready_linker.evaluate(Linker(), {"all": examples[:1], "together": examples})
    assert scores["all"]["precision"] == 100
    assert reliability["n"] == 0  # nothing has a score
    found = scores["together"]
    low, high = found.pop("precision_95")
    assert low < 66.7 <= high
    low, high = found.pop("recall_95")
    assert low < 50 < high
    assert found == {"precision": 66.7, "recall": 50.0, "f": 57.1, "shown": 3, "gold": 4, "labels": {"LOC": [2, 3]}}
    assert [x.predicted.ents[0].kb_id_ for x in examples] == [""] * 4  # the Docs stay as they are


def test_words_of_the_training_stay_out(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "DRUG", "pattern": "Xylotine"}])
    nlp("Somebody named Quuxington wrote this.")
    assert "Quuxington" in nlp.vocab.strings
    ready_linker.save_without_words(nlp, tmp_path / "saved")
    loaded = spacy.load(tmp_path / "saved")
    assert "Quuxington" not in loaded.vocab.strings
    assert "DRUG" in loaded.vocab.strings
    assert [(x.text, x.label_) for x in loaded("Quuxington took Xylotine.").ents] == [("Xylotine", "DRUG")]
