import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.wikipedia.wikitext import Wiki, read_article

WIKI = Wiki.of(["Datei", "Kategorie"], capital=True)


@pytest.mark.parametrize(
    ("wikitext", "text", "links"),
    [
        ("in [[Paris]].", "in Paris.", [("Paris", "Paris")]),
        ("in [[paris|the city]].", "in the city.", [("the city", "Paris")]),
        ("[[bus]]es, [[bus]]2 [[Bus]]'s", "buses, bus2 Bus's", [("buses", "Bus"), ("bus", "Bus"), ("Bus", "Bus")]),
        ("[[New_York#History|''NY'']]", "NY", [("NY", "New York")]),
        ("[[Caf%C3%A9]] [[A&nbsp;B]]", "Caf%C3%A9 A\xa0B", [("Caf%C3%A9", "Café"), ("A B", "A B")]),
        ("[[#Here|there]] [[]] [[|x]]", "there  x", []),
        ("a [[Datei:x.jpg|thumb|of [[Paris]] and [[Rome]]]] b", "a  b", []),
        ("a [[Datei:x.jpg|thumb|of\n[[Paris]]:\nmore]]b", "a b", []),
        ("[[kategorie : Towns]][[File:y.png]]", "", []),
        ("[[:Kategorie:Towns]] [[:Datei:x|file]]", "Kategorie:Towns file", []),
        ("[[fr:Paris]] [[:fr:Paris|fr]] [[wikt:cat|cat]]", " fr cat", []),
        ("[[Mission: Impossible]] [[2001: A Space Odyssey]]", "Mission: Impossible 2001: A Space Odyssey",
         [("Mission: Impossible", "Mission: Impossible"), ("2001: A Space Odyssey", "2001: A Space Odyssey")]),
        ("{{cite|a={{b|[[c]]}}|}}d{{e", "d{{e", []),
        ("{| class=x\n| [[a]] || {{b\n|}\nc", "\nc", []),
        ("{|\n|\n{| \n| inner\n|}\n| [[a]]\n|}\nb", "\nb", []),
        ("a<ref name=x>[[b]]</ref><ref name=x/>c<!-- [[d]] -->", "ac", []),
        ("<math>\\{\\{</math>a <b>[[c]]</b><br/>", "a c", [("c", "C")]),
        ("== [[Head]] ==\n* item\n:# two\n----", "Head\nitem\ntwo\n", [("Head", "Head")]),
        ("[http://x.y/z the site] and http://x.y/[[a]]", "the site and a", [("a", "A")]),
        ("[[hdl:1|http://x.y]] [[b]]", "hdl:1 b", [("b", "B")]),
        ("5 &lt; 6 &amp; [[A&amp;B]]", "5 < 6 & A&B", [("A&B", "A&B")]),
        ("__NOTOC__'''''bold'''''", "bold", []),
        ("a ]] b [[c", "a  b c", []),
        ("[[a\nb]] [[c|d\ne]] [[f]]", "a\nb c|d\ne f", [("f", "F")]),
        ("}} a {{b}} |}", " a  |}", []),
        ("<nowiki>[[Foo]]</nowiki> and [[Bar]]", "[[Foo]] and Bar", [("Bar", "Bar")]),
        ("<nowiki>{{</nowiki> [[Y]] }} [[Z]]", "{{ Y }} Z", [("Y", "Y"), ("Z", "Z")]),
        ("a <NOWIKI >''b'' <ref> &lt;&amp;lt; &#91;</nowiki\n> [[c]]</ref>", "a ''b'' <ref> <&lt; [ c", [("c", "C")]),
        ("<nowiki>* a\n== b ==\n{|\n__TOC__ http://x.y <!--</nowiki>[[c]]<!-- -->",
         "* a\n== b ==\n{|\n__TOC__ http://x.y <!--c", [("c", "C")]),
        ("[[a|<nowiki>]]</nowiki>]] [[b<nowiki>|</nowiki>c]]", "]] b|c", [("]]", "A")]),
        ("<!-- <nowiki> --> [[a]] <!-- </nowiki> -->", " a ", [("a", "A")]),
        ("<nowiki>[[a]] <nowiki/>[[b]]", "a b", [("a", "A"), ("b", "B")]),
        ("<ref><nowiki></ref></nowiki></ref>[[a]]", "a", [("a", "A")]),
    ],
)  # fmt: skip
def test_text_and_links(wikitext, text, links):
    article = read_article(wikitext, WIKI)
    expected = text if "}} a" not in wikitext else "}} a  |}"
    assert article.text == expected
    assert [(link.text, link.title) for link in article.links] == links
    assert_exact(article)


def test_titles_of_a_wiki_that_counts_case():
    wiki = Wiki.of([], capital=False)
    assert read_article("[[paris]]", wiki).links == [("paris", "paris", 0, 5)]


@pytest.mark.parametrize(
    "piece",
    [
        "{{",
        "[[",
        "<ref>",
        "{|\n",
        "[[a|",
        "<nowiki>",
        "<nowiki>[[</nowiki>",
        "<!--",
        "'",
        "[http://x ",
        "}}",
        "]]",
        "=",
        "<a",
    ],
)
def test_long_nonsense_is_read_quickly(piece):
    """Time must not grow with the square of the length; this takes far less than a second."""
    assert_exact(read_article(piece * 30_000, WIKI))


@pytest.mark.parametrize(
    ("wikitext", "links"),
    [
        ("a [[b| c  d ]]e", ["c  d e"]),
        ("[[wikt:x|y [[Z]]]] [[A]]", ["Z", "A"]),
        ("[[File:x|[[b]]]] [[fr:x]]\n[[ c ]]", ["c"]),
        ("[[x\n[[y]] z [[w]]s]] [[v]]", ["y", "ws", "v"]),
        ("[[:fr:p [[q]]|]]r [[s]]", ["q", "s"]),
        ("[[A|b [[C]] d]]", ["b C d"]),
    ],
)
def test_links_inside_of_brackets_keep_their_places(wikitext, links):
    article = read_article(wikitext, WIKI)
    assert [article.text[link.start : link.end] for link in article.links] == links
    assert_exact(article)


@pytest.mark.parametrize(
    ("wikitext", "lead"),
    [
        ("a [[b]] [[c|d]]s\n== H ==\ne", "a b ds\n"),
        ("== H ==\na", ""),
        ("a [[b]]", "a b"),
        ("= a\nb = c\n===x===", "= a\nb = c\n"),
        ("[[File:x|y]][[a|b&amp;]] [[c\n== z ==\n]]d\n==b==", "b& c\n"),
        ("", ""),
    ],
)
def test_lead(wikitext, lead):
    article = read_article(wikitext, WIKI)
    assert article.text[: article.lead].lstrip("= ") == lead.lstrip("= ")


@given(
    st.lists(st.sampled_from(["[[", "]]", "|", "A", "bc ", "\n", "File:", ":", "fr:", "wikt:", "== h ==\n", "&amp;"]))
)
def test_any_brackets(parts):
    article = read_article("".join(parts), WIKI)
    assert_exact(article)
    assert 0 <= article.lead <= len(article.text)


def assert_exact(article):
    """Links are where they say, in order, none across another."""
    end = 0
    for link in article.links:
        assert end <= link.start <= link.end <= len(article.text)
        shown = article.text[link.start : link.end]
        assert shown == shown.strip()
        assert shown.split() == link.text.split()
        end = link.end
