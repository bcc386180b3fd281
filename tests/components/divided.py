"""Gradients of a step, whatever the parts in which its examples come, and the batches in which they are computed."""

import numpy as np


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
