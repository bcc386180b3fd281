"""Files for the leaderboard of GLUE (gluebenchmark.com): what a pipeline says of a test part, index and prediction.

    python scripts/glue_submission.py PIPELINE TEST.tsv TASK OUTPUT [--mismatched] [--gpu-id -1]

Of mnli's two test parts each is a file of its own: give test_mismatched.tsv with --mismatched.
"""

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

import spacy

from spacy_luke.pipelines.loading import use_gpu
from spacy_luke.readers.datasets.glue import GLUE_TASKS, MOST_STARS
from spacy_luke.readers.datasets.table import dataset_docs
from spacy_luke.readers.given import copy_given
from spacy_luke.stores.atomic import write_atomically

NAMES = {  # of files, as the leaderboard wants them
    **{"cola": "CoLA", "sst2": "SST-2", "mrpc": "MRPC", "stsb": "STS-B", "qqp": "QQP"},
    **{"mnli": "MNLI-m", "qnli": "QNLI", "rte": "RTE", "wnli": "WNLI"},
}
MISMATCHED = "MNLI-mm"


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline")
    parser.add_argument("test", type=Path)
    parser.add_argument("task", choices=sorted(NAMES))
    parser.add_argument("output", type=Path, help="folder of the files")
    parser.add_argument("--mismatched", action="store_true")
    parser.add_argument("--gpu-id", type=int, default=-1)
    told = parser.parse_args()
    use_gpu(told.gpu_id)
    nlp = spacy.load(told.pipeline)
    docs = dataset_docs(nlp, told.test, format="glue", task=told.task)  # every line counts: a damaged one is an error
    lines = lines_of(told.task, (doc.cats for doc in nlp.pipe(copy_given(doc, nlp.vocab) for doc in docs)))
    path = told.output / f"{MISMATCHED if told.mismatched else NAMES[told.task]}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf8")
    print(f"{path}: {len(lines) - 1:,} predictions")


if __name__ == "__main__":
    main()
