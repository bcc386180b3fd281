"""`entity_annotator`: names of entities found in a dictionary, by link probability (LUKE, EMNLP 2020, appendix C)."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import srsly
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.vocab import Vocab

from ..aliases.build import build_store
from ..aliases.file import STORE_MAGIC
from ..aliases.match import Filter, join_words, match_names
from ..aliases.store import AliasStore, float32
from ..annotations import LINKS, QUESTIONS, get_questions, set_rows, set_score
from ..kb.knowledge_base import EntityKB
from ..stores.atomic import write_atomically
from ..stores.opening import is_dump
from ..text.forms import NAME_CASES, units
from .factories import Configured, Setting, Values, register
from .mentions import blocked_words, write_entities
from .storage import BYTES_LIMIT

FILE = "mentions"
_STORE = "store"  # its name in `exclude`
_NO_LIMIT = "at least 1, or null for no limit"


class FoundEntity(NamedTuple):
    """A name in a Doc, words [start, end), and an entity that it may mean."""

    start: int
    end: int
    entity: str
    link_probability: float
    prior: float


class EntityAnnotator(Configured, Pipe):
    """Finds the longest names of an `AliasStore`, from the left, and writes the entities that they mean.

    The spans have the entity's title as `kb_id_`, and their group `attrs["scores"]` (link probabilities) and
    `attrs["priors"]` (p(entity | name)). With `annotate_ents` doc.ents has them, and `span._.luke_score` the link
    probability; blocked words (`doc.set_ents(..., blocked=...)`) are in no entity of doc.ents either way.

    The settings are those of the pipeline's config, and so on disk there; the store is saved with the component, unless
    `exclude` names "store".
    """

    spans_key: Setting[str] = Setting(LINKS, "the group of `doc.spans` that the spans go to")
    label: Setting[str] = Setting("ENTITY", "their label", valid=bool, rule="a text that is not empty")
    case: Setting[str] = Setting("exact", 'or `"casefold"`; a store is built for one of them', choices=NAME_CASES)
    min_link_probability: Setting[float] = Setting(
        0.01, "as in the paper; names below are none, and a shorter name may be found in their place", least=0, most=1
    )
    min_prior: Setting[float] = Setting(
        0.0,
        "entities with a lower p(entity given name) are left out, and names with no other",
        least=0,
        most=1,
    )
    max_candidates: Setting[int | None] = Setting(
        1, "entities for a name, the best first; `null`: all, each a span of its own", least=1, rule=_NO_LIMIT
    )
    max_words: Setting[int | None] = Setting(20, "longest name; `null`: no limit", least=1, rule=_NO_LIMIT)
    overlaps: Setting[bool] = Setting(False, "whether names inside of and across others are found too")
    annotate_ents: Setting[bool] = Setting(False, "write `doc.ents` instead of spans")
    overwrite: Setting[bool] = Setting(
        False,
        "whether entities that earlier components set in `doc.ents` give way, and those that questions have",
    )
    questions: Setting[bool] = Setting(
        True,
        "whether the names in each of `doc._.luke_questions` are found too; what they mean goes to its "
        '`"entities"`, which `luke_qa` reads',
    )

    def __init__(self, vocab: Vocab, name: str = "entity_annotator", **settings: Any) -> None:
        self.vocab, self.name = vocab, name
        self.cfg = Values(type(self), {})
        self.configure(settings)
        self._store: AliasStore | None = None
        vocab.strings.add(self.label)

    @classmethod
    def check_together(cls, values: Mapping[str, Any]) -> None:
        overlaps, most = values["overlaps"], values["max_candidates"]
        if values["annotate_ents"] and (overlaps or most != 1):
            raise ValueError(
                "annotate_ents = true must have overlaps = false and max_candidates = 1, as doc.ents holds one entity "
                f"for a word, but overlaps = {json.dumps(overlaps)} and max_candidates = {json.dumps(most)}. Set these "
                "before, or annotate_ents = false."
            )

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.label,)

    @property
    def store(self) -> AliasStore:
        """The names. Raises ValueError where there are none yet, and on setting a store built for another case."""
        if self._store is None:
            raise ValueError(
                f"'{self.name}' has no names yet. Name a store or a table in [initialize.components.{self.name}] and "
                f"call nlp.initialize(), set nlp.get_pipe({self.name!r}).store, or load a pipeline that has them."
            )
        return self._store

    @store.setter
    def store(self, store: AliasStore) -> None:
        if store.case != self.case:
            raise ValueError(
                f"'{self.name}' has case = {self.case!r}, but the names are stored for {store.case!r}. Change the "
                f"setting, or build them with `python -m spacy luke build-mentions --case {self.case}`."
            )
        self._store = store

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        store: str | Path | None = None,
    ) -> None:
        """Read the names. store: a file of `spacy luke build-mentions`, the folder of a knowledge base (`spacy luke
        build-kb`), whose names all count as linked wherever they stand, or a table (.tsv, .csv, .jsonl; the columns are
        described in `aliases.tables`); None keeps those that are there. Raises ValueError where there are none."""
        if store is not None:
            self.store = self._read(Path(store))
        elif self._store is None:
            raise ValueError(
                f"'{self.name}' needs names: set store in [initialize.components.{self.name}] to a file made by "
                "`python -m spacy luke build-mentions`, a knowledge base, or a table (.tsv, .csv, .jsonl)."
            )

    def _read(self, path: Path) -> AliasStore:
        if path.is_dir():
            return EntityKB.open(path).alias_store()
        if path.is_file():
            with path.open("rb") as file:
                start = file.read(len(STORE_MAGIC))
            if start.split(b" ")[0] == STORE_MAGIC.split(b" ")[0]:
                return AliasStore.open(path)
            if is_dump(path):
                raise ValueError(
                    f"{path} is a dump, which takes long to read. Build a store from it, once, with "
                    f"`python -m spacy luke build-mentions {path} OUT`, and name that one."
                )
        return build_store([path], case=self.case).store

    def __call__(self, doc: Doc) -> Doc:
        if self.questions and (questions := get_questions(doc)):
            for question in questions:
                if self.overwrite or "entities" not in question:
                    question["entities"] = self.find_in_text(question["question"])
            set_rows(doc, QUESTIONS, questions)
        links = self.find(doc)
        if self.annotate_ents:
            self._set_ents(doc, links)
            return doc
        scores = np.array([link.link_probability for link in links], np.float32)
        priors = np.array([link.prior for link in links], np.float32)
        spans = [Span(doc, link.start, link.end, label=self.label, kb_id=link.entity) for link in links]
        attrs = {"scores": scores, "priors": priors}
        doc.spans[self.spans_key] = SpanGroup(doc, name=self.spans_key, attrs=attrs, spans=spans)
        return doc

    def find(self, doc: Doc) -> list[FoundEntity]:
        """Names in the Doc from left to right with the entities that they may mean, the best first; it is not
        changed."""
        return self._find((word.text, bool(word.whitespace_)) for word in doc)

    def find_in_text(self, text: str) -> list[tuple[int, int, str]]:
        """(start, end, entity) of the names in a text without words, such as a question; characters [start, end)."""
        edges = list(units(text))
        links = self._find((text[start:end], text[end : end + 1].isspace()) for start, end in edges)
        return [(edges[link.start][0], edges[link.end - 1][1], link.entity) for link in links]

    def _find(self, followed: Iterable[tuple[str, bool]]) -> list[FoundEntity]:
        """followed: words, and whether a blank follows each."""
        store, min_prior = self.store, float32(self.min_prior)
        names = Filter(self.min_link_probability, self.min_prior, self.max_words)
        words = join_words(followed, case=self.case)
        links = []
        for match in match_names(store, words, names=names, overlaps=self.overlaps):
            start, end = words.number_W[match.start], words.number_W[match.end - 1] + 1
            rate = store.link_probability_of(match.number)
            for i, (entity, prior) in enumerate(store.candidates_of(match.number)):
                if prior < min_prior or i == self.max_candidates:
                    break
                links.append(FoundEntity(start, end, entity, rate, prior))
        return links

    def _set_ents(self, doc: Doc, links: list[FoundEntity]) -> None:
        blocked_W = blocked_words(doc)
        free = [x for x in links if not blocked_W[x.start : x.end].any()]
        found = [Span(doc, x.start, x.end, label=self.label, kb_id=x.entity) for x in free]
        kept = list(doc.ents)
        if self.overwrite:
            kept = _apart(kept, found)
            for word in (word for entity in doc.ents if entity not in kept for word in entity):
                word.ent_id = 0  # of what gives way; spaCy leaves it to entities without one
        else:
            found = _apart(found, kept)
        write_entities(doc, [*kept, *found])
        scores = {(x.start, x.end): x.link_probability for x in links}
        for span in found:
            set_score(span, scores[span.start, span.end])

    # ---- saving and loading: the store as it is; the settings are in the pipeline's config

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write DIR/mentions, the whole store, atomically; an empty file where there are no names yet."""
        if _STORE in exclude:
            return
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        if self._store is None:
            with write_atomically(path / FILE) as temporary:
                temporary.write_bytes(b"")
        else:
            self._store.save(path / FILE)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "EntityAnnotator":
        """Map the store into memory. Raises ValueError where it is missing, truncated or built for another case."""
        path = Path(path) / FILE
        if _STORE in exclude:
            return self
        if path.is_file() and path.stat().st_size == 0:
            self._store = None
        else:
            self.store = AliasStore.open(path)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """As `to_disk`, in one bytestring of less than 4 GiB; larger stores go to disk."""
        data = b"" if self._store is None or _STORE in exclude else self._store.to_bytes()
        if len(data) >= BYTES_LIMIT:
            raise ValueError(
                f"'{self.name}' holds {len(data):,} bytes, and a bytestring in spaCy's format at most {BYTES_LIMIT:,}. "
                "Use nlp.to_disk, which has no limit."
            )
        message: bytes = srsly.msgpack_dumps({} if _STORE in exclude else {_STORE: data})
        return message

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "EntityAnnotator":
        if _STORE in exclude:
            return self
        data: Any = srsly.msgpack_loads(bytes_data).get(_STORE)
        if data is None:
            raise ValueError(
                f"The bytestring of '{self.name}' was saved with exclude = ['store']; load it with the same."
            )
        if data:
            self.store = AliasStore(data, source=f"the bytes of '{self.name}'")
        else:
            self._store = None
        return self


make_entity_annotator = register("entity_annotator", EntityAnnotator, assigns=["doc.spans"])


def _apart(spans: list[Span], others: list[Span]) -> list[Span]:
    """Those that have no word of the others."""
    taken = {i for other in others for i in range(other.start, other.end)}
    return [span for span in spans if taken.isdisjoint(range(span.start, span.end))]
