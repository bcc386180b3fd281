"""Names of pages out of a linked corpus: the rule of LUKE's appendix C, and the command."""

import json
from pathlib import Path

from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.aliases.build import build_store
from spacy_luke.aliases.store import AliasStore
from spacy_luke.corpus.from_dumps import build_from_dumps
from spacy_luke.corpus.linked_corpus import Paragraph
from spacy_luke.corpus.page_names import page_names
from spacy_luke.readers.datasets.page_names import PageNames
from spacy_luke.stores.parallel import Engine
from tests.corpus import written

WIKI = Path(__file__).parents[2] / "assets" / "wiki.xml"

TABLE = """name\tentity\tcount\toccurrences
Ada\tAda Lovelace\t5\t10
the\tThe (article)\t1\t1000
London\tLondon\t9\t10
LONDON\tLondon, Ontario\t9\t10
"""
PARAGRAPHS = [
    Paragraph("Ada Lovelace", "Ada, the London one.", [(0, 3, "Ada Lovelace"), (5, 8, "The (article)")]),
    Paragraph("Ada Lovelace", "London LONDON Ada", [(0, 6, "London"), (7, 13, "London, Ontario")]),
    Paragraph("B", "Ada", [(0, 3, "Ada Lovelace")]),
]


def test_pages_that_have_moved(tmp_path):
    """A title leads where its redirects do; addresses are read as titles."""
    build_from_dumps([WIKI], tmp_path / "corpus", engine=Engine(workers=1))
    build_store([WIKI], case="casefold").store.save(tmp_path / "mentions")
    titles = ["Vellmouth", "Vellmuth", "Old_Vellmouth", "Ada%20Thorne", "Nowhere"]
    squad = {"data": [{"title": title, "paragraphs": []} for title in titles]}
    (tmp_path / "squad.json").write_text(json.dumps(squad), encoding="utf8")
    paths = [str(tmp_path / name) for name in ("corpus", "mentions", "names.json")]
    result = CliRunner().invoke(app, ["luke", "page-names", *paths, "--squad", str(tmp_path / "squad.json")])
    assert result.exit_code == 0, result.output
    assert "1 pages are not there, so their passages get no entities: Nowhere" in " ".join(result.output.split())
    names = PageNames.read(tmp_path / "names.json")
    assert names.of("Vellmuth") == names.of("Vellmouth") == names.of("Old_Vellmouth")
    assert names.of("Vellmouth")
    assert names.of("Ada%20Thorne")


def test_rare_and_ambiguous_names_are_left_out(tmp_path):
    (tmp_path / "names.tsv").write_text(TABLE, encoding="utf8")
    build_store([tmp_path / "names.tsv"]).store.save(tmp_path / "mentions")
    corpus = written.write_corpus(lambda counts: iter(PARAGRAPHS), tmp_path / "corpus", language="en")
    aliases = AliasStore.open(tmp_path / "mentions")
    wanted = {"Ada Lovelace": {"Ada": "Ada Lovelace"}}
    assert page_names(corpus, aliases, titles=["Ada Lovelace", "C"]) == wanted
    everything = page_names(corpus, aliases, titles=["Ada Lovelace"], min_link_probability=0.0)
    assert everything == {"Ada Lovelace": {"Ada": "Ada Lovelace", "the": "The (article)"}}
    squad = {"data": [{"title": "Ada_Lovelace", "paragraphs": []}, {"title": "Nobody", "paragraphs": []}]}
    (tmp_path / "squad.json").write_text(json.dumps(squad), encoding="utf8")
    paths = [str(tmp_path / name) for name in ("corpus", "mentions", "out/names.json")]
    result = CliRunner().invoke(app, ["luke", "page-names", *paths, "--squad", str(tmp_path / "squad.json")])
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split())
    assert "1 names of 1 pages" in told
    assert "1 pages are not there, so their passages get no entities: Nobody" in told
    assert json.loads((tmp_path / "out/names.json").read_text(encoding="utf8")) == wanted
