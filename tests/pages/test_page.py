"""The page as a file: its data, its policy, its code. What it does in a browser is in test_browser.py."""

import json
import re
from base64 import b64decode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
import spacy

from spacy_luke.annotations import register_extensions
from spacy_luke.pages.answer_key import Judgement
from spacy_luke.pages.findings import read_findings
from spacy_luke.pages.page import BROWSER, EXPORT, IMPORT, MODULES, in_script, read_script, render_page
from spacy_luke.pages.schema import as_form
from tests.pages.shown import ATTACK, hostile_findings

VOID = {"meta", "input", "br"}
SOURCES = {path.name: path.read_text(encoding="utf8") for path in sorted(BROWSER.iterdir())}


class Page(HTMLParser):
    """Raises where tags do not match; keeps what scripts and styles have, and the attributes of all."""

    def __init__(self, html):
        super().__init__()
        self.open, self.seen, self.texts, self.policy = [], [], {}, ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.seen.append((tag, attrs))
        if tag not in VOID:
            self.open.append((tag, attrs))
        if attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]

    def handle_data(self, data):
        tag, attrs = self.open[-1] if self.open else ("", {})
        if tag in ("script", "style"):
            name = attrs.get("id", tag)
            self.texts[name] = self.texts.get(name, "") + data

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag


def test_data_are_those_of_the_schema():
    found = hostile_findings()
    page = Page(render_page(found, title=f"a {ATTACK}", pipeline="mine"))
    assert json.loads(page.texts["annotations"]) == json.loads(as_form(found, pipeline="mine").model_dump_json())
    data = json.loads(page.texts["page"])
    assert data["title"] == f"a {ATTACK}"
    assert data["labels"] == ["LOC", "PER", "O<R>G", ATTACK]


def test_nothing_of_users_is_html():
    html = render_page(hostile_findings(), title=ATTACK)
    page = Page(html)
    assert "img" not in {tag for tag, _ in page.seen}
    assert ATTACK not in html
    assert not any(name.startswith("on") for _, attrs in page.seen for name in attrs)
    assert not any(value and "javascript:" in value for _, attrs in page.seen for value in attrs.values())


def test_the_policy_names_what_is_there():
    page = Page(render_page(hostile_findings(), title="text"))
    rules = dict(rule.split(" ", 1) for rule in page.policy.split("; "))
    assert rules["default-src"] == rules["connect-src"] == rules["base-uri"] == "'none'"
    for kind in ("script", "style"):
        (digest,) = re.fullmatch(r"'sha256-(.+)'", rules[f"{kind}-src"]).groups()
        assert b64decode(digest) == sha256(page.texts[kind].encode("utf8")).digest()
    assert not any({"src", "style", "href"} & set(attrs) for tag, attrs in page.seen if tag != "a")


def test_judgement_is_in_the_data():
    found = hostile_findings()
    n = len(found.mentions)
    links = [None, None, None, False, *[None] * (n - 4)]
    judged = Judgement([True, False, None, *[True] * (n - 3)], [[]] * n, links, [False] * 5, [])
    data = json.loads(Page(render_page(found, title="text", judged=judged)).texts["page"])
    assert data["right"]["mentions"][:5] == [True, False, None, False, True]  # the fourth has a wrong link
    assert data["right"]["relations"] == [False] * 5
    assert data["verdict"][0][0] == "entities"


def test_nothing_found():
    register_extensions()
    page = Page(render_page(read_findings(spacy.blank("he")("שלום")), title="text"))
    assert json.loads(page.texts["annotations"])["entities"] == []
    assert json.loads(page.texts["page"])["direction"] == "rtl"


@pytest.mark.parametrize("data", ["<!--<script>", "</SCRIPT>", "a\u2028b & c", {"<b>": ["😀", None, 0.5]}])
def test_json_in_a_script(data):
    text = in_script(data)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == data


@pytest.mark.parametrize("name", [name for name in SOURCES if name.endswith(".js")])
def test_code_makes_no_html_of_texts(name):
    """And none of it runs what it was not, asks the network (but the service's page), or keeps anything."""
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc|localStorage|cookie"
    )
    assert re.findall(forbidden, SOURCES[name]) == []
    assert ("fetch(" in SOURCES[name]) == (name == "live.js")
    assert len(SOURCES[name].splitlines()) <= 350


def test_every_module_is_in_the_page():
    assert {name.removesuffix(".js") for name in SOURCES if name.endswith(".js")} == set(MODULES)
    script = read_script()
    assert not re.search(r"^\s*(import|export) ", script, re.MULTILINE)
    assert "</script" not in script
    assert "https://" not in script


def test_what_modules_import_is_there():
    for name in MODULES:
        for names, other in IMPORT.findall(SOURCES[f"{name}.js"]):
            exported = {x for _, x in EXPORT.findall(SOURCES[f"{other}.js"])}
            assert {x.strip() for x in names.strip("{}").split(",") if x.strip()} <= exported
