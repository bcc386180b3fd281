"""The ready pipeline as it is installed, for the workflow `ready-relations`, which teaches its relations anew.

    python scripts/ready_take.py en_luke_sm assets/ready training/ready/linked --metrics metrics/ready/ready_links.json

The pipeline becomes a folder, and its linker, which stays as it is, is scored on the sets that it never saw, for the
card of the new one.
"""

import argparse
from pathlib import Path

import spacy
from ready_linker import evaluate_unseen, is_unseen, read_examples, save_without_words, there, write_metrics

from spacy_luke.components.linker.component import LukeLinker


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipeline", help="name of an installed pipeline, or a folder")
    parser.add_argument("data", type=Path, help="folder of the data sets")
    parser.add_argument("output", type=Path, help="folder of the same pipeline")
    parser.add_argument("--metrics", type=Path, help="file of the linker's scores, JSON")
    parser.add_argument("--limit", type=int, help="texts of each set (smoke runs)")
    options = parser.parse_args()
    nlp = spacy.load(options.pipeline)
    metrics = {"links": {}}
    if "luke_linker" in nlp.pipe_names:
        linker = nlp.get_pipe("luke_linker")
        assert isinstance(linker, LukeLinker)
        assert linker.kb is not None
        names = [name for name in there(options.data) if is_unseen(name)]
        examples = read_examples(nlp, linker.kb, options.data, names, limit=options.limit)
        links, reliability = evaluate_unseen(linker, examples)
        metrics = {"links": links, "reliability": reliability}
    write_metrics(options.metrics, metrics)
    save_without_words(nlp, options.output)


if __name__ == "__main__":
    main()
