"""Entity linking in WNED's XML (Guo and Barbosa, 2018): AIDA, MSNBC, AQUAINT, ACE2004, CWEB and WIKI."""

import html
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...stores.plain_text import not_utf8
from ..records import ENTITY_LABEL, Mention, Record
from .linking import REACH, find_near, title_of


class WnedMention(NamedTuple):
    """A mention of the XML; entity is a Wikipedia title with blanks, or NIL."""

    text: str
    entity: str
    offset: int


class WnedDocument(NamedTuple):
    """where: file and document, for messages."""

    where: str
    name: str
    mentions: list[WnedMention]


def read_wned_xml(path: str | Path) -> list[WnedDocument]:
    """The documents of an XML file in its order, each with its mentions by offset; those without any too.

    Raises ValueError for what is no such XML, naming the document, and where there is no document.
    """
    path = Path(path)
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"{path}: expected the XML of WNED in UTF-8, but {error}.") from None
    documents = []
    for element in root:
        name = element.get("docName")
        if element.tag != "document" or not name:
            raise ValueError(f"{path}: expected <document docName=...> elements, but got <{element.tag}>.")
        where = f"{path}, document {name!r}"
        mentions = [_read_mention(f"{where}, annotation {i}", item) for i, item in enumerate(element)]
        documents.append(WnedDocument(where, name, sorted(mentions, key=lambda mention: mention.offset)))
    if not documents:
        raise ValueError(f"{path}: expected <document> elements, but there are none.")
    return documents


def _read_mention(where: str, item: ElementTree.Element) -> WnedMention:
    text, offset = item.findtext("mention"), (item.findtext("offset") or "").strip()
    if not text or not text.strip() or not offset.isdecimal():
        raise ValueError(
            f"{where}: expected <mention> with text and <offset> with a number, but got {text!r} and {offset!r}."
        )
    return WnedMention(text, title_of(item.findtext("wikiName")), int(offset))


def read_wned(path: str | Path) -> Iterator[Record]:
    """Documents with their text, which stands in files named after them in the folder RawText beside the XML.

    The mention of a title-less annotation (MSNBC has 83), or of the title NIL (ACE2004), is NIL. A mention is where its
    text stands nearest to its offset; the note of the record counts those that had to be moved, by a byte order mark
    or an escape such as `&amp;` in the text. ValueError where it does not stand within 40 characters.
    """
    path = Path(path)
    documents = read_wned_xml(path)
    folder = path.parent / "RawText"
    if not folder.is_dir():
        raise ValueError(
            f"{path}: expected the texts in the folder {folder}, but it is not there. AIDA's are those of CoNLL-2003: "
            "use the format aida with the CoNLL files, and this one as its links."
        )
    for document in documents:
        text = _read_text(document, folder / document.name)
        mentions, moved = [], 0
        for mention in document.mentions:
            start, end = _find(document, text, mention)
            moved += start != mention.offset
            mentions.append(Mention(start, end, ENTITY_LABEL, kb_id=mention.entity))
        notes = {"mentions found beside their offset": moved} if moved else {}
        yield Record(document.where, text=text, mentions=mentions, links=True, notes=notes)


def _read_text(document: WnedDocument, path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"{document.where}: expected its text at {path}, but there is no such file.")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {not_utf8(error, path)}") from None


def _find(document: WnedDocument, text: str, mention: WnedMention) -> tuple[int, int]:
    for form in (mention.text, html.escape(mention.text, quote=False)):
        start = find_near(text, form, mention.offset)
        if start is not None:
            return start, start + len(form)
    raise ValueError(
        f"{document.where}: expected the mention {mention.text!r} at character {mention.offset} of its text or within "
        f"{REACH} of it, but there is {text[mention.offset : mention.offset + len(mention.text)]!r}."
    )
