"""Training keeps the memory that it frees; predictions give it back."""

import subprocess
import sys

import pytest
import torch

from spacy_luke.bridge import wrapper
from spacy_luke.bridge.freed_memory import keep_freed_memory
from tests.bridge.nets import make_shim

# Pages that ten tensors of 48 MB, one after another, get from the system, after some that are not counted: an aligned
# block does not fit where one of the same size was freed, but where two were.
PAGES = """
import resource, sys, torch
from spacy_luke.bridge.freed_memory import keep_freed_memory

print(keep_freed_memory(torch.device("cpu")) if sys.argv[1] == "keep" else False)
for _ in range(30):
    torch.zeros(12_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    torch.zeros(12_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(how):
    out = subprocess.run([sys.executable, "-c", PAGES, how], capture_output=True, text=True, check=True).stdout.split()
    return out[0] == "True", int(out[1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc alone is told")
def test_large_tensors_get_memory_that_was_freed():
    _, fresh = pages("give back")
    taken, kept = pages("keep")
    if not taken:
        pytest.skip("the C library has no mallopt, or does not take it")
    assert kept < fresh / 20


def test_only_training_asks_for_it(monkeypatch):
    asked = []
    monkeypatch.setattr(wrapper, "keep_freed_memory", asked.append)
    shim = make_shim()
    with shim.running(is_train=False):
        pass
    assert not asked
    with shim.running(is_train=True):
        pass
    assert asked == [torch.device("cpu")]


def test_a_gpu_needs_none():
    assert not keep_freed_memory(torch.device("cuda", 0))
