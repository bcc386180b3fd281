"""The gold documents of a config's corpus as a .spacy file, with the labels of the pipeline, so that
`python -m spacy luke tune` and `evaluate` can read them: what a document's data set does not annotate is in
`doc._.luke_scope`.

    python scripts/corpus_docs.py configs/ready.cfg tune corpus/ready/tune.spacy --paths.data corpus/ready
"""

import argparse
from pathlib import Path

import spacy
from spacy.util import load_config, registry

from spacy_luke.readers.docbin import write_docbin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path, help="config of a training")
    parser.add_argument("corpus", help="name of the corpus, such as dev")
    parser.add_argument("output", type=Path, help=".spacy file")
    options, overrides = parser.parse_known_args()
    values = dict(zip((x.removeprefix("--") for x in overrides[::2]), overrides[1::2], strict=True))
    config = load_config(options.config, overrides=values, interpolate=True)
    corpus = registry.resolve({"corpus": config["corpora"][options.corpus]})["corpus"]
    docs = [example.reference for example in corpus(spacy.blank(config["nlp"]["lang"]))]
    write_docbin(docs, options.output)
    print(f"{options.output}: {len(docs):,} documents, {sum(map(len, docs)):,} words")


if __name__ == "__main__":
    main()
