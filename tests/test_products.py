"""The quick tests' part of a product of parameters."""

from itertools import product

import pytest

from tests.products import beyond_each_value


@pytest.mark.parametrize("sizes", [(1,), (4,), (2, 3), (3, 3, 3), (5, 1, 2), (2, 2, 2, 2)])
def test_each_value_is_taken(sizes):
    combinations = [
        dict(enumerate(values)) for values in product(*(range(100 * i, 100 * i + n) for i, n in enumerate(sizes)))
    ]
    left = beyond_each_value(combinations)
    taken = [x for i, x in enumerate(combinations) if i not in left]
    assert {value for x in taken for value in x.values()} == {value for x in combinations for value in x.values()}
    assert max(sizes) <= len(taken) <= sum(sizes) - len(sizes) + 1


def test_nothing_is_left_of_values_that_stand_alone():
    assert beyond_each_value([]) == []
    assert beyond_each_value([{"a": [1]}, {"a": {}}]) == []
    assert beyond_each_value([{"a": 1}, {"a": 1}]) == [1]


@pytest.mark.product
@pytest.mark.parametrize("one", "ab")
@pytest.mark.parametrize("other", [1, 2])
def test_the_others_are_slow(one, other, request):
    """In the quick tests two of the four run, in the slow ones the others."""
    slow = request.node.get_closest_marker("slow") is not None
    assert slow == ((one, other) in [("b", 1), ("a", 2)])
