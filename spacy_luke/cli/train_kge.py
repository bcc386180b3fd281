"""`spacy luke train-kge`: vectors of a knowledge graph's entities, by TransE, for ERNIE's K-Encoder."""

from pathlib import Path

import typer
from wasabi import msg

from ..kge.settings import TransESettings
from ..kge.train import METRICS_FILE, VECTORS_FOLDER, train_graph
from ..kge.triples import Graph, read_graph
from .terminal import show_table

_DEFAULT = TransESettings()
_FIGURES = ("mrr", "hits@1", "hits@3", "hits@10", "mean_rank")


def train_kge_cli(
    train: list[Path] = typer.Argument(
        ..., help="Triples to learn from: head TAB relation TAB tail, or OpenKE's train2id.txt; plain or .gz"
    ),
    output: Path = typer.Argument(..., help="A new folder for the vectors, the figures and the state to resume from"),
    valid: Path | None = typer.Option(None, help="Triples that choose the best epoch"),
    test: Path | None = typer.Option(None, help="Triples to report on, once, in the end"),
    exclude: Path | None = typer.Option(
        None,
        help="Pairs, entity TAB entity (also as corpus --pair-ids writes them), whose triples are removed in both "
        "directions: facts that a task tests",
    ),
    engine: str = typer.Option(
        _DEFAULT.engine, help="sparse: steps cost the rows they touch; pykeen: needs the extra kg"
    ),
    size: int = typer.Option(_DEFAULT.size, help="Numbers in a vector"),
    epochs: int = typer.Option(_DEFAULT.epochs, help="Passes over all triples"),
    batch_size: int = typer.Option(_DEFAULT.batch_size, help="Triples in a step"),
    negatives: int = typer.Option(
        _DEFAULT.negatives, help="Wrong entities, shared by a batch; 0: all entities. pykeen: for each triple"
    ),
    learning_rate: float = typer.Option(_DEFAULT.learning_rate, help="Of the first step; goes down to 0 in a line"),
    loss: str = typer.Option(_DEFAULT.loss, help="softmax, nssa (RotatE's) or margin (the TransE paper's)"),
    margin: float = typer.Option(_DEFAULT.margin, help="Of the losses nssa and margin"),
    temperature: float = typer.Option(_DEFAULT.temperature, help="Of the loss nssa"),
    norm: int = typer.Option(_DEFAULT.norm, help="Distance: 1 or 2"),
    normalize: bool = typer.Option(
        _DEFAULT.normalize, "--normalize", help="Entities of length 1, as in the TransE paper"
    ),
    reciprocal: bool = typer.Option(
        _DEFAULT.reciprocal, "--reciprocal", help="A second vector for each relation, from tail to head"
    ),
    seed: int = typer.Option(_DEFAULT.seed, help="Of fresh vectors and of all draws"),
    every: int = typer.Option(10, help="Epochs between validations; the state is saved then"),
    dtype: str = typer.Option("float32", help="Of the store: float32, float16 or int8"),
    resume: bool = typer.Option(
        False, "--resume", help="Go on with the run in OUTPUT, if there is one, as if it had not stopped"
    ),
) -> None:
    """Train TransE on a knowledge graph: link-prediction figures, and a store of vectors for ERNIE."""
    settings = TransESettings(
        size=size,
        epochs=epochs,
        batch_size=batch_size,
        negatives=negatives,
        learning_rate=learning_rate,
        loss=loss,
        margin=margin,
        temperature=temperature,
        norm=norm,
        normalize=normalize,
        reciprocal=reciprocal,
        engine=engine,
        seed=seed,
    )
    graph = read_graph(train, valid=valid, test=test, exclude=exclude, progress=True)
    _describe(graph)
    result = train_graph(graph, output, settings, every=every, resume=resume, dtype=dtype, progress=True)
    left = result["graph"]["entities_without_training_triples"]
    msg.good(
        f"{output / VECTORS_FOLDER}: {len(graph.entities) - left:,} vectors of epoch {result['epoch']}; "
        f"{output / METRICS_FILE}"
    )
    if left:
        msg.warn(f"{left:,} entities have no vector: no training triple names them.")
    reported = [split for split in ("valid", "test") if result[split]]
    if reported:
        rows = [(split, *(f"{result[split][name]:.4f}" for name in _FIGURES)) for split in reported]
        show_table(("part", *_FIGURES), rows)


def _describe(graph: Graph) -> None:
    counts = [("entities", len(graph.entities)), ("relations", len(graph.relations))]
    counts += [(f"triples, {split}", len(found)) for split, found in graph.triples.items()]
    counts += [(f"excluded: {what}", count) for what, count in graph.excluded.items()]
    msg.table([(what, f"{count:,}") for what, count in counts], aligns=("l", "r"))
    for split in ("valid", "test"):
        if strange := graph.untrained(split):
            msg.warn(
                f"{strange:,} of the {len(graph.triples[split]):,} triples of {split} have an entity or a relation "
                "that no training triple has: nothing is learnt for it, and their ranks lower the figures."
            )
