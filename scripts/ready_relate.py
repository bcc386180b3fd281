"""Give a ready pipeline the relations that learned once more, for the workflow `ready`.

    python scripts/ready_relate.py LINKED TRAINED CORPUS OUTPUT --precision 0.80 [--without luke_relation]

LINKED is the pipeline with all its components, and TRAINED what `configs/ready_relation.cfg` made of its luke_relation.
The scores of relations are calibrated, and their threshold is found, on redocred.dev.spacy in CORPUS; where no
threshold gives the precision, or --without names luke_relation, it is left out, and meta.json says why.
"""

import argparse
from pathlib import Path

import spacy
from ready_linker import save_without_words
from ready_tune import read_unwanted, tune_or_leave_out

from spacy_luke.pipelines.saving import save

RELATIONS = "luke_relation"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("linked", help="folder or name of the pipeline")
    parser.add_argument("trained", type=Path, help="folder of a pipeline whose luke_relation has learned once more")
    parser.add_argument("corpus", type=Path, help="folder of redocred.dev.spacy")
    parser.add_argument("output", type=Path, help="folder of the new pipeline")
    parser.add_argument("--precision", type=float, required=True, help="of the relations that are shown")
    parser.add_argument("--without", default="", help="luke_relation: leave it out")
    options = parser.parse_args()
    unwanted = read_unwanted(options.without)
    nlp = spacy.load(options.linked)
    nlp.get_pipe(RELATIONS).from_disk(options.trained / RELATIONS)  # type: ignore[attr-defined]
    save(nlp, options.output)
    data = options.corpus / "redocred.dev.spacy"
    tune_or_leave_out(options.output, RELATIONS, data, precision=options.precision, unwanted=unwanted)
    save_without_words(spacy.load(options.output), options.output)


if __name__ == "__main__":
    main()
