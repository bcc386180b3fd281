"""Gold whose text differs from the prediction's in blanks or capitals, as of `Example.from_dict` without "spaces"."""

import pytest
import spacy
from spacy.tokens import Span
from spacy.training import Example

from spacy_luke.components.linker.gold import gold_links

TEXT = "No, no, no: Al in LA met Bo."
WORDS = "No , no , no : Al in LA met Bo .".split()
TAGS = ["O"] * 6 + ["U-PER", "O", "U-LOC", "O", "U-PER", "O"]


@pytest.fixture(params=[WORDS, [word.upper() for word in WORDS]], ids=["blanks", "capitals"])
def example(request):
    predicted = spacy.blank("en").make_doc(TEXT)
    found = Example.from_dict(predicted, {"words": request.param, "entities": TAGS})
    gold = found.reference
    gold.set_ents([Span(gold, x.start, x.end, x.label, kb_id=f"of {x.text.lower()}") for x in gold.ents])
    al, la, _ = gold.ents
    gold.spans["luke_types"] = [Span(gold, al.start, al.end, "person"), Span(gold, la.start, la.end, "city")]
    gold._.luke_relations = [(al, la, "in")]
    assert len(gold.text) != len(TEXT)
    assert [x.text for x in found.get_aligned_spans_y2x(list(gold.ents))] == ["Al", "LA", "Bo"]  # as spaCy has it
    return found


def test_types(example):
    found = spacy.blank("en").add_pipe("luke_typer").read_gold(example)
    assert [example.predicted[a:b].text for a, b in found.units.mentions] == ["Al", "LA"]
    assert list(found.labels.values()) == [["person"], ["city"]]
    assert not found.missing


@pytest.mark.parametrize("given", [False, True])
def test_relations(example, given):
    al, la, bo = example.reference.ents
    if given:
        example.reference._.luke_pairs = [(bo, la), (al, la)]
    found = spacy.blank("en").add_pipe("luke_relation").read_gold(example)
    ((number, names),) = found.labels.items()
    assert [example.predicted[a:b].text for a, b in found.units.places(number)] == ["Al", "LA"]
    assert names == ["in"]
    assert not found.missing


def test_links(example):
    mentions, entities, missing = gold_links(example)
    assert [example.predicted[a:b].text for a, b in mentions] == ["Al", "LA", "Bo"]
    assert entities == ["of al", "of la", "of bo"]
    assert not missing


def test_another_text(example):
    gold = spacy.blank("en").make_doc("Something else")
    gold.spans["luke_types"] = [Span(gold, 0, 1, "person")]
    with pytest.raises(ValueError, match="must have the same characters, blanks apart"):
        spacy.blank("en").add_pipe("luke_typer").read_gold(Example(example.predicted, gold))
