"""A run: epochs, link prediction on the validation triples, and a state from which an interrupted run goes on exactly.

training.safetensors   all that the next epoch depends on, with the settings, the graph's digest and the figures so far
best.safetensors       the same of the epoch with the best validation MRR
metrics.json           settings, figures and counts, at the end
relations.npy, .txt    vectors of the relations, and their names
vectors/               the store of the entities' vectors, see `vectors.writer`
"""

import json
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..stores.atomic import sweep, write_atomically
from ..stores.progress import ProgressBar
from ..vectors.build import build_vectors
from ..vectors.writer import check_dtype
from .engines import GraphEngine, make_engine
from .settings import TransESettings
from .triples import TRIPLE_SPLITS, Graph

STATE, BEST, METRICS_FILE, VECTORS_FOLDER = "training.safetensors", "best.safetensors", "metrics.json", "vectors"


def train_graph(
    graph: Graph,
    folder: str | Path,
    settings: TransESettings,
    *,
    every: int = 10,
    resume: bool = False,
    dtype: str = "float32",
    progress: bool = False,
) -> dict[str, Any]:
    """Train on a graph, write the files of this module to a folder, and return what metrics.json holds.

    every: epochs between two validations, each followed by saving the state. The vectors are those of the best
    validation MRR, or of the last epoch without validation triples; `test` is reported for these alone. Entities that
    no training triple names are not in the store. resume: go on from the folder's state, if there is one,
    as if there had been no pause.
    """
    if every < 1:
        raise ValueError(f"every must be 1 or more, but it is {every}.")
    check_dtype(dtype)
    folder = Path(folder)
    engine = make_engine(graph, settings)
    identity = {"settings": settings.to_dict(), "graph": digest_graph(graph), "every": every}
    record: dict[str, Any] = {"epoch": 0, "history": [], "best": None, "seconds": 0.0}
    if _is_begun(folder):
        if not resume:
            raise ValueError(f"{folder} is not empty. Resume the run that is there, or choose another name.")
        record = _load_state(folder / STATE, engine, identity)
    elif resume and progress:
        print(f"Begins anew, as {folder} has nothing to resume.", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    while record["epoch"] < settings.epochs:
        _run_epoch(engine, graph, settings, record, progress=progress)
        if record["epoch"] % every == 0 or record["epoch"] == settings.epochs:
            _validate(engine, graph, folder, record, progress=progress)
            _save_tensors(engine.state(), folder / STATE, {**identity, "record": record})
    return _finish(engine, graph, folder, settings, record, dtype=dtype, progress=progress)


def _is_begun(folder: Path) -> bool:
    """Whether a folder holds a run, or something else. One that was killed before its first state was whole left
    nothing, or the first best epoch, which is found again."""
    sweep(folder)
    return folder.exists() and any(path.name != BEST for path in folder.iterdir())


def _run_epoch(
    engine: GraphEngine, graph: Graph, settings: TransESettings, record: dict[str, Any], *, progress: bool
) -> None:
    start, epoch = perf_counter(), record["epoch"]
    total, task = len(graph.triples["train"]), f"epoch {epoch + 1}/{settings.epochs}"
    with ProgressBar[None](None, task, total=total, unit=" triples", scaled=True, show=progress) as bar:
        loss = engine.train_epoch(epoch, bar)
    if not np.isfinite(loss):
        raise ValueError(
            f"The loss of epoch {epoch + 1} is {loss}. Take a smaller learning rate than {settings.learning_rate}."
        )
    record["epoch"] += 1
    record["seconds"] += perf_counter() - start
    record["history"].append({"epoch": record["epoch"], "loss": round(loss, 6)})


def _validate(engine: GraphEngine, graph: Graph, folder: Path, record: dict[str, Any], *, progress: bool) -> None:
    last = record["history"][-1]
    said = f"epoch {last['epoch']}: loss {last['loss']:.4f}"
    if not len(graph.triples["valid"]):
        if progress:
            print(said, flush=True)
        return
    found = engine.evaluate(graph.triples["valid"], progress=progress)
    last["valid"] = found
    if progress:
        print(f"{said}, MRR {found['mrr']:.4f}, hits@10 {found['hits@10']:.4f}", flush=True)
    if record["best"] is None or found["mrr"] > record["best"]["mrr"]:
        record["best"] = {"epoch": last["epoch"], **found}
        _save_tensors(engine.state(), folder / BEST, {"epoch": last["epoch"]})


def _finish(
    engine: GraphEngine,
    graph: Graph,
    folder: Path,
    settings: TransESettings,
    record: dict[str, Any],
    *,
    dtype: str,
    progress: bool,
) -> dict[str, Any]:
    if record["best"] is not None:
        engine.load(_read_tensors(folder / BEST)[0])
    trained_U = graph.trained_entities()
    entities_ND, relations_RD = engine.vectors()
    lengths_U = entities_ND[trained_U].norm(dim=1)
    result = {
        "settings": settings.to_dict(),
        "graph": {
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            **{split: len(graph.triples[split]) for split in TRIPLE_SPLITS},
            "entities_without_training_triples": len(graph.entities) - len(trained_U),
            "digest": digest_graph(graph),
        },
        "excluded": graph.excluded,
        "epoch": record["best"]["epoch"] if record["best"] else record["epoch"],
        "valid": record["best"],
        "test": engine.evaluate(graph.triples["test"], progress=progress) if len(graph.triples["test"]) else None,
        "seconds": round(record["seconds"], 1),
        "triples_per_second": round(len(graph.triples["train"]) * record["epoch"] / record["seconds"]),
        "mean_length_of_vectors": round(float(lengths_U.mean()), 4),
        "history": record["history"],
    }
    names = [graph.entities[i] for i in trained_U.tolist()]
    vectors_UD = entities_ND[trained_U].numpy()
    build_vectors(vectors_UD, folder / VECTORS_FOLDER, dtype=dtype, names=names, progress=progress)
    with write_atomically(folder / "relations.npy") as new, new.open("wb") as file:
        np.save(file, relations_RD.numpy())
    with write_atomically(folder / "relations.txt") as new:
        new.write_text("".join(f"{name}\n" for name in graph.relations), encoding="utf8")
    with write_atomically(folder / METRICS_FILE) as new:
        new.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    return result


def digest_graph(graph: Graph) -> str:
    """BLAKE2b (16 bytes) of names and triples."""
    digest = blake2b(digest_size=16)
    for names in (graph.entities, graph.relations):
        for name in names:
            digest.update(name.encode("utf8") + b"\n")
        digest.update(b"\n")
    for split in TRIPLE_SPLITS:
        digest.update(np.ascontiguousarray(graph.triples[split]).data)
        digest.update(b"\n")
    return digest.hexdigest()


def _save_tensors(tensors: dict[str, Tensor], path: Path, about: dict[str, Any]) -> None:
    with write_atomically(path) as new:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, new, {"about": json.dumps(about)})


def _read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors of their own memory, and what was noted with them."""
    if not path.is_file():
        raise ValueError(f"{path} is not there: nothing was saved yet, or this is another folder. Start the run anew.")
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name).clone() for name in file.keys()}, json.loads(file.metadata()["about"])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}). Start the run anew.") from error


def _load_state(path: Path, engine: GraphEngine, identity: dict[str, Any]) -> dict[str, Any]:
    state, about = _read_tensors(path)
    for key, wanted in identity.items():
        if about.get(key) != wanted:
            was, now = about.get(key), wanted
            if isinstance(was, dict) and isinstance(now, dict):
                was, now = _without_same(was, now), _without_same(now, was)
            raise ValueError(
                f"{path} is of another run: its {key} is {was}, but now {now}. Resume with what it began with."
            )
    engine.load(state)
    record: dict[str, Any] = about["record"]
    return record


def _without_same(values: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value != others.get(key)}
