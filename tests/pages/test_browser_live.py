"""The page of the service in Chromium: a text is typed, sent, and what is found is shown."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from spacy_luke.pages.page import fill_page
from spacy_luke.pages.schema import as_form
from tests.pages.browser import Tab, wait
from tests.pages.shown import hostile_findings, long_findings

pytestmark = pytest.mark.slow


@pytest.fixture
def address():
    """A stand-in for the service: it finds the same in whatever it is sent, and refuses what begins with "Fail"."""
    form = as_form(hostile_findings())
    live = {"annotate": "annotate", "most": 1000, "asks": True}
    page = fill_page(as_form(long_findings(0)), title="live", live=live)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(200, page if self.path == "/" else "", "text/html; charset=utf-8")

        def do_POST(self):
            document = json.loads(self.rfile.read(int(self.headers["content-length"])))["documents"][0]
            if document["text"].startswith("Fail"):
                return self.reply(422, json.dumps({"error": {"code": "x", "message": "<b>no</b>", "where": None}}))
            assert document["questions"] == ["Where?", "Why?"]
            self.reply(200, f'{{"documents":[{form.model_dump_json()}]}}')

        def reply(self, status, text, kind="application/json"):
            data = text.encode("utf8")
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *message):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_text_that_is_typed(chromium, address):
    tab = Tab(chromium)
    page = tab.page
    page.goto(address)
    page.get_by_label("A text").fill("Whatever")
    page.get_by_label("Questions about it").fill("Where?\n\nWhy?\n")
    page.get_by_role("button", name="Annotate").click()
    wait(page, "document.querySelectorAll('#text mark[id]').length === 11")
    assert page.locator("#answers article").count() == 3
    assert tab.complaints == []
    page.get_by_label("A text").fill("Fail")
    page.get_by_label("A text").press("Control+Enter")
    wait(page, "document.querySelector('#said').textContent.startsWith('That')")
    assert page.locator("#said").inner_text() == "That did not work: <b>no</b>"
    assert page.locator("#text mark[id]").count() == 11  # what was found before stays
    assert page.evaluate("window.hacked") is None
    tab.close()
