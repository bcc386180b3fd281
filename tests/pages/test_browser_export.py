"""Files that the page saves."""

import csv
import io
import json
from pathlib import Path

import pytest

from spacy_luke.pages.schema import as_form
from tests.pages.shown import ATTACK, hostile_findings

pytestmark = pytest.mark.slow


def saved(page, name):
    page.locator("#export summary").click()
    with page.expect_download() as download:
        page.locator(f'[data-export="{name}"]').click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes().decode("utf8")


def test_export(open_page):
    page = open_page()
    form = as_form(hostile_findings())
    name, text = saved(page, "json")
    assert name.startswith("a_")
    assert name.endswith(".json")
    assert json.loads(text) == json.loads(form.model_dump_json())
    rows = list(csv.DictReader(io.StringIO(saved(page, "entities")[1], newline="")))
    assert [(int(x["start"]), int(x["end"])) for x in rows] == [(x.start, x.end) for x in form.entities]
    assert rows[4]["text"] == "'=HYPERLINK(1)"  # a spreadsheet would compute it
    assert rows[4]["label"] == ATTACK
    assert rows[3]["link"] == "Q<84>"
    page.get_by_role("button", name="PER 3").click()
    assert len(list(csv.DictReader(io.StringIO(saved(page, "entities")[1], newline="")))) == 8  # what is shown
    page.locator("#labels .quiet").click()
    rows = list(csv.DictReader(io.StringIO(saved(page, "relations")[1], newline="")))
    assert [(x["head"], x["relation"], x["tail"]) for x in rows] == [
        (x.head.text, x.label, x.tail.text) for x in form.relations
    ]
    rows = list(csv.reader(io.StringIO(saved(page, "answers")[1], newline="")))
    assert rows[1] == ["0", "Where <b>?", "1", *map(str, form.answers[0].places[0].model_dump().values())]
