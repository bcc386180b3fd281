"""Small stores, from tables and from a dump written here."""

import pytest

from spacy_luke.aliases.build import build_store

TABLE = [
    "name\tentity\tcount\toccurrences",
    "New York\tNew York City\t60\t200",
    "New York\tNew York (state)\t40\t200",
    "New York City\tNew York City\t30\t40",
    "York\tYork\t1\t200",
    "the\tThe (article)\t2\t1000",
    "AT&T\tAT&T\t5\t5",
]

DUMP = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" xml:lang="de">
  <siteinfo><namespaces>
    <namespace key="0" case="first-letter" /><namespace key="6" case="first-letter">Datei</namespace>
    <namespace key="14" case="first-letter">Kategorie</namespace>
  </namespaces></siteinfo>
  <page><title>Berlin</title><ns>0</ns><revision><text>{{Infobox|[[Hidden]]}}
'''Berlin''' is in [[Deutschland|Germany]]. The [[river]]s of Germany: [[Spree (river)|Spree]], [[spree]] and spree.
[[Datei:x.jpg|thumb|A [[caption]]]] [[Kategorie:City]]</text></revision></page>
  <page><title>Deutschland</title><ns>0</ns><redirect title="Germany" /><revision><text>#REDIRECT [[Germany]]</text></revision></page>
  <page><title>Germany</title><ns>0</ns><revision><text>[[Berlin]] is a city. [[BRD]]</text></revision></page>
  <page><title>BRD</title><revision><text>#WEITERLEITUNG [[Deutschland]]</text></revision></page>
  <page><title>Datei:x.jpg</title><ns>6</ns><revision><text>[[Nobody]]</text></revision></page>
  <page><title>Kategorie:City</title><revision><text>[[Nobody]]</text></revision></page>
</mediawiki>"""  # noqa: E501


@pytest.fixture
def table(tmp_path):
    """A file with the lines of a table."""

    def write(*lines, name="names.tsv"):
        path = tmp_path / name
        path.write_bytes(("\n".join(lines) + "\n").encode("utf8"))
        return path

    return write


@pytest.fixture
def store(table):
    return build_store([table(*TABLE)]).store


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_text(DUMP, encoding="utf8")
    return path
