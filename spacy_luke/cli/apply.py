"""`spacy luke apply`: what a pipeline finds in many texts, in parts; a run that was stopped goes on."""

from pathlib import Path

import typer
from wasabi import msg

from ..stores.folder import MANIFEST
from ..stores.parallel import Engine
from ..stores.plain_text import printable_name
from ..stores.progress import PAUSE, ProgressBar
from ..streams.input_formats import InputFields, import_parquet
from ..streams.inputs import INPUT_FORMATS, find_inputs
from ..streams.repeated_ids import Repeated
from ..streams.run import ApplySettings, RunState, apply_pipeline
from ..streams.run_folder import ERRORS
from ..streams.writers import WRITERS
from .given import CODE

_DEFAULT = ApplySettings()


def apply_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    inputs: list[str] = typer.Argument(
        ...,
        help="Texts: .jsonl, .csv, .tsv, .parquet, .spacy, .txt (a text each), folders of them, or - for piped ones",
    ),
    output: Path = typer.Argument(..., help="Folder for what is found, in parts; an unfinished run there goes on"),
    form: str = typer.Option("jsonl", "--format", "-f", help=f"Of the parts: {', '.join(WRITERS)}"),
    input_format: str | None = typer.Option(
        None, help=f"Of all inputs: {', '.join(INPUT_FORMATS)}. Default: by their suffix, jsonl of what is piped"
    ),
    text_field: str = typer.Option("text", help="Field, or column, that has the text"),
    id_field: str = typer.Option("id", help="Field, or column, that has the id; default without one: FILE:LINE"),
    fields: str | None = typer.Option(
        None, help="Other fields, or columns, that go along into `fields`, by commas, or none; default: all"
    ),
    workers: int | None = typer.Option(None, min=0, help="Processes; default: 1, or one a GPU. 0: in this process"),
    gpu_ids: str | None = typer.Option(None, "--gpu-ids", "-g", help="GPUs that workers take in turn, such as 0,1"),
    engine: str = typer.Option("processes", help="processes of this machine, or ray: workers on a Ray cluster"),
    address: str | None = typer.Option(None, help="ray: address of the cluster; default: RAY_ADDRESS, or a new one"),
    threads: int | None = typer.Option(
        None, min=1, help="Of a worker, not of --workers 0; default: OMP_NUM_THREADS, or cores / workers"
    ),
    part_words: int = typer.Option(_DEFAULT.part_words, min=1, help="Words of a part, about"),
    part_documents: int = typer.Option(_DEFAULT.part_documents, min=1, help="Most documents of a part"),
    batch_words: int = typer.Option(
        _DEFAULT.batch_words, min=1, help="Words that the pipeline is given at once, about"
    ),
    max_length: int | None = typer.Option(
        None,
        min=1,
        help="Most characters of a text; default: the pipeline's, 1,000,000. Longer ones are listed as failed",
    ),
    component: str | None = typer.Option(None, help="Name of the luke_ner, where there are several"),
    code: Path | None = CODE,
) -> None:
    """Write what a pipeline finds in all texts of the inputs to a folder: entities, types, links, relations, answers,
    with their characters and probabilities. What is finished is kept: a run that was stopped goes on when it is started
    again, and writes the same. A document that fails is listed in errors.jsonl, and costs no other."""
    gpus = _numbers(gpu_ids)
    settings = ApplySettings(
        output=form,
        part_words=part_words,
        part_documents=part_documents,
        batch_words=batch_words,
        component=component,
        max_length=max_length,
        code=None if code is None else str(code),
        gpu_ids=gpus,
        threads=threads,
    )
    if form not in WRITERS:
        raise ValueError(f"--format must be one of {', '.join(WRITERS)}, but it is {form!r}.")
    if input_format not in (None, *INPUT_FORMATS):
        raise ValueError(f"--input-format must be one of {', '.join(INPUT_FORMATS)}, but it is {input_format!r}.")
    if form == "parquet" or input_format == "parquet":
        import_parquet()
    found = find_inputs(inputs, format=input_format, fields=InputFields(text_field, id_field, _names(fields)))
    if found.left_out:
        names = ", ".join(printable_name(Path(x.name)) for x in found.left_out[:3]) + (
            ", ..." if len(found.left_out) > 3 else ""
        )
        msg.warn(f"{_many(len(found.left_out), 'file')} of other kinds left out: {names}")
    where = None if workers == 0 else Engine(engine, workers or len(gpus) or 1, address)
    with Progress() as progress:
        state = apply_pipeline(pipeline, found, output, settings, engine=where, watch=progress.show)
    _tell(state, output)
    if found.unseen and state.words > state.words_before:
        msg.warn(f"--fields: no record has {', '.join(map(repr, sorted(found.unseen)))}")


class Progress:
    """A line that changes, in a terminal; in a file a line a minute."""

    def __enter__(self) -> "Progress":
        self._bar = ProgressBar[None](form="{desc}", lines=False)
        self._next = PAUSE
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def show(self, state: RunState) -> None:
        if self._bar.is_shown:
            self._bar.describe(describe_progress(state))
        elif state.seconds >= self._next:
            typer.echo(describe_progress(state))
            self._next = state.seconds + PAUSE


def describe_progress(state: RunState) -> str:
    """Such as "12,000 documents, 1.2 million words, 2,345 words a second, 34 %, 12 min left"."""
    new = state.words - state.words_before
    rate = new / max(state.seconds, 0.001)
    told = [_many(state.documents, "document"), _many(state.words, "word"), f"{rate:,.0f} words/s"]
    if state.failed:
        told.append(f"{state.failed:,} failed")
    if state.share is not None:
        told.append(f"{state.share:.0%}")
        new_share = state.share - state.share_before
        if new_share > 0:
            told.append(f"{_time(state.seconds * (1 - state.share) / new_share)} left")
    return ", ".join(told)


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _numbers(given: str | None) -> list[int]:
    if given is None:
        return []
    try:
        return [int(x) for x in given.split(",")]
    except ValueError:
        raise ValueError(f"--gpu-ids: expected numbers of GPUs, such as 0,1, but got {given!r}.") from None


def _names(given: str | None) -> tuple[str, ...] | None:
    """By commas; None where nothing is said."""
    return None if given is None else tuple(x.strip() for x in given.split(",") if x.strip() not in ("", "none"))


def _describe_repeated(repeated: Repeated, output: Path) -> str:
    one = repeated["first"][0]
    return (
        f"{repeated['documents']:,} documents have an id that another one has, of {_many(repeated['ids'], 'id')}, such "
        f"as {one['id']!r} ({', '.join(one['places'][:3])}); {printable_name(output / MANIFEST)} has more. All were "
        "annotated, but `graph` takes no two texts of one id: an --id-field that no record has names each text by its "
        "place"
    )


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _tell(state: RunState, output: Path) -> None:
    if state.parts_before:
        was = "was" if state.parts == 1 else "were"
        msg.info(f"{state.parts_before:,} of {_many(state.parts, 'part')} {was} there before")
    if state.deaths:
        msg.warn(f"Workers died {_many(state.deaths, 'time')}, and were replaced")
    if state.unasked:
        msg.warn(f"{state.unasked:,} questions and queries were not asked: the pipeline has no component for them")
    if state.failed and state.documents:
        msg.warn(f"{_many(state.failed, 'document')} failed: {printable_name(output / ERRORS)} has which, and why")
    if not state.documents and not state.failed:
        msg.warn("The inputs have no text")
    if state.repeated["ids"]:
        msg.warn(_describe_repeated(state.repeated, output))
    if state.failed and not state.documents:
        raise ValueError(
            f"None of {_many(state.failed, 'document')} could be annotated: {printable_name(output / ERRORS)} has why."
        )
    rate = (state.words - state.words_before) / max(state.seconds, 0.001)
    msg.good(
        f"{printable_name(output)}: {_many(state.documents, 'document')}, {state.words:,} words, "
        f"in {_many(state.parts, 'part')}; {state.seconds:,.0f} s, {rate:,.0f} words a second"
    )
