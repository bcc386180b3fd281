"""One corpus of several data sets that annotate different things, with the labels of one pipeline."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry
from spacy.vocab import Vocab

from ..annotations import TASKS
from .corpora import GoldDocs, check_limit, corpus
from .docbin import read_gold_docs
from .given import GivenGold
from .label_maps import UNCHANGED, LabelMap, check_label_names, labels_of_doc, map_doc, read_label_map

_KEYS = ("path", "repeat", "limit", *TASKS)
_MOST_HELD = 1_000_000  # words in memory, of about a kB each


@registry.readers("spacy-luke.JoinedCorpus.v1")
@corpus()
def make_joined_corpus(
    sources: dict[str, dict[str, Any]],
    spans_key: str | None = None,
    seed: int = 0,
    given: GivenGold = GivenGold(),
) -> GoldDocs:
    """A corpus for `spacy train` of several sources, each with labels of its own:

        [corpora.train]
        @readers = "spacy-luke.JoinedCorpus.v1"

        [corpora.train.sources]

        [corpora.train.sources.wikigold]
        path = "corpus/wikigold.spacy"
        repeat = 2.5
        limit = null

        [corpora.train.sources.wikigold.entities]
        labels = {"PER": "PERSON", "LOC": ["GPE", "LOC", "FAC"], "MISC": null, "NUM": "", "*": "*"}
        annotates = ["PERSON", "ORG"]
        nested = false

        [corpora.train.sources.wikigold.relations]
        labels = {"born_in": "P19", "part_of": ["P361", ""]}
        annotates = []

    A source has a path, of a .spacy file or a folder of them; `repeat`, how often its documents come in one pass over
    the corpus, where 2.5 is all twice, and a half of them, drawn anew in each pass, once more (training with
    `max_epochs` of 0 or more makes one pass, whose draw serves all epochs); `limit`, how many of its documents are
    read; and for `entities`, `types` and `relations`:

    labels: what each label of the source becomes: one of our labels; a list, one of these, "" among them for none; null
        for anything, which teaches nothing; "" for none of our labels, as if the source had not annotated it. "*" is
        all labels that are not named; "*" = "*" lets them keep their names. Left out: all keep their names.
    annotates: our labels that the source annotates wherever they occur; left out: all of them. Of what is not gold of
        the source, other labels may hold. []: gold teaches what holds, and nothing teaches what does not.
    nested: false where the source has no entities that overlap; only for spans_key. Spans that overlap gold ones may
        then be anything but what these are.

    A task that is left out stays as the Docs say themselves; `relations = false`: the source says nothing of it.

    What a source leaves open is said on each Doc, in `doc._.luke_scope`; `luke_ner`, `luke_typer`, `luke_relation` and
    the scorers heed it. Only documents whose gold says the same are joined by `lengths`.

    sources: the blocks above, by name.
    spans_key: the group that has the entities, in which they may overlap; those of doc.ents become it where a source
    does not have it.
    seed: of the order, and of what `repeat` draws.
    given: see `GivenGold`.
    """
    if not sources:
        raise ValueError("A joined corpus needs sources: [corpora.train.sources.NAME] with a path, at least one.")
    read = {name: _read_source(name, settings) for name, settings in sources.items()}
    return GoldDocs(JoinedDocs(read, spans_key=spans_key, seed=seed), given.give)


@dataclass(frozen=True)
class JoinedSource:
    """A data set: its files, how often and how far they are read, and what becomes of its labels."""

    name: str
    path: Path
    repeat: float
    limit: int | None
    maps: Mapping[str, LabelMap]

    def docs(self, nlp: Language) -> Iterator[Doc]:
        return islice(self.all_docs(nlp), self.limit)

    def all_docs(self, nlp: Language) -> Iterator[Doc]:
        """Those beyond the limit too."""
        return read_gold_docs(self.path, nlp.vocab)


def _read_source(name: str, settings: Mapping[str, Any]) -> JoinedSource:
    where = f"The source {name!r} of a joined corpus"
    if not isinstance(settings, Mapping) or not set(settings) <= set(_KEYS):
        raise ValueError(f"{where} may have {list(_KEYS)}, but it is {settings!r:.160}.")
    if not settings.get("path"):
        raise ValueError(f"{where} needs the path of a .spacy file, or of a folder of them, but it has none.")
    repeat, limit = settings.get("repeat", 1.0), settings.get("limit")
    if isinstance(repeat, bool) or not isinstance(repeat, (int, float)) or not 0 < repeat < float("inf"):
        raise ValueError(f"{where}: repeat must be a number above 0, but it is {repeat!r}.")
    check_limit(limit, noun="documents")
    maps = {
        task: read_label_map(task, settings[task], where=f"sources.{name}.{task}")
        for task in TASKS
        if settings.get(task) is not None
    }
    return JoinedSource(name, Path(settings["path"]), float(repeat), limit, maps)


@dataclass(frozen=True)
class _Held:
    """Documents in memory, with our labels, and the vocabulary that they are of."""

    vocab: Vocab
    docs: Mapping[str, Sequence[Doc]]


class JoinedDocs:
    """The documents of several sources, each in its share, in an order that mixes them. Each call is a pass, which
    draws anew; the same pass of the same seed gives the same. Each component that is initialised makes a pass; training
    makes one more, or one for each epoch where `max_epochs` is -1. Sources of at most _MOST_HELD words in all are read
    from their files once."""

    def __init__(self, sources: Mapping[str, JoinedSource], *, spans_key: str | None, seed: int):
        self.sources, self.spans_key, self.seed = sources, spans_key, seed
        self.passes = 0
        self.counts: dict[str, int] = {}
        self.held: _Held | None = None

    def __call__(self, nlp: Language) -> Iterator[Doc]:
        if not self.counts:
            self._survey(nlp)
        draw = random.Random(f"{self.seed}-{self.passes}")
        self.passes += 1
        streams = {name: self._stream(source, nlp, draw.random()) for name, source in self.sources.items()}
        left = {name: self.counts[name] * source.repeat for name, source in self.sources.items()}
        while streams:
            (name,) = draw.choices(list(streams), [max(left[name], 1.0) for name in streams])
            doc = next(streams[name], None)
            left[name] -= 1
            if doc is None:
                del streams[name]
            else:
                yield doc

    def _stream(self, source: JoinedSource, nlp: Language, seed: float) -> Iterator[Doc]:
        draw, rest = random.Random(seed), source.repeat
        while rest > 0:
            for doc in self._docs(source, nlp):
                if rest >= 1 or draw.random() < rest:
                    yield doc
            rest -= 1

    def _docs(self, source: JoinedSource, nlp: Language) -> Iterator[Doc]:
        if self.held is not None and self.held.vocab is nlp.vocab:
            return iter(self.held.docs[source.name])
        return (map_doc(doc, source.maps, spans_key=self.spans_key) for doc in source.docs(nlp))

    def _survey(self, nlp: Language) -> None:
        """Read all once: count the documents of each source, and hold them where these are few words. Raises ValueError
        for a path where nothing is, for maps that are not of its labels, and for labels that are annotated, but by
        nothing."""
        counts: dict[str, int] = {}
        held: dict[str, list[Doc]] = {name: [] for name in self.sources}
        words = 0
        ours: dict[str, set[str]] = {task: set() for task in TASKS}
        for name, source in self.sources.items():
            found: dict[str, set[str]] = {task: set() for task in TASKS}
            docs = 0
            if not source.path.exists():
                raise ValueError(
                    f"sources.{name}.path is {source.path}, which does not exist. Make it with `python -m spacy luke "
                    "corpus`, or give another."
                )
            for doc in source.all_docs(nlp):
                docs += 1
                words += len(doc)
                for task in TASKS:
                    found[task] |= labels_of_doc(doc, task, self.spans_key)
                if words > _MOST_HELD:
                    held.clear()
                elif source.limit is None or docs <= source.limit:
                    held[name].append(doc)
            if not docs:
                raise ValueError(f"The source {name!r} of a joined corpus has no documents: {source.path}.")
            counts[name] = docs if source.limit is None else min(docs, source.limit)
            for task in TASKS:
                label_map = source.maps.get(task, UNCHANGED)
                check_label_names(label_map, found[task], where=f"sources.{name}.{task}")
                ours[task] |= label_map.ours(found[task])
        for name, source in self.sources.items():
            for task, label_map in source.maps.items():
                if unknown := sorted((label_map.scope.annotates or set()) - ours[task]):
                    raise ValueError(
                        f"sources.{name}.{task}.annotates has {unknown}, but no source has gold with these labels, "
                        f"once they are mapped; there are {sorted(ours[task])}."
                    )
        for name, docs_of in held.items():
            for doc in docs_of:
                map_doc(doc, self.sources[name].maps, spans_key=self.spans_key)
        self.counts = counts
        self.held = _Held(nlp.vocab, held) if held else None
