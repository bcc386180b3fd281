"""Ids that names mean and no source of entities has: one rule for knowledge bases that are built, added to, changed."""

import pytest

from spacy_luke.kb.build import KBSettings, build_kb
from spacy_luke.kb.change import add_to_kb, change_kb
from tests.kb.kbs import dump_of, small_kb, write_entities

LONDON = {"id": "Q92561", "names": ["London"], "count": 4, "title": "London, Ontario", "url": "en"}
ROWS = [{"id": "Q84", "names": ["London"], "count": 6}, LONDON]
UNKNOWN = r"n.tsv: the name 'XX' means 'Q999', which no source of entities has"


def names(folder, *rows):
    (folder / "n.tsv").write_text("name\tentity\tcount\n" + "".join(f"{name}\t{id}\t3\n" for name, id in rows))
    return [folder / "n.tsv"]


def changed(kb, sources, folder, **settings):
    return change_kb(kb, sources, folder, remove=["Q92561"], settings=KBSettings(**settings))


def added(kb, sources, folder, **settings):
    return add_to_kb(kb, sources, folder, settings=KBSettings(**settings))


@pytest.mark.parametrize("how", [added, changed, change_kb])
def test_names_of_a_knowledge_base_make_no_entities(tmp_path, how):
    """A table of names alone is no knowledge base of its own where there is one."""
    kb = small_kb(tmp_path, ROWS)
    with pytest.raises(ValueError, match=UNKNOWN):
        how(kb, names(tmp_path, ("LON", "Q84"), ("XX", "Q999")), tmp_path / "new")
    assert set(how(kb, names(tmp_path, ("LON", "Q84")), tmp_path / "new").kb.candidates("LON")) == {("Q84", 1.0)}


@pytest.mark.parametrize("unknown", [None, "error", "add"])
@pytest.mark.parametrize("id", ["Q92561", "London, Ontario"])
def test_what_is_removed_does_not_come_back_by_a_name(tmp_path, id, unknown):
    kb, sources = small_kb(tmp_path, ROWS), names(tmp_path, ("LON", "Q84"), ("YXU", id))
    with pytest.raises(ValueError, match=rf"n.tsv: the name 'YXU' means '{id}', which is among the ids to remove"):
        changed(kb, sources, tmp_path / "new", unknown=unknown)
    built = changed(kb, sources, tmp_path / "new", unknown="drop")
    assert list(built.kb.entities()) == ["Q84"]
    assert built.left_out == ["1 names and their ids that no source of entities has"]
    sources.append(write_entities(tmp_path / "e.jsonl", [LONDON]))  # it is replaced
    assert changed(kb, sources, tmp_path / "new").kb.candidates("YXU") == [("Q92561", 1.0)]


@pytest.mark.parametrize("how", [added, changed])
def test_links_of_a_dump_make_entities_where_that_is_asked_for(tmp_path, how):
    kb = small_kb(tmp_path, ROWS)
    pages = {"Berlin": "'''Berlin''' is in [[Germany]].", "Else": "#REDIRECT [[Elsewhere]]"}
    (tmp_path / "d.xml").write_text(dump_of(pages))
    sources = [tmp_path / "d.xml"]
    alone = build_kb(sources, tmp_path / "alone", settings=KBSettings(unknown="add"))
    built = how(kb, sources, tmp_path / "new", unknown="add")
    assert set(alone.kb.entities()) == {"Berlin", "Germany"} == set(built.kb.entities()) - {"Q84", "Q92561"}
    assert built.kb.candidates("Germany") == alone.kb.candidates("Germany") == [("Germany", 1.0)]
    assert built.left_out == alone.left_out
    dropped = how(kb, sources, tmp_path / "new")
    assert set(dropped.kb.entities()) - {"Q84", "Q92561"} == {"Berlin"}
