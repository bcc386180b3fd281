"""A task of the tests of processes and of Ray's workers. No torch here: each process that is started would load it."""

import os
import signal


def die_first(path):
    """Killed by the system, until it has been tried twice."""
    tries = len(path.read_text()) if path.exists() else 0
    path.write_text("x" * (tries + 1))
    if tries < 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name
