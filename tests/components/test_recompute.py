"""Components whose encoder computes its layers again learn what they do without that, with dropout too."""

import pytest
import torch

from tests.components import known
from tests.components.listening import make_pipeline
from tests.components.recognised import make_examples, make_ner
from tests.components.related import make_examples as related_examples
from tests.components.sharing import make_shared


def own(attention, recompute, folder):
    nlp, _ = make_ner(attention=attention, encoder={"recompute": recompute})
    return nlp, make_examples(nlp)


def shared(attention, recompute, folder):
    nlp = make_shared(attention, recompute=recompute)
    return nlp, related_examples(nlp)


def listening(attention, recompute, folder):
    nlp, _, examples = make_pipeline("luke_ner", "parser", model={"recompute": recompute})
    return nlp, examples


def ernie(attention, recompute, folder):
    own = {"model": {"encoder": {"recompute": recompute}}}
    return known.make(["ernie_typer"], known.make_vectors(folder), ernie_typer=own)


def gradients(make, attention, folder, *, recompute, drops):
    nlp, examples = make(attention, recompute, folder)
    torch.manual_seed(1)
    nlp.update(examples, sgd=False, drop=0.3, component_cfg={name: {"drop": drop} for name, drop in drops.items()})
    found = {}
    for name, component in nlp.pipeline:
        sharing = component.encoder.sharing if hasattr(component, "encoder") else None
        if sharing is not None and sharing.owner == name:
            sharing.gather()
        for node, shim in getattr(component, "own_shims", {}).items():
            found |= {(name, node, key): p.grad for key, p in shim.named_parameters() if p.grad is not None}
    return found


@pytest.mark.parametrize(
    ("make", "attention", "drops"),
    [
        (own, "one_way", {}),
        (own, "full", {}),
        (shared, "one_way", {}),
        (shared, "full", {}),
        (listening, "one_way", {"luke_ner": 0.0}),  # another rate, before the listener gives back its gradient
        (ernie, "", {}),
    ],
)
def test_gradients(make, attention, drops, tmp_path):
    plain, again = (gradients(make, attention, tmp_path, recompute=x, drops=drops) for x in (False, True))
    assert plain.keys() == again.keys()
    assert any("layers" in key for _, _, key in plain)
    assert all(torch.equal(x, again[key]) for key, x in plain.items())
