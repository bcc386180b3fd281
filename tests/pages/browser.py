"""A real browser for the tests of pages: Chromium, driven by Playwright; tests skip, and say why, where it is not."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
AXE = [ROOT / "output" / "browser" / "node_modules" / "axe-core" / "axe.min.js"]


def start_browser():
    """Yields the browser."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: make browser installs it")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    with api.sync_playwright() as playwright:
        if path is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("needs Chromium: apt-get install chromium, or playwright install chromium")
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


def read_axe() -> str:
    """The code of axe-core, which looks for what keeps people with disabilities out."""
    given = os.environ.get("SPACY_LUKE_AXE")
    path = next((x for x in ([Path(given)] if given else AXE) if x.is_file()), None)
    if path is None:
        pytest.skip("needs axe-core: make browser fetches it, or SPACY_LUKE_AXE names its axe.min.js")
    return path.read_text(encoding="utf8")


class Tab:
    """A page in a browser, and what it complained of. Nothing of it may ask the network."""

    def __init__(self, browser, *, width=1280, height=800, dark=False, phone=False):
        self.context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            has_touch=phone,
            is_mobile=phone,
            reduced_motion="reduce",
            accept_downloads=True,
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(6000)
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def close(self):
        self.context.close()


def wait(page, condition):
    """Until a condition holds; `wait_for_function` is what the page's policy forbids."""
    for _ in range(100):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(condition)
