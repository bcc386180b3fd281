"""What `spacy luke evaluate` and `spacy luke tune` give a pipeline of a file of gold documents."""

from pathlib import Path
from typing import List

from spacy.language import Language
from spacy.training import Corpus, Example

from ..components.base import LukeComponent
from ..readers.docbin import copy_asked, make_gold_corpus


def read_gold(
    nlp: Language,
    data: Path,
    *,
    sentences: bool = False,
    entities: bool = False,
    mentions: bool = False,
    pairs: bool = False,
    links: bool = False,
) -> List[Example]:
    """Examples whose predicted Docs are what the pipeline is given: the text alone, or, where anything is asked for, the
    file's words and that of its annotation. Questions and queries are given in any case, without their answers,
    and so are candidates of linking."""
    asked = {"sentences": sentences, "entities": entities, "mentions": mentions, "pairs": pairs, "links": links}
    if any(asked.values()):
        corpus = make_gold_corpus(data, **asked, questions=True)
        return list(corpus(nlp))
    examples = list(Corpus(data)(nlp))
    for example in examples:
        copy_asked(example.reference, example.predicted)
    return examples


def luke_components(nlp: Language) -> List[LukeComponent]:
    return [component for _, component in nlp.pipeline if isinstance(component, LukeComponent)]
