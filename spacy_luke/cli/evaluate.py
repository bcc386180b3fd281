"""`spacy luke evaluate`: scores of a pipeline, per label, and its speed."""

from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any, Dict, List, Optional

import spacy
import srsly
import typer
from spacy.cli._util import setup_gpu
from spacy.training import Corpus, Example
from tqdm import tqdm
from wasabi import msg

from ..checkpoint.files import write_atomically
from ..components.base import find_component
from ..components.ner import LukeNER
from ..readers.docbin import make_gold_sentences_corpus


def evaluate_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    data: Path = typer.Argument(..., exists=True, help="Gold documents: a .spacy file or a folder of them"),
    gold_sentences: bool = typer.Option(False, "--gold-sentences", help="Give the file's sentence boundaries too"),
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="JSON file for the scores"),
    component: Optional[str] = typer.Option(None, help="Name of the luke_ner, where there are several"),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
) -> None:
    """Precision, recall and F1 of luke_ner on gold documents: exact span and label, as conlleval counts."""
    setup_gpu(gpu_id)
    try:
        _evaluate(pipeline, data, gold_sentences=gold_sentences, output=output, component=component)
    except (ValueError, OSError) as error:
        msg.fail("Nothing was scored.", str(error), exits=1)


def _evaluate(
    pipeline: str, data: Path, *, gold_sentences: bool, output: Optional[Path], component: Optional[str]
) -> None:
    nlp = spacy.load(pipeline)
    ner = find_component(nlp, LukeNER, component)
    corpus = make_gold_sentences_corpus(data) if gold_sentences else Corpus(data)
    examples = list(corpus(nlp))
    start = perf_counter()
    with tqdm(nlp.pipe(example.predicted for example in examples), total=len(examples), leave=False, unit="doc") as docs:
        examples = [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]
    words = sum(len(example.predicted) for example in examples)
    speed = words / (perf_counter() - start)
    scores = ner.score(examples)
    name = "ents" if ner.cfg["spans_key"] is None else f"spans_{ner.cfg['spans_key']}"
    if scores[f"{name}_f"] is None:
        raise ValueError(f"{data} has no mentions for '{ner.name}' to be scored on, in {_place(ner)}.")
    msg.divider(f"{data}: {len(examples):,} documents, {words:,} words")
    msg.table(
        score_rows(scores, name, _count_gold(examples, ner.cfg["spans_key"])),
        header=("", "P", "R", "F1", "gold"),
        aligns=("l", "r", "r", "r", "r"),
        divider=True,
    )
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(output) as temporary:
            srsly.write_json(temporary, {**scores, "words": words, "words_per_second": speed})
        msg.good(f"Saved the scores to {output}")


def score_rows(scores: Dict[str, Any], name: str, counts: Dict[str, int]) -> List[tuple]:
    """A row of percentages for each label, and one for all of them."""
    rows = [(label, x["p"], x["r"], x["f"], counts.get(label, 0)) for label, x in scores[f"{name}_per_type"].items()]
    rows.append(("all", *(scores[f"{name}_{x}"] for x in "prf"), sum(counts.values())))
    return [(label, *(f"{100 * x:.2f}" for x in prf), f"{count:,}") for label, *prf, count in rows]


def _count_gold(examples: List[Example], spans_key: Optional[str]) -> Counter:
    golds = [example.reference for example in examples]
    return Counter(span.label_ for doc in golds for span in (doc.ents if spans_key is None else doc.spans[spans_key]))


def _place(ner: LukeNER) -> str:
    return "doc.ents" if ner.cfg["spans_key"] is None else f"doc.spans[{ner.cfg['spans_key']!r}]"
