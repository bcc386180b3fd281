"""The report as a file: everything is there, nothing comes from elsewhere, what users wrote is escaped."""

import re
import xml.etree.ElementTree as xml
from html.parser import HTMLParser

import pytest
import spacy
from spacy.cli._util import app as spacy_app
from spacy.tokens import Span
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.pipelines.evaluation import evaluate
from spacy_luke.readers.docbin import write_docbin
from spacy_luke.reports import charts
from spacy_luke.reports.charts import Bar, Line, bar_chart, line_chart, matrix_chart, standalone
from spacy_luke.reports.page import draw_page, pictures_of
from spacy_luke.reports.pictures import save_pictures
from spacy_luke.reports.report import make_report
from tests.pipelines import annotate, as_gold, make_pipeline

EVIL = '<script>alert("1")</script>'
EMPTY = {"meta", "br", "hr", "link", "img", "input"}


class Reader(HTMLParser):
    """Elements that are open; all that were; text."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two pipelines, and gold of which the first finds all but what was changed; a label and a text are hostile."""
    folder = tmp_path_factory.mktemp("report")
    nlp = make_pipeline()
    nlp.to_disk(folder / "first")
    other = make_pipeline(luke_ner={"none_bias": 3.0})
    other.to_disk(folder / "second")
    golds = [as_gold(doc) for doc in annotate(nlp)]
    gold = golds[0]
    gold.set_ents([*gold.ents[1:], Span(gold, gold.ents[0].start, gold.ents[0].end, EVIL)])
    write_docbin(golds, folder / "gold.spacy")
    return folder


@pytest.fixture(scope="module")
def report(folder):
    names = ["first", "second"]
    evaluations = [evaluate(spacy.load(folder / name), folder / "gold.spacy") for name in names]
    return make_report(names, EVIL, evaluations)


def test_all_is_in_it(report):
    page = draw_page(report)
    reader = read(page)
    text = " ".join(reader.text)
    for part in ("luke_ner: entities", "luke_relation: relations", "luke_typer: types", "luke_qa", "Errors", "PER"):
        assert part in text, part
    assert "chance alone" in text or "significant" in text
    assert "4 documents are few" in text
    figures = [tag for tag, _ in reader.tags if tag == "figure"]
    assert len(figures) == len(list(pictures_of(report))) >= 8


def test_answers_have_charts_and_errors(report):
    """Beside the official table; an error says the question, what was answered, and the gold."""
    text = " ".join(read(draw_page(report)).text)
    part = text[text.index("luke_qa: questions") :]
    assert "as the official script counts" in part
    assert "words of an answer" in part
    (one,) = (x for x in report.components if x.name == "luke_qa")
    assert [row.label for row in one.labels] == ["", "answer"] or [row.label for row in one.labels] == ["answer", ""]
    assert one.curve
    assert one.differences[0][1].first.value == 1.0


def test_nothing_runs_and_nothing_is_fetched(report):
    page = draw_page(report)
    reader = read(page)
    assert EVIL in "".join(reader.text)
    tags = {tag for tag, _ in reader.tags}
    assert not tags & {"script", "iframe", "link", "img", "object", "embed", "form"}
    assert [x for _, x in reader.tags if any(name.startswith("on") or name == "src" for name in x)] == []
    assert all(x["href"].startswith("#") for tag, x in reader.tags if tag == "a")
    assert "url(" not in page
    assert "@import" not in page
    policy = [x["content"] for tag, x in reader.tags if x.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_every_colour_is_one_of_the_page_in_light_and_dark(report):
    page = draw_page(report)
    light, dark = (set(re.findall(r"(--\w+):", part)) for part in page.split("@media (prefers-color-scheme: dark)", 1))
    used = set(re.findall(r"var\((--\w+)\)", page))
    assert used <= light
    assert used - {"--mark"} <= dark
    assert set(charts.LIGHT) <= light


def test_every_link_leads_somewhere(report):
    reader = read(draw_page(report))
    ids = {x["id"] for _, x in reader.tags if "id" in x}
    assert {x["href"][1:] for tag, x in reader.tags if tag == "a"} <= ids


CHARTS = {
    "lines": line_chart("a & b", [Line("<x>", [(0, 0.5), (1, 2.0)], dots=True), Line("y", [(0, 1)])], x="x", y="<y>"),
    "one point": line_chart("one", [Line("x", [(3, 0.5)])], x="x", y="y"),
    "bars": bar_chart("bars", [Bar("<b>", 0.5, 0.4, 0.6)]),
    "two bars": bar_chart("bars", [Bar("b", 0, 0, 0)], others=[Bar("b", 1, 1, 1)], names=["<a>", "b"]),
    "matrix": matrix_chart(
        "matrix", ["<a>", "b" * 50, ""], [[1, 2, 3], [0, 0, 0], [99_999, 0, 1]], rows="r", columns="c"
    ),
}


@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_whole(name):
    """Also by themselves: well-formed, with a title, no colour that only a page has, all inside the picture."""
    root = xml.fromstring(standalone(CHARTS[name]))
    assert "var(" not in standalone(CHARTS[name])
    assert root[0].tag.endswith("title")
    assert root[0].text
    _, _, width, height = map(float, root.get("viewBox").split())
    for element in root.iter():
        if "x" in element.attrib and "transform" not in element.attrib:
            assert 0 <= float(element.get("x")) <= width
            assert 0 <= float(element.get("y")) <= height


def test_pictures(report, tmp_path):
    resvg = pytest.importorskip("resvg_py")
    assert resvg
    written = save_pictures(pictures_of(report), tmp_path / "pictures")
    pngs = [path for path in written if path.suffix == ".png"]
    assert len(pngs) == len(written) / 2 >= 8
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pngs)


def test_command(folder, tmp_path):
    page = tmp_path / "made" / "report.html"
    words = [
        "luke",
        "evaluate",
        folder / "first",
        folder / "gold.spacy",
        "--html",
        page,
        "--against",
        folder / "second",
    ]
    result = CliRunner().invoke(spacy_app, [*map(str, words)])
    assert result.exit_code == 0, (result.output, result.exception)
    assert "in a browser to see the report" in " ".join(result.output.split())
    read(page.read_text())
    result = CliRunner().invoke(spacy_app, [*map(str, words[:4]), "--against", "x"])
    assert result.exit_code == 1
    assert "--against is of the report: give --html" in result.output
