"""What items of a Wikidata dump say of a knowledge base's entities: read as they come, or by tasks of their own.

With an engine the dump is cut into files of lines, and each file is parsed by a task, in processes of this machine or
on a Ray cluster. What was done stays in a folder of work beside the knowledge base (`.NAME.items0.work`; the number is
that of the source) until it is built, so that a build that was killed goes on.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..stores.opening import open_source
from ..stores.parallel import Engine
from ..stores.work_folder import WorkFolder
from ..text.forms import distinct
from ..wikipedia.interwiki import NOT_LANGUAGES
from ..wikipedia.wikidata import id_of_claim, parse_items, text_of
from .record import ABOUT_NOTHING, About

LINES_SIZE = 64_000_000  # bytes of lines in a file, about
_HUMAN = "Q5"  # the item that persons are an instance (P31) of
_ALL = "mul"  # labels that are the same in all languages

Texts = Mapping[str, Any]  # by language


@dataclass(frozen=True)
class Wikidata:
    """language: whose labels and other names are names, several with commas between them, those that are the same in
    all languages ("mul") besides; the first that has a label, a description or a page gives the title, the description
    or the address. site: whose titles ("enwiki") become the ids, None: Q numbers."""

    language: str = "en"
    site: str | None = None

    def __post_init__(self) -> None:
        if not self.languages[:-1]:
            raise ValueError(f"Expected the code of a language, or several with commas, but got {self.language!r}.")

    @property
    def languages(self) -> list[str]:
        """In order, the one of all languages last."""
        codes = [code.strip() for code in self.language.split(",") if code.strip()]
        return [*dict.fromkeys(code for code in codes if code != _ALL), _ALL]


class Item(NamedTuple):
    """What a knowledge base takes of an item."""

    id: str
    about: About = ABOUT_NOTHING
    description: str = ""
    names: Sequence[str] = ()
    sitelinks: int = 0
    person: bool = False


class ItemFacts(NamedTuple):
    """What a line of a dump says. kind: "item"; "nameless", where `read_item` gives None; "redirect", of an item that
    was merged, told: into which; "other", such as properties; "damaged", told: why. line: its number."""

    line: int
    kind: str
    item: Item = Item("")
    told: str = ""


def read_item(data: dict[str, Any], wikidata: Wikidata) -> Item | None:
    """None for an item without a label in the languages, or without a page in the site."""
    languages, sitelinks = wikidata.languages, data.get("sitelinks") or {}
    labels, aliases = data["labels"] or {}, data.get("aliases") or {}
    names = [
        text["value"]
        for language in languages
        for text in (*([labels[language]] if language in labels else []), *aliases.get(language, []))
    ]
    label = next(_values(labels, languages), None)
    page, url = _page(sitelinks, wikidata)
    if label is None or (wikidata.site and not page):
        return None
    types = [id_of_claim(claim) for claim in (data.get("claims") or {}).get("P31", [])]
    about = About(page or label, data["id"], url, tuple(dict.fromkeys(filter(None, types))))
    return Item(
        id=page if wikidata.site else data["id"],
        about=about,
        description=next(_values(data.get("descriptions") or {}, languages), ""),
        names=distinct(names, case="exact"),
        sitelinks=len(sitelinks),
        person=_HUMAN in types,
    )


def _values(texts: Texts, languages: list[str]) -> Iterator[str]:
    return (texts[language]["value"] for language in languages if language in texts)


def _page(sitelinks: Texts, wikidata: Wikidata) -> tuple[str, str]:
    """The title of a page, and the language of its Wikipedia; "" where there is none."""
    sites = [wikidata.site] if wikidata.site else [f"{code.replace('-', '_')}wiki" for code in wikidata.languages[:-1]]
    for site in sites:
        title = sitelinks.get(site, {}).get("title", "")
        if title:
            is_wikipedia = site.endswith("wiki") and site not in NOT_LANGUAGES
            return title, site.removesuffix("wiki").replace("_", "-") if is_wikipedia else ""
    return "", ""


ODD = (KeyError, TypeError, AttributeError)  # what items raise that are not as expected


def tell_odd(path: Path, line: int, error: Exception) -> str:
    return f"{path}, line {line}: expected an item of Wikidata, but {error!r} is missing or odd."


def facts_of_items(path: Path, wikidata: Wikidata, *, progress: bool = False) -> Iterator[ItemFacts]:
    with open_source(path, progress=progress) as file, text_of(file) as lines:
        yield from _read_facts(path, enumerate(lines, 1), wikidata)


def _read_facts(path: Path, lines: Iterable[tuple[int, str]], wikidata: Wikidata) -> Iterator[ItemFacts]:
    for line, data in parse_items(path, lines):
        if isinstance(data, ValueError):
            yield ItemFacts(line, "damaged", told=str(data))
            continue
        try:
            if "redirect" in data:
                yield ItemFacts(line, "redirect", Item(data["entity"]), data["redirect"])
            elif data.get("type", "item") != "item":
                yield ItemFacts(line, "other")
            else:
                item = read_item(data, wikidata)
                yield ItemFacts(line, "nameless") if item is None else ItemFacts(line, "item", item)
        except ODD as error:
            yield ItemFacts(line, "damaged", told=tell_odd(path, line, error))


# ---- by tasks


def work_of_items(output: Path, source: int, path: Path, wikidata: Wikidata) -> WorkFolder:
    """The folder of work for the dump at `path`, a source of a knowledge base."""
    found = path.stat()
    dump = [str(path.resolve()), found.st_size, found.st_mtime_ns]
    plan = {"format": "items of Wikidata", "dump": dump, **asdict(wikidata), "size": LINES_SIZE}
    return WorkFolder(output.with_name(f"{output.name}.items{source}"), plan)


def facts_by_tasks(
    work: WorkFolder, path: Path, wikidata: Wikidata, engine: Engine, *, progress: bool = False
) -> Iterator[ItemFacts]:
    """As `facts_of_items`."""
    files = work.run_one(write_lines, {"path": str(path), "progress": progress}, name="stage")
    tasks = [{"path": str(path), "lines": file, "wikidata": asdict(wikidata)} for file in files]
    for name in work.run(parse_lines, tasks, name="read", engine=engine, progress=progress):
        with gzip.open(work.path / name, "rt", encoding="utf8") as file:
            for row in file:
                line, kind, (id_, about, *others), told = json.loads(row)
                yield ItemFacts(line, kind, Item(id_, About.from_line(about), *others), told)


def write_lines(folder: Path, name: str, stage: dict[str, Any]) -> list[list[Any]]:
    """The task that cuts a dump into files of lines; of each its name and the number of its first line."""
    files: list[list[Any]] = []
    with open_source(Path(stage["path"]), progress=stage["progress"]) as source:
        line, text = 1, source.readline()
        while text:
            files.append([f"lines-{len(files):05d}.json.gz", line])
            size = 0
            with gzip.open(folder / files[-1][0], "wb", compresslevel=1) as file:
                while text and size < LINES_SIZE:
                    file.write(text)
                    size += len(text)
                    line, text = line + 1, source.readline()
    return files


def parse_lines(folder: Path, name: str, task: dict[str, Any]) -> str:
    """The task that parses a file of lines; the name of the file with what they say."""
    lines, first = task["lines"]
    with (
        gzip.open(folder / lines, "rb") as source,
        text_of(source) as texts,
        gzip.open(folder / f"{name}.jsonl.gz", "wt", compresslevel=1, encoding="utf8") as file,
    ):
        path = Path(task["path"])
        for fact in _read_facts(path, enumerate(texts, first), Wikidata(**task["wikidata"])):
            try:
                row = [*fact[:2], [fact.item.id, fact.item.about.to_line(), *fact.item[2:]], fact.told]
            except ODD as error:
                row = [fact.line, "damaged", ["", ABOUT_NOTHING.to_line()], tell_odd(path, fact.line, error)]
            file.write(json.dumps(row) + "\n")
    return f"{name}.jsonl.gz"
