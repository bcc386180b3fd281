"""benchmarks/shown_links.py: which links that are shown are right, and which gold ones are found."""

import json

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.annotations import LINKS, NIL, LinkCandidate, LinkedMention, set_linked
from tests.benchmark_files import by_bare_names, load

with by_bare_names():
    shown_links = load("shown_links")
Link = shown_links.Link
WORDS = "Americans met Ada in Paris and Rome".split()


def example(vocab):
    """Ada is linked wrongly, Paris rightly, a people where the gold links nothing, and Rome not at all."""
    found, gold = Doc(vocab, words=WORDS), Doc(vocab, words=WORDS)
    places = ((0, "PER", "Q30"), (2, "PER", "Q1"), (4, "LOC", "Q90"), (6, "LOC", NIL))
    found.ents = [Span(found, i, i + 1, label, kb_id=kb_id) for i, label, kb_id in places]
    gold.spans[LINKS] = [
        Span(gold, i, i + 1, kb_id=kb_id) for i, kb_id in ((0, NIL), (2, "Q2"), (4, "Q90"), (6, "Q220"))
    ]
    return Example(found, gold)


class Linker:
    """Leaves the links as they are, with one score each."""

    def predict(self, docs):
        return docs

    def set_annotations(self, docs, links):
        for doc in docs:
            places = [(x.start_char, x.end_char) for x in doc.ents]
            set_linked(doc, [LinkedMention(*place, [LinkCandidate("Q1", 1.0, 0.71)]) for place in places])


def test_links_are_judged_by_words_and_entity():
    found = shown_links.find_links(Linker(), [example(spacy.blank("en").vocab)])
    assert found["gold"] == [3]
    assert found["links"] == [
        Link(0, "0-9", "PER", 0.71, False, True),
        Link(0, "14-17", "PER", 0.71, False, False),
        Link(0, "21-26", "LOC", 0.71, True, False),
    ]


def test_the_report_counts_what_reaches_each_score():
    links = [
        Link(0, "0-9", "PER", 0.92, False, True),
        Link(0, "14-17", "LOC", 0.75, True, False),
        Link(1, "0-4", "LOC", 0.55, True, False),
    ]
    sets = {"one": {"gold": [2, 2], "links": [list(x) for x in links]}}
    names = {"Ada": [0.5, 0.25, 0.0, 0.0, 0.0, 0.0]}
    result = {"pipeline": "p", "threshold": 0.65, "countries": {"Georgia": ""}, "names": names, "sets": sets}
    lines = shown_links.make_report(result).splitlines()
    assert "| one | 2 | 2 | 50.0 % | 25.0 % | 1 | 1 |" in lines
    assert "| 0.5 | 3 | 66.7 % (50.0 to 100.0) | 50.0 % |" in lines
    assert [x.split(" | ")[1] for x in lines if x.startswith("| 0.")] == ["3", "2", "2", "2", "1", "1"]
    assert any("209 are linked to themselves; to something else: none; to nothing: Georgia." in x for x in lines)
    assert '| "Much has been said of ... since then." | 0.00 |' in lines


def test_its_results_are_those_of_its_report():
    folder = shown_links.Path(shown_links.__file__).parent / "results"
    result = json.loads((folder / "shown_links.json").read_text(encoding="utf8"))
    assert shown_links.make_report(result) == (folder / "shown_links.md").read_text(encoding="utf8")
