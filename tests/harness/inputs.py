"""What commands read: checkpoints, pipelines, stores, texts; made once, two of a kind where one replaces another."""

import json
import random
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.tokens import DocBin, Span
from spacy.training import Example

from spacy_luke.annotations import set_rows
from spacy_luke.checkpoint.checkpoint import write_huggingface
from spacy_luke.checkpoint.ernie import write_ernie
from spacy_luke.kb.change import add_to_kb
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.pipelines.quantization import quantize
from spacy_luke.pretraining.luke.task import load_luke_pretraining, to_luke_checkpoint
from spacy_luke.stores.parallel import Engine
from spacy_luke.vectors.store import EntityVectors
from tests.aliases.version_1 import as_version_1
from tests.checkpoint.small_wheels import write_wheels
from tests.corpus.written import build_all
from tests.facts.annotated import hostile_documents, write_lines
from tests.tiny import SENTENCES, make_checkpoint, make_ernie, make_fresh_ernie, make_wordpiece
from tests.training_config import LUKE_NER, write_config

from .docs import read
from .stand import NAMES, make_examples, make_gold, make_stores

ROOT = Path(__file__).parents[2]
WIKI = ROOT / "assets" / "wiki.xml"
LABELS = ["NIL", "PER", "LOC", "ORG"]
ENTITIES = 20  # of the shards' vocabulary
TRIPLES = "".join(f"Q{i}\tP{i % 3}\tQ{(7 * i + k) % 30}\n" for i in range(30) for k in (1, 2))
_made: list[Path] = []


def make_inputs(folder: Path) -> Path:
    """Everything, in one folder, as PLACE of arguments; once in a process, since no case changes it."""
    if _made and _made[0].exists():
        return _made[0]
    folder.mkdir(parents=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gold that no window reaches, and the like: there is little of it
        make_stores(folder)
        _write_texts(folder)
        _write_checkpoints(folder)
        _write_corpora(folder)
        _write_pipelines(folder)
        _write_changed(folder)
    write_config(
        folder / "train.cfg",
        {"luke_ner": LUKE_NER},
        train=folder / "train.spacy",
        checkpoint=folder / "tiny",
        batcher={"@batchers": "spacy.batch_by_sequence.v1", "size": 3},
        max_steps=5,
        eval_frequency=2,
    )
    write_config(
        folder / "student.cfg",
        {"luke_ner": LUKE_NER},
        train=folder / "train.spacy",
        checkpoint=folder / "tiny_b",
        batcher={"@batchers": "spacy.batch_by_sequence.v1", "size": 3},
        max_steps=5,
        eval_frequency=2,
    )
    _made[:] = [folder]
    return folder


def _write_texts(folder: Path) -> None:
    rows = (folder / "names.tsv").read_text("utf8").splitlines()
    (folder / "names_b.tsv").write_text("\n".join(rows[:9]) + "\n", encoding="utf8")
    lines = (folder / "entities.jsonl").read_text("utf8").splitlines()
    (folder / "entities_b.jsonl").write_text("\n".join(lines[:7]) + "\n", encoding="utf8")
    more = [{"id": f"X{i}", "names": [f"Newcomer {i}", "ada"], "description": "It is new."} for i in range(9)]
    (folder / "more.jsonl").write_text("".join(json.dumps(x) + "\n" for x in more), encoding="utf8")
    write_lines(folder / "annotated.jsonl", hostile_documents())
    write_lines(folder / "annotated_b.jsonl", hostile_documents()[1:])
    for name, size in (("kge", 6), ("kge_b", 4)):
        (folder / name).mkdir()
        (folder / name / "entity2id.txt").write_text(f"{size}\n" + "".join(f"Q{i}\t{i}\n" for i in range(size)))
        (folder / name / "entity2vec.vec").write_text("".join(f"{i}\t{i / 2}\t{i * i}\n" for i in range(size)))
    (folder / "triples.tsv").write_text(TRIPLES, encoding="utf8")
    (folder / "held.tsv").write_text("Q3\tP0\tQ9\nQ4\tP1\tQ9\n", encoding="utf8")
    (folder / "text.txt").write_text("\n\n".join(SENTENCES), encoding="utf8")
    (folder / "text_b.txt").write_text(SENTENCES[1], encoding="utf8")
    shutil.copy(ROOT / "assets" / "sample" / "train.jsonl", folder / "gold.jsonl")
    shutil.copy(ROOT / "assets" / "sample" / "dev.jsonl", folder / "gold_b.jsonl")


def _write_checkpoints(folder: Path) -> None:
    for name, seed in (("tiny", 0), ("tiny_b", 1)):
        write_huggingface(make_checkpoint(labels=LABELS, seed=seed), folder / name)
    make_wordpiece().save_huggingface(folder / "wordpiece")
    encoder = make_checkpoint(entity_aware=False)
    config = replace(encoder.config, dropout=0.0, attention_dropout=0.0)
    write_huggingface(replace(encoder, config=config), folder / "encoder")
    store = EntityVectors.open(folder / "vectors")
    write_ernie(make_ernie(folder / "vectors"), folder / "ernie_read")
    write_ernie(make_fresh_ernie(store.size), folder / "ernie")


def _write_corpora(folder: Path) -> None:
    from tests.pretraining.luke.shards import make_shards, make_vocab

    make_shards(folder / "shards", pages=6)
    started, vocab = make_checkpoint(entity_aware=False), make_vocab()
    model = load_luke_pretraining(started, vocab, seed=0)
    tasks = {"words": True, "entities": True, "pages": False}
    write_huggingface(to_luke_checkpoint(model.state_dict(), started, vocab, tasks=tasks), folder / "pretrained")
    build_all(WIKI, folder, Engine(workers=1), corpus="linked", shards="wiki_shards")
    rng = random.Random(0)
    for name, documents in (("documents", 8), ("documents_dev", 3)):
        lines = [json.dumps(_ernie_document(rng)) + "\n" for _ in range(documents)]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf8")


def _ernie_document(rng: random.Random) -> dict:
    """Words of letters, every third one an entity."""
    words: list[str] = []
    entities, at = [], 0
    for i in range(rng.randint(6, 40)):
        word = "." if i % 6 == 5 else "".join(rng.choices("abcdef", k=rng.randint(1, 4)))
        if i % 3 == 0:
            entities.append([at, at + len(word), f"Q{rng.randrange(len(NAMES))}"])
        words.append(word)
        at += len(word) + 1
    return {"text": " ".join(words), "entities": entities}


def _write_pipelines(folder: Path) -> None:
    for name, seed in (("pipeline", 0), ("pipeline_b", 1)):
        nlp = make_pipeline(folder, seed=seed)
        nlp.to_disk(folder / name)
    golds = [make_gold(nlp, text) for text in SENTENCES[:3]]
    for doc in golds:
        set_rows(doc, "luke_queries", None)
    DocBin(docs=golds, store_user_data=True).to_disk(folder / "train.spacy")
    DocBin(docs=golds * 30, store_user_data=True).to_disk(folder / "dev.spacy")
    linked = nlp.make_doc("Ada met Bob in London.")
    linked.set_ents([Span(linked, 0, 1, "PER", kb_id="Ada Lovelace"), Span(linked, 4, 5, "LOC", kb_id="London")])
    DocBin(docs=[linked]).to_disk(folder / "linked.spacy")


def _write_changed(folder: Path) -> None:
    """What is there is changed or written anew by commands: pipelines in int8, a knowledge base that was added to, a
    store of names of an earlier version, sources of the starter knowledge base."""
    for name in ("pipeline", "pipeline_b"):
        nlp = spacy.load(folder / name)
        quantize(nlp)
        nlp.to_disk(folder / f"{name}_int8")
    shutil.copytree(folder / "kb", folder / "kb_added")
    add_to_kb(EntityKB.open(folder / "kb_added"), [folder / "more.jsonl"], folder / "kb_added")
    (folder / "wheels").mkdir()
    write_wheels(folder / "wheels")
    (folder / "old").mkdir()
    (folder / "old" / "names").write_bytes(as_version_1((folder / "names").read_bytes()))
    for name, sizes in (("sources", (9_000_000, 1_700_000)), ("sources_b", (8_000_000, 2_000_000))):
        (folder / name).mkdir()
        lines = (f"London\t\t51.5\t-0.1\tGB\t{sizes[0]}\n", f"Wien\tVienna\t48.2\t16.3\tAT\t{sizes[1]}\n")
        (folder / name / "cities15000.tsv").write_text("".join(lines), encoding="utf8")
    sources = [{"name": "Own", "license": "MIT"}]
    about = {"name": "tiny", "version": "1.0", "description": "Finds names.", "license": "MIT", "sources": sources}
    (folder / "about.json").write_text(json.dumps(about), encoding="utf8")


def make_pipeline(folder: Path, *, seed: int = 0) -> Language:
    """luke_ner, luke_typer and luke_linker over one encoder, and names; small, since it is written and read often."""
    from spacy_luke.aliases.store import AliasStore

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("entity_annotator").store = AliasStore.open(folder / "names")
    nlp.add_pipe("luke_encoder", config={"model": {"train_precision": "float32"}})
    model = {"attention": "one_way", "encoder": {"@architectures": "spacy-luke.SharedEncoder.v1"}}
    nlp.add_pipe("luke_ner", config={"overlap": 32, "max_span_words": 3, "model": {**model, "spans_per_word": None}})
    nlp.add_pipe("luke_typer", config={"overlap": 32, "always_best": True, "model": model})
    nlp.add_pipe("luke_linker", config={"overlap": 16, "use_given": False, "model": model})
    examples: list[Example] = make_examples(nlp)
    weights = make_checkpoint(entity_size=32, seed=seed)
    for name in ("luke_encoder", "luke_ner", "luke_typer", "luke_linker"):
        settings = {"weights": lambda: weights} if name == "luke_encoder" else {}
        settings |= {"kb": lambda: EntityKB.open(folder / "kb")} if name == "luke_linker" else {}
        nlp.get_pipe(name).initialize(lambda: examples, nlp=nlp, **settings)
    generator = torch.Generator().manual_seed(seed)
    for name in ("luke_ner", "luke_typer", "luke_linker"):
        module = nlp.get_pipe(name).model.shims[0].module
        for parameter in module.parameters():
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
        if name == "luke_ner":
            module.classifier.bias.data[0] = -4.0
    return nlp


def say(nlp: Language) -> list[Any]:
    """What a pipeline finds in some texts, for comparison."""
    return [read(doc) for doc in nlp.pipe(SENTENCES)]
