"""Entity vocabularies: counts against a plain count, settings, several languages, and the files that come out."""

from collections import Counter
from pathlib import Path

import pytest

from spacy_luke.corpus.from_dumps import build_from_dumps
from spacy_luke.corpus.linked_corpus import Paragraph
from spacy_luke.corpus.vocabulary import build_entity_vocab, no_tsv, save_entity_vocab, work_plan
from spacy_luke.entity_vocab import EntityVocab
from spacy_luke.stores.parallel import Engine
from spacy_luke.stores.work_folder import WorkFolder
from tests.corpus.written import write_corpus

HERE = Engine(workers=1)
WIKI = Path(__file__).parents[2] / "assets" / "wiki.xml"


@pytest.fixture
def corpus(tmp_path):
    """Each title is linked on a page; titles: {title: links}."""

    def make(language, titles, pages=("P",)):
        text = "x" * sum(titles.values())
        names = [title for title, count in titles.items() for _ in range(count)]
        links = [(i, i + 1, title) for i, title in enumerate(names)]
        paragraphs = [Paragraph(pages[0], text, links), *(Paragraph(page, "text", []) for page in pages[1:])]
        return write_corpus(lambda counts: paragraphs, tmp_path / f"corpus-{language}", language=language)

    return make


def table(built):
    return [(row.links, *(f"{language}:{title}" for language, title in row.names)) for row in built.rows[3:]]


def test_the_sample_as_a_plain_count(linked, tmp_path):
    built = build_entity_vocab([linked], engine=HERE)
    plain = Counter(title for paragraph in linked.paragraphs() for _, _, title in paragraph.links)
    rows = sorted(plain.items(), key=lambda item: (-item[1], item[0]))
    assert [(row.names[0][1], row.links) for row in built.rows] == [("[PAD]", 0), ("[UNK]", 0), ("[MASK]", 0), *rows]
    assert built.counts["links"] == built.counts["links to them"] == linked.manifest["counts"]["links"]
    assert built.vocab.special_rows() == {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2}
    two = build_entity_vocab([linked], engine=Engine(workers=2))
    assert two.rows == built.rows

    files = save_entity_vocab(built, tmp_path / "vocab")
    assert [path.name for path in files] == ["entity_vocab.jsonl", "entity_vocab.tsv", "entities.tsv"]
    for name in ("entity_vocab.jsonl", "entity_vocab.tsv", ""):
        again = EntityVocab.from_file(tmp_path / "vocab" / name)
        assert again.to_json() == built.vocab.to_json()
    lines = (tmp_path / "vocab" / "entities.tsv").read_text(encoding="utf8").splitlines()
    assert lines[:2] == ["row\tcount\tshare of links\tnames", "0\t0\t0.0000\t[PAD]"]
    assert lines[-1].split("\t")[2] == "1.0000"
    before = {path.name: path.read_bytes() for path in files}
    save_entity_vocab(two, tmp_path / "vocab")
    assert {path.name: path.read_bytes() for path in files} == before


def test_settings(corpus):
    found = corpus("en", {"A": 1, "B": 3, "C": 2, "D": 2, "[MASK]": 5}, pages=("C", "A"))
    build = lambda **settings: build_entity_vocab([found], engine=HERE, **settings)  # noqa: E731
    assert table(build()) == [(3, ":B"), (2, ":C"), (2, ":D"), (1, ":A")]
    assert build().counts["links to titles of special entities, left out"] == 5
    least = build(min_count=2)
    assert table(least) == [(3, ":B"), (2, ":C"), (2, ":D")]
    assert least.counts["entities below min_count, left out"] == 1
    assert build(size=5).counts["entities beyond size, left out"] == 2
    assert table(build(size=5)) == [(3, ":B"), (2, ":C")]
    listed = build(white_list=["A", "Z", "D", "A"], min_count=3)
    assert table(listed) == [(1, ":A"), (2, ":D"), (3, ":B")]
    assert listed.counts["titles of the white list without a link"] == 1
    assert table(build(white_list=["D"], white_list_only=True)) == [(2, ":D")]
    assert table(build(pages_only=True)) == [(2, ":C"), (1, ":A")]
    assert build(pages_only=True).counts["titles without a page, left out"] == 2
    assert build(multilingual=True).vocab.row("B", language="en") == 3


def test_listed_titles_that_have_moved(tmp_path):
    """A list of an older dump: what is a redirect now is a further name of the entity where it leads."""
    found = build_from_dumps([WIKI], tmp_path / "corpus", engine=HERE)
    plain = build_entity_vocab([found], engine=HERE)
    links = plain.vocab.counts[plain.vocab.row("Vellmouth")]
    listed = ["Vellmouth Light", "Vellmuth", "Vellmouth", "Nowhere"]
    built = build_entity_vocab([found], white_list=listed, white_list_only=True, engine=HERE)
    assert [row.names for row in built.rows[3:]] == [
        [("", "Vellmouth lighthouse"), ("", "Vellmouth Light")],
        [("", "Vellmouth"), ("", "Vellmuth")],
    ]
    assert built.rows[4].links == links > 0
    assert built.counts["titles of the white list that are redirects, followed"] == 2
    assert built.counts["titles of the white list without a link"] == 1
    files = save_entity_vocab(built, tmp_path / "vocab")
    assert [path.name for path in files] == ["entity_vocab.jsonl", "entities.tsv"]
    assert "room for one name" in no_tsv(built)
    again = EntityVocab.from_file(tmp_path / "vocab")
    assert again.row("Vellmuth") == again.row("Vellmouth") == 4
    languages = build_entity_vocab([found], white_list=["en:Vellmuth"], size=5, multilingual=True, engine=HERE)
    assert languages.rows[3].names == [("en", "Vellmouth"), ("en", "Vellmuth")]


def test_titles_that_differ_in_their_unicode_form(corpus):
    with pytest.warns(UserWarning, match="2 titles are equal to others but for their Unicode form"):
        built = build_entity_vocab([corpus("de", {"Köln": 2, "Ko\u0308ln": 1})], engine=HERE)
    assert table(built) == [(2, ":Köln"), (1, ":Ko\u0308ln")]


def test_several_languages(corpus, tmp_path):
    english = corpus("en", {"Japan": 3, "Only here": 2, "Tokyo": 1})
    german = corpus("de", {"Japan": 1, "Tokio": 2})
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("en\tTokyo\tde\tTokio\nen\tTokyo\tfr\tTokyo\nen\tJapan\tde\tJapan\n", encoding="utf8")
    built = build_entity_vocab([english, german], interwiki=[pairs], engine=HERE)
    assert table(built) == [(4, "en:Japan", "de:Japan"), (3, "de:Tokio", "en:Tokyo"), (2, "en:Only here")]
    assert built.vocab.row("Tokyo", language="en") == built.vocab.row("Tokio", language="de") == 4
    assert built.counts["titles joined with others over interwiki links"] == 2
    both = build_entity_vocab([english, german], interwiki=[pairs], min_languages=2, engine=HERE)
    assert both.counts["entities of too few languages, left out"] == 1
    assert len(both.vocab) == 5
    files = save_entity_vocab(built, tmp_path / "vocab")
    assert [path.name for path in files] == ["entity_vocab.jsonl", "entities.tsv"], "a tsv has no room for languages"
    assert EntityVocab.from_file(tmp_path / "vocab").to_json() == built.vocab.to_json()
    assert "3\t4\t0.4444\ten:Japan | de:Japan" in files[1].read_text(encoding="utf8")
    apart = build_entity_vocab([english, german], engine=HERE)
    assert len(apart.vocab) == 8


def test_titles_with_line_breaks(corpus, tmp_path):
    """A line of a .tsv cannot hold them: there is none then, and what is written is read."""
    built = build_entity_vocab([corpus("de", {"Gerd\nM\u00fcller": 2, "K\u00f6ln": 1, "A\tB\r": 1})], engine=HERE)
    why = no_tsv(built)
    assert why is not None
    assert "in 2 titles, the first of which is 'Gerd\\nM\u00fcller'" in why
    files = save_entity_vocab(built, tmp_path / "vocab")
    assert [path.name for path in files] == ["entity_vocab.jsonl", "entities.tsv"]
    assert EntityVocab.from_file(tmp_path / "vocab").to_json() == built.vocab.to_json()
    shown = files[1].read_bytes().decode("utf8")
    assert "3\t2\t0.5000\tGerd\\nM\u00fcller\n" in shown
    assert "\tA\\tB\\r\n" in shown


def test_sitelinks_of_wikidata(corpus, shared):
    """The items of the original's own test."""
    path = shared("data/luke_fixtures/fixtures/wikidata_20180423_sitelinks10.json")
    english = corpus("en", {"Northern Ireland": 2, "Nowhere": 1})
    swedish = corpus("sv", {"Nordirland": 3})
    built = build_entity_vocab([english, swedish], interwiki=[path], engine=HERE)
    assert table(built) == [(5, "sv:Nordirland", "en:Northern Ireland"), (1, "en:Nowhere")]


def test_links_to_other_languages_in_the_text(linked, corpus):
    german = corpus("de", {"Vellmünde": 1, "Isterwasser": 1})
    built = build_entity_vocab([linked, german], engine=HERE)
    assert built.vocab.row("Vellmünde", language="de") == built.vocab.row("Vellmouth", language="en")


@pytest.mark.parametrize(
    ("line", "message"),
    [("en\tA\tde\n", r"pairs.tsv, line 2: expected language, title"), ("en\t\tde\tB\n", "line 2"), ("\n", "line 2")],
)
def test_bad_interwiki(corpus, tmp_path, line, message):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(f"en\tA\tde\tA\n{line}")
    with pytest.raises(ValueError, match=message):
        build_entity_vocab([corpus("en", {"A": 1})], interwiki=[pairs], engine=HERE)


def test_what_cannot_be(corpus, tmp_path):
    english = corpus("en", {"A": 1})
    for corpora, settings, message in [
        ([], {}, "at least one linked corpus"),
        ([english, english], {}, "different languages, but that of .* is 'en' again"),
        ([english], {"white_list": ["B"], "white_list_only": True}, "none is left"),
        ([english], {"min_languages": 2}, "Names without a language"),
    ]:
        with pytest.raises(ValueError, match=message):
            build_entity_vocab(corpora, engine=HERE, **settings)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    with pytest.raises(ValueError, match="holds something else than an entity vocabulary"):
        save_entity_vocab(build_entity_vocab([english], engine=HERE), tmp_path / "mine")


def test_a_killed_build_goes_on(corpus, tmp_path, monkeypatch):
    """Parts that were counted are not counted again; other corpora are."""
    opened = [corpus("en", {"A": 3, "B": 2})]
    expected = build_entity_vocab(opened)
    with pytest.raises(KeyboardInterrupt), WorkFolder(tmp_path / "vocab", work_plan(opened)) as work:
        build_entity_vocab(opened, work=work)
        raise KeyboardInterrupt
    kept = sorted((tmp_path / ".vocab.work").glob("corpus-0-part-*.json"))
    assert len(kept) == len(opened[0].parts)
    monkeypatch.setattr("spacy_luke.corpus.vocabulary.count_part", None)
    with WorkFolder(tmp_path / "vocab", work_plan(opened)) as work:
        again = build_entity_vocab(opened, work=work)
    assert (again.rows, again.counts) == (expected.rows, expected.counts)
    assert not (tmp_path / ".vocab.work").exists()
