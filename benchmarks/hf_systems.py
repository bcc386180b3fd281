"""Peers of Hugging Face in speed.py and gpu_speed.py: LUKE as its authors' example runs it, and a token classifier.

B windows of a batch, L pieces, E spans.
"""

import contextlib
import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from spacy_luke.batch.decode import greedy_flat
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


# ---- Hugging Face LUKE


@dataclass(frozen=True)
class Pass:
    """One window with at most CHUNK of its spans."""

    document: int
    first_word: int  # of the sentence
    ids: list[int]
    starts: list[int]  # of each word of the sentence in the window, and the end of the last
    spans: list[tuple[int, int]]  # words of the sentence


def hf_luke_system(
    name: str, folder: Path, *, context: str, batches: Sequence[int] = (), device: str = "cpu", tokenizer: Any = None
) -> System:
    """`LukeForEntitySpanClassification` by the recipe of the paper and of its example code: for each sentence a window,
    spans of up to 16 pieces, 128 in a pass, greedy by logit. Passes of similar size share a batch."""
    from transformers import LukeForEntitySpanClassification, LukeTokenizer

    model = LukeForEntitySpanClassification.from_pretrained(folder).eval().to(device)
    tokenizer = tokenizer or LukeTokenizer.from_pretrained(folder, task="entity_span_classification")
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
            with torch.inference_mode(), autocast(precision, device):
                given = {key: x.to(device) for key, x in _pad(part).items()}
                logits_BEL = model(**given).logits.float().cpu()
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

    return System(name, run, batches=batches or ((1, 2, 4, 8) if context == "document" else (4, 8, 16, 32)))


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


# ---- a token classifier


def token_classifier_system(
    name: str, folder: Path, *, batches: Sequence[int] = (8, 32, 64), device: str = "cpu"
) -> System:
    """A bare Hugging Face token classifier, sentences by length: the floor; in int8 by torch's dynamic quantisation."""
    from transformers import RobertaForTokenClassification

    from spacy_luke.text.tokenizer import PieceTokenizer

    model = RobertaForTokenClassification.from_pretrained(folder, num_labels=9, attn_implementation="sdpa").eval()
    model.to(device)
    tokenizer = PieceTokenizer.from_folder(folder)
    make_small = cache(lambda: torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8))

    def run(documents: Sequence[ColumnDocument], *, batch: int, precision: str, sentences: Any = None) -> Entities:
        classify = make_small() if precision == "int8" else model
        rows = [
            (i, first, align_words(tokenizer, words))
            for i, d in enumerate(documents)
            for first, words in sentences_of(d)
        ]
        rows.sort(key=lambda x: len(x[2].ids_N))
        answers: Entities = [set() for _ in documents]
        for a in range(0, len(rows), batch):
            part = rows[a : a + batch]
            ids_BL = torch.full((len(part), 2 + max(len(x.ids_N) for _, _, x in part)), tokenizer.pad_id)
            for row, (_, _, pieces) in enumerate(part):
                ids = [tokenizer.cls_id, *pieces.ids_N.tolist(), tokenizer.sep_id]
                ids_BL[row, : len(ids)] = torch.tensor(ids)
            ids_BL = ids_BL.to(device)
            with torch.inference_mode(), autocast(precision, device):
                best_BL = classify(ids_BL, attention_mask=(ids_BL != tokenizer.pad_id).long()).logits.argmax(-1)
            for (i, first, pieces), best_L in zip(part, best_BL.cpu().numpy()):
                tags = best_L[pieces.first_W + 1]
                answers[i] |= {(first + w, first + w + 1, str(tag)) for w, tag in enumerate(tags.tolist()) if tag}
        return answers

    return System(name, run, batches=batches, formats=("float32", "bfloat16", "int8"))


# ---- small parts


def autocast(precision: str, device: str = "cpu") -> contextlib.AbstractContextManager:
    return torch.autocast(device, torch.bfloat16, enabled=precision == "bfloat16")


def sentences_of(document: ColumnDocument) -> Iterator[tuple[int, list[str]]]:
    ends = [*document.sentence_starts[1:], len(document.words)]
    for first, end in zip(document.sentence_starts, ends):
        yield first, document.words[first:end]
