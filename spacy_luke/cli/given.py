"""What commands are given: own components and functions, an option of all that load or train a pipeline; of the gold
documents, options of `spacy luke evaluate`, `quantize` and `tune`; of the layout of column files, those of `corpus` and
`init-config`."""

from collections.abc import Sequence
from typing import Any

import typer

from ..annotations import Scope

CODE = typer.Option(
    None, "--code", "-c", exists=True, dir_okay=False, help="Python file with registered components and functions"
)
GOLD_SENTENCES = typer.Option(False, "--gold-sentences", help="Give the file's words and sentence boundaries")
GOLD_ENTITIES = typer.Option(False, "--gold-entities", help="Give the file's doc.ents, in the place of a luke_ner's")
GOLD_MENTIONS = typer.Option(
    False, "--gold-mentions", help='Give the mentions that have types as doc.spans["luke_mentions"]'
)
GOLD_PAIRS = typer.Option(False, "--gold-pairs", help="Give the pairs that are to be classified")
GOLD_LINKS = typer.Option(
    False, "--gold-links", help="Give the file's doc.ents without their entities, in the place of a luke_ner's"
)
WORD_COLUMN = typer.Option(None, help="Of column files: column of the words, from 0.")
TAG_COLUMN = typer.Option(None, help="Of column files: column of tags; repeat it for layers of nested tags.")
SCHEME = typer.Option(None, help="Of column files: auto, or a scheme of tags to insist on: IOB1, IOB2, BIOES, BILOU.")
DELIMITER = typer.Option(None, help="Of column files: what stands between columns; tab: \\t.")
DOCUMENTS = typer.Option(None, help="Of column files: docstart, newdoc, file, or a number of sentences, such as 1.")


def column_settings(
    word_column: int | None,
    tag_columns: Sequence[int] | None,
    scheme: str | None,
    delimiter: str | None,
    documents: str | None,
) -> dict[str, Any]:
    """Settings of `ColumnLayout` of the options above; None where one was not given."""
    return {
        "word_column": word_column,
        "tag_columns": tag_columns or None,
        "scheme": scheme,
        "delimiter": delimiter and delimiter.replace("\\t", "\t"),
        "documents": int(documents) if documents and documents.isdecimal() else documents,
    }


def read_entity_scope(labels: str | None, annotates: str | None) -> Scope:
    """What the gold says of entities. labels: "GOLD=OURS,GOLD=A|B,GOLD="; annotates: "LABEL,LABEL". Raises ValueError
    for anything else."""
    meanings: dict[str, frozenset[str] | None] = {}
    for part in filter(None, (x.strip() for x in (labels or "").split(","))):
        gold, sign, ours = (x.strip() for x in part.partition("="))
        if not sign or not gold:
            raise ValueError(f"--labels is GOLD=OURS,GOLD=OURS and so on, but it has {part!r}.")
        meanings[gold] = frozenset(x.strip() for x in ours.split("|")) if ours else None
    if annotates is None:
        return Scope(meanings=meanings)
    if not (named := frozenset(filter(None, (x.strip() for x in annotates.split(","))))):
        raise ValueError("--annotates is a list of labels, such as PER,LOC, but it has none.")
    return Scope(named, meanings)
