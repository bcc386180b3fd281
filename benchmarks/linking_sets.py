"""A trained `luke_linker` on other texts than those it was trained on: a table of sets as in the papers.

    python benchmarks/linking_sets.py --pipeline PIPELINE    # a folder that benchmarks/linking.py --save wrote
    python benchmarks/linking_sets.py --table                # results/linking_sets.md

Lists of candidates exist for AIDA alone. All other mentions get theirs from a knowledge base, which is the one that the
pipeline was trained with, and the links of a sample of Wikipedia added to it; vectors of the new entities are made of their
titles, and nothing is trained. A run appends a line for each set and system to results/linking_sets.jsonl. README.md says
what is compared.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

from linking import ENCODER, find, read_part
from machine import describe_machine
from runs import add_line, read_lines

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
RESULTS = Path(__file__).parent / "results"
DUMP = "wiki_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
SETS = {
    "AIDA testb": ("aida", ""),
    "AIDA testb, names of the knowledge base": ("aida", ""),
    "MSNBC": ("wned", "ed_wned/msnbc/msnbc.xml"),
    "CWEB": ("wned", "ed_wned/clueweb/clueweb.xml"),
    "WIKI": ("wned", "ed_wned/wikipedia/wikipedia.xml"),
    "Tweeki": ("zelda", "ed_zelda/test_tweeki.jsonl"),
}
SYSTEMS = ("prior", "local", "global")
SHOWN = {
    "candidate recall": "links_candidate_recall",
    "P": "links_p",
    "R": "links_r",
    "F1": "links_f",
    "macro F1": "links_macro_f",
}


def main() -> None:
    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipeline", type=Path, help="folder of a trained pipeline")
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    parser.add_argument("--cache", type=Path, help="folder that keeps the larger knowledge base from run to run")
    parser.add_argument("--words", type=int, default=60_000, help="of each set: its first documents with so many words")
    parser.add_argument("--sets", help="names of sets with | between them; default: all")
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--table", action="store_true", help="write results/linking_sets.md")
    options = parser.parse_args()
    if options.pipeline:
        for result in run(options):
            add_line(RESULTS / "linking_sets.jsonl", result)
    if options.table or not options.pipeline:
        text = make_table(read_lines(RESULTS / "linking_sets.jsonl"))
        (RESULTS / "linking_sets.md").write_text(text, encoding="utf8")
        print(text)


def run(options: argparse.Namespace) -> Iterator[Dict[str, Any]]:
    import spacy
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)
    nlp = spacy.load(options.pipeline)
    linker: Any = nlp.get_pipe("luke_linker")
    with tempfile.TemporaryDirectory() as folder:
        linker.set_kb(larger_kb(linker.kb, options.data / DUMP, options.cache or Path(folder)))
        for name in options.sets.split("|") if options.sets else SETS:
            docs = read_set(nlp, name, options)
            if name != "AIDA testb":
                give_candidates(docs, linker.kb)
            notes = {"set": name, "documents": len(docs), "words": sum(map(len, docs))}
            for system in SYSTEMS:
                yield {
                    **notes,
                    "system": system,
                    "pipeline": options.pipeline.name,
                    "entities": len(linker.kb),
                    **link(nlp, linker, docs, system),
                    **describe_machine(),
                }


def larger_kb(kb: Any, dump: Path, folder: Path) -> Any:
    """A knowledge base with what a dump's links call entities that it lacks, and vectors of them."""
    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source
    from spacy_luke.components.entity_texts import TextEncoder, embed_entities
    from spacy_luke.linking.kb import EntityKB
    from spacy_luke.linking.kb_build import Settings, add_to_kb, build_kb

    if (folder / "larger" / "vectors").is_dir():
        return EntityKB.open(folder / "larger")
    folder.mkdir(parents=True, exist_ok=True)
    sample = build_kb([dump], folder / "sample", settings=Settings(unknown="add"), progress=True).kb
    # ... an entity that is there already is an error
    write_names(sample, kb, folder / "entities.jsonl", folder / "names.tsv")
    larger = add_to_kb(kb, [folder / "entities.jsonl", folder / "names.tsv"], folder / "larger").kb
    checkpoint = read_checkpoint(find_source(ENCODER), entity_start="words", entity_aware=False)
    return embed_entities(larger, TextEncoder(checkpoint), progress=True)[0]


def read_set(nlp: Any, name: str, options: argparse.Namespace) -> List[Any]:
    """The first documents of a set that hold `--words` words."""
    from spacy_luke.readers.datasets import dataset_docs

    format, path = SETS[name]
    if format == "aida":
        options.limit = None
        docs: Any = iter(read_part(nlp, options, "testb"))
    else:
        docs = dataset_docs(nlp, options.data / path, format=format, overlaps="outermost")
    kept: List[Any] = []
    while sum(map(len, kept)) < options.words and (doc := next(docs, None)) is not None:
        kept.append(doc)
    return kept
