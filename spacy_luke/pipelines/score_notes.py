"""What scores cannot tell and a reader should know: labels that gold and pipeline do not share, gold that begins or
ends inside a word, and a linker that nobody gives mentions."""

from collections import Counter
from collections.abc import Sequence

from spacy.tokens import Doc
from spacy.training import Example

from ..annotations import ENTITIES, RELATIONS_TASK, get_scope
from ..components.base import LukeComponent
from ..components.linker.component import LukeLinker
from ..components.ner import LukeNER
from ..components.relation import LukeRelation
from ..components.soft_textcat import SoftTextCategorizer
from ..scorers.items import ScoredItem
from ..training.dev_gold import listed_labels

_EXAMPLES = 3  # texts of a message


def score_notes(
    proc: LukeComponent | SoftTextCategorizer, items: Sequence[ScoredItem], examples: Sequence[Example]
) -> list[str]:
    """Of a luke_ner or luke_relation: labels of the gold that it does not know, and what it found under labels that the
    gold nowhere has; of a luke_ner gold mentions, too, that the pipeline's words cannot be; of a luke_linker that there
    is no mention that it could link. examples: by the numbers that the items have."""
    if isinstance(proc, LukeLinker) and not any(list(proc.getter(x.predicted)) for x in examples):
        return [
            f"'{proc.name}' has no mentions to link: no component before it finds any. --gold-links gives it those of "
            "the data."
        ]
    if not isinstance(proc, LukeNER | LukeRelation):
        return []
    words = _word_notes(proc, examples) if isinstance(proc, LukeNER) else []
    return [*_label_notes(proc, items, [example.reference for example in examples]), *words]


def _label_notes(proc: LukeNER | LukeRelation, items: Sequence[ScoredItem], golds: Sequence[Doc]) -> list[str]:
    task = ENTITIES if isinstance(proc, LukeNER) else RELATIONS_TASK
    known, meant = set(proc.labels), set[str]()
    strange: Counter[str] = Counter()
    for item in items:
        if item.gold:
            scope = get_scope(golds[item.doc], task)
            several = {scope.missed_as(label): scope.named(label) for label in scope.meanings}
            named = several.get(item.label, frozenset({item.label}))
            meant |= named
            strange.update([] if named & known else [item.label])
    beyond = Counter(item.label for item in items if item.found and item.label not in meant)
    notes = []
    if strange:
        how = " --labels says what they mean, such as --labels PERSON=PER,GPE=LOC." if task == ENTITIES else ""
        notes.append(
            f"'{proc.name}' does not know {listed_labels(strange)}, which the gold has: they count as missed, and what "
            f"is found in their places as wrong.{how}"
        )
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
