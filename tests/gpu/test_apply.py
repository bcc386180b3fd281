"""`spacy luke apply --gpu-ids` on pretended GPUs: each worker asks for its own, and finds what the CPU does."""

import json
from dataclasses import replace

import pytest

import tests.gpu.pretended  # noqa: F401  (skips all where torch cannot pretend a GPU)
from spacy_luke.stores.parallel import Engine
from spacy_luke.streams.run import apply_pipeline
from tests.pipelines import make_pipeline
from tests.streams.runs import SMALL, find, tree
from tests.tiny import SENTENCES

# Runs in each worker before it asks for its GPU, as --code: the GPU is pretended; what was asked, and the transfers to
# it, are told.
CODE = """
import os
from pathlib import Path

import spacy
from spacy_luke.streams import annotating
from tests.gpu.pretended import PretendedGPU, to_gpu

told = Path({told!r})
gpu, load = PretendedGPU().__enter__(), spacy.load


def require(number):
    (told / f"{{os.getpid()}}.asked").write_text(str(number))


def load_there(name):
    nlp = load(name)
    to_gpu(nlp)
    for _, component in nlp.pipeline:
        if hasattr(component, "predict"):
            predict = component.predict
            component.predict = lambda docs, predict=predict: tell(predict(docs))
    return nlp


def tell(found):
    (told / f"{{os.getpid()}}.transfers").write_text(str(sum(gpu.transfers.values())))
    return found


annotating.require_gpu, annotating.spacy.load = require, load_there
"""


@pytest.mark.slow
@pytest.mark.parametrize(("gpu_ids", "workers", "expected"), [((2, 3), 2, ["2", "3"]), ((1,), 2, ["1", "1"])])
def test_workers_take_their_gpus(tmp_path, gpu_ids, workers, expected):
    pipeline, lines, told = tmp_path / "pipeline", tmp_path / "texts.jsonl", tmp_path / "told"
    make_pipeline("luke_ner", "luke_relation").to_disk(pipeline)
    texts = [" ".join(SENTENCES[(i + k) % 4] for k in range(i % 4)) for i in range(40)]
    lines.write_text("".join(json.dumps({"id": f"d{i}", "text": x}) + "\n" for i, x in enumerate(texts)), "utf8")
    told.mkdir()
    (tmp_path / "code.py").write_text(CODE.format(told=str(told)), "utf8")
    apply_pipeline(pipeline, find(lines), tmp_path / "cpu", SMALL)
    settings = replace(SMALL, gpu_ids=gpu_ids, code=str(tmp_path / "code.py"))
    apply_pipeline(pipeline, find(lines), tmp_path / "gpu", settings, engine=Engine("processes", workers))
    assert sorted(x.read_text() for x in told.glob("*.asked")) == expected
    moved = [int(x.read_text()) for x in told.glob("*.transfers")]
    assert moved
    assert min(moved) > 0
    one, other = tree(tmp_path / "cpu"), tree(tmp_path / "gpu")
    parts = [name for name in one if name.startswith("part")]
    assert len(parts) > 5
    assert [name for name in other if name.startswith("part")] == parts
    for name in parts:  # a GPU multiplies by other kernels than this chip: scores are equal up to rounding
        for here, there in zip(one[name].splitlines(), other[name].splitlines(), strict=True):
            assert without_scores(json.loads(there)) == without_scores(json.loads(here))
            assert scores(json.loads(there)) == pytest.approx(scores(json.loads(here)), abs=1e-5)


def without_scores(value):
    if isinstance(value, dict):
        return {key: without_scores(x) for key, x in value.items() if key != "score"}
    return [without_scores(x) for x in value] if isinstance(value, list) else value


def scores(value):
    if isinstance(value, dict):
        return [y for key, x in value.items() for y in ([x] if key == "score" else scores(x))]
    return [y for x in value for y in scores(x)] if isinstance(value, list) else []
