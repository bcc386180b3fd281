"""Work in many threads at once."""

import sys
import threading
from collections.abc import Callable
from typing import Any


def in_threads(count: int, work: Callable[[int], Any]) -> list[BaseException]:
    """Runs work(0) to work(count - 1) at once, switching as often as can be. RETURNS: what they raised."""
    errors: list[BaseException] = []
    together = threading.Barrier(count)

    def guarded(number: int) -> None:
        together.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return errors
