"""MediaWiki's SQL dumps of pages and of links between languages."""

import gzip
from pathlib import Path

import pytest

from spacy_luke.wikipedia.interwiki import read_interwiki
from spacy_luke.wikipedia.sql_dumps import read_rows

PAGE = (
    "-- MySQL dump\nDROP TABLE IF EXISTS `page`;\n"
    "INSERT INTO `page` VALUES (7,0,'Ada_Lovelace',0,0.5,NULL),"
    "(8,0,'L\\'Oréal_(a,_b)',0,0.1,'x'),(9,1,'Ada',0,0.1,'');\n"
    "INSERT INTO `page` VALUES (10,0,'Back\\\\slash;',1,0.25,NULL);\n"
)
LINKS = (
    "INSERT INTO `langlinks` VALUES (7,'de','Ada Lovelace'),(7,'zh-min-nan','Ada (1815)'),(8,'fr','L\\'Oréal, S.A.'),"
    "(9,'de','Diskussion:Ada'),(10,'de',''),(99,'de','Nobody');\n"
)


def write(folder, *, links=LINKS, page=PAGE) -> Path:
    for table, text in (("langlinks", links), ("page", page)):
        (folder / f"enwiki-20261101-{table}.sql.gz").write_bytes(gzip.compress(text.encode()))
    return folder / "enwiki-20261101-langlinks.sql.gz"


def test_rows(tmp_path):
    write(tmp_path)
    assert list(read_rows(tmp_path / "enwiki-20261101-page.sql.gz", "page")) == [
        ("7", "0", "Ada_Lovelace", "0", "0.5", "NULL"),
        ("8", "0", "L'Oréal_(a,_b)", "0", "0.1", "x"),
        ("9", "1", "Ada", "0", "0.1", ""),
        ("10", "0", "Back\\slash;", "1", "0.25", "NULL"),
    ]


def test_links_between_languages(tmp_path):
    """Of articles alone; a page that is not there, and an empty title, join nothing."""
    assert list(read_interwiki(write(tmp_path))) == [
        [("en", "Ada Lovelace"), ("de", "Ada Lovelace"), ("zh-min-nan", "Ada (1815)")],
        [("en", "L'Oréal (a, b)"), ("fr", "L'Oréal, S.A.")],
    ]


def test_what_is_damaged(tmp_path):
    path = write(tmp_path, links=LINKS[:-12] + "\n")
    with pytest.raises(ValueError, match=r"langlinks.sql.gz, line 1: expected rows of `langlinks` up to a semicolon"):
        list(read_interwiki(path))
    path = write(tmp_path, links="-- nothing\n")
    with pytest.raises(ValueError, match="expected a dump of MediaWiki's table `langlinks`"):
        list(read_interwiki(path))
    (tmp_path / "enwiki-20261101-page.sql.gz").unlink()
    with pytest.raises(ValueError, match=r"expected enwiki-20261101-page.sql.gz beside it"):
        list(read_interwiki(path))
