"""Gold places in the text of a prediction, whose words and blanks may differ: what components learn from and scorers
count by."""

from bisect import bisect_left
from collections.abc import Callable

from spacy.tokens import Doc
from spacy.training import Example

Place = tuple[int, int]


def gold_place_finder(example: Example) -> Callable[[int, int], Place]:
    """A function from characters [start, end) of the reference's text to those of the prediction's.

    The two may have other words, other blanks, as where the blanks of the one are unknown, and capitals, as for
    spaCy's alignment. ValueError where they differ in anything else.
    """
    predicted, gold = example.predicted.text, example.reference.text
    if predicted == gold:
        return lambda start, end: (start, end)
    predicted_P, gold_P = _solid(predicted), _solid(gold)
    if [predicted[i].lower() for i in predicted_P] != [gold[i].lower() for i in gold_P]:
        raise ValueError(
            f"A prediction and its gold doc must have the same characters, blanks apart, but the texts begin "
            f"{predicted[:60]!r} and {gold[:60]!r}."
        )

    def find(start: int, end: int) -> Place:
        first, after = bisect_left(gold_P, start), bisect_left(gold_P, end)
        if first == after:  # blanks alone
            place = predicted_P[first] if first < len(predicted_P) else len(predicted)
            return place, place
        return predicted_P[first], predicted_P[after - 1] + 1

    return find


def gold_words_finder(example: Example) -> Callable[[int, int], tuple[int, int] | None]:
    """A function from characters [start, end) of the reference's text to words [start, end) of the predicted Doc; it
    gives None where no words have exactly these. ValueError as of `gold_place_finder`."""
    find, doc = gold_place_finder(example), example.predicted

    def find_words(start: int, end: int) -> tuple[int, int] | None:
        span = doc.char_span(*find(start, end))
        return None if span is None else (span.start, span.end)

    return find_words


def unknown_places(doc: Doc, find: Callable[[int, int], Place]) -> list[Place]:
    """The words of a gold Doc of which nothing is known."""
    return [find(word.idx, word.idx + len(word)) for word in doc if not word.ent_iob]


def solid_edges(doc: Doc) -> list[Place]:
    """Where each word begins and ends in the text without its blanks."""
    edges, place = [], 0
    for word in doc:
        length = len("".join(word.text.split()))
        edges.append((place, place + length))
        place += length
    return edges


def _solid(text: str) -> list[int]:
    return [i for i, character in enumerate(text) if not character.isspace()]
