"""On a Mac spaCy's `prefer_gpu` takes Apple's GPU (MPS) for its own components; ours stay on the CPU, and say the
same."""

from thinc.api import get_current_ops, set_current_ops
from thinc.backends.mps_ops import MPSOps

from tests.pipelines import annotate, make_pipeline


def said(nlp):
    return [
        ([(e.text, e.label_, e._.luke_score, e._.luke_types) for e in doc.ents], str(doc._.luke_relations))
        for doc in annotate(nlp)
    ]


def test_the_same_as_on_the_cpu(tmp_path):
    nlp = make_pipeline()
    expected = said(nlp)
    before = get_current_ops()
    try:
        set_current_ops(MPSOps())
        assert said(nlp) == expected
        made = make_pipeline()
        assert said(made) == expected
        shims = [shim for _, pipe in made.pipeline if hasattr(pipe, "model") for shim in pipe.model.shims]
        assert {shim.device.type for shim in shims} == {"cpu"}
    finally:
        set_current_ops(before)
    assert any(entities for entities, _ in expected)
