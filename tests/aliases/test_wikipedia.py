"""Links, redirects and occurrences of a dump; real dumps where they are there."""

import bz2
import gzip
import tracemalloc
from collections import Counter

import pytest

from spacy_luke.aliases.build import build_store
from spacy_luke.aliases.store import AliasStore
from spacy_luke.wikipedia.dumps import read_pages
from spacy_luke.wikipedia.wikitext import read_article


def contents(store):
    return {
        name: (store.link_probability(name), [(entity, round(prior, 4)) for entity, prior in store.candidates(name)])
        for name in sorted(store)
    }


EXPECTED = {
    "BRD": (1.0, [("Germany", 1.0)]),
    "Berlin": (0.5, [("Berlin", 1.0)]),
    "Germany": (0.5, [("Germany", 1.0)]),
    "Spree": (1.0, [("Spree (river)", 1.0)]),
    "rivers": (1.0, [("River", 1.0)]),
    "spree": (0.5, [("Spree", 1.0)]),
}


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, bz2.compress])
def test_links_and_occurrences(dump, pack):
    dump.write_bytes(pack(dump.read_bytes()))
    store = build_store([dump]).store
    assert contents(store) == EXPECTED
    assert store.info == {"sources": ["dump.xml"], "pages": 2, "redirects": 2, "links": 6}


def test_without_case(dump):
    found = contents(build_store([dump], case="casefold").store)
    assert found["spree"] == (pytest.approx(2 / 3), [("Spree", 0.5), ("Spree (river)", 0.5)])
    assert set(found) == {name.lower() for name in EXPECTED}


def test_titles_are_names_that_are_never_linked(dump):
    found = contents(build_store([dump], titles=True).store)
    assert found["Deutschland"] == (0.0, [("Germany", 1.0)])
    assert {name: found[name] for name in EXPECTED} == EXPECTED
    text = dump.read_text(encoding="utf8").replace("<title>Berlin</title>", "<title>Berlin (city)</title>")
    dump.write_text(text, encoding="utf8")
    found = contents(build_store([dump], titles=True).store)
    assert found["Berlin(city)"] == (0.0, [("Berlin (city)", 1.0)])
    assert found["Berlin"] == (0.5, [("Berlin", 0.5), ("Berlin (city)", 0.5)])


def test_parts_of_a_dump(dump, tmp_path):
    """Redirects of one part hold for links of the other."""
    head, *pages = dump.read_text(encoding="utf8").replace("</mediawiki>", "").split("  <page>")
    paths = [tmp_path / "a.xml", tmp_path / "b.xml"]
    for path, part in zip(paths, (pages[:1], pages[1:]), strict=True):
        path.write_text("<page>".join([head, *part]) + "</mediawiki>", encoding="utf8")
    assert contents(build_store(paths).store) == EXPECTED


def test_other_encoding(dump):
    text = dump.read_text(encoding="utf8")
    dump.write_bytes(f'<?xml version="1.0" encoding="UTF-16"?>{text}'.encode("utf-16"))
    assert contents(build_store([dump]).store) == EXPECTED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-20], "is not XML .*truncated"),
        (lambda data: gzip.compress(data)[:-30], "not a whole gzip file"),
        (lambda data: bz2.compress(data)[:-30], "not a whole bzip2 file"),
        (lambda data: bz2.compress(data)[:60] + b"\0" * 90, "not a whole bzip2 file"),
        (lambda data: b"<html></html>", "no dump of a wiki: expected <mediawiki>, but got <html>"),
        (lambda data: b"<mediawiki></mediawiki>", "but there is no link"),
    ],
)
def test_bad_dumps(dump, change, message):
    dump.write_bytes(change(dump.read_bytes()))
    with pytest.raises(ValueError, match=message):
        build_store([dump])


def test_no_mixture(dump, table):
    with pytest.raises(ValueError, match="tables and dumps together"):
        build_store([dump, table("name\tentity\tcount", "a\tb\t1")])


def test_pages_are_not_kept(tmp_path):
    """Memory does not grow with the pages: each is gone once it was read."""
    path = tmp_path / "big.xml"
    page = "<page><title>P{}</title><ns>0</ns><revision><text>[[A]] " + "x" * 100_000 + "</text></revision></page>"
    path.write_text(f"<mediawiki>{''.join(page.format(i) for i in range(200))}</mediawiki>", encoding="utf8")
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_pages(path)) == 200
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_english_wikipedia(shared, tmp_path):
    path = shared("data/wiki_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2")
    store = build_store([path]).store
    info = store.info
    assert (info["pages"], info["redirects"]) == (106, 99)
    assert 20_000 < info["links"] < 30_542, "30,542 are all links, those of templates, tables, files and references too"
    assert store.candidates("Aristotle") == [("Aristotle", 1.0)]
    assert store.candidates("Greek")[0].entity == "Greek language"
    assert 0.02 < store.link_probability("United States") < 0.5
    assert store.link_probability("the") < 0.01
    for name in list(store)[::1000]:
        assert 0 < store.link_probability(name) <= 1
        assert sum(prior for _, prior in store.candidates(name)) == pytest.approx(1)
    store.save(tmp_path / "names")
    assert list(AliasStore.open(tmp_path / "names")) == list(store)


@pytest.mark.slow
def test_other_languages(shared):
    store = build_store([shared("data/wiki_ltg_smallwiki/smallwiki-latest-pages-articles.xml")]).store
    assert store.info["pages"] == 903
    again = build_store([shared("data/wiki_ltg_smallwiki/smallwiki-latest-pages-articles.xml")]).store
    assert again.to_bytes() == store.to_bytes()
    assert "Latgola" in store
    bulgarian = shared("data/wiki_gensim/bgwiki-latest-pages-articles-shortened.xml.bz2")  # in UTF-16
    assert build_store([bulgarian]).store.candidates("високосна година") == [("Високосна година", 1.0)]


def test_occurrences_are_those_of_a_plain_count(shared):
    path = shared("data/wiki_wikipedia2vec_sample/enwiki-pages-articles-sample.xml.bz2")
    store = build_store([path]).store
    articles = [read_article(page.text, page.wiki) for page in read_pages(path) if page.redirect is None]
    links = Counter(link.text for article in articles for link in article.links)
    words = [f" {line} " for article in articles for line in article.text.splitlines()]
    plain = [name for name in links if name.isalpha() and name.isascii()]
    assert len(plain) > 50
    for name in plain:
        occurring = sum(1 for line in words for i in _places(line, name))
        assert store.link_probability(name) == pytest.approx(links[name] / max(occurring, links[name]))


def _places(line, name):
    start = line.find(name)
    while start >= 0:
        before, after = line[start - 1], line[start + len(name)]
        if not (before.isalnum() or before == "_" or after.isalnum() or after == "_"):
            yield start
        start = line.find(name, start + 1)
