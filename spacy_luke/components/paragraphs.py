"""`paragraph_sentencizer`: sentence boundaries by blank lines, headings and lists too, for any pipeline."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from ..annotations import get_sentence_starts, set_sentence_starts
from ..stores.atomic import write_atomically
from ..text.lines import line_starts, sentence_starts
from .settings import changed_settings, standing_changes


@Language.factory(
    "paragraph_sentencizer",
    assigns=["token.is_sent_start", "doc.sents"],
    default_config={
        "punct_chars": None,
        "full_stops": True,
        "overwrite": False,
        "scorer": {"@scorers": "spacy.senter_scorer.v1"},
    },
    default_score_weights={"sents_f": 1.0, "sents_p": 0.0, "sents_r": 0.0},
)
def make_paragraph_sentencizer(
    nlp: Language,
    name: str,
    punct_chars: list[str] | None,
    full_stops: bool,
    overwrite: bool,
    scorer: Callable[..., Any] | None,
) -> "ParagraphSentencizer":
    """Ends sentences at blank lines, before the lines of a list, after headings and other lines that end early, and as
    spaCy's sentencizer does at full stops.

    punct_chars: words that are full stops; null: those of spaCy's `sentencizer`.
    full_stops: whether sentences end at full stops too.
    overwrite: whether boundaries that are there give way to its own.
    scorer: of the boundaries.
    """
    return ParagraphSentencizer(
        name, punct_chars=punct_chars, full_stops=full_stops, overwrite=overwrite, scorer=scorer
    )


class ParagraphSentencizer(Sentencizer):  # type: ignore[misc]  # spaCy's has no types
    """Ends sentences at blank lines, before the lines of a list, after headings and other lines that end early (see
    `line_starts`), and as spaCy's sentencizer does at full stops. White space belongs to the sentence before it.

    After a `senter` or a parser, or with boundaries that the Doc brings, it only adds those of the lines: none is taken
    away, and words whose boundary is known get none for a full stop before them.

    punct_chars: words that end sentences; null: those of spaCy's sentencizer.
    full_stops: whether words without a boundary get one for the full stop before them.
    overwrite: whether boundaries that are there give way to its own.

    Settings are those of the pipeline's config, also where a saved pipeline is loaded with another one; what was
    changed on the component itself counts where the config says what it said before.
    """

    def __init__(
        self,
        name: str = "paragraph_sentencizer",
        *,
        punct_chars: Sequence[str] | None = None,
        full_stops: bool = True,
        overwrite: bool = False,
        scorer: Callable[..., Any] | None = None,
    ):
        super().__init__(name, punct_chars=punct_chars, overwrite=overwrite, scorer=scorer)
        self.full_stops = full_stops
        self._configured = self._settings()

    def _settings(self) -> dict[str, Any]:
        return {
            "punct_chars": sorted(self.punct_chars),
            "full_stops": self.full_stops,
            "overwrite": self.overwrite,
        }

    def _stored(self) -> dict[str, Any]:
        return {"changed": changed_settings(self._configured, self._settings())}

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        stored: bytes = srsly.msgpack_dumps(self._stored())
        return stored

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "ParagraphSentencizer":
        return self._take(srsly.msgpack_loads(bytes_data))

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write PATH.json, as spaCy's does."""
        with write_atomically(Path(path).with_suffix(".json")) as temporary:
            srsly.write_json(temporary, self._stored())

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "ParagraphSentencizer":
        return self._take(srsly.read_json(Path(path).with_suffix(".json")))

    def _take(self, stored: dict[str, Any]) -> "ParagraphSentencizer":
        """Earlier files have all settings, which say no more than the config does."""
        for name, now in standing_changes(stored.get("changed", {}), self._configured).items():
            setattr(self, name, set(now) if name == "punct_chars" else now)
        return self

    def predict(self, docs: Iterable[Doc]) -> list[np.ndarray]:
        """For each Doc the values of its words' SENT_START: 1 or -1."""
        return [self._predict(doc) for doc in docs]

    def _predict(self, doc: Doc) -> np.ndarray:
        words, spaces = [word.text for word in doc], [bool(word.whitespace_) for word in doc]
        known_W = get_sentence_starts(doc)
        if self.overwrite:
            known_W[:] = 0
        found_W = np.full(len(doc), -1)
        found_W[:1] = 1
        if self.full_stops and not known_W.all():
            found_W[sentence_starts(words, spaces, full_stops=self.punct_chars)[1:]] = 1
        found_W = np.where(known_W == 0, found_W, known_W)
        found_W[line_starts(words, spaces)[1:]] = 1
        return found_W

    def set_annotations(self, docs: Iterable[Doc], batch_tag_ids: Sequence[np.ndarray]) -> None:
        for doc, found_W in zip(docs, batch_tag_ids):
            set_sentence_starts(doc, found_W)
