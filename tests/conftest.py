import gc
import os
import time
from collections import defaultdict
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings
from spacy.util import fix_random_seed

from tests.products import beyond_each_value
from tests.quick_english import make_quick

# A machine under load is slow: no example fails for its time. What an example may cost is what its test's counts allow.
# Examples are the same each time; `make test-slow` asks more of them.
SAME = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.register_profile("quick", SAME, max_examples=30)
settings.register_profile("whole", SAME, max_examples=250)
settings.load_profile("quick")

# Tiny models: threads that wait for one another on a busy machine take forty times as long. And sums are the same.
torch.set_num_threads(1)

make_quick()

# Seconds since 1970 after which no test begins: .ci/run sets it for the slow tests.
UNTIL = int(os.environ["SPACY_LUKE_TESTS_UNTIL"]) if "SPACY_LUKE_TESTS_UNTIL" in os.environ else None
SHARED = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a test marked `product`, the quick tests take as many combinations as hold each parameter's values once."""
    products = defaultdict(list)
    for item in items:
        if item.get_closest_marker("product"):
            products[item.nodeid.partition("[")[0]].append(item)
    for combinations in products.values():
        for item in beyond_each_value([item.callspec.params for item in combinations]):
            combinations[item].add_marker(pytest.mark.slow)
    if UNTIL is not None and items:  # each run begins elsewhere: there is no time for others
        items[:] = items[UNTIL % len(items) :] + items[: UNTIL % len(items)]


def pytest_collection_finish():
    """The garbage collector, a twentieth of the tests' time, need not look through what collection has made."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """What a test draws does not depend on the tests before it."""
    if UNTIL is not None and time.time() > UNTIL:
        pytest.skip("there was no time left for it")
    fix_random_seed(0)


@pytest.fixture(scope="session")
def shared():
    """Path of a file under ../shared (golden files, real data); skips where it is absent."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"{path} is not there (reference data; set SPACY_LUKE_SHARED to its folder)")
        return path

    return find
