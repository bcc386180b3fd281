"""Relation classification of all pairs of real documents: pairs a second, beside Hugging Face LUKE; and what a pipeline
of three components with a shared encoder costs beside NER alone.

    python benchmarks/relation_speed.py            # results/relation_speed.json and .md
    python benchmarks/relation_speed.py --smoke    # a tiny encoder, to see that everything works

Base size, random weights, Re-DocRED's development documents; a pair is the first mentions of two entities. One process,
alternating rounds, results compared before times. Hugging Face's batch size and the number of threads are its best.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from machine import describe_machine
from measuring import data_parser, write_report
from relation_peer import LABELS, Peer, write_checkpoint

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error")
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
SMALL = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}


def main() -> None:
    parser = data_parser(__doc__)
    parser.add_argument("--documents", type=int, default=4)
    parser.add_argument("--slow-pairs", type=int, default=32, help="of each document, for one window a pair")
    parser.add_argument("--repeats", type=int, default=3, help="timed rounds; the median counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    name = "relation_speed_smoke" if options.smoke else "relation_speed"
    with tempfile.TemporaryDirectory() as folder:
        result = measure(options, Path(folder))
    write_report(name, result, report(result))


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    import spacy
    import torch

    size = SMALL if options.smoke else BASE
    write_checkpoint(folder, options.data / "vocabularies" / "roberta", size=size, seed=options.seed)
    nlp = spacy.blank("en")
    docs = read_documents(options.data / "redocred" / "dev_revised.json", nlp, options.documents)
    some = [pairs_of(doc)[: options.slow_pairs] for doc in docs]
    full = make_relation(folder, "full", tokens="pair")
    one_way = {tokens: make_relation(folder, "one_way", tokens=tokens) for tokens in ("pair", "mention")}
    peer = Peer(folder)
    for batch in (1, 4, 8, 16, 32):
        peer.time(docs[:1], [some[0]], batch)
    best = min((x for x in peer.times if x > 1), key=lambda x: peer.times[x])
    ours, theirs = classify(full, docs, some), peer.classify(docs, some, best)
    agree = sum(a == b for a, b in zip(ours, theirs))
    print(f"full and Hugging Face agree on {agree} of {len(theirs)} pairs", flush=True)
    if agree < 0.995 * len(theirs):
        raise SystemExit("The predictions differ, so the times would not be comparable.")
    everything = [pairs_of(doc) for doc in docs]
    products = make_products(full, docs, some)
    systems: dict[str, tuple[Callable[[], Any], int]] = {
        "hf_pair_by_pair": (lambda: peer.classify(docs, some, 1), sum(map(len, some))),
        f"hf_batch_{best}": (lambda: peer.classify(docs, some, best), sum(map(len, some))),
        "full": (lambda: classify(full, docs, some), sum(map(len, some))),
        "full_products": (products, sum(map(len, some))),
        "one_way_pair": (lambda: classify(one_way["pair"], docs, everything), sum(map(len, everything))),
        "one_way_mention": (lambda: classify(one_way["mention"], docs, everything), sum(map(len, everything))),
        "words_once": (lambda: read_once(one_way["pair"], docs), sum(map(len, everything))),
    }
    pipelines = make_pipelines(folder)
    texts = [doc.text for doc in docs]
    for name, pipeline in pipelines.items():
        systems[name] = ((lambda p=pipeline: annotate(p, texts)), sum(len(doc) for doc in docs))
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for run, _ in systems.values():
        run()
    for _ in range(options.repeats):
        for name, (run, _) in systems.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    found = [len(doc._.luke_relations) for doc in pipelines["ner_typing_relations"].pipe(texts)]
    entities = [len(doc.ents) for doc in pipelines["ner_typing_relations"].pipe(texts)]
    rows = [
        {"system": k, "units": n, "seconds": seconds[k], "per_second": n / median(seconds[k])}
        for k, (_, n) in systems.items()
    ]
    return {
        **describe_machine(),
        "torch_threads": torch.get_num_threads(),
        "size": size,
        "agree": [agree, len(theirs)],
        "hf_batch": best,
        "documents": [{"words": len(doc), "pairs": len(x)} for doc, x in zip(docs, everything)],
        "pipeline_found": {"entities": entities, "relations": found},
        "rows": rows,
    }


def annotate(nlp: Any, texts: Sequence[str]) -> list[Any]:
    """The texts as if they were new: no word states are left of the round before."""
    if nlp.has_pipe("luke_encoder"):
        nlp.get_pipe("luke_encoder").sharing.cache.clear()
    return list(nlp.pipe(texts))


def read_documents(path: Path, nlp: Any, n: int) -> list[Any]:
    """Docs of words with blanks between them, whose entities are the first mentions of the file's entities."""
    from spacy.tokens import Doc, Span
    from spacy.util import filter_spans

    docs = []
    for record in json.loads(path.read_text(encoding="utf8"))[:n]:
        starts, words = [], []
        for sentence in record["sents"]:
            starts.append(len(words))
            words += sentence
        doc = Doc(
            nlp.vocab, words=words, spaces=[True] * len(words), sent_starts=[i in starts for i in range(len(words))]
        )
        spans = []
        for mentions in record["vertexSet"]:
            first = starts[mentions[0]["sent_id"]]
            spans.append(
                Span(doc, first + mentions[0]["pos"][0], first + mentions[0]["pos"][1], label=mentions[0]["type"])
            )
        doc.set_ents(filter_spans(spans))
        docs.append(doc)
    return docs


def pairs_of(doc: Any) -> list[tuple[Any, Any]]:
    return [(head, tail) for head in doc.ents for tail in doc.ents if head.start != tail.start]


def make_relation(folder: Path, attention: str, *, tokens: str) -> Any:
    import spacy

    from spacy_luke.checkpoint.checkpoint import read_checkpoint

    paper = attention == "full"
    model = {
        "@architectures": "spacy-luke.EntityClassifier.v1",
        "attention": attention,
        "features": "entity" if paper else "all",
        "bias": not paper,
        "encoder": {"@architectures": "spacy-luke.LukeEncoder.v1"},
    }
    relation = spacy.blank("en").add_pipe("luke_relation", config={"model": model, "tokens": tokens, "scorer": None})
    checkpoint = read_checkpoint(folder)
    relation.load_encoder(checkpoint)
    if paper:
        relation.load_head(checkpoint)
    else:
        relation.cfg["labels"] = LABELS[1:]
        relation.create_head()
    return relation


def classify(relation: Any, docs: Sequence[Any], pairs: Sequence[Any]) -> list[Any]:
    """The label of each pair, None for no relation."""
    for doc, own in zip(docs, pairs):
        doc._.luke_pairs = own
    answers: list[Any] = []
    for doc, own in zip(relation.pipe(docs), pairs):
        found = {(r.head.start, r.tail.start): r.label for r in doc._.luke_relations}
        answers += [found.get((head.start, tail.start)) for head, tail in own]
        del doc.user_data["luke_pairs"], doc.user_data["luke_relations"]
    return answers


def read_once(relation: Any, docs: Sequence[Any]) -> None:
    """The word pass alone, once for each document."""
    from spacy_luke.batch.windows import plan_windows
    from spacy_luke.bridge.documents import read_document
    from spacy_luke.encoders.luke_kind import encode_words

    for doc in docs:
        document = read_document(doc, relation.tokenizer)
        windows = plan_windows(document, room=510, context="document", share=True, overlap=128)
        for a, b in zip(windows.start_B.tolist(), windows.end_B.tolist()):
            with relation.predicting():
                encode_words(relation.encoder, document.pieces.ids_N[a:b], [b - a])


def make_products(relation: Any, docs: Sequence[Any], pairs: Sequence[Any]) -> Callable[[], None]:
    """The matrix products of `full` alone: of the words' linear layers and attention, as our encoder makes them (the
    two entity tokens of a window of hundreds of pieces are left out)."""
    import torch

    from spacy_luke.components.units.inputs import unit_items

    items = []
    for doc, own in zip(docs, pairs):
        doc._.luke_pairs = own
        asked = relation.asked(doc)
        items += unit_items(relation.input(), doc, asked.mentions, asked.units_UK, owner=0)
        del doc.user_data["luke_pairs"]
    batches = [list(batch.lengths) for batch in relation.batched(items)]
    config = relation.encoder.module.config
    d, f, heads = config.hidden_size, config.intermediate_size, config.num_heads
    square, up, down = torch.randn(d, d), torch.randn(d, f), torch.randn(f, d)

    def run() -> None:
        with torch.inference_mode():
            for lengths in batches:
                x, wide = torch.randn(sum(lengths), d), torch.randn(1024, f)
                for layer in range(config.num_layers):
                    last = layer == config.num_layers - 1
                    for _ in range(2 if last else 4):  # key and value; query and output
                        x @ square
                    if last:
                        continue
                    for n in lengths:
                        q = x[:n].view(n, heads, -1).transpose(0, 1)
                        (q @ q.transpose(1, 2)) @ q
                    for part in x.split(1024):
                        part @ up
                        wide[: len(part)] @ down

    return run


def make_pipelines(folder: Path) -> dict[str, Any]:
    """NER alone with an own encoder, and NER, typing and relations on a shared one."""
    import spacy

    from spacy_luke.checkpoint.checkpoint import read_checkpoint

    checkpoint = read_checkpoint(folder)
    entity_labels = ["PER", "ORG", "LOC", "MISC"]

    def ner(nlp: Any, encoder: dict[str, Any]) -> Any:
        model = {"@architectures": "spacy-luke.SpanClassifier.v1", "encoder": encoder}
        return nlp.add_pipe("luke_ner", config={"model": model})

    def finish(component: Any, labels: list[str]) -> None:
        import torch

        component.cfg["labels"] = labels
        component.create_head()
        with torch.no_grad():
            component.model.shims[0].module.classifier.weight.normal_(std=0.5)

    own, shared = spacy.blank("en"), spacy.blank("en")
    own.add_pipe("sentencizer")
    alone = ner(own, {"@architectures": "spacy-luke.LukeEncoder.v1"})
    alone.load_encoder(checkpoint)
    finish(alone, entity_labels)
    shared.add_pipe("sentencizer")
    shared.add_pipe("luke_encoder").load_encoder(checkpoint)
    encoder = {"@architectures": "spacy-luke.SharedEncoder.v1"}
    first = ner(shared, encoder)
    model = {
        "@architectures": "spacy-luke.EntityClassifier.v1",
        "attention": "one_way",
        "features": "all",
        "encoder": encoder,
    }
    typer = shared.add_pipe("luke_typer", config={"model": model, "scorer": None})
    suggester = {"@misc": "spacy-luke.pairs.v1", "same_sentence": True}
    relation = shared.add_pipe("luke_relation", config={"model": model, "suggester": suggester, "scorer": None})
    finish(first, entity_labels)
    first.model.shims[0].module.load_state_dict(alone.model.shims[0].module.state_dict())
    finish(typer, [f"type_{i}" for i in range(20)])
    finish(relation, LABELS[1:])
    return {"ner_alone": own, "ner_typing_relations": shared}


def report(result: dict[str, Any]) -> str:
    rows = {row["system"]: row for row in result["rows"]}
    peer = rows[f"hf_batch_{result['hf_batch']}"]["per_second"]
    words = sum(x["words"] for x in result["documents"])
    pairs = sum(x["pairs"] for x in result["documents"])
    lines = [
        "# Relations: speed",
        "",
        f"Written by `python benchmarks/relation_speed.py`. {result['chip']}, {result['torch_threads']} threads, "
        f"float32, torch {result['versions']['torch']}, transformers {result['versions'].get('transformers')}. "
        f"{len(result['documents'])} documents of Re-DocRED, {words:,} words, {pairs:,} pairs. `full` and Hugging "
        f"Face agree on {result['agree'][0]} of {result['agree'][1]} pairs.",
        "",
        "| system | pairs | pairs/s | times Hugging Face, batched |",
        "|---|---|---|---|",
    ]
    pipelines = ("ner_alone", "ner_typing_relations")
    for name, row in rows.items():
        if name not in (*pipelines, "words_once"):
            lines.append(f"| {name} | {row['units']:,} | {row['per_second']:.2f} | {row['per_second'] / peer:.2f} |")
    seconds = {name: median(row["seconds"]) for name, row in rows.items()}
    alone, three = (seconds[name] for name in pipelines)
    lines += [
        "",
        f"`full` takes {seconds['full'] / seconds['full_products']:.2f} times its own matrix products. Reading all "
        f"documents once takes {seconds['words_once']:.2f} s; with all their pairs `one_way` takes "
        f"{seconds['one_way_pair']:.2f} s (tokens = pair) or {seconds['one_way_mention']:.2f} s (tokens = mention).",
        "",
        "A pipeline of NER, typing and relations (pairs inside a sentence) with a shared encoder takes "
        f"{three / alone:.2f} times the time of NER alone: {words / alone:.0f} and {words / three:.0f} words/s; it "
        f"found {sum(result['pipeline_found']['entities'])} entities and {sum(result['pipeline_found']['relations'])} "
        "relations.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
