"""What units may be, as numbers."""

import numpy as np
import pytest

from spacy_luke.batch.allowed import AllowedClasses, is_surely


def test_numbers():
    allowed = AllowedClasses(4)
    assert allowed.table() is None
    numbers = [allowed.number(x) for x in ([2], [0, 1, 2, 3], [0, 3], [3, 1], [3, 0, 3], [0])]
    assert numbers == [2, -1, -2, -3, -2, 0]
    assert [sorted(allowed.classes(x)) for x in numbers] == [[2], [0, 1, 2, 3], [0, 3], [1, 3], [0, 3], [0]]
    assert allowed.table().tolist() == [[True, False, False, True], [False, True, False, True]]


def test_surely():
    allowed = AllowedClasses(4)
    gold = np.array([allowed.number(x) for x in ([2], [0, 1, 2, 3], [0, 3], [3, 1], [0])])
    assert is_surely(gold, allowed.table()).tolist() == [True, False, False, True, False]
    assert is_surely(np.array([0, 1, -1]), None).tolist() == [False, True, False]


@pytest.mark.parametrize("classes", [[], [4], [-1]])
def test_no_such_classes(classes):
    with pytest.raises(AssertionError):
        AllowedClasses(4).number(classes)
