"""Save, move, load, same answer; and what must stay whole when saving fails."""

import errno
import os
import shutil
import stat
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import spacy
import torch
from spacy.tokens import Doc, DocBin

from spacy_luke.components import storage
from spacy_luke.entity_vocab import EntityVocab
from tests.components.recognised import found_in, make_ner, trained
from tests.tiny import ENTITIES, SENTENCES, make_checkpoint

TEXTS = [*SENTENCES, "", "Accra and London", " ".join(SENTENCES)]
FILE = "luke_ner/model.safetensors"


def answers(nlp, spans_key=None):
    return [found_in(doc, spans_key) for doc in nlp.pipe(TEXTS)]


def half_a_file(tensors, path, metadata=None):
    Path(path).write_bytes(storage.save(tensors, metadata)[:1000])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@pytest.mark.product
@pytest.mark.parametrize("spans_key", [None, "sc"])
@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_to_disk_and_elsewhere(tmp_path, attention, spans_key):
    nlp = trained(attention, spans_key)
    expected = answers(nlp, spans_key)
    assert any(expected)
    nlp.to_disk(tmp_path / "one")
    shutil.move(tmp_path / "one", tmp_path / "two")
    again = spacy.load(tmp_path / "two")
    assert answers(again, spans_key) == expected
    assert again.get_pipe("luke_ner").labels == ("LOC", "ORG", "PER")
    assert again.get_pipe("luke_ner").cfg == nlp.get_pipe("luke_ner").cfg
    again.to_disk(tmp_path / "two")  # over the file that it was read from
    assert answers(spacy.load(tmp_path / "two"), spans_key) == expected
    assert answers(again, spans_key) == expected


@pytest.mark.parametrize("attention", ["full", "one_way"])
def test_bytes(attention):
    nlp = trained(attention)
    data = nlp.to_bytes()
    assert nlp.to_bytes() == data
    again = spacy.blank("en")
    settings = {"overlap": 32, "max_span_words": 3}  # those of a pipeline are in its config, and not in the bytes
    again.add_pipe("luke_ner", config={**settings, "model": {"attention": attention}})
    assert answers(again.from_bytes(data)) == answers(nlp)
    copy = spacy.blank("en")
    copy.add_pipe("luke_ner", source=nlp)
    assert answers(copy) == answers(nlp)


def test_saved_files_are_the_same_every_time(tmp_path):
    for name in ("a", "b"):
        trained().to_disk(tmp_path / name)
    assert (tmp_path / "a" / FILE).read_bytes() == (tmp_path / "b" / FILE).read_bytes()
    assert [path.name for path in (tmp_path / "a/luke_ner").iterdir()] == ["model.safetensors"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_saved_file_is_readable_as_others_are(tmp_path):
    trained().to_disk(tmp_path)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == stat.S_IMODE((tmp_path / "meta.json").stat().st_mode)


def test_thinc_model_bytes():
    nlp = trained()
    model = nlp.get_pipe("luke_ner").model
    expected = answers(nlp)
    data = model.to_bytes()
    with torch.no_grad():
        for _, p in nlp.get_pipe("luke_ner").named_parameters():
            p.zero_()
    model.from_bytes(data)
    assert answers(nlp) == expected


@pytest.mark.parametrize("spans_key", [None, "sc"])
def test_scores_survive_in_docs(spans_key):
    nlp = trained("one_way", spans_key)
    docs = list(nlp.pipe(TEXTS))
    expected = [found_in(doc, spans_key) for doc in docs]
    other = spacy.blank("en").vocab
    copies = [Doc(other).from_bytes(doc.to_bytes()) for doc in docs]
    assert [found_in(doc, spans_key) for doc in copies] == expected
    bin = DocBin(docs=docs, store_user_data=True).to_bytes()
    copies = list(DocBin().from_bytes(bin).get_docs(other))
    assert [found_in(doc, spans_key) for doc in copies] == expected
    if spans_key is not None:
        scores = [doc.spans[spans_key].attrs["scores"].tolist() for doc in docs]
        assert [doc.spans[spans_key].attrs["scores"].tolist() for doc in copies] == scores


def test_before_initialisation(tmp_path):
    nlp, _ = make_ner(initialize=False)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    with pytest.raises(ValueError, match="no weights yet"):
        again("Ada")
    again.from_bytes(trained().to_bytes())
    assert answers(again) == answers(trained())


def test_entity_table_is_kept_beside(tmp_path):
    """Only special rows are used; the whole table comes back for an export."""
    checkpoint = make_checkpoint()
    nlp, ner = make_ner(weights=lambda: checkpoint)
    assert len(ner.encoder.module.entities.table.weight) == 4
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path).get_pipe("luke_ner").to_checkpoint()
    assert torch.equal(
        again.tensors["encoder.entities.table.weight"], checkpoint.tensors["encoder.entities.table.weight"]
    )
    assert again.entities.to_json() == EntityVocab(ENTITIES.items()).to_json()


PROCESSES = """
    import multiprocessing, sys
    import spacy

    def read(docs):
        return [{(e.start, e.end, e.label_): e._.luke_score for e in doc.ents} for doc in docs]

    if __name__ == "__main__":
        nlp = spacy.load("pipeline")
        texts = [*sys.argv[1:], "", " "] * 4
        expected = read([nlp(text) for text in texts])
        assert sum(map(len, expected)) >= 24, expected
        multiprocessing.set_start_method(METHOD)
        found = read(nlp.pipe(texts, n_process=2, batch_size=3))
        for a, b in zip(expected, found, strict=True):
            assert set(a) == set(b), (a, b)
            assert all(abs(a[key] - b[key]) < 1e-5 for key in a), (a, b)
        print("same")
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(tmp_path, method):
    """After a prediction in the parent, whose threads a forked child does not have."""
    trained().to_disk(tmp_path / "pipeline")
    (tmp_path / "run.py").write_text(textwrap.dedent(PROCESSES.replace("METHOD", repr(method))))
    command = [sys.executable, "run.py", *SENTENCES]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "same\n"


def test_full_disk_leaves_the_old_pipeline(tmp_path, monkeypatch):
    nlp = trained()
    nlp.to_disk(tmp_path)
    expected = answers(nlp)
    with torch.no_grad():
        for _, p in nlp.get_pipe("luke_ner").named_parameters():
            p.add_(1)
    with monkeypatch.context() as patch:
        patch.setattr(storage, "save_file", half_a_file)
        with pytest.raises(OSError, match="No space left"):
            nlp.to_disk(tmp_path)
    assert [path.name for path in (tmp_path / "luke_ner").iterdir()] == ["model.safetensors"]
    assert answers(spacy.load(tmp_path)) == expected


@pytest.mark.parametrize("size", [0, 7, 1000, -1])
def test_truncated_file(tmp_path, size):
    trained().to_disk(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[:size])
    with pytest.raises(ValueError, match=r"model\.safetensors is not a whole safetensors file.*truncated"):
        spacy.load(tmp_path)


def test_missing_or_foreign_file(tmp_path):
    trained().to_disk(tmp_path)
    (tmp_path / FILE).write_bytes(storage.save({"x": torch.zeros(2)}))
    with pytest.raises(ValueError, match=r"model\.safetensors holds tensors, but not those of a saved 'luke_ner'"):
        spacy.load(tmp_path)
    (tmp_path / FILE).unlink()
    with pytest.raises(ValueError, match=r"Expected a file of weights at .*model\.safetensors"):
        spacy.load(tmp_path)


def free_bytes():
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf8").splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def save_large(folder):
    """A pipeline with a full entity table of more than 4 GiB; returns what it predicts."""
    rows, width = 17_000, 65_536
    checkpoint = make_checkpoint(entity_size=width)
    table = torch.zeros(rows, width)
    table[: len(ENTITIES)] = checkpoint.tensors["encoder.entities.table.weight"]
    table[-1, -1] = 3.5
    checkpoint.tensors["encoder.entities.table.weight"] = table
    checkpoint.entities = EntityVocab([*ENTITIES.items(), *((f"E{i}", i) for i in range(len(ENTITIES), rows))])
    checkpoint.config = replace(checkpoint.config, entity_vocab_size=rows)
    nlp, ner = make_ner(weights=lambda: checkpoint)
    with pytest.raises(ValueError, match=r"'luke_ner' holds 4,4\d\d,\d\d\d,\d\d\d bytes.*Use nlp\.to_disk"):
        nlp.to_bytes()
    nlp.to_disk(folder)
    return ner.predict([nlp.make_doc(SENTENCES[0])])[0].logit_E.tolist()


@pytest.mark.slow
def test_more_than_4_gib(tmp_path):
    if shutil.disk_usage(tmp_path).free < 20 * 2**30 or free_bytes() < 12 * 2**30:
        pytest.skip("needs 20 GiB of free disk and 12 GiB of free memory")
    expected = save_large(tmp_path)
    assert (tmp_path / FILE).stat().st_size > 2**32
    nlp = spacy.load(tmp_path)
    ner = nlp.get_pipe("luke_ner")
    kept = ner.encoder.kept["entities.table.weight"]
    assert kept.shape == (17_000, 65_536)
    assert kept[-1, -1] == 3.5
    assert ner.predict([nlp.make_doc(SENTENCES[0])])[0].logit_E.tolist() == expected
    ner.to_disk(tmp_path / "copy")
    assert (tmp_path / "copy/model.safetensors").stat().st_size == (tmp_path / FILE).stat().st_size
    shutil.rmtree(tmp_path)  # pytest keeps folders of three runs


def test_weights_of_the_other_attention_mode(tmp_path):
    _, one = make_ner(attention="one_way")
    _, other = make_ner(attention="full")
    one.to_disk(tmp_path)
    with pytest.raises(ValueError, match="trained with attention = 'one_way', but its config says 'full'"):
        other.from_disk(tmp_path)


def test_an_overlap_too_small_for_the_spans():
    with pytest.raises(ValueError, match="expected 40 or more, but it is 32"):
        make_ner(max_span_pieces=20)
