"""From raw text to links: `luke_ner` and a trained `luke_linker` on the texts of ZELDA's AIDA-B, end to end.

    python benchmarks/linking_raw.py --pipeline PIPELINE     # a folder that benchmarks/linking.py --save wrote
    python benchmarks/linking_raw.py --pipeline PIPELINE --ner FOLDER    # a luke_ner that --save-ner wrote

Candidates come from the knowledge base by their names alone. A pipeline of linking.py's `names`, without the encoder,
brings the rows "names" and "prior". Each run adds its rows to results/linking_raw.json and .md.
docs/results/linking.md says what is compared.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from linking import ENCODER, PARTS, find, make_kb, read_encoder, read_part
from linking_sets import give_candidates
from machine import describe_machine
from paired import answers_of, compare, count, keep, read, score
from runs import batches, describe_machines, schedule

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
RESULTS = Path(__file__).parent / "results"
TEXTS = "ed_zelda/test_aida-b.jsonl"
WAYS = ("prior", "names", "local", "global")
NAMES = ("lists of train and testa", "all lists")
REFINED = 1560  # words a second on a CPU, by its README, on another machine
KNOWN = 1162  # documents of AIDA train and testa, the first of PPRforNED
NER = {"rate": 2e-4, "head_rate": 5.0, "batch": 2, "dropout": 0.0}  # documents a step; dropout triples the time
SHOWN = ("links_strict_p", "links_strict_r", "links_strict_f", "links_mentions_f", "links_candidate_recall")


def main() -> None:
    options = read_options()
    import spacy
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)
    trained = spacy.load(options.pipeline)
    nlp = make_pipeline(options, trained)
    docs = read_texts(nlp, options)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for names, kb in knowledge_bases(options, options.cache or Path(folder)):
            linker: Any = nlp.get_pipe("luke_linker")
            linker.set_kb(kb)
            for way in ("local", "global") if linker.context else ("prior", "names"):
                made = {"pipeline": options.pipeline.name, "names": names, "entities": len(kb)}
                found = link_texts(nlp, docs, way, options)
                answers = found.pop("answers")
                path = f"linking_raw/{names.replace(' ', '_')}-{way}.jsonl"
                found["predictions"] = None if options.limit else keep(path, answers)
                rows.append({**made, **found, **describe_machine()})
                print(json.dumps(rows[-1]), flush=True)
    path = RESULTS / "linking_raw.json"
    before = json.loads(path.read_text(encoding="utf8"))["rows"] if path.exists() else []
    made_now = {(x["names"], x["inference"]) for x in rows}
    rows += [x for x in before if (x["names"], x["inference"]) not in made_now]
    notes = {"documents": len(docs), "words": sum(map(len, docs)), "refined_words_per_second": REFINED}
    result = {**notes, "rows": rows}
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    (RESULTS / "linking_raw.md").write_text(make_table(result), encoding="utf8")
    print(make_table(result))


def read_options() -> argparse.Namespace:
    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipeline", type=Path, required=True, help="folder of a trained pipeline")
    parser.add_argument("--ner", type=Path, help="folder of a trained luke_ner; default: train one")
    parser.add_argument("--save-ner", type=Path, help="folder that gets the trained luke_ner")
    parser.add_argument("--train", type=int, default=600, help="documents of CoNLL-2003 that luke_ner is trained on")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    parser.add_argument("--cache", type=Path, help="folder that keeps the knowledge bases from run to run")
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--limit", type=int, help="documents of each part (smoke runs)")
    return parser.parse_args()


def make_pipeline(options: argparse.Namespace, trained: Any) -> Any:
    """Sentences, luke_ner, and the linker of a trained pipeline, which takes its candidates from the knowledge base."""
    import spacy

    from spacy_luke import save

    if options.ner:
        nlp = spacy.load(options.ner)
    else:
        nlp = spacy.blank("en")
        nlp.add_pipe("sentencizer")
        nlp.add_pipe("luke_ner", config={"max_span_words": 8})
        learn_entities(nlp, options)
        if options.save_ner:
            save(nlp, options.save_ner)
    nlp.add_pipe("luke_linker", source=trained)
    return nlp


def learn_entities(nlp: Any, options: argparse.Namespace) -> None:
    """Train luke_ner on whole documents of CoNLL-2003, with their words and sentences."""
    from ner_systems import training_example
    from spacy.util import fix_random_seed
    from tqdm import tqdm

    from spacy_luke.bridge.optimizer import make_adamw
    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source
    from spacy_luke.readers.conll import read_columns

    fix_random_seed(0)
    documents = list(read_columns(find(options.data / "conll2003", PARTS["train"]), format="conll2003"))
    examples = [training_example(nlp.vocab, x) for x in documents[: options.limit or options.train]]
    ner = nlp.get_pipe("luke_ner")
    checkpoint = read_checkpoint(find_source(ENCODER), entity_start="words")
    ner.initialize(lambda: examples, nlp=nlp, weights=lambda: checkpoint)
    steps = options.epochs * -(-len(examples) // NER["batch"])
    optimizer = make_adamw(schedule(NER["rate"], steps), grad_clip=1.0, group_rates={"^head": NER["head_rate"]})
    drawn = batches(examples, epochs=options.epochs, size=int(NER["batch"]), seed=0)
    for batch in tqdm(drawn, total=steps, desc="training luke_ner", mininterval=20):
        ner.update(batch, drop=NER["dropout"], sgd=optimizer)
        optimizer.step_schedules()


def read_texts(nlp: Any, options: argparse.Namespace) -> list[Any]:
    from spacy_luke.readers.datasets.table import dataset_docs

    return list(dataset_docs(nlp, options.data / TEXTS, format="zelda", align="expand"))[: options.limit]


def knowledge_bases(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Any]]:
    """With the names of PPRforNED's lists for train and testa; and with those of all lists, the test documents' too."""
    encoder = read_encoder()
    yield NAMES[0], make_kb(options.data, folder / "known", encoder, documents=KNOWN)
    yield NAMES[1], make_kb(options.data, folder / "all", encoder)


def link_texts(nlp: Any, docs: Sequence[Any], way: str, options: argparse.Namespace) -> dict[str, Any]:
    """Scores, speed, and "answers". The threshold of NIL is tuned on testa, with the same knowledge base; "prior" has
    none."""
    from baselines import link_by_prior
    from spacy.training import Example

    from spacy_luke.scorers.items import link_items
    from spacy_luke.scorers.linking import score_links

    linker = nlp.get_pipe("luke_linker")
    linker.cfg.update(inference="local", use_given=False, threshold=0.0)
    tuned = {}
    if way != "prior":
        tuned = linker.tune([Example(bare(x), x) for x in read_part(nlp, options, "testa")], gold_mentions=True)
    linker.cfg["inference"] = "global" if way == "global" else "local"
    texts = [doc.text for doc in docs]
    with nlp.select_pipes(disable=["luke_linker"] if way == "prior" else []):
        list(nlp.pipe(texts[:2]))  # what is loaded lazily
        start = time.perf_counter()
        found = list(nlp.pipe(texts, batch_size=64))
        if way == "prior":
            give_candidates(found, linker.kb)
            found = [link_by_prior(doc) for doc in found]
        seconds = time.perf_counter() - start
    examples = [Example(doc, gold) for doc, gold in zip(found, docs, strict=True)]
    scores, answers = score_links(examples), answers_of(link_items(examples), len(examples))
    strict = float(score(count(answers).sum(0)))
    if abs(strict - 100 * scores["links_strict_f"]) > 1e-6:
        raise RuntimeError(f"F1 of the answers is {strict} %, their scorer found {100 * scores['links_strict_f']} %.")
    return {
        "answers": answers,
        "inference": way,
        "threshold": tuned.get("threshold"),
        **{key: round(100 * (scores[key] or 0.0), 2) for key in SHOWN},
        "seconds": round(seconds, 1),
        "words_per_second": round(sum(map(len, docs)) / seconds),
    }


def bare(doc: Any) -> Any:
    """Words and sentences alone."""
    from spacy_luke.readers.given import copy_given

    return copy_given(doc, doc.vocab)


def make_table(result: dict[str, Any]) -> str:
    lines = [
        "# From raw text to links",
        "",
        "Written by `python benchmarks/linking_raw.py`; see docs/results/linking.md. ZELDA's AIDA-B,",
        f"{result['documents']} documents, {result['words']:,} words. Percent; strict: words and entity are right;",
        "above: by how many points strict F1 is above the row before, with the 95 % interval over documents.",
        "",
        "| names | decisions | strict P | R | F1 | mentions F1 | gold entity is a candidate | above | words / s |",
        "|---" * 9 + "|",
    ]
    rows = sorted(result["rows"], key=lambda x: (NAMES.index(x["names"]), WAYS.index(x["inference"])))
    for before, x in zip([None, *rows], rows):
        cells = [x["names"], x["inference"], *(f"{x[key]:.1f}" for key in SHOWN)]
        above = describe_gap(before, x) if before is not None and before["names"] == x["names"] else ""
        lines.append("| " + " | ".join([*cells, above, f"{x['words_per_second']:,}"]) + " |")
    refined = f"ReFinED's README has {REFINED:,} words / s on the CPU of another machine."
    lines += ["", f"Machine: {describe_machines(result['rows'])}. {refined}"]
    return "\n".join([*lines, ""])


def describe_gap(first: dict[str, Any], second: dict[str, Any]) -> str:
    """How far the second row is above the first, "" without predictions."""
    paths = [x.get("predictions") for x in (first, second)]
    return str(compare(*([count(read(path))] for path in paths))) if all(paths) else ""


if __name__ == "__main__":
    main()
