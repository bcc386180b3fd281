"""What `make docs` does to links and docstrings, without MkDocs: that the site is whole, its own build says."""

import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

SITE = Path(__file__).parents[1] / "docs" / "_site"


@pytest.fixture
def hooks(monkeypatch):
    monkeypatch.setitem(sys.modules, "mkdocs", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "mkdocs.exceptions", SimpleNamespace(PluginError=ValueError))
    monkeypatch.setitem(sys.modules, "mkdocs.structure", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "mkdocs.structure.files", SimpleNamespace(File=None))
    return SimpleNamespace(**runpy.run_path(str(SITE / "hooks.py")))


@pytest.fixture
def as_markdown(monkeypatch):
    monkeypatch.setitem(sys.modules, "griffe", SimpleNamespace(Extension=object, Object=object))
    return runpy.run_path(str(SITE / "docstrings.py"))["as_markdown"]


def page(name):
    return SimpleNamespace(file=SimpleNamespace(src_uri=name))


@pytest.mark.parametrize(
    ("here", "written", "wanted"),
    [
        ("index.md", "[how](../CONTRIBUTING.md#a-page)", "[how](contributing.md#a-page)"),
        ("results/index.md", "[NER](../../benchmarks/results/speed.md)", "[NER](tables/speed.md)"),
        ("tasks/ner.md", "[mode](../concepts/attention.md)", "[mode](../concepts/attention.md)"),
        ("contributing.md", "[map](docs/architecture.md)", "[map](architecture.md)"),
        ("results/benchmarks.md", "[NER](results/speed.md)", "[NER](tables/speed.md)"),
        ("index.md", "[reader](../spacy_luke/readers/conll.py)", "reader"),
        ("index.md", "[paper](https://aclanthology.org/P19-1139/)", "[paper](https://aclanthology.org/P19-1139/)"),
        ("index.md", "[above](#words)", "[above](#words)"),
        ("index.md", "![drawn](img/nil.svg)", "![drawn](img/nil.svg)"),
        ("index.md", "[`Span._.x[0]`](../CHANGELOG.md)", "[`Span._.x[0]`](changelog.md)"),
        ("index.md", "```python\nf[a](../b)\n```", "```python\nf[a](../b)\n```"),
    ],
)
def test_links(hooks, here, written, wanted):
    assert hooks.on_page_markdown(written, page(here), None, None) == wanted


def test_a_link_to_nothing(hooks):
    with pytest.raises(ValueError, match=r"docs/index\.md leads to \.\./GONE\.md, which is not there"):
        hooks.on_page_markdown("[gone](../GONE.md)", page("index.md"), None, None)


def test_no_page_takes_the_place_of_another(hooks):
    """docs/results/ready.md once was overwritten by the table of the same name."""
    made = list(hooks.MADE.values())
    assert len(set(made)) == len(made)
    assert [x for x in made if (SITE.parent / x).exists()] == []
    files = SimpleNamespace(get_file_from_path=lambda path: path == "changelog.md", append=lambda file: None)
    hooks.on_files.__globals__["File"] = SimpleNamespace(generated=lambda *_, **__: None)
    with pytest.raises(ValueError, match=r"CHANGELOG\.md would take the place of docs/changelog\.md"):
        hooks.on_files(files, None)


def test_notebooks_are_pages(hooks):
    cells = [("markdown", "# Title\n\nText."), ("code", "a = 1\nb = 2"), ("markdown", "More.")]
    text = json.dumps({"cells": [{"cell_type": kind, "source": x.splitlines(keepends=True)} for kind, x in cells]})
    assert hooks.as_page(text, "notebooks/x.ipynb") == (
        "# Title\n\n*The notebook `notebooks/x.ipynb` of the repository.*\n\nText.\n\n"
        "```python\na = 1\nb = 2\n```\n\nMore.\n"
    )
    written = hooks.on_page_markdown("[it](../notebooks/graph.ipynb)", page("index.md"), None, None)
    assert written == "[it](notebooks/graph.md)"


@pytest.mark.parametrize("tag", ['<script src="https://cdn.org/a.js">', "<link rel=x href='//fonts.org/b'>"])
def test_nothing_comes_from_the_network(hooks, tag):
    with pytest.raises(ValueError, match=r"index\.md takes something from the network"):
        hooks.on_post_page(f"<head>{tag}</head>", page("index.md"), None)
    hooks.on_post_page('<script src="assets/a.js"></script><a href="https://spacy.io">', page("index.md"), None)


def test_the_form_stands_in_the_page(hooks):
    """Rules and script, of which nothing ends the element that they stand in."""
    html = hooks.on_page_content(f"<p>a</p>{hooks.FORM}", page("howto/init-config.md"), None, None)
    assert html.startswith('<p>a</p><div id="quickstart"></div><script>const RULES = {')
    assert html.count("</script>") == 1
    assert "</" not in html.split("<script>")[1].removesuffix("</script>")
    assert hooks.FORM in (SITE.parent / "howto" / "init-config.md").read_text(encoding="utf8")
    assert hooks.on_page_content("<p>a</p>", page("index.md"), None, None) == "<p>a</p>"


@pytest.mark.parametrize(
    ("text", "names", "wanted"),
    [
        ("Reads a file.", ["path"], "Reads a file."),
        (
            "Reads.\n\npath: the file, or\nits folder. limit, skip: at most; seed: of draws",
            ["path", "limit", "skip", "seed"],
            "Reads.\n\n- `path`: the file, or its folder.\n- `limit`, `skip`: at most\n- `seed`: of draws",
        ),
        (
            "Reads. path: the file. RETURNS: rows.\n\nMore: nothing.",
            ["path"],
            "Reads.\n\n- `path`: the file.\n\n**Returns** rows.\n\nMore: nothing.",
        ),
        ("path: a file. Raises ValueError for none.", ["path"], "- `path`: a file.\n\nRaises ValueError for none."),
        ("RETURNS: (N, 2).", [], "**Returns** (N, 2)."),
        ("other: no parameter", ["path"], "other: no parameter"),
    ],
)
def test_docstrings(as_markdown, text, names, wanted):
    assert as_markdown(text, names) == wanted
