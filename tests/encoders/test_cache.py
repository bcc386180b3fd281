"""Word states that components share: equal to those encoded anew, and forgotten when anything changes."""

import copy
import multiprocessing
import pickle
import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import Adam

from spacy_luke.bridge.optimizer import make_adamw
from spacy_luke.encoders.luke_kind import build_luke_encoder, encode_words
from spacy_luke.encoders.nodes import number_format
from spacy_luke.encoders.sharing import SharedEncoder
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.luke import Windows
from tests.threads import in_threads

CONFIG = LukeConfig(30, 3, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=20, entity_size=4)


def make_shim(capacity=1000, seed=0):
    torch.manual_seed(seed)
    model = build_luke_encoder(train_precision="float32")
    shim = model.shims[0]
    shim.create({"config": CONFIG.to_dict()})
    shim.sharing = SharedEncoder(shim, "luke_encoder", {"shared_pieces": capacity})
    return model, shim


def window(number, size=None):
    chosen = np.random.default_rng(number)
    return np.concatenate([[0], chosen.integers(3, 30, size or 3 + number % 4), [2]])


def run(shim, numbers, types=None):
    windows = [window(i) for i in numbers]
    lengths = [len(x) for x in windows]
    with torch.inference_mode():
        return encode_words(shim, np.concatenate(windows), lengths, types), lengths


def check(shim, numbers):
    """States, keys and values as those of the same windows without a cache, and a packing that fits them."""
    words, lengths = run(shim, numbers)
    pieces = torch.from_numpy(np.concatenate([window(i) for i in numbers]))
    with torch.inference_mode():
        expected = shim.module.encode_words(Windows(pieces, lengths))
    for name in ("keys", "values"):
        for got, wanted in zip(getattr(words, name), getattr(expected, name), strict=True):
            torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(words.states_ND, expected.states_ND, atol=1e-5, rtol=1e-5)
    assert list(words.packing.lengths) == lengths


def really_held(cache):
    """Pieces whose numbers are in memory, whether they are looked up or not: (1 + 2 layers x keys and values) x 16."""
    windows = [window for batch in cache._held.batches for window in batch.windows.values()]
    storages = {x.untyped_storage() for w in windows for x in (w.states_ND, *w.keys, *w.values)}
    return sum({x.data_ptr(): x.nbytes() for x in storages}.values()) // (5 * 16 * 4)


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), max_size=6), st.sampled_from([0, 6, 13, 30, 999]))
def test_equal_to_encoding_anew(calls, capacity):
    """Windows that were held, are new, stand twice in one call, or are forgotten in the very call that asks for
    them."""
    _, shim = make_shim(capacity)
    for numbers in calls:
        check(shim, numbers)
        assert shim.sharing.cache.held == really_held(shim.sharing.cache) <= capacity
    asked = sum(len(window(i)) for numbers in calls for i in numbers)
    assert shim.sharing.cache.encoded + shim.sharing.cache.reused == asked


def test_the_last_used_are_held():
    _, shim = make_shim(len(window(0)) + len(window(4)))
    assert len(window(0)) == len(window(4)) == len(window(8))
    run(shim, [0])
    run(shim, [4])
    run(shim, [0])
    run(shim, [8])
    before = shim.sharing.cache.encoded
    run(shim, [0, 8])
    assert shim.sharing.cache.encoded == before
    run(shim, [4])
    assert shim.sharing.cache.encoded == before + len(window(4))


def test_more_at_once_than_is_held():
    _, shim = make_shim(20)
    check(shim, [1, 2, 3, 4, 5])
    assert not shim.sharing.cache.held
    check(shim, [1])
    check(shim, [1, 2, 3, 4, 5])
    assert shim.sharing.cache.held <= 20


def steps(shim, optimizer):
    for p in shim.module.parameters():
        p.grad = torch.ones_like(p)
    shim.finish_update(optimizer)


CHANGES = {
    "adamw": lambda model, shim: steps(shim, make_adamw(learn_rate=0.1)),
    "thinc": lambda model, shim: steps(shim, Adam(0.1)),
    "fill": lambda model, shim: shim.fill(make_shim(seed=1)[1].module.state_dict()),
    "bytes": lambda model, shim: shim.from_bytes(make_shim(seed=1)[1].to_bytes()),
    "model": lambda model, shim: model.from_bytes(make_shim(seed=1)[0].to_bytes()),
    "in_place": lambda model, shim: [torch.nn.init.normal_(p) for p in shim.module.parameters()],
}


@pytest.mark.parametrize("name", CHANGES)
def test_never_stale(name):
    model, shim = make_shim()
    run(shim, [1, 2])
    CHANGES[name](model, shim)
    before = shim.sharing.cache.encoded
    check(shim, [1, 2])
    assert shim.sharing.cache.encoded > before


def test_many_loads():
    """A module may come to lie where a forgotten one lay."""
    data = [make_shim(seed=i)[1].to_bytes() for i in range(5)]
    _, shim = make_shim()
    for i in range(20):
        shim.from_bytes(data[i % 5])
        if i % 2:
            shim.from_bytes(data[(i + 1) % 5])
        check(shim, [1, 2])


def test_other_values_for_a_while():
    _, shim = make_shim()
    run(shim, [1])
    averages = {(shim.id, name): torch.zeros_like(p).numpy() for name, p in shim.named_parameters()}
    with shim.use_params(averages):
        assert not run(shim, [1])[0].states_ND.any()
    check(shim, [1])


def test_number_formats_are_apart():
    model, shim = make_shim()
    full, _ = run(shim, [1])
    model.attrs["predict_precision"] = "bfloat16"
    with number_format(model, is_train=False):
        short, _ = run(shim, [1])
    model.attrs["predict_precision"] = "float32"
    with number_format(model, is_train=False):
        again, _ = run(shim, [1])
    assert not torch.equal(short.states_ND.float(), full.states_ND)
    assert short.keys[0].dtype == torch.bfloat16
    assert torch.equal(again.states_ND, full.states_ND)


def test_states_of_a_prediction_serve_no_training():
    """Those of inference mode may not be saved for a backward pass; a frozen encoder's states in training are
    others."""
    model, shim = make_shim()
    run(shim, [1])
    weight = torch.ones(16, requires_grad=True)
    with number_format(model, is_train=True), torch.no_grad():
        words = encode_words(shim, window(1), [len(window(1))])
    (words.states_ND * weight).sum().backward()
    assert weight.grad.any()
    check(shim, [1])


def test_gradients_go_past_it():
    _, shim = make_shim()
    run(shim, [1])
    words = encode_words(shim, window(1), [len(window(1))])
    words.states_ND.sum().backward()
    assert shim.module.words.piece.weight.grad.abs().sum() > 0
    assert shim.sharing.cache.reused == 0


def test_token_types_go_past_it():
    _, shim = make_shim()
    run(shim, [1])
    run(shim, [1], types=np.zeros(len(window(1)), np.int64))
    assert shim.sharing.cache.reused == 0


def test_copies_hold_nothing():
    _, shim = make_shim(77)
    run(shim, [1])
    for other in (
        copy.deepcopy(shim.sharing.cache),
        pickle.loads(pickle.dumps(shim.sharing.cache)),
        copy.deepcopy(shim).sharing.cache,
    ):
        assert (other.capacity, other.held, really_held(other)) == (77, 0, 0)
    assert shim.sharing.cache.held


# ---- threads and processes


def encode_at_once(shim, count, work, monkeypatch):
    """Threads none of which goes on before all have encoded. RETURNS: what they raised."""
    encode, barrier = shim.module.encode_words, threading.Barrier(count)

    def together(windows):
        words = encode(windows)
        barrier.wait(60)
        return words

    with monkeypatch.context() as patch:
        patch.setattr(shim.module, "encode_words", together)
        return in_threads(count, work)


@pytest.mark.parametrize("capacity", [8, 1000])
def test_threads_that_miss_the_same_window_at_once(capacity, monkeypatch):
    """Each of them encodes it before any of them holds it; it is held once."""
    _, shim = make_shim(capacity)
    assert not encode_at_once(shim, 4, lambda i: run(shim, [4]), monkeypatch)
    assert shim.sharing.cache.held == really_held(shim.sharing.cache) == len(window(4))
    before = shim.sharing.cache.encoded
    check(shim, [4])
    assert shim.sharing.cache.encoded == before
    for number in range(8):  # the cache works on
        check(shim, [number])
        assert shim.sharing.cache.held == really_held(shim.sharing.cache) <= capacity


def test_threads_that_hold_some_of_the_same_windows(monkeypatch):
    """A window that was held again in another batch outlives its first batch."""
    _, shim = make_shim(len(window(1)) + 2 * len(window(2)) + len(window(3)))
    assert not encode_at_once(shim, 2, lambda i: run(shim, [[1, 2], [2, 3]][i]), monkeypatch)
    assert shim.sharing.cache.held == really_held(shim.sharing.cache) == shim.sharing.cache.capacity
    before = shim.sharing.cache.encoded
    check(shim, [2])
    assert shim.sharing.cache.encoded == before
    for number in range(4, 12):
        check(shim, [number, 2])
        assert shim.sharing.cache.held == really_held(shim.sharing.cache) <= shim.sharing.cache.capacity


@pytest.mark.slow
@pytest.mark.parametrize("capacity", [12, 60, 1000])
def test_many_threads(capacity):
    """States are those of one thread, and what is counted is there, also where parameters change between calls."""
    _, shim = make_shim(capacity)
    with torch.inference_mode():
        expected = {
            i: shim.module.word_states(Windows(torch.from_numpy(window(i)), [len(window(i))])) for i in range(12)
        }

    def work(thread):
        chosen = np.random.default_rng(thread)
        for _ in range(60):
            numbers = chosen.integers(0, 12, chosen.integers(1, 5)).tolist()
            words, lengths = run(shim, numbers)
            for number, states in zip(numbers, words.states_ND.split(lengths), strict=True):
                torch.testing.assert_close(states, expected[number], atol=1e-5, rtol=1e-5)
            if chosen.random() < 0.1:
                shim.sharing.cache.clear()

    assert in_threads(8, work) == []
    assert shim.sharing.cache.held == really_held(shim.sharing.cache) <= capacity
    check(shim, [1, 2, 3])


def test_a_window_does_not_keep_others_alive():
    """Where a window of an old batch is asked for again and again, what is in memory stays within the capacity."""
    _, shim = make_shim(60)
    run(shim, [0, 51, 52, 53])
    for number in range(40):
        run(shim, [0])
        run(shim, [number, number + 100, number + 200])
        assert really_held(shim.sharing.cache) == shim.sharing.cache.held <= 60


def _encode_in_child(shim, queue):
    run(shim, [2])
    queue.put(shim.sharing.cache.held)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of forks beside threads
def test_a_child_forked_while_a_thread_has_the_lock():
    _, shim = make_shim()
    run(shim, [1])
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with shim.sharing.cache._held.lock:
        child = context.Process(target=_encode_in_child, args=(shim, queue), daemon=True)
        child.start()
    assert queue.get(timeout=60) == len(window(2))
    child.join(60)
    assert child.exitcode == 0
    assert shim.sharing.cache.held == len(window(1))
