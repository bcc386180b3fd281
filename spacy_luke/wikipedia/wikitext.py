"""Running text and links of an article's wikitext, as far as names need it: no templates, tables, references, files.

Malformed markup is common and never an error: brackets without a partner are left out.
"""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from string import punctuation
from typing import NamedTuple
from urllib.parse import unquote

from ..text.forms import letters_after

# The English names are understood in all languages.
_NAMESPACES = (
    "media special talk user wikipedia project file image mediawiki template help category portal book draft module "
    "topic timedtext gadget"
).split()
# Other projects; languages are told by their form.
_PROJECTS = (
    "wikt wiktionary s wikisource q wikiquote b wikibooks n wikinews v wikiversity voy wikivoyage species "
    "wikispecies commons c m meta metawikipedia d wikidata mw mediawikiwiki w wikipedia foundation wikimedia phab "
    "bugzilla incubator simple doi"
).split()
_COMMENT, _COMMENT_END = re.compile("<!--"), re.compile(r"-->|\Z")
_RAW, _RAW_END = re.compile(r"<!--|<nowiki\b[^<>]*(?<!/)>", re.IGNORECASE), re.compile(r"</nowiki\s*>", re.IGNORECASE)
_HIDE = 0xDC00  # halves of characters, which no text has, stand for punctuation that is no markup
_HIDDEN = str.maketrans({x: chr(_HIDE + ord(x)) for x in punctuation})
_IS_HIDDEN = re.compile("[\udc00-\udc7f]")
_DROPPED = (
    "ref|math|chem|gallery|timeline|code|pre|source|syntaxhighlight|score|imagemap|hiero|templatedata|graph|maplink|"
    "mapframe|inputbox|references"
)
_ELEMENT = re.compile(rf"<(/?)({_DROPPED})\b[^<>]*?(/?)>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_BRACES = re.compile(r"\{\{|\}\}|^[ \t:*#;]*\{\||^[ \t]*\|\}(?!\})", re.MULTILINE)
_BRACKETS = re.compile(r"\[\[|\]\]")
_EXTERNAL = re.compile(r"\[(?:https?:|ftps?:|mailto:|news:|irc:|//)[^\s\[\]]*[ \t]*([^\[\]\n]*)\]", re.IGNORECASE)
_BARE = re.compile(r"\bhttps?://[^\s\[\]<>]+")
_QUOTES = re.compile(r"'{2,}")
_SWITCH = re.compile(r"__[A-Z]+__")
_LINE = re.compile(r"^(?:[ \t]*[*#:;]+[ \t]*|=+[ \t]*(?=[^=]))|(?<![ \t=])[ \t]*=+[ \t]*$|^-{4,}", re.MULTILINE)
_HEADING = re.compile(r"^=+[ \t]*[^=\s].*=[ \t]*$", re.MULTILINE)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z-]+)?")
_INTERWIKI = re.compile(r"\[\[([a-z]{2,3}(?:-[a-z-]+)?):(?![ _])([^\n\[\]{}<>|#]+)\]\]")
_BAD_TARGET = re.compile("[\n\\[\\]{}<>|\udc00-\udc7f]")


class WikiLink(NamedTuple):
    """The text of a link with single blanks, the title that it leads to, and its characters [start, end) in the
    article's text, which begin and end with no blank."""

    text: str
    title: str
    start: int
    end: int


class Article(NamedTuple):
    """Text, a paragraph a line, and its links in order. lead: characters of the text before the first heading."""

    text: str
    links: list[WikiLink]
    lead: int


@dataclass(frozen=True)
class Wiki:
    """What a dump says about its wiki: names of the namespaces in lower case; whether titles begin with a capital; the
    language's code; the wiki's own name ("enwiki")."""

    namespaces: frozenset[str] = frozenset(_NAMESPACES)
    capital: bool = True
    language: str | None = None
    site: str | None = None

    @classmethod
    def of(
        cls, namespaces: Iterable[str], *, capital: bool, language: str | None = None, site: str | None = None
    ) -> "Wiki":
        names = frozenset([*_NAMESPACES, *(name.lower() for name in namespaces if name)])
        return cls(names, capital, language, site)

    def title(self, target: str) -> str:
        """The title in the form that pages have: no section, blanks for underscores, a capital at the beginning."""
        target = unquote(target) if "%" in target else target
        target = " ".join(target.partition("#")[0].replace("_", " ").split())
        return target[:1].upper() + target[1:] if self.capital else target


def read_article(wikitext: str, wiki: Wiki = Wiki()) -> Article:
    """Text and links of an article. Links of files, categories and other languages are not shown and so not there."""
    text = _without_braces(_without_elements(_without_comments(wikitext)))
    text = _SWITCH.sub("", _QUOTES.sub("", _TAG.sub("", text)))
    text = _BARE.sub("", _EXTERNAL.sub(r"\1", text))
    heading = _HEADING.search(text)
    lead = text[: heading.start()] if heading else text
    parts = [_LINE.sub("", part) for part in (lead, text[len(lead) :])]
    parts[0] = html.unescape(parts[0])
    article = _read_links(parts[0] + html.unescape(parts[1]), wiki, len(parts[0]))
    links = [link._replace(text=_shown(link.text)) for link in article.links]
    return article._replace(text=_shown(article.text), links=links)


def read_language_links(wikitext: str, wiki: Wiki = Wiki()) -> list[tuple[str, str]]:
    """Languages and titles of the pages in other languages that an article names, as articles did until 2013."""
    found = []
    for match in _INTERWIKI.finditer(wikitext):
        prefix, title = match[1], " ".join(match[2].replace("_", " ").split())
        if title and prefix not in wiki.namespaces and prefix not in _PROJECTS:
            found.append((prefix, title))
    return found


def _without_comments(text: str) -> str:
    """The text without comments. What is between <nowiki> and its end is text: its punctuation is hidden from all that
    reads markup, until `_shown` brings it back."""
    kept, end, opening = [], 0, _RAW
    while match := opening.search(text, end):
        is_comment = match.group() == "<!--"
        closing = (_COMMENT_END if is_comment else _RAW_END).search(text, match.end())
        if closing is None:  # and so no further <nowiki> has an end
            opening = _COMMENT
            continue
        kept.append(text[end : match.start()])
        if not is_comment:
            kept.append(html.unescape(text[match.end() : closing.start()]).translate(_HIDDEN))
        end = closing.end()
    return "".join([*kept, text[end:]])


def _shown(text: str) -> str:
    return _IS_HIDDEN.sub(lambda match: chr(ord(match.group()) - _HIDE), text)


def _without_elements(text: str) -> str:
    """The text without <ref> and the like and what they hold; of one that is never closed only the tag goes."""
    tags = [(match, match.group(2).lower()) for match in _ELEMENT.finditer(text)]
    last_end = {name: match.start() for match, name in tags if match.group(1)}
    kept, end, inside = [], 0, ""
    for match, name in tags:
        closing, alone = match.group(1), match.group(3)
        if inside:
            if closing and name == inside:
                end, inside = match.end(), ""
            continue
        kept.append(text[end : match.start()])
        end = match.end()
        if not closing and not alone and last_end.get(name, -1) > match.start():
            inside = name
    return "".join([*kept, text[end:]])


def _without_braces(text: str) -> str:
    """The text without {{templates}} and {| tables |}, also nested; a brace without a partner stays."""
    opened: list[tuple[int, bool]] = []
    holes: list[tuple[int, int]] = []
    for match in _BRACES.finditer(text):
        token = match.group().strip(" \t:*#;")
        if token in ("{{", "{|"):
            opened.append((match.start(), token == "{|"))
            continue
        is_table = token == "|}"
        while opened and opened[-1][1] != is_table and is_table:
            opened.pop()  # a template that was left open inside of a table
        if opened and opened[-1][1] == is_table:
            start, _ = opened.pop()
            while holes and holes[-1][0] >= start:
                holes.pop()
            holes.append((start, match.end()))
    kept, end = [], 0
    for start, stop in holes:
        kept.append(text[end:start])
        end = stop
    return "".join([*kept, text[end:]])


def _read_links(text: str, wiki: Wiki, lead: int) -> Article:
    """lead: characters of `text` before the first heading."""
    parts: list[str] = []
    links: list[WikiLink] = []
    opened: list[tuple[int, int, int]] = []  # how many parts, links and characters there were at each [[
    end = size = 0
    shorter = lead  # the lead without its brackets
    for match in _BRACKETS.finditer(text):
        part = text[end : match.start()]
        parts.append(part)
        size += len(part)
        if end <= lead <= match.start():
            shorter = size - (match.start() - lead)
        end = match.end()
        if match.group() == "[[":
            opened.append((len(parts), len(links), size))
        elif opened:
            n_parts, n_links, start = opened.pop()
            inside = "".join(parts[n_parts:])
            first, shown, title = _read_link(inside, wiki)
            if shown is None:  # a file with its caption, a category, another language
                del parts[n_parts:], links[n_links:]
                size = start
                continue
            if title is not None:
                trail = letters_after(text, end)
                shown, end = shown + text[end:trail], trail
                links[n_links:] = _link_of(shown, title, start)
            elif first or len(shown) < len(inside):
                links[n_links:] = _moved(links[n_links:], by=first, start=start, end=start + len(shown))
            parts[n_parts:] = [shown]
            size = start + len(shown)
    parts.append(text[end:])
    if end <= lead:
        shorter = size + lead - end
    whole = "".join(parts)
    return Article(whole, links, min(shorter, len(whole)))


def _link_of(shown: str, title: str, start: int) -> list[WikiLink]:
    text = shown.strip()
    start += len(shown) - len(shown.lstrip())
    return [WikiLink(" ".join(text.split()), title, start, start + len(text))]


def _moved(links: list[WikiLink], *, by: int, start: int, end: int) -> list[WikiLink]:
    """Links inside of a text that is no link, after `by` characters at its beginning went."""
    moved = [link._replace(start=link.start - by, end=link.end - by) for link in links]
    return [link for link in moved if start <= link.start and link.end <= end]


def _read_link(inside: str, wiki: Wiki) -> tuple[int, str | None, str | None]:
    """What of "target|text" is shown (None: nothing) and where in it that begins, and the title of the article that it
    leads to (None: no article)."""
    target, bar, shown = inside.partition("|")
    first = len(target) + 1
    if not shown.strip():
        shown = target.lstrip(" :")
        first = len(target) - len(shown)
    if _BAD_TARGET.search(target):
        return 0, inside, None
    colon = target.lstrip().startswith(":")
    target = target.lstrip(" :")
    prefix, found, rest = target.partition(":")
    prefix = prefix.strip().replace("_", " ")
    if found and prefix.lower() in wiki.namespaces:
        is_shown = colon or prefix.lower() in ("wikipedia", "user", "special", "help")
        return first, shown if is_shown else None, None
    if "\n" in shown.strip():
        return 0, inside, None
    if found and not rest.startswith((" ", "_")):
        if prefix.lower() in _PROJECTS:
            return first, shown, None
        if _LANGUAGE.fullmatch(prefix):
            return first, shown if colon or bar else None, None
    title = wiki.title(target)
    return first, shown, title or None
