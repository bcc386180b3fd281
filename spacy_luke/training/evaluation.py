"""The evaluation of a training: spaCy's, of which several processes predict a share each and the main one scores."""

from collections.abc import Callable, Iterable, Sequence
from timeit import default_timer
from types import SimpleNamespace
from typing import Any

from spacy.language import Language
from spacy.scorer import Scorer
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.loop import create_evaluation_callback

from ..distributed.processes import Processes

Scores = tuple[float, dict[str, Any]]
_UNSENT = ["tensor"]  # what no scorer reads of a Doc


class _Given(Scorer):
    """Scores what was predicted elsewhere, in the place of what it is asked for."""

    def __init__(self, nlp: Language, examples: list[Example]):
        super().__init__(nlp)
        self.examples = examples

    def score(self, examples: Iterable[Example], *, per_component: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = super().score(self.examples, per_component=per_component)
        return found


def make_evaluation(
    nlp: Language, corpus: Callable[[Language], Any], weights: dict[str, float], processes: Processes
) -> Callable[[], Scores]:
    """What gives the weighted score and all scores, in all processes the same; all must call it."""
    if processes.size == 1:
        return create_evaluation_callback(nlp, corpus, weights)

    def score() -> Scores:
        examples = list(corpus(nlp))
        began = default_timer()
        docs = _predict(nlp, examples, processes)
        seconds = default_timer() - began
        if not processes.is_main:
            return 0.0, {}

        def evaluate(_: Any) -> dict[str, Any]:
            if docs is None:
                return nlp.evaluate(examples)
            predicted = [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]
            return {**nlp.evaluate([], scorer=_Given(nlp, predicted)), "speed": sum(map(len, docs)) / seconds}

        stand_in: Any = SimpleNamespace(evaluate=evaluate, pipe_names=nlp.pipe_names)
        found: Scores = create_evaluation_callback(stand_in, lambda _: None, weights)()
        return found

    return lambda: processes.first(score())


def _predict(nlp: Language, examples: Sequence[Example], processes: Processes) -> list[Doc] | None:
    """Of all examples, in the main process; None in others, and where a Doc holds what cannot be sent."""
    given = [example.predicted.copy() for example in examples[processes.rank :: processes.size]]
    docs = list(nlp.pipe(given))
    sent: list[bytes] | None = None
    try:
        sent = [doc.to_bytes(exclude=_UNSENT) for doc in docs]
    except (TypeError, NotImplementedError):  # of msgpack: objects of others in user_data
        pass
    shares = processes.gather(sent)
    if not processes.is_main or any(share is None for share in shares):
        return None
    found: list[Doc] = [Doc(nlp.vocab)] * len(examples)
    for rank, share in enumerate(shares):
        found[rank :: processes.size] = [Doc(nlp.vocab).from_bytes(data) for data in share]
    return found
