"""What updates of any component do: the same step in whatever parts its examples come, less loss by any optimizer."""

import numpy as np
from thinc.api import Adam

from spacy_luke.bridge.optimizer import make_adamw

OPTIMIZERS = {"thinc": lambda: Adam(4e-3), "adamw": lambda: make_adamw(learn_rate=4e-3), "none": lambda: None}


def assert_division_is_irrelevant(make, examples, *, accumulate, pieces, atol=1e-6):
    """make: a pipeline and its component, for a batch size; accumulate: updates before the step; pieces: of a batch."""

    def gradients(accumulate, pieces):
        nlp, component = make(pieces)
        every = examples(nlp)
        for i in range(0, len(every), len(every) // accumulate):
            nlp.update(every[i : i + len(every) // accumulate], sgd=False, drop=0.0)
        result = {}
        component.finish_update(lambda key, x, d_x: (x, result.setdefault(key[1], d_x.copy())))
        return result

    expected, actual = gradients(1, 100_000), gradients(accumulate, pieces)
    assert set(actual) == set(expected)
    assert max(np.abs(x).max() for x in expected.values()) > 0.01
    for name, x in expected.items():
        assert np.abs(actual[name] - x).max() <= atol, name


def assert_learns(nlp, name, examples, optimizer, *, share):
    """examples: of a pipeline; share: of the first loss that the last of twelve updates is below."""
    sgd, losses = OPTIMIZERS[optimizer](), []
    for _ in range(12):
        found = {}
        nlp.update(examples(nlp), sgd=sgd, losses=found)
        losses.append(found[name])
    assert losses[-1] < share * losses[0]
