"""Several processes that train together, forked from this one: they begin with all that it has imported and made."""

import os
import pickle
import socket
import traceback
from contextlib import nullcontext
from pathlib import Path

import torch

from spacy_luke.distributed.processes import join_processes


def run_together(function, folder: Path, *, size=2, joined=True):
    """function(processes) in `size` processes, or function(None) where it joins them itself.

    RETURNS: their results, in the order of their ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    children = []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            _run(function, folder / f"{rank}.pickle", rank, size, port, joined)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    errors = [path.read_text() for path in sorted(folder.glob("*.error"))]
    assert codes == [0] * size, "\n".join(errors)
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(size)]


def _run(function, path, rank, size, port, joined):
    """In a child, which ends here."""
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    code = 1
    try:
        torch.set_num_threads(1)
        with join_processes() if joined else nullcontext() as processes:
            path.write_bytes(pickle.dumps(function(processes)))
        code = 0
    except BaseException:
        path.with_suffix(".error").write_text(traceback.format_exc())
    finally:
        os._exit(code)
