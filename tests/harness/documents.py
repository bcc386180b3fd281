"""Random Docs: texts of all planes of Unicode, odd words, and annotations that others may have set before."""

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from spacy.tokens import Doc, Span
from spacy.vocab import Vocab

from spacy_luke.annotations import set_candidates_given, set_knowledge, set_pairs, set_queries, set_questions
from tests.tiny import SENTENCES

from .stand import NAMES

# fmt: off
ODD = [
    *("\u0301", "\u20dd", "\u200d", "\u200b", "\u2060", "\ufeff", "\u00ad", "\u200f", "\u202e", "\u2066", "\ufe0f"),
    *("\x00", "\x01", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u2029", "\r\n", "\t", "\n\n", "\u3000", "\u00a0", "  "),
    *("👩\u200d👩\u200d👧", "🇬🇭", "👍🏽", "e\u0301\u0302\u0303", "ﬁ", "ſ", "İ", "ß", "한글", "ᄒ\u1161", "مرحبا", "שלום", "ไทย"),  # noqa: E501
    *("<s>", "</s>", "<pad>", "<unk>", "<mask>", "<ent>", "<ent2>", "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"),
    *("##ada", "Ġ", "▁", "@placeholder", "@highlight", "NIL", "#", "$", "\u3002", "\U0010ffff", "\ufffd", "\ufffe", "1e999"),  # noqa: E501
]
# fmt: on
PLANES = [(0, 0xD7FF), (0xE000, 0xFFFF), *((n << 16, (n << 16) + 0xFFFF) for n in range(1, 17))]
QUESTIONS = ["Who left Berlin?", "Why?", "ada", "\U0001f984?", "\u0301?", "[MASK] ?", "Is it 東京\u200b?", "x " * 9]
QUERIES = ["The village @placeholder was empty.", "@placeholder", "[SEP]@placeholder\x00", "\u202e@placeholder!"]


def draw_text(rng: random.Random) -> str:
    draw = rng.random()
    if draw < 0.03:
        return rng.choice(["", " ", "\n", "\u200b", "\u0301", "\x00", " \n\t ", "\u2028"])
    if draw < 0.36:
        return " ".join(rng.choices(SENTENCES, k=rng.choice([1, 1, 1, 2, 3])))
    if draw < 0.364:
        return draw_long(rng)
    pieces = [_piece(rng) for _ in range(rng.choice([1, 2, 4, 8, 8, 12, 20]))]
    return "".join(piece + rng.choice([" ", " ", " ", "", ". ", "\n"]) for piece in pieces)


def draw_long(rng: random.Random) -> str:
    """One word of 10,000 characters, or very many words."""
    if rng.random() < 0.5:
        return (
            rng.choice(["x", "é", "\u0301", "東", "\U0001f984", "ab"]) * (10_000 // rng.choice([1, 2])) + " in London."
        )
    return " ".join(rng.choices([*NAMES, *"abc.,", "\n"], k=1000))


def _piece(rng: random.Random) -> str:
    draw = rng.random()
    if draw < 0.3:
        return rng.choice(NAMES)
    if draw < 0.6:
        return rng.choice(ODD)
    if draw < 0.8:
        return "".join(rng.choices("abcdefghijklmnopqrstuvwxyzABC.,!?-'\"()0123456789", k=rng.randint(1, 9)))
    low, high = rng.choice(PLANES)
    return "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 6)))


@dataclass
class Asked:
    """How a Doc is made again, for each variant anew. kept: entities (start, end, label, kb_id) that it comes with."""

    make: Callable[[], Doc]
    kept: list[tuple[int, int, str, str]]


def draw_doc(rng: random.Random, nlp: Any) -> Asked | None:
    """None where spaCy itself refuses the text or the words."""
    seed, text = rng.random(), draw_text(rng)
    words = _draw_words(rng, text) if rng.random() < 0.2 else None

    def make() -> Doc:
        doc = nlp.make_doc(text) if words is None else Doc(Vocab() if nlp is None else nlp.vocab, *words)
        annotate(doc, random.Random(seed))
        return doc

    try:
        doc = make()
    except (ValueError, UnicodeError) as error:
        if "spacy_luke" in _places(error):
            raise
        return None
    return Asked(make, [(x.start, x.end, x.label_, x.kb_id_) for x in doc.ents])


def _places(error: BaseException) -> str:
    """The files that an exception went through, without this package's."""
    trace, files = error.__traceback__, []
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return " ".join(x for x in files if "harness" not in x.rsplit("/", 2)[-2])


def _draw_words(rng: random.Random, text: str) -> tuple[list[str], list[bool]]:
    """Words that no tokenizer makes: with blanks, without width, cut anywhere."""
    words = []
    while text and len(words) < 300:
        size = rng.choice([1, 2, 3, 5, 8, 13])
        words.append(text[:size])
        text = text[size:]
    for _ in range(rng.randint(0, 2)):
        words.insert(rng.randint(0, len(words)), rng.choice(["\u200b", " ", "\u0301", "a b", "\n", "\ufeff"]))
    return words, [rng.random() < 0.5 for _ in words]


def annotate(doc: Doc, rng: random.Random) -> None:
    """Whatever components before ours may have written, and what ours are asked."""
    if len(doc):
        _annotate_words(doc, rng)
    size = len(doc.text)
    set_questions(doc, [{"question": q} for q in rng.sample(QUESTIONS, rng.choice([0, 0, 1, 1, 2]))])
    queries = [{"query": q} for q in rng.sample(QUERIES, rng.choice([0, 0, 0, 1]))]
    if queries and size and rng.random() < 0.5:
        queries[0]["candidates"] = [_place(rng, size) for _ in range(rng.randint(1, 4))]
    set_queries(doc, queries)
    if rng.random() < 0.2:
        doc.user_data[rng.choice(["junk", ("a", "b"), ("._.", "x", None, None)])] = rng.choice(
            [1, None, "x", [1, {"y": 2}]]
        )
    if size and rng.random() < 0.15:
        set_knowledge(doc, [(*_place(rng, size), f"Q{rng.randint(0, 20)}", rng.random()) for _ in range(3)])
    if rng.random() < 0.1:
        doc._.luke_second = rng.choice([0, size, *(word.idx for word in doc)])
    if rng.random() < 0.1:
        doc.cats = {"other": 1.0, "x": 0.0}


# fmt: off
JUNK = [None, 1, -1, 1e308, "x", "\x00", b"x", [], [1], [[1]], [[0, 1]], [[0, 1, "x"]], [["a", "b", "c"]], {}, {"question": 1}]  # noqa: E501
JUNK += [[{}], [{"question": None}], [{"query": "no place"}], [{"question": "x", "entities": [[5, 2, "Q1"]]}], [[0, 1, 2, 3, 4, 5]]]  # noqa: E501
JUNK += [[[0, 10**9, 0, 1, "x", 0.5]], [[-5, 2, "Q1", 1.0]], [[0, 1, [["Q1", float("nan")]]]], [[0, 1, [["Q1", -1.0]]]], float("nan")]  # noqa: E501
JUNK += [[{"question": "x " * 200}], [{"question": " "}], [{"question": "x", "entities": 3}], [[0, 1, "Q1", "high"]], [None], 10**30]  # noqa: E501
JUNK += [[{"query": "@placeholder", "candidates": [[0, 10**6]]}], [{"query": "x @placeholder " + "y " * 200}], [[0, 1, 0, 1]]]  # noqa: E501
KEYS = ("questions", "queries", "knowledge", "candidates", "pairs", "second", "relations", "linked", "answers", "fillers")  # noqa: E501
# fmt: on


def draw_junk(rng: random.Random) -> tuple[str, Any]:
    """What nobody should write under a key of the package."""
    return f"luke_{rng.choice(KEYS)}", copy.deepcopy(rng.choice(JUNK))


def _annotate_words(doc: Doc, rng: random.Random) -> None:
    if rng.random() < 0.3:  # before the sentencizer, which overwrites, or where there is none
        for word in doc:
            word.is_sent_start = rng.choice([None, None, True, False]) if word.i else True
    spans = [_span(doc, rng) for _ in range(rng.choice([0, 0, 1, 2, 4]))]
    if rng.random() < 0.4:
        chosen: list[Span] = []
        for span in spans:
            if all(span.end <= x.start or span.start >= x.end for x in chosen):
                chosen.append(span)
        taken = {i for span in chosen for i in range(span.start, span.end)}
        free = [i for i in range(len(doc)) if i not in taken]
        others: dict[str, Any] = {}
        if free and rng.random() < 0.3:
            others[rng.choice(["blocked", "missing", "outside"])] = [doc[i : i + 1] for i in free[: rng.randint(1, 3)]]
        doc.set_ents(chosen, default=rng.choice(["outside", "missing"]), **others)
        pairs = [(head, tail) for head in chosen for tail in chosen if head is not tail]
        if pairs and rng.random() < 0.2:
            set_pairs(doc, rng.sample(pairs, rng.randint(0, len(pairs))))
        if chosen and rng.random() < 0.3:
            places = {(span.start_char, span.end_char) for span in chosen}
            rows = [(*place, [(f"Q{i}", rng.random()) for i in range(rng.randint(0, 4))]) for place in places]
            set_candidates_given(doc, rows)
    for key in ("sc", "luke_links", "mentions", "luke_types", "\u0301 odd"):
        if rng.random() < 0.1:
            doc.spans[key] = spans
    if rng.random() < 0.1:
        doc[0].tag_, doc[0].lemma_, doc[0].norm_ = "NN", "x", ""


def _span(doc: Doc, rng: random.Random) -> Span:
    start = rng.randrange(len(doc))
    end = min(start + rng.choice([1, 1, 2, 3, 10]), len(doc))
    return Span(
        doc, start, end, rng.choice(["PER", "LOC", "\u0301", "x y"]), kb_id=rng.choice(["", "", "Q1", "Q3", "NIL", "?"])
    )


def _place(rng: random.Random, size: int) -> tuple[int, int]:
    start = rng.randrange(size)
    return start, rng.randint(start + 1, min(size, start + 12))
