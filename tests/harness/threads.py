"""One pipeline, many threads: each says what one thread says, and afterwards one thread still does."""

import random
import warnings
from pathlib import Path
from typing import Any

from tests.threads import in_threads

from .docs import compare, read
from .documents import draw_doc
from .runner import Kind, Outcome
from .stand import STANDS, make_stand, make_stores

TEXTS = 12  # of a thread and case; each thread reads all of them, in an order of its own


class ThreadsKind(Kind):
    name, unit, wanted, slow, limit, share = "threads", "Docs", 20_000, 100, 300.0, 4

    def prepare(self, folder: Path) -> None:
        make_stores(folder / "stores")
        self.pipelines = {name: make_stand(name, folder / "stores", **_small(name)) for name in STANDS}

    def case(self, number: int, rng: random.Random, folder: Path) -> Outcome:
        name = rng.choice(list(STANDS))
        nlp, threads = self.pipelines[name], rng.randint(2, 8)
        asked = [x for x in (draw_doc(rng, nlp) for _ in range(TEXTS)) if x is not None]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = [read(nlp(x.make())) for x in asked]
            orders = [rng.sample(range(len(asked)), len(asked)) for _ in range(threads)]
            found = run_threads(nlp, asked, orders)
            alone: list[Any] = [_try(nlp, x) for x in asked]
        failures = []
        for thread, results in enumerate([*found, dict(enumerate(alone))]):
            wrong = {i: x if isinstance(x, str) else compare(expected[i], x) for i, x in results.items()}
            if some := [f"Doc {i}: {text}" for i, text in wrong.items() if text]:
                who = f"thread {thread} of {threads}" if thread < threads else "one thread afterwards"
                failures.append(f"{name}, {who}: {len(some)} of {len(asked)} differ, such as {some[0]}")
        return Outcome(tried=len(asked) * threads, failures=failures, counts={name: len(asked) * threads})


def _small(name: str) -> dict[str, Any]:
    """Caches so small that windows are forgotten all the time."""
    return {"cache": 200} if STANDS[name].get("shared") and STANDS[name].get("kind") != "ernie" else {}


def run_threads(nlp: Any, asked: list[Any], orders: list[list[int]]) -> list[dict[int, Any]]:
    """What each thread finds for each Doc, or the text of what it raised."""
    found: list[dict[int, Any]] = [{} for _ in orders]

    def work(thread: int) -> None:
        for i in orders[thread]:
            found[thread][i] = _try(nlp, asked[i])

    if errors := in_threads(len(orders), work):
        raise errors[0]
    return found


def _try(nlp: Any, one: Any) -> Any:
    try:
        return read(nlp(one.make()))
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
