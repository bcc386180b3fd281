"""Files for the leaderboard of GLUE (gluebenchmark.com): what pipelines say of the test parts, index and prediction.

    python scripts/glue_submission.py MODELS DATA OUTPUT [--gpu-id -1]
    python scripts/glue_submission.py MODEL DATA OUTPUT --task mrpc [--gpu-id -1]

MODELS/TASK/model-last is asked about DATA/TASK/test.tsv, for each task that has both; that of mnli also about
DATA/mnli/test_mismatched.tsv and DATA/ax/test.tsv. With --task MODEL is asked, about the test parts of this task that
are there. What cannot be written is said.
"""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

import spacy
from spacy.language import Language

from spacy_luke.pipelines.loading import use_gpu
from spacy_luke.readers.datasets.glue import GLUE_TASKS, MOST_STARS
from spacy_luke.readers.datasets.table import dataset_docs
from spacy_luke.readers.given import copy_given
from spacy_luke.stores.atomic import write_atomically

PARTS = {  # by task: the files as the leaderboard wants them, and what they are of
    "cola": {"CoLA": "cola/test.tsv"},
    "sst2": {"SST-2": "sst2/test.tsv"},
    "mrpc": {"MRPC": "mrpc/test.tsv"},
    "stsb": {"STS-B": "stsb/test.tsv"},
    "qqp": {"QQP": "qqp/test.tsv"},
    "mnli": {"MNLI-m": "mnli/test.tsv", "MNLI-mm": "mnli/test_mismatched.tsv", "AX": "ax/test.tsv"},
    "qnli": {"QNLI": "qnli/test.tsv"},
    "rte": {"RTE": "rte/test.tsv"},
    "wnli": {"WNLI": "wnli/test.tsv"},
}


def lines_of(task: str, cats: Iterable[Mapping[str, float]]) -> list[str]:
    """The lines of a file: the category as the data have it, of stsb a number from 0 to 5."""
    labels = GLUE_TASKS[task].labels
    lines = ["index\tprediction"]
    for i, scores in enumerate(cats):
        if labels is None:
            lines.append(f"{i}\t{min(max(scores['similar'] * MOST_STARS, 0.0), MOST_STARS):.3f}")
        else:
            best = max(labels, key=lambda own: scores[labels[own]])
            lines.append(f"{i}\t{best}")
    return lines


def write_file(nlp: Language, task: str, test: Path, path: Path) -> None:
    docs = dataset_docs(nlp, test, format="glue", task=task)  # every line counts: a damaged one is an error
    lines = lines_of(task, (doc.cats for doc in nlp.pipe(copy_given(doc, nlp.vocab) for doc in docs)))
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf8")
    print(f"{path}: {len(lines) - 1:,} predictions", flush=True)


def write_files(models: Mapping[str, Path], data: Path, output: Path) -> list[str]:
    """models: by task. RETURNS: the files that are written, without .tsv."""
    written = []
    for task, model in models.items():
        parts = PARTS[task]
        tests = {name: data / path for name, path in parts.items() if (data / path).exists()}
        if tests and model.exists():
            nlp = spacy.load(model)
            for name, test in tests.items():
                write_file(nlp, task, test, output / f"{name}.tsv")
                written.append(name)
        missing = [model, *(data / path for path in parts.values())]
        if missing := [str(path) for path in missing if not path.exists()]:
            print(f"{task}: there is no {', '.join(missing)}", flush=True)
    return written


def models_of(folder: Path) -> dict[str, Path]:
    """The last weights of the trainings in a folder of tasks."""
    return {task: folder / task / "model-last" for task in PARTS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, help="folder of the tasks' trainings; with --task of a pipeline")
    parser.add_argument("data", type=Path, help="folder of the tasks' files")
    parser.add_argument("output", type=Path, help="folder of the files")
    parser.add_argument("--task", choices=PARTS, help="of the pipeline")
    parser.add_argument("--gpu-id", type=int, default=-1)
    told = parser.parse_args()
    use_gpu(told.gpu_id)
    models = models_of(told.models) if told.task is None else {told.task: told.models}
    if not write_files(models, told.data, told.output) and told.task is None:
        raise SystemExit("No file could be written.")


if __name__ == "__main__":
    main()
