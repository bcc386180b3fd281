"""What a pipeline finds in a text, and answers to questions about it."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from spacy.language import Language
from spacy.tokens import Doc

from ..annotations import set_queries, set_questions
from ..components.base import LukeComponent, find_component
from ..components.cloze import LukeCloze
from ..components.linker.component import LukeLinker
from ..components.ner import LukeNER
from ..components.qa import LukeQA
from ..components.relation import LukeRelation
from ..components.typer import LukeTyper
from ..kb.knowledge_base import EntityKB
from ..pages.findings import Describe, Findings, Link, read_findings
from ..stores.plain_text import read_plain_text
from .affixes import look_near

ComponentT = TypeVar("ComponentT", bound=LukeComponent)
Item = TypeVar("Item")
Result = TypeVar("Result")


def annotate_file(
    nlp: Language,
    path: str | Path,
    *,
    questions: Sequence[str] = (),
    queries: Sequence[str] = (),
    component: str | None = None,
) -> Findings:
    """Run a pipeline over a text, a file in UTF-8, or "-" for standard input.

    questions: for luke_qa; queries: sentences with @placeholder, for luke_cloze; component: the luke_ner whose entities
    are shown, where there are several. Raises ValueError where a component that is needed is not there.
    """
    annotator = Annotator(nlp, component)
    doc = annotator.make_doc(read_plain_text(Path(path)), questions, queries)
    return annotator.read(nlp(doc))


class Annotator:
    """A pipeline, and how what it finds is read: its own labels, knowledge bases, groups of spans. Its tokenizer looks
    near the ends of words alone (see `affixes`), so that no text takes more time than its length tells.

    component: the luke_ner whose entities are shown, where there are several. Raises ValueError where the pipeline has
    no component of spacy_luke, or not that one.
    """

    def __init__(self, nlp: Language, component: str | None = None) -> None:
        look_near(nlp)
        self.nlp = nlp
        self.name = pipeline_name(nlp)
        ner = _find_ner(nlp, component)
        self.spans_key: str | None = None if ner is None or ner.cfg["set_ents"] else ner.cfg["spans_key"]
        self.labels: Sequence[str] = [] if ner is None else ner.labels
        self.answers_questions = bool(_of_kind(nlp, LukeQA))
        self.fills_queries = bool(_of_kind(nlp, LukeCloze))
        self._typers = _of_kind(nlp, LukeTyper)
        self._describe = _describe_by([x.kb for x in _of_kind(nlp, LukeLinker) if x.kb is not None])
        self._properties = {
            label: x for relation in _of_kind(nlp, LukeRelation) for label, x in relation.cfg["ids"].items()
        }

    def make_doc(self, text: str, questions: Sequence[str] = (), queries: Sequence[str] = ()) -> Doc:
        """A Doc that the pipeline can be given, with what is asked about it."""
        return _make_doc(self.nlp, text, questions, queries)

    def read(self, doc: Doc) -> Findings:
        """What the pipeline has found in a Doc."""
        return read_findings(
            doc,
            spans_key=self.spans_key,
            typed=[span for typer in self._typers for span in typer.getter(doc)],
            labels=self.labels,
            describe=self._describe,
            properties=self._properties,
        )


def annotate_each(
    annotator: Annotator,
    batch: Sequence[Item],
    make: Callable[[Item], Doc],
    finish: Callable[[Item, Doc], Result],
) -> list[Result | Exception]:
    """Run a pipeline over a batch, so that no item costs another: what `finish` makes of each, or the error of those
    that failed. make: the Doc of an item.

    The items go together; where that fails, by whatever, one by one.
    """
    try:
        docs: Iterable[Doc] = annotator.nlp.pipe([make(item) for item in batch], batch_size=max(1, len(batch)))
        return [finish(item, doc) for item, doc in zip(batch, docs, strict=True)]
    except Exception as error:
        if len(batch) <= 1:
            return [error] * len(batch)
    return [result for item in batch for result in annotate_each(annotator, [item], make, finish)]


def pipeline_name(nlp: Language) -> str:
    """Name and version, such as "en_luke_sm 0.1.0"; "" of a pipeline without a name."""
    name = nlp.meta.get("name") or ""
    return f"{nlp.lang}_{name} {nlp.meta.get('version', '')}".strip() if name else ""


def _describe_by(kbs: Sequence[EntityKB]) -> Describe:
    """What the first knowledge base that has an entity says of it."""

    def describe(entity: str) -> Link:
        for kb in kbs:
            if (row := kb.row(entity)) >= 0:
                known = kb.record(row)
                return Link(entity, title=known.title, description=known.description, url=known.url)
        return Link(entity)

    return describe


def _find_ner(nlp: Language, name: str | None) -> LukeNER | None:
    """The luke_ner whose entities are shown; None where there is none, as other components may have set entities."""
    if not _of_kind(nlp, LukeComponent):
        raise ValueError(
            f"Expected a pipeline with a component of spacy_luke, such as luke_ner, but it has {nlp.pipe_names}."
        )
    if name is None and not _of_kind(nlp, LukeNER):
        return None
    return find_component(nlp, LukeNER, name)


def _of_kind(nlp: Language, kind: type[ComponentT]) -> list[ComponentT]:
    return [component for _, component in nlp.pipeline if isinstance(component, kind)]


def _make_doc(nlp: Language, text: str, questions: Sequence[str], queries: Sequence[str]) -> Doc:
    doc = nlp.make_doc(text)
    asked: tuple[tuple[Sequence[str], type[LukeComponent], str], ...]
    asked = ((questions, LukeQA, "--question"), (queries, LukeCloze, "--query"))
    for given, kind, option in asked:
        if given and not _of_kind(nlp, kind):
            raise ValueError(f"{option} needs a {kind.noun} in the pipeline, but it has {nlp.pipe_names}.")
    if questions:
        set_questions(doc, questions)
    if queries:
        set_queries(doc, queries)
    return doc
