"""Real dumps against an independent reading of them, by mwparserfromhell: each paragraph and link of each page."""

import bz2
import html
import re
from xml.etree.ElementTree import fromstring

import pytest

from spacy_luke.corpus.from_dumps import build_from_dumps
from spacy_luke.stores.parallel import Engine
from spacy_luke.wikipedia.dumps import read_pages
from spacy_luke.wikipedia.wikitext import read_article

DROPPED = set(
    "ref math chem gallery timeline code pre source syntaxhighlight score imagemap hiero templatedata graph maplink "
    "mapframe inputbox references".split()
)
SHOWN = ("wikipedia", "user", "special", "help")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z-]+)?")
PROJECT = re.compile(r"wikt|wiktionary|wikisource|wikiquote|wikinews|commons|bugzilla|[a-z]")
DUMPS = {
    "english": ("wiki_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2", 106),
    "sample": ("wiki_wikipedia2vec_sample/enwiki-pages-articles-sample.xml.bz2", 2),
    "latgalian": ("wiki_ltg_smallwiki/smallwiki-latest-pages-articles.xml", 903),
}
NAMES = [pytest.param(name, marks=pytest.mark.slow if name == "english" else ()) for name in DUMPS]
# Pages that mwparserfromhell reads otherwise, and why.
OTHERWISE = {
    "Dzeļžaceļš Reiga — Daugpiļs": "rows of HTML in a wiki table, which it leaves as text",
    "Gothards Ketlers": "rows of HTML in a wiki table",
    "Hermans fon Baļke": "rows of HTML in a wiki table",
    "Livonejis ordyna magistris": "rows of HTML in a wiki table",
    "Daugova": "cells of HTML that are not closed, which it leaves as text",
    "Kurova": "cells of HTML that are not closed",
    "Pulavi": "cells of HTML that are not closed",
    "Spanīšu volūda": "cells of HTML that are not closed",
    "Trojany": "cells of HTML that are not closed",
    "Zipfa lykums": "<n> in a program, which we take for a tag",
    "Albert Einstein": "a reference that ends with </ref name>",
    "Arthur Schopenhauer": "a link in single brackets, for an external one",
}


def walk(code, wiki, links):
    """Text of parsed wikitext; titles of links go to `links`."""
    nodes = pytest.importorskip("mwparserfromhell").nodes
    out = []
    for node in code.nodes:
        if isinstance(node, nodes.Text):
            out.append(str(node))
        elif isinstance(node, nodes.HTMLEntity):
            out.append(node.normalize())
        elif isinstance(node, nodes.Heading):
            out.append(walk(node.title, wiki, links))
        elif isinstance(node, nodes.ExternalLink) and node.title is not None:
            out.append(walk(node.title, wiki, links))
        elif isinstance(node, nodes.Tag):
            name = str(node.tag).lower().strip()
            if name not in DROPPED and not (name == "table" and node.wiki_markup) and node.contents is not None:
                out.append(walk(node.contents, wiki, links))
        elif isinstance(node, nodes.Wikilink):
            out.append(walk_link(node, wiki, links))
    return "".join(out)


def walk_link(node, wiki, links):
    target = html.unescape(str(node.title))
    colon, target = target.lstrip().startswith(":"), target.lstrip(" :")
    prefix, has_prefix, rest = target.partition(":")
    prefix = prefix.strip().lower().replace("_", " ")
    text = "" if node.text is None else walk(node.text, wiki, [])
    text = text if text.strip() else target
    if has_prefix and prefix in wiki.namespaces:
        return text if colon or prefix in SHOWN else ""
    if has_prefix and not rest.startswith((" ", "_")):
        if PROJECT.fullmatch(prefix) or (LANGUAGE.fullmatch(prefix) and (colon or node.text is not None)):
            return text
        if LANGUAGE.fullmatch(prefix):
            return ""
    if title := wiki.title(target):
        links.append(title)
    return text


def letters(line):
    return re.sub(r"[\W_]+", "", line)


def open_dump(path):
    return bz2.open(path).read() if path.suffix == ".bz2" else path.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_every_paragraph_and_link(name, shared):
    parse = pytest.importorskip("mwparserfromhell").parse
    path, n_pages = DUMPS[name]
    totals = {"pages": 0, "links": 0, "paragraphs": 0}
    for page in read_pages(shared(f"data/{path}")):
        if page.redirect is not None:
            continue
        article = read_article(page.text, page.wiki)
        links = []
        text = walk(parse(page.text, skip_style_tags=True), page.wiki, links)
        text = re.sub(r"'{2,}|__[A-Z]+__", "", text)
        totals["pages"] += 1
        totals["links"] += len(article.links)
        totals["paragraphs"] += sum(1 for line in article.text.split("\n") if line.strip())
        for link in article.links:
            shown = article.text[link.start : link.end]
            assert shown.split() == link.text.split()
        if page.title not in OTHERWISE:
            assert [link.title for link in article.links] == links, page.title
            ours = [line for line in map(letters, article.text.split("\n")) if line]
            assert ours == [line for line in map(letters, text.split("\n")) if line], page.title
    assert totals["pages"] == n_pages


@pytest.mark.parametrize("name", NAMES)
def test_the_corpus_has_all_of_it(name, shared, tmp_path):
    """Pages against a plain reading of the XML, and paragraphs and links against the articles."""
    path = shared(f"data/{DUMPS[name][0]}")
    corpus = build_from_dumps([path], tmp_path / "corpus", engine=Engine(workers=1), part_chars=1 << 21)
    tree = fromstring(open_dump(path))
    pages = [page for page in tree if page.tag.endswith("}page")]
    texts = [{field.tag.rpartition("}")[2]: field for field in page.iter()} for page in pages]
    main = [page for page in texts if page["ns"].text == "0"]
    redirects = [
        page for page in main if "redirect" in page or re.match(r"\s*#\w+\s*:?\s*\[\[", page["text"].text or "")
    ]
    counts = corpus.manifest["counts"]
    assert counts["pages"] == len(main) - len(redirects)
    assert counts["redirects"] == len(redirects)
    assert counts.get("pages of other namespaces", 0) == len(pages) - len(main)

    found = list(corpus.paragraphs())
    articles = [(page.title, read_article(page.text, page.wiki)) for page in read_pages(path) if page.redirect is None]
    lines = [(title, line.strip()) for title, article in articles for line in article.text.split("\n") if line.strip()]
    assert [(paragraph.page, paragraph.text) for paragraph in found] == lines
    assert counts["paragraphs"] == len(lines)
    links = [link.text for _, article in articles for link in article.links if link.text]
    shown = [" ".join(x.text[start:end].split()) for x in found for start, end, _ in x.links]
    left_out = sum(count for what, count in counts.items() if what.startswith("links ") and what.endswith("left out"))
    assert counts["links"] == len(shown) == len(links) - left_out
    if not left_out:
        assert shown == links
