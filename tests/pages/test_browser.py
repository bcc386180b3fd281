"""The page in Chromium: what is pressed and what is then seen. `make browser` has what it needs."""

import pytest
import spacy

from spacy_luke.annotations import register_extensions
from spacy_luke.pages.findings import read_findings
from spacy_luke.pages.page import render_page
from spacy_luke.pages.schema import as_form
from tests.pages.browser import Tab, read_axe, wait
from tests.pages.shown import ATTACK, TEXT, hostile_findings

pytestmark = pytest.mark.slow
SIZES = {"phone": (360, 740), "tablet": (820, 1100), "wide": (1440, 900)}


def shown_marks(page):
    return page.locator("#text mark[id]")


def texts(locator):
    return [" ".join(x.split()) for x in locator.all_inner_texts()]


def test_the_text_is_the_text(open_page):
    page = open_page()
    assert page.locator("#text").text_content() == TEXT
    assert page.locator("h1").text_content() == f"a {ATTACK}.txt"
    assert shown_marks(page).count() == 11
    marked = page.locator("#text mark:not(.to-be-continued, .goes-on)").all()
    assert len(marked) == 10
    found = {x.id: x.text for x in as_form(hostile_findings()).entities}
    for mark in marked:
        assert mark.text_content() == found[int(mark.get_attribute("data-mention"))]
    inner = page.locator("#text mark mark").first
    assert inner.text_content() == "Accra"  # of the University of Accra
    crossing = next(number for number, text in found.items() if text == "Accra wrote")
    parts = page.locator(f'[data-mention="{crossing}"]').all_text_contents()
    assert parts == ["Accra", " wrote"]  # it begins in another one and ends outside


@pytest.mark.parametrize("how", ["hover", "tap", "keyboard"])
def test_card(open_page, how):
    page = open_page(phone=how == "tap")
    card, mark = page.locator("#card"), page.locator("#m3")
    assert card.is_hidden()
    if how == "hover":
        mark.hover()
    elif how == "tap":
        mark.tap()
    else:
        page.locator("#m0").focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.id") == "m3"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "card"
    card.wait_for(state="visible")
    told = card.inner_text()
    for word in ("London", "LOC", "0.950", "London & all", f"capital {ATTACK}", "Q<84>", "0.875", "no known entity"):
        assert word in told
    assert card.locator("a").get_attribute("href") == "https://a.org/Q84?x=1&y"
    assert "lives in <b>" in told
    assert "mention 1 of 2" in told
    page.keyboard.press("Escape")
    assert card.is_hidden()
    if how == "keyboard":
        assert page.evaluate("document.activeElement.id") == "m3"


def test_an_address_that_is_no_address_is_no_link(open_page):
    page = open_page()
    page.locator("#m7").click()
    assert "javascript:window.hacked=1" in page.locator("#card").inner_text()
    assert page.locator("#card a").count() == 0
    assert page.locator('a[href^="javascript" i]').count() == 0


def test_cards_lead_to_other_mentions(open_page):
    page = open_page()
    page.locator("#m3").click()
    page.get_by_label("Next mention").click()
    assert page.evaluate("document.activeElement.id") == "m10"
    assert page.locator("mark.chosen").count() == 2


def test_filters(open_page):
    page = open_page()
    page.get_by_role("button", name="LOC 4").click()
    assert shown_marks(page).count() == 7
    assert "7 of 11 entities, 0 of 5 relations shown" in page.locator("#filtered").inner_text()
    page.locator("#labels .quiet").click()  # all
    assert shown_marks(page).count() == 11
    page.locator("#least").fill("0.65")
    wait(page, "document.querySelectorAll('#text mark[id]').length === 6")
    assert page.locator("#least-shown").inner_text() == "0.65"
    assert "2 of 5 relations" in page.locator("#filtered").inner_text()
    page.locator("#tab-relations").click()
    assert page.locator("#relation-table tbody tr").count() == 2
    assert page.locator("#text").text_content() == TEXT


def test_search(open_page):
    page = open_page()
    page.locator("#query").fill("nadia  HADDAD")
    wait(page, "document.querySelector('#matches').textContent === '2'")
    assert page.locator("#entities tbody tr").count() == 1
    page.locator("#query").press("Enter")
    assert page.locator("#matches").inner_text() == "1 of 2"
    page.locator("#query").press("Shift+Enter")
    assert page.locator("#matches").inner_text() == "2 of 2"
    assert page.evaluate("[...CSS.highlights.get('match')].map(String)") == ["Nadia Haddad", "Nadia Haddad"]
    page.locator("#query").fill("nothing (of [that")
    wait(page, "document.querySelector('#matches').textContent === 'none'")


def test_lists_lead_to_the_text(open_page):
    page = open_page()
    page.locator("#tab-entities").click()
    row = page.locator("#entities tbody tr", has_text="Nadia Haddad")
    assert texts(row)[0].startswith("Nadia Haddad PER")
    for wanted in ("m2", "m6", "m2"):
        row.get_by_role("button").click()
        assert page.evaluate("document.activeElement.id") == wanted
    page.locator("#tab-relations").click()
    page.locator("#relation-table").get_by_role("button", name="Accra").first.click()
    assert page.evaluate("document.activeElement.id") == "m1"
    assert page.evaluate("location.hash") == "#m1"


def test_answers(open_page):
    page = open_page()
    said = texts(page.locator("#answers article"))
    assert said[0].startswith("Where <b>? 😀 Ada & <Co> of Accra met")
    assert "or: Accra (0.10)" in said[0]
    assert said[1:] == ["Why? The text does not say. 1.000", "@placeholder rained. There is nothing to choose from."]
    page.get_by_role("button", name="Show in the text").click()
    assert page.evaluate("[...CSS.highlights.get('answer')].map(String)") == ["London"]


@pytest.mark.parametrize("size", SIZES)
def test_relations_as_arcs(open_page, size):
    """Each is drawn whole, in its figure, which has no scrollbars."""
    width, height = SIZES[size]
    page = open_page(width=width, height=height)
    page.locator("#tab-relations").click()
    figures = page.locator("#arcs figure")
    assert figures.count() == 2
    for figure in figures.all():
        figure.scroll_into_view_if_needed()
        figure.locator("path").first.wait_for(state="attached")
        inside = figure.evaluate(
            """(figure) => {
              const frame = figure.getBoundingClientRect();
              const outside = ({ left, right, top, bottom }) =>
                left < frame.left - 2 || right > frame.right + 2 || top < frame.top - 1 || bottom > frame.bottom + 1;
              const drawn = [...figure.querySelectorAll("path, text, .word-box")];
              const lost = drawn.filter((x) => outside(x.getBoundingClientRect())).map((x) => x.outerHTML);
              return [figure.scrollWidth <= figure.clientWidth + 1, lost];
            }"""
        )
        assert inside == [True, []]
    assert "Ada & <Co>, located_in, Accra: 0.80" in figures.first.get_attribute("aria-label")
    assert figures.first.locator("text").count() >= 4


def test_graph(open_page):
    page = open_page()
    page.locator("#tab-graph").click()
    nodes = page.locator("#graph .node")
    assert sorted(nodes.locator("text").all_text_contents()) == ["Accra", "Ada & <Co>", "London", "Nadia Haddad"]
    assert page.locator("#graph .edge").count() == 3  # two of one pair, in two directions, and one of another
    boxes = [x.bounding_box() for x in nodes.locator("rect").all()]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart = abs(a["x"] - b["x"]) >= (a["width"] + b["width"]) / 2 - 40 or abs(a["y"] - b["y"]) >= a["height"]
            assert apart
    first = page.locator("#graph svg").inner_html()
    nodes.filter(has_text="Nadia").focus()
    assert page.locator("#graph .node.faint").count() == 2
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "m2"
    page.get_by_label("Larger").click()
    page.reload()
    page.locator("#tab-graph").click()
    assert page.locator("#graph svg").inner_html() == first  # one graph has one picture


def test_a_phone_has_one_view_at_a_time(open_page):
    page = open_page(width=360, height=740, phone=True)
    text, side = page.locator("#text"), page.locator("#side")
    assert text.is_visible()
    assert side.is_hidden()
    for name in ("entities", "relations", "graph", "answers", "text"):
        page.locator(f"#tab-{name}").tap()
        assert page.locator(f"#{name}").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("#tab-entities").tap()
    page.locator("#entities").get_by_role("button", name="London").tap()
    assert text.is_visible()
    page.locator("#m3").tap()
    box = page.locator("#card").bounding_box()
    assert box["width"] == 360
    assert round(box["y"] + box["height"]) == 740


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_keeps_people_out(open_page, size, dark):
    """axe-core finds nothing against WCAG 2.2 AA, in any view."""
    axe = read_axe()
    width, height = SIZES[size]
    page = open_page(width=width, height=height, dark=dark)
    page.evaluate(axe)
    page.locator("#filters").evaluate("(x) => (x.open = true)")
    rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
    views = ["answers", "entities", "relations", "graph"] + (["text"] if size != "wide" else [])
    for view in views:
        page.locator(f"#tab-{view}").click()
        page.evaluate("scrollTo(0, 0)")
        check(page, rules, view)
    page.locator("#m3").click()
    check(page, rules, "card")
    page.keyboard.press("Escape")
    page.evaluate("scrollTo(0, 0)")
    page.locator("#export summary").click()
    check(page, rules, "menu")


def check(page, rules, view):
    found = page.evaluate("(rules) => axe.run(document, rules)", rules)["violations"]
    assert [(view, x["id"], [y["html"][:120] for y in x["nodes"]][:3]) for x in found] == []


def test_colors_can_be_chosen(open_page):
    page = open_page()
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.locator("#theme").click()
    assert page.evaluate(paper) == light
    page.locator("#theme").click()
    assert page.evaluate(paper) != light
    assert page.locator("#theme").inner_text() == "Colors: dark"


def test_fifty_thousand_words(open_page):
    """Only what is seen is drawn; all of it can be reached."""
    page = open_page("long")
    drawn = shown_marks(page).count()
    assert 0 < drawn < 1500  # of 10,000
    assert page.locator("#relation-table tr").count() < 200
    assert page.locator("#arcs figure").count() < 30
    assert len(page.locator("#text").text_content()) > 200_000
    page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
    wait(page, f"document.querySelectorAll('#text mark[id]').length > {drawn}")
    page.goto(f"{page.url}#m9999")
    wait(page, "document.activeElement.id === 'm9999'")
    assert page.locator("#m9999").text_content() == "Accra"
    page.locator("#query").fill("Monday")
    wait(page, "document.querySelector('#matches').textContent === '5,000'")
    page.locator("#before").click()
    assert page.locator("#matches").inner_text() == "5,000 of 5,000"
    page.get_by_role("button", name="PER 5,000").click()
    assert page.locator("#text mark[id]").count() < 3000


def test_nothing_found(chromium, tmp_path):
    register_extensions()
    (tmp_path / "page.html").write_text(render_page(read_findings(spacy.blank("he")("")), title="-"), encoding="utf8")
    tab = Tab(chromium)
    tab.page.goto((tmp_path / "page.html").as_uri())
    assert tab.page.locator("#entities").inner_text() == "There are no entities."
    assert tab.page.locator("#counts").inner_text() == "0 words · 0 entities"
    assert tab.page.locator("#tab-relations").is_hidden()
    assert tab.page.locator("#text").get_attribute("dir") == "rtl"
    assert tab.complaints == []
    tab.close()


def test_print_has_everything(open_page):
    page = open_page("long")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert shown_marks(page).count() == 10_000


@pytest.mark.parametrize("width", [1280, 390])
def test_edges_of_a_small_graph_say_their_relation(open_page, width):
    page = open_page(width=width, height=800)
    page.locator("#tab-graph").click()
    labels = page.locator("#graph .edge-label")
    assert labels.count() == 3
    assert all(label.is_visible() for label in labels.all())
