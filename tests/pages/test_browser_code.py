"""The code of the page by itself, in Chromium."""

import json

import pytest

from spacy_luke.pages.page import MODULES, read_script

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def places(chromium):
    """Calls functions of places.js."""
    page = chromium.new_page()
    code = read_script(MODULES[: MODULES.index("places") + 1])
    yield lambda call: page.evaluate(f"() => {{ {code} return module_places.{call}; }}")
    page.close()


@pytest.mark.parametrize("text", ["", "abc", "😀a😀", "é\u0301 ok"])
def test_units(places, text):
    all_places = json.dumps(list(range(len(text) + 1)))
    got = places(f"unitsOf({json.dumps(text)}) && {all_places}.map(module_places.unitsOf({json.dumps(text)}))")
    assert got == [len(text[:i].encode("utf-16-le")) // 2 for i in range(len(text) + 1)]


def test_blocks_lose_nothing(places):
    text = "One. Two.\n\nThree. " * 30
    spans = [{"start": 5, "end": 300}, {"start": 310, "end": 312}]
    ends = [i + 1 for i, x in enumerate(text) if x == "."]
    blocks = places(f"cutInBlocks({json.dumps(text)}, {json.dumps(spans)}, {json.dumps(ends)}, 40)")
    assert "".join(text[x["start"] : x["end"]] for x in blocks) == text
    assert len(blocks) > 5
    assert not any(x["start"] < b["start"] < x["end"] for x in spans for b in blocks)
