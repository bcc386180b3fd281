"""A trained `luke_linker` on other texts than those it was trained on: a table of sets as in the papers.

    python benchmarks/linking_sets.py --pipeline PIPELINE    # a folder that benchmarks/linking.py --save wrote
    python benchmarks/linking_sets.py --table                # results/linking_sets.md

Lists of candidates exist for AIDA alone. The mentions of other sets get theirs from a knowledge base: that of AIDA's
lists, and added to it the links of a sample of Wikipedia and of the other sets' documents. Vectors of the new entities
are made of their titles, and nothing is trained. A run appends a line for each set and system to
results/linking_sets.jsonl. docs/results/linking.md says what is compared.
"""

import argparse
import json
import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from baselines import link_by_prior
from link_answers import count_links, judge
from linking import example_of, make_kb, read_encoder, read_part
from machine import describe_machine
from paired import compare_lines, keep
from runs import add_line, describe_machines, read_lines

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
RESULTS = Path(__file__).parent / "results"
DUMP = "wiki_gensim/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
AIDA = ("AIDA testb", "AIDA testb by name")
SETS = {
    "AIDA testb": ("aida", ""),  # the lists of PPRforNED
    "AIDA testb by name": ("aida", ""),
    "MSNBC": ("wned", "ed_wned/msnbc/msnbc.xml"),
    "CWEB": ("wned", "ed_wned/clueweb/clueweb.xml"),
    "WIKI": ("wned", "ed_wned/wikipedia/wikipedia.xml"),
    "Tweeki": ("zelda", "ed_zelda/test_tweeki.jsonl"),
}
BASELINES = ("prior", "local")
SYSTEMS = ("prior", "names", "local", "global")  # names: a pipeline of linking.py's systems without the encoder
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
    parser.set_defaults(limit=None)
    parser.add_argument("--table", action="store_true", help="write results/linking_sets.md")
    options = parser.parse_args()
    if options.pipeline:
        for result in run(options):
            add_line(RESULTS / "linking_sets.jsonl", result)
    if options.table or not options.pipeline:
        text = make_table(read_lines(RESULTS / "linking_sets.jsonl"))
        (RESULTS / "linking_sets.md").write_text(text, encoding="utf8")
        print(text)


def run(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    import spacy
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)
    nlp = spacy.load(options.pipeline)
    linker: Any = nlp.get_pipe("luke_linker")
    with tempfile.TemporaryDirectory() as folder:
        kb = make_kb(options.data, (options.cache or Path(folder)) / "all", read_encoder())
        for name in options.sets.split("|") if options.sets else SETS:
            left_out: Counter = Counter()
            docs = read_set(nlp, name, options, left_out)
            if name != AIDA[0]:
                place = (options.cache or Path(folder)) / ("without_" + name.replace(" ", "_"))
                linker.set_kb(larger_kb(kb, options, name, place, vectors=linker.context))
                give_candidates(docs, linker.kb)
            notes = {"set": name, "documents": len(docs), "words": sum(map(len, docs)), "left_out": dict(left_out)}
            for system in ("prior", "local", "global") if linker.context else ("names",):
                found = link(nlp, linker, docs, system)
                path = f"linking_sets/{name.replace(' ', '_')}-{system}-{options.pipeline.name}.jsonl"
                yield {
                    **notes,
                    "system": system,
                    "pipeline": options.pipeline.name,
                    "entities": len(linker.kb),
                    "predictions": keep(path, found.pop("answers")),
                    **found,
                    **describe_machine(),
                }


def larger_kb(kb: Any, options: argparse.Namespace, without: str, folder: Path, *, vectors: bool) -> Any:
    """A knowledge base, and added to it the names of entities in a sample of Wikipedia and in the annotations of all
    sets but `without`, with vectors of the entities' titles, if they are wanted."""
    from spacy_luke.checkpoint.text_encoder import TextEncoder
    from spacy_luke.components.linker.embed_entities import embed_entities
    from spacy_luke.kb.build import KBSettings
    from spacy_luke.kb.change import add_to_kb
    from spacy_luke.kb.knowledge_base import EntityKB

    if (folder / "vectors" if vectors else folder).is_dir():
        return EntityKB.open(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    counts = Counter(links_of_dump(options.data / DUMP))
    for name in SETS:
        if name not in (without, *AIDA):
            counts.update(links_of_set(name, options))
    with tempfile.TemporaryDirectory() as other:
        table = Path(other) / "names.jsonl"
        rows = (json.dumps({"name": name, "entity": title, "count": n}) for (name, title), n in sorted(counts.items()))
        table.write_text("\n".join(rows) + "\n", encoding="utf8")
        larger = add_to_kb(kb, [table], folder, settings=KBSettings(unknown="add")).kb
    if not vectors:
        return larger
    return embed_entities(larger, TextEncoder(read_encoder()), progress=True)[0]


def links_of_dump(path: Path) -> Iterator[tuple[str, str]]:
    """Texts and targets of a dump's links, and the titles of its articles and redirects."""
    from spacy_luke.wikipedia.dumps import names_of_title, read_pages
    from spacy_luke.wikipedia.wikitext import read_article

    for page in read_pages(path):
        yield from ((name, page.redirect or page.title) for name in names_of_title(page.title))
        if page.redirect is None:
            yield from ((x.text, x.title) for x in read_article(page.text, page.wiki).links if x.text.strip())


def links_of_set(name: str, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Mentions of all documents of a set, and their titles."""
    from spacy_luke.readers.datasets.table import read_dataset

    format, path = SETS[name]
    for record in read_dataset(options.data / path, format=format):
        for mention in record.mentions:
            if mention.kb_id != "NIL":
                yield record.text[mention.start : mention.end], mention.kb_id


def read_set(nlp: Any, name: str, options: argparse.Namespace, left_out: Counter) -> list[Any]:
    """The first documents of a set that hold `--words` words. Mentions inside of others are left out, and counted."""
    from spacy_luke.readers.datasets.table import dataset_docs

    format, path = SETS[name]
    if format == "aida":
        docs: Iterator[Any] = iter(read_part(nlp, options, "testb"))
    else:
        docs = dataset_docs(nlp, options.data / path, format=format, overlaps="outermost", counts=left_out)
    kept: list[Any] = []
    while sum(map(len, kept)) < options.words and (doc := next(docs, None)) is not None:
        kept.append(doc)
    return kept


def give_candidates(docs: Sequence[Any], kb: Any) -> None:
    """What a knowledge base says of the mentions' texts, for all systems the same."""
    from spacy_luke.annotations import set_candidates_given

    for doc in docs:
        found = [(x, kb.candidates(x.text)) for x in doc.ents]
        set_candidates_given(doc, [(x.start_char, x.end_char, [tuple(y) for y in named]) for x, named in found])


def link(nlp: Any, linker: Any, docs: Sequence[Any], system: str) -> dict[str, Any]:
    """Scores of a system, and its answers."""
    linker.cfg["inference"] = "local" if system == "names" else system
    by_prior = partial(map, link_by_prior)
    found = judge(
        [example_of(nlp, doc) for doc in docs], by_prior if system == "prior" else partial(nlp.pipe, batch_size=32)
    )
    scores = found["scores"]
    reached = scores["links_candidate_recall"]
    return {
        "mentions": sum(x.kb_id_ not in ("", "NIL") for doc in docs for x in doc.ents),
        **{name: scores.get(key, 0.0) for name, key in SHOWN.items()},
        "right of reachable": round(100 * scores["links_accuracy"] / reached, 2) if reached else 0.0,
        "seconds": found["spent"],
        "answers": found["answers"],
    }


def make_table(results: list[dict[str, Any]]) -> str:
    groups: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for x in results:
        groups[x["set"], x["system"]][x["pipeline"]] = {**x, "seed": x["pipeline"].rsplit("_", 1)[-1]}
    keys = [*SHOWN, "right of reachable"]
    lines = [
        "# Linking on other texts",
        "",
        "Written by `python benchmarks/linking_sets.py --table`; see docs/results/linking.md. Percent, given "
        "mentions whose",
        "entity is known; means over the pipelines. P, R and F1 as the papers count: P of mentions that have a "
        "candidate, R of",
        "all (their accuracy). Above: the difference in R on the same seeds, with its 95 % interval over documents and "
        "seeds.",
        "",
        f"| set | documents | mentions | system | pipelines | {' | '.join(keys)} | "
        f"{' | '.join(f'above {x}' for x in BASELINES)} |",
        "|---" * (5 + len(keys) + len(BASELINES)) + "|",
    ]
    for name in SETS:
        for system in SYSTEMS:
            if group := list(groups[name, system].values()):
                cells = [name, str(group[-1]["documents"]), f"{group[-1]['mentions']:,}", system, str(len(group))]
                cells += [f"{mean(x[k] for x in group):.1f}" for k in keys]
                for base in BASELINES:
                    gap = compare_lines(list(groups[name, base].values()), group, counts=count_links)
                    cells.append("" if gap is None or base == system else str(gap))
                lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"Machine: {describe_machines(results)}.", ""])


if __name__ == "__main__":
    main()
