"""How files with columns are laid out, and the names of layouts that are well known."""

from dataclasses import dataclass, fields, replace
from typing import Any

from .schemes import SCHEMES


@dataclass(frozen=True)
class ColumnLayout:
    """How a file is laid out. Columns count from 0, negative ones from the end."""

    word_column: int = 0
    tag_columns: tuple[int, ...] = (-1,)  # several: layers of nested mentions
    scheme: str = "auto"  # auto, IOB1, IOB2, BIOES, BILOU; named ones demand valid sequences (decode_tags)
    delimiter: str | None = None  # None: runs of blanks and tabs
    documents: str | int = "docstart"  # marks "docstart" or "newdoc"; "file"; or a number of sentences
    comments: str | None = None  # what comment lines begin with; None: there are none
    id_column: int | None = None  # CoNLL-U ids: 3-4 (a multiword token) and 8.1 (an empty word) are not words
    misc_column: int | None = None  # CoNLL-U MISC: SpaceAfter=No; None: where the blanks stood is unknown
    brackets: bool = False  # mentions from GUM's Entity= in misc_column, instead of from tag_columns

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise ValueError(f"scheme must be one of {SCHEMES}, but it is {self.scheme!r}.")
        is_number = isinstance(self.documents, int) and not isinstance(self.documents, bool) and self.documents > 0
        if self.documents not in ("docstart", "newdoc", "file") and not is_number:
            raise ValueError(
                "documents must be 'docstart', 'newdoc', 'file', or a number of sentences from 1, "
                f"but it is {self.documents!r}."
            )
        if self.documents == "newdoc" and self.comments is None:
            raise ValueError("documents = 'newdoc' needs the comments that hold the marks: set comments to '#'.")
        if self.brackets and self.misc_column is None:
            raise ValueError("brackets are read from the column misc_column, but it is not set.")

    @property
    def nested(self) -> bool:
        """Whether mentions may overlap, so that doc.ents cannot hold them."""
        return self.brackets or len(self.tag_columns) > 1


_CONLLU = ColumnLayout(word_column=1, delimiter="\t", documents="newdoc", comments="#", id_column=0)
COLUMN_LAYOUTS = {
    "columns": ColumnLayout(),
    "conll2003": ColumnLayout(),
    "wnut": ColumnLayout(delimiter="\t", documents=1),
    "genia": ColumnLayout(tag_columns=(1, 2, 3, 4), delimiter="\t", documents=1),
    "conllu": _CONLLU,
    "gum": replace(_CONLLU, misc_column=9, brackets=True),
}


def layout_of(format: str, **changes: Any) -> ColumnLayout:
    """The layout of a named format; settings that are not None replace its own."""
    if format not in COLUMN_LAYOUTS:
        raise ValueError(f"format must be one of {sorted(COLUMN_LAYOUTS)}, but it is {format!r}.")
    known = {f.name for f in fields(ColumnLayout)}
    if unknown := sorted(set(changes) - known):
        raise ValueError(f"Unknown settings {unknown} of a column file; known are {sorted(known)}.")
    changes = {name: value for name, value in changes.items() if value is not None}
    if "tag_columns" in changes:
        changes["tag_columns"] = tuple(changes["tag_columns"])
    return replace(COLUMN_LAYOUTS[format], **changes)
