"""Pipelines whose encoders are int8: smaller, and faster on CPUs, unless they lose by it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import spacy
from spacy.language import Language

from ..components.ner import LukeNER
from ..components.storage import StoredComponent
from ..encoders.nodes import ENCODER
from ..model.int8 import LARGEST
from .comparison import Measured, Speeds, compare_speed, main_scores
from .gold import Given, luke_components, read_gold
from .saving import check_replaceable, save

MOST_LOSS = 0.2  # points of a score


@dataclass(frozen=True)
class Quantized:
    """before, after: on the same data. bytes_before, bytes_after: of the folders. lost: components whose score fell by
    more than was allowed; the pipeline was written where there are none. is_busy: whether other jobs of the machine had
    so much of it that the speeds say little."""

    before: Measured
    after: Measured
    lost: list[str]
    bytes_before: int = 0
    bytes_after: int = 0
    is_busy: bool = False

    @property
    def empty(self) -> list[str]:
        """Components that scored 0 before, which cannot show a loss."""
        return [name for name, score in self.before.scores.items() if not score]


def quantize_pipeline(
    pipeline: str | Path,
    data: str | Path,
    output: str | Path,
    *,
    given: Given = Given(),
    max_loss: float = MOST_LOSS,
    piece_steps: int = LARGEST,
) -> Quantized:
    """Make the encoders of a saved pipeline int8, and save it, where no component loses more than `max_loss` points.

    pipeline: a folder or a name. data: gold documents that both are scored on. given: what the pipelines need not find;
    with entities a luke_ner is switched off meanwhile. piece_steps: see `quantize`. A component's score is the one that
    training chooses by. Raises ValueError where nothing can be scored, or all scores are 0, and where `output` holds
    something else than a pipeline.
    """
    check_replaceable(output, pipeline)
    nlp, small = spacy.load(pipeline), spacy.load(pipeline)
    quantize(small, piece_steps)
    scores, small_scores = (_score(x, data, given) for x in (nlp, small))
    speeds = _compare(nlp, small, data, given)
    before, after = map(Measured, (scores, small_scores), speeds.words_per_second)
    # so that a score that is no number is a loss
    lost = [name for name, score in before.scores.items() if not score - after.scores[name] <= max_loss]
    if lost:
        return Quantized(before, after, lost, is_busy=speeds.is_busy)
    save(small, output)
    return Quantized(before, after, lost, _size(nlp.path), _size(Path(output)), speeds.is_busy)


def quantize(nlp: Language, piece_steps: int = LARGEST) -> None:
    """Make all encoders of a pipeline int8, in place: it predicts, and cannot be trained or exported any more.

    piece_steps: from 0 to the largest number of a row of the table of pieces, at most 127. A number takes a byte; of
    fewer steps a zip is smaller.
    """
    if not 1 <= piece_steps <= LARGEST:
        raise ValueError(
            f"piece_steps = {piece_steps}; expected from 1 to {LARGEST}: steps to the largest number of a row of the "
            "table of pieces."
        )
    owners = find_owners(nlp)
    if done := [x.name for x in owners if x.encoder.is_int8]:
        raise ValueError(f"The encoder of {done} is int8 already. Give the pipeline that it was quantised from.")
    for owner in owners:
        owner.encoder.quantize(piece_steps)
    _forget_digests(nlp)


def dequantize(nlp: Language) -> None:
    """Make the encoders of a pipeline that are int8 float again, in place, so that they can learn. They have the
    numbers that int8 stood for, not those before it. Raises ValueError where none is int8."""
    owners = [x for x in find_owners(nlp) if x.encoder.is_int8]
    if not owners:
        raise ValueError("No encoder of the pipeline is int8: it can be trained as it is.")
    for owner in owners:
        owner.encoder.dequantize()
    _forget_digests(nlp)


def dequantize_pipeline(pipeline: str | Path, output: str | Path) -> None:
    """`dequantize` a saved pipeline (a folder or a name), and save it. Raises ValueError where `output` holds something
    else than a pipeline."""
    check_replaceable(output, pipeline)
    nlp = spacy.load(pipeline)
    dequantize(nlp)
    save(nlp, output)


def find_owners(nlp: Language) -> list[StoredComponent]:
    """The components that have an encoder. Raises ValueError where there are none."""
    owners = [x for _, x in nlp.components if isinstance(x, StoredComponent) and ENCODER in x.own_shims]
    if not owners:
        raise ValueError(f"The pipeline has no LUKE or ERNIE encoder; its components are {nlp.component_names}.")
    return owners


def _forget_digests(nlp: Language) -> None:
    """Components work with the encoder that there is now."""
    for _, component in nlp.components:
        if isinstance(component, StoredComponent):
            component.encoder_node.attrs.pop("digest", None)


def _score(nlp: Language, data: str | Path, given: Given) -> dict[str, float]:
    with _without_finders(nlp, given.entities or given.links):
        found = main_scores(nlp, read_gold(nlp, data, given))
    if not found:
        raise ValueError(f"{data} has nothing that the components {nlp.pipe_names} could be scored on.")
    if not any(found.values()):
        raise ValueError(
            f"{list(found)} have a score of 0 on {data}, so that int8 could lose nothing: expected data with labels "
            "that the components know. `spacy luke evaluate` tells which labels they do not."
        )
    return found


def _compare(nlp: Language, small: Language, data: str | Path, given: Given) -> Speeds:
    without = given.entities or given.links
    with _without_finders(nlp, without), _without_finders(small, without):
        return compare_speed((nlp, small), lambda x: [example.predicted for example in read_gold(x, data, given)])


@contextmanager
def _without_finders(nlp: Language, given: bool) -> Iterator[None]:
    """Without what finds entities, where these are given."""
    finders = [x.name for x in luke_components(nlp) if isinstance(x, LukeNER) and given]
    with nlp.select_pipes(disable=finders):
        yield


def _size(folder: Path | None) -> int:
    return 0 if folder is None else sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
