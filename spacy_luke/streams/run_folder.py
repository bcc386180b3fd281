"""The folder of a run: parts that are finished, what is known of each, and in the end a manifest.

    plan.json            all that decides the bytes: pipeline, inputs, settings
    part-000000.jsonl    a part, there as a whole or not at all
    errors.jsonl         documents that failed, a line each; written in the end
    manifest.json        sizes and digests of all files, and what is in the parts; written last
    .work/               while the run is not finished: of each finished part its record, of others where they are

A part is finished when it has its record. A run that was killed finds the records, and makes the other parts.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypedDict

from ..stores.atomic import LOCK, hold, sweep, write_atomically
from ..stores.digests import digest_file
from ..stores.folder import MANIFEST, StoreKind, is_count, is_sealed, seal, write_sealed
from ..stores.plain_text import read_object
from .cutting import part_name
from .repeated_ids import NONE_REPEATED, Repeated

PLAN, ERRORS, _WORK = "plan.json", "errors.jsonl", ".work"
REPEATED = "repeated_ids"  # in the manifest
FORM = "spacy-luke-applied"


class FailedText(TypedDict):
    """A document that failed: a line of errors.jsonl. error: the kind, such as ValueError."""

    id: str
    place: str
    part: str
    error: str
    message: str


class PartCounts(TypedDict):
    """What the manifest says of a part. input: digest of what it was given; documents, words: that were annotated;
    failed: documents that were not; unasked: questions that the pipeline has no component for."""

    name: str
    input: str
    documents: int
    words: int
    failed: int
    unasked: int


class PartRecord(TypedDict):
    """What is known of a finished part: its counts, size and digest of its file, and which documents failed."""

    counts: PartCounts
    file: tuple[int, str]
    failures: list[FailedText]


def _is_whole(manifest: dict[str, Any]) -> bool:
    names = ("documents", "words", "failed", "unasked")
    counts = all(is_count(part[name]) for part in manifest["parts"] for name in names)
    files = {f"{part['name']}.{manifest['output']}" for part in manifest["parts"]}
    return counts and files | {PLAN, ERRORS} == set(manifest["files"])


KIND = StoreKind(
    what="folder of annotated texts",
    many="annotated texts",
    form=FORM,
    build="`spacy luke apply` makes one; where it was stopped, the same command goes on.",
    is_whole=_is_whole,
)


class RunFolder:
    """The folder at `path`, held by one process while it is open: `with RunFolder(path, plan) as folder`. plan:
    everything that decides the bytes; "output" is the suffix of parts.

    ValueError where the folder holds something else or the run of another plan, and where another process works in it.
    """

    def __init__(self, path: Path, plan: dict[str, Any]) -> None:
        self.path, self.work = Path(path).absolute(), Path(path).absolute() / _WORK
        self.plan: dict[str, Any] = json.loads(json.dumps(plan))
        self._held = ExitStack()
        self._finished: Sequence[PartCounts] | None = None
        self.repeated = NONE_REPEATED

    def __enter__(self) -> "RunFolder":
        self._check()
        self._was_there = self.path.exists()
        self.work.mkdir(parents=True, exist_ok=True)
        (self.work / LOCK).touch()
        busy = f"Another process is writing to {self.path}. Wait for it, or end it."
        self._held.enter_context(hold(self.work / LOCK, busy=busy))
        try:
            sweep(self.path)
            sweep(self.work)
            if not (self.path / PLAN).is_file() or _differences(read_object(self.path / PLAN), seal(self.plan)):
                with write_atomically(self.path / PLAN) as new:
                    write_sealed(new, self.plan)
            if (self.path / MANIFEST).is_file():
                manifest = KIND.read_manifest(self.path)
                self._finished, self.repeated = manifest["parts"], manifest.get(REPEATED, NONE_REPEATED)
        except BaseException:
            with self._held:
                if not self._is_begun():
                    self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:
            if self._finished is not None:
                shutil.rmtree(self.work)
            elif kind is not None and not self._is_begun():
                self._remove()

    @property
    def is_finished(self) -> bool:
        return self._finished is not None

    def file(self, number: int) -> Path:
        return self.path / f"{part_name(number)}.{self.plan['output']}"

    def counts(self, number: int) -> PartCounts | None:
        """Of a finished part; None where it is to be made."""
        if self._finished is not None:
            return self._finished[number] if number < len(self._finished) else None
        record = read_part_record(self.work, number)
        if record is None or not self.file(number).is_file() or self.file(number).stat().st_size != record["file"][0]:
            return None
        return record["counts"]

    def forget(self, numbers: Sequence[int]) -> None:
        """These parts are not finished after all."""
        for number in numbers:
            (self.work / f"{part_name(number)}.json").unlink(missing_ok=True)

    def check_open(self, number: int) -> None:
        """ValueError where a part is wanted that a finished run has not."""
        if self._finished is not None:
            raise ValueError(
                f"{self.path} has the annotations of other texts: it has {len(self._finished)} parts, and now there is "
                "more. Give another folder."
            )

    def check_parts(self, parts: int) -> None:
        """ValueError where a finished run has others than so many parts."""
        if self._finished is not None and parts != len(self._finished):
            raise ValueError(
                f"{self.path} has the annotations of other texts: it has {len(self._finished)} parts, and now there "
                f"are {parts}. Give another folder."
            )

    def finish(self, parts: int, repeated: Repeated) -> None:
        """Write errors.jsonl, and then the manifest. repeated: ids that several texts have."""
        files: dict[str, tuple[int, str]] = {}
        counts: list[PartCounts] = []
        with write_atomically(self.path / ERRORS) as new, new.open("w", encoding="utf8") as lines:
            for number, record in enumerate(self._records(parts)):
                for failed in record["failures"]:
                    lines.write(json.dumps(failed, ensure_ascii=False) + "\n")
                files[self.file(number).name] = record["file"]
                counts.append(record["counts"])
        for name in (PLAN, ERRORS):
            files[name] = ((self.path / name).stat().st_size, digest_file(self.path / name))
        values = {name: self.plan[name] for name in ("annotations", "pipeline", "output")}
        with write_atomically(self.path / MANIFEST) as new:
            told = {**values, REPEATED: repeated, "parts": counts}
            KIND.write_manifest(new.parent, told, names=sorted(files), known=files)
        self._finished, self.repeated = counts, repeated

    def _records(self, parts: int) -> Iterator[PartRecord]:
        for number in range(parts):
            record = read_part_record(self.work, number)
            assert record is not None, f"{part_name(number)} is not finished"
            yield record

    def _remove(self) -> None:
        """What an error before the first part leaves."""
        (self.path / PLAN).unlink(missing_ok=True)
        shutil.rmtree(self.work, ignore_errors=True)
        if not self._was_there:
            with suppress(OSError):
                self.path.rmdir()

    def _is_begun(self) -> bool:
        """Whether there is a part of an earlier run; where there is none, it does not matter what its plan was."""
        return any(self.path.glob("part-*")) or (self.path / MANIFEST).exists()

    def _check(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is a file; expected the name of a folder for annotated texts.")
        file = self.path / PLAN
        if not file.is_file():
            others = [] if not self.path.is_dir() else sorted(x.name for x in self.path.iterdir() if x.name[0] != ".")
            if others:
                raise ValueError(
                    f"{self.path} holds something else than annotated texts: {others[:5]}. Choose another folder."
                )
            return
        there = read_object(file)
        if not is_sealed(there):
            raise ValueError(f"{file} is not as it was written. Remove {self.path}, and begin anew.")
        different = _differences(there, seal(self.plan))
        if different and self._is_begun():
            raise ValueError(
                f"{self.path} has the annotations of another run: {'; '.join(different)}. Give what was given then, to "
                "go on with it, or another folder."
            )


def _differences(there: dict[str, Any], asked: dict[str, Any], inside: str = "") -> list[str]:
    """What differs between two plans, such as "pipeline.name was ..., and is ..."."""
    told = []
    for name in sorted({*there, *asked} - {"digest"} if not inside else {*there, *asked}):
        one, other = there.get(name), asked.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            told += _differences(one, other, f"{inside}{name}.")
        elif one != other:
            told.append(f"{inside}{name} was {json.dumps(one)}, and is {json.dumps(other)}")
    return told


def write_record(work: Path, number: int, record: PartRecord) -> None:
    with write_atomically(work / f"{part_name(number)}.json") as new:
        write_sealed(new, record)


def read_part_record(work: Path, number: int) -> PartRecord | None:
    """None where there is none, or it is not as it was written."""
    try:
        data: Any = read_object(work / f"{part_name(number)}.json")
    except (FileNotFoundError, ValueError):
        return None
    return data if is_sealed(data) else None
