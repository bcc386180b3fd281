"""Annotations as tables of Parquet: a row a text, the columns those of `AnnotatedText`, lists and objects inside of
them, fields of records as JSON. pyarrow is of the extra `parquet`."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, TracebackType, UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel
from spacy.tokens import Doc

from ..pages.schema import AnnotatedText
from .input_formats import import_parquet

_ROWS = 1000  # of a group, which is in memory at once
_FIELDS = "fields"  # which have no types that are known
_PLAIN = {str: "string", int: "int64", float: "float64"}


class ParquetWriter:
    """A table of a part, written by groups of rows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        self._schema = arrow_schema()
        self._table = import_parquet().ParquetWriter(self._path, self._schema, compression="zstd")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._table.close()

    def check(self, doc: Doc, form: AnnotatedText) -> None:
        pass

    def write(self, doc: Doc, form: AnnotatedText) -> None:
        row = form.model_dump()
        self._rows.append({**row, _FIELDS: json.dumps(row[_FIELDS], ensure_ascii=False)})
        if len(self._rows) == _ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow

        if self._rows:
            self._table.write_table(pyarrow.Table.from_pylist(self._rows, schema=self._schema))
            self._rows = []


def read_parquet_rows(path: Path) -> Iterator[AnnotatedText]:
    with import_parquet().ParquetFile(path) as table:
        for batch in table.iter_batches(batch_size=_ROWS):
            for row in batch.to_pylist():
                yield AnnotatedText.model_validate({**row, _FIELDS: json.loads(row.get(_FIELDS) or "{}")})


def arrow_schema() -> Any:
    """The schema of the tables, made of `AnnotatedText`."""
    import_parquet()
    import pyarrow

    return pyarrow.schema(_fields(AnnotatedText))


def _fields(model: type[BaseModel]) -> list[Any]:
    import pyarrow

    return [
        pyarrow.field(name, _type(field.annotation), nullable=_may_be_none(field.annotation))
        for name, field in model.model_fields.items()
    ]


def _type(annotation: Any) -> Any:
    import pyarrow

    inner = [x for x in get_args(annotation) if x is not NoneType]
    if get_origin(annotation) in (Union, UnionType):
        return _type(inner[0])
    if get_origin(annotation) in (Literal, dict):
        return pyarrow.string()
    if get_origin(annotation) is list:
        return pyarrow.list_(pyarrow.field("element", _type(inner[0]), nullable=False))
    if get_origin(annotation) is tuple:
        return pyarrow.list_(pyarrow.field("element", _type(inner[0]), nullable=False), len(inner))
    if issubclass(annotation, BaseModel):
        return pyarrow.struct(_fields(annotation))
    return getattr(pyarrow, _PLAIN[annotation])()


def _may_be_none(annotation: Any) -> bool:
    return NoneType in get_args(annotation)
