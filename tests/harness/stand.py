"""Small pipelines of noise that hold all components, and the stores that they read."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import torch
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.aliases.build import build_store
from spacy_luke.annotations import set_queries, set_questions
from spacy_luke.checkpoint.special import without_table
from spacy_luke.checkpoint.text_encoder import TextEncoder
from spacy_luke.components.linker.embed_entities import embed_entities
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.vectors.build import build_vectors
from tests.tiny import ENTITY_SIZE, SENTENCES, make_checkpoint, make_ernie

NAMES = ["Ada Lovelace", "London", "Royal Society", "Nadia Haddad", "Bank of Ghana", "Accra", "Kofi Mensah", "Berlin"]
NAMES += ["University of Lagos", "Lagos", "Ghana", "ada", "London near", "東京", "\U0001f984"]
QUERY = "The village @placeholder was empty."
WIDTH = 32
# 1,000 words that are mostly names would have 70,000 pairs up to the default 100 words apart.
NEAR = {"@misc": "spacy-luke.pairs.v1", "same_sentence": False, "max_words": 8, "types": None}

# Pipelines by name: what differs from the default settings of the package, and what `_luke` and `_ernie` make of it.
STANDS: dict[str, dict[str, Any]] = {
    "shared one_way": {"shared": True, "attention": "one_way"},
    "shared full": {"shared": True, "attention": "full"},
    "own one_way, groups": {"shared": False, "attention": "one_way", "groups": True},
    "own full, sentences": {"shared": False, "attention": "full", "context": "sentence"},
    "shared one_way, no sentences": {"shared": True, "attention": "one_way", "sentences": False, "cache": 80},
    "shared ernie": {"kind": "ernie", "shared": True},
    "own ernie": {"kind": "ernie", "shared": False},
}


def make_stores(folder: Path) -> None:
    """folder/names (mentions), folder/kb (with vectors), folder/vectors (of ERNIE's entities)."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f"{name}\tQ{i}\t9\t10\n{name}\tQ{i + 1}\t3\t10" for i, name in enumerate(NAMES)]
    (folder / "names.tsv").write_text("\n".join(["name\tentity\tcount\toccurrences", *rows]) + "\n", encoding="utf8")
    build_store([folder / "names.tsv"]).store.save(folder / "names")
    entities = [
        {
            "id": f"Q{i}",
            "names": [name, NAMES[i - 1]],
            "description": f"It is {name}.",
            "count": i + 1,
            "person": i % 3 == 0,
        }
        for i, name in enumerate(NAMES)
    ]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in entities]
    (folder / "entities.jsonl").write_text("".join(lines), encoding="utf8")
    build_kb([folder / "entities.jsonl"], folder / "kb")
    embed_entities(EntityKB.open(folder / "kb"), TextEncoder(without_table(make_checkpoint())))
    values = np.random.default_rng(0).normal(size=(len(NAMES), ENTITY_SIZE)).astype(np.float32)
    build_vectors(values, folder / "vectors", names=[f"Q{i}" for i in range(len(NAMES))])


def make_stand(name: str, stores: Path, **changes: Any) -> Language:
    """One of STANDS; stores: a folder of `make_stores`."""
    settings = {"kind": "luke", **STANDS[name], **changes}
    make = {"luke": _luke, "ernie": _ernie}[settings.pop("kind")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gold that no window reaches, and the like: there are three sentences
        return make(stores, **settings)


def _blank(stores: Path, *, sentences: bool = True, groups: bool = False) -> Language:
    nlp = spacy.blank("en")
    if sentences:
        nlp.add_pipe("sentencizer")
    annotator = nlp.add_pipe("entity_annotator", config={"overlaps": groups})
    annotator.initialize(lambda: [], store=stores / "names")
    return nlp


def _luke(
    stores: Path,
    *,
    shared: bool,
    attention: str,
    context: str = "document",
    groups: bool = False,
    sentences: bool = True,
    cache: int = 8192,
) -> Language:
    nlp = _blank(stores, sentences=sentences, groups=groups)
    encoder = {"@architectures": "spacy-luke.LukeEncoder.v1", "train_precision": "float32"}
    if shared:
        nlp.add_pipe("luke_encoder", config={"model": encoder, "entity_rows": "all", "shared_pieces": cache})
        encoder = {"@architectures": "spacy-luke.SharedEncoder.v1"}
    model = {"attention": attention, "encoder": encoder}
    features = {"features": "all" if attention == "one_way" else "entity"}
    getter = {"@misc": "spacy-luke.span_group.v1", "key": "sc"} if groups else {"@misc": "spacy-luke.doc_ents.v1"}
    spans = {"getter": getter, "context": context, "overlap": 32}
    more = {
        "luke_ner": {"overlap": 32, "max_span_words": 4, "context": context, "spans_key": "sc" if groups else None},
        "luke_typer": {**spans, "always_best": True, "set_label": context == "sentence"},
        "luke_relation": {**spans, "suggester": NEAR, "none": None if groups else "no_relation"},
        "luke_qa": {"stride": 32, "max_question_pieces": 30, "max_answer_pieces": 20, "no_answer_threshold": 0.0},
        "luke_cloze": {"stride": 32, "candidates": getter},
        "luke_linker": {"getter": getter, "overlap": 16, "share_names": groups, "use_given": not sentences},
    }
    for name, config in more.items():
        heads = features if name in ("luke_typer", "luke_relation") else {}
        if name == "luke_ner" and not groups:  # all spans; a proposer of noise leaves hardly any
            heads = {"spans_per_word": None}
        nlp.add_pipe(name, config={**config, "model": {**model, **heads}})
    return _initialize(nlp, lambda: make_checkpoint(entity_size=WIDTH, max_positions=134), stores, shared=shared)


def _ernie(stores: Path, *, shared: bool) -> Language:
    nlp = _blank(stores)
    links = {"knowledge": {"@misc": "spacy-luke.linked_spans.v1", "key": "luke_links"}}
    encoder = {"@architectures": "spacy-luke.ErnieEncoder.v1", "train_precision": "float32"}
    if shared:
        nlp.add_pipe("ernie_encoder", config={"model": encoder, "overlap": 8, **links})
        tok2vec = {"@architectures": "spacy.Tok2VecListener.v1", "width": WIDTH, "upstream": "ernie_encoder"}
        textcat = {"@architectures": "spacy.TextCatReduce.v1", "tok2vec": tok2vec, "exclusive_classes": True}
        textcat.update(use_reduce_first=True, use_reduce_last=False, use_reduce_max=False, use_reduce_mean=True)
        nlp.add_pipe("soft_textcat", config={"model": textcat})
        encoder = {"@architectures": "spacy-luke.SharedEncoder.v1"}
    else:
        nlp.add_pipe("soft_textcat")
    if shared:  # what the annotator found; otherwise the entities that Docs come with
        links["getter"] = {"@misc": "spacy-luke.span_group.v1", "key": "luke_links"}
    nlp.add_pipe("ernie_typer", config={"model": {"encoder": encoder}, "always_best": True, **links})
    nlp.add_pipe("ernie_relation", config={"model": {"encoder": encoder}, "none": None, "suggester": NEAR, **links})
    return _initialize(nlp, lambda: make_ernie(stores / "vectors", max_positions=100), stores, shared=shared)


def make_gold(nlp: Language, text: str) -> Doc:
    """Something to initialise from."""
    doc = nlp.make_doc(text)
    doc.set_ents([Span(doc, 0, 2, "PER", kb_id="Q1"), Span(doc, 4, 5, "LOC", kb_id="Q2")])
    doc.spans["sc"] = doc.spans["luke_links"] = list(doc.ents)
    doc.spans["luke_types"] = [Span(doc, 0, 2, "person"), Span(doc, 4, 5, "place"), Span(doc, 4, 5, "city")]
    doc._.luke_relations = [(doc.ents[0], doc.ents[1], "near"), (doc.ents[1], doc.ents[0], "far")]
    places = [(span.start_char, span.end_char) for span in doc.ents]
    set_questions(doc, [{"question": "Who left?", "answers": places[:1]}, {"question": "Why?", "answers": []}])
    set_queries(doc, [{"query": QUERY, "candidates": places, "answers": places[:1]}])
    doc.cats = {"same": 0.7, "other": 0.3}
    return doc


def make_examples(nlp: Language) -> list[Example]:
    examples = []
    for text in SENTENCES[:3]:
        gold = make_gold(nlp, text)
        given = nlp.make_doc(text)
        given.set_ents([Span(given, x.start, x.end, x.label_) for x in gold.ents])
        given.spans["sc"] = given.spans["luke_links"] = list(given.ents)
        for i, word in enumerate(given):
            word.is_sent_start = i == 0
        examples.append(Example(given, gold))
    return examples


def _initialize(nlp: Language, weights: Any, stores: Path, *, shared: bool) -> Language:
    examples = make_examples(nlp)
    for name, component in nlp.pipeline:
        settings: dict[str, Any] = {"nlp": nlp}
        if name in ("sentencizer", "entity_annotator"):
            continue
        if name.endswith("_encoder") or (name.startswith(("luke_", "ernie_")) and not shared):
            settings["weights"] = weights
        if name == "luke_linker":
            settings["kb"] = lambda: EntityKB.open(stores / "kb")
        component.initialize(lambda: examples, **settings)
        _add_noise(name, component)
    if "luke_ner" in nlp.pipe_names:  # of "no entity": heads of noise that find something in most sentences
        settings = nlp.get_pipe("luke_ner").model.attrs
        bias = 0.5 if settings["attention"] == "full" else -1.0 if settings["spans_per_word"] is None else -5.0
        nlp.get_pipe("luke_ner").model.shims[0].module.classifier.bias.data[0] = bias
    return nlp


def _add_noise(name: str, component: Any) -> None:
    """Heads begin near zero, and would find the same everywhere."""
    if name.endswith("_encoder"):
        return
    if name == "soft_textcat":
        for node in component.model.walk():
            for key in node.param_names if node.name == "linear" else ():
                node.set_param(
                    key, node.get_param(key) + np.random.default_rng(0).normal(size=node.get_param(key).shape)
                )
        return
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    module = component.model.shims[0].module
    for parameter in module.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
