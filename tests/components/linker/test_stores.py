"""Where luke_linker's entities come from: a table and a knowledge base together, export and back, damaged folders."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from spacy.cli._util import app as spacy_app
from spacy.tokens import Span
from spacy.training import Example
from typer.testing import CliRunner

import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)
from spacy_luke.annotations import set_candidates_given
from spacy_luke.checkpoint.checkpoint import read_checkpoint, write_huggingface
from spacy_luke.checkpoint.special import without_table
from spacy_luke.checkpoint.text_encoder import TextEncoder
from spacy_luke.components.calibration import apply_calibration
from spacy_luke.components.linker.embed_entities import embed_entities
from spacy_luke.kb.build import build_kb
from spacy_luke.kb.change import add_to_kb
from spacy_luke.kb.knowledge_base import EntityKB
from spacy_luke.pipelines.conversion import build_pipeline
from spacy_luke.pipelines.link_tuning import tune_links
from spacy_luke.vectors.build import build_vectors
from tests.kb.kbs import write_entities
from tests.sealing import change_manifest
from tests.tiny import SENTENCES, make_checkpoint

SIZE = 12  # of the tiny encoder's entities
ODD = "Zoë \u202e\U0001f984 & Söhne (\u00bd)"
IDS = ["London", "London, Ontario", "Berlin", ODD, "[UNK]"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Vectors with a bias in the last place."""
    rows = np.random.default_rng(0).normal(size=(len(IDS), SIZE + 1)).astype(np.float32)
    return build_vectors(rows, tmp_path_factory.mktemp("store") / "vectors", names=IDS).store


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    """Names of the same entities, without vectors."""
    folder = tmp_path_factory.mktemp("kb")
    rows = [
        {"id": "London", "names": ["London"], "count": 9},
        {"id": "London, Ontario", "names": ["London"], "count": 1},
        {"id": ODD, "names": ["Ada Lovelace"]},
        {"id": "Nobody", "names": ["Ada Lovelace"]},
    ]
    (folder / "e.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf8")
    return build_kb([folder / "e.jsonl"], folder / "kb").kb


def make_doc(nlp, *, given=True):
    """ "London", two candidates; "Ada Lovelace", one with odd characters, one without a vector; "in", without
    candidates."""
    doc = nlp.make_doc(SENTENCES[0])
    places = [(0, 2), (3, 4), (4, 5)]
    assert [doc[a:b].text for a, b in places] == ["Ada Lovelace", "in", "London"]
    doc.set_ents([Span(doc, a, b, "X") for a, b in places])
    if given:
        named = [[(ODD, 0.9), ("Nobody", 0.8)], [], [("London", 0.7), ("London, Ontario", 0.6)]]
        set_candidates_given(doc, [(x.start_char, x.end_char, some) for x, some in zip(doc.ents, named)])
    return doc


def make_example(nlp):
    gold = make_doc(nlp)
    ids = [ODD, "NIL", "London"]
    gold.set_ents([Span(gold, x.start, x.end, "X", kb_id=id) for x, id in zip(gold.ents, ids)])
    return Example(make_doc(nlp), gold)


def make_linker(store, *, prior=False, attention="full", **changes):
    """As BERT's, with positions from 0."""
    nlp = spacy.blank("en")
    model = {"attention": attention, "prior": prior, "nil": False, "encoder": {"train_precision": "float32"}}
    linker = nlp.add_pipe("luke_linker", config={"model": model, "overlap": 16})
    checkpoint = make_checkpoint(position_offset=0, entity_aware=False, **changes)
    linker.initialize(lambda: [make_example(nlp)], weights=lambda: checkpoint, vectors=str(store.path))
    for p in linker.model.shims[0].module.parameters():
        p.data += 0.3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1))
    return nlp, linker


def links(doc):
    return [[(x.id, round(x.score, 5)) for x in ent._.luke_candidates] for ent in doc.ents]


def test_export_and_back(store, tmp_path):
    nlp, linker = make_linker(store)
    expected = links(nlp(make_doc(nlp)))
    assert [x[0] for x in expected[0]] == [ODD, "Nobody"] or [x[0] for x in expected[0]] == ["Nobody", ODD]
    write_huggingface(linker.to_checkpoint(), tmp_path / "checkpoint")
    assert (
        (tmp_path / "checkpoint" / "entity_vocab.jsonl").read_text("utf8").startswith('{"id": 0, "entities": [["[PAD]"')
    )
    checkpoint = read_checkpoint(tmp_path / "checkpoint")
    assert checkpoint.task == "entity_disambiguation"
    assert checkpoint.entities.titles()[:3] == ["[PAD]", "[UNK]", "[MASK]"]
    assert checkpoint.entities.row(ODD) is not None
    again = build_pipeline(checkpoint)
    assert links(again(make_doc(again))) == expected


def test_further_names_of_a_table(tmp_path):
    """Of a vocabulary of several languages, or with titles of an older dump: all names find their row, exported too."""
    rows = np.random.default_rng(0).normal(size=(len(IDS), SIZE + 1)).astype(np.float32)
    further = [("Londres", "London"), ("Londra", "London"), ("Berlino", "Berlin")]
    store = build_vectors(rows, tmp_path / "vectors", names=IDS, further=further).store
    _, linker = make_linker(store)
    write_huggingface(linker.to_checkpoint(), tmp_path / "checkpoint")
    checkpoint = read_checkpoint(tmp_path / "checkpoint")
    assert checkpoint.entities.row("Londres") == checkpoint.entities.row("London")
    _, again = build_pipeline(checkpoint).pipeline[-1]
    assert len(again.vectors) == len(store)
    for name, first in further:
        assert again.vectors.row(name) == again.vectors.row(first) >= 0
        assert (again.vectors.gather([again.vectors.row(name)]) == store.gather([store.row(first)])).all()


def test_what_cannot_be_exported(store, tmp_path):
    nlp, linker = make_linker(store, prior=True)
    nlp.to_disk(tmp_path / "pipeline")
    result = CliRunner().invoke(spacy_app, ["luke", "export", str(tmp_path / "pipeline"), str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "no place. Train with prior = false" in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()
    _, linker = make_linker(store)
    checkpoint = linker.to_checkpoint()
    checkpoint.config = type(checkpoint.config).from_dict({**checkpoint.config.to_dict(), "position_offset": 2})
    with pytest.raises(ValueError, match="counts word positions from 0, as BERT does"):
        write_huggingface(checkpoint, tmp_path / "out")


def test_names_for_a_table(store, kb, tmp_path):
    """A knowledge base without vectors gives candidates, the linker's own table their vectors; also once saved."""
    nlp, linker = make_linker(store, prior=True)
    given = links(nlp(make_doc(nlp)))
    linker.set_kb(kb)
    found = nlp(make_doc(nlp, given=False))
    assert [sorted(x for x, _ in named) for named in links(found)] == [sorted(x for x, _ in named) for named in given]
    assert found.ents[1].kb_id_ == "NIL"
    assert found.ents[1]._.luke_candidates == []
    nlp.to_disk(tmp_path / "pipeline")
    for again in (
        spacy.load(tmp_path / "pipeline"),
        spacy.util.load_model_from_config(nlp.config, auto_fill=False, validate=True).from_bytes(nlp.to_bytes()),
    ):
        assert links(again(make_doc(again, given=False))) == links(found)


def test_some_have_no_vectors(store, tmp_path):
    """As after a change without `embed-entities`."""
    rows = [{"id": x, "names": [x]} for x in ("London", "Berlin")]
    kb = build_kb([write_entities(tmp_path / "e.jsonl", rows)], tmp_path / "kb").kb
    store.subset(["London"], tmp_path / "kb" / "vectors")
    _, linker = make_linker(store, prior=True)
    with pytest.warns(UserWarning, match=r"'luke_linker': 1 of the 2 entities in .*kb have no vectors: names and"):
        linker.set_kb(EntityKB.open(kb.path))


def test_a_knowledge_base_that_was_changed_is_not_saved(store, kb, tmp_path):
    """Neither half of the new one nor half of the old one: the pipeline that was there stays."""
    kb.save(tmp_path / "kb")
    nlp, linker = make_linker(store, prior=True)
    linker.set_kb(EntityKB.open(tmp_path / "kb"))
    nlp.to_disk(tmp_path / "pipeline")
    before = contents(tmp_path / "pipeline")
    add_to_kb(EntityKB.open(tmp_path / "kb"), [write_entities(tmp_path / "m.jsonl", [{"id": "New", "names": ["New"]}])])
    with pytest.raises(ValueError, match="kb is not the knowledge base that was opened"):
        nlp.to_disk(tmp_path / "pipeline")
    with pytest.raises(ValueError, match="kb is not the knowledge base that was opened"):
        nlp.to_bytes()
    assert contents(tmp_path / "pipeline") == before
    linker.set_kb(EntityKB.open(tmp_path / "kb"))
    nlp.to_disk(tmp_path / "pipeline")
    assert "New" in spacy.load(tmp_path / "pipeline").get_pipe("luke_linker").kb


def test_no_vectors_at_all(kb, tmp_path):
    """Told when the knowledge base is given, not at the first text."""
    kb.save(tmp_path / "kb")
    checkpoint = without_table(make_checkpoint(entity_size=32))
    embedded, _ = embed_entities(type(kb).open(tmp_path / "kb"), TextEncoder(checkpoint))
    nlp = spacy.blank("en")
    linker = nlp.add_pipe("luke_linker", config={"overlap": 16})
    examples = [make_example(nlp)]
    with pytest.raises(ValueError, match="'luke_linker' has no entity vectors"):
        linker.initialize(lambda: examples, weights=lambda: checkpoint, kb=lambda: kb)
    linker.initialize(lambda: examples, weights=lambda: checkpoint, kb=lambda: embedded)
    with pytest.raises(ValueError, match=r"has no vectors, and 'luke_linker' has none of its own\. Make"):
        linker.set_kb(kb)
    assert linker.kb is embedded


def test_a_damaged_knowledge_base_in_a_pipeline(store, kb, tmp_path):
    nlp, linker = make_linker(store)
    linker.set_kb(kb)
    nlp.to_disk(tmp_path / "pipeline")
    folder = tmp_path / "pipeline" / "luke_linker" / "kb"
    names = (folder / "0" / "names").read_bytes()
    (folder / "0" / "names").unlink()  # a hard link
    (folder / "0" / "names").write_bytes(names[: len(names) // 2])
    with pytest.raises(ValueError, match="names"):
        spacy.load(tmp_path / "pipeline")
    (folder / "0" / "names").write_bytes(names)
    change_manifest(folder, version=99)
    with pytest.raises(ValueError, match="99"):
        spacy.load(tmp_path / "pipeline")


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("gone", ["kb", "vectors", "a file"])
def test_an_error_leaves_the_pipeline_that_was_there(store, kb, tmp_path, gone):
    """Nothing of a component is written where a store that it needs is there no more."""
    nlp, linker = make_linker(store)
    linker.set_kb(kb)
    nlp.to_disk(tmp_path / "pipeline")
    before = contents(tmp_path / "pipeline")
    for p in linker.head.module.parameters():
        p.data += 1
    if gone == "vectors":
        store.save(tmp_path / "gone")
        linker.take_vectors(type(store).open(tmp_path / "gone"))
    else:
        kb.save(tmp_path / "gone")
        linker.set_kb(type(kb).open(tmp_path / "gone"))
    if gone == "a file":
        (tmp_path / "gone" / "0" / "names").unlink()
    else:
        shutil.rmtree(tmp_path / "gone")
    for folder in ("pipeline", "new"):
        with pytest.raises((ValueError, OSError), match="gone"):
            nlp.to_disk(tmp_path / folder)
    assert contents(tmp_path / "pipeline") == before
    spacy.load(tmp_path / "pipeline")
    assert not contents(tmp_path / "new").keys() & {Path("luke_linker/model.safetensors")}
    with pytest.raises(ValueError, match="luke_linker"):
        spacy.load(tmp_path / "new")


def test_nothing_is_written_before_a_component_that_cannot_be(store, kb, tmp_path):
    """Components that come first are not written either, so that the pipeline that was there is no mixture."""
    nlp, linker = make_linker(store)
    config = {"model": {"encoder": {"train_precision": "float32"}}}
    first = nlp.add_pipe("luke_linker", name="first", config=config, before="luke_linker")
    first.initialize(lambda: [make_example(nlp)], weights=make_checkpoint, vectors=str(store.path))
    nlp.to_disk(tmp_path / "pipeline")
    before = contents(tmp_path / "pipeline")
    for p in first.head.module.parameters():
        p.data += 1
    kb.save(tmp_path / "gone")
    linker.set_kb(type(kb).open(tmp_path / "gone"))
    shutil.rmtree(tmp_path / "gone")
    with pytest.raises(ValueError, match=r"gone, from which it was loaded, but the folder is there no more"):
        nlp.to_disk(tmp_path / "pipeline")
    assert contents(tmp_path / "pipeline") == before
    nlp.to_disk(tmp_path / "pipeline", exclude=["luke_linker"])
    assert contents(tmp_path / "pipeline") != before


def test_the_tune_command(store, tmp_path):
    """Mentions without candidates are NIL under any threshold; the best one is saved."""
    from spacy_luke.readers.docbin import write_docbin

    nlp, linker = make_linker(store)
    linker.cfg["threshold"] = nlp.get_pipe_config("luke_linker")["threshold"] = 0.99
    best = [x._.luke_candidates[0].id for x in nlp(make_doc(nlp)).ents if x._.luke_candidates]
    gold = make_doc(nlp)
    gold.set_ents([Span(gold, x.start, x.end, "X", kb_id=id) for x, id in zip(gold.ents, [best[0], "NIL", best[1]])])
    nlp.to_disk(tmp_path / "pipeline")
    write_docbin([gold], tmp_path / "dev.spacy")
    arguments = ["luke", "tune", tmp_path / "pipeline", tmp_path / "dev.spacy", "--output", tmp_path / "tuned"]
    for options in ([], ["--precision", "0.9"]):
        result = CliRunner().invoke(spacy_app, [*map(str, arguments), "--force", *options])
        assert result.exit_code == 1
        assert "cannot be tuned: the pipeline finds no mentions" in " ".join(result.output.split())
    arguments += ["--gold-links", "--force"]
    result = CliRunner().invoke(spacy_app, list(map(str, arguments)))
    text = " ".join(result.output.split())
    assert result.exit_code == 0, text
    assert "'luke_linker': threshold = 0 (before: 0.99)" in text
    assert "100.00" in text
    tuned = spacy.load(tmp_path / "tuned")
    assert tuned.get_pipe("luke_linker").cfg["threshold"] == 0
    assert [x.kb_id_ for x in tuned(make_doc(tuned)).ents] == [best[0], "NIL", best[1]]


def test_calibrated_links(store, monkeypatch):
    """The scores of links are calibrated, and the threshold is that of the precision that is asked for."""
    nlp, linker = make_linker(store)
    before = [[x.score for x in span._.luke_candidates] for span in nlp(make_doc(nlp)).ents]
    best = [x._.luke_candidates[0].id for x in nlp(make_doc(nlp)).ents if x._.luke_candidates]
    golds = []
    for wrong in (False, False, True):
        gold = make_doc(nlp)
        ids = ["Q0", "NIL", "Q0"] if wrong else [best[0], "NIL", best[1]]
        gold.set_ents([Span(gold, x.start, x.end, "X", kb_id=id) for x, id in zip(gold.ents, ids)])
        golds.append(gold)
    proc = nlp.get_pipe("luke_linker")
    examples = [Example(make_doc(nlp), gold) for gold in golds]
    settings = {"nlp": nlp, "least": 0, "calibrate": True}
    fitted = tune_links(proc, examples, precision=0.5, **settings)
    assert fitted["links_strict_p"] >= 0.5
    assert (proc.temperature, proc.shift, proc.threshold) == tuple(
        fitted[key] for key in ("temperature", "shift", "threshold")
    )
    after = [[x.score for x in span._.luke_candidates] for span in nlp(make_doc(nlp)).ents]
    for a, b in zip(before, after, strict=True):
        assert b == pytest.approx(apply_calibration(np.array(a), proc.temperature, proc.shift).tolist(), abs=1e-6)
    with pytest.raises(ValueError, match="No threshold finds at least 1 labels"):
        tune_links(proc, examples, precision=1.0, **settings)
    best = tune_links(proc, examples, precision=None, **settings)
    assert set(best) == {"threshold", "links_strict_f", "temperature", "shift"}
    monkeypatch.setattr(proc, "predict", None)  # the gold is counted first
    for precision in (None, 0.5):
        with pytest.raises(ValueError, match="from 6 gold mentions with an entity, expected at least 1000"):
            tune_links(proc, examples, precision=precision, nlp=nlp, least=1000, calibrate=True)
