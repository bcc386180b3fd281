"""Facts of passages, counted as KnowledgeNet's official script counts them."""

from tests.benchmark_files import load

stated_facts = load("stated_facts")
METHODS, ScoredPassage, StatedFact = stated_facts.METHODS, stated_facts.ScoredPassage, stated_facts.StatedFact
count_facts = stated_facts.count_facts

# Drawn at random; OFFICIAL is what the authors' evaluator.py (dataset/ of diffbot/knowledge-net) says of them, with
# "DIED" for a property that has no links. Lines: property, characters of subject and object, ids.
PASSAGES = """
read for CEO HOME DIED IN
gold HOME 15 21 19 26 - Q3
gold HOME 14 20 23 28 Q2 -
gold CEO 26 31 2 3 - -
gold CEO 9 11 2 7 Q2 Q3
found IN 0 7 14 17 Q2 -
found IN 16 18 20 23 - Q4
found IN 2 6 20 23 Q2 -
found HOME 22 25 10 17 Q2 Q3
found HOME 15 21 19 26 - Q3
found CEO 26 31 2 3 - -
found CEO 9 11 2 7 Q2 Q3
read for CEO DIED IN
found IN 6 7 15 19 Q1 -
read for HOME DIED
found CEO 10 11 13 20 - -
found IN 22 23 0 1 Q1 -
read for DIED IN
gold IN 23 30 4 8 - Q3
found DIED 6 7 8 15 - -
found CEO 5 9 27 32 - -
found DIED 6 10 8 9 Q1 Q3
found IN 23 30 4 8 - Q3
read for HOME
gold HOME 14 16 18 22 Q1 -
gold HOME 20 22 9 11 Q2 -
gold HOME 5 11 20 25 Q2 Q3
found CEO 19 20 13 14 - -
found IN 16 19 7 13 Q1 Q3
found HOME 26 31 15 18 Q2 -
found HOME 14 16 18 22 Q1 -
read for DIED
found DIED 7 8 1 3 Q1 Q4
found HOME 18 20 2 5 Q1 Q3
found HOME 21 27 22 27 Q2 -
"""
OFFICIAL = {  # right, wrong, missed
    "overlap": {"CEO": (2, 0, 0), "DIED": (0, 3, 0), "HOME": (3, 2, 2), "IN": (1, 4, 0)},
    "exact": {"CEO": (2, 0, 0), "DIED": (0, 3, 0), "HOME": (2, 2, 3), "IN": (1, 4, 0)},
    "link": {"CEO": (1, 0, 0), "HOME": (0, 1, 1)},
}


def count(gold, predicted, method="overlap", read_for=("in",), unlinked=()):
    passage = ScoredPassage([StatedFact(*x) for x in gold], [StatedFact(*x) for x in predicted], read_for)
    return {x: (y.tp, y.fp, y.fn) for x, y in count_facts([passage], method, unlinked=unlinked).items()}


def read_passages():
    passages = []
    for line in PASSAGES.split("\n")[1:-1]:
        kind, property, *rest = line.split()
        if kind == "read":
            passages.append(ScoredPassage([], [], rest))
            continue
        a, b, c, d = map(int, rest[:4])
        fact = StatedFact(property, (a, b), (c, d), *(x.strip("-") for x in rest[4:]))
        (passages[-1].gold if kind == "gold" else passages[-1].predicted).append(fact)
    return passages


def test_as_the_official_script():
    passages = read_passages()
    assert len(passages) == 6
    for method in METHODS:
        found = count_facts(passages, method, unlinked=["DIED"])
        assert {x: (y.tp, y.fp, y.fn) for x, y in found.items()} == OFFICIAL[method], method


def test_overlap():
    gold = [("in", (0, 5), (10, 15))]
    assert count(gold, [("in", (4, 6), (14, 20))]) == {"in": (1, 0, 0)}
    assert count(gold, [("in", (5, 6), (14, 20))]) == {"in": (0, 1, 1)}
    assert count(gold, [("of", (0, 5), (10, 15))], read_for=["in", "of"]) == {"in": (0, 0, 1), "of": (0, 1, 0)}
    assert count(gold, [("in", (4, 6), (14, 20))], "exact") == {"in": (0, 1, 1)}


def test_predictions_beside_right_ones():
    """What is like a right prediction is not wrong, though it is like no gold fact."""
    assert count([("in", (0, 5), (10, 15))], [("in", (4, 8), (10, 15)), ("in", (7, 9), (10, 15))]) == {"in": (1, 0, 0)}


def test_what_a_passage_was_not_read_for():
    assert count([], [("of", (0, 5), (10, 15))]) == {}


def test_links():
    gold = [
        ("in", (0, 5), (10, 15), "Q1", "Q2"),
        ("in", (6, 8), (10, 15), "Q1", "Q2"),
        ("in", (0, 5), (9, 10), "Q1", ""),
    ]
    right = ("in", (50, 51), (60, 61), "Q1", "Q2")
    assert count(gold, [right, right], "link") == {"in": (1, 0, 0)}
    assert count(gold, [("in", (0, 5), (10, 15), "Q1", "")], "link") == {"in": (0, 0, 1)}
    assert count(gold, [right], "link", unlinked=["in"]) == {}
