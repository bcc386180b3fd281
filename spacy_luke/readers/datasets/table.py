"""The formats of published data sets for typing, relations, linking, questions and classification, by name."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

from ..column_layouts import COLUMN_LAYOUTS
from ..records import Record, make_doc
from .aida import read_aida
from .brat import read_brat
from .conll04 import read_conll04
from .deep_ed import read_deep_ed
from .docred import read_docred
from .elevant import read_elevant
from .ernie import read_ernie_fewrel, read_ernie_tacred
from .fewrel import read_fewrel
from .glue import read_glue
from .gum import read_gum_names
from .kilt import read_kilt
from .knowledge_net import read_knowledge_net
from .label_studio import read_label_studio
from .litbank import read_litbank
from .nif import read_nif
from .open_entity import read_open_entity
from .pubtator import read_pubtator
from .record_cloze import read_record
from .scierc import read_scierc
from .semeval2010 import read_kbp37, read_semeval2010
from .squad import read_squad, read_squad_triples
from .tacred import read_tacred
from .tokens import read_tokens
from .ufet import read_ufet
from .wned import read_wned
from .zelda import read_zelda


@dataclass(frozen=True)
class Dataset:
    """A format: the function that reads it."""

    read: Callable[..., Iterator[Record]]
    has_text: bool = False  # real text, so that mentions may fall between words (align)
    titled: bool = False  # documents with titles, by which they are divided into parts
    suffix: str = ""  # of the files with the annotation, each beside its text, .txt; a folder may be given for them

    @property
    def settings(self) -> tuple[str, ...]:
        """Those that the function takes besides the path."""
        return tuple(signature(self.read).parameters)[1:]


DATASETS = {
    "aida": Dataset(read_aida),
    "brat": Dataset(read_brat, has_text=True, titled=True, suffix=".ann"),
    "conll04": Dataset(read_conll04),
    "deep_ed": Dataset(read_deep_ed),
    "docred": Dataset(read_docred, titled=True),
    "elevant": Dataset(read_elevant, has_text=True),
    "ernie_fewrel": Dataset(read_ernie_fewrel, has_text=True),
    "ernie_tacred": Dataset(read_ernie_tacred, has_text=True),
    "fewrel": Dataset(read_fewrel),
    "figer": Dataset(read_open_entity, has_text=True),
    "glue": Dataset(read_glue),
    "gum_names": Dataset(read_gum_names, titled=True),
    "kbp37": Dataset(read_kbp37, has_text=True),
    "kilt": Dataset(read_kilt, has_text=True),
    "knowledge_net": Dataset(read_knowledge_net, has_text=True, titled=True),
    "label_studio": Dataset(read_label_studio, has_text=True),
    "litbank": Dataset(read_litbank, titled=True, suffix=".ann"),
    "nif": Dataset(read_nif, has_text=True),
    "open_entity": Dataset(read_open_entity, has_text=True),
    "pubtator": Dataset(read_pubtator, has_text=True, titled=True),
    "record": Dataset(read_record, has_text=True),
    "scierc": Dataset(read_scierc),
    "semeval2010": Dataset(read_semeval2010, has_text=True),
    "squad": Dataset(read_squad, has_text=True),
    "squad_triples": Dataset(read_squad_triples, has_text=True),
    "tacred": Dataset(read_tacred),
    "tokens": Dataset(read_tokens),
    "ufet": Dataset(read_ufet),
    "wned": Dataset(read_wned, has_text=True),
    "zelda": Dataset(read_zelda, has_text=True),
}


def read_dataset(path: str | Path, *, format: str, **settings: Any) -> Iterator[Record]:
    """Records of a file in a named format of a data set. Settings that are None are those of the format; others than it
    takes are an error. Of jsonl and columns the message names what reads them."""
    if format not in DATASETS:
        raise ValueError(f"format must be one of {sorted(DATASETS)}, but it is {format!r}{_read_elsewhere(format)}.")
    settings = {name: value for name, value in settings.items() if value is not None}
    if unknown := sorted(set(settings) - set(DATASETS[format].settings)):
        raise ValueError(f"The format {format} has no use for {', '.join(unknown)}.")
    return DATASETS[format].read(Path(path), **settings)


def _read_elsewhere(format: str) -> str:
    """What reads a format that is no data set's; "" for no format at all."""
    reader = "JsonlCorpus" if format == "jsonl" else "ColumnCorpus" if format in COLUMN_LAYOUTS else None
    if reader is None:
        return ""
    return (
        f', which is not of one data set: spaCy\'s registry.readers.get("spacy-luke.{reader}.v1") reads it, and `spacy '
        f"luke corpus --format {format}` makes it a .spacy file"
    )


def dataset_docs(
    nlp: Language,
    path: str | Path,
    *,
    format: str,
    spans_key: str | None = None,
    align: str = "split",
    overlaps: str = "error",
    counts: Counter[str] | None = None,
    **settings: Any,
) -> Iterator[Doc]:
    """Docs of a file in a named format, with all its gold annotation; see `records.make_doc` for the settings."""
    for record in read_dataset(path, format=format, **settings):
        yield make_doc(nlp, record, spans_key=spans_key, align=align, overlaps=overlaps, counts=counts)
