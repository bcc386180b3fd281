"""Tune the ready pipeline on development parts: the bias of entities, the threshold of types, and what calibrates the
scores of both. Relations are tuned when they have learned once more (`ready_relate.py`).

    python scripts/ready_tune.py PIPELINE CORPUS OUTPUT --types 0.85 [--without luke_typer]

CORPUS has tune.spacy, calibrate.spacy and redocred.dev.spacy. The threshold of proposals that development data allow is
lowered to --proposals where it is higher: what they do not show, such as dates in brackets, would be missed. So is the
bias of entities to --bias: development data are of the sources of the training, and of others more is missed. Scores of
entities are calibrated halfway to calibrate.spacy, texts least like the others: fitted to all, they are too sure of
texts of other kinds; fitted to these, not sure enough of most.
Types are left out where no threshold gives their precision, or where --without says so; meta.json, and then the card,
say why.
"""

import argparse
from collections.abc import Collection
from pathlib import Path

import spacy

from spacy_luke.annotations import ENTITIES, get_scope
from spacy_luke.components.calibration import HIGHEST_TEMPERATURE, fit_calibration
from spacy_luke.components.ner import LukeNER
from spacy_luke.pipelines.card import leave_out
from spacy_luke.pipelines.gold import Given, read_gold
from spacy_luke.pipelines.saving import save
from spacy_luke.pipelines.tuning import Tuned, prepare_examples, tune_pipeline

TYPES = "luke_typer"
MAY_LACK = {TYPES, "luke_relation", "luke_linker"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", help="as trained, its encoder in the format in which it is shipped")
    parser.add_argument("corpus", type=Path, help="folder of tune.spacy, calibrate.spacy and redocred.dev.spacy")
    parser.add_argument("output", type=Path, help="folder of the new pipeline")
    parser.add_argument("--types", type=float, default=0.85, help="precision of the types that are shown")
    parser.add_argument("--proposals", type=float, default=0.05, help="the highest proposal_threshold of luke_ner")
    parser.add_argument("--bias", type=float, default=0.0, help="the highest none_bias of luke_ner")
    parser.add_argument("--without", default="", help="luke_typer: leave it out")
    options = parser.parse_args()
    unwanted = read_unwanted(options.without)
    data = options.corpus / "tune.spacy"
    told(tune_pipeline(options.pipeline, data, component="luke_ner", gold_sentences=True, output=options.output))
    lower(options.output, proposal_threshold=options.proposals, none_bias=options.bias)
    calibrate_entities(options.output, options.corpus / "calibrate.spacy")
    data = options.corpus / "redocred.dev.spacy"
    tune_or_leave_out(options.output, TYPES, data, precision=options.types, unwanted=unwanted)


def read_unwanted(names: str) -> set[str]:
    """What --without says."""
    unwanted = set(names.replace(",", " ").split())
    if unknown := unwanted - MAY_LACK:
        raise SystemExit(f"--without takes some of {sorted(MAY_LACK)}, but got {sorted(unknown)}.")
    return unwanted


def tune_or_leave_out(folder: Path, name: str, data: Path, *, precision: float, unwanted: Collection[str]) -> None:
    """The threshold of a component that has this precision on the data; where none has, or where the component is among
    those that are not wanted, the pipeline in the folder goes without it."""
    why = "left out by the settings of the workflow." if name in unwanted else ""
    if not why:
        try:
            told(tune_pipeline(str(folder), data, component=name, precision=precision))
        except ValueError as error:
            why = f"on development data it did not reach the precision that is wanted. {error}"
    if why:
        nlp = spacy.load(folder)
        leave_out(nlp, name, why)
        save(nlp, folder)
        print(f"{name} is left out: {why}", flush=True)


def lower(folder: Path, **most: float) -> None:
    """Settings of luke_ner that are higher than they may be."""
    nlp = spacy.load(folder)
    ner = nlp.get_pipe("luke_ner")
    assert isinstance(ner, LukeNER)
    if changed := {name: value for name, value in most.items() if ner.cfg[name] > value}:
        ner.settle(nlp, **changed)
        save(nlp, folder)
        print("luke_ner:", ", ".join(f"{name} = {value:g}" for name, value in changed.items()), flush=True)


def calibrate_entities(folder: Path, data: Path) -> None:
    """Bring the calibration halfway, in log-odds, to what fits these gold documents; of labels that they annotate."""
    nlp = spacy.load(folder)
    ner = nlp.get_pipe("luke_ner")
    assert isinstance(ner, LukeNER)
    golds = read_gold(nlp, data, Given(sentences=True))
    examples = prepare_examples(nlp, ner, golds, gold_mentions=False)
    scores, right = [], []
    for doc, gold in zip(ner.pipe(x.predicted for x in examples), (x.reference for x in examples), strict=True):
        known = {(x.start, x.end, x.label) for x in ner.gold_spans(gold)}
        scope = get_scope(gold, ENTITIES)
        for span in doc.ents:
            if scope.is_annotated(span.label_):
                scores.append(span._.luke_score)
                right.append((span.start, span.end, span.label) in known)
    temperature, shift = fit_calibration(scores, right)
    slope = (1 + 1 / temperature) / 2
    temperature = min(ner.temperature / slope, HIGHEST_TEMPERATURE)
    ner.settle(nlp, temperature=temperature, shift=ner.shift * slope + shift / 2)
    save(nlp, folder)
    print(f"luke_ner: temperature = {ner.temperature:.4f}, shift = {ner.shift:.4f}, by {len(scores):,} entities")


def told(tuned: Tuned) -> None:
    print(f"{tuned.component}: {tuned.setting} = {tuned.value:g}, {tuned.more}; {tuned.scores}", flush=True)


if __name__ == "__main__":
    main()
