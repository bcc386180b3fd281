"""`spacy luke apply`: a pipeline over all texts of its inputs, in parts; a run that was killed goes on."""

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

from ..pages.schema import FORMAT
from ..stores.digests import digest_bytes
from ..stores.parallel import Engine
from ..stores.workers import Death, is_worn
from .annotating import PartTask, WorkerSettings, give_up, place_file, read_part_place, start_worker
from .cutting import PartLimits, StreamPart, cut_parts
from .given_texts import UnreadText
from .inputs import Inputs
from .pipeline_digest import identify_pipeline
from .repeated_ids import NONE_REPEATED, OwnIds, Repeated
from .run_folder import FORM, PartCounts, RunFolder

_VERSION = 2
_RETRIES = 2  # times that a part is tried again as it is, after a worker died on it
_MOST_DEATHS = 12  # of workers on a part, until all of its documents are listed as failed
_MOST_GIVEN_UP = 3  # parts, one after another, until the run ends


@dataclass(frozen=True)
class ApplySettings:
    """output: form of the parts, jsonl, parquet or spacy; part_words, part_documents: of a part at most, about;
    batch_words: that the pipeline is given at once; component:
    the luke_ner whose entities are shown, where there are several; code: Python file with registered functions;
    max_length: characters of a text at most, None: those that the pipeline takes; gpu_ids: GPUs that the workers take
    in turn, none: the CPU; threads: of a worker, None: the cores, divided."""

    output: str = "jsonl"
    part_words: int = 100_000
    part_documents: int = 10_000
    batch_words: int = 4_000
    component: str | None = None
    max_length: int | None = None
    code: str | None = None
    gpu_ids: Sequence[int] = ()
    threads: int | None = None


@dataclass
class RunState:
    """How far a run is. documents, words, failed, unasked: of all finished parts; deaths: of workers; share: of the
    inputs that is done, None where nobody knows how much there is; *_before: what an earlier run had done; seconds:
    since this one began; repeated: ids that several texts have, which is known in the end."""

    documents: int = 0
    words: int = 0
    failed: int = 0
    unasked: int = 0
    parts: int = 0
    deaths: int = 0
    share: float | None = None
    parts_before: int = 0
    words_before: int = 0
    share_before: float = 0.0
    seconds: float = 0.0
    repeated: Repeated = field(default_factory=lambda: NONE_REPEATED)


def apply_pipeline(
    pipeline: str | Path,
    inputs: Inputs,
    output: str | Path,
    settings: ApplySettings = ApplySettings(),
    *,
    engine: Engine | None = None,
    watch: Callable[[RunState], None] = lambda state: None,
) -> RunState:
    """Annotate all texts of the inputs, and write what is found to the folder `output`, in parts. Parts that are
    finished there are kept.

    engine: where the work is done, None: in this process; watch: is told about once a second how far it is. ValueError
    where the folder holds the run of another pipeline, input or setting, or something else.
    """
    plan = {
        "format": FORM,
        "version": _VERSION,
        "annotations": FORMAT,
        "pipeline": identify_pipeline(str(pipeline)),
        "inputs": _describe(inputs),
        "output": settings.output,
        "part_words": settings.part_words,
        "part_documents": settings.part_documents,
        "batch_words": settings.batch_words,
        "component": settings.component,
        "max_length": settings.max_length,
    }
    inputs.check_outside(Path(output))
    with RunFolder(Path(output), plan) as folder:
        run = _Run(folder, inputs, settings, watch)
        worker = WorkerSettings(
            pipeline=str(pipeline),
            code=settings.code,
            gpu_ids=tuple(settings.gpu_ids),
            folder=str(folder.path),
            work=str(folder.work),
            output=settings.output,
            batch_words=settings.batch_words,
            component=settings.component,
            max_length=settings.max_length,
        )
        run.work(engine, worker)
        return run.now()


class _Run:
    def __init__(
        self, folder: RunFolder, inputs: Inputs, settings: ApplySettings, watch: Callable[[RunState], None]
    ) -> None:
        self.folder, self.inputs, self.watch = folder, inputs, watch
        self.state = RunState()
        self._parts = cut_parts(inputs, PartLimits(settings.part_words, settings.part_documents))
        self._seen = 0  # parts that were read
        self._read = 0  # bytes of the inputs until the end of the last of them
        self._done = 0  # bytes of the inputs in parts that are done
        self._again: deque[PartTask] = deque()
        self._at_work: dict[int, int] = {}  # bytes of the inputs, by parts that are at work
        self._given_up: list[int] = []  # parts, one after another
        self._threads = settings.threads
        self._start = monotonic()
        self._ids = None if folder.is_finished else OwnIds(folder.work / "ids")

    def work(self, engine: Engine | None, settings: WorkerSettings) -> None:
        results = _here(settings, self._next) if engine is None else self._stream(engine, settings)
        for task, result in results:
            if isinstance(result, Death):
                counts = self._after_death(task, result.told, settings)
            else:
                counts, self._given_up = result, []
            if counts is not None:
                self._count(task.part.number, counts)
                self._tell()
        if self._ids is None:
            self.folder.check_parts(self._seen)
        else:
            self.folder.finish(self._seen, self._ids.repeated())
        self.state.repeated = self.folder.repeated
        self._tell()

    def _stream(self, engine: Engine, settings: WorkerSettings) -> Iterator[tuple[PartTask, PartCounts | Death]]:
        gpus = 0
        if engine.name == "ray" and settings.gpu_ids:  # Ray says which, and shows each worker its own alone
            settings, gpus = settings._replace(gpu_ids=(0,)), 1
        return engine.stream(start_worker, settings, self._next, threads=self._threads, gpus=gpus, tick=self._tell)

    def _next(self) -> PartTask | None:
        """The next part that is not finished, or one that is tried again."""
        if self._again:
            return self._again.popleft()
        for part in self._parts:
            self._seen += 1
            size, self._read = self.inputs.read - self._read, self.inputs.read
            self._at_work[part.number] = size
            if self._ids is not None:
                self._ids.add(part.items)
            counts = self.folder.counts(part.number)
            if counts is None:
                self.folder.check_open(part.number)
                _check_readable(part)
                return PartTask(part)
            self._check_same(part, counts)
            self._count(part.number, counts)
            self.state.parts_before += 1
            self.state.words_before += counts["words"]
            self.state.share_before = self._done / self.inputs.size if self.inputs.size else 0.0
        return None

    def _check_same(self, part: StreamPart, counts: PartCounts) -> None:
        if counts["input"] != part.digest:
            first = part.items[0]
            raise ValueError(
                f"{self.folder.path} has the annotations of other texts: {counts['name']}, which was to begin with "
                f"{first.id!r} ({first.place}), was made of others. Give those to go on, or another folder."
            )

    def _after_death(self, task: PartTask, told: str, settings: WorkerSettings) -> PartCounts | None:
        """What comes of a part whose worker died: it is tried again as it is, then its batch document by document, then
        without those on which workers died; None: it is to be made again."""
        self.state.deaths += 1
        number, deaths = task.part.number, task.deaths + 1
        place = read_part_place(self.folder.work, number)
        place_file(self.folder.work, number).unlink(missing_ok=True)
        if deaths > _MOST_DEATHS or (deaths > _RETRIES and place is None):
            self._given_up.append(number)
            if len(self._given_up) >= _MOST_GIVEN_UP:
                self.folder.forget(self._given_up)  # the fault is not theirs
                raise ValueError(
                    f"Expected workers to annotate texts, but they died on {len(self._given_up)} parts one after "
                    f"another, the last time: {told}. Use fewer workers, smaller batches (--batch-words), or more "
                    "memory, and run it again: it goes on."
                )
            return give_up(task, settings, f"the workers died on its part {deaths} times, the last time {told}")
        task = task._replace(deaths=deaths)
        if deaths >= _RETRIES and place is not None:
            if place.document is None:
                task = task._replace(careful=(*task.careful, place.batch))
            else:
                task = task._replace(killers=(*task.killers, (place.document, told)))
        self._again.append(task)
        return None

    def _count(self, number: int, counts: PartCounts) -> None:
        state = self.state
        self._done += self._at_work.pop(number)
        state.parts += 1
        state.documents += counts["documents"]
        state.words += counts["words"]
        state.failed += counts["failed"]
        state.unasked += counts["unasked"]

    def now(self) -> RunState:
        """What is done, with the words of parts that are not."""
        places = [read_part_place(self.folder.work, number) for number in self._at_work]
        some = sum(x.words for x in places if x is not None)
        share = self._done / self.inputs.size if self.inputs.size else None
        seconds = monotonic() - self._start
        return replace(self.state, words=self.state.words + some, share=share, seconds=seconds)

    def _tell(self) -> None:
        self.watch(self.now())


def _check_readable(part: StreamPart) -> None:
    """ValueError where the inputs begin with nothing that can be read: fields, or the format, are others."""
    first = part.items[0]
    if part.number == 0 and isinstance(first, UnreadText) and all(isinstance(x, UnreadText) for x in part.items):
        raise ValueError(
            f"None of the first {len(part.items):,} texts can be read. {first.place}: {first.message} --text-field, "
            "--id-field and --input-format say where texts are."
        )


def _here(settings: WorkerSettings, pull: Callable[[], PartTask | None]) -> Iterator[tuple[PartTask, PartCounts]]:
    """The work, in this process."""
    make: Callable[[PartTask], PartCounts] | None = None
    while (task := pull()) is not None:
        if make is None or is_worn(make):
            make = start_worker(0, settings)
        yield task, make(task)


def _describe(inputs: Inputs) -> dict[str, Any]:
    """What decides which texts are read, and what they are called."""
    files = [[x.name, x.format, x.size] for x in inputs.files]
    more = f" and {len(files) - 1:,} more" if len(files) > 1 else ""
    return {
        "files": f"{files[0][0]}{more}",
        "bytes": inputs.size,
        "digest": digest_bytes(json.dumps(files).encode()),
        "text_field": inputs.fields.text,
        "id_field": inputs.fields.id,
        "fields": inputs.fields.others,
    }
