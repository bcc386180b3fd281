"""benchmarks/judged_relations.py: relations of the ready pipeline by what a person said of them."""

import json

import spacy
from spacy.tokens import Doc, Span

from spacy_luke.annotations import register_extensions, set_relations
from tests.benchmark_files import by_bare_names, load

with by_bare_names():
    judged_relations = load("judged_relations")
Shown = judged_relations.Shown


class Pipeline:
    """Says of each Doc that its first word is the child of the second, and the second of the third."""

    vocab = spacy.blank("en").vocab

    def pipe(self, docs):
        register_extensions()
        for doc in docs:
            one, two, three = (Span(doc, i, i + 1, "PER") for i in range(3))
            doc.set_ents([one, two, three])
            set_relations(doc, [(one, two, "child", 0.75), (two, three, "child", 0.5)])
            yield doc


def test_each_is_looked_up():
    docs = [(name, Doc(Pipeline.vocab, words=["Ada", "Bo", "Cy"])) for name in ("a", "b")]
    judged = {("a", 0, 1, 1, 2, "child"): True, ("b", 1, 2, 2, 3, "child"): False, ("b", 0, 1, 1, 2, "father"): True}
    shown = judged_relations.find_shown(Pipeline(), docs, judged)
    assert shown == [Shown(0.75, True), Shown(0.5, None), Shown(0.75, None), Shown(0.5, False)]
    sample = [[0, "Ada", "child", "Bo", 0.8, "0.6.0", True], [1, "Ada", "child", "Cy", 0.8, "0.7.0", False]]
    text = judged_relations.make_report({"pipeline": "p", "documents": 2, "words": 6}, shown, sample)
    assert "| 0.50 | 4 | 2 | 50.0 % |" in text
    assert "| 0.75 | 2 | 1 | 100.0 % |" in text
    assert "| 0.7.0 | 1 | 0.0 % |" in text


def test_the_file_has_each_once():
    judged = json.loads(judged_relations.JUDGED.read_text(encoding="utf8"))
    places = [tuple(row[:6]) for row in judged["gum"]]
    assert len(places) == len(set(places)) > 300
    assert all(isinstance(row[6], bool) for rows in judged.values() for row in rows)
    assert all(a < b and c < d for _, a, b, c, d, _ in places)
    assert {version: sum(row[5] == version for row in judged["conll04"]) for version in ("0.6.0", "0.7.0")} == {
        "0.6.0": 100,
        "0.7.0": 100,
    }
