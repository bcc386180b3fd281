"""What a run has written, read again: the annotations of each text, in the order of the inputs."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ..pages.schema import AnnotatedText, read_forms
from ..stores.folder import StoreFolder
from .parquet import read_parquet_rows
from .repeated_ids import NONE_REPEATED, Repeated
from .run_folder import ERRORS, KIND, REPEATED, FailedText, PartCounts

_READERS: dict[str, Callable[[Path], Iterator[AnnotatedText]]] = {
    "jsonl": partial(read_forms, form=AnnotatedText),
    "parquet": read_parquet_rows,
}


class AnnotatedParts(StoreFolder):
    """The folder of a finished run. ValueError at `open` where it is not finished, not whole, or none."""

    kind = KIND

    @property
    def parts(self) -> list[PartCounts]:
        """What is counted of each part."""
        return list(self.manifest["parts"])

    @property
    def documents(self) -> int:
        """How many were annotated."""
        return sum(x["documents"] for x in self.parts)

    @property
    def repeated(self) -> Repeated:
        """Ids that several texts have."""
        found: Repeated = self.manifest.get(REPEATED, NONE_REPEATED)
        return found

    def files(self) -> list[Path]:
        """Of the parts, in order."""
        return [self.path / f"{x['name']}.{self.manifest['output']}" for x in self.parts]

    def texts(self) -> Iterator[AnnotatedText]:
        """All that was annotated, part by part. ValueError for .spacy, which holds Docs (spaCy's DocBin)."""
        output = self.manifest["output"]
        if output not in _READERS:
            raise ValueError(
                f"{self.path} has {output} files, but annotations are read from {' and '.join(_READERS)}. Read Docs by "
                "spaCy's DocBin, or write them again with another --format."
            )
        for path in self.files():
            yield from _READERS[output](path)

    def failed(self) -> Iterator[FailedText]:
        """The documents that failed."""
        with (self.path / ERRORS).open("rb") as lines:
            for line in lines:
                yield json.loads(line)
