"""Labels that gold and pipeline do not share: scores say nothing of these, and a reader should know."""

from collections import Counter
from collections.abc import Sequence

from spacy.tokens import Doc

from ..annotations import ENTITIES, RELATIONS_TASK, get_scope
from ..components.base import LukeComponent
from ..components.ner import LukeNER
from ..components.relation import LukeRelation
from ..components.soft_textcat import SoftTextCategorizer
from ..scorers.items import ScoredItem
from ..training.dev_gold import listed_labels


def label_notes(
    proc: LukeComponent | SoftTextCategorizer, items: Sequence[ScoredItem], golds: Sequence[Doc]
) -> list[str]:
    """Of a luke_ner or luke_relation: labels of the gold that it does not know, and what it found under labels that the
    gold nowhere has. golds: by the numbers that the items have."""
    if not isinstance(proc, LukeNER | LukeRelation):
        return []
    task = ENTITIES if isinstance(proc, LukeNER) else RELATIONS_TASK
    known, meant = set(proc.labels), set[str]()
    strange: Counter[str] = Counter()
    for item in items:
        if item.gold:
            named = get_scope(golds[item.doc], task).named(item.label) | ({item.label} & known)
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
