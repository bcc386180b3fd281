"""Encoders of the further families on a GPU, in both modes: what they find and learn is what they do on the
CPU, and they wait no more than LUKE's own."""

import copy

import pytest

from spacy_luke.checkpoint import read_checkpoint
from spacy_luke.pipelines.quantization import dequantize, quantize
from tests.components.every import facts
from tests.family_folders import SETTINGS, write_folder
from tests.gpu.components import make_luke
from tests.gpu.machine import GPU, to_gpu
from tests.gpu.running import UPDATE, check_counts, counted, docs_of, learned

MODES = pytest.mark.parametrize("attention", ["one_way", "full"])
MORE = {"modernbert": 1}  # transfers of a pass over words: which pieces are near which
FAMILIES = pytest.mark.parametrize("family", SETTINGS)


@pytest.fixture
def make(family, attention, tmp_path):
    source = write_folder(tmp_path / "checkpoint", family)

    def build(name):
        return make_luke(name, attention, None, weights=lambda: read_checkpoint(source, entity_size=12))

    return build


@pytest.mark.product
@MODES
@FAMILIES
def test_results_are_those_of_the_cpu(make):
    (here, examples), (there, _) = (make("luke_ner") for _ in range(2))
    expected = [facts(doc) for doc in here.pipe(docs_of(examples(here, 7)))]
    with GPU() as gpu:
        to_gpu(there)
        found = [facts(doc) for doc in there.pipe(docs_of(examples(there, 7)))]
        assert gpu.transfers
        losses, parameters = learned(there, examples)
    assert found == [pytest.approx(one, abs=1e-4) for one in expected]
    expected_losses, expected_parameters = learned(here, examples)
    assert losses == [pytest.approx(one, rel=1e-3, abs=1e-4) for one in expected_losses]
    for (x_name, x), (y_name, y) in zip(parameters, expected_parameters, strict=True):
        assert x_name == y_name
        assert float((x - y).abs().max()) < 2e-5, x_name


@pytest.mark.product
@pytest.mark.parametrize("windows", [1, 7])
@pytest.mark.parametrize("name", ["luke_ner", "luke_relation"])
@MODES
@FAMILIES
def test_waits_and_transfers(name, attention, windows, family, make):
    most_transfers = 3 + (MORE.get(family, 0) if attention == "one_way" else 0)
    nlp, examples = make(name)
    component = nlp.get_pipe(name)
    with GPU() as gpu:
        to_gpu(nlp)
        docs = list(nlp.get_pipe("sentencizer").pipe(docs_of(examples(nlp, windows))))
        gpu.forget()
        with counted(component) as passes:
            list(component.pipe(docs))
        assert len(passes)
        check_counts(gpu, waits=len(passes), transfers=most_transfers * len(passes))
        gpu.forget()
        with counted(component) as passes:
            component.update(examples(nlp, windows), drop=0.0)
        most = UPDATE.get((name, attention), 1)
        check_counts(gpu, waits=most + (len(passes) - 1) * (most - 1), transfers=most_transfers * len(passes))


@pytest.mark.parametrize("option", [{"entity_start": "mention"}, {"case_feature": True}, {}], ids=str)
@MODES
def test_predictions_of_other_settings(option, attention, tmp_path):
    """Of entities that begin with their mention's pieces, of vectors of cases, and, without either, of int8, of which a
    GPU takes the numbers that it stands for."""
    source = write_folder(tmp_path / "checkpoint", "electra")
    nlp, examples = make_luke(
        "luke_ner", attention, None, weights=lambda: read_checkpoint(source, entity_size=12, **option)
    )
    plain = nlp
    if not option:
        quantize(nlp)
        dequantize(plain := copy.deepcopy(nlp))
    expected = [facts(doc) for doc in plain.pipe(docs_of(examples(nlp, 7)))]
    assert any(expected)
    with GPU() as gpu:
        to_gpu(nlp)
        docs = list(nlp.get_pipe("sentencizer").pipe(docs_of(examples(nlp, 7))))
        gpu.forget()
        with counted(nlp.get_pipe("luke_ner")) as passes:
            found = [facts(doc) for doc in nlp.get_pipe("luke_ner").pipe(docs)]
        assert len(passes)
        check_counts(gpu, waits=len(passes), transfers=3 * len(passes))
    assert found == [pytest.approx(one, abs=1e-4) for one in expected]
