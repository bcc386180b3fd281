"""Quality of spaCy's own `entity_linker` on AIDA, with the candidates, entity vectors and encoder of linking.py.

    python benchmarks/linking_spacy.py --encoder minilm --seed 0     # about as long as a run of linking.py
    python benchmarks/linking_spacy.py --encoder cnn --seed 0        # spaCy's default encoder: some minutes
    python benchmarks/linking.py --table                             # both in one table

A run appends lines to results/linking.jsonl, as linking.py does. docs/results/linking.md says what is compared.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from link_answers import judge, keep_links
from linking import ENCODER, RESULTS, example_of, make_kb, read_part
from machine import describe_machine
from runs import add_line, batches, schedule
from spacy.kb import Candidate, KnowledgeBase
from spacy.tokens import Doc, Span
from spacy.util import registry
from thinc.api import Model

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
# chosen before any run on testb: as linking.py has them, and for the CNN spaCy's own rate
SETTINGS: dict[str, dict[str, Any]] = {
    "minilm": {"rate": 2e-4, "head_rate": 5.0, "batch": 8, "epochs": 3, "dropout": 0.0},
    "cnn": {"rate": 1e-3, "head_rate": 1.0, "batch": 8, "epochs": 10, "dropout": 0.1},
}
WAYS = {"prior and context": True, "context": False}


@registry.misc("benchmark.given_candidates.v1")
def make_given_candidates() -> Callable[[KnowledgeBase, Span], Iterable[Candidate]]:
    """The candidates that a Doc brings. Their vectors stay in memory, as those of spaCy's InMemoryLookupKB do."""
    from spacy_luke.components.linker.spacy_kb import LinkedCandidate

    vectors: dict[str, list[float]] = {}

    def given_candidates(kb: KnowledgeBase, mention: Span) -> list[Candidate]:
        rows = mention.doc._.luke_candidates_given or []
        named = next((found for a, b, found in rows if (a, b) == (mention.start_char, mention.end_char)), [])
        for entity, _ in named:
            if entity not in vectors:
                vectors[entity] = kb.get_vector(entity)
        key = kb.vocab.strings.add
        return [LinkedCandidate(kb, key(x), 1, vectors[x], key(mention.text), min(prior, 1.0)) for x, prior in named]

    return given_candidates


@registry.architectures("benchmark.EncoderInside.v1")
def build_encoder_inside() -> Model[list[Doc], list[Any]]:
    """Word states by an encoder inside entity_linker's model, for timing: it is called for each mention again. What
    encodes is put into attrs["owner"], a luke_encoder; it does not learn."""
    return Model("encoder_inside", _encode_inside, dims={"nO": 384}, attrs={"owner": None})


def _encode_inside(model: Model, docs: list[Doc], is_train: bool) -> Any:
    from spacy_luke.encoders.doc_windows import encode_docs, pool_words
    from spacy_luke.encoders.listeners import split_words

    owner = model.attrs["owner"]
    if owner is None:  # when spaCy asks for sizes
        return [model.ops.alloc2f(len(doc), model.get_dim("nO")) for doc in docs], lambda _: []
    with owner.predicting():
        read = owner.read(docs)
        words_WD = pool_words(encode_docs(owner.encoder, read, size=owner.cfg["batch_size"]), read)
    return split_words(words_WD, read), lambda _: []


def main() -> None:
    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", choices=SETTINGS, default="minilm")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, help="default: 3 with MiniLM, 10 with the CNN")
    parser.add_argument("--rate", type=float, help="learning rate of the encoder; the rest of MiniLM's 5 times")
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets")
    parser.add_argument("--cache", type=Path, help="folder that keeps the knowledge base from run to run")
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--limit", type=int, help="documents of each part (smoke runs)")
    parser.add_argument("--dev", action="store_true", help="score testa alone, and write nothing")
    parser.add_argument("--save", type=Path, help="folder that gets the trained pipeline, for linking_speed.py")
    options = parser.parse_args()
    for result in run(options):
        if options.dev:
            print(json.dumps(result), flush=True)
        else:
            add_line(RESULTS / "linking.jsonl", result)


def run(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    import spacy
    import torch
    from spacy.util import fix_random_seed

    from spacy_luke import save
    from spacy_luke.checkpoint.checkpoint import read_checkpoint
    from spacy_luke.checkpoint.sources import find_source

    if options.threads:
        torch.set_num_threads(options.threads)
    settings = dict(SETTINGS[options.encoder])
    settings.update({x: getattr(options, x) for x in ("epochs", "rate") if getattr(options, x) is not None})
    fix_random_seed(options.seed)
    checkpoint = read_checkpoint(find_source(ENCODER), entity_start="words", entity_aware=False, seed=options.seed)
    with tempfile.TemporaryDirectory() as folder:
        kb = make_kb(options.data, (options.cache or Path(folder)) / "kb", checkpoint)
        nlp = make_pipeline(spacy.blank("en"), options.encoder)
        train = [without_unknown(x, kb) for x in read_part(nlp, options, "train")]
        tests = {part: read_part(nlp, options, part) for part in (["testa"] if options.dev else ["testb", "testa"])}
        initialize(nlp, kb, checkpoint, [example_of(nlp, x) for x in train[:10]])
        seconds = learn(nlp, train, settings, seed=options.seed)
        line = {"seed": options.seed, "system": f"spacy_{options.encoder}"}
        line["settings"] = {**settings, "limit": options.limit}
        if options.save:
            save(nlp, options.save)
        for part, test in tests.items():
            for way, prior in WAYS.items():
                nlp.get_pipe("entity_linker").incl_prior = prior
                found = judge([example_of(nlp, doc) for doc in test], partial(nlp.pipe, batch_size=64))
                found["predictions"] = keep_links(line, part, way, found.pop("answers")) if not options.dev else None
                yield {
                    "part": part,
                    **line,
                    "inference": way,
                    "train": len(train),
                    "seconds": [round(seconds, 1), found.pop("spent")],
                    **found,
                    **describe_machine(),
                }


def make_pipeline(nlp: Any, encoder: str) -> Any:
    """spaCy's entity_linker with its default CNN; or ("minilm") with a listener to a luke_encoder before it, which
    reads each document once; or ("inside") with the same encoder in its own model."""
    config: dict[str, Any] = {
        "generate_empty_kb": {"@misc": "spacy-luke.EmptyEntityKB.v1"},
        "get_candidates": {"@misc": "benchmark.given_candidates.v1"},
        "use_gold_ents": True,
    }
    if encoder == "minilm":
        nlp.add_pipe("luke_encoder")
        tok2vec = {"@architectures": "spacy.Tok2VecListener.v1", "width": 384, "upstream": "luke_encoder"}
        config["model"] = {"@architectures": "spacy.EntityLinker.v2", "nO": None, "tok2vec": tok2vec}
    elif encoder == "inside":
        tok2vec = {"@architectures": "benchmark.EncoderInside.v1"}
        config["model"] = {"@architectures": "spacy.EntityLinker.v2", "nO": None, "tok2vec": tok2vec}
    nlp.add_pipe("entity_linker", config=config)
    return nlp


def initialize(nlp: Any, kb: Any, checkpoint: Any, examples: list[Any]) -> None:
    from spacy_luke.components.linker.spacy_kb import LinkedKB

    if nlp.has_pipe("luke_encoder"):
        nlp.get_pipe("luke_encoder").initialize(lambda: examples, nlp=nlp, weights=lambda: checkpoint)
    linker = nlp.get_pipe("entity_linker")
    linker.initialize(lambda: examples, nlp=nlp, kb_loader=lambda vocab: LinkedKB(vocab, kb))


def without_unknown(doc: Any, kb: Any) -> Any:
    """spaCy learns from each id: NIL, and what the knowledge base has not, would be a vector of zeros."""
    spans = [Span(doc, x.start, x.end, x.label_, kb_id=x.kb_id_ if x.kb_id_ in kb else "") for x in doc.ents]
    doc.set_ents(spans)
    return doc


def learn(nlp: Any, train: Sequence[Any], settings: dict[str, Any], *, seed: int) -> float:
    from tqdm import tqdm

    from spacy_luke.bridge.optimizer import make_adamw

    steps = settings["epochs"] * -(-len(train) // settings["batch"])
    optimizer = make_adamw(schedule(settings["rate"], steps), grad_clip=1.0, group_rates={"^.$": settings["head_rate"]})
    bar = tqdm(total=steps, mininterval=20)
    start, shown = time.perf_counter(), 0.0
    for batch in batches(train, epochs=settings["epochs"], size=settings["batch"], seed=seed):
        losses = nlp.update([example_of(nlp, doc) for doc in batch], drop=settings["dropout"], sgd=optimizer)
        optimizer.step_schedules()
        shown = 0.95 * shown + 0.05 * losses["entity_linker"]
        bar.update()
        bar.set_postfix(loss=round(shown, 3), refresh=False)
    bar.close()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
