"""What scores cannot tell and a reader should know: labels that gold and pipeline do not share, gold that begins or
ends inside a word, and components that nobody gives mentions."""

from collections import Counter
from collections.abc import Sequence

from spacy.tokens import Doc
from spacy.training import Example

from ..annotations import ENTITIES, get_scope
from ..components.base import LukeComponent
from ..components.linker.component import LukeLinker
from ..components.ner import LukeNER
from ..components.relation import LukeRelation
from ..components.soft_textcat import SoftTextCategorizer
from ..components.typer import LukeTyper
from ..scorers.items import ScoredItem
from ..training.dev_gold import ClassifiesUnits, FindsSpans, listed_labels, scored_labels, task_of

_EXAMPLES = 3  # texts of a message
_NOTHING_ASKED: dict[type[LukeLinker | LukeTyper | LukeRelation], str] = {
    LukeLinker: "mentions to link: no component before it finds any. --gold-links gives it those of the data.",
    LukeTyper: "mentions to type: no component before it finds any. --gold-mentions gives it those of the data.",
    LukeRelation: "pairs to ask about: no component before it finds two entities that may be related. "
    "--gold-entities gives it the entities of the data, --gold-pairs their pairs.",
}


def score_notes(
    proc: LukeComponent | SoftTextCategorizer, items: Sequence[ScoredItem], examples: Sequence[Example]
) -> list[str]:
    """Of a linker, luke_typer or luke_relation that there is nothing that it could be asked about; of a luke_ner,
    luke_typer or luke_relation labels of the gold that it does not know; of a luke_ner or luke_relation what it found
    under labels that the gold nowhere has, and of a luke_ner gold mentions that the pipeline's words cannot be.
    examples: by the numbers that the items have."""
    for kind, nothing in _NOTHING_ASKED.items():
        if isinstance(proc, kind) and not any(_asks(proc, x.predicted) for x in examples):
            return [f"'{proc.name}' has no {nothing}"]
    golds = [example.reference for example in examples]
    notes = unknown_label_notes(proc, golds)
    if isinstance(proc, LukeNER):
        if notes:
            notes[0] += " --labels says what they mean, such as --labels PERSON=PER,GPE=LOC."
        notes += [*_beyond_notes(proc, items, golds), *_word_notes(proc, examples)]
    elif isinstance(proc, LukeRelation):
        notes += _beyond_notes(proc, items, golds)
    return notes


def _asks(proc: LukeLinker | LukeTyper | LukeRelation, doc: Doc) -> bool:
    """Whether the Doc has a mention, or a pair, that the component is asked about."""
    return bool(list(proc.getter(doc)) if isinstance(proc, LukeLinker) else len(proc.asked(doc)))


def unknown_label_notes(proc: LukeComponent | SoftTextCategorizer, golds: Sequence[Doc]) -> list[str]:
    """That gold has labels which a luke_ner, luke_typer or luke_relation does not know."""
    if not isinstance(proc, FindsSpans | ClassifiesUnits):
        return []
    if not (strange := count_labels(proc, golds)[1]):
        return []
    wrong = "" if isinstance(proc, LukeTyper) else ", and what is found in their places as wrong"
    return [f"'{proc.name}' does not know {listed_labels(strange)}, which the gold has: they count as missed{wrong}."]


def count_labels(proc: FindsSpans | ClassifiesUnits, golds: Sequence[Doc]) -> tuple[int, Counter[str]]:
    """How many gold labels count, and those of them that the component does not know, with how often each is there."""
    counted = [scored_labels(proc, doc) for doc in golds]
    return sum(len(scored) for scored, _ in counted), Counter(x for _, strange in counted for x in strange)


def _beyond_notes(proc: LukeNER | LukeRelation, items: Sequence[ScoredItem], golds: Sequence[Doc]) -> list[str]:
    task = task_of(proc)
    known, meant = set(proc.labels), set[str]()
    for item in items:
        if item.gold:
            scope = get_scope(golds[item.doc], task)
            several = {scope.missed_as(label): scope.named(label) for label in scope.meanings}
            meant |= several.get(item.label, frozenset({item.label}))
    beyond = Counter(item.label for item in items if item.found and item.label not in meant)
    notes = []
    if beyond and meant & known:
        left = ",".join(sorted(meant & known))
        how = f" If the data do not annotate these, leave them out: --annotates {left}" if task == ENTITIES else ""
        notes.append(
            f"'{proc.name}' found {listed_labels(beyond)}, which the gold nowhere has: they count as wrong.{how}"
        )
    return notes


def _word_notes(proc: LukeNER, examples: Sequence[Example]) -> list[str]:
    inside: Counter[str] = Counter()
    total = 0
    for example in examples:
        doc = example.predicted
        starts, ends = {word.idx for word in doc}, {word.idx + len(word) for word in doc}
        for span in proc.gold_spans(example.reference):
            total += 1
            if span.start_char not in starts or span.end_char not in ends:
                inside[span.text] += 1
    if not inside:
        return []
    shown = ", ".join(repr(text) for text, _ in inside.most_common(_EXAMPLES))
    return [
        f"{inside.total():,} of the {total:,} gold mentions for '{proc.name}' begin or end inside a word of the "
        f"pipeline ({shown}): they cannot be found, and count as missed. --gold-sentences gives it the words of the "
        "data; a pipeline for such texts needs a tokenizer that divides them."
    ]
