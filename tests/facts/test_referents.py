"""What the mentions of a document are of."""

from spacy_luke.facts.referents import find_referents
from spacy_luke.facts.settings import FactSettings
from tests.facts.annotated import document, link


def groups(*mentions, **settings):
    """Texts of the mentions that are of one thing."""
    found = document("a", [*mentions])
    things = find_referents(found.text, found.entities, FactSettings(**settings))
    return [[found.entities[i].text for i in x.mentions] for x in things]


def test_one_name_is_one_thing():
    assert groups(("Ada", "PER"), ("ADA's", "PER"), ("Ada", "ORG"), ("A da", "PER")) == [
        ["Ada", "ADA's"],
        ["Ada"],
        ["A da"],
    ]
    assert groups(("AT & T", "ORG"), ("AT&T", "ORG")) == [["AT & T", "AT&T"]]
    assert groups(("e\u0301", "PER"), ("é", "PER")) == [["e\u0301", "é"]]


def test_capitals_of_turkish():
    for names in (["TÜRKİYE", "Türkiye"], ["İŞ BANKASI", "İş Bankası"], ["IĞDIR", "Iğdır"], ["ＮＡＴＯ", "Nato"]):
        assert groups(*((x, "LOC") for x in names)) == [names]


def test_dots_are_short_for_nothing():
    assert groups(("Air New", "ORG"), ("...", "ORG")) == [["Air New"], ["..."]]


def test_short_names():
    assert groups(("Lovelace", "PER"), ("Ada Lovelace", "PER"), ("Ada", "PER")) == [["Lovelace", "Ada Lovelace", "Ada"]]
    assert groups(("Ada King Lovelace", "PER"), ("Ada King", "PER"), ("Ada", "PER")) == [
        ["Ada King Lovelace", "Ada King", "Ada"]
    ]
    assert groups(("Ada Lovelace", "PER"), ("Ann Lovelace", "PER"), ("Lovelace", "PER")) == [
        ["Ada Lovelace"],
        ["Ann Lovelace"],
        ["Lovelace"],
    ]
    assert groups(("European Space Agency", "ORG"), ("E.S.A.", "ORG"), ("ESA", "ORG")) == [
        ["European Space Agency", "E.S.A.", "ESA"]
    ]
    assert groups(("Bank of England", "ORG"), ("BE", "ORG"), ("BoE", "ORG")) == [["Bank of England", "BE", "BoE"]]
    assert groups(("New York", "LOC"), ("York", "LOC")) == [["New York"], ["York"]]
    assert groups(("New York", "LOC"), ("York", "LOC"), shortened=["LOC"]) == [["New York", "York"]]


def test_links():
    ada = ("Ada Lovelace", "PER", link("Q7259"))
    assert groups(ada, ("Lovelace", "PER"), ("Countess", "PER", link("Q7259"))) == [
        ["Ada Lovelace", "Lovelace", "Countess"]
    ]
    assert groups(ada, ("Lovelace", "PER"), join_links=False) == [["Ada Lovelace"], ["Lovelace"]]
    other = ("Ada Lovelace", "PER", link("Q1"))
    assert groups(ada, other, ("Ada Lovelace", "PER")) == [["Ada Lovelace"]] * 3


def test_ids():
    found = document(
        "a",
        [
            ("Ada", "PER", link("7", wikidata="")),
            ("Bob", "PER", link("8", wikidata="Q8")),
            ("MAY 1", "TIME"),
            ("Cy", "PER"),
        ],
    )
    ids = [x.node for x in find_referents(found.text, found.entities, FactSettings())]
    assert ids[:2] == ["kb:7", "Q8"]
    assert ids[2].startswith("value:")
    assert ids[3] == ""
    other = document("b", [("May 1", "TIME")])
    assert find_referents(other.text, other.entities, FactSettings())[0].node == ids[2]


def test_context():
    """Names near it, linked ones by their ids, and words that are in no mention; of scripts without case, pairs."""
    found = document(
        "a", ["The mild poet", ("Ada", "PER"), "of", ("Rome", "LOC", link("Q220")), ("ESA", "ORG"), "日本語文字"]
    )
    (ada,) = [x for x in find_referents(found.text, found.entities, FactSettings()) if x.key == "ada"]
    assert set(ada.context) == {"the", "mild", "poet", "=Q220", "@esa", "日本", "本語", "語文", "文字"}
    many = document("b", [*((f"A{i}", "PER") for i in range(40)), "x" * 200, "far"])
    context = find_referents(many.text, many.entities, FactSettings())[0].context
    assert sorted(context) == sorted(f"@a{i}" for i in range(1, 11))
