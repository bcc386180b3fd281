"""Names that are spelled differently and are one: an entity counts once for them."""

import json

import pytest

from spacy_luke.kb.build import build_kb
from spacy_luke.kb.items import Wikidata, read_item
from tests.kb.kbs import small_kb

SPELLINGS = ["U.S.", "U. S.", " U.S. "]


@pytest.mark.parametrize("weight", [{"count": 10}, {"prior": 0.4}, {}])
def test_an_entity_counts_once_for_a_name(tmp_path, weight):
    rows = [{"id": "Q1", "names": SPELLINGS, **weight}, {"id": "Q2", "names": ["U.S."], **weight}]
    kb = small_kb(tmp_path, rows)
    share = weight.get("prior", 0.5)
    assert kb.candidates("U.S.") == [("Q1", pytest.approx(share)), ("Q2", pytest.approx(share))]


def test_a_prior_is_that_of_the_name_however_it_is_spelled(tmp_path):
    kb = small_kb(tmp_path, [{"id": "Q1", "names": ["Caf\u00e9", "Cafe\u0301"], "prior": 0.6}])
    assert kb.candidates("Caf\u00e9") == [("Q1", pytest.approx(0.6))]
    assert kb.record(0).title == "Caf\u00e9"  # the first spelling


def test_counts_of_spellings_are_added(tmp_path):
    """Where each has its own."""
    rows = [{"id": "Q1", "names": {"U.S.": 2, "U. S.": 4}}, {"id": "Q2", "names": {"U.S.": 2}}]
    assert small_kb(tmp_path, rows).candidates("U.S.") == [("Q1", 0.75), ("Q2", 0.25)]


def test_labels_and_other_names_of_items(tmp_path):
    def item(id, *names):
        label, *others = ({"value": name} for name in names)
        return {"id": id, "labels": {"en": label}, "aliases": {"en": others}, "sitelinks": {}}

    rows = [item("Q1", *SPELLINGS), item("Q2", "U.S.")]
    assert read_item(rows[0], Wikidata()).names == ["U.S."]
    (tmp_path / "w.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert build_kb([tmp_path / "w.json"], tmp_path / "kb").kb.candidates("U.S.") == [("Q1", 0.5), ("Q2", 0.5)]


def test_lists_of_ppr_that_come_again(tmp_path):
    title = "http://en.wikipedia.org/wiki/"
    candidates = [f"CANDIDATE\tinCount:{n}\turl:{title}{page}\n" for page, n in (("United_States", 60), ("Us", 20))]
    (tmp_path / "ppr").mkdir()
    (tmp_path / "ppr/1").write_text(f"ENTITY\ttext:U.S.\torigText:U. S.\n{''.join(candidates)}")
    (tmp_path / "ppr/2").write_text(f"ENTITY\ttext:U .S.\n{candidates[0]}")
    kb = build_kb([tmp_path / "ppr"], tmp_path / "kb").kb
    assert kb.candidates("U.S.") == [("United States", 0.75), ("Us", 0.25)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Windows 1.1", None), ("WINDOWS-11", "Windows 11"), ("Model 3.0", None), ("v2.1.0", None), ("V 2.10", "v2.10"),
        ("C++", None), ("C#", None), ("c", "C"), ("10000 Maniacs", "10,000 Maniacs"), ("½", None),
        ("Canal +", "Canal+"), ("CANAL", None), ("#C", "C"),
    ],
)  # fmt: skip
def test_punctuation_makes_no_other_number(tmp_path, text, name):
    """A version, or a language with a sign behind it, is another thing."""
    names = ("Windows 11", "Model 30", "v2.10", "C", "10,000 Maniacs", "12", "Canal+")
    kb = small_kb(tmp_path, [{"id": x, "names": [x]} for x in names])
    assert kb.find_name(text) == name
    assert [x.entity for x in kb.candidates(text)] == ([] if name is None else [name])
