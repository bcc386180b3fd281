"""`soft_textcat`: spaCy's textcat, learning shares of categories that sum to 1, where spaCy's takes 0 and 1 only.

With two categories it is how ERNIE learns the scores of STS-B (class BertForSTSB of thunlp/ERNIE).
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import srsly
from spacy.language import Language
from spacy.pipeline.textcat import DEFAULT_SINGLE_TEXTCAT_MODEL, TextCategorizer
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model
from thinc.types import Floats2d

from ..stores.digests import digest_file
from ..stores.plain_text import parse_json, read_text

_FILES = ("cfg", "model")  # that spaCy writes
_DIGESTS = "digests.json"
_LEEWAY = 1e-4  # sums are of single precision where Docs come from files


@Language.factory(
    "soft_textcat",
    assigns=["doc.cats"],
    default_config={
        "threshold": 0.0,
        "model": DEFAULT_SINGLE_TEXTCAT_MODEL,
        "scorer": {"@scorers": "spacy-luke.glue_scorer.v1", "task": "stsb"},
    },
    default_score_weights={"glue_score": 1.0},
)
def make_soft_textcat(
    nlp: Language,
    name: str,
    model: Model[list[Doc], list[Floats2d]],
    threshold: float,
    scorer: Callable[..., Any] | None,
) -> "SoftTextCategorizer":
    """spaCy's textcat that also learns shares of categories, as STS-B needs; its settings are those of spaCy's.

    threshold: as that of spaCy's textcat, of which nothing but its scorer makes use.
    scorer: a GLUE task's, or spaCy's.
    """
    return SoftTextCategorizer(nlp.vocab, model, name, threshold=threshold, scorer=scorer)


class SoftTextCategorizer(TextCategorizer):
    """spaCy's textcat with another check of the gold categories: numbers from 0 to 1 that sum to 1, or none at all.

    The loss stays: its gradient, softmax minus gold, is that of the cross entropy with soft labels. The threshold is
    that of the pipeline's config, also where a saved pipeline is loaded with another one. A Doc without words has the
    score 0 of each category, as spaCy has it where all Docs of a batch are such, whatever the other Docs are. On disk
    it has the digests of what spaCy writes, beside it.
    """

    def predict(self, docs: Iterable[Doc]) -> Any:
        docs = list(docs)
        some = [i for i, doc in enumerate(docs) if len(doc)]
        if not some or len(some) == len(docs):
            return super().predict(docs)
        scores_DL = self.model.ops.alloc2f(len(docs), len(self.labels))
        scores_DL[some] = super().predict([docs[i] for i in some])
        return scores_DL

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        (Path(path) / _DIGESTS).unlink(missing_ok=True)  # until what it is of is there
        super().to_disk(path, exclude=exclude)
        files = [Path(path) / name for name in _FILES if name not in exclude]
        srsly.write_json(Path(path) / _DIGESTS, {file.name: digest_file(file) for file in files})

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SoftTextCategorizer":
        _check_digests(Path(path), [name for name in _FILES if name not in exclude])
        threshold = self.cfg["threshold"]
        super().from_disk(path, exclude=exclude)
        self.cfg["threshold"] = threshold
        return self

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "SoftTextCategorizer":
        threshold = self.cfg["threshold"]
        super().from_bytes(bytes_data, exclude=exclude)
        self.cfg["threshold"] = threshold
        return self

    def _validate_categories(self, examples: Iterable[Example]) -> None:
        for i, example in enumerate(examples):
            cats = example.reference.cats
            if cats and (min(cats.values()) < 0 or abs(sum(cats.values()) - 1) > _LEEWAY):
                raise ValueError(
                    f"'{self.name}' expects categories from 0 to 1 that sum to 1, or none, but document {i} has {cats}."
                )


def _check_digests(folder: Path, names: Iterable[str]) -> None:
    """ValueError where a file is not the one that was saved; folders of earlier versions have no digests."""
    if not (folder / _DIGESTS).is_file():
        return
    try:
        digests = parse_json(read_text(folder / _DIGESTS))
    except ValueError as error:
        raise ValueError(f"{folder / _DIGESTS} is damaged ({error}). Copy or download it again.") from error
    for name in names:
        if not isinstance(digests, dict) or digests.get(name) != digest_file(folder / name):
            raise ValueError(
                f"{folder / name} is damaged: its digest is not the one in {_DIGESTS}. Copy or download it again."
            )
