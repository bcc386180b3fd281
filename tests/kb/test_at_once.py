"""Several processes that make and change one knowledge base."""

from contextlib import closing

import pytest

from spacy_luke.kb.build import build_kb
from spacy_luke.kb.change import add_to_kb, compact_kb
from spacy_luke.kb.knowledge_base import EntityKB, hold_kb
from spacy_luke.stores.atomic import HeldFolder
from tests.kb.kbs import ENTITIES, small_kb, write_entities


@pytest.fixture
def kb(tmp_path):
    return small_kb(tmp_path)


def test_an_addition_to_what_was_opened_before_another_one(kb, tmp_path):
    """Both are there, whoever opened it first."""
    for name in ("One", "Two"):
        add_to_kb(kb, [write_entities(tmp_path / f"{name}.jsonl", [{"id": name, "names": [name]}])])
    found = EntityKB.open(kb.path)
    found.verify()
    assert ("One" in found, "Two" in found, len(found)) == (True, True, len(ENTITIES) + 2)


def test_two_additions_at_once(kb, tmp_path):
    """The one that comes second is refused, and says so."""
    more = write_entities(tmp_path / "more.jsonl", [{"id": "One", "names": ["One"]}])
    with hold_kb(kb.path), pytest.raises(ValueError, match="kb is being made or changed by another process"):
        add_to_kb(kb, [more])
    assert "One" in add_to_kb(kb, [more]).kb


def test_two_builds_at_once(kb, tmp_path):
    """Of a new one, and of one that is there, which may be changed just then."""
    more = write_entities(tmp_path / "more.jsonl", [{"id": "One", "names": ["One"]}])
    message = "is being made or changed by another process"
    for folder in (tmp_path / "new", kb.path):
        with closing(HeldFolder(folder)):
            with pytest.raises(ValueError, match=f"{folder.name} {message}"):
                build_kb([more], folder)
            with pytest.raises(ValueError, match=f"{folder.name} {message}"):
                add_to_kb(kb, [more], folder)
            with pytest.raises(ValueError, match=f"{folder.name} {message}"):
                compact_kb(kb, folder)
    with hold_kb(kb.path), pytest.raises(ValueError, match=message):
        build_kb([more], kb.path)
    assert len(EntityKB.open(kb.path)) == len(ENTITIES)
    assert len(build_kb([more], kb.path).kb) == len(build_kb([more], tmp_path / "new").kb) == 1
