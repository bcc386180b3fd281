"""The original's entity disambiguation, read as a pipeline: the windows of both ways to split, local decisions, and
global ones step by step."""

import json

import pytest
from safetensors.torch import load_file
from spacy.tokens import Doc, Span

from spacy_luke.annotations import set_candidates_given
from spacy_luke.bridge.documents import read_document
from spacy_luke.checkpoint.checkpoint import read_checkpoint
from spacy_luke.components.linker.decisions import decide
from spacy_luke.components.linker.inputs import link_tasks
from spacy_luke.pipelines.conversion import build_pipeline

SPLITS = ("simple", "per_mention")


@pytest.fixture(scope="module")
def golden(shared):
    data = json.loads(shared("golden/luke_ed_inference.json").read_text("utf8"))
    return data, load_file(shared("golden/luke_ed_inference.safetensors"))


@pytest.fixture(scope="module")
def nlp(shared, golden):
    data, _ = golden
    sizes = data["parameters"]
    settings = {"max_window": sizes["max_seq_length"], "max_mentions": sizes["max_entity_length"], "scorer": None}
    checkpoint = read_checkpoint(shared("golden/luke_ed_checkpoint"))
    assert checkpoint.task == "entity_disambiguation"
    return build_pipeline(checkpoint, config={**settings, "max_candidates": sizes["max_candidate_length"]})


def make_doc(nlp, document):
    doc = Doc(nlp.vocab, words=document["words"])
    doc.set_ents([Span(doc, m["start"], m["end"], "X") for m in document["mentions"]])
    rows = []
    for span, mention in zip(doc.ents, document["mentions"], strict=True):
        rows.append((span.start_char, span.end_char, [(x["title"], x["prior_prob"]) for x in mention["candidates"]]))
    set_candidates_given(doc, rows)
    return doc


def make_tasks(nlp, doc, split):
    """Windows, the mentions of their tokens, and the entity table."""
    linker = nlp.get_pipe("luke_linker")
    linker.cfg["split"] = split
    mentions = [(x.start, x.end) for x in doc.ents]
    table = linker.table()
    found = [table.candidates(x) for x in linker.candidates(doc, mentions)]
    tasks = list(link_tasks(linker.input(), read_document(doc, linker.tokenizer), mentions, found, table))
    return linker, tasks, table


def ids_of(table, titles):
    """Rows of the entities in the golden file, by our numbers."""
    names = [table.store.names_of([row])[0] for row in table.rows]
    return [titles.index(name) for name in names]


@pytest.mark.parametrize("split", SPLITS)
def test_windows(nlp, golden, split):
    data, tensors = golden
    parts = data["results"][split]["parts"]
    for number, document in enumerate(data["documents"]):
        _, tasks, table = make_tasks(nlp, make_doc(nlp, document), split)
        expected = [part["key"] for part in parts if part["document"] == number]
        assert len(tasks) == len(expected)
        ids = ids_of(table, data["entity_titles"])
        for (task, _), key in zip(tasks, expected):
            inputs = {x: tensors[f"inputs/{key}.{x}"][0].numpy() for x in FEATURES}
            assert task.pieces.tolist() == inputs["input_ids"].tolist()
            assert task.decided_E.tolist() == inputs["eval_entity_mask"].astype(bool).tolist()
            for e, (places, candidates) in enumerate(
                zip(inputs["entity_position_ids"], inputs["entity_candidate_ids"], strict=True)
            ):
                assert [task.first_E[e], task.last_E[e]] == [places[0], places.max()]
                assert [ids[x] for x in task.rows[e]] == list(dict.fromkeys(x for x in candidates.tolist() if x))


FEATURES = ("input_ids", "eval_entity_mask", "entity_position_ids", "entity_candidate_ids")


@pytest.mark.parametrize("split", SPLITS)
def test_local(nlp, golden, split):
    data, _ = golden
    for number, document in enumerate(data["documents"]):
        linker, tasks, table = make_tasks(nlp, make_doc(nlp, document), split)
        ids = ids_of(table, data["entity_titles"])
        for task, _ in tasks:
            task.decided_E[:] = True
        decide(linker.model, [x for x, _ in tasks], table.vectors(), inference="local", size=100)
        parts = [part for part in data["results"][split]["parts"] if part["document"] == number]
        for (task, _), part in zip(tasks, parts, strict=True):
            for e, probabilities in enumerate(task.probabilities):
                if not len(task.rows[e]):
                    assert part["local"]["predicted_entity_ids"][e] == 0
                    continue
                assert ids[task.rows[e][probabilities.argmax()]] == part["local"]["predicted_entity_ids"][e]
                assert probabilities.max() == pytest.approx(part["local"]["probability"][e], abs=1e-4)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("split", SPLITS)
def test_global_step_by_step(nlp, golden, split, together):
    """Every mention in the reference's order with its probability; ours with one candidate come first, in the order of
    the text, and those without candidates, which the reference leaves to the end, not at all."""
    data, _ = golden
    for number, document in enumerate(data["documents"]):
        linker, tasks, table = make_tasks(nlp, make_doc(nlp, document), split)
        ids = ids_of(table, data["entity_titles"])
        for task, _ in tasks:
            task.decided_E[:] = True
        size = 10_000 if together else 1
        decide(linker.model, [x for x, _ in tasks], table.vectors(), inference="global", size=size)
        parts = [part for part in data["results"][split]["parts"] if part["document"] == number]
        for (task, _), part in zip(tasks, parts, strict=True):
            steps = [step for step in part["global"]["steps"] if len(task.rows[step["mention"]])]
            assert task.order == [step["mention"] for step in steps]
            for step in steps:
                probabilities = task.probabilities[step["mention"]]
                assert ids[task.rows[step["mention"]][probabilities.argmax()]] == step["entity_id"]
                assert probabilities.max() == pytest.approx(step["probability"], abs=1e-4)


@pytest.mark.parametrize("inference", ["local", "global"])
@pytest.mark.parametrize("split", SPLITS)
def test_decisions(nlp, golden, split, inference):
    """What the pipeline says of the documents is what the reference says of the mentions that count; in fewer
    passes."""
    data, _ = golden
    linker = nlp.get_pipe("luke_linker")
    linker.cfg.update(split=split, inference=inference)
    linker.counts.clear()
    docs = list(nlp.pipe(make_doc(nlp, document) for document in data["documents"]))
    plain = 0
    for number, (doc, document) in enumerate(zip(docs, data["documents"], strict=True)):
        chosen = []
        for part in (part for part in data["results"][split]["parts"] if part["document"] == number):
            index = part[inference]["candidate_index"]
            plain += len(index) if inference == "global" else 1
            decided = golden[1][f"inputs/{part['key']}.eval_entity_mask"][0].bool().tolist()
            chosen += [x for x, yes in zip(index, decided, strict=True) if yes]
        for ent, mention, index in zip(doc.ents, document["mentions"], chosen, strict=True):
            expected = mention["candidates"][index]["title"] if mention["candidates"] else "NIL"
            assert ent.kb_id_ == expected
            assert [x[0] for x in ent._.luke_candidates[:1]] == ([expected] if mention["candidates"] else [])
    assert 0 < linker.counts["windows"] <= plain
    if inference == "global":
        assert linker.counts["windows"] < plain


def test_saved(nlp, golden, tmp_path):
    import spacy

    data, _ = golden
    docs = [make_doc(nlp, document) for document in data["documents"]]
    expected = [[e.kb_id_ for e in doc.ents] for doc in nlp.pipe([x.copy() for x in docs])]
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert [[e.kb_id_ for e in doc.ents] for doc in again.pipe([x.copy() for x in docs])] == expected
    data = nlp.to_bytes()
    third = spacy.util.load_model_from_config(nlp.config, auto_fill=False, validate=True).from_bytes(data)
    assert [[e.kb_id_ for e in doc.ents] for doc in third.pipe([x.copy() for x in docs])] == expected
