"""Several processes that make and change one knowledge base."""

from contextlib import closing

import pytest

from spacy_luke.kb.build import build_kb
from spacy_luke.kb.change import add_to_kb, change_kb, compact_kb
from spacy_luke.kb.knowledge_base import EntityKB, hold_kb
from spacy_luke.stores import folder
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
    for place in (tmp_path / "new", kb.path):
        with closing(HeldFolder(place)):
            with pytest.raises(ValueError, match=f"{place.name} {message}"):
                build_kb([more], place)
            with pytest.raises(ValueError, match=f"{place.name} {message}"):
                add_to_kb(kb, [more], place)
            with pytest.raises(ValueError, match=f"{place.name} {message}"):
                compact_kb(kb, place)
    with hold_kb(kb.path), pytest.raises(ValueError, match=message):
        build_kb([more], kb.path)
    assert len(EntityKB.open(kb.path)) == len(ENTITIES)
    assert len(build_kb([more], kb.path).kb) == len(build_kb([more], tmp_path / "new").kb) == 1


@pytest.mark.parametrize("change", [add_to_kb, change_kb, build_kb])
def test_what_was_opened_before_a_change_is_not_saved_as_another(kb, tmp_path, change):
    """The files that it was opened from are no more there."""
    other = write_entities(tmp_path / "other.jsonl", [{"id": "One", "names": ["One"]}])
    changed = change([other], kb.path) if change is build_kb else change(kb, [other])
    for use in (kb.verify, kb.paths, kb.pack, lambda: kb.save(tmp_path / "saved")):
        with pytest.raises(ValueError, match=r"kb is not the knowledge base that was opened.*changed since\. Open it"):
            use()
    assert not (tmp_path / "saved").exists()
    assert kb.candidates("Nippon") == [("Japan", 1.0)]  # as it was
    EntityKB.open(kb.path).save(tmp_path / "saved")
    assert len(EntityKB.open(tmp_path / "saved")) == len(changed.kb)


@pytest.mark.parametrize("times", [1, 3, 100])
def test_replaced_while_it_is_opened(kb, tmp_path, monkeypatch, times):
    """What is opened is one knowledge base, not files of two."""
    tables = [
        write_entities(tmp_path / f"{i}.jsonl", [{"id": "A", "names": ["A"], "description": f"{i}"}]) for i in (0, 1)
    ]
    checked = folder._check_files
    done = 0

    def check(*args, **options):
        nonlocal done
        checked(*args, **options)
        if done < times and args[0] == kb.path:
            done += 1
            with monkeypatch.context() as patch:
                patch.setattr(folder, "_check_files", checked)
                build_kb([tables[done % 2]], kb.path)

    monkeypatch.setattr(folder, "_check_files", check)
    if times == 100:
        with pytest.raises(ValueError, match="kb is replaced again and again by another process"):
            EntityKB.open(kb.path)
    else:
        found = EntityKB.open(kb.path)
        found.verify()
        assert found.description(0) == f"{times % 2}"
