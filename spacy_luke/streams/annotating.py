"""A worker's part: texts in, a file of annotations out, in batches by words. A document that fails costs no other."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import spacy
from spacy.tokens import Doc
from thinc.api import require_gpu

from ..annotations import set_queries, set_questions
from ..pages.schema import AnnotatedText, as_form
from ..pipelines.annotation import Annotator, annotate_each
from ..pipelines.loading import import_code
from ..stores.atomic import write_atomically
from ..stores.digests import digest_file
from .cutting import StreamPart, cut_batches, part_name
from .given_texts import GivenText, InputItem, UnreadText, count_words
from .run_folder import FailedText, PartCounts, PartRecord, write_record
from .writers import WRITERS, PartWriter

MOST_LEXEMES = 4_000_000  # new words, part by part, after which a worker is replaced
_BROKEN = 70  # exit code of a worker whose GPU failed


class WorkerSettings(NamedTuple):
    """What a worker needs. pipeline: folder or name; gpu_ids: of which worker `number` has the one at that place, none:
    the CPU; folder, work: of the run; output: suffix of parts; component: see `Annotator`;
    max_length: of a text, None: that of the pipeline."""

    pipeline: str
    code: str | None
    gpu_ids: Sequence[int]
    folder: str
    work: str
    output: str
    batch_words: int
    component: str | None
    max_length: int | None


class PartTask(NamedTuple):
    """part: to be made; deaths: of workers on it; careful: batches whose documents go one by one; killers: documents,
    as numbers in the part, with how workers died on them: they are listed as failed."""

    part: StreamPart
    deaths: int = 0
    careful: tuple[int, ...] = ()
    killers: tuple[tuple[int, str], ...] = ()


class NumberedText(NamedTuple):
    """A text and its number in the part."""

    number: int
    item: GivenText


class PartPlace(NamedTuple):
    """Where a worker is in a part. document: its number in the part, None in a batch that is not careful."""

    batch: int
    document: int | None
    words: int


def start_worker(number: int, settings: WorkerSettings) -> Callable[[PartTask], PartCounts]:
    """Loads the pipeline, on the GPU of this worker."""
    import_code(settings.code)
    if settings.gpu_ids:
        require_gpu(settings.gpu_ids[number % len(settings.gpu_ids)])
    nlp = spacy.load(settings.pipeline)
    nlp.max_length = settings.max_length or nlp.max_length
    return PartMaker(Annotator(nlp, settings.component), settings)


def place_file(work: Path, number: int) -> Path:
    return work / f"{part_name(number)}.at"


def read_part_place(work: Path, number: int) -> PartPlace | None:
    """Where the worker is, or was when it died; None where it has told nothing."""
    try:
        return PartPlace(*json.loads(place_file(work, number).read_text(encoding="ascii")))
    except (OSError, ValueError, TypeError):
        return None


def give_up(task: PartTask, settings: WorkerSettings, why: str) -> PartCounts:
    """A part with no document, and all of them listed as failed."""
    part = task.part
    failures = [
        FailedText(
            id=x.id,
            place=x.place,
            part=part_name(part.number),
            error="Unread" if isinstance(x, UnreadText) else "WorkerDied",
            message=x.message if isinstance(x, UnreadText) else f"Nobody tried it alone: {why}.",
        )
        for x in part.items
    ]
    name = part_name(part.number)
    counts = PartCounts(name=name, input=part.digest, documents=0, words=0, failed=len(failures), unasked=0)
    path = Path(settings.folder) / f"{name}.{settings.output}"
    with write_atomically(path) as new, WRITERS[settings.output](new):
        pass
    record = PartRecord(counts=counts, file=(path.stat().st_size, digest_file(path)), failures=failures)
    write_record(Path(settings.work), part.number, record)
    return counts


class PartMaker:
    """Makes the file of a part, and then its record."""

    def __init__(self, annotator: Annotator, settings: WorkerSettings) -> None:
        self.annotator, self.settings = annotator, settings
        self._lexemes = len(annotator.nlp.vocab)

    @property
    def is_worn(self) -> bool:
        """Whether the tables of the vocabulary have grown: a memory zone forgets the words of a part, but the room for
        them in these tables stays (spaCy 3.8), 32 to 64 bytes a word."""
        return len(self.annotator.nlp.vocab) - self._lexemes > MOST_LEXEMES

    def __call__(self, task: PartTask) -> PartCounts:
        part, work = task.part, Path(self.settings.work)
        path = Path(self.settings.folder) / f"{part_name(part.number)}.{self.settings.output}"
        place = place_file(work, part.number)
        with write_atomically(path) as new, WRITERS[self.settings.output](new) as writer:
            making = _Making(self.annotator, task, place, writer)
            making.make(self.settings.batch_words)
        counts = making.counts()
        failures = [failed for _, failed in sorted(making.failures, key=lambda x: x[0])]
        file = (path.stat().st_size, digest_file(path))
        write_record(work, part.number, PartRecord(counts=counts, file=file, failures=failures))
        place.unlink(missing_ok=True)
        return counts


class _Making:
    """A part that is being made. failures: with the numbers of their documents in the part."""

    def __init__(self, annotator: Annotator, task: PartTask, place: Path, writer: PartWriter) -> None:
        self.annotator, self.task, self.place, self.writer = annotator, task, place, writer
        self.documents = self.words = self.unasked = 0
        self.failures: list[tuple[int, FailedText]] = []

    def make(self, batch_words: int) -> None:
        killers = dict(self.task.killers)
        asks, fills = self.annotator.answers_questions, self.annotator.fills_queries
        given: list[NumberedText] = []
        for number, item in enumerate(self.task.part.items):
            if isinstance(item, UnreadText):
                self._fail(number, item, "Unread", item.message)
            else:
                given.append(NumberedText(number, item))
                self.unasked += (0 if asks else len(item.questions)) + (0 if fills else len(item.queries))
                if number in killers:
                    self._fail(number, item, "WorkerDied", f"The worker died on it: {killers[number]}.")
        with self.annotator.nlp.memory_zone():  # or the vocabulary would grow with every part
            batches = cut_batches(given, batch_words, lambda x: count_words(x.item.text))
            for number, whole in enumerate(batches):
                self._tell(number, None)
                batch = [x for x in whole if x.number not in killers]
                if number not in self.task.careful:
                    self._annotate(batch)
                    continue
                for one in batch:
                    self._tell(number, one.number)
                    self._annotate([one])

    def counts(self) -> PartCounts:
        return PartCounts(
            name=part_name(self.task.part.number),
            input=self.task.part.digest,
            documents=self.documents,
            words=self.words,
            failed=len(self.failures),
            unasked=self.unasked,
        )

    def _annotate(self, batch: Sequence[NumberedText]) -> None:
        for one, found in zip(batch, annotate_each(self.annotator, batch, self._make_doc, self._finish), strict=True):
            if isinstance(found, Exception):
                _end_where_broken(found)
                self._fail(one.number, one.item, type(found).__name__, str(found))
            else:
                doc, form = found
                self.writer.write(doc, form)
                self.documents += 1
                self.words += form.words

    def _make_doc(self, one: NumberedText) -> Doc:
        item, nlp = one.item, self.annotator.nlp
        if len(item.text) > nlp.max_length:
            raise ValueError(
                f"Expected a text of at most {nlp.max_length:,} characters, but it has {len(item.text):,}: divide it, "
                "or let longer ones through by --max-length."
            )
        doc: Doc = nlp.make_doc(item.text) if item.doc is None else Doc(nlp.vocab).from_bytes(item.doc)
        if item.questions and self.annotator.answers_questions:
            set_questions(doc, item.questions)
        if item.queries and self.annotator.fills_queries:
            set_queries(doc, item.queries)
        return doc

    def _finish(self, one: NumberedText, doc: Doc) -> tuple[Doc, AnnotatedText]:
        fields = json.loads(one.item.fields) if one.item.fields else {}
        form = as_form(self.annotator.read(doc), id=one.item.id, pipeline=self.annotator.name, fields=fields)
        self.writer.check(doc, form)
        return doc, form

    def _fail(self, number: int, item: InputItem, error: str, message: str) -> None:
        name = part_name(self.task.part.number)
        failed = FailedText(id=item.id, place=item.place, part=name, error=error, message=message)
        self.failures.append((number, failed))

    def _tell(self, batch: int, document: int | None) -> None:
        self.place.write_text(json.dumps([batch, document, self.words]), encoding="ascii")


def _end_where_broken(error: Exception) -> None:
    """After an error of the GPU that is not of memory nothing works in this process: another one takes its place."""
    if "CUDA error" in str(error) or type(error).__name__ == "AcceleratorError":
        print(f"A worker ends, since its GPU failed: {error}", file=sys.stderr, flush=True)
        os._exit(_BROKEN)
