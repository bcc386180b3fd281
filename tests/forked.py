"""Several processes that train together. They are forked from one that has imported what they need and computed
nothing: a process that autograd's threads have run in cannot be forked."""

import os
import socket
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from multiprocessing import get_context

import torch

from spacy_luke.distributed.processes import join_processes

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(["spacy_luke.training.loop", "spacy_luke.pretraining.ernie.job", "tests.pipelines"])


def run_together(function, *args, size=2, joined=True):
    """function(*args, processes) in `size` processes, or function(*args) where it joins them itself; a function of a
    module, with arguments that can be pickled.

    RETURNS: their results, in the order of their ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ProcessPoolExecutor(size, mp_context=CONTEXT) as pool:
        futures = [pool.submit(_run, function, args, rank, size, port, joined) for rank in range(size)]
        for future in as_completed(futures):
            if error := future.result()[1]:
                for process in list(pool._processes.values()):  # others wait for it
                    process.kill()
                raise AssertionError(error)
        return [future.result()[0] for future in futures]


def _run(function, args, rank, size, port, joined):
    """RETURNS: the result, and the traceback of an error."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    try:
        with join_processes() if joined else nullcontext() as processes:
            return function(*args, *([processes] if joined else [])), None
    except Exception:
        return None, traceback.format_exc()
