"""`spacy luke annotate`: tables in the terminal, and the page."""

import json
import re
from html import unescape
from html.parser import HTMLParser

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from spacy.tokens import Doc, Span
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import LinkCandidate, LinkedMention, Relation, register_extensions, set_linked
from spacy_luke.pages.drawing import SLOT, draw
from spacy_luke.pages.findings import Link, read_findings
from spacy_luke.pages.page import render_page
from spacy_luke.pipelines.conversion import build_pipeline
from tests.pipelines import QUERY, QUESTION, make_pipeline
from tests.tiny import SENTENCES, make_checkpoint

VOID = {"meta", "br", "path"}


class Tags(HTMLParser):
    """Raises where tags do not match."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def check_page(html):
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert "http://" not in html.replace("http://www.w3.org/", "")  # nothing is fetched
    assert "https://" not in html
    return tags.seen


def run(*arguments):
    result = CliRunner().invoke(spacy_app, ["luke", "annotate", *map(str, arguments)])
    return result, " ".join(result.output.split())


@pytest.fixture(params=[None, "sc"])
def entities(request, tmp_path):
    """A luke_ner of noise, what it finds, and its folder."""
    nlp = build_pipeline(make_checkpoint(labels=["NIL", "PER", "LOC"]), config={"spans_key": request.param})
    docs = list(nlp.pipe(SENTENCES))
    nlp.to_disk(tmp_path / "pipeline")
    (tmp_path / "text.txt").write_text(SENTENCES[0], encoding="utf8")
    return docs, request.param, tmp_path


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    folder = tmp_path_factory.mktemp("everything")
    make_pipeline().to_disk(folder / "pipeline")
    (folder / "text.txt").write_text("\n\n".join(SENTENCES), encoding="utf8")
    return folder


@pytest.fixture
def relation_doc():
    """One sentence with relations, one without, and characters that HTML and displaCy must not take for theirs."""
    register_extensions()
    text = (
        "Ada & <Co> of Accra {x} met Nadia Haddad , who had left a very small town by the sea , in London . It rained ."
    )
    words = text.split()
    doc = Doc(spacy.blank("en").vocab, words=words, sent_starts=[i in (0, 24) for i in range(len(words))])
    doc.set_ents([Span(doc, 0, 3, "O<R>G"), Span(doc, 4, 5, "LOC"), Span(doc, 7, 9, "PER"), Span(doc, 22, 23, "LOC")])
    doc.ents[2]._.luke_types = {"person": 0.9, "<b>": 0.6}
    company, accra, nadia, london = doc.ents
    doc._.luke_relations = [
        Relation(company, accra, "located_in", 0.8),
        Relation(nadia, london, "lives in <b>", 0.7),
        Relation(london, nadia, "has", 0.6),
        Relation(doc[0:1], london, "inside", 0.5),
    ]
    return doc


def test_entities(entities):
    docs, key, folder = entities
    page = folder / "new" / "page.html"
    result, text = run(folder / "pipeline", folder / "text.txt", "--output", page, "--rows", 1)
    assert result.exit_code == 0, result
    found = list(docs[0].ents if key is None else docs[0].spans[key])
    found.sort(key=lambda span: (span.start, -span.end))
    assert f"{len(docs[0])} words, {len(found)} entit" in text
    assert re.search(rf"{found[0].text} {found[0].label_} (0\.\d\d\d|1\.000)", text)
    assert len(found) == 1 or f"and {len(found) - 1} more" in text
    html = page.read_text(encoding="utf8")
    check_page(html)
    assert html.startswith("<!DOCTYPE html>")
    assert found[0].label_ in html


def test_everything(everything, tmp_path):
    questions = ("--question", QUESTION, "-q", "Why?", "--query", QUERY)
    page = tmp_path / "page.html"
    result, text = run(everything / "pipeline", everything / "text.txt", "--output", page, *questions, "--rows", 500)
    assert result.exit_code == 0, result.output
    for header in ("entity label score types", "head relation tail score", "question answer score"):
        assert header in text
    assert re.search(r"\d+ entit\w+, \d+ with types, [\d,]+ relations?, 3 questions", text)
    html = page.read_text(encoding="utf8")
    seen = check_page(html)
    assert {"mark", "svg", "figure", "table"} <= set(seen)
    for asked in (QUESTION, QUERY):
        assert asked in html
    again, _ = run(everything / "pipeline", everything / "text.txt", "--output", page, *questions)
    assert page.read_text(encoding="utf8") == html  # the same page for the same text


def test_a_key_says_what_is_right(everything, tmp_path):
    key = tmp_path / "key.json"
    name = SENTENCES[0].split()[0]
    entities = [{"name": name, "label": "PER", "mentions": [[0, len(name)]]}]
    key.write_text(json.dumps({"entities": entities, "relations": [], "properties": {}}), encoding="utf8")
    page = tmp_path / "page.html"
    result, text = run(everything / "pipeline", everything / "text.txt", "--key", key, "--output", page)
    assert result.exit_code == 0, result.output
    (verdict,) = re.findall(r"entities (\d+ of \d+ that are shown are right \(\d+%\); \d of the 1 in the text)", text)
    assert verdict in page.read_text(encoding="utf8")
    (tmp_path / "other.txt").write_text("Nobody", encoding="utf8")
    result, text = run(everything / "pipeline", tmp_path / "other.txt", "--key", key)
    assert result.exit_code == 1
    assert "key of another text" in text


def test_links(relation_doc):
    """In tables and page: id, title, description, score; NIL is none."""
    company, accra, nadia, london = relation_doc.ents
    relation_doc.set_ents([company, accra, Span(relation_doc, 7, 9, "PER", kb_id="NIL"), _linked(london, "Q<84>")])
    set_linked(relation_doc, [LinkedMention(london.start_char, london.end_char, [LinkCandidate("Q<84>", 0.5, 0.875)])])
    about = Link("Q<84>", title="London & all", description="capital <b>", url="https://a.org/Q84?x=1&y")
    found = read_findings(relation_doc, describe=lambda name: about)
    assert [x.link and x.link.score for x in found.mentions] == [None, None, None, 0.875]
    assert "1 link" in found.counts()
    html = render_page(found, title="text")
    Tags().feed(html)
    assert '<a href="https://a.org/Q84?x=1&amp;y">Q&lt;84&gt;</a> London &amp; all' in html
    assert "capital &lt;b&gt;" in html
    assert "0.875" in html
    unsafe = read_findings(relation_doc, describe=lambda name: Link(name, url="javascript:alert(1)"))
    assert "javascript" not in render_page(unsafe, title="text")


def _linked(span, entity):
    return Span(span.doc, span.start, span.end, span.label_, kb_id=entity)


def test_no_luke_component(tmp_path):
    spacy.blank("en").to_disk(tmp_path / "blank")
    (tmp_path / "text.txt").write_text("Ada")
    result, text = run(tmp_path / "blank", tmp_path / "text.txt")
    assert result.exit_code == 1
    assert "with a component of spacy_luke" in text


@pytest.mark.parametrize(("option", "needed"), [("--question", "luke_qa"), ("--query", "luke_cloze")])
def test_questions_need_their_component(entities, option, needed):
    _, _, folder = entities
    result, text = run(folder / "pipeline", folder / "text.txt", option, QUERY)
    assert result.exit_code == 1
    assert f"{option} needs a {needed}" in text


def test_a_query_without_placeholder(everything):
    result, text = run(everything / "pipeline", everything / "text.txt", "--query", "Who?")
    assert result.exit_code == 1
    assert "@placeholder exactly once" in text


# ---- the page


def test_words_and_arcs(relation_doc):
    relations = relation_doc._.luke_relations
    words, arcs = draw(relation_doc, (0, 24), relations)
    shown = [word["text"] for word in words if word["text"]]
    assert shown[0] == "Ada & <Co>"  # one word for each mention, the outer of two that overlap
    assert "Nadia Haddad" in shown
    assert shown.count("…") == 1  # "had left a very small town by" is far from all of them, the last words are near
    assert "small" not in shown
    for relation, arc in zip(relations, arcs, strict=True):
        ends = [words[arc["start"]]["text"], words[arc["end"]]["text"]]
        wanted = [relation.head.text, relation.tail.text] if relation.head.text != "Ada" else [shown[0], "London"]
        assert ends == (wanted if arc["dir"] == "right" else wanted[::-1])
    middle = [i for i, word in enumerate(words) if word["text"]]
    for left, right in zip(middle, middle[1:]):  # no word is drawn over the next
        room = (right - left) * SLOT
        assert room >= (len(words[left]["text"]) + len(words[right]["text"])) / 2 * 7


def test_page_escapes(relation_doc):
    html = render_page(read_findings(relation_doc), title="a<b>.txt")
    check_page(html)
    assert "<b>" not in html
    assert "a&lt;b&gt;.txt" in html
    assert "lives in &lt;b&gt; 0.70" in html
    assert "O&lt;R&gt;G" in html
    assert "{x}" in html
    assert html.count("<svg") == 1  # only sentences that have relations
    assert "person 0.90" in html


def test_page_of_overlapping_entities(relation_doc):
    relation_doc.spans["sc"] = [Span(relation_doc, 0, 3, "ORG"), Span(relation_doc, 0, 1, "<b>")]
    relation_doc.spans["sc"].attrs["scores"] = [0.5, 0.25]
    found = read_findings(relation_doc, spans_key="sc", labels=["PER"])
    assert [(x.span.label_, x.score) for x in found.mentions] == [("ORG", 0.5), ("<b>", 0.25)]
    assert found.labels == ["PER", "ORG", "<b>"]
    html = render_page(found, title="text")
    check_page(html)
    assert "<b>" not in html


def test_typed_mentions_that_are_no_entities(relation_doc):
    span = relation_doc[6:7]
    span._.luke_types = {"action": 0.75}
    found = read_findings(relation_doc, typed=[span, relation_doc[9:10], relation_doc[4:5]])
    assert (span.text, None) in [(x.span.text, x.score) for x in found.mentions]
    assert len(found.mentions) == 5
    assert found.counts() == ["27 words", "5 entities", "2 with types", "4 relations"]


@pytest.mark.parametrize("sentences", [True, False])
def test_answers_in_their_text(sentences):
    register_extensions()
    nlp = spacy.blank("en")
    if sentences:
        nlp.add_pipe("sentencizer")
    doc = nlp("It rained. Ada & Nadia lived in London. It rained.")
    doc._.luke_questions = ["Where?", "Why <now>?"]
    doc.user_data["luke_answers"] = [[[32, 38, 0.9], [11, 14, 0.1]], [[0, 0, 1.0]]]
    html = render_page(read_findings(doc), title="text")
    check_page(html)
    text = unescape(html)
    before = "<p>Ada & Nadia" if sentences else "<p>It rained. Ada & Nadia"
    assert f"{before} lived in <mark>London</mark>." in text
    assert "or: Ada (0.10)" in text
    assert "The text does not say." in text
    assert "Why &lt;now&gt;?" in html


def test_nothing_found():
    register_extensions()
    doc = spacy.blank("en")("It rained.")
    html = render_page(read_findings(doc), title="text")
    check_page(html)
    assert "3 words · 0 entities" in html
