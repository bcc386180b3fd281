"""A Wikipedia dump as a source: articles, links, redirects, disambiguation pages, descriptions."""

import bz2

import pytest

from spacy_luke.kb import pages as module
from spacy_luke.kb.build import KBSettings, build_kb
from spacy_luke.kb.pages import LONGEST, first_sentence, is_disambiguation
from spacy_luke.stores.parallel import Engine
from spacy_luke.wikipedia.dumps import Page
from spacy_luke.wikipedia.wikitext import Wiki
from tests.kb.kbs import dump_of

PAGES = {
    "Mercury (planet)": "{{Infobox}}'''Mercury''' ({{lang}}; ) is a [[planet]]. It is small. The [[Sun (star)|Sun]]s "
    "heat.",
    "Sun": "The '''Sun''' is at the centre; [[Mercury (planet)|Mercury]] is near. [[Mercury (element)|Mercury]] "
    "[[Nowhere]]",
    "Sun (star)": "#REDIRECT [[Sun]]",
    "Sol": "#REDIRECT [[Sun (star)]]",
    "Mercury": "'''Mercury''' may be:\n* [[Mercury (planet)]], a [[planet]]\n* [[Freddie Mercury]]\n* no "
    "link\n{{Disambiguation}}",
    "Mercury (element)": "'''Mercury''' is &quot;quick&quot; [[silver]] &amp; heavy.",
    "Freddie Mercury": "'''Freddie Mercury''' (1946&amp;ndash;1991) sang.\n[[Category:1946 births]] "
    "[[Category:AT&amp;T]]",
    "AT&amp;T": "'''AT&amp;T''' is a company. [[Sol]]",
    "São Tomé": "'''São Tomé''' is a town.",
    "Talk:Sun": "[[Sun]] [[Sun]]",
}


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_text(dump_of(PAGES), encoding="utf8")
    return path


def test_a_dump(dump, tmp_path):
    built = build_kb([dump], tmp_path / "kb")
    kb = built.kb
    assert sorted(kb.entities()) == [
        "AT&T", "Freddie Mercury", "Mercury (element)", "Mercury (planet)", "Sun", "São Tomé",
    ]  # fmt: skip
    assert built.read == {"articles": 6, "links": 7, "redirects": 2, "disambiguation pages": 1}
    assert built.left_out == ["3 names and their ids that no source of entities has"]  # planet, Nowhere, silver
    # one link and the title of the planet and of the element, and the planet and the singer once as what the page lists
    assert kb.candidates("Mercury") == [
        ("Mercury (planet)", pytest.approx(3 / 6)),
        ("Mercury (element)", pytest.approx(2 / 6)),
        ("Freddie Mercury", pytest.approx(1 / 6)),
    ]
    assert kb.candidates("SUN") == kb.candidates("Sol") == kb.candidates("Suns") == [("Sun", 1.0)]
    assert kb.row("Sun (star)") == kb.row("Sol") == kb.row("Sun") >= 0
    assert kb.row("Mercury") == -1
    counts = {entity: kb.count(kb.row(entity)) for entity in kb.entities()}
    assert counts == {
        "AT&T": 0, "Freddie Mercury": 0, "Mercury (element)": 1, "Mercury (planet)": 1, "Sun": 2, "São Tomé": 0,
    }  # fmt: skip
    assert [entity for entity in kb.entities() if kb.is_person(kb.row(entity))] == ["Freddie Mercury"]
    assert kb.description(kb.row("Mercury (planet)")) == "Mercury is a planet."
    assert kb.description(kb.row("Mercury (element)")) == 'Mercury is "quick" silver & heavy.'
    assert kb.description(kb.row("Freddie Mercury")) == "Freddie Mercury (1946–1991) sang."


def test_links_to_pages_that_are_not_there(dump, tmp_path):
    kb = build_kb([dump], tmp_path / "kb", settings=KBSettings(unknown="add")).kb
    assert {"planet", "Nowhere", "Silver"} & set(kb.entities()) == {"Nowhere", "Silver"}
    assert kb.row("Planet") >= 0
    assert kb.count(kb.row("Planet")) == 1
    assert "Sol" not in set(kb.entities())
    with pytest.raises(ValueError, match="which no source of entities has"):
        build_kb([dump], tmp_path / "kb2", settings=KBSettings(unknown="error"))


def test_parts_are_one_dump(dump, tmp_path):
    whole = build_kb([dump], tmp_path / "whole").kb
    halves = [dict(list(PAGES.items())[:4]), dict(list(PAGES.items())[4:])]
    for number, half in enumerate(halves):
        (tmp_path / f"{number}.bz2").write_bytes(bz2.compress(dump_of(half).encode("utf8")))
    parts = build_kb([tmp_path / "0.bz2", tmp_path / "1.bz2"], tmp_path / "parts").kb
    for name in ("Mercury", "Sun", "Sol"):
        assert parts.candidates(name) == whole.candidates(name)
    assert [parts.count(row) for row in range(len(parts))] == [whole.count(row) for row in range(len(whole))]


def test_half_a_dump(dump, tmp_path):
    data = bz2.compress(dump.read_bytes())
    (tmp_path / "half.bz2").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match="It may be truncated"):
        build_kb([tmp_path / "half.bz2"], tmp_path / "kb")
    dump.write_text(dump_of({"A": "no link"}))
    with pytest.raises(ValueError, match=r"Expected articles with links in dump\.xml"):
        build_kb([dump], tmp_path / "kb")


def test_dumps_of_different_wikis_do_not_mix(tmp_path):
    page = "<page><title>A{0}</title><revision><text>[[A{0}]] is.</text></revision></page>"
    dump = '<mediawiki xml:lang="{}"><siteinfo><dbname>{}</dbname></siteinfo>{}</mediawiki>'
    for name, site in (("a", "enwiki"), ("b", "enwiki"), ("c", "simplewiki")):
        (tmp_path / f"{name}.xml").write_text(dump.format("en", site, page.format(name)))
    kb = build_kb([tmp_path / "a.xml", tmp_path / "b.xml"], tmp_path / "kb").kb
    assert kb.record(kb.row("Ab")).url == "https://en.wikipedia.org/wiki/Ab"
    with pytest.raises(ValueError, match=r"a.xml \(enwiki\) and c.xml \(simplewiki\) are of different wikis"):
        build_kb([tmp_path / "a.xml", tmp_path / "c.xml"], tmp_path / "kb")
    kb = build_kb([tmp_path / "c.xml"], tmp_path / "kb").kb
    assert kb.record(0).url == "https://simple.wikipedia.org/wiki/Ac"


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Mercury (disambiguation)", "", True),
        ("Mercury", "{{ Hndis |x}}", True),
        ("Mercury", "{{disambiguation cleanup}}", True),
        ("Merkur", "{{Begriffsklärung}}", True),
        ("Mercury", "{{Infobox planet}} {{Dabble}}", False),
        ("Dzeivnīku", "{{Zeimeibys}}", True),
    ],
)
def test_disambiguation_pages(title, text, expected):
    from spacy_luke.kb.wikipedia import TEMPLATES

    assert is_disambiguation(Page(title, None, text, Wiki()), {*TEMPLATES, "zeimeibys"}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A b c d. E f.", "A b c d. E f."),  # after a short word, which may be an abbreviation
        ("This is it now. And more follows.", "This is it now."),
        ("George W. Bush (born July 6, 1946) is a man. He is tall.", "George W. Bush (born July 6, 1946) is a man."),
        ("It costs 3.5 dollars in total. So.", "It costs 3.5 dollars in total."),
        ("It ended in 1991. Then came more.", "It ended in 1991."),
        ("東京都は、日本の首都である。人口は約1400万人。", "東京都は、日本の首都である。"),
        ("北京市\n北京市，通称北京，是中国的首都。它在华北。", "北京市，通称北京，是中国的首都。"),
        ("กรุงเทพมหานคร เป็นเมืองหลวงของประเทศไทย", "กรุงเทพมหานคร เป็นเมืองหลวงของประเทศไทย"),
        ("\n\nTitle\nThe first real line here", "The first real line here"),
        ("Rome (; ) is , well , old", "Rome is, well, old"),
        ("", ""),
    ],
)
def test_first_sentence(text, expected):
    assert first_sentence(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("word " * 200, ("word " * 80).strip()),
        ("北京 市 是" + "中" * 500, "北京 市 是" + "中" * (LONGEST - 6)),
        ("北京市有iPhone" + "中" * (LONGEST - 12) + "iPhone。", "北京市有iPhone" + "中" * (LONGEST - 12)),
        ("It is " + "x" * 500, "It is"),
        ("x" * 500 + " y z", "x" * LONGEST),
    ],
)
def test_long_sentence(text, expected):
    assert first_sentence(text) == expected


def files_of(kb):
    return {name: path.read_bytes() for name, path in kb.paths().items()}


def test_pages_by_tasks(dump, tmp_path, monkeypatch):
    """The same knowledge base, whatever the files of pages; one that was stopped goes on, and leaves nothing."""
    expected = build_kb([dump], tmp_path / "one")
    monkeypatch.setattr(module, "CHARS", 150)
    read, asked = module.parse_part, []

    def stopping(folder, name, task):
        asked.append(name)
        if name == "read-00001" and len(asked) == 2:
            raise KeyboardInterrupt
        return read(folder, name, task)

    monkeypatch.setattr(module, "parse_part", stopping)
    settings = KBSettings(engine=Engine(workers=1))
    with pytest.raises(KeyboardInterrupt):
        build_kb([dump], tmp_path / "other", settings=settings)
    assert not (tmp_path / "other").exists()
    assert (tmp_path / ".other.pages.work" / "read-00000.json").is_file()
    built = build_kb([dump], tmp_path / "other", settings=settings)
    assert len(asked) > 4
    assert len(set(asked)) == len(asked) - 1  # what was done is not done again
    assert (built.read, built.left_out) == (expected.read, expected.left_out)
    assert files_of(built.kb) == files_of(expected.kb)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_pages_of_different_wikis_by_tasks(tmp_path):
    for name, site in (("a.xml", "enwiki"), ("b.xml", "bgwiki")):
        text = dump_of(PAGES).replace("<siteinfo>", f"<siteinfo><dbname>{site}</dbname>")
        (tmp_path / name).write_text(text, encoding="utf8")
    sources = [tmp_path / "a.xml", tmp_path / "b.xml"]
    with pytest.raises(ValueError, match="different wikis"):
        build_kb(sources, tmp_path / "kb", settings=KBSettings(engine=Engine(workers=1)))


@pytest.mark.slow  # starts two processes
def test_pages_by_processes(dump, tmp_path, monkeypatch):
    expected = build_kb([dump], tmp_path / "one")
    monkeypatch.setattr(module, "CHARS", 150)
    built = build_kb([dump], tmp_path / "other", settings=KBSettings(engine=Engine(workers=2)))
    assert files_of(built.kb) == files_of(expected.kb)
