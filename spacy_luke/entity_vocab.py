"""The entity vocabulary: title (and language) <-> row of the entity table."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .stores.plain_text import parse_json, read_object, read_text, split_lines

SPECIAL = ("[PAD]", "[UNK]", "[MASK]", "[MASK2]")
_FILES = ("entity_vocab.json", "entity_vocab.jsonl", "entity_vocab.tsv")  # a .tsv cannot hold every title
_CONFIG, _KEY = "tokenizer_config.json", "entity_vocab"  # where transformers 5 writes it
_SPECIAL_OF_LANGUAGE = re.compile(r"[\w-]+:(\[(?:PAD|UNK|MASK|MASK2)\])")


def entity_name(title: str, language: str | None) -> str:
    """The name of an entity in a vocabulary: the title, or "language:title" as in mLUKE's entity_vocab.json."""
    return title if language is None else f"{language}:{title}"


def find_entity_file(folder: Path) -> Path | None:
    """The file with a checkpoint folder's entity vocabulary; None where there is none."""
    found = [folder / name for name in _FILES if (folder / name).exists()]
    if not found and (folder / _CONFIG).is_file() and _KEY in read_object(folder / _CONFIG):
        return folder / _CONFIG
    return found[0] if found else None


class EntityVocab:
    """Entity vocabulary: title (and language) <-> row.

    A row may have several names (one for each language, "en:Japan", "ja:日本"), and special entities are listed once
    for each language in some files. Which rows are special is read from the vocabulary: [MASK] is row 2 of LUKE and row 0
    of its lite checkpoints.

    names: (name, row) pairs; a name may repeat only with the same row. counts: occurrences of each row's entity in the
    training corpus, where known. Raises ValueError for a name with two rows, or without [MASK].
    """  # noqa: E501

    def __init__(self, names: Iterable[tuple[str, int]], *, counts: Sequence[int] | None = None) -> None:
        rows: dict[str, int] = {}
        size = 0
        for name, row in names:
            if rows.setdefault(name, row) != row:
                raise ValueError(f"Expected one row for each entity, but {name!r} has the rows {rows[name]} and {row}.")
            if row < 0:
                raise ValueError(f"Expected rows from 0 on, but {name!r} has the row {row}.")
            size = max(size, row + 1)
        if counts is not None and len(counts) != size:
            raise ValueError(f"Expected a count for each of {size} rows, but got {len(counts)}.")
        if size > 100 + 10 * len(rows):
            raise ValueError(
                f"Expected rows 0, 1, 2, ..., but {len(rows)} names leave most of {size} rows without one; "
                f"the row numbers are wrong."
            )
        self._rows = rows
        self._titles: list[str | None] = [None] * size
        for name, row in rows.items():
            if self._titles[row] is None:
                self._titles[row] = name
        self.counts: list[int] | None = None if counts is None else list(counts)
        self._special = _find_special(rows)
        if "[MASK]" not in self._special:
            raise ValueError(
                f"Expected the special entity [MASK] in the vocabulary of {size} rows, but it is not there; "
                f"its first entities are {self._titles[:5]}."
            )

    def __len__(self) -> int:
        """Rows of the entity table."""
        return len(self._titles)

    @property
    def mask_row(self) -> int:
        """The row of [MASK], which every vocabulary has."""
        return self._special["[MASK]"]

    @property
    def mask_rows(self) -> list[int]:
        """The rows of [MASK] and, where there is one, of [MASK2]."""
        return [row for name, row in self._special.items() if name in ("[MASK]", "[MASK2]")]

    @property
    def unk_row(self) -> int | None:
        """The row of [UNK], None where there is none."""
        return self._special.get("[UNK]")

    def special_rows(self) -> dict[str, int]:
        """Rows of those of [PAD], [UNK], [MASK], [MASK2] that the vocabulary has."""
        return dict(self._special)

    def row(self, title: str, *, language: str | None = None) -> int | None:
        """Row of an entity, None where it is unknown. Special entities have the same row in all languages."""
        if title in self._special:
            return self._special[title]
        return self._rows.get(entity_name(title, language))

    def titles(self) -> list[str | None]:
        """The first name of each row ("en:Japan" where there are languages), None for a row without a name."""
        return list(self._titles)

    def names(self) -> list[tuple[str, ...]]:
        """All names of each row."""
        names: list[list[str]] = [[] for _ in self._titles]
        for name, row in self._rows.items():
            names[row].append(name)
        return [tuple(row) for row in names]

    def restricted(self, rows: Sequence[int]) -> "EntityVocab":
        """A vocabulary of these rows only, renumbered 0, 1, ... in their order."""
        if wrong := [row for row in rows if not 0 <= row < len(self)]:
            raise ValueError(f"Expected rows of a vocabulary of {len(self)} entities, but got {wrong[0]}.")
        if len(set(rows)) != len(rows):
            raise ValueError("Expected each row once, but some are repeated.")
        new = {row: number for number, row in enumerate(rows)}
        kept = [(name, new[row]) for name, row in self._rows.items() if row in new]
        counts = None if self.counts is None else [self.counts[row] for row in rows]
        return EntityVocab(sorted(kept, key=lambda item: item[1]), counts=counts)

    def with_entity(self, title: str, *, language: str | None = None) -> "EntityVocab":
        """A vocabulary with one more entity, in a new last row (with a count of 0)."""
        name = entity_name(title, language)
        if name in self._rows:
            raise ValueError(f"Expected a new entity, but {name!r} is row {self._rows[name]} of the vocabulary.")
        counts = None if self.counts is None else [*self.counts, 0]
        return EntityVocab([*self._rows.items(), (name, len(self))], counts=counts)

    @classmethod
    def from_file(cls, path: str | Path) -> "EntityVocab":
        """Read entity_vocab.json (Hugging Face: {name: row}), .jsonl ({"id", "entities": [[title, language]], "count"},
        original mLUKE) or .tsv (title TAB count, row = line, original LUKE). A folder stands for the first of
        the three that it has, or for the tokenizer_config.json that transformers 5 writes the first into. ValueError
        names the line that is not as expected."""
        path = Path(path)
        if path.is_dir():
            found = find_entity_file(path)
            if found is None:
                raise ValueError(
                    f"Expected an entity vocabulary in {path} (one of {', '.join(_FILES)}; or {_CONFIG} with "
                    f"{_KEY!r}), but none is there."
                )
            path = found
        readers = {".json": _read_json, ".tsv": _read_tsv, ".jsonl": _read_jsonl}
        reader = _read_config if path.name == _CONFIG else readers.get(path.suffix)
        if reader is None:
            raise ValueError(f"Expected an entity vocabulary {', '.join(readers)}, but got {path}.")
        text = read_text(path)
        try:
            names, counts = reader(text)
            return cls(names, counts=counts)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def to_json(self) -> str:
        """Everything in one string; the same vocabulary gives the same string."""
        names = [row[0] if len(row) == 1 else list(row) for row in self.names()]
        return json.dumps({"version": 1, "names": names, "counts": self.counts}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "EntityVocab":
        """The reverse of `to_json`."""
        data = json.loads(text)
        if data.get("version") != 1:
            raise ValueError(f"Expected an entity vocabulary of version 1, but got version {data.get('version')!r}.")
        pairs = (
            (name, row)
            for row, names in enumerate(data["names"])
            for name in ([names] if isinstance(names, str) else names)
        )
        return cls(pairs, counts=data["counts"])

    def save_huggingface(self, folder: str | Path) -> Path:
        """Write entity_vocab.json ({name: row}, rows ascending) into a folder. Counts have no place there."""
        path = Path(folder) / "entity_vocab.json"
        rows = dict(sorted(self._rows.items(), key=lambda item: item[1]))
        rows.update({name: row for name, row in self._special.items() if name not in rows})
        path.write_bytes((json.dumps(rows, ensure_ascii=False, indent=2) + "\n").encode("utf8"))
        return path

    def save_jsonl(self, folder: str | Path) -> Path:
        """Write entity_vocab.jsonl, the original's, into a folder: a row a line, its count (0 where it is not known),
        its names without languages. Raises ValueError for a row without a name."""
        lines = []
        for row, names in enumerate(self.names()):
            if not names:
                raise ValueError(f"Expected a name for each row of the entity vocabulary, but row {row} has none.")
            count = 0 if self.counts is None else self.counts[row]
            lines.append(
                json.dumps({"id": row, "entities": [[x, None] for x in names], "count": count}, ensure_ascii=False)
            )
        path = Path(folder) / "entity_vocab.jsonl"
        path.write_bytes(("\n".join(lines) + "\n").encode("utf8"))
        return path


def _find_special(rows: dict[str, int]) -> dict[str, int]:
    special = {name: rows[name] for name in SPECIAL if name in rows}
    if len(special) < len(SPECIAL):
        for name, row in rows.items():
            if name.endswith("]") and (match := _SPECIAL_OF_LANGUAGE.fullmatch(name)):
                if special.setdefault(match[1], row) != row:
                    raise ValueError(f"Expected one row for {match[1]}, but found {special[match[1]]} and {row}.")
    return {name: special[name] for name in SPECIAL if name in special}


Names = tuple[list[tuple[str, int]], list[int] | None]


def _read_json(text: str) -> Names:
    return _read_rows(parse_json(text, object_pairs_hook=list)), None


def _read_config(text: str) -> Names:
    return _read_rows(dict(parse_json(text, object_pairs_hook=list)).get(_KEY)), None


def _read_rows(pairs: Any) -> list[tuple[str, int]]:
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        raise ValueError("Expected a json object from names to rows, but got something else.")
    for name, row in pairs:
        if type(row) is not int:
            raise ValueError(f"Expected a row number for {name!r}, but got {row!r}.")
    return sorted(pairs, key=lambda pair: pair[1])


def _read_tsv(text: str) -> Names:
    names, counts = [], []
    for row, line in enumerate(split_lines(text)):
        title, tab, count = line.rpartition("\t")
        if not tab or not count.isdecimal():
            raise ValueError(f"Expected title TAB count on line {row + 1}, but got {line!r}.")
        names.append((title, row))
        counts.append(int(count))
    return names, counts


def _read_jsonl(text: str) -> Names:
    names: list[tuple[str, int]] = []
    count_of: dict[int, int] = {}
    for number, line in enumerate(split_lines(text), start=1):
        try:
            row, entities, count = _read_item(parse_json(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f'Expected {{"id": 3, "entities": [["Japan", "en"]], "count": 5}} on line {number}, but got '
                f"{line[:100]!r} ({error!r})."
            ) from error
        if row in count_of:
            raise ValueError(f"Expected each id once, but line {number} has the id {row} again.")
        count_of[row] = count
        for title, language in entities:
            if title in SPECIAL and (title, row) not in names[-1:]:
                names.append((title, row))
            elif title not in SPECIAL:
                names.append((entity_name(title, language), row))
    size = max((row for _, row in names), default=-1) + 1
    if size > 100 + 10 * len(names):
        raise ValueError(f"Expected ids 0, 1, 2, ..., but {len(names)} names have ids up to {size - 1}.")
    return names, [count_of.get(row, 0) for row in range(size)]


def _read_item(item: Any) -> tuple[int, list[tuple[str, str | None]], int]:
    """Id, titles with their languages, count."""
    row, entities, count = item["id"], item["entities"], item.get("count", 0)
    if type(row) is not int or type(count) is not int or count < 0:
        raise ValueError(f"the id {row!r:.40} or the count {count!r:.40} is no whole number")
    pairs: list[tuple[str, str | None]] = []
    for pair in entities:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"{pair!r:.40} is no list of a title and its language")
        title, language = pair
        if not isinstance(title, str) or not isinstance(language, str | None):
            raise ValueError(f"{pair!r:.40} is no title and a language or null")
        pairs.append((title, language))
    return row, pairs, count
