"""The systems of speed.py: a base-size encoder with random weights in each, and the same documents for all.

B windows of a batch, L pieces, E spans.
"""

import contextlib
import math
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import spacy
import torch
from ner_systems import spacy_ner_config, transformer_config
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_luke.batch.decode import greedy_flat
from spacy_luke.checkpoint.checkpoint import read_checkpoint
from spacy_luke.model.int8 import LARGEST
from spacy_luke.readers.conll import ColumnDocument
from spacy_luke.text.align import align_words

LABELS = ["NIL", "MISC", "PER", "ORG", "LOC"]
ROOM, LONGEST, CHUNK = 510, 16, 128  # the paper's recipe: pieces of a window and of a span, spans of a pass
Entities = list[set[tuple[int, int, str]]]  # of each document, words counted in it


@dataclass(frozen=True)
class System:
    """run: the entities of some documents, with a batch setting; sentences: only that many of them, to choose the
    setting quickly (those that are fast enough ignore it). batches: the settings to try, None where there is none.
    formats: the numbers that it can compute in."""

    name: str
    run: Callable[..., Entities]
    batches: Sequence[int | None] = (None,)
    formats: Sequence[str] = ("float32", "bfloat16")


# ---- ours


def make_luke(folder: Path, attention: str, *, spans_per_word: float = 0.5, train_precision: str = "float32") -> Any:
    """Initialised from a checkpoint, with its head where that fits (attention "full"). spans_per_word: one-way's."""
    nlp = spacy.blank("en")
    model = {
        "@architectures": "spacy-luke.SpanClassifier.v1",
        "attention": attention,
        "spans_per_word": spans_per_word if attention == "one_way" else None,
        "encoder": {"@architectures": "spacy-luke.LukeEncoder.v1", "train_precision": train_precision},
    }
    ner = nlp.add_pipe("luke_ner", config={"model": model, "max_span_pieces": LONGEST})
    gold = Doc(nlp.vocab, words=["Paris"])
    gold.set_ents([Span(gold, 0, 1, label="LOC")])
    example = Example(Doc(nlp.vocab, words=["Paris"]), gold)
    ner.initialize(lambda: [example], nlp=nlp, labels=LABELS[1:], weights=lambda: read_checkpoint(folder))
    return ner


def luke_system(name: str, ner: Any, *, context: str) -> System:
    def run(
        documents: Sequence[ColumnDocument], *, batch: int | None, precision: str, sentences: Any = None
    ) -> Entities:
        ner.cfg["context"] = context
        if precision != "int8":
            ner.encoder_node.attrs["predict_precision"] = precision
        elif not ner.encoder.is_int8:  # from then on, so that int8 is the last format
            ner.encoder.quantize(LARGEST)
        docs = [make_doc(ner.vocab, x) for x in documents]
        return [entities_of(doc) for doc in ner.pipe(docs, batch_size=64)]

    return System(name, run, formats=("float32", "bfloat16", "int8"))


# ---- Hugging Face LUKE


@dataclass(frozen=True)
class Pass:
    """One window with at most CHUNK of its spans."""

    document: int
    first_word: int  # of the sentence
    ids: list[int]
    starts: list[int]  # of each word of the sentence in the window, and the end of the last
    spans: list[tuple[int, int]]  # words of the sentence


def hf_luke_system(name: str, folder: Path, *, context: str) -> System:
    """`LukeForEntitySpanClassification` by the recipe of the paper and of its example code: for each sentence a window,
    spans of up to 16 pieces, 128 in a pass, greedy by logit. Passes of similar size share a batch."""
    from transformers import LukeForEntitySpanClassification, LukeTokenizer

    model = LukeForEntitySpanClassification.from_pretrained(folder).eval()
    tokenizer = LukeTokenizer.from_pretrained(folder, task="entity_span_classification")
    known: dict[str, list[int]] = {}

    def run(
        documents: Sequence[ColumnDocument], *, batch: int, precision: str, sentences: int | None = None
    ) -> Entities:
        passes = [x for i, d in enumerate(documents) for x in _passes(i, d, tokenizer, known, context)]
        if sentences is not None:
            passes = passes[:sentences]
        found: dict[tuple[int, int], list[tuple[int, int, int, float]]] = {}
        order = sorted(range(len(passes)), key=lambda i: (len(passes[i].ids), len(passes[i].spans)))
        for a in range(0, len(order), batch):
            part = [passes[i] for i in order[a : a + batch]]
            with torch.inference_mode(), autocast(precision):
                logits_BEL = model(**_pad(part)).logits.float()
            for one, logits_EL in zip(part, logits_BEL):
                best, label = logits_EL[: len(one.spans)].max(-1)
                rows = zip(one.spans, label.tolist(), best.tolist())
                found.setdefault((one.document, one.first_word), []).extend((i, j, k, x) for (i, j), k, x in rows if k)
        answers: Entities = [set() for _ in documents]
        for (document, first), rows in found.items():
            rows.sort()
            columns = [torch.tensor([row[c] for row in rows]).numpy() for c in (0, 1, 3)]
            chosen = greedy_flat(*columns) if rows else []
            answers[document] |= {(first + rows[i][0], first + rows[i][1], LABELS[rows[i][2]]) for i in chosen}
        return answers

    return System(name, run, batches=(1, 2, 4, 8) if context == "document" else (4, 8, 16, 32))


def _passes(
    index: int, document: ColumnDocument, tokenizer: Any, known: dict[str, list[int]], context: str
) -> Iterator[Pass]:
    pieces = [_pieces(tokenizer, word, known) for word in document.words]
    ends = [*document.sentence_starts[1:], len(document.words)]
    everything = [piece for word in pieces for piece in word]
    done = 0
    for first, end in zip(document.sentence_starts, ends):
        words = pieces[first:end]
        size = sum(map(len, words))
        left, right, half = done, len(everything) - done - size, int((ROOM - size) / 2)
        if context == "sentence":
            before = after = 0
        elif left < right:
            before = min(left, half)
            after = min(right, ROOM - before - size)
        else:
            after = min(right, half)
            before = min(left, ROOM - after - size)
        window = everything[done - before : done + size + after]
        done += size
        starts = [before]
        for word in words:
            starts.append(starts[-1] + len(word))
        n = len(words)
        spans = [(i, j) for i in range(n) for j in range(i + 1, n + 1) if starts[j] - starts[i] <= LONGEST]
        chunk = math.ceil(len(spans) / math.ceil(len(spans) / CHUNK)) if spans else 1
        ids = [tokenizer.cls_token_id, *window, tokenizer.sep_token_id]
        for a in range(0, len(spans), chunk):
            yield Pass(index, first, ids, starts, spans[a : a + chunk])


def _pad(part: Sequence[Pass]) -> dict[str, torch.Tensor]:
    L, E = max(len(x.ids) for x in part), max(len(x.spans) for x in part)
    ids_BL, mask_BL = torch.full((len(part), L), 1), torch.zeros((len(part), L), dtype=torch.long)
    first_BE, last_BE = torch.zeros((2, len(part), E), dtype=torch.long)
    real_BE = torch.zeros((len(part), E), dtype=torch.long)
    for row, x in enumerate(part):
        ids_BL[row, : len(x.ids)] = torch.tensor(x.ids)
        mask_BL[row, : len(x.ids)] = 1
        starts = torch.tensor(x.starts)
        i_E, j_E = torch.tensor(x.spans).T
        first_BE[row, : len(x.spans)], last_BE[row, : len(x.spans)] = starts[i_E] + 1, starts[j_E]
        real_BE[row, : len(x.spans)] = 1
    positions = first_BE[..., None] + torch.arange(LONGEST)
    positions = torch.where((positions <= last_BE[..., None]) & (real_BE[..., None] > 0), positions, -1)
    return {
        "input_ids": ids_BL,
        "attention_mask": mask_BL,
        "entity_ids": 2 * real_BE,
        "entity_attention_mask": real_BE,
        "entity_position_ids": positions,
        "entity_start_positions": first_BE,
        "entity_end_positions": last_BE,
    }


def _pieces(tokenizer: Any, word: str, known: dict[str, list[int]]) -> list[int]:
    if word not in known:
        blank = word[0] != "'" and (len(word) != 1 or not _is_punctuation(word))
        pieces = tokenizer.tokenize(word, add_prefix_space=True) if blank else tokenizer.tokenize(word)
        known[word] = tokenizer.convert_tokens_to_ids(pieces)
    return known[word]


def _is_punctuation(char: str) -> bool:
    code = ord(char)
    ascii_sign = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_sign or unicodedata.category(char).startswith("P")


# ---- the other peers


def make_spacy_ner(folder: Path) -> Any:
    nlp = spacy.blank("en")
    nlp.add_pipe("transformer", config={"model": transformer_config(str(folder))})
    ner = nlp.add_pipe("ner", config={"model": spacy_ner_config()})
    for label in LABELS[1:]:
        ner.add_label(label)
    gold = Doc(nlp.vocab, words=["Paris"])
    gold.set_ents([Span(gold, 0, 1, label="LOC")])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=["Paris"]), gold)])
    return nlp


def spacy_ner_system(name: str, nlp: Any) -> System:
    """batch: pieces that spacy-transformers encodes at once (max_batch_items)."""

    def run(documents: Sequence[ColumnDocument], *, batch: int, precision: str, sentences: Any = None) -> Entities:
        nlp.get_pipe("transformer").cfg["max_batch_items"] = batch
        return [entities_of(doc) for doc in nlp.pipe([make_doc(nlp.vocab, x) for x in documents], batch_size=128)]

    return System(name, run, batches=(1024, 4096, 16384), formats=("float32",))  # its wrapper passes numpy arrays


def span_marker_system(name: str, folder: Path, *, context: str) -> System:
    """SpanMarker with its own defaults: spans of up to 8 words, 128 in a sample."""
    from datasets import Dataset
    from span_marker import SpanMarkerModel

    model = SpanMarkerModel.from_pretrained(str(folder), labels=["O", *LABELS[1:]]).eval()
    model.config.trained_with_document_context = context == "document"

    def run(
        documents: Sequence[ColumnDocument], *, batch: int, precision: str, sentences: int | None = None
    ) -> Entities:
        rows = [(i, first, words) for i, d in enumerate(documents) for first, words in _sentences(d)][:sentences]
        columns: dict[str, list[Any]] = {"tokens": [x[2] for x in rows]}
        if context == "document":
            columns.update(document_id=[x[0] for x in rows], sentence_id=[x[1] for x in rows])
        with warnings.catch_warnings(), autocast(precision):
            warnings.simplefilter("ignore")
            predicted = model.predict(Dataset.from_dict(columns), batch_size=batch)
        answers: Entities = [set() for _ in documents]
        for (i, first, _), entities in zip(rows, predicted, strict=True):
            answers[i] |= {(first + x["word_start_index"], first + x["word_end_index"], x["label"]) for x in entities}
        return answers

    return System(name, run, batches=(1, 4, 16))


def token_classifier_system(name: str, folder: Path) -> System:
    """A bare Hugging Face token classifier, sentences by length: the floor; in int8 by torch's dynamic quantisation."""
    from transformers import RobertaForTokenClassification

    from spacy_luke.text.tokenizer import PieceTokenizer

    model = RobertaForTokenClassification.from_pretrained(folder, num_labels=9, attn_implementation="sdpa").eval()
    tokenizer = PieceTokenizer.from_folder(folder)
    make_small = cache(lambda: torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8))

    def run(documents: Sequence[ColumnDocument], *, batch: int, precision: str, sentences: Any = None) -> Entities:
        classify = make_small() if precision == "int8" else model
        rows = [
            (i, first, align_words(tokenizer, words)) for i, d in enumerate(documents) for first, words in _sentences(d)
        ]
        rows.sort(key=lambda x: len(x[2].ids_N))
        answers: Entities = [set() for _ in documents]
        for a in range(0, len(rows), batch):
            part = rows[a : a + batch]
            ids_BL = torch.full((len(part), 2 + max(len(x.ids_N) for _, _, x in part)), tokenizer.pad_id)
            for row, (_, _, pieces) in enumerate(part):
                ids = [tokenizer.cls_id, *pieces.ids_N.tolist(), tokenizer.sep_id]
                ids_BL[row, : len(ids)] = torch.tensor(ids)
            with torch.inference_mode(), autocast(precision):
                best_BL = classify(ids_BL, attention_mask=(ids_BL != tokenizer.pad_id).long()).logits.argmax(-1)
            for (i, first, pieces), best_L in zip(part, best_BL.numpy()):
                tags = best_L[pieces.first_W + 1]
                answers[i] |= {(first + w, first + w + 1, str(tag)) for w, tag in enumerate(tags.tolist()) if tag}
        return answers

    return System(name, run, batches=(8, 32, 64), formats=("float32", "bfloat16", "int8"))


# ---- random checkpoints


def write_checkpoints(folder: Path, vocabulary: Path, *, size: dict[str, int], seed: int) -> tuple[Path, Path]:
    """Random encoders of one size with the real vocabulary: folders for LUKE and for RoBERTa."""
    import json

    from transformers import (
        LukeConfig,
        LukeForEntitySpanClassification,
        LukeTokenizer,
        RobertaConfig,
        RobertaModel,
        RobertaTokenizerFast,
    )

    luke, roberta = folder / "luke", folder / "roberta"
    luke.mkdir()
    entities = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}
    (luke / "entity_vocab.json").write_text(json.dumps(entities))
    files = {"vocab_file": str(vocabulary / "vocab.json"), "merges_file": str(vocabulary / "merges.txt")}
    tokenizer = LukeTokenizer(
        entity_vocab_file=str(luke / "entity_vocab.json"), task="entity_span_classification", **files
    )
    if len(tokenizer) < 50_000:  # transformers 5 leaves a vocabulary given as a file unread
        raise SystemExit(
            f"Expected RoBERTa's 50,267 pieces, but LukeTokenizer has {len(tokenizer)}. Use transformers 4.53.2."
        )
    shared = {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5, **size}
    labels = {"id2label": dict(enumerate(LABELS)), "label2id": {x: i for i, x in enumerate(LABELS)}}
    torch.manual_seed(seed)
    model = LukeForEntitySpanClassification(
        LukeConfig(vocab_size=len(tokenizer), entity_vocab_size=len(entities), entity_emb_size=256, **labels, **shared)
    )
    with torch.no_grad():  # larger matrices would make all spans of twelve layers alike, a small head all labels
        for key, x in model.named_parameters():
            x.normal_(std=0.5 if key.startswith("classifier") else 0.02)
            x.add_(1.0 if key.endswith("LayerNorm.weight") else 0.0)
    model.save_pretrained(luke)
    tokenizer.save_pretrained(luke)
    fast = RobertaTokenizerFast(add_prefix_space=True, **files)
    RobertaModel(RobertaConfig(vocab_size=len(fast), **shared)).save_pretrained(roberta)
    fast.save_pretrained(roberta)
    return luke, roberta


# ---- small parts


def make_doc(vocab: Any, document: ColumnDocument) -> Doc:
    starts = set(document.sentence_starts)
    return Doc(vocab, words=document.words, sent_starts=[i in starts for i in range(len(document.words))])


def entities_of(doc: Doc) -> set[tuple[int, int, str]]:
    return {(x.start, x.end, x.label_) for x in doc.ents}


def autocast(precision: str) -> contextlib.AbstractContextManager:
    return torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16")


def _sentences(document: ColumnDocument) -> Iterator[tuple[int, list[str]]]:
    ends = [*document.sentence_starts[1:], len(document.words)]
    for first, end in zip(document.sentence_starts, ends):
        yield first, document.words[first:end]
