"""Windows and spans against the recipe of the paper and plain loops."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.batch.windows import Document, WindowPlan, budgets, enumerate_spans, place_spans, plan_windows
from tests.batch.documents import documents, make_document, rows, simple_document

ROOMS = st.sampled_from([(4, 1), (5, 2), (8, 3), (9, 8), (16, 6), (40, 10), (500, 100)])  # room, overlap
LIMITS = st.sampled_from([None, 1, 2, 3, 8])
PLANS = st.sampled_from([("document", False), ("document", True), ("sentence", False), ("sentence", True)])


def plan(document: Document, sizes: tuple[int, int], kind: tuple[str, bool]) -> WindowPlan:
    return plan_windows(document, room=sizes[0], overlap=sizes[1], context=kind[0], share=kind[1])


def table(windows: WindowPlan) -> list[tuple[int, ...]]:
    columns = (windows.start_B, windows.end_B, windows.core_start_B, windows.core_end_B)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]


def spans_by_loop(
    document: Document, windows: WindowPlan, most_pieces: int | None, most_words: int | None, *, every: bool = False
) -> list:
    """Every pair (i, j) of words, and its window: the one in whose core word i begins. Of words of a sentence with one
    first piece one begins spans, of those with one last piece one ends them; `every`: all do."""
    first, last = document.pieces.first_W.tolist(), document.pieces.last_W.tolist()

    def is_chosen(word: int, piece_W: list[int], *, last: bool) -> bool:
        at = [(piece, sentence) for piece, sentence in zip(piece_W, document.sentence_W)]
        same = [other for other in np.flatnonzero(document.bounds_W).tolist() if at[other] == at[word]]
        named = [other for other in same if not document.signs_W[other]] or same[:1]
        return word == (named[-1] if last else named[0])

    found = []
    for i in range(len(first)):
        for j in range(i, len(first)):
            if not (document.bounds_W[i] and document.bounds_W[j]) or document.sentence_W[i] != document.sentence_W[j]:
                continue
            if not (every or (is_chosen(i, first, last=False) and is_chosen(j, last, last=True))):
                continue
            (k,) = (k for k, w in enumerate(table(windows)) if w[2] <= first[i] < w[3])
            start, end, _, _ = table(windows)[k]
            if last[j] > end:
                continue
            if most_pieces is not None and last[j] - first[i] > most_pieces:
                continue
            if most_words is not None and j + 1 - i > most_words:
                continue
            found.append((i, j + 1, k, 1 + first[i] - start, last[j] - start))
    return found


# ---- the paper's recipe


def recipe(lengths: list[list[int]], room: int, longest: int) -> list:
    """For each sentence, given by the pieces of its words: window [start, end) in the document, and its spans as
    (first word, last word + 1, first piece, last piece) counted in the sentence and, with [CLS] as 0, the window."""
    total, done, answers = sum(map(sum, lengths)), 0, []
    for words in lengths:
        own = sum(words)
        left, right = done, total - done - own
        half = int((room - own) / 2)
        if left < right:
            before = min(left, half)
            after = min(right, room - before - own)
        else:
            after = min(right, half)
            before = min(left, room - after - own)
        starts = [before + sum(words[:i]) for i in range(len(words) + 1)]
        spans = [
            (i, j, starts[i] + 1, starts[j])
            for i in range(len(words))
            for j in range(i + 1, len(words) + 1)
            if starts[j] - starts[i] <= longest
        ]
        answers.append((done - before, done + own + after, spans))
        done += own
    return answers


@pytest.mark.parametrize("seed", range(25))
def test_document_context_is_the_papers(seed):
    chosen = random.Random(seed)
    room = chosen.choice([20, 51, 510])
    lengths = []
    for _ in range(chosen.choice([1, 2, 30])):
        words = [chosen.choice([1, 1, 1, 2, 5]) for _ in range(chosen.randint(1, 40))]
        while sum(words) > room:
            words.pop()
        lengths.append(words)
    document = simple_document(lengths)
    windows = plan_windows(document, room=room, context="document", share=False, overlap=room // 4)
    spans = rows(enumerate_spans(document, windows, max_pieces=16))
    expected, done_words, done_pieces = [], 0, 0
    wanted = recipe(lengths, room, 16)
    assert len(windows) == len(lengths)
    for k, (words, (start, end, own)) in enumerate(zip(lengths, wanted)):
        assert table(windows)[k] == (start, end, done_pieces, done_pieces + sum(words))
        expected += [(done_words + i, done_words + j, k, first, last) for i, j, first, last in own]
        done_words, done_pieces = done_words + len(words), done_pieces + sum(words)
    assert spans == expected


def test_a_sentence_in_the_middle_has_the_odd_piece_before_it():
    lengths = [[1] * 5, [1] * 5, [1] * 3, [1] * 5, [1] * 5]
    assert recipe(lengths, 8, 16)[2][:2] == (7, 15)
    windows = plan_windows(simple_document(lengths), room=8, context="document", share=False, overlap=2)
    assert table(windows)[2] == (7, 15, 10, 13)


# ---- any document


@given(documents(), ROOMS, PLANS)
def test_cores_divide_the_pieces(document, sizes, kind):
    room, overlap = sizes
    windows = plan(document, sizes, kind)
    total = len(document.pieces.ids_N)
    edges = [0, *windows.core_end_B.tolist()]
    assert windows.core_start_B.tolist() == edges[:-1]
    assert edges[-1] == total
    for start, end, core_start, core_end in table(windows):
        assert 0 <= start <= core_start < core_end <= end <= total
        assert end - start <= room


@given(documents(), ROOMS)
def test_document_context_fills_the_window(document, sizes):
    room, _ = sizes
    total = len(document.pieces.ids_N)
    for start, end, _, _ in table(plan(document, sizes, ("document", False))):
        assert end - start == min(room, total)


@given(documents(shares=st.just(False)), ROOMS)
def test_shared_windows_have_whole_sentences(document, sizes):
    """Around a core other sentences are whole; of a sentence that is cut, what fits."""
    total = len(document.pieces.ids_N)
    edges = np.array(sorted({0, *document.pieces.first_W[starts_of(document)][1:].tolist(), total}))
    for start, end, core_start, core_end in table(plan(document, sizes, ("document", True))):
        assert start in edges or not ((edges > start) & (edges <= core_start)).any()
        assert end in edges or not ((edges >= core_end) & (edges < end)).any()


def test_context_is_whole_sentences():
    document = simple_document([[1] * 4, [1] * 4, [1] * 4, [1] * 4])
    windows = plan_windows(document, room=13, context="document", share=True, overlap=9)
    assert table(windows) == [(0, 12, 0, 4), (0, 12, 4, 8), (4, 16, 8, 12), (4, 16, 12, 16)]


@given(documents(shares=st.just(False)), ROOMS, st.booleans())
def test_sentence_context_has_no_other_sentence(document, sizes, share):
    first, last = document.pieces.first_W, document.pieces.last_W
    for start, end, core_start, core_end in table(plan(document, sizes, ("sentence", share))):
        seen = set(document.sentence_W[(last > start) & (first < end) & (last > first)].tolist())
        own = set(document.sentence_W[(last > core_start) & (first < core_end) & (last > first)].tolist())
        assert len(seen) <= 1
        assert own <= seen


def starts_of(document: Document) -> np.ndarray:
    return np.diff(document.sentence_W, prepend=-1) > 0


@given(documents(shares=st.just(False)), ROOMS)
def test_shared_windows_leave_room_for_context(document, sizes):
    """One window where the document fits; else cores of at most room - overlap pieces, but for a single sentence that
    fits a window."""
    room, overlap = sizes
    total = len(document.pieces.ids_N)
    windows = plan(document, sizes, ("document", True))
    if 0 < total <= room:
        assert table(windows) == [(0, total, 0, total)]
    begins = set(document.pieces.first_W[starts_of(document)][1:].tolist())
    for _, _, core_start, core_end in table(windows):
        if total > room and core_end - core_start > room - overlap:
            assert not begins & set(range(core_start + 1, core_end))


@given(documents(), ROOMS, PLANS, LIMITS, LIMITS)
def test_spans_equal_a_plain_loop(document, sizes, kind, most_pieces, most_words):
    windows = plan(document, sizes, kind)
    spans = enumerate_spans(document, windows, max_pieces=most_pieces, max_words=most_words)
    assert rows(spans) == spans_by_loop(document, windows, most_pieces, most_words)
    for start, end, k, first, last in rows(spans):
        assert 1 <= first <= last <= windows.end_B[k] - windows.start_B[k]
        ids = document.pieces.ids_N[windows.start_B[k] : windows.end_B[k]][first - 1 : last]
        own = document.pieces.ids_N[document.pieces.first_W[start] : document.pieces.last_W[end - 1]]
        assert ids.tolist() == own.tolist()


@given(documents(shares=st.just(False)), ROOMS, PLANS)
def test_no_short_span_is_lost(document, sizes, kind):
    """Half the overlap, and one piece more, fits behind every beginning, wherever long sentences are cut."""
    windows = plan(document, sizes, kind)
    longest = sizes[1] // 2 + 1
    whole = WindowPlan(*(np.array([x]) for x in (0, len(document.pieces.ids_N), 0, len(document.pieces.ids_N))))
    expected = {(a, b) for a, b, *_ in spans_by_loop(document, whole, longest, None)} if len(windows) else set()
    assert {(a, b) for a, b, *_ in rows(enumerate_spans(document, windows, max_pieces=longest))} == expected


@given(documents(), ROOMS, PLANS, LIMITS, st.integers(1, 4))
def test_blocks_of_windows_join_to_the_whole(document, sizes, kind, most_pieces, block):
    windows = plan(document, sizes, kind)
    joined = []
    for a in range(0, len(windows), block):
        part = enumerate_spans(
            document, windows, first_window=a, last_window=min(a + block, len(windows)), max_pieces=most_pieces
        )
        assert all(a <= k < a + block for _, _, k, _, _ in rows(part))
        joined += rows(part)
    assert joined == rows(enumerate_spans(document, windows, max_pieces=most_pieces))


@given(documents(begins=st.just(False)), ROOMS, PLANS, st.randoms(use_true_random=False))
def test_placed_spans(document, sizes, kind, chosen):
    """Without sentence boundaries, all pairs of words given in any order, some twice: those that can be encoded are
    placed as enumeration places them, of equal pieces one, and all others are given back."""
    windows = plan(document, sizes, kind)
    n = len(document.bounds_W)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
    given = [chosen.choice(pairs) for _ in range(len(pairs))] if pairs else []
    starts, ends = np.array(given, dtype=np.int32).reshape(-1, 2).T
    spans, rest = place_spans(document, windows, starts, ends)
    every, one = (spans_by_loop(document, windows, None, None, every=x) if len(windows) else [] for x in (True, False))
    fitting = [row for row in every if row[:2] in set(given)]
    best = {row[2:]: row for row in sorted(fitting, key=lambda row: (row in one, row[1] - row[0], -row[0]))}
    assert rows(spans) == sorted(best.values())
    assert [tuple(x) for x in rest.tolist()] == sorted(set(given) - {row[:2] for row in fitting})


@given(documents(), ROOMS, PLANS, st.sampled_from([0.01, 0.5, 1.0, 2.5]))
def test_budgets(document, sizes, kind, rate):
    windows = plan(document, sizes, kind)
    expected = []
    for _, _, a, b in table(windows):
        words = sum(bool(ok) and a <= f < b for ok, f in zip(document.bounds_W, document.pieces.first_W))
        expected.append(math.ceil(rate * words) + 1)
    assert budgets(document, windows, spans_per_word=rate).tolist() == expected


# ---- cases worth a name


@pytest.mark.parametrize("kind", [("document", False), ("document", True), ("sentence", False)])
@pytest.mark.parametrize("words", [[], [(0, False, True, 0, False)] * 3])
def test_nothing_to_read(words, kind):
    """No words at all, and words without a single piece: no windows, no spans, no error."""
    document = make_document(words)
    windows = plan(document, (8, 2), kind)
    assert len(windows) == 0
    assert rows(enumerate_spans(document, windows)) == []
    assert budgets(document, windows, spans_per_word=0.5).tolist() == []
    starts, ends = np.arange(len(words)), np.arange(len(words)) + 1
    spans, rest = place_spans(document, windows, starts, ends)
    assert len(spans) == 0
    assert len(rest) == len(words)


def test_words_without_pieces_neither_begin_nor_end_spans():
    document = simple_document([[1, 0, 2], [0], [0, 1]])
    windows = plan(document, (8, 2), ("document", True))
    assert [(a, b) for a, b, *_ in rows(enumerate_spans(document, windows))] == [(0, 1), (0, 3), (2, 3), (5, 6)]


def test_word_longer_than_a_window():
    """It is in no span, and its neighbours are in theirs; given as a span it comes back."""
    document = simple_document([[2, 21, 2]])
    windows = plan(document, (8, 2), ("document", False))
    assert windows.end_B[-1] == 25
    assert [(a, b) for a, b, *_ in rows(enumerate_spans(document, windows))] == [(0, 1), (2, 3)]
    spans, rest = place_spans(document, windows, np.array([1, 0]), np.array([2, 1]))
    assert rows(spans) == [(0, 1, 0, 1, 2)]
    assert rest.tolist() == [[1, 2]]


def test_sentence_longer_than_a_window():
    document = simple_document([[1] * 5, [1] * 30, [1] * 5])
    assert table(plan(document, (12, 4), ("document", False))) == [
        (0, 12, 0, 5),
        (3, 15, 5, 13),
        (11, 23, 13, 21),
        (19, 31, 21, 29),
        (26, 38, 29, 35),
        (28, 40, 35, 40),
    ]
    assert table(plan(document, (12, 4), ("sentence", False))) == [
        (0, 5, 0, 5),
        (5, 17, 5, 13),
        (11, 23, 13, 21),
        (19, 31, 21, 29),
        (23, 35, 29, 35),
        (35, 40, 35, 40),
    ]


def test_sentence_that_ends_inside_a_piece():
    """The shared piece is in the windows of both sentences, and each keeps all its spans."""
    document = make_document([(2, False, True, 0, False), (2, False, False, 0, False), (1, True, True, 0, False)])
    assert document.pieces.first_W.tolist() == [0, 2, 3]
    windows = plan(document, (8, 2), ("sentence", False))
    assert table(windows) == [(0, 4, 0, 3), (3, 5, 3, 5)]
    assert rows(enumerate_spans(document, windows)) == [
        (0, 1, 0, 1, 2),
        (0, 2, 0, 1, 4),
        (1, 2, 0, 3, 4),
        (2, 3, 1, 1, 2),
    ]


def test_no_sentence_boundaries():
    """A long text is one sentence: cut into cores, with spans across their edges."""
    document = simple_document([[1] * 100])
    windows = plan(document, (20, 8), ("document", False))
    assert max(windows.core_end_B - windows.core_start_B) == 12
    spans = rows(enumerate_spans(document, windows, max_pieces=4))
    assert len(spans) == 4 * 100 - 6


@pytest.mark.parametrize(
    ("settings_of", "message"),
    [
        ({"context": "page"}, "context must be one of .* but it is 'page'"),
        ({"overlap": 0}, "overlap must lie between 0 and the window's 8 pieces, but it is 0"),
        ({"overlap": 8}, "overlap must lie between 0 and the window's 8 pieces, but it is 8"),
    ],
)
def test_wrong_settings(settings_of, message):
    arguments = {"room": 8, "context": "document", "share": False, "overlap": 2, **settings_of}
    with pytest.raises(ValueError, match=message):
        plan_windows(simple_document([[1]]), **arguments)
