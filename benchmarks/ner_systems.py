"""The four systems of quality.py, trained alike: same encoder, sentences, batches, epochs, warm-up and decay.

Each `make_*` gives a `System`: a step of training on some of the sentences, and predictions for lists of words.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import spacy
import torch
from ner_data import Mention, Sentence, outermost
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import fix_random_seed
from thinc.api import Adam, warmup_linear

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.checkpoint.checkpoint import read_checkpoint
from spacy_luke.readers.conll import ColumnDocument, make_column_doc
from spacy_luke.readers.schemes import decode_tags, encode_tags

SPANS_KEY = "sc"


@dataclass(frozen=True)
class System:
    """step: one optimizer step on the training sentences with these indices; predict: the mentions of each sentence;
    nlp: of `luke_ner`, the pipeline."""

    step: Callable[[list[int]], None]
    predict: Callable[[list[list[str]]], list[list[Mention]]]
    nlp: Any = None


@dataclass(frozen=True)
class Settings:
    """What training depends on. rate: of the encoder; head_multiple: of the new layers, as a multiple of it."""

    rate: float
    head_multiple: float = 5.0
    epochs: int = 4
    batch: int = 8  # sentences a step
    dropout: float = 0.1
    warmup: float = 0.1  # share of the steps; linear decay to 0 follows
    max_span_words: int = 8  # luke only
    spans_per_word: float = 0.5  # luke_one_way only
    layers: int | None = None  # of the encoder, the first ones; luke only
    flat_bias: bool = False  # token_classifier only: its bias begins at 0, not at the log-shares of tags


def make_spacy_ner(
    encoder: Path, sentences: Sequence[Sentence], *, settings: Settings, seed: int, nested: bool
) -> System:
    """spaCy's `ner` on spacy-transformers, as `spacy init config --optimize accuracy --gpu` writes it, but for the
    batches and the length of the schedule. It has one learning rate for all."""
    nlp = spacy.blank("en")
    fix_random_seed(seed)
    nlp.add_pipe("transformer", config={"model": transformer_config(str(encoder))})
    nlp.add_pipe("ner", config={"model": spacy_ner_config()})
    examples = [_example(nlp, x, outermost(x.mentions), spans_key=None) for x in sentences]
    nlp.initialize(lambda: examples)
    optimizer = Adam(
        _schedule(len(sentences), settings),
        beta1=0.9,
        beta2=0.999,
        eps=1e-8,
        L2=0.01,
        L2_is_weight_decay=True,
        grad_clip=1.0,
    )

    def step(batch: list[int]) -> None:
        nlp.update([_fresh(nlp, examples[i]) for i in batch], sgd=optimizer, drop=settings.dropout)
        optimizer.step_schedules()

    def predict(texts: list[list[str]]) -> list[list[Mention]]:
        return [_entities(doc) for doc in nlp.pipe((_doc(nlp, x) for x in texts), batch_size=64)]

    return System(step, predict)


def make_token_classifier(
    encoder: Path, sentences: Sequence[Sentence], *, settings: Settings, seed: int, nested: bool
) -> System:
    """A linear layer on the first piece of each word, tags in IOB2; read as conlleval reads them. Its bias begins at
    the log-shares of tags, as LUKE's at those of spans."""
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    fix_random_seed(seed)
    kept = [outermost(x.mentions) for x in sentences]
    labels = sorted({label for mentions in kept for _, _, label in mentions})
    names = ["O", *(f"{prefix}-{label}" for label in labels for prefix in "BI")]
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    model = AutoModelForTokenClassification.from_pretrained(
        encoder, num_labels=len(names), hidden_dropout_prob=settings.dropout, attn_implementation="sdpa"
    )
    tags = [[names.index(tag) for tag in encode_tags(m, len(x.words))] for m, x in zip(kept, sentences)]
    if not settings.flat_bias:
        share_T = torch.tensor([x for own in tags for x in own]).bincount(minlength=len(names)).clamp(min=1).float()
        model.classifier.bias.data = (share_T / share_T.sum()).log()
    optimizer = make_adamw(
        _schedule(len(sentences), settings),
        group_rates={"^classifier": settings.head_multiple},  # type: ignore[arg-type]
    )

    def step(batch: list[int]) -> None:
        model.train()
        inputs, firsts = _encode(tokenizer, [sentences[i].words for i in batch])
        gold = torch.full(inputs["input_ids"].shape, -100)
        for row, (i, places) in enumerate(zip(batch, firsts)):
            gold[row, list(places.values())] = torch.tensor([tags[i][word] for word in places])
        model(**inputs, labels=gold).loss.backward()
        optimizer.step("token_classifier", list(model.named_parameters()))
        optimizer.step_schedules()

    def predict(texts: list[list[str]]) -> list[list[Mention]]:
        model.eval()
        found: list[list[Mention]] = [[] for _ in texts]
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for a in range(0, len(order), 32):
            part = order[a : a + 32]
            inputs, firsts = _encode(tokenizer, [texts[i] for i in part])
            with torch.inference_mode():
                best = model(**inputs).logits.argmax(-1).tolist()
            for i, places, row in zip(part, firsts, best):
                found[i] = decode_tags([names[row[places[w]]] if w in places else "O" for w in range(len(texts[i]))])
        return found

    return System(step, predict)


def transformer_config(name: str) -> dict[str, Any]:
    return {
        "@architectures": "spacy-transformers.TransformerModel.v3",
        "name": name,
        "tokenizer_config": {"use_fast": True},
        "get_spans": {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 128, "stride": 96},
    }


def spacy_ner_config() -> dict[str, Any]:
    return {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "ner",
        "extra_state_tokens": False,
        "hidden_width": 64,
        "maxout_pieces": 2,
        "use_upper": False,
        "nO": None,
        "tok2vec": {
            "@architectures": "spacy-transformers.TransformerListener.v1",
            "grad_factor": 1.0,
            "pooling": {"@layers": "reduce_mean.v1"},
        },
    }


def luke_config(
    attention: str, *, settings: Settings, nested: bool = False, precision: str = "float32", features: str = "all"
) -> dict[str, Any]:
    return {
        "model": {
            "@architectures": "spacy-luke.SpanClassifier.v1",
            "attention": attention,
            "features": features,
            "spans_per_word": settings.spans_per_word if attention == "one_way" else None,
            "encoder": {
                "@architectures": "spacy-luke.LukeEncoder.v1",
                "train_precision": precision,
                "predict_precision": precision,
            },
        },
        "context": "sentence",
        "max_span_words": settings.max_span_words,
        # the limit is in words
        "max_span_pieces": None,
        "spans_key": SPANS_KEY if nested else None,
    }


def make_luke(
    attention: str,
    encoder: Path,
    sentences: Sequence[Sentence],
    *,
    settings: Settings,
    seed: int,
    nested: bool,
    features: str = "all",
    start: str = "words",
    case: bool = False,
) -> System:
    """`luke_ner`. features: of its head; start: how entity tokens begin (`entity_start`); case: `case_feature`."""
    nlp = spacy.blank("en")
    fix_random_seed(seed)
    ner = nlp.add_pipe("luke_ner", config=luke_config(attention, settings=settings, nested=nested, features=features))
    examples = make_examples(nlp, sentences, nested=nested)
    ner.initialize(
        lambda: examples,
        nlp=nlp,
        weights=lambda: read_checkpoint(
            encoder,
            entities="special",
            entity_start=start,
            case_feature=case,
            seed=seed,
            layers=settings.layers,
        ),
        seed=seed,
    )
    rates = {"^head": settings.head_multiple, r"words\.case\.": settings.head_multiple}  # what is new
    optimizer = make_adamw(_schedule(len(sentences), settings), group_rates=rates)  # type: ignore[arg-type]

    def step(batch: list[int]) -> None:
        ner.update([examples[i] for i in batch], drop=settings.dropout, sgd=optimizer)
        optimizer.step_schedules()

    def predict(texts: list[list[str]]) -> list[list[Mention]]:
        return [_entities(doc) for doc in ner.pipe((_doc(nlp, x) for x in texts), batch_size=64)]

    return System(step, predict, nlp)


SYSTEMS: dict[str, Callable[..., System]] = {
    "luke_full": partial(make_luke, "full"),
    "luke_one_way": partial(make_luke, "one_way"),
    "luke_mention": partial(make_luke, "one_way", start="mention"),  # [MASK] begins as the span's own pieces
    "luke_case": partial(make_luke, "one_way", case=True),  # words have a vector for their case
    "luke_words": partial(make_luke, "one_way", features="words"),  # the paper's baseline: no entities
    "spacy_ner": make_spacy_ner,
    "token_classifier": make_token_classifier,
}


def _schedule(n: int, settings: Settings) -> Any:
    steps = settings.epochs * -(-n // settings.batch)
    return warmup_linear(settings.rate, max(1, int(settings.warmup * steps)), steps)


def batches(n: int, *, settings: Settings, seed: int) -> Iterator[list[int]]:
    """Indices of the sentences of each step, the same for every system: each epoch a new order that the seed alone
    fixes."""
    order = random.Random(seed)
    for _ in range(settings.epochs):
        shuffled = order.sample(range(n), n)
        yield from (shuffled[a : a + settings.batch] for a in range(0, n, settings.batch))


def _doc(nlp: Any, words: list[str]) -> Doc:
    return Doc(nlp.vocab, words=words, sent_starts=[i == 0 for i in range(len(words))])


def make_examples(nlp: Any, sentences: Sequence[Sentence], *, nested: bool) -> list[Example]:
    """What `luke_ner` learns from or is scored on; without `nested` the outermost mentions."""
    key = SPANS_KEY if nested else None
    return [_example(nlp, x, x.mentions if nested else outermost(x.mentions), spans_key=key) for x in sentences]


def _example(nlp: Any, sentence: Sentence, mentions: list[Mention], *, spans_key: Any) -> Example:
    gold = _doc(nlp, sentence.words)
    spans = [Span(gold, start, end, label=label) for start, end, label in mentions]
    if spans_key is None:
        gold.set_ents(spans)
    else:
        gold.spans[spans_key] = spans
    return Example(_doc(nlp, sentence.words), gold)


def training_example(vocab: Any, document: ColumnDocument) -> Example:
    """A whole document with its gold mentions."""
    gold = make_column_doc(vocab, document)
    return Example(Doc(vocab, words=document.words, sent_starts=[bool(x.is_sent_start) for x in gold]), gold)


def _fresh(nlp: Any, example: Example) -> Example:
    """spaCy's training marks the predicted Doc, so each step gets a new one."""
    return Example(_doc(nlp, [word.text for word in example.reference]), example.reference)


def _entities(doc: Doc) -> list[Mention]:
    spans = doc.spans[SPANS_KEY] if SPANS_KEY in doc.spans else doc.ents
    return [(span.start, span.end, span.label_) for span in spans]


def _encode(tokenizer: Any, texts: list[list[str]]) -> Any:
    """Inputs of the model, and for each text the first piece of each word that has one."""
    inputs = tokenizer(texts, is_split_into_words=True, padding=True, return_tensors="pt")
    if inputs["input_ids"].shape[1] > tokenizer.model_max_length:
        raise SystemExit(f"A sentence has more than the encoder's {tokenizer.model_max_length} pieces.")
    firsts = []
    for row in range(len(texts)):
        places: dict[int, int] = {}
        for place, word in enumerate(inputs.word_ids(row)):
            if word is not None:
                places.setdefault(word, place)
        firsts.append(places)
    return inputs, firsts
