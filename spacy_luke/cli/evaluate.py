"""`spacy luke evaluate`: scores of a pipeline, component by component and label by label, and its speed."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import spacy
import srsly
import typer
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example
from tqdm import tqdm
from wasabi import msg

from ..annotations import TYPES, get_pair_rows, get_queries, get_questions, get_relation_rows
from ..components.base import LukeComponent, find_component
from ..components.cloze import LukeCloze
from ..components.linker.component import LukeLinker
from ..components.ner import LukeNER
from ..components.qa import LukeQA
from ..components.relation import LukeRelation
from ..components.soft_textcat import SoftTextCategorizer
from ..components.typer import LukeTyper
from ..scorers.linking import link_rows
from ..stores.atomic import write_atomically
from .errors import use_gpu
from .gold import luke_components, read_gold

Scores = dict[str, Any]
Row = tuple[str, ...]


class Table(NamedTuple):
    """What is shown of a component's scores; no rows where the gold has nothing to score it on."""

    header: Row
    rows: Sequence[Row]


def evaluate_cli(
    pipeline: str = typer.Argument(..., help="Folder or name of a pipeline"),
    data: Path = typer.Argument(..., exists=True, help="Gold documents: a .spacy file or a folder of them"),
    gold_sentences: bool = typer.Option(
        False, "--gold-sentences", help="Give the file's words and sentence boundaries"
    ),
    gold_entities: bool = typer.Option(
        False, "--gold-entities", help="Give the file's doc.ents, in the place of a luke_ner's"
    ),
    gold_mentions: bool = typer.Option(
        False, "--gold-mentions", help='Give the mentions that have types as doc.spans["luke_mentions"]'
    ),
    gold_pairs: bool = typer.Option(False, "--gold-pairs", help="Give the pairs that are to be classified"),
    gold_links: bool = typer.Option(
        False, "--gold-links", help="Give the file's doc.ents without their entities, in the place of a luke_ner's"
    ),
    output: Path | None = typer.Option(None, "--output", "-o", help="JSON file for the scores"),
    component: str | None = typer.Option(None, help="Score this component only"),
    rows: int = typer.Option(50, min=0, help="Most labels of a table here; the JSON file has all"),
    gpu_id: int = typer.Option(-1, "--gpu-id", "-g", help="GPU, or -1 for the CPU"),
) -> None:
    """Score every LUKE component on gold documents, as its task's official script counts. Questions are always given;
    everything else is found by the pipeline itself, unless an option gives it."""
    use_gpu(gpu_id)
    given = {"sentences": gold_sentences, "entities": gold_entities, "mentions": gold_mentions, "pairs": gold_pairs}
    given["links"] = gold_links
    scores = _evaluate(pipeline, data, given=given, component=component, rows=rows)
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(output) as temporary:
            srsly.write_json(temporary, scores)
        msg.good(f"Saved the scores to {output}")


def _evaluate(pipeline: str, data: Path, *, given: dict[str, bool], component: str | None, rows: int) -> Scores:
    nlp = spacy.load(pipeline)
    texts = {name: proc for name, proc in nlp.pipeline if isinstance(proc, SoftTextCategorizer)}
    chosen: list[LukeComponent | SoftTextCategorizer] = [*luke_components(nlp), *texts.values()]
    if component is not None:
        chosen = [texts[component] if component in texts else find_component(nlp, LukeComponent, component)]
    if given["entities"] or given["links"]:
        finders = [proc.name for proc in luke_components(nlp) if isinstance(proc, LukeNER)]
        nlp.select_pipes(disable=finders)
        chosen = [proc for proc in chosen if proc.name not in finders]
    examples = read_gold(nlp, data, **given)
    start = perf_counter()
    with tqdm(
        nlp.pipe(example.predicted for example in examples), total=len(examples), leave=False, unit="doc"
    ) as docs:
        examples = [Example(doc, example.reference) for doc, example in zip(docs, examples, strict=True)]
    words = sum(len(example.predicted) for example in examples)
    speed = words / (perf_counter() - start)
    msg.divider(f"{data}: {len(examples):,} documents, {words:,} words")
    scores: Scores = {}
    for proc in chosen:
        found = proc.score(examples)
        table = _table_of(proc, found, examples, rows)
        if table is None:
            continue
        if not table.rows:
            msg.warn(f"'{proc.name}' is not scored: {data} has {_missing(proc)}.")
            continue
        if same := sorted(set(found) & set(scores)):
            raise ValueError(
                f"'{proc.name}' has scores of the same names as a component before it ({same[0]} and others): choose "
                f"one "
                "with --component."
            )
        scores.update(found)
        msg.text(f"\n{proc.name}")
        msg.table(table.rows, header=table.header, aligns=("l", *"r" * (len(table.header) - 1)), divider=True)
    if not scores:
        raise ValueError(f"{data} has nothing that the components {nlp.pipe_names} could be scored on.")
    return {**scores, "words": words, "words_per_second": speed}


def _missing(proc: Pipe) -> str:
    if isinstance(proc, LukeNER):
        return f"no mentions in {_place(proc)}"
    if isinstance(proc, SoftTextCategorizer):
        return "no categories in doc.cats"
    wanted = {
        LukeTyper: 'no mentions in doc.spans["luke_types"]',
        LukeRelation: "no gold relations in doc._.luke_relations, and the pipeline found none",
        LukeLinker: "no mentions with ids in doc.ents",
        LukeQA: "no questions with answers in doc._.luke_questions",
        LukeCloze: "no queries with answers in doc._.luke_queries",
    }
    return next(text for kind, text in wanted.items() if isinstance(proc, kind))


def _table_of(proc: Pipe, scores: Scores, examples: Sequence[Example], rows: int) -> Table | None:
    """None for a component that has no scores of its own, such as luke_encoder, or no scorer; soft_textcat's has none
    where there is no gold."""
    makers: dict[type, Callable[..., Table]] = {
        LukeNER: _entity_table,
        LukeTyper: _type_table,
        LukeRelation: _relation_table,
        LukeLinker: _link_table,
        LukeQA: _question_table,
        LukeCloze: _query_table,
        SoftTextCategorizer: _category_table,
    }
    for kind, make in makers.items():
        if isinstance(proc, kind) and (scores or kind is SoftTextCategorizer):
            return make(proc, scores, [example.reference for example in examples], rows)
    return None


def _entity_table(proc: LukeNER, scores: Scores, golds: Sequence[Doc], rows: int) -> Table:
    key = proc.cfg["spans_key"]
    name = "ents" if key is None else f"spans_{key}"
    counts = Counter(span.label_ for doc in golds for span in (doc.ents if key is None else doc.spans.get(key, ())))
    header = ("entities", "P", "R", "F1", "gold")
    if scores[f"{name}_f"] is None:
        return Table(header, [])
    return Table(
        header,
        [
            *_label_rows(scores[f"{name}_per_type"], counts, rows),
            ("all", *_percent(scores, name, "prf"), f"{counts.total():,}"),
        ],
    )


def _type_table(proc: LukeTyper, scores: Scores, golds: Sequence[Doc], rows: int) -> Table:
    typed = [span for doc in golds for span in doc.spans.get(TYPES, ())]
    counts = Counter(span.label_ for span in typed if span.label_)
    mentions = len({(id(span.doc), span.start, span.end) for span in typed})
    header = ("types", "P", "R", "F1", "gold")
    if scores["types_micro_f"] is None:
        return Table(header, [])
    return Table(
        header,
        [
            *_label_rows(scores["types_per_type"], counts, rows),
            ("all, loose micro", *_percent(scores, "types_micro", "prf"), f"{counts.total():,}"),
            ("mentions, loose macro", *_percent(scores, "types_macro", "prf"), f"{mentions:,}"),
            ("mentions, strict", "", "", _percent_of(scores["types_strict"]), f"{mentions:,}"),
        ],
    )


def _relation_table(proc: LukeRelation, scores: Scores, golds: Sequence[Doc], rows: int) -> Table:
    counts = Counter(row.label for doc in golds for row in get_relation_rows(doc) or [])
    pairs = sum(len(get_pair_rows(doc) or []) for doc in golds)
    header = ("relations", "P", "R", "F1", "gold")
    if scores["relations_f"] is None:
        return Table(header, [])
    total = f"{counts.total():,}"
    table: list[Row] = [
        *_label_rows(scores["relations_per_type"], counts, rows),
        ("all", *_percent(scores, "relations", "prf"), total),
        ("with the entities' labels", *_percent(scores, "relations_strict", "prf"), total),
    ]
    besides = (
        ("mean of the labels", "relations_macro_f", total),
        ("SemEval-2010 (9+1), directed", "relations_semeval_f", total),
        ("accuracy of given pairs", "relations_accuracy", f"{pairs:,}"),
    )
    table += [(name, "", "", _percent_of(scores[key]), gold) for name, key, gold in besides if scores[key] is not None]
    return Table(header, table)


def _link_table(proc: LukeLinker, scores: Scores, golds: Sequence[Doc], rows: int) -> Table:
    return Table(("links", "P", "R", "F1"), link_rows(scores))


def _question_table(proc: LukeQA, scores: Scores, golds: Sequence[Doc], rows: int) -> Table:
    answers = [x["answers"] for doc in golds for x in get_questions(doc) if "answers" in x]
    answered = sum(bool(x) for x in answers)
    header = ("questions", "EM", "F1", "gold")
    if scores["qa_f"] is None:
        return Table(header, [])
    table: list[Row] = [("all", _percent_of(scores["qa_em"]), _percent_of(scores["qa_f"]), f"{len(answers):,}")]
    if scores["qa_no_answer_accuracy"] is not None:
        has_answer = [_percent_of(scores[f"qa_has_answer_{x}"]) for x in ("em", "f")]
        table += [
            ("with an answer", *has_answer, f"{answered:,}"),
            ("without", _percent_of(scores["qa_no_answer_accuracy"]), "", f"{len(answers) - answered:,}"),
        ]
    return Table(header, table)


def _query_table(proc: LukeCloze, scores: Scores, golds: Sequence[Doc], rows: int) -> Table:
    queries = sum(bool(x.get("answers")) for doc in golds for x in get_queries(doc))
    header = ("queries", "EM", "F1", "gold")
    if scores["cloze_f"] is None:
        return Table(header, [])
    return Table(header, [("all", _percent_of(scores["cloze_em"]), _percent_of(scores["cloze_f"]), f"{queries:,}")])


def _category_table(proc: SoftTextCategorizer, scores: Scores, golds: Sequence[Doc], rows: int) -> Table:
    gold = f"{sum(bool(doc.cats) for doc in golds):,}"
    names = [name for name, share in scores.items() if isinstance(share, float)]
    table = [(name.removeprefix("glue_"), _percent_of(scores[name]), gold) for name in names]
    return Table(("categories", "score", "gold"), table)


def _label_rows(per_label: dict[str, dict[str, float]], counts: Counter[str], rows: int) -> list[Row]:
    """A row for each label, in their order; of very many those with most gold."""
    shown = set(sorted(per_label, key=lambda label: (-counts[label], label))[:rows])
    table = [
        (label, *(_percent_of(score[x]) for x in "prf"), f"{counts[label]:,}")
        for label, score in per_label.items()
        if label in shown
    ]
    if left := len(per_label) - len(shown):
        table.append((f"({left:,} other label{'s' if left > 1 else ''})", "", "", "", ""))
    return table


def _percent(scores: Scores, name: str, parts: Iterable[str]) -> list[str]:
    return [_percent_of(scores[f"{name}_{x}"]) for x in parts]


def _percent_of(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"


def _place(ner: LukeNER) -> str:
    return "doc.ents" if ner.cfg["spans_key"] is None else f"doc.spans[{ner.cfg['spans_key']!r}]"
