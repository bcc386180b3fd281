"""Pages that are open in a browser."""

import os
from pathlib import Path

import pytest

from spacy_luke.pages.page import render_page
from tests.pages.browser import Tab, start_browser
from tests.pages.shown import ATTACK, hostile_findings, long_findings

SHOTS = os.environ.get("SPACY_LUKE_SHOTS")  # a folder for pictures of what is tested
chromium = pytest.fixture(scope="session", name="chromium")(start_browser)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    (folder / "hostile.html").write_text(render_page(hostile_findings(), title=f"a {ATTACK}.txt"), encoding="utf8")
    (folder / "long.html").write_text(render_page(long_findings(50_000), title="long.txt"), encoding="utf8")
    return folder


@pytest.fixture
def open_page(chromium, folder, request):
    """Opens a page; in the end nothing was complained of, nothing asked of the network, and no attack has run."""
    tabs = []

    def open_page(name="hostile", place="", **settings):
        tab = Tab(chromium, **settings)
        tabs.append(tab)
        tab.page.goto(f"{(folder / name).with_suffix('.html').as_uri()}{place}")
        return tab.page

    yield open_page
    for tab in tabs:
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            tab.page.screenshot(path=f"{SHOTS}/{request.node.name.replace('/', '_')}.png")
        assert tab.complaints == []
        assert [url for url in tab.requests if not url.startswith(("file:", "blob:"))] == []
        assert tab.page.evaluate("window.hacked") is None
        tab.close()
